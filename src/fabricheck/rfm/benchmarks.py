"""Checks that run a third-party benchmark: several launches and one result document.

The launches are a plan (`fabricheck.tools.benchmarks`) in the stage folder. ``fabricheck results
record`` starts them through the partition's launcher, parses the output and writes the document, so
that the tools are judged like this suite's programs. The tools are OSU Micro-Benchmarks: MPI
between two ranks (E9) and its collectives (E10); and rccl-tests or nccl-tests: collectives of RCCL
or NCCL (E11).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe.core.backends import getlauncher
from reframe.core.exceptions import PipelineError

from fabricheck.core import amounts
from fabricheck.core.lines import doubled
from fabricheck.core.vocabulary import NCCL_COLLECTIVES, OSU_COLLECTIVES, Unit
from fabricheck.results import metric_records
from fabricheck.results.metric_records import Reduction
from fabricheck.rfm import jobs, launchers
from fabricheck.rfm.base import FABRICHECK, RESULT, MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, WORST_AND_MEDIAN, Metric
from fabricheck.rfm.pairs import one_each, ordered_pairs
from fabricheck.tools.benchmarks import BENCHMARKS, FACTS, NCCL_TESTS, OSU, Benchmark, Launch, Plan
from fabricheck.tools.osu import RATES

#: The plan in the stage folder.
PLAN = "plan.json"

#: The launch that describes the node: a program of every environment that measures no time.
FACTS_PROGRAM = "stream"
FACTS_ARGUMENTS = ("--devices", "0", "--kernels", "copy", "--sizes", "64KiB", "--time-limit", "50")

#: The variable that limits a process to some devices, in the order of ranks.
VISIBLE = {"rocm": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}

#: Bytes of the messages whose latency OSU's checks judge, and of the largest message in that scan.
LATENCY_SIZES = (16, 8192)

#: Fields common to all series of OSU; another convention changes values by a factor of two.
CONVENTION = {"engine": "mpi", "bytes_counted": "once", "role": "single"}

#: Operations averaged by rccl-tests for one value, and its warm-up operations before each.
ITERATIONS, WARM_UP = 50, 5


class BenchmarkCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Runs a third-party benchmark; `program` is its name in the document.

    launch_seconds: the time limit of one launch in s. sizes: the first and the last message size in
    bytes; sizes double in between. stated_sizes: their names in the partition's extras of the tool.
    """

    launch_seconds = 120
    seconds = 1800
    keep_files = [RESULT, metric_records.NAME, PLAN, "facts*.json", "*.out"]
    sizes: tuple[int, int]
    stated_sizes: str | None = None

    def launches(self) -> Sequence[Launch]:
        """Return the launches of the check."""
        raise NotImplementedError

    def conditions(self, launches: Sequence[Launch]) -> Mapping[str, Any]:
        """Return the conditions of all launches, as fields of `Plan`."""
        raise NotImplementedError

    def plan(self) -> Plan:
        """Return the launches and their conditions."""
        launches = list(self.launches())
        return Plan(
            tool=self.program,
            facts=self.facts_command(),
            launches=launches,
            **self.conditions(launches),
        )

    @property
    def benchmark(self) -> Benchmark:
        """The tool's entry in the table of benchmarks."""
        return BENCHMARKS[self.program]

    def tool_path(self, program: str) -> Path:
        """Return the path of one of the tool's programs.

        :raises PipelineError: when the environment does not state their folder.
        """
        tool, extra = self.benchmark, f"{self.benchmark.extra}_folder"
        try:
            return Path(self.current_environ.extras[extra]) / tool.path(program)
        except KeyError:
            raise PipelineError(
                f"Environment {self.current_environ.name} has no {extra} in its extras: "
                f"{tool.folder}."
            ) from None

    def stated(self, key: str | None) -> Any:
        """Return the partition's extras of the tool; None without any."""
        return self.current_partition.extras.get(self.benchmark.extra, {}).get(key)

    def judged_sizes(self) -> tuple[int, int]:
        """Return the first and the last size, from the partition's extras or else the check."""
        first, last = self.stated(self.stated_sizes) or self.sizes
        return int(first), int(last)

    def sizes_measured(self) -> str:
        """Return the first and the last size, as `Check.sizes_measured` does."""
        first, last = self.judged_sizes()
        return f"{first}:{last}"

    def growing_sets(self) -> Sequence[tuple[int, ...]]:
        """Return sets of 2, 3 ... devices: the best of a node, else the first ones."""
        if self.node is not None:
            return self.node.growing_subsets
        return [tuple(range(count)) for count in range(2, self.device_count + 1)]

    def first_sets(self) -> Sequence[tuple[int, ...]]:
        """Return the sets of the first 2, 3 ... devices that are not among `growing_sets`.

        Skips the check if the first devices are the best ones.
        """
        best = set(self.growing_sets())
        first = [tuple(range(count)) for count in range(2, self.device_count + 1)]
        sets = [members for members in first if members not in best]
        self.skip_if(not sets, "The first devices are the best ones, which other checks measure.")
        return sets

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself."""
        return FABRICHECK

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        return ("results", "record", PLAN)

    def processes(self, plan: Plan) -> int:
        """Return the number of processes of the largest launch."""
        return max(launch.ranks for launch in plan.launches)

    def _keep_to_its_nodes(self) -> None:
        # The plan contains the launchers; ReFrame starts only ``fabricheck results record``.
        plan = self.plan()
        self.num_tasks = self.processes(plan)
        self.num_tasks_per_node = self.num_tasks // self.node_count
        (Path(self.stagedir) / PLAN).write_text(plan.model_dump_json(indent=1) + "\n")
        self._require_programs(plan)
        self.job.launcher = getlauncher("local")()

    def _require_programs(self, plan: Plan) -> None:
        if self.is_dry_run():
            return
        for name in dict.fromkeys(launch.program for launch in plan.launches):
            path = self.tool_path(name)
            if not path.is_file():
                raise PipelineError(
                    f"There is no program {path} for environment {self.current_environ.name}, "
                    f"which has the feature of {self.program}."
                )

    def facts_command(self) -> str:
        """Return the command with which a program of this suite describes the node."""
        program = self.programs_folder / FACTS_PROGRAM
        command = shlex.join([str(program), *FACTS_ARGUMENTS, "--output", FACTS])
        return " ".join(filter(None, [launchers.line(self.job, self.job.launcher, 1), command]))

    def environment(self, devices: Sequence[int], *settings: str) -> str:
        """Return the prefix that limits a program to some devices, in this order.

        :param settings: further settings for ``env``.
        """
        variable = VISIBLE.get(self.runtime)
        if variable is None or not devices:
            return ""
        # By PCI address, which is the order of the node model and of the other programs.
        order = ["CUDA_DEVICE_ORDER=PCI_BUS_ID"] if self.runtime == "cuda" else []
        shown = ",".join(map(str, dict.fromkeys(devices)))
        return " ".join(["env", *settings, f"{variable}={shown}", *order])


class OsuCheck(BenchmarkCheck, special=True):  # type: ignore[call-arg]
    """OSU Micro-Benchmarks: each program once to measure and once, with few rounds, to compare
    data.

    rounds: iterations, warm-up iterations, and messages of ``osu_bw`` in flight. latency_rounds:
    those of ``osu_latency``, whose few microseconds need more to be steady.
    """

    program = "osu"
    stated_sizes = "sizes"
    rounds: Mapping[str, int] = {"iterations": 20, "warm_up": 2, "window": 64}
    latency_rounds: Mapping[str, int] = {"iterations": 1000, "warm_up": 100}

    def conditions(self, launches: Sequence[Launch]) -> Mapping[str, Any]:
        """Return the accelerator that the banner must name, and a program of the MPI."""
        on_devices = self.runtime in VISIBLE
        return {
            "buffers": "device" if on_devices or self.simulated else "host",
            "accelerator": self.runtime if on_devices else None,
            "mpi_program": str(self.tool_path(launches[0].program)),
        }

    def twice(
        self, program: str, devices: Sequence[int], ranks: int, sizes: tuple[int, int]
    ) -> Iterator[Launch]:
        """Yield the launch that measures, and the launch that compares the data.

        :param devices: those of the ranks, in order; empty for host memory.
        :param sizes: the first and the last, in bytes.
        """
        which = "latency_rounds" if program == "osu_latency" else "rounds"
        given = {**getattr(self, which), **(self.stated(which) or {})}
        once = {"iterations": 1, "warm_up": 0, "window": 1}
        for verifies, rounds in ((False, given), (True, once)):
            name = "-".join([program, *(map(str, devices) if devices else [f"{ranks}ranks"])])
            window = rounds["window"] if program in RATES else 1
            yield Launch(
                name=f"{name}-c" if verifies else name,
                program=program,
                command=self._command(program, devices, ranks, sizes, rounds, verifies),
                ranks=ranks,
                devices=list(devices),
                sizes=list(doubled(*sizes)),
                batch=rounds["iterations"] * window,
                verifies=verifies,
                nodes=self.node_count,
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
        options += ["-W", str(rounds["window"])] if program in RATES else []
        options += ["-c", "-u", "0"] if verifies else []
        of_pairs = program in (*OSU.pairs, *OSU.at_once)
        options += [] if of_pairs else ["-f"]
        if self.runtime in VISIBLE:
            options += ["-d", self.runtime, *(["D", "D"] if of_pairs else [])]
        started = shlex.join([str(self.tool_path(program)), *options])
        return f"{self.mpi_line(devices, ranks)} {started}"

    def mpi_line(self, devices: Sequence[int], ranks: int) -> str:
        """Return the launcher for a number of ranks, and the prefix of each rank's program.

        On a simulated node each rank is on the host of its device.
        """
        launcher = self.rank_launcher(devices)
        if isinstance(launcher, launchers.SmpirunLauncher):
            launcher.hostfile = f"{launchers.HOSTFILE}-{'-'.join(map(str, devices))}"
        # OSU prefers a job script's variable, 0 for all ranks, to the launcher's variable.
        removed = [f"-u {name}" for name in jobs.ranks_of_others(launcher)]
        environment = self.environment(devices, *removed)
        return " ".join(filter(None, [launchers.line(self.job, launcher, ranks), environment]))


class OsuPairCheck(OsuCheck, special=True):  # type: ignore[call-arg]
    """Bandwidth and latency between two ranks: the worst and the median of each link class.

    programs: those of OSU. first_only: whether device 0 is the source of all pairs; otherwise every
    ordered pair is measured. With buffers in host memory there is one pair: two ranks.
    """

    programs: Sequence[str] = ("osu_bw", "osu_latency")
    first_only = True

    def pairs(self) -> Mapping[str, Sequence[tuple[int, ...]]]:
        """Return ordered pairs of devices by link class; for host memory, one without devices."""
        if self.runtime == "host":
            return {"": [()]}
        by_class = ordered_pairs(self.required_node)
        if self.first_only:
            by_class = {
                name: [pair for pair in ordered if pair[0] == 0]
                for name, ordered in by_class.items()
            }
        return {name: pairs for name, pairs in by_class.items() if pairs}

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each pair and program."""
        pairs = sorted(pair for group in self.pairs().values() for pair in group)
        return [
            launch
            for program in self.programs
            for pair in pairs
            for launch in self.twice(
                program, pair, 2, self.judged_sizes() if program == "osu_bw" else LATENCY_SIZES
            )
        ]

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the metrics of each link class: bandwidth at both sizes, latency at the first."""
        return [
            self._metric(program, class_name, pairs, size, reduce)
            for program in self.programs
            for class_name, pairs in self.pairs().items()
            for size in (self.judged_sizes() if program == "osu_bw" else LATENCY_SIZES[:1])
            for reduce in WORST_AND_MEDIAN
        ]

    def _metric(
        self,
        program: str,
        class_name: str,
        pairs: Sequence[tuple[int, ...]],
        size: int,
        reduce: Reduction,
    ) -> Metric:
        operation = OSU.operations[program]
        unit: Unit = "GB/s" if program == "osu_bw" else "us"
        label = amounts.size(size).replace(" ", "") if program == "osu_bw" else ""
        name = "_".join(filter(None, [operation, class_name, label, reduce]))
        where = {**CONVENTION, "operation": operation, "bytes": size, "experiment": "E9"}
        among = one_each(pairs)
        return Metric(
            name, where, ("device_set",), reduce, unit, among, independent=True,
            alike=bool(class_name),
        )  # fmt: skip


class OsuOwnDeviceCheck(OsuCheck, special=True):  # type: ignore[call-arg]
    """Bandwidth between two ranks on one device, which is the only device that they see.

    Devices are compared at the largest size alone: messages of 4 MiB take microseconds within a
    device, and differed by a fifth from run to run on healthy ones (docs/evidence/h200.md).
    """

    def launches(self) -> Sequence[Launch]:
        """Return two launches for each device."""
        return [
            launch
            for device in range(self.device_count)
            for launch in self.twice("osu_bw", (device, device), 2, self.judged_sizes())
        ]

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the worst and the median of the devices at both sizes."""
        sizes = self.judged_sizes()
        return [
            Metric(
                f"bandwidth_{amounts.size(size).replace(' ', '')}_{reduce}",
                {**CONVENTION, "operation": "bandwidth", "bytes": size, "experiment": "E9"},
                ("device_set",),
                reduce,
                among=one_each((device,) for device in range(self.device_count)),
                independent=True,
                alike=None if size == max(sizes) else False,
            )
            for size in sizes
            for reduce in WORST_AND_MEDIAN
        ]


