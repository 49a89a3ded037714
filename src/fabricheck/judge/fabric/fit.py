"""The fit of rates between pairs: what each end adds or takes, whichever its partner.

The logarithm of a rate is the median of its class (distance and NIC position) and of its round,
plus an effect of the end that sends, one of the end that receives, and the rest, which is the
pair's. All are medians, so that a bad partner, or a bad pair, moves no effect while most partners
of an end are good. Effects are relative: what is slow everywhere is for references to say.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from statistics import NormalDist

from fabricheck.core.grouping import grouped
from fabricheck.core.statistics import MAD_EFFICIENCY, MEDIAN_WIDER, NORMAL, median
from fabricheck.judge.fabric.samples import Samples

#: An estimate of own noise from n values counts once it is so many of its errors above all others'.
_UNSTEADY_ERRORS = 3.0

#: The directions of an effect.
SENDING, RECEIVING = 0, 1

Columns = tuple[list[list[int]], list[list[int]]]
Values = tuple[list[list[float]], list[list[float]]]
Again = tuple[dict[int, list[tuple[int, float]]], dict[int, list[tuple[int, float]]]]


@dataclass(frozen=True)
class Effect:
    """What one end adds to the logarithm of rates in one direction.

    ``again`` is of phase 2 alone, with ``partners_again``; ``error`` is the standard error of
    ``score``. ``own_noise`` is the end's own noise where that is more than all others have.
    """

    score: float
    error: float
    partners: int
    again: float | None
    partners_again: int
    own_noise: float | None


@dataclass(frozen=True)
class Fit:
    """The effects of ends by direction (``None`` for an end without rates), and the rests.

    ``classes`` are the logarithms of the rates of good ends by class. ``noise`` is the robust
    standard deviation of the rests; ``spread`` that of the effects of healthy ends beyond their
    error. ``far`` are the ends whose effect may be that of their distance.
    """

    effects: tuple[Sequence[Effect | None], Sequence[Effect | None]]
    rests: Sequence[float]
    classes: Mapping[int, float]
    noise: float
    spread: float
    typical_error: float
    far: frozenset[int]


def robust_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of normal values about zero, from the median of their sizes."""
    return NORMAL * median([abs(value) for value in values]) if values else 0.0


