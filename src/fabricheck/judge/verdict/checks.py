"""All checks of one node or partition: their joint result, and the missing checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core.text import count
from fabricheck.judge import coverage
from fabricheck.judge.verdict.attempts import Attempt, Tried, together
from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.results import split_checks
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
    """The checks that ran, each once, and the choice of checks."""

    tried: Mapping[Key, Tried]
    choice: Choice

    @classmethod
    def of(cls, attempts: Iterable[Attempt], choice: Choice) -> Checks:
        """Return the checks of some attempts, which are in the order of their start."""
        found: dict[Key, list[Attempt]] = defaultdict(list)
        others: dict[str, dict[float, Finding]] = defaultdict(dict)
        for attempt in attempts:
            found[key(attempt)].append(attempt)
            if attempt.other_devices is not None and attempt.other_devices.rule.name == "setting":
                others[key(attempt)[0]][attempt.began] = attempt.other_devices
        tried = {each: together(each[2], own, others.get(each[0])) for each, own in found.items()}
        return cls(tried, choice)

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
        """The chosen checks that the site expects and that are missing."""
        return self.absent_of(self.choice.set)

    def absent_of(self, name: str | None) -> list[str]:
        """Return the checks of a set that the site expects and that are missing."""
        here = {
            (where, name)
            for (where, _, check), one in self.tried.items()
            for attempt in one.attempts
            for name in split_checks.of_metrics(
                check.split()[0], attempt.case.values if attempt.case else ()
            )
        }
        return [
            check
            for where in self.partitions
            for check in expected(where, name)
            if (where, check) not in here
        ]

    def reasons(self) -> Iterator[Finding]:
        """Yield the reasons against PASS, except missing checks."""
        for one in self.tried.values():
            yield from one.reasons
        yield from self._skipped_though_expected()
        if all(one.skipped for one in self.tried.values()):
            yield finding("nothing-passed", "No check passed or failed.")

    def _skipped_though_expected(self) -> Iterator[Finding]:
        for where in self.partitions:
            for name in expected(where, self.choice.set):
                own = [one for each, one in self.tried.items()
                       if (each[0], each[2].split()[0]) == (where, name)]  # fmt: skip
                if own and all(one.skipped for one in own):
                    said = f"was skipped, but the site expects it: {why_skipped(own[0])}."
                    yield finding("skipped", said, name)


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


def expected(where: str, name: str | None) -> tuple[str, ...]:
    """Return the checks that the site expects in a partition for a set, by class.

    The list is empty for a partition of no site of this repository, and without a set.

    :param where: ``system:partition``.
    :param name: the set.
    """
    listed: Mapping[str, Sequence[str]] = partitions.extras(where).get("expected_checks", {})
    return tuple(check for check, tags in listed.items() if name in tags)


def unknown(wheres: Iterable[str], name: str | None) -> Iterator[str]:
    """Yield a sentence for each partition whose expected checks are unknown.

    :param wheres: ``system:partition`` each.
    :param name: the set; without a set nothing is expected.
    """
    if name is None:
        return
    for where in wheres:
        if not partitions.known(where):
            why = partitions.why_unknown(where)
            yield f"The checks and devices that {where} should have are unknown. {why}"
        elif "expected_checks" not in partitions.extras(where):
            yield (
                f"The checks that {where} should have are not listed: write the list beside its "
                "site file, with 'fabricheck sets --write'."
            )