class OsuCollectiveCheck(OsuCheck, special=True):  # type: ignore[call-arg]
    """The five collectives on 2 to all devices; one metric for each and number of ranks."""

    rounds: Mapping[str, int] = {"iterations": 100, "warm_up": 10}

    @property
    def programs(self) -> Sequence[str]:
        """OSU's programs of collectives, except those that this MPI is known not to support."""
        without = self.current_environ.extras.get("mpi_without", ())
        return [
            program
            for program, operation in OSU.operations.items()
            if program in OSU_COLLECTIVES.values() and operation not in without
        ]

    def device_sets(self) -> Sequence[tuple[int, ...]]:
        """Return the sets of devices, one of each size: the best ones."""
        return self.growing_sets()

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
                f"{OSU.operations[program]}_{len(devices)}_ranks",
                CONVENTION
                | {
                    "operation": OSU.operations[program],
                    "bytes": self.judged_sizes()[1],
                    "ranks": list(range(len(devices))),
                    "experiment": "E10",
                },
                (),
                unit="us",
                rule=self.collective_rule(
                    OSU.operations[program],
                    devices if self.runtime != "host" else (),
                    self.judged_sizes()[1],
                ),
            )
            for program in self.programs
            for devices in self.device_sets()
        ]


class RcclCheck(BenchmarkCheck, special=True):  # type: ignore[call-arg]
    """rccl-tests or nccl-tests: one process with all devices of a set, which also verifies the
    data.

    values: the figures of a collective, by unit their name in that of a metric. thread_each:
    whether each device has its own thread of the process, instead of one thread for all.
    """

    thread_each = False

    #: The tests, by the names of their programs without ``_perf``.
    programs: Sequence[str] = tuple(
        collective.removesuffix("_perf") for collective in NCCL_COLLECTIVES.values()
    )

    values: Mapping[Unit, str] = {"us": "latency", "GB/s": "busbw"}

    def device_sets(self) -> Sequence[tuple[int, ...]]:
        """Return the set of all devices."""
        return [tuple(range(self.device_count))]

    @property
    def program(self) -> str:  # type: ignore[override]
        """Which of the two tools the environment has."""
        features = self.current_environ.features
        return next(name for name in ("rccl-tests", "nccl-tests") if name in features)

    def conditions(self, launches: Sequence[Launch]) -> Mapping[str, Any]:
        """Return the versions that the environment requires."""
        stated = self.current_environ.extras
        return {"buffers": "device", "library": stated.get("rccl_version")}

    def processes(self, plan: Plan) -> int:
        """One process uses all devices."""
        return 1

    def launches(self) -> Sequence[Launch]:
        """Return one launch for each collective and set of devices."""
        sizes = self.judged_sizes()
        return [
            Launch(
                name="-".join([program, *map(str, devices)]),
                program=program,
                command=self._command(program, devices, sizes),
                ranks=len(devices),
                devices=list(devices),
                sizes=list(doubled(*sizes)),
                batch=ITERATIONS,
                threads=self.threads_of(devices)[0],
                limit_s=self.launch_seconds,
            )
            for program in self.programs
            for devices in self.device_sets()
        ]

    def threads_of(self, devices: Sequence[int]) -> tuple[int, int]:
        """Return the number of threads of the process, and the devices of each."""
        return (len(devices), 1) if self.thread_each else (1, len(devices))

    def _command(self, program: str, devices: Sequence[int], sizes: tuple[int, int]) -> str:
        first, last = map(str, sizes)
        threads, each = map(str, self.threads_of(devices))
        options = ["-b", first, "-e", last, "-f", "2"]
        options += [*(["-t", threads] if self.thread_each else []), "-g", each]
        options += ["-n", str(ITERATIONS), "-w", str(WARM_UP), "-c", "1"]
        started = shlex.join([str(self.tool_path(program)), *options])
        # Older tests do not report the library's version; the library does if asked.
        line = launchers.line(self.job, self.job.launcher, 1)
        environment = self.environment(devices, "NCCL_DEBUG=VERSION")
        return " ".join(filter(None, [line, environment, started]))

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the figures of each collective and set, out of place, at the largest size."""
        return [
            Metric(
                f"{operation}_{len(devices)}_devices_{value}",
                self._where(operation, unit, devices),
                (),
                unit=unit,
                rule=self.collective_rule(operation, devices, self.judged_sizes()[1], "rccl", unit),
            )
            for operation in map(NCCL_TESTS.operations.__getitem__, self.programs)
            for devices in self.device_sets()
            for unit, value in self.values.items()
        ]

    def _where(self, operation: str, unit: str, devices: Sequence[int]) -> dict[str, Any]:
        return {
            "experiment": "E11",
            "operation": operation,
            "unit": unit,
            "bytes_counted": "bus" if unit == "GB/s" else "once",
            "device_set": list(devices),
            "in_place": False,
            "bytes": LARGEST,
        }
