"""The first hour: ten commands on an unmeasured node, their output in one archive.

They run in order, each with a time limit; docs/any-node.md describes good and bad results. Besides,
facts are collected: versions and settings.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import fabricheck
from fabricheck.core import amounts, checkout
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.core.show import listed
from fabricheck.core.text import printable, printable_json
from fabricheck.core.vocabulary import ENV_RESULTS, ENV_SIMULATED_NODE, UNKNOWN
from fabricheck.node import load
from fabricheck.node.system import platform_json
from fabricheck.results import document
from fabricheck.results.archive import OF_FIRST_HOUR, RESULTS, pack
from fabricheck.site.clusters import PROGRAMS, RANK_PROGRAMS
from fabricheck.site.partitions import Target, choose
from fabricheck.tools.recording import mpi_version
from fabricheck.tools.runner import Interrupted, last_words, output_of, signals, start, text_of
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.host import driver_version

#: The runtime of a partition without its own GPUs.
NO_DEVICES = ("host", "sim")


@dataclass(frozen=True)
class Step:
    """One of the ten steps.

    name: of its folder in the archive. asks: the question that it answers. lines: its commands, one
    or two that differ in a variable; `Place.fill` fills in ``{...}``. limit_s: for each line, in s.
    needs: the required program; ``model`` requires a node model and devices.
    """

    name: str
    asks: str
    lines: tuple[str, ...]
    limit_s: float
    needs: str | None = None


_SMALL = "{programs}/p2p --pairs 0-1 --operations engine,latency --sizes 256KiB:4MiB --output {out}"
_LARGE = "{programs}/p2p --pairs 0-1 --operations engine --sizes 1GiB --output {out}"
_MEMCPY = "{programs}/memcpy --memory pinned --operations h2d"

STEPS: Sequence[Step] = (
    Step("site-check", "Is everything there?", ("fabricheck site check {system}",), 120),
    Step(
        "topology",
        "Are the links and NUMA domains those of the node model?",
        ("fabricheck node compare {model} --devices {devices} --programs {programs}",),
        120,
        "model",
    ),
    Step(
        "host-memory",
        "Does the runtime put pinned memory where it is asked to?",
        (f"env AMD_LOG_LEVEL=3 {_MEMCPY} --devices {{far}} --sizes 1MiB --output {{out}}",),
        120,
        "memcpy",
    ),
    Step(
        "ranks",
        "Are ranks where they should be, and do MPI and RCCL take buffers of devices?",
        ("reframe --system={system} -r -n '^(affinity|mpi_pairs|rccl_collectives)$'",),
        600,
        "affinity",
    ),
    Step(
        "smoke",
        "Is the node healthy?",
        ("env FABRICHECK_SESSION=smoke reframe --system={system} --mode=smoke -r",),
        600,
    ),
    Step(
        "gang",
        "How many engines does a copy between two devices use?",
        (f"env -u HSA_ENABLE_SDMA_GANG {_LARGE}", f"env HSA_ENABLE_SDMA_GANG=0 {_LARGE}"),
        120,
        "p2p",
    ),
    Step(
        "small-copies",
        "Do kernels make small copies between two devices?",
        (f"env -u ROC_P2P_SDMA_SIZE {_SMALL}", f"env ROC_P2P_SDMA_SIZE=0 {_SMALL}"),
        120,
        "p2p",
    ),
    Step(
        "managed",
        "Do pages move when the host or a device touches them, and how fast?",
        ("env HSA_XNACK=1 {programs}/managed --devices 0 --sizes {array} --output {out}",),
        300,
        "managed",
    ),
    Step(
        "large-copy",
        "How long does the largest copy take, with all that is around it?",
        (f"{_MEMCPY} --devices 0 --sizes {{largest}} --output {{out}}",),
        300,
        "memcpy",
    ),
    Step(
        "verdict",
        "What does fabricheck say of the node?",
        ("fabricheck verdict smoke --json",),
        120,
    ),
)


@dataclass(frozen=True)
class Place:
    """The partition of the node, and the folder of its programs."""

    target: Target
    runtime: str
    programs: Path
    features: frozenset[str]

    @property
    def has_devices(self) -> bool:
        """Whether the devices are real."""
        return self.runtime not in NO_DEVICES

    @property
    def model(self) -> str | None:
        """The name of the node model."""
        model: str | None = self.target.partition["extras"].get("node")
        return model

    def lacks(self, step: Step) -> str | None:
        """Return why a step is not possible here, None if it is."""
        if step.needs == "model":
            if not self.has_devices or self.model is None:
                return f"{self.target.name} has no devices of its own, or no node model"
        elif step.needs is not None and step.needs not in self.features:
            return f"{self.target.name} has no program {step.needs}"
        return None

    def words(self) -> Mapping[str, str]:
        """Return the value of each ``{...}`` of a line, except ``{out}``."""
        extras = self.target.partition["extras"]
        return {
            "system": self.target.name,
            "programs": shlex.quote(str(self.programs)),
            "model": str(self.model),
            "devices": str(self.target.devices),
            # Its NUMA domain differs from that of the device that is current at first.
            "far": str(min(2, self.target.devices - 1)),
            # A site states both, unless it has none of the checks that use them.
            "array": str(extras.get("array_bytes", "1GiB")),
            "largest": str(extras.get("copy_sizes", "8GiB")).split(":")[-1],
        }

    def fill(self, line: str, out: str) -> str:
        """Return a line of a step with its placeholders filled in.

        :param out: the file of its result document.
        """
        return line.format(out=shlex.quote(out), **self.words())


def place(name: str) -> Place:
    """Return a partition of the site files, with its only environment.

    :param name: ``system:partition``, or a system with one partition.
    :raises FabricheckError: as `fabricheck.site.partitions.choose`, and where several are named.
    """
    targets = choose(name)
    if len(targets) != 1 or len(targets[0].environments) != 1:
        several = listed(path.name for path in targets)
        raise UsageError(f"{name} is several partitions or environments: name one of {several}.")
    target = targets[0]
    (environment,) = target.environments
    extras = environment["extras"]
    return Place(
        target,
        extras["runtime"],
        Path(extras["programs"]),
        frozenset(environment.get("features", [])),
    )


_LIBRARIES = re.compile(r"lib(?:hwloc|amdhip64|hsa-runtime64|cudart|numa|mpi\w*|rccl|nccl)\b\S*")

#: System files with a setting, below the root.
_SETTINGS = (
    "proc/sys/kernel/numa_balancing",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/overcommit_memory",
    "proc/sys/vm/zone_reclaim_mode",
    "sys/kernel/mm/transparent_hugepage/*",
    "sys/devices/system/node/node[0-9]*/meminfo",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/smt/control",
    "sys/module/amdgpu/parameters/*",
)

#: Limits of a control group, of version 2 and of version 1.
_LIMITS = (
    "memory.max",
    "memory.high",
    "memory.limit_in_bytes",
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
)

#: Parts of the kernel's command line and messages about devices and their memory.
_BOOT = re.compile(
    r"(?:amdgpu|nvidia)\.\S+|(?:amd_|intel_)?iommu\S*|pci\S*|numa\S*|nosmt\S*"
    r"|isolcpus\S*|nohz_full\S*|(?:default_)?hugepage\S*|transparent_hugepage\S*"
)
_KERNEL = re.compile(r"HMM registered|xgmi|amdgpu.*(?:error|fail|reset|ras)|kfd", re.IGNORECASE)

#: Lines of AMD's runtime (AMD_LOG_LEVEL), and those that show the place of memory and the mover of
#: copies.
_LOG = re.compile(rb"^: ?\d:")
_TELLS = re.compile(
    rb"mempolicy|numa|hsa_amd_memory|hipHostMalloc|hipSetDevice|hipMemcpy|copy|sdma|blit|HMM"
    rb"|ShaderName|error|fail|version|Initializ",
    re.IGNORECASE,
)

#: The most lines, and bytes of each, that are kept.
MOST_LINES, MOST_IN_LINE = 2000, 400

#: Time limit of each version command, in s; none touches a device.
_LIMIT_S = 5


def versions(place: Place, root: Path = Path("/")) -> dict[str, Any]:
    """Return the versions of everything involved in a measurement; null where unknown."""
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', text_of(root / "etc/os-release"), re.MULTILINE)
    driver = driver_version(root)
    rocm = Path(os.environ.get("ROCM_PATH") or root / "opt/rocm")
    return {
        "fabricheck": fabricheck.__version__,
        "commit": checkout.commit(),
        "reframe": metadata.version("ReFrame-HPC"),
        "python": platform.python_version(),
        "os": release[1] if release else None,
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "driver": None if driver == UNKNOWN else driver,
        "rocm": text_of(rocm / ".info/version").strip() or None,
        "modules": list(filter(None, os.environ.get("LOADEDMODULES", "").split(":"))),
        "programs": {name: _program(place.programs / name) for name in PROGRAMS},
    }


def settings(root: Path = Path("/")) -> dict[str, Any]:
    """Return the settings of node and job that no result document has."""
    return {
        "files": {str(path.relative_to(root)): text_of(path).strip() for path in _files(root)},
        "boot": _BOOT.findall(text_of(root / "proc/cmdline")),
        "allowed": re.findall(r"\w+_allowed_list:\s*\S+", text_of(root / "proc/self/status")),
        "limits": {
            name: resource.getrlimit(getattr(resource, name))
            for name in dir(resource)
            if name.startswith("RLIMIT_")
        },
        "kernel_messages": [
            line
            for line in output_of("dmesg", limit_s=_LIMIT_S).splitlines()
            if _KERNEL.search(line)
        ],
    }


def _files(root: Path) -> Iterator[Path]:
    for pattern in _SETTINGS:
        yield from filter(Path.is_file, sorted(root.glob(pattern)))
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        for controller in controllers.split(","):
            folder = root / "sys/fs/cgroup" / controller / group.lstrip("/")
            yield from (folder / name for name in _LIMITS if (folder / name).is_file())


def _program(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    linked = output_of("ldd", str(path), limit_s=_LIMIT_S)
    libraries = {
        name: os.path.realpath(where)
        for name, where in re.findall(r"^\s*(\S+) => (/\S+)", linked, re.MULTILINE)
        if _LIBRARIES.match(name)
    }
    asked = path.name not in RANK_PROGRAMS
    return {
        "says": (asked and output_of(str(path), "--version", limit_s=_LIMIT_S).strip()) or None,
        "libraries": libraries,
        "mpi": mpi_version(path),
    }


def move_log(output: Path, log: Path) -> None:
    """Move the lines of AMD's runtime from a program's output to a file, keeping the significant
    ones.

    :param output: what the program wrote, of any size.
    :param log: the file for them; not created without any.
    :raises OSError: when a file cannot be read or written.
    """
    significant: list[bytes] = []
    seen = 0
    rest = output.with_name(f"{output.name}.rest")
    with output.open("rb") as lines, rest.open("wb") as other:
        for line in lines:
            if not _LOG.match(line):
                other.write(line)
                continue
            seen += 1
            if len(significant) < MOST_LINES and _TELLS.search(line):
                significant.append(line.rstrip(b"\n")[:MOST_IN_LINE] + b"\n")
    rest.replace(output)
    if seen:
        head = f"{len(significant)} of {seen} lines of the runtime, the most significant ones\n"
        log.write_bytes(head.encode() + b"".join(significant))


#: The folder with the output of the commands, a folder for each.
FOLDER = "steps"

#: What ran, and how each command ended.
ABOUT = "about.json"

#: The runtime's line about the policy of the thread that allocates pinned memory.
_POLICY = re.compile(r"get_mempolicy.*")

#: ReFrame's line about all its checks.
_COUNTED = re.compile(r"\bRan \d+/\d+ test case")

#: The exit code of a program that does not support what it is asked for.
_UNSUPPORTED = 3

Ending = Literal["good", "not possible here", "failed", "time limit"]


@dataclass(frozen=True)
class Ran:
    """How one command line ended.

    code: its exit code; None if it did not start or did not end. says: its last line, or the
    reason.
    """

    step: str
    command: str
    ending: Ending
    code: int | None
    seconds: float
    says: str


class FirstHour:
    """The ten commands on this node. ``ran`` has those that ended, ``folder`` their output."""

    def __init__(
        self,
        place: Place,
        folder: Path,
        limit_s: float | None,
        say: Callable[[str], object],
        headline: Callable[[str], str],
    ) -> None:
        """Create the folder.

        :param folder: a new one, absolute.
        :param limit_s: for each command at most, in s; by default that of each step.
        :param say: called with a line when a command has ended.
        :param headline: returns one line of the JSON of a verdict, or raises ValueError.
        :raises NotFoundError: when the folder cannot be created.
        """
        self.place, self.folder, self.limit_s, self.say = place, folder, limit_s, say
        self.headline = headline
        self.ran: list[Ran] = []
        self.signal: int | None = None
        self._began = datetime.now(UTC)
        self._now = "the versions"
        self._variables = [f"{ENV_RESULTS}={folder / RESULTS}", "RFM_COLORIZE=n"]
        try:
            (folder / RESULTS).mkdir(parents=True)
            if place.runtime == "sim":
                node = folder / "node.json"
                node.write_text(platform_json(load(str(place.model))), encoding="utf-8")
                self._variables.append(f"{ENV_SIMULATED_NODE}={node}")
        except OSError as error:
            raise NotFoundError(f"{folder} cannot be created ({error.strerror}).") from None

    def collect(self, archive: Path) -> None:
        """Run all commands, then write the archive; after a signal it packs what exists.

        :raises NotFoundError: when the archive cannot be written.
        """
        try:
            with signals():
                self._run()
        except Interrupted as end:
            self.signal = end.number
            name = signal.Signals(end.number).name
            self.say(f"{name} in {self._now}: what was collected before it is packed.")
        try:
            with signals():
                self._about()
                pack(self.folder, archive, OF_FIRST_HOUR, self.folder.name)
            return
        except Interrupted as end:
            self.signal = end.number
            why = f"{archive} was not written because of {signal.Signals(end.number).name}."
        except NotFoundError as error:
            why = str(error)
        except OSError as error:
            why = f"{self.folder} cannot be written ({error.strerror})."
        raise NotFoundError(f"{why} The collected files stay in {self.folder}.")

    def _run(self) -> None:
        with self._going_on():
            self._json("versions.json", versions(self.place))
        self._topology()
        for number, step in enumerate(STEPS, 1):
            self._now = f"step {number}, {step.name}"
            for ran in self._step(number, step):
                self.ran.append(ran)
                self.say(f"{number:>2}/{len(STEPS)} {_line(ran)}")

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Report what cannot be written or started, and continue."""
        try:
            yield
        except OSError as error:
            self.say(f"{self._now}: {error}")

    def _json(self, name: str, value: object) -> None:
        text = printable_json(value) + "\n"
        (self.folder / name).write_text(text, encoding="utf-8")

    def _topology(self) -> None:
        out = self.folder / "topology" / f"{inventory.PROGRAM}.txt"
        self._now = inventory.PROGRAM
        with self._going_on():
            out.parent.mkdir(exist_ok=True)
            program = str(self.place.programs / inventory.PROGRAM)
            start([program], out, out.with_suffix(".err"), self._limit(60))

    def _limit(self, seconds: float) -> float:
        return seconds if self.limit_s is None else min(seconds, self.limit_s)

    def _step(self, number: int, step: Step) -> Iterator[Ran]:
        lacks = self.place.lacks(step)
        if lacks is not None:
            typed = self.place.fill(step.lines[0], "result.json")
            yield Ran(step.name, typed, "not possible here", None, 0, lacks)
            return
        for which, line in enumerate(step.lines, 1):
            folder = self.folder / FOLDER / f"{number:02}-{step.name}" / str(which)
            typed = self.place.fill(line, str(folder / "result.json"))
            try:
                folder.mkdir(parents=True)
                yield self._line(step, typed, folder)
            except OSError as error:
                yield Ran(step.name, typed, "failed", None, 0, f"{error}")

    def _line(self, step: Step, typed: str, folder: Path) -> Ran:
        out, err = folder / "output.txt", folder / "errors.txt"
        limit = self._limit(step.limit_s)
        try:
            ended = start(["env", *self._variables, *shlex.split(typed)], out, err, limit)
        finally:
            if err.exists():
                move_log(err, folder / "runtime-log.txt")
        if ended.code is None:
            says = f"it did not end within {limit:g} s"
            return Ran(step.name, typed, "time limit", None, ended.seconds, says)
        ending: Ending = "good" if ended.code == 0 else "failed"
        if ended.code == _UNSUPPORTED and (folder / "result.json").exists():
            ending = "not possible here"
        says = _answer(folder) if ending == "good" else _last_line(err, out)
        if step.name == "verdict":
            says = self._verdict(out) or says
        return Ran(step.name, typed, ending, ended.code, ended.seconds, says)

    def _verdict(self, out: Path) -> str | None:
        """Return a verdict's line; None where the command failed before it had one."""
        try:
            return self.headline(text_of(out))
        except ValueError:
            return None

    def _about(self) -> None:
        self._json(
            ABOUT,
            {
                "system": self.place.target.name,
                "began": self._began.isoformat(timespec="seconds"),
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
                "signal": self.signal,
                "asks": {step.name: step.asks for step in STEPS},
                "ran": [asdict(ran) for ran in self.ran],
            },
        )
        self._json("settings.json", settings())


def _line(ran: Ran) -> str:
    code = f", exit code {ran.code}" if ran.code else ""
    return f"{ran.step}: {ran.ending}{code} ({ran.seconds:.1f} s): {ran.says}"


def _answer(folder: Path) -> str:
    """Return a command's result: the values of its document, else its last output."""
    log = folder / "runtime-log.txt"
    requested = _POLICY.search(text_of(log))
    if requested is not None:
        return printable(requested[0])
    path = folder / "result.json"
    if not path.exists():
        return _last_line(folder / "output.txt", folder / "errors.txt")
    try:
        series = document.load(path)["series"]
    except FabricheckError as error:
        return str(error)
    values = (
        f"{each['operation']} {amounts.size(each['bytes'])} {each['median']:.4g} {each['unit']}"
        for each in series
    )
    return listed(values)


def _last_line(*files: Path) -> str:
    """Return the last line with content; for ReFrame the one that counts its checks."""
    texts = [text_of(file) for file in files]
    text = next(filter(str.strip, texts), "")
    counted = [line for line in text.splitlines() if _COUNTED.search(line.strip())]
    return last_words(*counted[-1:], *texts)
