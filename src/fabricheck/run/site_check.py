"""Requirements of a site's partition, checked on the node where this runs.

What starts programs (commands, an account, modules), Spack and what it installs, the programs (this
suite's, OSU's, and the tests of RCCL or NCCL), and the compute node: its devices, cores and NUMA
domains, compared with partition and node model.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError, UsageError
from fabricheck.core.models import read_model
from fabricheck.core.show import enumerated, listed
from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.node import NodeModel, format_cores, load
from fabricheck.results.settings import numa_balancing
from fabricheck.rfm import host
from fabricheck.schedulers import table
from fabricheck.schedulers.row import Scheduler
from fabricheck.site import sites, software
from fabricheck.site.clusters import (
    COLLECTIVE_TESTS,
    PROGRAMS,
    RANK_PROGRAMS,
    tests_variable,
    without_kernels,
)
from fabricheck.site.partitions import Section, Target
from fabricheck.site.software import Lock
from fabricheck.tools.benchmarks import NCCL_TESTS, OSU
from fabricheck.tools.recording import MPI_LIBRARY
from fabricheck.tools.runner import last_words, run, text_of
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.host import host_differences

Status = Literal["ok", "missing", "not seen"]

#: The time limit of a command, and of the drivers' answer, in s.
_TIME_LIMIT_S = 60


@dataclass(frozen=True)
class Finding:
    """One sentence about one requirement; for a missing one it states what to do."""

    status: Status
    says: str


def ok(says: str) -> Finding:
    """Return that the requirement is met."""
    return Finding("ok", says)


def missing(says: str) -> Finding:
    """Return that the requirement is missing, and what to do."""
    return Finding("missing", says)


def either(met: object, good: str, bad: str) -> Finding:
    """Return whether a requirement is met, with the sentence for each case."""
    return ok(good) if met else missing(bad)


def unseen(what: str) -> Finding:
    """Return that it can be seen on a compute node only."""
    return Finding("not seen", f"{what}: not visible on a login node.")


@dataclass(frozen=True)
class Machine:
    """A node as this process sees it, or a tree in its place.

    root: the folder with ``proc``, ``sys`` and the site's software. environ: the variables. cores:
    those that this process may use, by the system's index. stated: whether this is a compute node,
    if the user says so. name: its host name and the site's own name of the system.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cores: frozenset[int] = field(default_factory=lambda: frozenset(os.sched_getaffinity(0)))
    stated: bool | None = None
    name: str = field(default_factory=host.system_name)

    @property
    def is_compute(self) -> bool:
        """Whether devices can be expected: as stated, inside a job, or where a driver has some."""
        return self._judged[0]

    @property
    def because(self) -> str:
        """Why this is considered a compute node or not, and which option overrides it."""
        return self._judged[1]

    @property
    def _judged(self) -> tuple[bool, str]:
        if self.stated is not None:
            return self.stated, f"as --{'compute' if self.stated else 'login'} states"
        around = table.around(self.environ)
        if around is not None:
            return True, f"because {around.variable} is set; --login overrides this"
        if self.has_devices:
            return True, "because a driver has devices; --login overrides this"
        return False, (
            f"because {table.SLURM.variable} is not set and no driver has devices; --compute "
            "overrides this"
        )

    @property
    def has_devices(self) -> bool:
        """Whether AMD's or NVIDIA's driver has a device."""
        ids = self.at("/sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id")
        gpus = self.at("/proc/driver/nvidia/gpus").glob("*")
        return any(text_of(path).strip() not in ("", "0") for path in ids) or any(gpus)

    def at(self, path: str | Path) -> Path:
        """Return the location of a system path."""
        return self.root / str(path).lstrip("/")

    def which(self, name: str) -> str | None:
        """Return the file of a command on the PATH."""
        return shutil.which(name, path=self.environ.get("PATH", ""))

    def run(self, *command: str) -> tuple[int | None, str]:
        """Run a command; return its exit code and its whole output.

        If it did not start, or not end in time, the code is None and the text states it.
        """
        try:
            ended = run(command, _TIME_LIMIT_S, self.environ)
        except OSError as error:
            return None, str(error.strerror)
        if ended.code is None:
            return None, f"it did not end within {_TIME_LIMIT_S} s"
        return ended.code, ended.out + ended.err


