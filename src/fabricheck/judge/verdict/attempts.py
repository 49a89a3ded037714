"""The findings of one attempt of a check, and of all its attempts on one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fabricheck.core.vocabulary import STATUS_OF_EXIT
from fabricheck.judge.verdict.rules import Finding, finding, in_order
from fabricheck.results import failures, killed, made_of, settings, state
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.run_report import Judged
from fabricheck.results.session import Case
from fabricheck.rfm.run_match import verification_faults
from fabricheck.site import partitions

#: The most sentences of one attempt; a broken device has hundreds.
MOST = 8

#: Exceptions of `fabricheck.rfm.exceptions`, which reads ReFrame; reports contain their names.
OTHER_DEVICES, ENDED_BY_SCHEDULER = "OtherDevicesError", "EndedBySchedulerError"
SETTING, DOUBTED = "SettingError", "DoubtedValueError"

#: Phases of ReFrame in which a result existed and was judged.
JUDGING = frozenset({"sanity", "performance"})

#: The result of a case that ReFrame stopped (Ctrl-C, --duration, --maxfail).
ABORTED = "abort"

#: Meanings of ReFrame's reason for stopping ("aborted due to ...").
_ABORTED_BY = {
    "KeyboardInterrupt": "a user ended it (Ctrl-C)",
    "RunSessionTimeout": "its time limit (--duration) had passed",
    "FailureLimitError": "as many checks as --maxfail allows had failed",
    "ForceExitError": "a signal ended it",
}

#: The rule of a program's status. A killed program leaves the status running.
_RULE_OF_STATUS = {
    "wrong-data": "wrong-data",
    "device-error": "device-error",
    "software": "software",
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
        found = in_order(self._findings())
        more = len(found) - MOST
        if more > 0:
            found[MOST:] = [self._say(found[MOST].rule.name, f"And {more} more.")]
        return tuple(found)

    def _findings(self) -> Iterator[Finding]:
        if self.skipped:
            return
        by_program = list(self._of_program())
        if self._cancelled:
            # The output of a program that was stopped with its job adds nothing.
            by_program = [one for one in by_program if one.rule.name != "ended"]
        yield from by_program
        for errors in state.uncorrected_errors(self.document) if self.document else ():
            yield self._say("memory-errors", state.sentence(errors))
        case = self.case
        if case is None or case.result == killed.RESULT:
            if not by_program:
                yield self._say("not-judged", self._problem() or "no run report has it")
        elif not case.passed:
            yield from self._of_failed(case, bool(by_program))
        elif self._problem() and case.experiments:
            yield self._say("no-document", self._problem() or "")

    @property
    def _cancelled(self) -> bool:
        case = self.case
        return case is not None and (case.result == ABORTED or case.error == ENDED_BY_SCHEDULER)

    def _say(self, rule: str, because: str, metric: str | None = None) -> Finding:
        return finding(rule, because, self.check, metric)

    def _measured(
        self, rule: str, because: str, metric: str | None, devices: state.Devices
    ) -> Finding:
        """Return a finding on a measured value; other jobs on the node excuse the node.

        :param devices: those that take part; None if unknown.
        """
        if self.document is None:
            return self._say(rule, because, metric)
        others = state.disturbances(self.document, devices)
        because = state.joined(because, state.slowdowns(self.document, devices))
        if others:
            rule = "device-in-use" if isinstance(others[0], state.Use) else "host-busy"
            because = state.in_front(because, others)
        return self._say(rule, because, metric)

    def _missed_reference(self, because: str, metric: str, judged: Judged) -> Finding:
        """Return the finding on a missed metric; one that some samples reached is slow at times."""
        series = self._decisive(metric)
        devices = None
        if series and self.document is not None:
            devices = state.devices_of(series, self.document)
        found = self._measured("reference", because, metric, devices)
        if found.rule.name != "reference" or not series or self.case is None:
            return found
        if self.document is not None and state.slowdowns(self.document, devices):
            return found
        value, _ = self.case.values[metric]
        reached, samples = made_of.reached(series, value, judged.least, judged.most)
        if not made_of.is_at_times(reached, samples):
            return found
        said = f"{found.sentence.removesuffix('.')}; {reached} of {samples} samples reached it."
        return self._say("at-times", said, metric)

    def _decisive(self, metric: str) -> list[Series]:
        """Return the series that decided a metric; none if they are unknown."""
        made = self.entry.metrics_made_of.get(metric) if self.entry is not None else None
        if made is None or self.document is None or self.case is None or not made.series:
            return []
        value, _ = self.case.values[metric]
        return made.decisive(self.document, value)

    @cached_property
    def caveats(self) -> list[state.Cause]:
        """Return conditions that may have slowed or disturbed its values and are not findings."""
        causes = state.causes(self.document) if self.document is not None else []
        return [
            cause
            for cause in causes
            if not any(state.told(one.sentence, cause) for one in self.findings)
        ]

    def _problem(self) -> str | None:
        return str(self.entry.problem) if self.entry and self.entry.problem else None

    def _of_program(self) -> Iterator[Finding]:
        """Yield the errors that the program itself reports."""
        document = self.document
        if document is None:
            code = self.case.exit_code if self.case is not None else None
            status = STATUS_OF_EXIT.get(code or 0, "good")
            # Without a document these mean nothing: any command may return their exit codes.
            meaningless = ("good", "software", "device-error", "tool")
            if status not in meaningless and self.case is not None:
                yield self._say(_RULE_OF_STATUS[status], self.case.reason or f"it is {status}")
            return
        outcome = document["outcome"]
        status = outcome["status"]
        wrong = [
            self._say("wrong-data", sentence)
            for series in document["series"]
            if series["verification"]["errors"]
            for sentence in verification_faults(document, series)
        ]
        yield from wrong
        if status == "good" or (status == "wrong-data" and wrong):
            return
        rule = _RULE_OF_STATUS[status]
        # `fabricheck nics` uses no device: it reads the kernel's files, and runs others' loopback.
        nics = document["program"]["name"] == "nics"
        said = self._outcome(document)
        if status == "unsupported" and not nics and self._lacks_devices(document):
            hidden = settings.hiding_devices(document)
            rule, said = ("setting", f"{hidden} {said}") if hidden else ("devices", said)
        if rule == "too-noisy":
            noisy = [one for one in document["series"] if one["noisy"]]
            yield self._measured(rule, said, None, state.devices_of(noisy, document))
        else:
            yield self._say(rule, said)

    def _outcome(self, document: ResultDocument) -> str:
        said = document["outcome"]["message"]
        node = document["host"].get("scheduler_node") or document["host"]["hostname"]
        status = document["outcome"]["status"]
        program = document["program"]["name"]
        if status == "running":
            return (
                f"{program} on node {node} was killed, or is still running: its result is "
                "incomplete"
            )
        return f"{program} on node {node} ended with {status}: {said or 'no message'}"

    def _lacks_devices(self, document: ResultDocument) -> bool:
        """Whether there are fewer devices than the site states; False if it states none."""
        # A simulated node without devices is a file that could not be read.
        if self.case is None or (document["clock"] == "simulated" and not document["devices"]):
            return False
        stated: Sequence[dict[str, Any]] = partitions.known(self.case.where).get("devices", ())
        wanted: int = sum(one.get("num_devices", 0) for one in stated)
        return len(document["devices"]) < wanted

    def _of_failed(self, case: Case, explained: bool) -> Iterator[Finding]:
        reason = case.reason or "ReFrame gives no reason"
        if case.result == ABORTED:
            yield self._say("cancelled", _why_aborted(reason))
        elif self._cancelled:
            yield self._say("cancelled", reason)
        elif case.error == OTHER_DEVICES:
            yield self._say("devices", reason)
        elif case.error == SETTING:
            yield self._say("setting", reason)
        elif case.phase == "performance" or _missed(case):
            yield from self._of_metrics(case, reason)
        elif explained:
            return
        elif case.phase == "sanity":
            rule, said = self._of_sanity(case, reason)
            if rule == "not-believed" and case.error == DOUBTED:
                said = said.removeprefix("doubted value error: ")  # The class name in ReFrame.
                yield self._measured(rule, said, None, None)
            else:
                yield self._say(rule, said)
        elif case.phase is not None and case.phase not in JUDGING:
            ran = case.phase in ("cleanup", "finalize")
            yield self._say("failed" if ran else "not-started", f"({case.phase}) {reason}")
        else:
            yield self._say("failed", reason)

    def _of_sanity(self, case: Case, reason: str) -> tuple[str, str]:
        if not case.experiments:
            return "failed", reason
        if case.exit_code not in (0, None):
            return "ended", reason
        if self.document is None:
            return "no-document", self._problem() or reason
        return "not-believed", reason

    def _of_metrics(self, case: Case, reason: str) -> Iterator[Finding]:
        failed = _missed(case)
        if not failed:
            yield self._say("no-value", reason)
        for name, judged in failed.items():
            rule = self._rule_of(case, name)
            own = [failures.of_metric(reason, name) or ""]
            if rule in ("topology", "nics") and self.document is not None:
                own = self.document.get("differences") or own
            elif rule != "reference" and not own[0]:
                own = failures.sentences(reason) or own
            for said in own:
                because = said or _beside_limit(case, name, judged)
                if rule == "reference":
                    yield self._missed_reference(because, name, judged)
                else:
                    yield self._say(rule, because, name)

    @staticmethod
    def _rule_of(case: Case, metric: str) -> str:
        _, unit = case.values.get(metric, (0.0, ""))
        if unit == "count":
            for experiment, rule in _RULE_OF_COUNT.items():
                if experiment in case.experiments:
                    return rule
        return "reference"


def _why_aborted(reason: str) -> str:
    """Return why a session ended before a check, with the meaning of ReFrame's reason."""
    for name, meaning in _ABORTED_BY.items():
        if name in reason:
            return f"The session ended before the check did: {meaning}."
    return reason


