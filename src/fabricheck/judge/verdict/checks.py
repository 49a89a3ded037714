"""All checks of one node or partition: their joint result, and the missing checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core.text import count
from fabricheck.judge import coverage
from fabricheck.judge.verdict.attempts import Attempt, Tried, together
from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.site import partitions
from fabricheck.site.sets import Choice

#: The key of a check: ``system:partition``, environment, name.
Key = tuple[str, str, str]


def key(attempt: Attempt) -> Key:
    """Return the key of the check of an attempt."""
    case = attempt.case
    return (case.where, case.environ, attempt.check) if case else ("", "", attempt.check)


@dataclass(frozen=True)
class Checks:
    """The checks that ran, each once, and the choice of checks.

    recorded: by ``system:partition`` the checks that its sessions could select.
    """

    tried: Mapping[Key, Tried]
    choice: Choice
    recorded: Mapping[str, PartitionChecks]

    @classmethod
    def of(
        cls,
        attempts: Iterable[Attempt],
        choice: Choice,
        recorded: Mapping[str, PartitionChecks],
    ) -> Checks:
        """Return the checks of some attempts, which are in the order of their start."""
        found: dict[Key, list[Attempt]] = defaultdict(list)
        others: dict[str, dict[float, Finding]] = defaultdict(dict)
        for attempt in attempts:
            found[key(attempt)].append(attempt)
            if attempt.other_devices is not None and attempt.other_devices.rule.name == "setting":
                others[key(attempt)[0]][attempt.began] = attempt.other_devices
        tried = {each: together(each[2], own, others.get(each[0])) for each, own in found.items()}
        return cls(tried, choice, recorded)

    @property
    def partitions(self) -> list[str]:
        """The partitions, in the order of the cases."""
        return list(dict.fromkeys(where for where, _, _ in self.tried if where))

    @property
    def skipped(self) -> list[Tried]:
        """The checks that did not run."""
        return [one for one in self.tried.values() if one.skipped]

    @property
    def absent(self) -> list[str]:
        """The chosen checks that are missing."""
        return self.absent_of(self.choice.set)

    def absent_of(self, name: str | None) -> list[str]:
        """Return the checks of a set that their sessions could select and that are missing."""
        here = {(where, check.split()[0]) for where, _, check in self.tried}
        return [
            check
            for where in self.partitions
            if where in self.recorded
            for check in self.recorded[where].of_set(name)
            if (where, check) not in here
        ]

    def reasons(self) -> Iterator[Finding]:
        """Yield the reasons against PASS, except missing checks."""
        for one in self.tried.values():
            yield from one.reasons
        yield from self._lost()
        if all(one.skipped for one in self.tried.values()):
            yield finding("nothing-passed", "No check passed or failed.")

    def _lost(self) -> Iterator[Finding]:
        if self.choice.set is None:
            return
        for where in filter(self.recorded.__contains__, self.partitions):
            for said in self.recorded[where].losses(where):
                yield finding("missing", said)

    def unknown(self) -> Iterator[str]:
        """Yield a sentence for each partition whose checks or devices are unknown."""
        if self.choice.set is None:
            return
        for where in self.partitions:
            if where not in self.recorded:
                yield f"The checks that {where} should have are unknown: no session recorded them."
            if not partitions.known(where):
                why = partitions.why_unknown(where)
                yield f"The devices that {where} should have are unknown. {why}"


def missing(names: Sequence[str], where: str) -> Finding:
    """Return the finding on checks that should have run in a partition and are missing."""
    listed = ", ".join(names)
    said = f"{count(len(names), 'check')} missing that should have run {where}: {listed}."
    return finding("missing", said)


def why_skipped(tried: Tried) -> str:
    """Return why a check was skipped, from its experiment; reports do not state the reason."""
    case = tried.attempts[0].case
    for experiment in coverage.experiments():
        if case is not None and experiment.id in case.experiments and experiment.skipped:
            return experiment.skipped
    return "the report does not give the reason"


def choice_of(choices: Iterable[Choice]) -> Choice:
    """Return the choice of checks of all sessions: the set that all of them ran as a whole.

    Each job of a pipeline runs one check by its name, so several such sessions form no set.
    """
    each = dict.fromkeys(choices)
    if len(each) == 1:
        return next(iter(each))
    return Choice(tuple(dict.fromkeys(word for one in each for word in one.words)), None)
