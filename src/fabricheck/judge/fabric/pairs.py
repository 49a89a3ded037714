"""Pairs that are low with each other only, and pairs of groups: no node is at fault."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabricheck.core.show import MOST_SENTENCES, listed
from fabricheck.core.statistics import MEDIAN_WIDER, quantile
from fabricheck.core.text import count
from fabricheck.judge.fabric.choosing import LOW_PAIR
from fabricheck.judge.fabric.fit import Fit
from fabricheck.judge.fabric.model import LowPair, Measured
from fabricheck.judge.fabric.naming import FALSE, Names
from fabricheck.judge.fabric.samples import Samples, median

#: The least part of the rate that is said of two groups, where their links are shared by all.
_LEAST_OF_GROUPS = 0.05

#: The fewest pairs of nodes that tell about two groups.
_FEWEST_OF_GROUPS = 4


#: The fewest rounds of a pair that is said to be low: what else uses the network may hit a pair
#: twice.
FEWEST_TIMES = 3


@dataclass(frozen=True)
class LowPairs:
    """Pairs that were low each time, and sentences."""

    pairs: tuple[LowPair, ...]
    open: tuple[str, ...]
    notes: tuple[str, ...]


def low_pairs(measured: Measured, fitted: Fit, samples: Samples, named: Names) -> LowPairs:
    """Return the pairs of nodes, and of groups, that are low beyond what their ends explain."""
    meetings = [
        (number, min(pair.one, pair.other), max(pair.one, pair.other))
        for number, round_ in enumerate(measured.rounds)
        for pair in round_.pairs
    ]
    limit = max(
        -math.log(LOW_PAIR),
        quantile(len(fitted.rests), len(fitted.rests), FALSE) * fitted.noise,
    )
    times: dict[tuple[int, int], int] = {}
    for _, one, other in meetings:
        times[one, other] = times.get((one, other), 0) + 1
    low: dict[tuple[int, int], dict[int, list[tuple[int, float]]]] = {}
    for sender, meeting, rest in zip(samples.senders, samples.meetings, fitted.rests, strict=True):
        if rest < -limit:
            number, one, other = meetings[meeting]
            of_round = low.setdefault((one, other), {}).setdefault(number, [])
            of_round.append((samples.ends[sender][1], rest))
    groups = _groups(measured, fitted, samples, meetings)
    found: list[LowPair] = []
    once = not_again = 0
    at_fault = {node for node, _ in named.at_fault}
    for pair, rounds in sorted(low.items()):
        if _group_pair(measured, *pair) in groups:
            continue
        if at_fault.intersection(pair) and len(rounds) < FEWEST_TIMES:
            continue
        if times[pair] < FEWEST_TIMES:
            not_again += 1
        elif len(rounds) < times[pair]:
            once += 1
        else:
            found.append(_low_pair(measured, pair, rounds))
    found.sort(key=lambda one: -one.loss)
    said = [one.sentence for one in found]
    if len(said) > MOST_SENTENCES:
        said = [*said[:MOST_SENTENCES], f"And {len(said) - MOST_SENTENCES} more pairs like them."]
    notes = []
    if once:
        notes.append(
            f"{count(once, 'pair')} of nodes had a low rate in one round and not in another: what "
            "else used the network then is a cause, and no node is."
        )
    if not_again:
        notes.append(
            f"{count(not_again, 'pair')} of nodes had a low rate and met too seldom to tell why."
        )
    return LowPairs(tuple(found), (*groups.values(), *said), tuple(notes))


def _low_pair(
    measured: Measured, pair: tuple[int, int], rounds: dict[int, list[tuple[int, float]]]
) -> LowPair:
    one, other = (measured.nodes[node].name for node in pair)
    rests = [rest for its in rounds.values() for _, rest in its]
    which = sorted({position for its in rounds.values() for position, _ in its})
    nics = tuple(measured.nodes[pair[0]].nics[position].name for position in which)
    loss = 1 - math.exp(median(rests))
    return LowPair(
        (one, other), nics, loss, len(rounds),
        f"{one} and {other} are {100 * loss:.1f} % lower with each other than with others, by "
        f"{listed(nics, 4)}, in each of {count(len(rounds), 'round')}: what is between them "
        "is slow, and neither node is named for it.",
    )  # fmt: skip


def _group_pair(measured: Measured, one: int, other: int) -> tuple[str, str] | None:
    """Return the groups of two nodes, by their first NICs; ``None`` within one group."""
    places = [measured.nodes[node].nics[0].place for node in (one, other)]
    if places[0] is None or places[1] is None or places[0].group == places[1].group:
        return None
    first, second = sorted((places[0].group, places[1].group))
    return first, second


def _groups(
    measured: Measured, fitted: Fit, samples: Samples, meetings: list[tuple[int, int, int]]
) -> dict[tuple[str, str], str]:
    """Return a sentence for each two groups between which most pairs are low."""
    rests: dict[tuple[str, str], dict[int, list[float]]] = {}
    between = [_group_pair(measured, one, other) for _, one, other in meetings]
    for meeting, rest in zip(samples.meetings, fitted.rests, strict=True):
        groups = between[meeting]
        if groups is not None:
            rests.setdefault(groups, {}).setdefault(meeting, []).append(rest)
    middles = {
        groups: [median(list(its)) for its in of_meeting.values()]
        for groups, of_meeting in rests.items()
        if len(of_meeting) >= _FEWEST_OF_GROUPS
    }
    far = quantile(len(middles), len(fitted.rests), FALSE)
    found = {}
    for groups, its in sorted(middles.items()):
        # Rates of one pair of nodes at the same time share links: they count as one value.
        error = MEDIAN_WIDER * fitted.noise / math.sqrt(len(its))
        middle = median(its)
        if middle < -max(-math.log(1 - _LEAST_OF_GROUPS), far * error):
            found[groups] = (
                f"Groups {groups[0]} and {groups[1]}: rates between them are "
                f"{100 * (1 - math.exp(middle)):.1f} % lower than their NICs have elsewhere, over "
                f"{count(len(its), 'pair')} of nodes; no node is named for it."
            )
    return found
