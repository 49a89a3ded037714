"""The launches of a round: those of our programs, and the entries of third-party benchmarks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from fabricheck.beside.cases import (
    ARRAY_BYTES,
    BABELSTREAM_BYTES,
    BESIDE_AMD,
    BESIDE_NVIDIA,
    CHASE_BYTES,
    HOST,
    Comparison,
)
from fabricheck.beside.outputs import (
    PlacedValues,
    nvidia,
    rocm_bandwidth_test,
    transferbench,
)

_Named = TypeVar("_Named")

#: The comparisons by the runtime of our programs, as their documents name it.
COMPARISONS: dict[str, tuple[Comparison, ...]] = {"cuda": BESIDE_NVIDIA, "rocm": BESIDE_AMD}

#: The testcases of nvbandwidth that the comparisons need, each once, in order.
TESTCASES: tuple[str, ...] = tuple(
    dict.fromkeys(
        str(cell.place[0])
        for comparison in BESIDE_NVIDIA
        for cell in comparison.tools
        if cell.tool == "nvbandwidth"
    )
)

#: Samples of each testcase of nvbandwidth, which times 16 copies in each and reports the median.
_NVBANDWIDTH_SAMPLES = 2

#: Runs of each kernel of BabelStream.
BABELSTREAM_RUNS = 30

#: Seconds of one of our samples: nvbandwidth times 16 copies at once, which take about as long.
_BATCH = "--batch-time 0.02"
_QUICK = "--series-time 0.5 --max-samples 15"
_SIZE = f"--sizes {ARRAY_BYTES >> 20}MiB"

#: The time limit of our launches in s. One takes about 2 s on two H200, one of nvbandwidth 30 s.
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Tool:
    """A third-party benchmark that measures in the rounds.

    title: its own name, in the table.

    arguments: those of each launch, for a shell, by the launch's name.

    parse: parses an output from its text, its file for errors, the name of the launch, and the
    number of devices.

    limit_s: the time limit of a launch, in s.

    runtimes: the runtimes of our programs with which it is compared.

    fewest_devices: the number of devices that it requires.

    environment: variables of each launch, by its name; ``{others}`` is the number of devices minus
    one.
    """

    title: str
    arguments: Mapping[str, str]
    parse: Callable[[str, str, str, int], PlacedValues]
    limit_s: float
    runtimes: tuple[str, ...]
    fewest_devices: int = 1
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _babelstream(text: str, origin: str, launch: str, devices: int) -> PlacedValues:
    array = BABELSTREAM_BYTES[launch.removeprefix("babelstream-")]
    return nvidia.parse_babelstream(text, origin, BABELSTREAM_RUNS, array)


#: Bytes of a transfer of TransferBench: its default, because it compares all data on the host.
TRANSFERBENCH_BYTES = 64 << 20

_TRANSFERBENCH_SIZE = f"{TRANSFERBENCH_BYTES >> 20}M"

#: The most compute units of TransferBench's scaling: its default.
_SCALING_UNITS = 32

_READS = {"USE_REMOTE_READ": "1"}
_WRITES = {"USE_REMOTE_READ": "0"}
# For engines in a2a, 1.52 has USE_GPU_DMA, its successor USE_DMA_EXEC.
_BY_KERNEL = {"USE_GPU_DMA": "0", "USE_DMA_EXEC": "0"}
_BY_ENGINE = {"USE_GPU_DMA": "1", "USE_DMA_EXEC": "1"}
_PAIR = {"NUM_GPU_DEVICES": "2", "P2P_MODE": "0"}
_ALL = {"A2A_DIRECT": "0", "A2A_LOCAL": "0", "A2A_MODE": "0"}
_TO_OTHERS = {"EXE_INDEX": "0", "SWEEP_DIR": "0", "SWEEP_MIN": "{others}", "SWEEP_MAX": "{others}"}
_PLAIN = {"OUTPUT_TO_CSV": "0", "SHOW_ITERATIONS": "0"}

#: Variables of TransferBench's launches: all that affect its values.
_TRANSFERBENCH = {
    "transferbench-write": _PAIR | _WRITES | _BY_KERNEL,
    "transferbench-read": _PAIR | _READS | _BY_KERNEL,
    "transferbench-dma-write": _PAIR | _WRITES | _BY_ENGINE,
    "transferbench-dma-read": _PAIR | _READS | _BY_ENGINE,
    "transferbench-scaling": {"LOCAL_IDX": "0", "SWEEP_MIN": "1", "SWEEP_MAX": f"{_SCALING_UNITS}"},
    "transferbench-one2all": _TO_OTHERS | {"SWEEP_EXE": "G"},
    "transferbench-one2all-dma": _TO_OTHERS | {"SWEEP_EXE": "D"},
    "transferbench-a2a": _ALL | _WRITES | _BY_KERNEL,
    "transferbench-a2a-read": _ALL | _READS | _BY_KERNEL,
    "transferbench-a2a-dma": _ALL | _WRITES | _BY_ENGINE,
}

_PRESETS = {"scaling": "scaling", "one2all": "one2all", "a2a": "a2a"}


def _preset(launch: str) -> str:
    return _PRESETS.get(launch.split("-")[1], "p2p")


def _transferbench(text: str, origin: str, launch: str, devices: int) -> PlacedValues:
    preset, variables = _preset(launch), _TRANSFERBENCH[launch]
    size = TRANSFERBENCH_BYTES
    if preset == "a2a":
        shown = {name: value for name, value in variables.items() if name != "USE_GPU_DMA"}
        return transferbench.parse_a2a(text, origin, size, shown)
    if preset == "one2all":
        return transferbench.parse_one_to_all(text, origin, size, devices, variables["SWEEP_EXE"])
    if preset == "scaling":
        found = transferbench.parse_scaling(text, origin, size, _SCALING_UNITS)
    else:
        engine = "DMA" if variables["USE_GPU_DMA"] == "1" else "GFX"
        reads = variables["USE_REMOTE_READ"] == "1"
        found = transferbench.parse_p2p(text, origin, size, engine, reads)
    return replace(found, values=_with_host(found.values))


def _rocm_matrices(text: str, origin: str, launch: str, devices: int) -> PlacedValues:
    found = rocm_bandwidth_test.parse(text, origin)
    return replace(found, values=_with_host(found.values))


_Places = Mapping[tuple[str | int, ...], float]


def _with_host(values: _Places) -> _Places:
    """Return the values, with the best of all NUMA domains of the host at the place `HOST`."""
    best: dict[tuple[str | int, ...], float] = {}
    for place, value in values.items():
        # Copies within the host have it twice.
        host = tuple(HOST if str(part).startswith("CPU ") else part for part in place)
        if host.count(HOST) == 1:
            best[host] = max(value, best.get(host, 0.0))
    return {**values, **best}


#: The tools by the name of their option, in the order of the table's columns. A new tool needs a
#: parser with recorded outputs, an entry here, its cells among the comparisons, and an option.
TOOLS: dict[str, Tool] = {
    "nvbandwidth": Tool(
        "nvbandwidth",
        {
            "nvbandwidth": f"-j -b {ARRAY_BYTES >> 20} -i {_NVBANDWIDTH_SAMPLES} "
            f"-t {' '.join(TESTCASES)}"
        },
        lambda text, origin, launch, devices: nvidia.parse_nvbandwidth(text, origin, TESTCASES),
        limit_s=180,
        runtimes=("cuda",),
    ),
    "babelstream": Tool(
        "BabelStream",
        {
            f"babelstream-{size}": f"--csv --device 0 -s {array // 8} -n {BABELSTREAM_RUNS}"
            for size, array in BABELSTREAM_BYTES.items()
        },
        _babelstream,
        limit_s=90,
        runtimes=("cuda", "rocm"),
    ),
    "p2p-test": Tool(
        "p2pBandwidthLatencyTest",
        {"p2p-test": f"--p2p_read --numElems={ARRAY_BYTES // 4}"},
        lambda text, origin, launch, devices: nvidia.parse_p2p_test(text, origin),
        limit_s=60,
        runtimes=("cuda",),
        fewest_devices=2,
    ),
    "transferbench": Tool(
        "TransferBench",
        {launch: f"{_preset(launch)} {_TRANSFERBENCH_SIZE}" for launch in _TRANSFERBENCH},
        _transferbench,
        limit_s=180,
        runtimes=("rocm",),
        fewest_devices=2,
        environment={launch: _PLAIN | variables for launch, variables in _TRANSFERBENCH.items()},
    ),
    "rocm-bandwidth-test": Tool(
        "rocm_bandwidth_test",
        {"rocm-bandwidth-test": ""},
        _rocm_matrices,
        limit_s=180,
        runtimes=("rocm",),
    ),
}

#: Names of the launches with the compared values, by tool; None for our programs.
NAMES: dict[str | None, tuple[str, ...]] = {
    None: tuple(
        dict.fromkeys(
            comparison.ours.launch for all_ in COMPARISONS.values() for comparison in all_
        )
    ),
    **{name: tuple(tool.arguments) for name, tool in TOOLS.items()},
}


@dataclass(frozen=True)
class Command:
    """One command of a round.

    name: of its files, before the number of the round.

    tool: its tool; None for our programs.

    executable: an absolute path.

    arguments: as for a shell; for our programs without ``--output``.

    limit_s: its time limit.

    environment: variables added to those of this process.

    round: its number, from 1; 0 is before the first.
    """

    name: str
    tool: str | None
    executable: Path
    arguments: str
    limit_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    round: int = 0

    @property
    def output(self) -> str:
        """The file of its output: a result document for our programs, else the printed text."""
        return f"{self.name}-{self.round}.{'json' if self.tool is None else 'txt'}"

    @property
    def words(self) -> list[str]:
        """The arguments, one by one."""
        written = ["--output", self.output] if self.tool is None else []
        return [*shlex.split(self.arguments), *written]

    @property
    def line(self) -> str:
        """The whole command for a shell, without folders."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return shlex.join([*variables, self.executable.name, *self.words])


