"""The base of all measuring checks: run-only, and passing only with proof.

A check class is a table: program, arguments, metrics, tags. All differences between machines come
from the extras of partition and environment (docs/reference/site-file.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable, xfail
from reframe.core.exceptions import PerformanceError, PipelineError

from fabricheck.core.amounts import number
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import first_of, listed
from fabricheck.core.vocabulary import REACHED_THE_END, UNKNOWN, Unit
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.references import entries, rules
from fabricheck.references.rules import Rule
from fabricheck.results import metric_records, settings, state
from fabricheck.results import other_devices as other_devices_of
from fabricheck.results.causes import Cause, sentence_of, with_causes
from fabricheck.results.document import load
from fabricheck.results.model import Rank, ResultDocument, Series
from fabricheck.results.run_report import MetricResult, missed_limit
from fabricheck.rfm import (
    acceptance,
    check_limits,
    check_listing,
    host,
    jobs,
    launchers,
    relative,
)
from fabricheck.rfm.metrics import Figure, Metric, MetricError, where_measured
from fabricheck.rfm.on_partition import OnPartition, failed
from fabricheck.site import clusters

#: The result document in the stage folder, and in the output folder of a passed check.
RESULT = "result.json"

#: The command of this package, beside the Python that runs ReFrame.
FABRICHECK = Path(sys.executable).with_name("fabricheck")

#: Seconds between the program's own time limit and ReFrame's, for writing its document.
GRACE_S = 30

#: The program that examines the node after another one ended badly, and its seconds: the driver of
#: a broken device may never answer.
AFTERMATH, AFTERMATH_S = "aftermath", 20


def _for_reframe(entry: Sequence[Any]) -> Any:
    if entry[0] == entries.EXPECTED_FAILURE:
        return xfail(*entry[1:-1], tuple(entry[-1]))
    return tuple(entry)


class Printed(float):
    """A value that ReFrame prints with five digits and stores in full in its reports."""

    def __str__(self) -> str:
        """Return it with five digits: 32.272 instead of 32.27216483946."""
        return number(self)


class MeasuringCheck(OnPartition, rfm.RunOnlyRegressionTest, special=True):  # type: ignore[misc, call-arg]
    """Runs one program once and judges its result document.

    program: the program's name, as in the environment's folder of programs. arguments: its command
    line, without output and time limit. metrics: the metrics that the document must contain; see
    `expected_metrics`. seconds: the time limit of the program in s, several times what it took
    anywhere, set by ``-S seconds=N``. overlay: a file that changes a simulated node, set by
    ``-S overlay=FILE`` and recorded in the result. repeats: the
    check of which it measures some transfers again when all other checks have ended.
    """

    overlay = variable(str, value="")
    seconds = variable(int, value=120)

    program: str
    arguments: Sequence[str] = ()
    metrics: Sequence[Metric] = ()
    repeats: str = ""

    # No files are copied to the stage folder, where the program writes.
    sourcesdir = None
    require_reference = True
    num_tasks = 1
    exclusive_access = True
    keep_files = [RESULT, metric_records.NAME]
    prerun_cmds: list[str]

    #: The check's references on the partition, by metric; set when the partition is known.
    entries: dict[str, Any]

    #: The version and the commit of the program, of a document with a commit.
    measured_by: tuple[str, str] | None = None

    #: The rules of metrics without another limit, by metric; set when the partition is known.
    rules_used: dict[str, Rule]

    #: By metric, its figure, the place of measurement, and possible causes; set when the document
    #: is accepted.
    _figures: dict[str, tuple[Figure, str, Sequence[Cause]]]

    def expected_metrics(self) -> Sequence[Metric]:
        """Return the metrics; overridden where they depend on the partition (its node model)."""
        return self.metrics

    def judged_metrics(self) -> Sequence[Metric]:
        """Return these metrics, and the metrics that compare a metric's similar members.

        Virtual devices are one memory at two times: they are not compared. Where their arrays are
        bounded by time, their metrics are of what was measured, in caches or not.
        """
        expected = self.expected_metrics()
        if self.runtime == "host":
            in_caches = self.current_partition.extras.get("arrays_fit_caches", False)
            return [metric.of_any_regime() for metric in expected] if in_caches else expected
        return [*expected, *relative.alike(expected, self.population(), self.node)]

    def collective_rule(
        self,
        operation: str,
        devices: Sequence[int],
        size: int,
        library: str = "mpi",
        unit: Unit = "us",
    ) -> Rule | None:
        """Return the rule for a collective of some devices; None if no node model has their links.

        Also None if the only path between two of them is over the host, which no node model
        describes. Where the links or their peak are assumed, the rule requires nothing.

        :param size: of the message, in bytes.
        :param library: see `rules.collective`.
        """
        node = self.node  # looked up at each access
        if node is None or not devices:
            return None
        pairs = list(combinations(devices, 2))
        if not all(node.widest_path(*pair) for pair in pairs):
            return None
        doubt = node.doubt(*node.link_facts)
        if doubt is not None:
            return rules.without_limit(unit, doubt)
        link = min(node.peer_peak_gbs(*pair) for pair in pairs)
        library = "simulated" if self.simulated else library
        return rules.collective(operation, size, len(devices), link, library, unit)

    def program_arguments(self) -> Sequence[str]:
        """Return the command line; overridden where it depends on the partition."""
        return self.arguments

    def program_path(self) -> Path:
        """Return the program's file; overridden if it is not one of the environment's."""
        return self.programs_folder / self.program

    def population(self) -> Mapping[str, Sequence[Any]]:
        """Return the population: for each field of a metric's `over`, the values to be measured."""
        return {"device": range(self.device_count)}

    @property
    def alone(self) -> Sequence[int]:
        """The devices that are measured alone, in turn; the first where all have one memory."""
        one_memory = self.current_partition.extras.get("one_memory", False)
        return range(1 if one_memory else self.device_count)

    @property
    def alone_option(self) -> str:
        """The same in the form of an option for devices."""
        if len(self.alone) == self.device_count:
            return "each"
        return ",".join(map(str, self.alone))

    @property
    def node(self) -> NodeModel | None:
        """The healthy node model of the partition; ``None`` if it names none.

        For a partition with fewer devices than its model, the first devices of the model are used.

        :raises PipelineError: when the model, or such a part of it, does not exist.
        """
        name = self.current_partition.extras.get("node")
        try:
            return load_node(name, devices=self.device_count) if name else None
        except FabricheckError as error:
            raise PipelineError(f"Partition {self.current_partition.fullname}: {error}") from None

    @property
    def required_node(self) -> NodeModel:
        """The node model, for a check that requires one.

        :raises PipelineError: as `node`, and when the partition names no node model.
        """
        self.extra("node")
        node = self.node
        assert node is not None
        return node

    @property
    def host_noise_limit(self) -> float:
        """The noise limit of transfers with the host's memory; by default that of other transfers.

        :raises PipelineError: when the site file states neither.
        """
        stated = self.current_partition.extras.get("host_noise_limit")
        return float(self.extra("noise_limit") if stated is None else stated)

    @run_after("init")  # type: ignore[untyped-decorator]
    def _show_metrics(self) -> None:
        # For --describe; final only when the partition is known.
        self._declare(self.metrics)

    @run_after("setup")  # type: ignore[untyped-decorator]
    def _declare_metrics(self) -> None:
        self.seconds = self.seconds_needed()
        try:
            judged = self.judged_metrics()
            if not judged:
                raise PipelineError(f"Check {self.name} declares no metric.")
            self._declare(judged)
            self._require_references(judged)
        except (FabricheckError, MetricError) as error:
            raise PipelineError(str(error)) from None

    def _require_references(self, metrics: Sequence[Metric]) -> None:
        partition = self.current_partition
        limits = check_limits.of_check(type(self).__name__, partition, self.node, metrics)
        self.entries, self.rules_used = limits.entries, limits.rules
        self._list_metrics(metrics)
        if limits.faults:
            raise PipelineError("\n".join(limits.faults))
        references = {metric.name: _for_reframe(self.entries[metric.name]) for metric in metrics}
        self.reference = {partition.fullname: references}

    def _list_metrics(self, metrics: Sequence[Metric]) -> None:
        about = {
            "check": self.name,
            "description": self.descr,
            "tags": sorted(self.tags),
            "program": self.program,
            "sizes": self.sizes_measured(),
            "limit_s": self.seconds,
            "partition": self.current_partition.fullname,
            "environment": self.current_environ.name,
        }
        check_listing.append(about, metrics, self.entries, self.rules_used)

    def sizes_measured(self) -> str:
        """Return the sizes of arrays or messages as the program's option has them; empty if none.

        ``4:1GiB`` doubles from one to the other, ``64KiB,1MiB`` is each of them.
        """
        arguments = self.program_arguments()
        for option in ("--sizes", "--size"):
            if option in arguments:
                return str(arguments[arguments.index(option) + 1])
        return ""

    def _declare(self, metrics: Sequence[Metric]) -> None:
        self.perf_variables = {
            metric.name: sn.make_performance_function(self._value, metric.unit, metric.name)
            for metric in metrics
        }

    def _value(self, name: str) -> float:
        return Printed(self._figures[name][0].value)

    def seconds_needed(self) -> int:
        """Return the time limit of the program in s; overridden where the partition decides."""
        return int(self.seconds)

    def started_programs(self) -> Sequence[Path]:
        """Return the programs that must be there."""
        return (self.program_path(),)

    @run_before("run")  # type: ignore[untyped-decorator]
    def _set_command(self) -> None:
        if not self.is_dry_run():
            self._require_started_programs()
        self.executable = shlex.quote(str(self.program_path()))
        self.executable_opts = [shlex.quote(part) for part in self._command_line()]
        self.time_limit = f"{self.seconds + GRACE_S}s"
        self.submit_once()
        self.prerun_cmds = [*self.prerun_cmds, *self._aftermath()]
        self._keep_to_its_nodes()
        self._set_platform()

    def _require_started_programs(self) -> None:
        environment = self.current_environ
        for program in self.started_programs():
            if program.is_file() and os.access(program, os.X_OK):
                continue
            architectures = [device.arch for device in self.current_partition.devices]
            command = clusters.build_command(environment.extras, architectures)
            raise PipelineError(
                f"There is no program {program} for environment {environment.name}: build it "
                f"with '{command}'."
            )

    def _aftermath(self) -> list[str]:
        """Return the command that lets another process examine the node when the job ends.

        The exit code stays that of the measuring program. Only of a check of one node: the job
        script runs there, or under salloc starts a step there.
        """
        program = self.programs_folder / AFTERMATH
        if self.node_count != 1:
            return []
        if not self.is_dry_run() and not program.is_file():
            self.logger.info(
                f"{self.name}: there is no program {program}, so nothing examines the node if "
                f"{self.program} ends badly."
            )
            return []
        stepping = jobs.stepping(self.current_partition) is not None
        launch = launchers.line(self.job, self.job.launcher, 1) if stepping else ""
        options = ("--document", RESULT, "--errors", self.job.stderr)
        command = f"{launch} {shlex.quote(str(program))} {shlex.join(options)}".strip()
        # "|| :" because a failed command would end the script with its own exit code.
        return [f"trap {shlex.quote(f'timeout {AFTERMATH_S} {command} --exit-code $? || :')} EXIT"]

    def _keep_to_its_nodes(self) -> None:
        self.num_tasks_per_node = self.num_tasks // self.node_count
        submits = jobs.submitting(self.current_partition)
        if submits is not None and submits.counts_cores and self.node is not None:
            cores = sum(len(domain.cores) for domain in self.node.domains)
            self.num_cpus_per_task = cores // self.num_tasks_per_node
        launcher = self.job.launcher
        if jobs.starting(launcher) is not None:
            of_step = jobs.step_options(self.job, launcher, self.num_tasks, self.node_count)
            launcher.options = [*of_step, *launcher.options]
        elif self.node_count == 1 and self.current_partition.scheduler.registered_name == "local":
            self.prerun_cmds = [*self.prerun_cmds, *launchers.keep_ranks_here(os.environ)]

    def _command_line(self) -> tuple[str, ...]:
        limits = ("--time-limit", str(self.seconds), "--output", RESULT)
        return (*self._bounded_by_time(self.program_arguments()), *limits)

    def _bounded_by_time(self, arguments: Sequence[str]) -> list[str]:
        """Return the arguments, with a series' time as short as the partition has it."""
        bounded = list(arguments)
        most = self.current_partition.extras.get("series_seconds")
        if most is not None and "--series-time" in bounded:
            value = bounded.index("--series-time") + 1
            bounded[value] = str(min(float(bounded[value]), most))
        return bounded

    @run_before("run")  # type: ignore[untyped-decorator]
    def _require_no_result(self) -> None:
        left = Path(self.stagedir) / RESULT
        if left.exists():
            raise PipelineError(
                f"A result existed before {self.program} ran: {left}. It would be taken for this "
                "run's."
            )

    def _set_platform(self) -> None:
        if self.simulated:
            self._write_platform(self.overlay or None, self.node_count)
        elif self.overlay:
            raise PipelineError(
                f"The overlay {self.overlay} changes a simulated node, but partition "
                f"{self.current_partition.fullname} measures a real one."
            )

    def last_to_end(self) -> tuple[str, ResultDocument | None]:
        """Return the program that ended last: the only one."""
        return self.program, self.result_of(RESULT)

    @sanity_function  # type: ignore[untyped-decorator]
    def _judge(self) -> bool:
        try:
            document = load(Path(self.stagedir) / RESULT)
        except FabricheckError as error:
            raise failed(None, f"{self.program} left no usable result: {error}") from None
        if document["program"]["commit"] != UNKNOWN:
            self.measured_by = (document["program"]["version"], document["program"]["commit"])
        faults = list(acceptance.faults(document, self.requested()))
        figures: list[Figure] = []
        if self._has_values(document):
            for metric in self.judged_metrics():
                try:
                    figures.append(self.figure(document, metric))
                except MetricError as error:
                    faults.append(str(error))
        ranks = document.get("ranks") or ()
        bound_of = partial(self.physical_bound, ranks=ranks)
        unknown = self.node is not None and bool(self.node.unknown_peaks)
        beyond = list(acceptance.figure_faults(document, figures, bound_of, unknown))
        doubts = {*acceptance.clock_faults(document), *beyond}
        self._refuse(document, [*faults, *beyond], doubts)
        for remark in (*acceptance.clock_remarks(document), *self._not_bounded(document)):
            self.logger.info(f"{self.name}: {remark}")
        self._figures = {
            figure.metric.name: (
                figure,
                where_measured(document, figure.decisive),
                state.causes(document, state.devices_of(figure.decisive, document)),
            )
            for figure in figures
        }
        self._record_series(document, figures)
        return True

    def _has_values(self, document: ResultDocument) -> bool:
        """Whether a run has values to judge: it ended, on its devices, with the right settings."""
        if document["outcome"]["status"] not in REACHED_THE_END:
            return False
        if any(acceptance.device_faults(document, self.requested().architectures)):
            return False
        return not self.wrong_settings(document)

    def _record_series(self, document: ResultDocument, figures: Sequence[Figure]) -> None:
        """Record series and rules of metrics; a failure to do so does not fail a measurement."""
        records = {
            figure.metric.name: figure.record(document, self.rules_used.get(figure.metric.name))
            for figure in figures
        }
        try:
            others = settings.not_intended(document, self.intended_variables)
            metric_records.write(Path(self.stagedir), document, records, others)
        except FabricheckError as error:
            self.logger.warning(
                f"{self.name}: the series of its metrics were not recorded: {error}"
            )

    def _refuse(self, document: ResultDocument, faults: list[str], doubts: Collection[str]) -> None:
        """Raise the error for the faults of a document and for settings that were not requested.

        :param doubts: the faults that concern measured values only.
        """
        wrong_runtime = list(acceptance.runtime_faults(document, self.requested()))
        if wrong_runtime:
            # Another folder of programs than meant: its devices say nothing about the node's.
            raise failed(None, "\n".join(wrong_runtime))
        other_devices = list(acceptance.device_faults(document, self.requested().architectures))
        hidden = self._hidden_devices(document, bool(other_devices))
        wheres = [metric.where for metric in self.expected_metrics()]
        prevented = [
            *self.wrong_settings(document),
            *settings.disturbing(document, self.intended_variables, wheres),
        ]
        only_doubts = set(faults) <= set(doubts)
        disturbed = state.disturbances(document) if faults and only_doubts else ()
        sentences = "\n".join([*prevented, *map(sentence_of, disturbed), *first_of(faults)])
        if hidden is not None:
            raise failed("setting", hidden)
        if other_devices:
            raise failed("other-devices", sentences)
        if prevented:
            raise failed("setting", sentences)
        if sentences:
            raise failed("doubted-value" if only_doubts else None, sentences)

    def _hidden_devices(self, document: ResultDocument, differ: bool) -> str | None:
        """Return the setting by which a node shows other devices than it has; None without one.

        :param differ: whether its devices are not those of the partition.
        """
        if self.node_count != 1:
            return None
        stated = self.device_count if differ else None
        why = other_devices_of.explained(document, stated, self.node)
        return why.sentence if why is not None and why.kind == "setting" else None

    @property
    def intended_variables(self) -> Mapping[str, str]:
        """The variables that the site file and the check set for its job."""
        return {
            **self.current_system.preload_environ.env_vars,
            **self.current_partition.local_env.env_vars,
            **self.current_environ.env_vars,
            **self.env_vars,
        }

    def wrong_settings(self, document: ResultDocument) -> Sequence[str]:
        """Return sentences on settings with which no value is judged; overridden where known."""
        beyond = any(metric.where.get("regime") == "memory" for metric in self.judged_metrics())
        if not beyond:
            return []
        hidden = host.hidden_caches(document)
        return [hidden] if hidden else []

    def requested(self) -> acceptance.Requested:
        """Return the required content of the document."""
        return self.request_of(self.program, self._command_line())

    def figure(self, document: ResultDocument, metric: Metric) -> Figure:
        """Return a metric's value and series; overridden where it is computed differently.

        :raises MetricError: when a series is missing, duplicate, or in another unit, or when it was
            not measured before in this session.
        """
        if isinstance(metric, relative.OfFirst):
            return metric.since(self._first(document), document, self.population())
        return metric.figure(document, self.population())

    def _first(self, document: ResultDocument) -> ResultDocument:
        """Return the first document of the check that this one repeats, of the same node.

        :raises MetricError: when the session has none.
        """
        attempts = re.compile(rf"{self.repeats}(_[0-9a-f]{{8}})?(_retry\d+)?")
        documents = []
        # ReFrame moves the files of a check that passed.
        for folder in (Path(self.stagedir).parent, Path(self.outputdir).parent):
            for path in folder.glob(f"{self.repeats}*/{RESULT}"):
                if attempts.fullmatch(path.parent.name):
                    with contextlib.suppress(FabricheckError):
                        documents.append(load(path))
        host = document["host"]["hostname"]
        of_node = [each for each in documents if each["host"]["hostname"] == host]
        if not of_node:
            raise MetricError(
                f"{self.name} repeats {self.repeats}, of which this session has no result on node "
                f"{host}."
            )
        return min(of_node, key=lambda each: each["started"])

    def physical_bound(self, series: Series, ranks: Sequence[Rank] = ()) -> acceptance.Bound | None:
        """Return a series' physical bound: from the node model, else from the partition.

        :param ranks: those of its document.
        """
        node = self.node
        if node:
            return acceptance.node_bound(node, series, ranks)
        stated = self.extra("physical_bounds").get(series["unit"])
        return acceptance.Bound(**stated) if stated else None

    def _not_bounded(self, document: ResultDocument) -> Iterator[str]:
        """Say that values have no bound where a peak of the node is unknown."""
        if self.node is None or not self.node.unknown_peaks:
            return
        ranks = document.get("ranks") or ()
        if any(self.physical_bound(series, ranks) is None for series in document["series"]):
            yield (
                f"not judged: whether values are possible; unknown of {self.node.name}: "
                f"{listed(self.node.unknown_peaks)}."
            )

    def check_performance(self) -> None:
        """Let ReFrame judge and record the values, then name the place of each missed value.

        :raises PerformanceError: as ReFrame does, and when a declared metric has no value.
        """
        try:
            super().check_performance()
        except PerformanceError as error:
            raise PerformanceError("\n".join([str(error), *self._failures()])) from None
        judged = self._judged()
        lost = [metric.name for metric in self.judged_metrics() if metric.name not in judged]
        if lost:
            raise PerformanceError(f"No value for what was declared: {listed(lost)}.")
        free = [
            name
            for name, (_, _, lower, upper, _, _) in judged.items()
            if lower is None and upper is None
        ]
        if free and not self.is_dry_run():
            self.logger.info(
                f"{self.name}: report only, without a limit on {self.current_partition.fullname}: "
                f"{listed(free)}"
            )

    def _judged(self) -> dict[str, MetricResult]:
        """Return the metrics as ReFrame judged them."""
        return {
            key.rsplit(":", 1)[-1]: MetricResult(*judged) for key, judged in self.perfvalues.items()
        }

    def _failures(self) -> list[str]:
        """Return a sentence for each value beyond its limit; overridden where more is known."""
        sentences = []
        for name, recorded in self._judged().items():
            if recorded.result != "fail":
                continue
            figure, where, causes = self._figures[name]
            sentence = missed_limit(name, where, recorded, figure.compared)
            sentences.append(with_causes(sentence, causes))
        return sentences