_VERSION = re.compile(r"^(\S+) \((\S+), runtime (\w+)(?: for (.+))?\)", re.MULTILINE)

#: A line of OSU's help if it was built for devices: its libraries alone do not show it.
_ON_DEVICES = "--accelerator"


_ACCOUNT = "FABRICHECK_ACCOUNT"

#: Loads modules in order, in its own shell. The function ``module`` is inherited, or comes from
#: Lmod or Environment Modules.
_LOAD = """
type module > /dev/null 2>&1 || . "${LMOD_PKG:-${MODULESHOME:-/none}}/init/bash" > /dev/null 2>&1
[ $# -eq 0 ] || type module > /dev/null 2>&1 || exit 127
for name in "$@"; do
  echo "load $name"
  module load "$name" 2>&1 < /dev/null
done
"""

#: Lists the loaded modules.
_LIST = """
echo "list"
module -t list 2>&1
"""

#: ReFrame's name for no module system.
_NONE = "nomod"


def chosen_by_name(target: Target, machine: Machine) -> Finding:
    """Return whether a session without --system takes this system, and by which pattern."""
    system, patterns = str(target.system["name"]), target.system["hostnames"]
    named = f"The name of this machine, {machine.name!r}"
    try:
        matched = sites.of_this_machine(machine.name, host.full_system_name, *sites.folders())
    except UsageError:
        matched = None
    except FabricheckError as error:
        return missing(str(error))
    if matched is not None and matched.system == system:
        form = "" if matched.name == machine.name else f" as {matched.name!r}"
        return ok(
            f"{named}, matches {matched.pattern} of {system}{form}: a session needs no --system."
        )
    short = sites.without_domain(machine.name)
    also = "" if short == machine.name else f" or {short!r}"
    if matched is not None and matched.is_by_name:
        says = f"{named}{also}, matches {matched.pattern} of {matched.system}"
    elif sites.ANY_HOST in patterns:
        says = f"{named}{also}, matches the hostnames of no site"
    else:
        says = f"{named}{also}, matches none of {system}'s hostnames, {enumerated(patterns)}"
    if sites.is_chosen_by_name(target.system):
        return missing(f"{says}: correct them, or write --system={system} for each session.")
    return ok(f"{says}: --system={system} chooses {system}.")