def fit(
    samples: Samples, suspected: Container[int], low_pairs: Container[tuple[int, int]] = ()
) -> Fit:
    """Fit the effects of ends; those of one position are compared with each other.

    :param suspected: nodes that phase 2 measures again, and ``low_pairs`` pairs that it does. The
        medians of its rounds are those of all others.
    """
    positions = [position for _, position in samples.ends]
    ys = _of_rounds(samples, suspected, low_pairs)
    # The median of a class is of good ends only where most of its rates are: once effects are
    # known, the classes are compared again.
    used = _used(samples, suspected)
    classes = _of_classes(samples, ys, _polished(positions, *_by_end(samples, ys, used), 1))
    ys = [y - classes[group] for group, y in zip(samples.groups, ys, strict=True)]
    partners, values = _by_end(samples, ys, used)
    scores = _polished(positions, partners, values, 2)
    sending, receiving = scores
    rests = [
        y - sending[sender] - receiving[receiver]
        for sender, receiver, y in zip(samples.senders, samples.receivers, ys, strict=True)
    ]
    counts = sorted(len(set(with_)) for with_ in partners[SENDING] if with_)
    usual = max(2, counts[len(counts) // 2]) if counts else 2
    # Two effects were fitted to them: the rests are that much narrower than the noise.
    noise = robust_deviation(rests) * usual / (usual - 1)
    again = _again(samples, ys, scores, used)
    sent, received = (
        [
            _effect(way, end, scores, values, partners, again, noise) if values[way][end] else None
            for end in range(len(positions))
        ]
        for way in (SENDING, RECEIVING)
    )
    known = [effect for way in (sent, received) for effect in way if effect is not None]
    typical = median([effect.error for effect in known]) if known else 0.0
    whole = _healthy_deviation([effect.score for effect in known])
    spread = math.sqrt(max(0.0, whole**2 - typical**2))
    levels = {group: samples.middles[group] + middle for group, middle in classes.items()}
    return Fit((sent, received), rests, levels, noise, spread, typical, samples.far)


def _used(samples: Samples, suspected: Container[int]) -> tuple[list[bool], list[bool]]:
    """Return of each value whether it counts for the end that sends, and for that which receives.

    A partner counts once in a phase: low pairs are measured several times and would outweigh the
    other partners. Phase 2 counts for suspects only, lest their partners have them twice.
    """
    ends = samples.ends
    first: dict[tuple[int, int, int], int] = {}
    counts: dict[int, bool] = {}
    used: tuple[list[bool], list[bool]] = ([], [])
    for sender, receiver, phase, meeting in zip(
        samples.senders, samples.receivers, samples.phases, samples.meetings, strict=True
    ):
        one, other = ends[sender][0], ends[receiver][0]
        its = counts.get(meeting)
        if its is None:
            key = (phase, min(one, other), max(one, other))
            its = counts[meeting] = first.setdefault(key, meeting) == meeting
        used[SENDING].append(its and (phase == 1 or one in suspected))
        used[RECEIVING].append(its and (phase == 1 or other in suspected))
    return used


def _ways(samples: Samples) -> tuple[tuple[int, list[int], list[int]], ...]:
    """Return the directions, each with the ends that it is an effect of and their partners."""
    return (
        (SENDING, samples.senders, samples.receivers),
        (RECEIVING, samples.receivers, samples.senders),
    )


def _by_end(
    samples: Samples, ys: Sequence[float], used: tuple[list[bool], list[bool]]
) -> tuple[Columns, Values]:
    """Return the partners and the values of each end, by sending and receiving."""
    partners: Columns = ([[] for _ in samples.ends], [[] for _ in samples.ends])
    values: Values = ([[] for _ in samples.ends], [[] for _ in samples.ends])
    for way, ends, other in _ways(samples):
        its_partners, its_values = partners[way], values[way]
        for end, partner, y in compress(zip(ends, other, ys, strict=True), used[way]):
            its_partners[end].append(partner)
            its_values[end].append(y)
    return partners, values


def _polished(
    positions: Sequence[int], partners: Columns, values: Values, times: int
) -> list[list[float]]:
    """Return the effects of ends, each the median of its values less the effects of partners."""
    scores = [[0.0] * len(positions), [0.0] * len(positions)]
    for _ in range(times):
        for way in (SENDING, RECEIVING):
            others = scores[1 - way]
            scores[way] = [
                median([y - others[partner] for y, partner in zip(its, with_, strict=True)])
                if its
                else 0.0
                for its, with_ in zip(values[way], partners[way], strict=True)
            ]
            _centre(scores[way], values[way], positions)
    return scores


def _of_classes(
    samples: Samples, ys: Sequence[float], scores: Sequence[list[float]]
) -> dict[int, float]:
    """Return the median of the rests of each class."""
    sending, receiving = scores
    of_group = grouped(
        (group, y - sending[sender] - receiving[receiver])
        for group, sender, receiver, y in zip(
            samples.groups, samples.senders, samples.receivers, ys, strict=True
        )
    )
    return {group: median(rests) for group, rests in of_group.items()}


def _healthy_deviation(scores: list[float]) -> float:
    """Return the standard deviation of healthy scores, whatever some low ones are.

    The wider of two that agree for normal values: by the median absolute deviation, and by the
    upper tenth, which no low score widens and which sees tails.
    """
    if not scores:
        return 0.0
    middle = median(scores)
    tenth = sorted(scores)[min(len(scores) - 1, (9 * len(scores)) // 10)] - middle
    return max(robust_deviation(scores), tenth / NormalDist().inv_cdf(0.9))


def _of_rounds(
    samples: Samples, suspected: Container[int], low_pairs: Container[tuple[int, int]]
) -> list[float]:
    """Return the logarithms less the medians of distance and round."""

    def chosen(sender: int, receiver: int) -> bool:
        one, other = sorted((samples.ends[sender][0], samples.ends[receiver][0]))
        return one in suspected or other in suspected or (one, other) in low_pairs

    of_lot = grouped(
        (lot, log)
        for sender, receiver, lot, phase, log in zip(
            samples.senders,
            samples.receivers,
            samples.lots,
            samples.phases,
            samples.logs,
            strict=True,
        )
        if lot >= 0 and not (phase == 2 and chosen(sender, receiver))
    )
    shift = {lot: median(its) for lot, its in of_lot.items()}
    return [log - shift.get(lot, 0.0) for lot, log in zip(samples.lots, samples.logs, strict=True)]


def _centre(scores: list[float], values: Sequence[list[float]], positions: Sequence[int]) -> None:
    """Subtract from the scores the median of their position."""
    of_position = grouped(
        (position, score)
        for score, its, position in zip(scores, values, positions, strict=True)
        if its
    )
    middle = {position: median(its) for position, its in of_position.items()}
    for end, position in enumerate(positions):
        if values[end]:
            scores[end] -= middle[position]


def _again(
    samples: Samples,
    ys: Sequence[float],
    scores: Sequence[list[float]],
    used: tuple[list[bool], list[bool]],
) -> Again:
    """Return the partners and the values less their effects of phase 2, by end and direction."""
    sent, received = (
        grouped(
            (end, (partner, y - scores[1 - way][partner]))
            for end, partner, phase, y in compress(
                zip(ends, partners, samples.phases, ys, strict=True), used[way]
            )
            if phase == 2
        )
        for way, ends, partners in _ways(samples)
    )
    return sent, received


def _effect(
    way: int,
    end: int,
    scores: Sequence[list[float]],
    values: Sequence[Sequence[list[float]]],
    partners: Sequence[Sequence[list[int]]],
    again: Again,
    noise: float,
) -> Effect:
    others, score = scores[1 - way], scores[way][end]
    its, with_ = values[way][end], partners[way][end]
    count = len(its)
    own_noise = robust_deviation(
        [y - others[partner] - score for y, partner in zip(its, with_, strict=True)]
    )
    own_noise *= math.sqrt(count / max(1, count - 1))
    # The standard error of a standard deviation from the median absolute deviation.
    surely = noise * (1 + _UNSTEADY_ERRORS / math.sqrt(2 * MAD_EFFICIENCY * count))
    unsteady = own_noise if own_noise > surely else None
    second = again[way].get(end, [])
    return Effect(
        score=score,
        error=MEDIAN_WIDER * (unsteady or noise) / math.sqrt(count),
        partners=len(set(with_)),
        again=median([y for _, y in second]) if second else None,
        partners_again=len({partner for partner, _ in second}),
        own_noise=unsteady,
    )
