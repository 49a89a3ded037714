"""The rates of rounds as columns, which 1.8 million of them need in Python.

An end is a NIC, or a node with all of its NICs at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from fabricheck.core.grouping import grouped
from fabricheck.core.statistics import median
from fabricheck.judge.fabric.rounds import ALL, Measured, Nic

#: Distances as numbers, so that the farthest is the largest; the last is an unknown one.
_SAME_SWITCH, _SAME_GROUP, _OTHER_GROUP, _UNKNOWN = range(4)
_DISTANCES = 4

#: The fewest pairs of a class in a round that have a median of their own.
_FEWEST_PAIRS = 5

#: The fewest rates of a class in phase 1 that are not of one of its nodes. Of fewer the median may
#: be that node's: they are compared with the largest class of their position.
_FEWEST_OF_CLASS = 24


@dataclass
class Samples:
    """Rates between ends, by column: the logarithms less the median of their class in phase 1.

    A class is a distance and a NIC position. ``lots`` numbers a distance in a round, -1 where there
    are few pairs; ``meetings`` numbers the pairs of nodes of all rounds, in order. ``ends`` are
    node and position of each end, ``middles`` the medians of the classes as logarithms. ``far``
    are the ends that most others do not meet at the distance that is usual for them, where few
    others meet at it.
    """

    ends: list[tuple[int, int]]
    senders: list[int] = field(default_factory=list)
    receivers: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    lots: list[int] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    meetings: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)
    middles: dict[int, float] = field(default_factory=dict)
    far: frozenset[int] = frozenset()


def samples_of(measured: Measured) -> tuple[Samples, Samples]:
    """Return the rates of each NIC apart, and of nodes with all NICs at once."""
    first = [0]
    for node in measured.nodes:
        first.append(first[-1] + len(node.nics))
    apart = Samples(
        [(n, k) for n, node in enumerate(measured.nodes) for k in range(len(node.nics))]
    )
    together = Samples([(n, ALL) for n in range(len(measured.nodes))])
    places = [[_place(nic) for nic in node.nics] for node in measured.nodes]
    meeting = 0
    for number, round_ in enumerate(measured.rounds):
        phase = round_.phase
        for pair in round_.pairs:
            one, other = pair.one, pair.other
            first_one, first_other = first[one], first[other]
            farthest = 0
            its = zip(pair.out, pair.back, places[one], places[other], strict=False)
            for k, (out, back, near, far) in enumerate(its):
                if near is None or far is None:
                    distance = _UNKNOWN
                elif near == far:
                    distance = _SAME_SWITCH
                else:
                    distance = _SAME_GROUP if near[0] == far[0] else _OTHER_GROUP
                farthest = max(farthest, distance)
                group, lot = k * _DISTANCES + distance, number * _DISTANCES + distance
                if out:
                    _add(apart, first_one + k, first_other + k, group, lot, phase, meeting, out)
                if back:
                    _add(apart, first_other + k, first_one + k, group, lot, phase, meeting, back)
            lot = number * _DISTANCES + farthest
            for rates, sender, receiver in (
                (pair.together_out, one, other), (pair.together_back, other, one)
            ):  # fmt: skip
                if rates and all(rates):
                    whole = sum(rate for rate in rates if rate)
                    _add(together, sender, receiver, farthest, lot, phase, meeting, whole)
            meeting += 1
    widest = max((len(node.nics) for node in measured.nodes), default=1)
    for samples, per_pair in ((apart, 2 * widest), (together, 2)):
        _relate(samples, _FEWEST_PAIRS * per_pair)
    return apart, together


def _place(nic: Nic) -> tuple[str, str] | None:
    return None if nic.place is None else (nic.place.group, nic.place.switch)


def _add(
    samples: Samples, sender: int, receiver: int, group: int, lot: int, phase: int, meeting: int,
    rate: float,
) -> None:  # fmt: skip
    samples.senders.append(sender)
    samples.receivers.append(receiver)
    samples.groups.append(group)
    samples.lots.append(lot)
    samples.phases.append(phase)
    samples.meetings.append(meeting)
    samples.logs.append(math.log(rate))


def _relate(samples: Samples, fewest: int) -> None:
    """Subtract from the logarithms the median of their class, and mark small lots."""
    _join_classes(samples)
    rates = zip(samples.groups, samples.phases, samples.logs, strict=True)
    of_phase = grouped(((phase, group), log) for group, phase, log in rates)
    # Those of phase 1 are the last, and count where there are some.
    in_order = sorted(of_phase.items(), key=lambda item: -item[0][0])
    samples.middles = base = {group: median(logs) for (_, group), logs in in_order}
    samples.logs = [
        log - base[group] for group, log in zip(samples.groups, samples.logs, strict=True)
    ]
    sizes = Counter(samples.lots)
    samples.lots = [lot if sizes[lot] >= fewest else -1 for lot in samples.lots]


def _join_classes(samples: Samples) -> None:
    """Put small classes into the largest of their position, of equal ones the nearest.

    What a class is compared by is then not its own: the ends that most of its rates are of, unlike
    most ends, are ``far``.
    """
    sizes = Counter(
        group for group, phase in zip(samples.groups, samples.phases, strict=True) if phase == 1
    )
    largest: dict[int, int] = {}
    for group in sorted(sizes, key=lambda group: (-sizes[group], group)):
        largest.setdefault(group // _DISTANCES, group)
    with_a_median = _with_a_median(samples, sizes)
    joined = {
        group: group if group in with_a_median else largest.get(group // _DISTANCES, group)
        for group in set(samples.groups)
    }
    moved = {group for group, other in joined.items() if other != group}
    if moved:
        samples.far = _far(samples, moved | {joined[group] for group in moved})
    samples.groups = [joined[group] for group in samples.groups]


def _with_a_median(samples: Samples, sizes: Mapping[int, int]) -> set[int]:
    """Return the classes that have enough rates, whichever node is left out."""
    # A node meets another one once in phase 1, and both send.
    most = 2 * len({node for node, _ in samples.ends})
    small = {group for group, size in sizes.items() if size < _FEWEST_OF_CLASS + most}
    rates = zip(samples.senders, samples.receivers, samples.groups, samples.phases, strict=True)
    nodes = grouped(
        (group, samples.ends[end][0])
        for sender, receiver, group, phase in rates
        if phase == 1 and group in small
        for end in (sender, receiver)
    )
    return {
        group
        for group, size in sizes.items()
        if group not in small or size - max(Counter(nodes[group]).values()) >= _FEWEST_OF_CLASS
    }


def _far(samples: Samples, joined: Container[int]) -> frozenset[int]:
    """Return the ends whose usual distance is not that of most ends of their position."""
    rates = zip(samples.senders, samples.receivers, samples.groups, strict=True)
    met = grouped((end, group) for *ends, group in rates for end in ends)
    usual = {
        end: min((-number, group) for group, number in Counter(its).items())[1]
        for end, its in met.items()
    }
    of_position = grouped((group // _DISTANCES, group) for group in usual.values())
    of_most = {Counter(its).most_common(1)[0][0] for its in of_position.values()}
    return frozenset(
        end for end, group in usual.items() if group in joined and group not in of_most
    )


def low_positions(classes: Mapping[int, float], least: float) -> list[tuple[int, float]]:
    """Return NIC positions whose middle is lower than that of the others, and by how much.

    :param classes: the logarithms of the rates of good ends.
    :param least: of the logarithm of the ratio.
    """
    of_distance = grouped(
        (group % _DISTANCES, (group // _DISTANCES, log)) for group, log in classes.items()
    )
    found: dict[int, float] = {}
    for its in of_distance.values():
        middle = median([log for _, log in its])
        for position, log in its:
            if log - middle < -least:
                found[position] = min(log - middle, found.get(position, 0.0))
    return sorted(found.items())
