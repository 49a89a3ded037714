"""The checks of OSU Micro-Benchmarks: MPI between two ranks (E9), and its collectives (E10)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reframe.core.backends import getlauncher

from fabricheck.core.lines import doubled
from fabricheck.rfm import launchers, slurm
from fabricheck.rfm.metrics import Metric, Reduction, Unit
from fabricheck.rfm.tool import VISIBLE, ToolCheck, sets_of, short
from fabricheck.tools.plan import OSU_OPERATIONS, PAIRS, Launch, Plan

#: Bytes of the messages whose latency is judged, and of the largest in the same scan.
LATENCY_SIZES = (16, 8192)

#: What holds of all series of OSU: another convention is a factor of two.
CONVENTION = {"engine": "mpi", "bytes_counted": "once", "role": "single"}

REDUCTIONS: tuple[Reduction, Reduction] = ("worst", "median")


class OsuCheck(ToolCheck, special=True):  # type: ignore[call-arg]
    """OSU Micro-Benchmarks: each program once to measure and once, with few rounds, to compare.

    sizes: the first and the last message size in bytes; those between double.
    stated_sizes: what the partition calls them among its extras of ``osu``.
    rounds: iterations, those to warm up, and of ``osu_bw`` messages in flight.
    latency_rounds: those of ``osu_latency``, whose few microseconds need more to be steady.
    """

    program = "osu"
    sizes: tuple[int, int]
    stated_sizes = "sizes"
    rounds: Mapping[str, int] = {"iterations": 20, "warm_up": 2, "window": 64}
    latency_rounds: Mapping[str, int] = {"iterations": 1000, "warm_up": 100}

    def plan(self) -> Plan:
        """Return the launches, and that the banner must name the accelerator."""
        on_devices = self.runtime in VISIBLE
        launches = list(self.launches())
        return Plan.model_validate(
            {
                "tool": self.program,
                "buffers": "device" if on_devices or self.simulated else "host",
                "accelerator": self.runtime if on_devices else None,
                "facts": self.facts_command(),
                "mpi_program": str(self.tool_path(launches[0].program)),
                "launches": launches,
            }
        )

    def tool_path(self, program: str) -> Path:
        """Return the file of one of OSU's programs, in its folder ``osu-micro-benchmarks``."""
        kind = "pt2pt" if program in PAIRS else "collective"
        what = "the folder libexec/osu-micro-benchmarks of an OSU"
        return self.folder("osu_folder", what) / "mpi" / kind / program

    def judged_sizes(self) -> tuple[int, int]:
        """Return the first and the last size, as the partition states them or the check does."""
        first, last = self.stated("osu").get(self.stated_sizes, self.sizes)
        return int(first), int(last)

    def twice(
        self, program: str, devices: Sequence[int], ranks: int, sizes: tuple[int, int]
    ) -> Iterator[Launch]:
        """Yield the launch that measures, and the one that compares the data.

        :param devices: those of the ranks, in order; empty for host memory.
        :param sizes: the first and the last, in bytes.
        """
        which = "latency_rounds" if program == "osu_latency" else "rounds"
        given = {**getattr(self, which), **self.stated("osu").get(which, {})}
        once = {"iterations": 1, "warm_up": 0, "window": 1}
        for verifies, rounds in ((False, given), (True, once)):
            name = "-".join([program, *(map(str, devices) if devices else [f"{ranks}ranks"])])
            window = rounds["window"] if program == "osu_bw" else 1
            yield Launch(
                name=f"{name}-c" if verifies else name,
                program=program,
                command=self._command(program, devices, ranks, sizes, rounds, verifies),
                ranks=ranks,
                devices=list(devices),
                sizes=list(doubled(*sizes)),
                batch=rounds["iterations"] * window,
                verifies=verifies,
                limit_s=self.launch_seconds,
            )

    def _command(
        self,
        program: str,
        devices: Sequence[int],
        ranks: int,
        sizes: tuple[int, int],
        rounds: Mapping[str, int],
        verifies: bool,
    ) -> str:
        options = ["-m", f"{sizes[0]}:{sizes[1]}"]
        options += ["-i", str(rounds["iterations"]), "-x", str(rounds["warm_up"])]
        options += ["-W", str(rounds["window"])] if program == "osu_bw" else []
        options += ["-c", "-u", "0"] if verifies else []
        options += [] if program in PAIRS else ["-f"]
        if self.runtime in VISIBLE:
            options += ["-d", self.runtime, *(["D", "D"] if program in PAIRS else [])]
        started = shlex.join([str(self.tool_path(program)), *options])
        return f"{self.mpi_line(devices, ranks)} {started}"

    def mpi_line(self, devices: Sequence[int], ranks: int) -> str:
        """Return the launcher of so many ranks, and what each of them starts the program with.

        On a simulated node each rank is on the host of its device.
        """
        name = self.current_partition.extras.get("mpi_launcher")
        launcher = getlauncher(name)() if name else self.job.launcher
        if isinstance(launcher, launchers.SmpirunLauncher):
            programs = Path(self.current_environ.extras["programs"])
            launcher.platform = str(programs / launchers.NODE_PLUGIN)
            launcher.hosts = [f"device{device}" for device in devices]
            launcher.hostfile = f"{launchers.HOSTFILE}-{'-'.join(map(str, devices))}"
        # OSU takes that of a job's script, 0 for all ranks, before one that a launcher may set.
        foreign = launcher.registered_name != slurm.STEP_LAUNCHER
        environment = self.environment(devices, *(["-u SLURM_PROCID"] if foreign else []))
        return " ".join(filter(None, [launchers.line(self.job, launcher, ranks), environment]))


