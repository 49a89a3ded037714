"""The launches of a round: those of our programs, and the entries of third-party benchmarks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
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
from fabricheck.node.products import USUAL_SHAPE, KernelShape

_Named = TypeVar("_Named")

#: The comparisons by the runtime of our programs, as their documents name it.
COMPARISONS: dict[str, tuple[Comparison, ...]] = {"cuda": BESIDE_NVIDIA, "rocm": BESIDE_AMD}

#: The testcases of nvbandwidth that the comparisons need, each once, in order.
_CELLS = [cell for comparison in BESIDE_NVIDIA for cell in comparison.tools]
TESTCASES: tuple[str, ...] = tuple(
    dict.fromkeys(str(cell.place[0]) for cell in _CELLS if cell.tool == "nvbandwidth")
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
class Launch:
    """One launch of a tool.

    arguments: as for a shell.

    parse: parses its output from the text, its file for errors, and the number of devices.

    environment: its variables; ``{others}`` is the number of devices minus one.
    """

    arguments: str
    parse: Callable[[str, str, int], PlacedValues]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A third-party benchmark that measures in the rounds.

    title: its own name, in the table.

    launches: by the name of each.

    limit_s: the time limit of a launch, in s.

    runtimes: the runtimes of our programs with which it is compared.

    fewest_devices: the number of devices that it requires.
    """

    title: str
    launches: Mapping[str, Launch]
    limit_s: float
    runtimes: tuple[str, ...]
    fewest_devices: int = 1


def _babelstream(array: int) -> Launch:
    return Launch(
        f"--csv --device 0 -s {array // 8} -n {BABELSTREAM_RUNS}",
        lambda text, origin, _: nvidia.parse_babelstream(text, origin, BABELSTREAM_RUNS, array),
    )


#: Bytes of a transfer of TransferBench: its default, because it compares all data on the host.
_TRANSFERBENCH_BYTES = 64 << 20

_TRANSFERBENCH_SIZE = f"{_TRANSFERBENCH_BYTES >> 20}M"

#: The most compute units of TransferBench's scaling: its default.
_SCALING_UNITS = 32

#: Variables of TransferBench by what moves the data. For engines in a2a, 1.52 has USE_GPU_DMA, its
#: successor USE_DMA_EXEC.
_BY = {
    "GFX": {"USE_GPU_DMA": "0", "USE_DMA_EXEC": "0"},
    "DMA": {"USE_GPU_DMA": "1", "USE_DMA_EXEC": "1"},
}

#: Variables of all its launches.
_PLAIN = {"OUTPUT_TO_CSV": "0", "SHOW_ITERATIONS": "0"}


def _p2p(executor: str, remote_read: bool) -> Launch:
    return Launch(
        f"p2p {_TRANSFERBENCH_SIZE}",
        lambda text, origin, _: _with_host(
            transferbench.parse_p2p(text, origin, _TRANSFERBENCH_BYTES, executor, remote_read)
        ),
        _PLAIN
        | {"NUM_GPU_DEVICES": "2", "P2P_MODE": "0", "USE_REMOTE_READ": f"{remote_read:d}"}
        | _BY[executor],
    )


def _all_to_all(executor: str, remote_read: bool) -> Launch:
    mode = {"A2A_DIRECT": "0", "A2A_LOCAL": "0", "A2A_MODE": "0"}
    variables = mode | {"USE_REMOTE_READ": f"{remote_read:d}"} | _BY[executor]
    shown = {name: value for name, value in variables.items() if name != "USE_GPU_DMA"}
    return Launch(
        f"a2a {_TRANSFERBENCH_SIZE}",
        lambda text, origin, _: transferbench.parse_a2a(text, origin, _TRANSFERBENCH_BYTES, shown),
        _PLAIN | variables,
    )


def _one_to_all(executor: str) -> Launch:
    others = {"SWEEP_MIN": "{others}", "SWEEP_MAX": "{others}", "SWEEP_EXE": executor}
    return Launch(
        f"one2all {_TRANSFERBENCH_SIZE}",
        lambda text, origin, devices: transferbench.parse_one_to_all(
            text, origin, _TRANSFERBENCH_BYTES, devices, executor
        ),
        _PLAIN | {"EXE_INDEX": "0", "SWEEP_DIR": "0"} | others,
    )


def _with_host(printed: PlacedValues) -> PlacedValues:
    """Return the values, with the best of all NUMA domains of the host at the place `HOST`."""
    best: dict[tuple[str | int, ...], float] = {}
    for place, value in printed.values.items():
        # Copies within the host have it twice.
        host = tuple(HOST if str(part).startswith("CPU ") else part for part in place)
        if host.count(HOST) == 1:
            best[host] = max(value, best.get(host, 0.0))
    return replace(printed, values={**printed.values, **best})