def ours(programs: Path, devices: int, runtime: str = "cuda") -> list[Command]:
    """Return the commands of our programs that the comparisons of a runtime need.

    Commands between devices are included only if there are several devices.
    """
    needed = {comparison.ours.launch for comparison in COMPARISONS[runtime]}
    options = f"{_SIZE} {_QUICK} {_BATCH}"
    from_one = ",".join(f"0-{other}" for other in range(1, devices))
    to_one = ",".join(f"{other}-0" for other in range(1, devices))
    all_pairs = ",".join(f"{a}-{b}" for a in range(devices) for b in range(devices) if a != b)
    found = [
        # BabelStream's block, too; on an H100 it moves 0.8 % more than one of 256 threads.
        ("stream", "stream", f"--devices 0 --kernels copy --block-sizes 1024 {options}"),
        ("stream-from-host", "stream", f"--devices 0 --kernels copy --source host {options}"),
        ("stream-to-host", "stream", f"--devices 0 --kernels copy --destination host {options}"),
        (
            "memcpy",
            "memcpy",
            f"--devices 0 --memory pinned --operations h2d,d2h,both {_SIZE} {_QUICK} {_BATCH}",
        ),
    ]
    if devices > 1:
        both = "engine,read,write,engine-both,read-both,write-both,latency,latency-host"
        group = "--operations engine,read,write"
        found += [
            ("p2p", "p2p", f"--pairs 0-1 --operations {both} {options}"),
            ("p2p-to-all", "p2p", f"--together {from_one} {group} {options}"),
            ("p2p-to-one", "p2p", f"--together {to_one} {group} {options}"),
            ("p2p-all", "p2p", f"--together {all_pairs} {group} {options}"),
            (
                "p2p-chase",
                "p2p",
                f"--pairs 0-1 --operations chase --chase-size {CHASE_BYTES >> 20}MiB {_QUICK}",
            ),
        ]
    return [
        Command(name, None, programs / program, arguments, _LIMIT_S)
        for name, program, arguments in found
        if name in needed
    ]


def facts(programs: Path) -> Command:
    """Return the command that describes the devices: a small run whose values are not used."""
    arguments = "--devices 0 --kernels copy --sizes 1MiB --max-samples 7 --noise-limit 10"
    return Command("facts", None, programs / "stream", arguments, _LIMIT_S)


def theirs(name: str, executable: Path, devices: int) -> list[Command]:
    """Return the commands of a tool: all that the comparisons need, in few processes."""
    tool = TOOLS[name]
    return [
        Command(
            launch,
            name,
            executable,
            arguments,
            tool.limit_s,
            {
                variable: value.format(others=devices - 1)
                for variable, value in tool.environment.get(launch, {}).items()
            },
        )
        for launch, arguments in tool.arguments.items()
    ]


def order(launches: Sequence[_Named], number: int) -> list[_Named]:
    """Return the launches of a round, or their names, counted from 1, in their order.

    Every second round runs in reverse, so that drift over time favours no program.
    """
    if number % 2:
        return list(launches)
    return list(reversed(launches))