class OsuPairCheck(OsuCheck, special=True):  # type: ignore[call-arg]
    """Bandwidth between two ranks, and latency: the worst and the median of each link class.

    programs: which of OSU's.
    first_only: whether device 0 is the source of all pairs; else every ordered pair is measured.
    Where buffers are in host memory there is one pair: two ranks.
    """

    programs: Sequence[str] = PAIRS
    first_only = True

    def pairs(self) -> Mapping[str, Sequence[tuple[int, ...]]]:
        """Return the ordered pairs of devices by link class; of host memory one without devices."""
        if self.runtime == "host":
            return {"": [()]}
        node = self.required_node
        found: dict[str, list[tuple[int, ...]]] = {}
        for source in range(1 if self.first_only else len(node.devices)):
            for destination in range(len(node.devices)):
                if source != destination:
                    name = node.link_class(source, destination).name
                    found.setdefault(name, []).append((source, destination))
        return found

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each pair and program."""
        pairs = sorted(pair for group in self.pairs().values() for pair in group)
        return [
            launch
            for program in self.programs
            for pair in pairs
            for launch in self.twice(program, pair, 2, self.sizes_of(program))
        ]

    def sizes_of(self, program: str) -> tuple[int, int]:
        """Return the first and the last message size of a program in bytes."""
        return self.judged_sizes() if program == "osu_bw" else LATENCY_SIZES

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the metrics of each link class: bandwidth at both sizes, latency at the first."""
        return [
            self._metric(program, class_name, pairs, size, reduce)
            for program in self.programs
            for class_name, pairs in self.pairs().items()
            for size in (self.judged_sizes() if program == "osu_bw" else LATENCY_SIZES[:1])
            for reduce in REDUCTIONS
        ]

    def _metric(
        self,
        program: str,
        class_name: str,
        pairs: Sequence[tuple[int, ...]],
        size: int,
        reduce: Reduction,
    ) -> Metric:
        operation = OSU_OPERATIONS[program]
        unit: Unit = "GB/s" if program == "osu_bw" else "us"
        label = short(size) if program == "osu_bw" else ""
        name = "_".join(filter(None, [operation, class_name, label, reduce]))
        where = {"operation": operation, "bytes": size, "experiment": "E9"}
        among = tuple((list(pair),) for pair in pairs)
        return Metric(
            name, CONVENTION | where, ("device_set",), reduce, unit, among, independent=True
        )


class OsuCollectiveCheck(OsuCheck, special=True):  # type: ignore[call-arg]
    """The five collectives on 2 to all devices; one metric for each and number of ranks."""

    rounds: Mapping[str, int] = {"iterations": 100, "warm_up": 10}

    @property
    def programs(self) -> Sequence[str]:
        """OSU's programs of collectives, but for those that this MPI is known not to do."""
        without = self.current_environ.extras.get("mpi_without", ())
        return [
            program
            for program, operation in OSU_OPERATIONS.items()
            if program not in PAIRS and operation not in without
        ]

    def device_sets(self) -> Sequence[tuple[int, ...]]:
        """Return the devices of 2, 3 ... ranks: of a node those that it has the best links for."""
        return sets_of(self.node, self.device_count)

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each set and collective."""
        on_devices = self.runtime != "host"
        return [
            launch
            for program in self.programs
            for devices in self.device_sets()
            for launch in self.twice(
                program, devices if on_devices else (), len(devices), self.judged_sizes()
            )
        ]

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the latency of each collective and number of ranks, at the last size."""
        return [
            Metric(
                f"{OSU_OPERATIONS[program]}_{len(devices)}_ranks",
                CONVENTION
                | {
                    "operation": OSU_OPERATIONS[program],
                    "bytes": self.judged_sizes()[1],
                    "ranks": list(range(len(devices))),
                    "experiment": "E10",
                },
                (),
                unit="us",
            )
            for program in self.programs
            for devices in self.device_sets()
        ]
