"""What starts programs (commands, an account, modules), and the programs: this suite's, OSU's, and
the tests of RCCL or NCCL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import fabricheck
from fabricheck.core.vocabulary import OF_DEVICES
from fabricheck.run.site_check.machine import Finding, Machine, missing, ok, unseen
from fabricheck.site.clusters import (
    COLLECTIVE_TESTS,
    JOB_OPTIONS,
    PROGRAMS,
    RANK_PROGRAMS,
    tests_variable,
)
from fabricheck.site.partitions import Section, Target
from fabricheck.tools.benchmarks import NCCL_TESTS, OSU
from fabricheck.tools.recording import MPI_LIBRARY
from fabricheck.tools.runner import last_words

_VERSION = re.compile(r"^(\S+) \((\S+), runtime (\S+)\)", re.MULTILINE)

#: A line of OSU's help if it was built for devices: its libraries alone do not show it.
_ON_DEVICES = "--accelerator"


#: The commands of ReFrame's schedulers and launchers; unnamed ones need none.
COMMANDS = {
    "slurm": ("sbatch", "squeue", "sacct", "scancel"),
    "squeue": ("sbatch", "squeue", "scancel"),
    "srun": ("srun",),
    "mpirun": ("mpirun",),
    "mpirun-openmpi": ("mpirun",),
    "mpiexec": ("mpiexec",),
    "smpirun": ("smpirun",),
}

ACCOUNT = "FABRICHECK_ACCOUNT"

#: Slurm's own variables for an account.
_OWN = ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SALLOC_ACCOUNT")

#: Loads modules in order, in its own shell. The function ``module`` is inherited, or comes from
#: Lmod or Environment Modules.
LOAD = """
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


def launching(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield which commands are on the PATH, and whether jobs have an account."""
    partition = target.partition
    extra = partition["extras"].get("mpi_launcher")
    used = (partition["scheduler"], partition["launcher"], *([extra] if extra else []))
    for who in dict.fromkeys(used):
        for command in COMMANDS.get(who, ()):
            if machine.which(command):
                yield ok(f"The command {command} is on the PATH.")
            else:
                yield missing(
                    f"The command {command} is not on the PATH, but {target.name} starts "
                    f"programs by {who}: load its module, or use a node of the site."
                )
    if partition["scheduler"] in ("slurm", "squeue"):
        yield _account(target, machine)


def _account(target: Target, machine: Machine) -> Finding:
    option = JOB_OPTIONS[ACCOUNT].split("=")[0]
    access = map(str, target.partition.get("access", []))
    stated = [text for text in access if text.startswith((f"{option}=", "-A"))]
    found = [name for name in (ACCOUNT, *_OWN) if machine.environ.get(name, "").strip()]
    if stated or found:
        return ok(f"Jobs have an account ({', '.join(stated or found)}).")
    return missing(f"The jobs of {target.name} have no account: export {ACCOUNT}=PROJECT.")


def modules(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield whether the modules of an environment can be loaded in order."""
    plugin = environment["extras"].get("rccl_nodes", {}).get("modules", [])
    wanted = [*target.modules(environment), *plugin]
    named = target.system.get("modules_system", _NONE)
    if not wanted:
        return
    if named == _NONE:
        yield missing(
            f"The site file names the modules {', '.join(wanted)}, but no modules_system that "
            "could load them: state one (lmod, tmod4)."
        )
        return
    code, printed = machine.run("bash", "-c", LOAD + _LIST, "bash", *wanted)
    if code == 127:
        yield missing(
            "The command module is missing here, but the site file names the modules "
            f"{', '.join(wanted)} ({named}): start from a login shell of the site."
        )
        return
    loads, _, listed = printed.rpartition("\nlist\n")
    loaded = [re.sub(r"\s*\(.*\)$", "", line.strip()) for line in listed.splitlines()]
    for name in wanted:
        if any(module == name or module.startswith(f"{name}/") for module in loaded):
            yield ok(f"The module {name} can be loaded.")
        else:
            yield missing(
                f"The module {name} cannot be loaded{_reason(loads, name)}: see 'module avail "
                f"{name.split('/')[0]}', and correct the version in the site file."
            )


def _reason(loads: str, name: str) -> str:
    after = loads.partition(f"load {name}\n")[2].partition("\nload ")[0]
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    return f" ({lines[0].rstrip('.:')})" if lines else ""


def check(target: Target, environment: Section, machine: Machine) -> Iterator[Finding]:
    """Yield which of an environment's programs exist and are of the right kind."""
    features = environment.get("features", [])
    folder = Path(environment["extras"]["programs"])
    yield from _programs(environment, machine)
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


def _programs(environment: Section, machine: Machine) -> Iterator[Finding]:
    extras = environment["extras"]
    folder = Path(extras["programs"])
    wanted = [name for name in PROGRAMS if name in environment.get("features", [])]
    lacks = [name for name in wanted if not _runs(folder / name)]
    if lacks:
        yield missing(
            f"{folder} has no executable {', '.join(lacks)}: build with "
            f"'{extras['build_command']}'."
        )
    elif wanted:
        yield ok(f"The programs {', '.join(wanted)} are in {folder}.")
    # Programs of ranks may need their launcher even to report a version.
    for name in [program for program in wanted if program not in (*lacks, *RANK_PROGRAMS)]:
        code, printed = machine.run(str(folder / name), "--version")
        version = _VERSION.search(printed)
        if code != 0 or version is None:
            yield missing(
                f"{folder / name} --version reports no version, but: {last_words(printed)}. Its "
                "libraries may need the site's modules."
            )
        elif version[3] != extras["runtime"]:
            yield missing(
                f"{folder / name} has runtime {version[3]}, but environment {environment['name']} "
                f"has {extras['runtime']}."
            )
        elif version[1] != fabricheck.__version__:
            yield missing(
                f"{folder / name} has version {version[1]}, but this is {fabricheck.__version__}: "
                f"build with '{extras['build_command']}'."
            )
        else:
            yield ok(f"{name} has version {version[1]} ({version[2]}) and runtime {version[3]}.")


def _libraries(
    program: Path, target: Target, environment: Section, machine: Machine
) -> Iterator[Finding]:
    """Yield whether a program has MPI, and all its libraries in a job; nothing without it."""
    if not _runs(program):
        return
    loaded = target.modules(environment)
    script = "\n".join(["program=$1; shift", LOAD, *target.exports(environment), 'ldd "$program"'])
    code, printed = machine.run("bash", "-c", script, "bash", str(program), *loaded)
    lacks = re.findall(r"^\s*(\S+) => not found", printed, re.MULTILINE)
    having = f"with the modules {', '.join(loaded)}" if loaded else "without a module"
    if lacks:
        yield missing(
            f"{program} does not find {', '.join(dict.fromkeys(lacks))} in a job, {having}: name "
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