def _missed(case: Case) -> dict[str, Judged]:
    return {name: one for name, one in case.judged.items() if one.result == "fail"}


def _beside_limit(case: Case, metric: str, judged: Judged) -> str:
    value, unit = case.values.get(metric, (float("nan"), ""))
    below = judged.least is not None and value < judged.least
    limit = f"at least {judged.least:g}" if below else f"at most {judged.most}"
    return f"Metric {metric}: it is {value:g} {unit}; {limit} {unit} is required."


@dataclass(frozen=True)
class Tried:
    """All attempts of one check on one node, in the order of their start, and their joint result.

    reasons: why they did not pass. notes: what must be known after a pass.
    """

    check: str
    attempts: tuple[Attempt, ...]
    reasons: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def skipped(self) -> bool:
        """Whether it never ran."""
        return all(attempt.skipped for attempt in self.attempts)


def together(check: str, attempts: Sequence[Attempt]) -> Tried:
    """Return the joint result of several attempts of a check on one node.

    :param attempts: at least one, in the order of their start.
    """
    passed = [number for number, one in enumerate(attempts) if one.passed]
    ran = [one for one in attempts if not one.skipped]
    reasons: list[Finding] = []
    notes: list[str] = []
    for number, attempt in enumerate(attempts):
        for found in attempt.findings:
            beside = found.rule.beside_a_pass
            if not passed:
                reasons.append(found)
            elif beside is None and number < passed[-1]:
                notes.append(f"An earlier attempt did not count: {found.told}")
            elif beside == "UNSTABLE":
                times = f"passed {len(passed)} of {len(ran)} times"
                said = f"{times}; at time {ran.index(attempt) + 1}: {found.sentence}"
                reasons.append(finding("varies", said, check, found.metric))
            else:
                reasons.append(replace(found, status=beside or found.status))
    return Tried(check, tuple(attempts), tuple(dict.fromkeys(reasons)), tuple(notes))