#: The tools by the name of their option, in the order of the table's columns. A new tool needs a
#: parser with recorded outputs, an entry here, its cells among the comparisons, and an option.
TOOLS: dict[str, Tool] = {
    "nvbandwidth": Tool(
        "nvbandwidth",
        {
            "nvbandwidth": Launch(
                f"-j -b {ARRAY_BYTES >> 20} -i {_NVBANDWIDTH_SAMPLES} -t {' '.join(TESTCASES)}",
                lambda text, origin, _: nvidia.parse_nvbandwidth(text, origin, TESTCASES),
            )
        },
        limit_s=180,
        runtimes=("cuda",),
    ),
    "babelstream": Tool(
        "BabelStream",
        {f"babelstream-{size}": _babelstream(array) for size, array in BABELSTREAM_BYTES.items()},
        limit_s=90,
        runtimes=("cuda", "rocm"),
    ),
    "p2p-test": Tool(
        "p2pBandwidthLatencyTest",
        {
            "p2p-test": Launch(
                f"--p2p_read --numElems={ARRAY_BYTES // 4}",
                lambda text, origin, _: nvidia.parse_p2p_test(text, origin),
            )
        },
        limit_s=60,
        runtimes=("cuda",),
        fewest_devices=2,
    ),
    "transferbench": Tool(
        "TransferBench",
        {
            "transferbench-write": _p2p("GFX", remote_read=False),
            "transferbench-read": _p2p("GFX", remote_read=True),
            "transferbench-dma-write": _p2p("DMA", remote_read=False),
            "transferbench-dma-read": _p2p("DMA", remote_read=True),
            "transferbench-scaling": Launch(
                f"scaling {_TRANSFERBENCH_SIZE}",
                lambda text, origin, _: _with_host(
                    transferbench.parse_scaling(text, origin, _TRANSFERBENCH_BYTES, _SCALING_UNITS)
                ),
                _PLAIN | {"LOCAL_IDX": "0", "SWEEP_MIN": "1", "SWEEP_MAX": f"{_SCALING_UNITS}"},
            ),
            "transferbench-one2all": _one_to_all("G"),
            "transferbench-one2all-dma": _one_to_all("D"),
            "transferbench-a2a": _all_to_all("GFX", remote_read=False),
            "transferbench-a2a-read": _all_to_all("GFX", remote_read=True),
            "transferbench-a2a-dma": _all_to_all("DMA", remote_read=False),
        },
        limit_s=180,
        runtimes=("rocm",),
        fewest_devices=2,
    ),
    "rocm-bandwidth-test": Tool(
        "rocm_bandwidth_test",
        {
            "rocm-bandwidth-test": Launch(
                "", lambda text, origin, _: _with_host(rocm_bandwidth_test.parse(text, origin))
            )
        },
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
    **{name: tuple(tool.launches) for name, tool in TOOLS.items()},
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


def ours(
    programs: Path, devices: int, runtime: str = "cuda", shape: KernelShape = USUAL_SHAPE
) -> list[Command]:
    """Return the commands of our programs that the comparisons of a runtime need.

    Commands between devices are included only if there are several devices.

    :param shape: that of the kernels on a device's own memory, as the checks have it.
    """
    needed = {comparison.ours.launch for comparison in COMPARISONS[runtime]}
    options = f"{_SIZE} {_QUICK} {_BATCH}"
    from_one = ",".join(f"0-{other}" for other in range(1, devices))
    to_one = ",".join(f"{other}-0" for other in range(1, devices))
    all_pairs = ",".join(f"{a}-{b}" for a, b in permutations(range(devices), 2))
    launches = [
        ("stream", "stream", f"--devices 0 --kernels copy {shlex.join(shape.options)} {options}"),
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
        launches += [
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
        for name, program, arguments in launches
        if name in needed
    ]


def facts(programs: Path) -> Command:
    """Return the command that describes the devices: a small run whose values are not used."""
    arguments = "--devices 0 --kernels copy --sizes 1MiB --max-samples 7 --noise-limit 10"
    return Command("facts", None, programs / "stream", arguments, _LIMIT_S)


def theirs(name: str, executable: Path, devices: int) -> list[Command]:
    """Return the commands of a tool: all that the comparisons need, in few processes."""
    tool, others = TOOLS[name], devices - 1
    return [
        Command(
            name=launch,
            tool=name,
            executable=executable,
            arguments=about.arguments,
            limit_s=tool.limit_s,
            environment={
                variable: value.format(others=others)
                for variable, value in about.environment.items()
            },
        )
        for launch, about in tool.launches.items()
    ]


def order(launches: Sequence[_Named], number: int) -> list[_Named]:
    """Return the launches of a round, or their names, counted from 1, in their order.

    Every second round runs in reverse, so that drift over time favours no program.
    """
    if number % 2:
        return list(launches)
    return list(reversed(launches))
