"""The launches of a round: those of our programs, and the entries of third-party benchmarks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fabricheck.tools.outputs import PlacedValues, babelstream, nvbandwidth, p2p_test
from fabricheck.tools.rounds.comparisons import (
    ARRAY_BYTES,
    BABELSTREAM_BYTES,
    CHASE_BYTES,
    COMPARISONS,
)

_Named = TypeVar("_Named")

#: Testcases of nvbandwidth that the comparisons need, each once, in order.
TESTCASES: tuple[str, ...] = tuple(
    dict.fromkeys(
        str(cell.place[0])
        for one in COMPARISONS
        for cell in one.tools
        if cell.tool == "nvbandwidth"
    )
)

#: Samples of each testcase of nvbandwidth, which times 16 copies in each and reports the median.
NVBANDWIDTH_SAMPLES = 2

#: Runs of each kernel of BabelStream.
BABELSTREAM_RUNS = 30

#: Seconds of one of our samples: nvbandwidth times 16 copies at once, which last about as long.
_BATCH = "--batch-time 0.02"
_QUICK = "--series-time 0.5 --max-samples 15"
_SIZE = f"--sizes {ARRAY_BYTES >> 20}MiB"

#: The time limit of our launches, in s: one takes about 2 s on two H200, one of nvbandwidth 30 s.
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Tool:
    """A third-party benchmark that measures in the rounds.

    title: its own name, in the table. arguments: those of each launch, for a shell, by the launch's
    name. parse: parses an output: its text, its file for errors, and the name of the launch.
    limit_s: the time limit of a launch, in s. fewest_devices: with fewer it does not run.
    """

    title: str
    arguments: Mapping[str, str]
    parse: Callable[[str, str, str], PlacedValues]
    limit_s: float
    fewest_devices: int = 1


def _babelstream(text: str, origin: str, launch: str) -> PlacedValues:
    array = BABELSTREAM_BYTES[launch.removeprefix("babelstream-")]
    return babelstream.parse(text, origin, BABELSTREAM_RUNS, array)


#: The tools by the name of their option, in the order of the table's columns. A new one needs a
#: parser with recorded outputs, an entry here, its cells among the comparisons, and an option.
TOOLS: dict[str, Tool] = {
    "nvbandwidth": Tool(
        "nvbandwidth",
        {
            "nvbandwidth": f"-j -b {ARRAY_BYTES >> 20} -i {NVBANDWIDTH_SAMPLES} "
            f"-t {' '.join(TESTCASES)}"
        },
        lambda text, origin, launch: nvbandwidth.parse(text, origin, TESTCASES),
        limit_s=180,
    ),
    "babelstream": Tool(
        "BabelStream",
        {
            f"babelstream-{size}": f"--csv --device 0 -s {array // 8} -n {BABELSTREAM_RUNS}"
            for size, array in BABELSTREAM_BYTES.items()
        },
        _babelstream,
        limit_s=90,
    ),
    "p2p-test": Tool(
        "p2pBandwidthLatencyTest",
        {"p2p-test": f"--p2p_read --numElems={ARRAY_BYTES // 4}"},
        lambda text, origin, launch: p2p_test.parse(text, origin),
        limit_s=60,
        fewest_devices=2,
    ),
}

#: Names of the launches with the compared values, by tool; None is ours.
NAMES: dict[str | None, tuple[str, ...]] = {
    None: tuple(dict.fromkeys(one.ours.launch for one in COMPARISONS)),
    **{name: tuple(tool.arguments) for name, tool in TOOLS.items()},
}


@dataclass(frozen=True)
class Command:
    """One command of a round.

    name: of its files, before the number of the round. tool: its tool; None for one of ours.
    executable: an absolute path. arguments: as for a shell; for ours without ``--output``. limit_s:
    its time limit, in s. round: its number, from 1; 0 is before the first.
    """

    name: str
    tool: str | None
    executable: Path
    arguments: str
    limit_s: float
    round: int = 0

    @property
    def output(self) -> str:
        """The file of its output: a result document for ours, else what it printed."""
        return f"{self.name}-{self.round}.{'json' if self.tool is None else 'txt'}"

    @property
    def words(self) -> list[str]:
        """The arguments, one by one."""
        written = ["--output", self.output] if self.tool is None else []
        return [*shlex.split(self.arguments), *written]


def ours(programs: Path, devices: int) -> list[Command]:
    """Return the commands of our programs; those between devices only where there are several."""
    own = f"{_SIZE} {_QUICK} {_BATCH}"
    from_one = ",".join(f"0-{other}" for other in range(1, devices))
    to_one = ",".join(f"{other}-0" for other in range(1, devices))
    found = [
        ("stream", "stream", f"--devices 0 --kernels copy {own}"),
        ("stream-from-host", "stream", f"--devices 0 --kernels copy --source host {own}"),
        ("stream-to-host", "stream", f"--devices 0 --kernels copy --destination host {own}"),
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
            ("p2p", "p2p", f"--pairs 0-1 --operations {both} {own}"),
            ("p2p-to-all", "p2p", f"--together {from_one} {group} {own}"),
            ("p2p-to-one", "p2p", f"--together {to_one} {group} {own}"),
            (
                "p2p-chase",
                "p2p",
                f"--pairs 0-1 --operations chase --chase-size {CHASE_BYTES >> 20}MiB {_QUICK}",
            ),
        ]
    return [
        Command(name, None, programs / program, arguments, _LIMIT_S)
        for name, program, arguments in found
    ]


def facts(programs: Path) -> Command:
    """Return the command that describes the devices: a small run whose values are not used."""
    arguments = "--devices 0 --kernels copy --sizes 1MiB --max-samples 7 --noise-limit 10"
    return Command("facts", None, programs / "stream", arguments, _LIMIT_S)


def theirs(name: str, executable: Path) -> list[Command]:
    """Return the commands of a tool: all that the comparisons need of it, in few processes."""
    tool = TOOLS[name]
    return [
        Command(launch, name, executable, arguments, tool.limit_s)
        for launch, arguments in tool.arguments.items()
    ]


def order(launches: Sequence[_Named], number: int) -> list[_Named]:
    """Return the launches of a round, or their names, counted from 1, in their order.

    Every second round runs in reverse, so that drift over time favours no program.
    """
    if number % 2:
        return list(launches)
    return list(reversed(launches))
