"""How sessions deviated from what their commit states, as findings: what the site accepts or not.

What the session itself knew it recorded; the options that left checks out and the limits are in
its report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.verdict.outcomes import CheckOutcome
from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.references import entries
from fabricheck.results.reading import Source
from fabricheck.results.rows import Metric
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.site import partitions, sets
from fabricheck.site.deviations import Deviation
from fabricheck.site.sets import Choice

#: The rule of checks that options left out, which a failed node needs no more.
LEFT_OUT = "left-out-checks"

#: The most names in a sentence.
_MOST = 3


def of_partition(
    where: str,
    sources: Iterable[Source],
    outcomes: Collection[CheckOutcome],
    partial: Iterable[Choice],
) -> Iterator[tuple[Finding, bool]]:
    """Yield how the sessions deviated on a partition, each with whether the site accepts it.

    :param sources: the sessions of the node.
    :param outcomes: those of the partition.
    :param partial: what the sessions chose, where none ran a set as a whole.
    """
    recorded = [source.recorded[where] for source in sources if where in source.recorded]
    accepted = _accepted(where, recorded)
    deviations = [
        *(_recorded(where, deviation) for each in recorded for deviation in each.deviations),
        *_left_out(where, recorded, outcomes, partial),
        *_wide_limits(where, outcomes),
    ]
    for deviation in dict.fromkeys(deviations):
        yield replace(deviation, partition=where), deviation.rule.name in accepted


def _accepted(where: str, recorded: Sequence[PartitionChecks]) -> set[str]:
    """Return what the site file accepted in every session; without a record what it does now."""
    if not recorded:
        return {*partitions.extras(where).get("accepts", ())}
    accepted: set[str] = {*recorded[0].accepts}
    for each in recorded[1:]:
        accepted &= {*each.accepts}
    return accepted


def _recorded(where: str, deviation: Deviation) -> Finding:
    first, *others = deviation.facts
    match deviation.name:
        case "other-references":
            differ = "differs" if len(others) == 1 else "differ"
            sentence = (
                f"The references of {where} are not those of this commit: in {first} "
                f"{listed(others, _MOST)} {differ}."
            )
        case "without-mpi":
            sentence = f"{listed(deviation.facts)} left out checks of ranks on {where}."
        case "changed-checks":
            sentence = f"{listed(deviation.facts, _MOST)} changed the checks of {where}."
        case _:
            sentence = (
                f"The programs of {where} were not built from the sources of this checkout: they "
                f"are {listed(others, _MOST)}, the checkout is {first}. Build them again."
            )
    return finding(deviation.name, sentence)


def _left_out(
    where: str,
    recorded: Sequence[PartitionChecks],
    outcomes: Iterable[CheckOutcome],
    partial: Iterable[Choice],
) -> Iterator[Finding]:
    """Yield the checks that options left out; without a record of the checks they are unknown."""
    choices = [choice for choice in partial if choice.words]
    words = listed(dict.fromkeys(word for choice in choices for word in choice.words))
    ran = {outcome.check.split()[0] for outcome in outcomes}
    meant = dict.fromkeys(choice.part_of or sets.EVERYTHING for choice in choices)
    in_sets = [check for each in recorded for name in meant for check in each.of_set(name)]
    absent = dict.fromkeys(check for check in in_sets if check not in ran)
    if absent:
        left_out = f"left out {count(len(absent), 'check')} of {where}"
        yield finding(LEFT_OUT, f"{words} {left_out}: {listed(absent, _MOST)}.")


def _wide_limits(where: str, outcomes: Iterable[CheckOutcome]) -> Iterator[Finding]:
    metrics = [
        metric
        for outcome in outcomes
        for attempt in outcome.attempts
        for metric in attempt.metrics.values()
    ]
    wide = dict.fromkeys(metric.metric for metric in metrics if _is_wide(metric))
    if wide:
        which = "limit accepts" if len(wide) == 1 else "limits accept"
        yield finding(
            "wide-limits",
            f"{len(wide)} {which} on {where} less than half of a reference or more than twice "
            f"its time: {listed(wide, _MOST)}.",
        )


def _is_wide(metric: Metric) -> bool:
    by_rule = metric.record is None or metric.record.rule is not None
    recorded = metric.recorded
    return not by_rule and entries.is_wide(recorded.lower, recorded.upper, recorded.unit)