def launching(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield which commands are on the PATH, and whether jobs have an account."""
    partition = target.partition
    extra = partition["extras"].get("mpi_launcher")
    used = (partition["scheduler"], partition["launcher"], *([extra] if extra else []))
    for who in dict.fromkeys(used):
        for command in table.commands(who):
            yield either(
                machine.which(command),
                f"The command {command} is on the PATH.",
                f"The command {command} is not on the PATH, but {target.name} starts programs by "
                f"{who}: load its module, or use a node of the site.",
            )
    row = table.submitting(partition["scheduler"])
    if row is not None and row.account_options:
        yield _account(target, machine, row)


def _account(target: Target, machine: Machine, row: Scheduler) -> Finding:
    access = map(str, target.partition.get("access", []))
    stated = [text for text in access if text.startswith(row.account_options)]
    variables = [
        name for name in (_ACCOUNT, *row.account_variables) if machine.environ.get(name, "").strip()
    ]
    return either(
        stated or variables,
        f"Jobs have an account ({listed(stated or variables)}).",
        f"The jobs of {target.name} have no account: export {_ACCOUNT}=PROJECT.",
    )


def modules(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield whether the modules of an environment can be loaded in order."""
    plugin = environment["extras"].get("rccl_nodes", {}).get("modules", [])
    wanted = [*target.modules(environment), *plugin]
    named = target.system.get("modules_system", _NONE)
    if not wanted:
        return
    if named == _NONE:
        yield missing(
            f"The site file names the modules {listed(wanted)}, but no modules_system that "
            "could load them: state one (lmod, tmod4)."
        )
        return
    code, printed = machine.run("bash", "-c", _LOAD + _LIST, "bash", *wanted)
    if code == 127:
        yield missing(
            "The command module is missing here, but the site file names the modules "
            f"{listed(wanted)} ({named}): start from a login shell of the site."
        )
        return
    loads, _, modules = printed.rpartition("\nlist\n")
    loaded = [re.sub(r"\s*\(.*\)$", "", line.strip()) for line in modules.splitlines()]
    for name in wanted:
        yield either(
            any(module == name or module.startswith(f"{name}/") for module in loaded),
            f"The module {name} can be loaded.",
            f"The module {name} cannot be loaded{_reason(loads, name)}: see 'module avail "
            f"{name.split('/')[0]}', and correct the version in the site file.",
        )


def _reason(loads: str, name: str) -> str:
    after = loads.partition(f"load {name}\n")[2].partition("\nload ")[0]
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    return f" ({lines[0].rstrip('.:')})" if lines else ""


def check_programs(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield which of an environment's programs exist and are of the right kind."""
    features = environment.get("features", [])
    folder = Path(environment["extras"]["programs"])
    yield from _programs(target, environment, machine)
    for name in [program for program in RANK_PROGRAMS if program in features][:1]:
        yield from _libraries(folder / name, target, environment, machine)
    if "osu" in features:
        yield from _osu(environment, machine)
        yield from _libraries(_osu_bw(environment), target, environment, machine)
    tests = COLLECTIVE_TESTS.get(environment["extras"]["runtime"])
    if tests:
        yield from _collectives(tests, target, environment, machine)


def _collectives(
    tests: str, target: Target, environment: Section, machine: Machine
) -> Iterator[Finding]:
    variable = tests_variable(tests)
    folder = environment["extras"].get("rccl_folder")
    if not folder:
        yield missing(
            f"No folder of {tests} is stated, so their checks are left out: build them, and set "
            f"{variable} to their folder."
        )
        return
    program = Path(folder) / NCCL_TESTS.path("all_reduce")
    if not _runs(program):
        yield missing(
            f"There is no {program.name} in {folder}: build {tests}, or set {variable} to their "
            "folder."
        )
        return
    yield ok(f"The programs of {tests} are in {folder}.")
    # On one node a single process has all devices.
    if "several_nodes" in target.partition["features"]:
        yield from _libraries(program, target, environment, machine)


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)


def _programs(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    folder = Path(environment["extras"]["programs"])
    build = f"build with '{target.build_command(environment)}'"
    wanted = [name for name in PROGRAMS if name in environment.get("features", [])]
    lacks = [name for name in wanted if not _runs(folder / name)]
    if lacks:
        yield missing(f"{folder} has no executable {listed(lacks)}: {build}.")
    elif wanted:
        yield ok(f"The programs {listed(wanted)} are in {folder}.")
    # Programs of ranks may need their launcher even to report a version.
    for name in [program for program in wanted if program not in (*lacks, *RANK_PROGRAMS)]:
        code, printed = machine.run(str(folder / name), "--version")
        version = _VERSION.search(printed)
        if code != 0 or version is None:
            yield missing(
                f"{folder / name} --version reports no version, but: {last_words(printed)}. Its "
                "libraries may need the site's modules."
            )
            continue
        number, commit, runtime, compiled_for = version.groups()
        without = []
        if compiled_for:
            without = without_kernels(compiled_for.split(", "), target.architectures)
        if runtime != environment["extras"]["runtime"]:
            yield missing(
                f"{folder / name} has runtime {runtime}, but environment {environment['name']} "
                f"has {environment['extras']['runtime']}."
            )
        elif number != fabricheck.__version__:
            yield missing(
                f"{folder / name} has version {number}, but this is {fabricheck.__version__}: "
                f"{build}."
            )
        elif without:
            yield missing(
                f"{folder / name} was compiled for {compiled_for}, but {target.name} has "
                f"{listed(without)}: {build}."
            )
        else:
            yield ok(f"{name} has version {number} ({commit}) and runtime {runtime}.")


def _libraries(
    program: Path, target: Target, environment: Section, machine: Machine
) -> Iterator[Finding]:
    """Yield whether a program has MPI, and all its libraries in a job; nothing without it."""
    if not _runs(program):
        return
    loaded = target.modules(environment)
    script = "\n".join(["program=$1; shift", _LOAD, *target.exports(environment), 'ldd "$program"'])
    code, printed = machine.run("bash", "-c", script, "bash", str(program), *loaded)
    lacks = re.findall(r"^\s*(\S+) => not found", printed, re.MULTILINE)
    having = f"with the modules {listed(loaded)}" if loaded else "without a module"
    if lacks:
        yield missing(
            f"{program} does not find {listed(dict.fromkeys(lacks))} in a job, {having}: name "
            "the module that has it in the site file."
        )
    elif code == 0 and not MPI_LIBRARY.search(printed):
        yield missing(f"{program} is built without MPI: its ranks cannot join.")
    elif code == 0:
        yield ok(f"{program} finds its libraries in a job, {having}.")
    else:
        yield Finding("not seen", f"The libraries of {program}: ldd says {last_words(printed)}.")


def _osu_bw(environment: Section) -> Path:
    return Path(environment["extras"].get("osu_folder") or "") / OSU.path("osu_bw")


def _osu(environment: Section, machine: Machine) -> Iterator[Finding]:
    runtime = environment["extras"]["runtime"]
    folder = environment["extras"].get("osu_folder")
    program = _osu_bw(environment)
    if not _runs(program):
        yield missing(
            f"There is no {program}: build OSU Micro-Benchmarks, or set "
            f"FABRICHECK_{runtime.upper()}_OSU to their folder."
        )
        return
    if runtime not in OF_DEVICES:
        yield ok(f"OSU Micro-Benchmarks are in {folder}.")
        return
    _, printed = machine.run(str(program), "-h")
    if _ON_DEVICES in printed:
        yield ok(f"OSU Micro-Benchmarks in {folder} are built for devices.")
    elif "Options" in printed or "--help" in printed:
        yield missing(
            f"{program} was built without devices (its help has no {_ON_DEVICES}): build it with "
            f"--enable-{runtime}."
        )
    elif machine.is_compute:
        yield missing(f"{program} does not show its help, but: {last_words(printed)}.")
    else:
        yield unseen(f"Whether {program} was built for devices")


#: The first Spack that writes, and so reads, each format of a lock.
_FIRST_SPACK = {5: (0, 21), 6: (1, 0), 7: (1, 2)}

#: The library with which Cray MPICH accepts device buffers, by runtime.
GTL = {"rocm": "libmpi_gtl_hsa.so", "cuda": "libmpi_gtl_cuda.so"}


def check_spack(environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield the state of an environment's Spack environment; nothing if it has none.

    Where the programs are from elsewhere, Spack and the lock are not asked for.
    """
    extras = environment["extras"]
    name = extras.get("spack_environment")
    if not name:
        return
    if not software.is_inside(Path(extras["programs"]), software.home(name)):
        folder = extras["programs"]
        yield ok(f"The programs are those of {folder}, not of Spack environment {name}.")
        return
    installed = (Path(extras["programs"]) / "stream").exists()
    read = _read(name)
    if isinstance(read, str):
        yield from _spack(machine, name, None, installed)
        yield missing(read)
        return
    path, lock = read
    yield from _spack(machine, name, lock, installed)
    yield either(
        installed,
        f"The Spack environment {name} is installed in {software.home(name)}.",
        f"The Spack environment {name} is not installed, {extras['programs']} has no programs: "
        f"spack-env/install {name}.",
    )
    yield from _of_the_site(machine, path, lock, installed)
    yield from _gtl(machine, lock, str(extras["runtime"]))


def _read(name: str) -> tuple[Path, Lock] | str:
    """Return the lock of what is installed, else the committed one, or what is wrong with it."""
    committed = checkout.ROOT / "spack-env" / name / "spack.lock"
    for path in (software.home(name) / "spack.lock", committed):
        if path.is_file():
            try:
                return path, read_model(path, Lock)
            except FabricheckError as error:
                return f"The lock of Spack environment {name} cannot be used: {error}"
    return f"The Spack environment {name} has no lock: there is no {committed}."


def _spack(machine: Machine, name: str, lock: Lock | None, installed: bool) -> Iterator[Finding]:
    if machine.which("spack") is None:
        if installed:
            yield ok("Spack is not on the PATH, but what it installs exists.")
            return
        made = f" {lock.spack_version} or newer" if lock and lock.spack_version else ""
        yield missing(
            f"Spack is not on the PATH, but spack-env/install {name} needs it: get Spack{made} "
            "and source its share/spack/setup-env.sh."
        )
        return
    code, printed = machine.run("spack", "--version")
    match = re.search(r"(\d+)\.(\d+)", printed)
    if code != 0 or match is None:
        yield missing(f"'spack --version' reports no version, but: {last_words(printed)}.")
        return
    version = match[0]
    first = _FIRST_SPACK[lock.format] if lock else (0, 0)
    if (int(match[1]), int(match[2])) < first:
        assert lock is not None
        yield missing(
            f"Spack has version {version}, but the lock of {name} (format {lock.format}) needs "
            f"{first[0]}.{first[1]} or newer."
        )
    else:
        made = f"; the lock was made by {lock.spack_version}" if lock else ""
        yield ok(f"Spack {version} is on the PATH{made}.")


def _of_the_site(machine: Machine, path: Path, lock: Lock, installed: bool) -> Iterator[Finding]:
    """Yield what a lock takes from the site and is not there.

    :param path: the lock; the ``spack.yaml`` beside it states where its compilers are.
    :param installed: whether all is built: a compute node need not have compilers and build tools.
    """
    committed = checkout.ROOT / "spack-env" / path.parent.name
    folder = committed if (committed / "spack.yaml").is_file() else path.parent
    checker, root = runpy.run_path(str(software.CHECKER)), str(machine.root).rstrip("/")
    try:
        content: dict[str, Any] = checker["read"](str(path))
        lacks = list(checker["absent_folders"](content, root))
        if not installed:
            described = software.packages(path.parent)
            lacks += checker["absent_programs"](content, described, root)
            if not list(checker["compiler_paths"](described, checker["compilers"](content))):
                lacks.append(f"No compiler of the lock is in {path.with_name('spack.yaml')}")
        differs = software.disagreement(folder, lock)
        if differs:
            yield missing(differs)
    except (checker["BrokenLock"], InvalidInputError) as error:
        yield missing(f"What the lock takes from the site is unknown: {error}")
        return
    for says in lacks:
        yield missing(
            f"{says}. If the site has other software now, choose its Spack environment of a newer "
            "date, or change spack.yaml and make the lock anew: spack-env/install --new-lock "
            f"{path.parent.name}."
        )
    if not lacks:
        tools = "" if installed else ", and its compilers and build tools"
        yield ok(
            f"The folders of all {len(lock.externals)} externals of the lock are there{tools}."
        )


def _gtl(machine: Machine, lock: Lock, runtime: str) -> Iterator[Finding]:
    library = GTL.get(runtime)
    cray = [spec for spec in lock.externals if spec.name == "cray-mpich"]
    if library is None or not cray:
        return
    # prefix is .../mpich/VERSION/ofi/COMPILER/VERSION, and the libraries of all are beside ofi.
    folders = [machine.at(spec.prefix or "").parents[2] / "gtl" / "lib" for spec in cray]
    stated = machine.environ.get("CRAY_MPICH_ROOTDIR")
    if stated:
        folders.append(machine.at(stated) / "gtl" / "lib")
    there = [folder / library for folder in folders if (folder / library).exists()]
    yield either(
        there,
        f"Cray MPICH has its library for devices: {enumerated(map(str, there[:1]))}.",
        f"Cray MPICH has no {library} in {enumerated(map(str, folders))}: without it messages "
        "cannot be in device memory.",
    )


#: Requirements that can be checked on a compute node only.
_ON_COMPUTE = (
    "The number of devices",
    "The architecture of the devices",
    "The cores that a job may use",
    "NUMA domains and NUMA balancing",
    "Links and addresses of the devices",
)


def check_node(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield how the node differs from the site file; nothing for a simulated node."""
    runtimes = {environment["extras"]["runtime"] for environment in target.environments}
    if runtimes.isdisjoint(OF_DEVICES):
        return
    if not machine.is_compute:
        yield from map(unseen, _ON_COMPUTE)
        return
    try:
        description = _inventory(target)
    except FabricheckError as error:
        yield missing(f"The node's drivers could not be asked: {error}")
        return
    yield from _devices(target, description)
    name = target.partition["extras"].get("node")
    if not name:
        return
    try:
        model = load(name, devices=target.devices)
    except FabricheckError as error:
        yield missing(f"The node model of {target.name} cannot be used: {error}")
        return
    yield _cores(model, machine)
    yield _balancing(target, description)
    yield from _as_modelled(model, description)


def _inventory(target: Target) -> Mapping[str, Any]:
    """Return the description of the node by the programs of its devices."""
    (environment, *_) = (each for each in target.environments
                         if each["extras"]["runtime"] in OF_DEVICES)  # fmt: skip
    folder = Path(environment["extras"]["programs"])
    if not (folder / inventory.PROGRAM).is_file():
        raise NotFoundError(
            f"There is no program {folder / inventory.PROGRAM}: build it with "
            f"'{target.build_command(environment)}'."
        )
    return inventory.ask(folder, _TIME_LIMIT_S)


def _devices(target: Target, description: Mapping[str, Any]) -> Iterator[Finding]:
    architectures = [device["arch"].split(":")[0] for device in inventory.devices_of(description)]
    yield either(
        len(architectures) == target.devices,
        f"The node has {len(architectures)} devices, as {target.name} states.",
        f"The node shows {len(architectures)} devices, but {target.name} states {target.devices}: "
        "request all of them, and check ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES.",
    )
    named = listed(f"{number} {arch}" for arch, number in Counter(architectures).items())
    yield either(
        set(architectures) == target.architectures,
        f"The architecture of the devices is as stated ({named}).",
        f"The devices are {named or 'none'}, but {target.name} states "
        f"{listed(sorted(target.architectures))}: choose another partition or node model.",
    )


def _cores(model: NodeModel, machine: Machine) -> Finding:
    reserved = {core for domain in model.domains for core in domain.reserved}
    usable = {core for domain in model.domains for core in domain.cores} - reserved
    lacks = usable - machine.cores
    free = reserved & machine.cores
    remark = f"; of those that it reserves {format_cores(free)} may be used too" if free else ""
    return either(
        not lacks,
        f"This process may use all {len(usable)} cores that {model.name} needs{remark}.",
        f"This process may not use cores {format_cores(lacks)}, which {model.name} needs to bind "
        "ranks: request the whole node (--exclusive), or the site reserves other cores than its "
        "node model states.",
    )


def _balancing(target: Target, description: Mapping[str, Any]) -> Finding:
    setting = numa_balancing(inventory.host_of(description))
    if setting is None:
        return ok("NUMA balancing is off.")
    if target.partition["extras"].get("numa_balancing") == "note":
        return ok("NUMA balancing is on, which the site file makes a note.")
    return missing(setting)


def _as_modelled(model: NodeModel, description: Mapping[str, Any]) -> Iterator[Finding]:
    differences = host_differences(model, inventory.host_of(description))
    yield from map(missing, differences)
    if not differences:
        yield ok(f"NUMA domains are those of {model.name}.")
    if not description["devices"]:
        return
    report = inventory.reported(description)
    compared = compare(model, report)
    # Another number of devices was reported already.
    if report.count == len(model.devices):
        yield from (missing(difference.sentence) for difference in compared.differences)
    if not compared.differences:
        unknown = "" if report.pci else " (their PCI addresses are not reported)"
        yield ok(f"As in {model.name}: {listed(compared.compared)}{unknown}.")


def check(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield what exists, is missing or cannot be seen here, in the order in which to fix it."""
    yield chosen_by_name(target, machine)
    yield from launching(target, machine)
    for environment in target.environments:
        yield from modules(target, environment, machine)
        yield from check_spack(environment, machine)
        yield from check_programs(target, environment, machine)
    yield from check_node(target, machine)
