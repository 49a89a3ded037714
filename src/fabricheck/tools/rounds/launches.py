"""The launches of a round: which programs run, with which arguments, and where output goes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fabricheck.tools.rounds.cases import (
    ARRAY_BYTES,
    BABELSTREAM_BYTES,
    CHASE_BYTES,
    TESTCASES,
    Tool,
)

_Named = TypeVar("_Named")

#: Samples of each testcase of nvbandwidth, which times 16 copies in each and tells the median.
NVBANDWIDTH_SAMPLES = 2

#: Runs of each kernel of BabelStream.
BABELSTREAM_RUNS = 30

#: Seconds of a sample of ours: nvbandwidth times 16 copies at once, and these last about as long.
_BATCH = "--batch-time 0.02"
_QUICK = "--series-time 0.5 --max-samples 15"
_SIZE = f"--sizes {ARRAY_BYTES >> 20}MiB"

#: In s. What a launch of ours takes on two H200 is about 2 s, of nvbandwidth 30 s.
_LIMITS: dict[str, float] = {"ours": 60, "nvbandwidth": 180, "babelstream": 90, "p2p-test": 60}


@dataclass(frozen=True)
class Launch:
    """One launch.

    name: of its files, before the number of the round.
    tool: whose; None of one of ours.
    executable: an absolute path.
    arguments: as for a shell; of ours without ``--output``.
    limit_s: then it is ended.
    """

    name: str
    tool: Tool | None
    executable: Path
    arguments: str
    limit_s: float

    def output(self, number: int) -> str:
        """Return the file of a round's output: a result document of ours, else what it printed."""
        return f"{self.name}-{number}.{'json' if self.tool is None else 'txt'}"

    def words(self, number: int) -> list[str]:
        """Return the arguments, one by one."""
        written = ["--output", self.output(number)] if self.tool is None else []
        return [*shlex.split(self.arguments), *written]

    def command(self, number: int) -> str:
        """Return the command line as it is recorded, without folders."""
        return shlex.join([self.executable.name, *self.words(number)])


def ours(programs: Path, devices: int) -> list[Launch]:
    """Return the launches of our programs; those between devices only where there are several."""
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
        Launch(name, None, programs / program, arguments, _LIMITS["ours"])
        for name, program, arguments in found
    ]


def facts(programs: Path) -> Launch:
    """Return the launch that tells the devices: small, and measured for nobody."""
    arguments = "--devices 0 --kernels copy --sizes 1MiB --max-samples 7 --noise-limit 10"
    return Launch("facts", None, programs / "stream", arguments, _LIMITS["ours"])


def theirs(tool: Tool, executable: Path) -> list[Launch]:
    """Return the launches of another tool: all that the cases need of it, in few processes."""
    found: dict[str, str] = {}
    if tool == "nvbandwidth":
        samples = f"-b {ARRAY_BYTES >> 20} -i {NVBANDWIDTH_SAMPLES}"
        found[tool] = f"-j {samples} -t {' '.join(TESTCASES)}"
    elif tool == "babelstream":
        for size, array in BABELSTREAM_BYTES.items():
            found[f"{tool}-{size}"] = f"--csv --device 0 -s {array // 8} -n {BABELSTREAM_RUNS}"
    else:
        found[tool] = f"--p2p_read --numElems={ARRAY_BYTES // 4}"
    return [
        Launch(name, tool, executable, arguments, _LIMITS[tool])
        for name, arguments in found.items()
    ]


def order(launches: Sequence[_Named], number: int) -> list[_Named]:
    """Return the launches of a round, or their names, counted from 1, in their order.

    Every second round runs backwards, so that what drifts with time favours nobody.
    """
    if number % 2:
        return list(launches)
    return list(reversed(launches))
