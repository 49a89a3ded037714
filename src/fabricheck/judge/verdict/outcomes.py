"""What all attempts of a check on one node come to together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricheck.core.grouping import grouped
from fabricheck.judge import coverage
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.rules import RULES, TIMES, Finding, Way, finding
from fabricheck.site.sets import Choice

#: The most sentences of one attempt; a broken device has hundreds.
MOST = 8

#: The rules of limits, which are those of the devices that a partition states.
_OF_LIMITS = frozenset({"reference", "peers", "at-times"})


@dataclass(frozen=True)
class CheckOutcome:
    """All attempts of one check on one node, in the order of their start, and their joint result.

    reasons: why they did not pass. notes: what must be known after a pass.
    """

    attempts: Sequence[Attempt]
    reasons: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def check(self) -> str:
        """The name of the check."""
        return self.attempts[0].check

    @property
    def skipped(self) -> bool:
        """Whether it never ran."""
        return all(attempt.skipped for attempt in self.attempts)


def joint_outcome(attempts: Sequence[Attempt], others: Mapping[float, Finding]) -> CheckOutcome:
    """Return the joint result of several attempts of a check on one node.

    Passes do not excuse what failed since the last one twice in the same way.

    :param attempts: at least one, in the order of their start.
    :param others: by the start of a session, that a check of it found other devices than stated,
        which makes its limits meaningless.
    """
    passed = [number for number, attempt in enumerate(attempts) if attempt.passed]
    ran = [attempt for attempt in attempts if not attempt.skipped]
    last_pass = passed[-1] if passed else -1
    since = attempts[last_pass + 1 :]
    broken = any(times >= TIMES for times in failures(since).values())
    reasons: list[Finding] = []
    notes: list[str] = []
    for number, attempt in enumerate(attempts):
        # Whether no pass speaks for the check, so that what failed counts as it is.
        unexcused = not passed or (broken and number > last_pass)
        for worst in _worst(attempt):
            decisive = _decisive(worst, attempt, others)
            beside = decisive.rule.beside_a_pass
            if unexcused:
                reasons.append(decisive)
            elif beside is None and number < last_pass:
                notes.append(f"An earlier attempt did not count: {decisive.with_check}")
            elif beside is None:
                reasons.append(decisive)
            elif beside == "UNSTABLE":
                times = f"passed {len(passed)} of {len(ran)} times"
                sentence = f"{times}; at time {ran.index(attempt) + 1}: {decisive.sentence}"
                reasons.append(finding("varies", sentence, attempt.check, decisive.metric))
            else:
                reasons.append(replace(decisive, status=beside))
    reasons = _as_peers(reasons, since)
    return CheckOutcome(attempts, tuple(_each_once(reasons)), tuple(notes))


def _decisive(worst: Finding, attempt: Attempt, others: Mapping[float, Finding]) -> Finding:
    """Return what counts of an attempt: of a limit in a session of other devices, only these."""
    if worst.rule.name in _OF_LIMITS and attempt.began in others:
        return others[attempt.began]
    return worst


def _as_peers(reasons: Sequence[Finding], since: Iterable[Attempt]) -> list[Finding]:
    """Return the reasons, where a missed reference is of the rule of peers if it is so each time.

    :param since: the attempts since the last pass.
    """
    times_far: Counter[Way] = Counter()
    for attempt in since:
        times_far.update(each.way for each in attempt.findings if each.far_behind_peers)
    judged = []
    for reason in reasons:
        if reason.rule.name == "reference" and times_far[reason.way] >= TIMES:
            judged.append(replace(reason, rule=RULES["peers"]))
        else:
            judged.append(reason)
    return judged


def _each_once(reasons: Iterable[Finding]) -> list[Finding]:
    """Return reasons once each: of a limit that several attempts missed, that of the last one."""
    last: dict[object, Finding] = {}
    for reason in reasons:
        missed = reason.rule.name in _OF_LIMITS and reason.metric is not None
        last[reason.way if missed else reason] = reason
    return list(last.values())


def _worst(attempt: Attempt) -> Iterator[Finding]:
    """Yield the worst findings of an attempt, and how many more there are."""
    yield from attempt.findings[:MOST]
    more = len(attempt.findings) - MOST
    if more > 0:
        yield replace(
            finding(attempt.findings[MOST].rule.name, f"And {more} more.", attempt.check),
            stands_for=more,
        )


def failures(attempts: Sequence[Attempt]) -> dict[Way, int]:
    """Return by way how many attempts failed so, those of a missed limit on a common device.

    The devices of an attempt without a document are unknown, and agree with any.
    """
    devices_of_ways: dict[Way, list[frozenset[int]]] = defaultdict(list)
    for attempt in attempts:
        of_attempt = grouped((finding.way, finding.devices) for finding in attempt.findings)
        for way, devices in of_attempt.items():
            devices_of_ways[way].append(frozenset().union(*devices))
    times = {}
    for way, devices_of_attempts in devices_of_ways.items():
        last = devices_of_attempts[-1]
        times[way] = sum(_agree(devices, last) for devices in devices_of_attempts)
    return times


def _agree(devices: frozenset[int], others: frozenset[int]) -> bool:
    """Whether two attempts failed on a common device, as far as both are known."""
    return not devices or not others or not devices.isdisjoint(others)


#: The key of a check: ``system:partition``, environment, name.
Key = tuple[str, str, str]


def key(attempt: Attempt) -> Key:
    """Return the key of the check of an attempt."""
    case = attempt.case
    return (case.where, case.environ, attempt.check) if case else ("", "", attempt.check)


def joint_outcomes(attempts: Iterable[Attempt]) -> Mapping[Key, CheckOutcome]:
    """Return by check the joint result of its attempts, all in the order of their start."""
    by_check = grouped((key(attempt), attempt) for attempt in attempts)
    others: dict[str, dict[float, Finding]] = defaultdict(dict)
    for (where, _, _), of_check in by_check.items():
        for attempt in of_check:
            other = attempt.other_devices
            if other is not None and other.rule.name == "setting":
                others[where][attempt.began] = other
    return {
        check: joint_outcome(of_check, others[check[0]]) for check, of_check in by_check.items()
    }


def why_skipped(outcome: CheckOutcome) -> str:
    """Return why a check was skipped, from its experiment; reports do not state the reason."""
    case = outcome.attempts[0].case
    reasons = (
        experiment.skipped
        for experiment in coverage.experiments()
        if case is not None and experiment.id in case.experiments and experiment.skipped
    )
    return next(reasons, "the report does not give the reason")


def choice_of(choices: Iterable[Choice]) -> Choice:
    """Return the choice of checks of all sessions: the set that all of them ran as a whole.

    Each job of a pipeline runs one check by its name, so several such sessions form no set.
    """
    each = dict.fromkeys(choices)
    if len(each) == 1:
        return next(iter(each))
    return Choice(tuple(dict.fromkeys(word for choice in each for word in choice.words)), None)
