"""Which ends and pairs phase 2 measures again: the rule of the program ``fabric``, to draw systems.

Of phase 1, the logarithm of each rate over the median of its class (distance and NIC position; a
class of fewer than 24 rates, those of one of its nodes not counted, is part of the largest of its
position); the score of an end in a direction is the median over its partners, less the median of
the scores of its position. Suspects are ends whose score is below zero by more than 1.5 % and by
more than three median absolute deviations of all scores: about two standard deviations, so that
some healthy ends are suspects too and no bad one is missed. That is the rule of core/peers.py.
At most a quarter of the nodes have suspects, the lowest first. Nodes of which no score is that low
are proven. src/bench/fabric/choosing.cpp has the same; tests/programs/test_fabric_program.py
compares both on the rounds of a launch.

The rule stands here once more on purpose. The program chooses from what it has just measured, and
reads no rounds: to be asked it would need a reader of them and an option that only tests use, more
than these lines. A launch cannot stand in: simulated ones have at most 16 nodes and take half a
second for five, where drawn systems have up to 9,408 nodes, and this takes 2 ms for 16 nodes and
0.14 s for 1,024. And two implementations show a slip of either; one that is asked agrees with
itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.core import peers
from fabricheck.core.statistics import NORMAL, median
from fabricheck.judge.fabric.fit import Samples, robust_deviation
from fabricheck.results.model import MeasuredRound

#: The least part below the others of a suspect.
LEAST = -math.log(1 - 0.015)

#: And in robust standard deviations of all scores: three median absolute deviations.
DEVIATIONS = 3.0 / NORMAL

#: One of so many nodes may have suspects.
MOST_NODES = 4

#: The fewest partners of a score.
FEWEST_PARTNERS = 3

#: A pair is measured again where a rate is below this part of its class's median, less what both
#: NICs are low with most partners.
LOW_PAIR = 0.9

#: At most so many low pairs of one node are measured again.
MOST_PAIRS = 8


#: The scores of ends by sending and receiving.
Scores = tuple[dict[int, float], dict[int, float]]


@dataclass(frozen=True)
class Chosen:
    """Suspects as (node, position), with `ALL` for all NICs at once, lowest first; and the rest."""

    suspects: tuple[tuple[int, int], ...]
    proven: frozenset[int]
    low_pairs: tuple[tuple[int, int], ...]


def choose(
    nodes: int, rounds: Sequence[MeasuredRound], apart: Samples, together: Samples
) -> Chosen:
    """Return the suspects of phase 1, the nodes that proved good, and pairs to measure again."""
    low: dict[tuple[int, int], float] = {}
    seen: set[int] = set()
    of_nics: Scores = ({}, {})
    for samples in (apart, together):
        sends, receives = phase_one(samples)
        scores = (_scores(samples, sends), _scores(samples, receives))
        of_nics = scores if samples is apart else of_nics
        every = [(score, samples.ends[end]) for way in scores for end, score in way.items()]
        if not every:
            continue
        spread = robust_deviation([score for score, _ in every])
        limit = peers.limit(spread, LEAST, DEVIATIONS)
        for score, at in every:
            seen.add(at[0])
            if score < -limit:
                low[at] = min(score, low.get(at, 0.0))
    suspects: list[tuple[int, int]] = []
    suspected: set[int] = set()
    most = max(1, nodes // MOST_NODES)
    for at in sorted(low, key=lambda at: (low[at], at)):
        if at[0] in suspected or len(suspected) < most:
            suspected.add(at[0])
            suspects.append(at)
    proven = frozenset(seen - {node for node, _ in low})
    return Chosen(tuple(suspects), proven, tuple(_low_pairs(rounds, apart, of_nics)))


def _scores(samples: Samples, values: Sequence[list[float]]) -> dict[int, float]:
    """Return the median of each end's values, less the median of those of its position."""
    scores = {end: median(its) for end, its in enumerate(values) if len(its) >= FEWEST_PARTNERS}
    of_position: dict[int, list[float]] = {}
    for end, score in scores.items():
        of_position.setdefault(samples.ends[end][1], []).append(score)
    middle = {position: median(its) for position, its in of_position.items()}
    return {end: score - middle[samples.ends[end][1]] for end, score in scores.items()}


def _low_pairs(
    rounds: Sequence[MeasuredRound], apart: Samples, scores: Scores
) -> Sequence[tuple[int, int]]:
    """Return the lowest pairs beyond the scores of their NICs, as many as disjoint sets hold."""
    limit = math.log(LOW_PAIR)
    meetings = [(min(pair), max(pair)) for round_ in rounds for pair in round_["pairs"]]
    of_pair: dict[tuple[int, int], float] = {}
    sending, receiving = scores
    for sender, receiver, meeting, phase, log in zip(
        apart.senders, apart.receivers, apart.meetings, apart.phases, apart.logs, strict=True
    ):
        if phase == 1 and log < limit:
            rest = log - min(0.0, sending.get(sender, 0.0)) - min(0.0, receiving.get(receiver, 0.0))
            if rest < limit:
                key = meetings[meeting]
                of_pair[key] = min(rest, of_pair.get(key, 0.0))
    pairs: list[tuple[int, int]] = []
    sets: list[set[int]] = [set() for _ in range(MOST_PAIRS)]
    for key in sorted(of_pair, key=lambda key: (of_pair[key], key)):
        free = next((one for one in sets if not one.intersection(key)), None)
        if free is not None:
            free.update(key)
            pairs.append(key)
    return pairs


def phase_one(samples: Samples) -> tuple[Sequence[list[float]], Sequence[list[float]]]:
    """Return the values of phase 1 of each end, by sending and receiving."""
    sends: list[list[float]] = [[] for _ in samples.ends]
    receives: list[list[float]] = [[] for _ in samples.ends]
    for sender, receiver, phase, log in zip(
        samples.senders, samples.receivers, samples.phases, samples.logs, strict=True
    ):
        if phase == 1:
            sends[sender].append(log)
            receives[receiver].append(log)
    return sends, receives
