"""The findings of one attempt of a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fabricheck.core.nodelists import is_several
from fabricheck.core.vocabulary import STATUS_OF_EXIT
from fabricheck.judge.verdict import counters
from fabricheck.judge.verdict.rules import ISOLATING, Finding, finding, in_order
from fabricheck.results import metric_records, observed, settings, state, table
from fabricheck.results.causes import Cause, Use, sentence_of, with_causes
from fabricheck.results.entry import Entry, scheduled_node
from fabricheck.results.model import ResultDocument, node_name
from fabricheck.results.other_devices import explained
from fabricheck.results.rows import Metric
from fabricheck.results.run_report import Failure, missed_limit, own_sentences
from fabricheck.results.series import Noise, has_runtime
from fabricheck.results.session import UNREPORTED, Case
from fabricheck.rfm.acceptance import verification_faults
from fabricheck.rfm.metrics import where_measured
from fabricheck.site import partitions

#: The rules of why a check failed; a doubted value may be excused.
_RULE_OF_FAILURE: Mapping[Failure | None, str] = {
    "ended-by-scheduler": "cancelled",
    "other-devices": "devices",
    "setting": "setting",
    "time-over": "time-limit",
}


#: Signals by which a program ends through its own fault or its device's (128 + n as an exit code):
#: abort, arithmetic, invalid address. Not an illegal instruction, which another processor's build
#: has, nor a bus error, which a full /dev/shm causes. Others come from outside.
CRASHES = frozenset({128 + n for n in (6, 8, 11)})

#: What values vary by where the cores of the host move the data.
_BY_HOST: frozenset[Noise] = frozenset({"moved by the host", "host"})

#: A member whose value is at most this part of its peers', in percent, is behind them for sure: a
#: link that trained at half its width has 50.
FAR_BEHIND_PEERS = 80.0

#: The result of a case that ReFrame stopped (Ctrl-C, --duration, --maxfail).
ABORTED = "abort"

#: Meanings of ReFrame's reason for stopping ("aborted due to ...").
_ABORTED_BY = {
    "KeyboardInterrupt": "a user ended it (Ctrl-C)",
    "RunSessionTimeout": "its time limit (--duration) had passed",
    "FailureLimitError": "as many checks as --maxfail allows had failed",
    "ForceExitError": "a signal ended it",
}


def _aborted(reason: str) -> str:
    """Return why ReFrame stopped before a check ended; its own words where they are not known."""
    for name, meaning in _ABORTED_BY.items():
        if name in reason:
            return f"The session ended before the check did: {meaning}."
    return reason


#: The rule of a program's status. A killed program leaves the status running.
_RULE_OF_STATUS = {
    "wrong-data": "wrong-data",
    "device-error": "device-error",
    "software": "software",
    "refused": "refused",
    "tool": "tool",
    "too-noisy": "too-noisy",
    "time-limit": "time-limit",
    "usage": "usage",
    "unsupported": "usage",
    "setting": "setting",
    "interrupted": "ended",
    "running": "ended",
}

#: The rule of a metric that counts events, by its experiment; all other metrics are speeds.
_RULE_OF_COUNT = {
    "E13": "topology",
    "E15": "placement",
    "E12": "unverified",
    "E16": "nics",
    "E17": "network",
}


@dataclass(frozen=True)
class Attempt:
    """One attempt of a check.

    check: its name without the node and the number of the repetition. began: in s since 1970.
    """

    check: str
    case: Case | None
    entry: Entry | None
    began: float

    @property
    def passed(self) -> bool:
        """Whether ReFrame says that it passed, and nothing contradicts this."""
        return self.case is not None and self.case.passed and not self.findings

    @property
    def skipped(self) -> bool:
        """Whether the check did not run."""
        return self.case is not None and self.case.skipped

    @property
    def document(self) -> ResultDocument | None:
        """Its document, if it can be read."""
        return self.entry.document if self.entry is not None else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The reasons why it did not pass, the worst first; empty if it passed or was skipped."""
        return tuple(in_order(self._findings()))

    def _findings(self) -> Iterator[Finding]:
        if self.skipped:
            return
        by_program = list(self._of_program())
        if self.other_devices is not None:
            # What it measured is of other devices than its limits: only evidence counts.
            yield self.other_devices
            yield from (each for each in by_program if each.rule.evidence is not None)
            yield from self._of_hardware()
            return
        if self._was_stopped:
            # The output of a program that was stopped with its job adds nothing.
            by_program = [each for each in by_program if each.rule.name != "ended"]
        yield from by_program
        yield from self._of_hardware()
        for metric in self._not_numbers:
            what = f"{metric.metric} = {metric.value}"
            yield self._say("no-value", f"its value {what} is not a number", metric.metric)
        yield from self._of_case(bool(by_program))

    @property
    def _was_stopped(self) -> bool:
        """Whether ReFrame or the scheduler ended it."""
        if self.case is None:
            return False
        return self.case.result == ABORTED or self.case.failure == "ended-by-scheduler"

    def _of_hardware(self) -> Iterator[Finding]:
        """Yield what the driver and the kernel say of hardware."""
        if self.document is not None:
            yield from counters.findings(self.document, self.check)

    def _of_case(self, explained: bool) -> Iterator[Finding]:
        """Yield why ReFrame did not let it pass, or what its pass lacks.

        :param explained: whether its program says so already.
        """
        case = self.case
        if case is None or case.result == UNREPORTED:
            if not explained:
                yield self._say("not-judged", self._problem or "no run report has it")
        elif not case.passed:
            yield from self._of_failed(case, explained)
        elif self._problem and case.experiments:
            yield self._say("no-document", self._problem)

    @cached_property
    def other_devices(self) -> Finding | None:
        """The finding on devices that are not those of the partition; None if they are."""
        document, case = self.document, self.case
        if document is None or case is None or not has_runtime(document):
            return None
        name, ran_with = document["program"]["name"], document["program"]["runtime"]
        runtime = partitions.runtime_of(case.where, case.environ)
        if runtime is not None and ran_with != runtime:
            return self._say(
                "not-believed",
                f"{name} ran with runtime {ran_with}; environment {case.environ} states "
                f"{runtime}: its folder of programs is that of another runtime.",
            )
        if is_several(scheduled_node(document) or ""):
            return None
        node = observed.node_of(case.where, [document], case)
        number = None
        if document["outcome"]["status"] == "unsupported" or case.failure == "other-devices":
            # The document has all devices; that of a benchmark has those that it used.
            number = len(node.devices) if node is not None else _devices_of(case.where)
        why = explained(document, number or None, node)
        if why is None:
            return None
        if why.kind == "refused":
            return self._say("refused", why.sentence)
        rules = {"setting": "setting", "lost": "lost", "unexplained": "devices"}
        # It is of the node, whichever check finds it.
        return finding(rules[why.kind], why.sentence)

    def _say(self, rule: str, because: str, metric: str | None = None) -> Finding:
        result = finding(rule, because, self.check, metric)
        crashed = self.case is not None and self.case.exit_code in CRASHES
        alone = self.document is None or not state.disturbances(self.document)
        isolates = rule in ISOLATING and (rule != "ended" or crashed) and alone
        return replace(result, isolates=isolates)

    def _measured(
        self,
        rule: str,
        because: str,
        metric: str | None = None,
        devices: state.Devices = None,
        others_named: bool = False,
    ) -> Finding:
        """Return a finding on a measured value; other jobs on the node excuse the node.

        :param because: without causes, but for those that ``others_named`` says.
        :param devices: those that take part; None if unknown.
        :param others_named: whether it names the other jobs.
        """
        if self.document is None:
            return self._say(rule, because, metric)
        others = state.disturbances(self.document, devices)
        slowdowns = state.slowdowns(self.document, devices)
        because = with_causes(because, slowdowns, addresses=metric is None)
        if others:
            rule = "device-in-use" if isinstance(others[0], Use) else "host-busy"
        if not others_named:
            because = " ".join([*map(sentence_of, others), because])
        causes = frozenset(cause.key for cause in (*others, *slowdowns))
        return replace(self._say(rule, because, metric), causes=causes)

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Its metrics by name."""
        row = table.check_row(None, self.case, self.entry)
        return {metric.metric: metric for metric in table.metrics(row)}

    def _statement(self, metric: Metric, reached: str = "") -> str:
        """Return the sentence on a missed limit: the place, the value and the limit."""
        where = "the check"
        if self.document is not None:
            where = where_measured(self.document, metric.decisive_series)
        compared = metric.record.compared if metric.record is not None else ""
        return missed_limit(metric.metric, where, metric.recorded, compared, reached)

    def _missed_reference(self, metric: Metric) -> Finding:
        """Return the finding on a missed metric; one that some samples reached is slow at times."""
        series, name = metric.decisive_series, metric.metric
        devices = None
        if series and self.document is not None:
            devices = state.devices_of(series, self.document)
        miss = self._measured("reference", self._statement(metric), name, devices)
        far = self._is_far_behind_peers(metric)
        miss = replace(miss, devices=frozenset(devices or ()), far_behind_peers=far)
        if miss.rule.name != "reference" or not series or metric.value is None:
            return miss
        if metric.noise in _BY_HOST and self.cores is not None and self.cores.few:
            return self._say("setting", f"{self._statement(metric)} {self.cores.sentence}", name)
        if metric.least is None and metric.most is None:
            return miss
        if self.document is not None and state.slowdowns(self.document, devices):
            return miss
        reached, samples = metric_records.reached(series, metric.value, metric.least, metric.most)
        if not metric_records.is_at_times(reached, samples):
            return miss
        often = f"; {reached} of {samples} samples reached it"
        return self._say("at-times", self._statement(metric, often), name)

    def _is_far_behind_peers(self, metric: Metric) -> bool:
        """Whether a member is so far behind its peers that no noise explains it.

        Only where the document would show other jobs on the devices.
        """
        if metric.reduce != "peers" or metric.value is None or self.document is None:
            return False
        simulated = self.document["clock"] == "simulated"
        if not simulated and not state.shows_others(self.document):
            return False
        return metric.value <= FAR_BEHIND_PEERS

    @cached_property
    def cores(self) -> settings.FewerCores | None:
        """The cores of a program that had fewer than its node; None if it had all."""
        document, case = self.document, self.case
        if document is None or case is None:
            return None
        model = observed.node_of(case.where, [document], case)
        usable = [] if model is None else model.usable_cores
        cores = settings.fewer_cores(document, usable)
        stated = _cores_of(case.where)
        if cores is not None and stated is not None and cores.allowed >= stated:
            return None
        return cores

    @property
    def not_intended(self) -> list[str]:
        """The variables, with their values, that can explain its missed limits and that neither the
        check nor its site set; empty if it missed none.
        """
        if self.document is None or self.entry is None or not self._missed:
            return []
        return list(settings.named(self.document, self.entry.not_intended))

    @cached_property
    def caveats(self) -> list[Cause]:
        """Return conditions that may have slowed or disturbed its values and are not findings."""
        causes = state.causes(self.document) if self.document is not None else []
        known = {key for finding in self.findings for key in finding.causes}
        return [cause for cause in causes if cause.key not in known]

    @property
    def _problem(self) -> str | None:
        return str(self.entry.problem) if self.entry and self.entry.problem else None

    def _of_data(self, document: ResultDocument) -> Iterator[Finding]:
        """Yield a finding for each series with wrong data."""
        wrong = [series for series in document["series"] if series["verification"]["errors"]]
        # A sum has the errors of its shares.
        copies = sum(series["role"] != "sum" for series in wrong)
        moved_by_us = all(series["engine"] not in ("mpi", "rccl") for series in wrong)
        rule = "wrong-data-twice" if copies > 1 and moved_by_us else "wrong-data"
        for series in wrong:
            for sentence in verification_faults(document, series):
                yield self._say(rule, sentence)

    def _of_program(self) -> Iterator[Finding]:
        """Yield the errors that the program itself reports."""
        document = self.document
        if document is None:
            yield from self._of_exit_code()
            return
        status, message = document["outcome"]["status"], document["outcome"]["message"]
        wrong = list(self._of_data(document))
        yield from wrong
        if status == "good" or (status == "wrong-data" and wrong):
            return
        rule = _RULE_OF_STATUS[status]
        ran = f"{document['program']['name']} on node {node_name(document['host'])}"
        sentence = f"{ran} ended with {status}: {message or 'no message'}"
        if rule == "too-noisy":
            noisy = [series for series in document["series"] if series["noisy"]]
            yield self._measured(rule, sentence, devices=state.devices_of(noisy, document))
        elif status == "running":
            code = self.case.exit_code if self.case is not None else None
            by = "killed, or is still running"
            if code is not None and code in CRASHES:
                by = f"ended by signal {code - 128}"
            yield self._say(rule, f"{ran} was {by}: its result is incomplete")
        else:
            yield self._say(rule, sentence)

    def _of_exit_code(self) -> Iterator[Finding]:
        """Yield what the exit code of a program without a document means."""
        if self.case is None:
            return
        status = STATUS_OF_EXIT.get(self.case.exit_code or 0, "good")
        # Without a document these mean nothing: any command may return their exit codes.
        if status not in ("good", "software", "device-error", "tool", "refused"):
            yield self._say(_RULE_OF_STATUS[status], self.case.reason or f"it is {status}")

    def _of_failed(self, case: Case, explained: bool) -> Iterator[Finding]:
        reason = case.reason or "ReFrame gives no reason"
        rule = _RULE_OF_FAILURE.get(case.failure)
        if case.result == ABORTED:
            yield self._say("cancelled", _aborted(reason))
        elif rule is not None:
            yield self._say(rule, reason)
        elif case.phase == "performance" or self._missed:
            yield from self._of_metrics(case, reason)
        elif explained:
            return
        elif case.phase == "sanity":
            yield self._of_sanity(case, reason)
        elif case.phase in ("cleanup", "finalize"):
            yield self._say("failed", f"({case.phase}) {reason}")
        elif case.phase is not None:
            yield self._say("not-started", f"({case.phase}) {reason}")
        else:
            yield self._say("failed", reason)

    def _of_sanity(self, case: Case, reason: str) -> Finding:
        """Return why a check failed that ran, but left no result that can be believed."""
        if not case.experiments:
            return self._say("failed", reason)
        if case.exit_code not in (0, None):
            return self._say("ended", reason)
        if self.document is None:
            return self._say("no-document", self._problem or reason)
        if case.failure == "doubted-value":
            return self._measured("not-believed", reason, others_named=True)
        return self._say("not-believed", reason)

    def _of_metrics(self, case: Case, reason: str) -> Iterator[Finding]:
        if not self._missed and not self._not_numbers:
            yield self._say("no-value", reason)
        of_counts = [rule for name, rule in _RULE_OF_COUNT.items() if name in case.experiments]
        for metric in self._missed:
            is_count = metric.value is not None and metric.unit == "count"
            if is_count and of_counts:
                yield from self._of_count(metric, of_counts[0], reason)
            else:
                yield self._missed_reference(metric)

    def _of_count(self, metric: Metric, rule: str, reason: str) -> Iterator[Finding]:
        """Yield the events that a metric counts: each difference by itself, where they are known.

        :param rule: of such events.
        :param reason: why the check failed.
        """
        differences = self.document.get("differences") if self.document is not None else None
        if rule in ("topology", "nics") and differences:
            for difference in differences:
                if not difference["lost"]:
                    yield counters.differs(rule, difference, self.check, metric.metric)
            return
        stated: list[str] = []
        if rule in ("topology", "nics", "placement"):
            stated = own_sentences(reason)
        for sentence in stated or [self._statement(metric)]:
            yield self._say(rule, sentence, metric.metric)

    @property
    def _missed(self) -> list[Metric]:
        return [
            metric
            for metric in self.metrics.values()
            if metric.judged == "fail" and metric not in self._not_numbers
        ]

    @property
    def _not_numbers(self) -> list[Metric]:
        return [
            metric
            for metric in self.metrics.values()
            if metric.value is not None and not metric.recorded.is_finite
        ]


def _devices_of(where: str) -> int:
    """Return the number of devices that the site file states of a partition."""
    return sum(device["num_devices"] for device in partitions.known(where).get("devices", ()))


def _cores_of(where: str) -> int | None:
    """Return the number of cores that the site file states of a partition; None if it does not."""
    processor: Mapping[str, int] = partitions.known(where).get("processor", {})
    return processor.get("num_cpus")
