"""Sessions: what ran, where, and with which result, from ReFrame's run reports."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path

from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.core.text import printable
from fabricheck.core.vocabulary import EXPERIMENTS
from fabricheck.results import archive
from fabricheck.results.metric_records import RENAMED
from fabricheck.results.run_report import (
    DISTRIBUTED,
    FAILURES,
    Failure,
    MetricResult,
    RunReport,
    SessionInfo,
    TestCase,
    own_sentences,
    parse_report,
)
from fabricheck.site import sets

#: The file that a program writes, and its name until the program ends.
DOCUMENT_NAME = "result.json"
PARTIAL_NAME = "result.json.partial"

#: Results of ReFrame that mean success, including an expected failure.
PASSED = frozenset({"pass", "xfail"})
#: The result of ReFrame for a test that a signal to the session ended.
ABORTED = "abort"
#: Results of ReFrame for tests that did not run.
SKIPPED = frozenset({"skip"})

#: The result of a case without a run report.
UNREPORTED = "unknown"

#: The suffix that ReFrame adds to a check repeated in one session (--repeat).
REPETITION = re.compile(r" %\S*repeat_no=(?P<number>\d+)")

#: The scheduler whose jobs are processes of the machine that ReFrame runs on.
_LOCAL = "local"


@dataclass(frozen=True)
class Case:
    """One check in one partition and environment, by its last attempt.

    Each repetition of a check is a case, told apart by its name; a distributed check is told
    apart by its node. ``folders`` are where its document may be, in order; ``earlier`` are the
    attempts before this one (ReFrame's retries and reruns), the first one first. ``phase`` is
    the phase in which it failed; ``metrics`` are as it recorded them. ``node`` is the node
    assigned by the scheduler, by the scheduler's name, or the host list of several; None
    without a scheduler, and for a job never placed. ``exit_code`` is that of its job, None
    without one, and ``failure`` why it failed, where a check distinguishes it.
    ``submitted`` and ``ended`` are when its job was started or queued, and when it ended, in
    seconds since the epoch; None without a job.
    """

    name: str
    system: str
    partition: str
    environ: str
    result: str
    reason: str | None
    tags: frozenset[str]
    folders: tuple[str, ...]
    earlier: tuple[Case, ...] = ()
    phase: str | None = None
    metrics: Mapping[str, MetricResult] = field(default_factory=dict, hash=False)
    node: str | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    submitted: float | None = None
    ended: float | None = None

    @cached_property
    def values(self) -> Mapping[str, tuple[float, str]]:
        """The value and the unit of each metric that has one."""
        return {
            name: (metric.value, metric.unit)
            for name, metric in self.metrics.items()
            if metric.value is not None
        }

    @property
    def failed_attempts(self) -> int:
        """Number of attempts that failed before the last one."""
        return sum(not (case.passed or case.skipped) for case in self.earlier)

    @property
    def outcome(self) -> str:
        """ReFrame's result, with the attempt's number where an earlier one failed."""
        if not self.failed_attempts:
            return self.result
        return f"{self.result} at attempt {len(self.earlier) + 1}"

    @property
    def passed(self) -> bool:
        """Whether the check succeeded."""
        return self.result in PASSED

    @property
    def why(self) -> list[str]:
        """Why it failed: of missed references the check's own sentences, else what ReFrame says."""
        reason = self.reason or ""
        sentences = own_sentences(reason) if self.phase == "performance" else []
        whole = " ".join(reason.split())
        if sentences or not whole:
            return sentences
        return [whole]

    @property
    def skipped(self) -> bool:
        """Whether the check did not run."""
        return self.result in SKIPPED

    @property
    def where(self) -> str:
        """The partition as ReFrame writes it: ``system:partition``."""
        return f"{self.system}:{self.partition}"

    @property
    def place(self) -> str:
        """Where it ran, for a sentence: ``system:partition``, and the node where known."""
        return f"{self.where} on {self.node}" if self.node else self.where

    @property
    def experiments(self) -> frozenset[str]:
        """The experiments among its tags; a check without any does not measure."""
        return self.tags & set(EXPERIMENTS)

    @property
    def results(self) -> Path | None:
        """The results folder that it is in."""
        parents = Path(next(iter(self.folders), "")).parents
        return next(
            (parent.parent for parent in parents if parent.name in ("output", "stage")), None
        )

    @property
    def document_path(self) -> Path | None:
        """The document of the run, else what a killed run left of it, else None."""
        for name in (DOCUMENT_NAME, PARTIAL_NAME):
            for folder in self.folders:
                path = f"{folder}/{name}"
                if os.path.isfile(path):  # noqa: PTH113 - a Path for each takes longer
                    return Path(path)
        return None


@dataclass(frozen=True)
class Session:
    """One call of ReFrame. Times are seconds since the epoch.

    ``outputs`` are the folders where the outputs of its checks may be, in order; ``reframe`` is
    ReFrame's version, and ``command`` its command line. For joined sessions ``command`` is the
    first one's, ``whole`` the set that all make together, and ``lacking`` says what is missing.
    ``report`` is None for a session that was killed or is still running, and for documents outside
    any session, which have no id: ``paths`` are their documents, and the cases those that the
    folders show (`folder.without_report`). ``stamp`` names its mark; empty where the report does
    not tell it.
    """

    id: str
    uuid: str
    report: Path | None
    hostname: str
    start: float
    end: float
    cases: tuple[Case, ...]
    data_version: str | None = None
    outputs: tuple[Path, ...] = ()
    reframe: str = ""
    command: str = ""
    whole: str | None = None
    lacking: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    stamp: str = ""

    @property
    def date(self) -> datetime:
        """The start in local time."""
        return datetime.fromtimestamp(self.start).astimezone()

    @property
    def nodes(self) -> tuple[str | None, ...]:
        """The nodes of its cases, in their order; None for cases with an unknown node."""
        return tuple(dict.fromkeys(case.node for case in self.cases))

    @property
    def choice(self) -> sets.Choice:
        """What selected its checks, and the set they make."""
        if self.whole is not None:
            return sets.Choice((), self.whole)
        return sets.chosen(self.command)

    @property
    def passed(self) -> int:
        """Number of cases that passed in their last attempt."""
        return sum(case.passed for case in self.cases)

    @property
    def skipped(self) -> int:
        """Number of cases that did not run."""
        return sum(case.skipped for case in self.cases)

    @property
    def retried(self) -> int:
        """Number of cases whose earlier attempt failed, whatever the last one's result."""
        return sum(case.failed_attempts > 0 for case in self.cases)

    @property
    def failed(self) -> int:
        """Number of cases that ran, or should have, and did not pass."""
        return len(self.cases) - self.passed - self.skipped


def read_report(path: Path, results: Path, node: str | None = None) -> Session:
    """Read one run report of ReFrame.

    :param path: the report.
    :param results: the results folder; if it was moved, documents are sought under its present
        place.
    :param node: the node of the results folder, if it has one.
    :raises InvalidInputError: when the report cannot be read or has another form.
    """
    report = parse_report(path)
    info = report.session_info
    return Session(
        id=path.stem,
        uuid=info.uuid,
        report=path,
        hostname=info.hostname,
        start=info.time_start_unix,
        end=info.time_end_unix,
        cases=tuple(_cases(report, results, node)),
        data_version=info.data_version,
        outputs=tuple(
            map(Path, _places(info.prefix_output, info.prefix_output, results, "output"))
        ),
        reframe=printable(info.version),
        command=printable(info.cmdline),
        whole=info.whole,
        lacking=tuple(map(printable, info.lacking)),
        stamp=info.stamp,
    )


def _cases(report: RunReport, results: Path, node: str | None) -> Iterator[Case]:
    attempts = []
    for run in report.runs:
        # An attempt is a run of ReFrame; the same name twice in one run is two cases.
        in_this_run: Counter[tuple[str, ...]] = Counter()
        for entry in run.testcases:
            unique = entry.unique_name or entry.display_name
            who = (unique, entry.system, entry.partition, entry.environ)
            in_this_run[who] += 1
            case = _case(entry, report.session_info, results, node)
            attempts.append(((*who, in_this_run[who]), case))
    for tried in grouped(attempts).values():
        # A pass on another node does not excuse a failure. Attempts without a node count with the
        # last one.
        by_node = grouped((attempt.node or tried[-1].node, attempt) for attempt in tried)
        for *earlier, last in by_node.values():
            yield replace(last, earlier=tuple(earlier)) if earlier else last


def _case(entry: TestCase, info: SessionInfo, results: Path, node: str | None = None) -> Case:
    """Return one attempt of a check, as a report describes it.

    :param results: the results folder, as of `read_report`; so is ``node``.
    """
    name, reason = printable(entry.display_name), entry.fail_reason
    submitted, ended = entry.job_submit_time, entry.job_completion_time_unix
    failure = FAILURES.get(entry.exception or "")
    if failure is not None and reason is not None:
        reason = reason.removeprefix(f"{failure.replace('-', ' ')} error: ")
    metrics = {}
    for key, values in (entry.perfvalues or {}).items():
        metric = key.rsplit(":", 1)[-1]
        metrics[RENAMED.get(metric, metric)] = values
    if reason is not None:
        for older, present in RENAMED.items():
            reason = reason.replace(older, present)
    return Case(
        name=DISTRIBUTED.sub("", name),
        system=entry.system,
        partition=entry.partition,
        environ=entry.environ,
        result=printable(entry.result),
        reason=None if reason is None else printable(reason),
        tags=frozenset(entry.tags),
        folders=tuple(_folders(entry, info, results)),
        phase=entry.fail_phase,
        metrics=metrics,
        node=_node(entry, name) or node,
        exit_code=entry.job_exitcode if isinstance(entry.job_exitcode, int) else None,
        failure=failure,
        submitted=submitted if not isinstance(submitted, str) else None,
        ended=ended if not isinstance(ended, str) else None,
    )


def _node(entry: TestCase, name: str) -> str | None:
    # The job's own list is empty for a distributed case that was never submitted.
    nodes = entry.job_nodelist if entry.scheduler and isinstance(entry.job_nodelist, list) else []
    # With the local scheduler --distribute knows one node, localhost, which is not a node's name;
    # several are those of a step.
    if entry.scheduler == _LOCAL and len(nodes) < 2:
        return None
    for match in DISTRIBUTED.finditer(name):
        if match["what"] == ".nid":
            return match["value"]
    return folded(nodes) if nodes else None


def _folders(entry: TestCase, info: SessionInfo, results: Path) -> Iterator[str]:
    # ReFrame keeps the files of a passed check in the output folder, of a failed one in the stage.
    output = _places(entry.outputdir, info.prefix_output, results, "output")
    stage = _places(entry.stagedir, info.prefix_stage, results, "stage")
    return chain(output, stage) if entry.result in PASSED else chain(stage, output)


def _places(recorded: str | None, base: str, results: Path, kind: str) -> Iterator[str]:
    """Return where a recorded folder may be: where the results are now, then where they were.

    The present place comes first, so that copied results are not read from the original. An archive
    has no other place: its report could name what is on this machine.

    :param recorded: the folder, as the report names it.
    :param base: ReFrame's prefix of it, whose last part is the session's own folder, or ``output``
        or ``stage`` where sessions have none.
    :param kind: the name of the present one in the results folder, ``output`` or ``stage``.
    """
    if not recorded:
        return
    if base and f"{recorded}/".startswith(f"{base}/"):
        last = base.rstrip("/").rpartition("/")[2]
        within = recorded[len(base) :].strip("/")
        if ".." in (last, *within.split("/")):
            return
        folder = f"{results}/{kind}" if last == kind else f"{results}/{kind}/{last}"
        present = f"{folder}/{within}"
        yield present
        if present == recorded:
            return
    if not archive.is_unpacked(results):
        yield recorded
