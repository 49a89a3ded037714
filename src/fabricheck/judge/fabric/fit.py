"""Rates between nodes as columns, and their fit: what each end adds, whichever its partner.

There are up to 1.8 million rates, which need columns in Python. An end is a NIC, or a node with all
of its NICs at once.

The logarithm of a rate is the median of its class (distance and NIC position) and of its round,
plus an effect of the end that sends, one of the end that receives, and the rest, which is the
pair's. All are medians, so that a bad partner, or a bad pair, moves no effect while most partners
of an end are good. Effects are relative: what is slow everywhere is for references to say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from statistics import NormalDist

from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, listed
from fabricheck.core.statistics import MAD_EFFICIENCY, MEDIAN_WIDER, NORMAL, median
from fabricheck.core.text import count
from fabricheck.results.model import RankNetwork, ResultDocument, RoundsMember, WrongMessage

#: The position of an end that is a node with all of its NICs at once.
ALL = -1

#: A node and the position of a NIC of it: position k of one node is measured with k of another.
End = tuple[int, int]

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

    ends: list[End]
    senders: list[int] = field(default_factory=list)
    receivers: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    lots: list[int] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    meetings: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)
    middles: dict[int, float] = field(default_factory=dict)
    far: frozenset[int] = frozenset()


def samples_of(rounds: RoundsMember, elsewhere: Container[End] = ()) -> tuple[Samples, Samples]:
    """Return the rates of each NIC apart, and of nodes with all NICs at once.

    :param elsewhere: the ends whose messages left their node by another way than most: their rates
        say nothing about a NIC, and are left out.
    """
    nodes = rounds["nodes"]
    first = [0]
    for node in nodes:
        first.append(first[-1] + len(node["nics"]))
    apart = Samples([(n, k) for n, node in enumerate(nodes) for k in range(len(node["nics"]))])
    together = Samples([(n, ALL) for n in range(len(nodes))])
    places = [[nic["place"] for nic in node["nics"]] for node in nodes]
    meeting = 0
    for number, round_ in enumerate(rounds["rounds"]):
        phase = round_["phase"]
        columns = (round_["out"], round_["back"], round_["together_out"], round_["together_back"])
        for (first_node, other), *rates in zip(round_["pairs"], *columns, strict=True):
            first_one, first_other = first[first_node], first[other]
            farthest = 0
            left_out = False
            rates_of_nics = zip(*rates[:2], places[first_node], places[other], strict=False)
            for k, (out, back, near, far) in enumerate(rates_of_nics):
                if near is None or far is None:
                    distance = _UNKNOWN
                elif near["group"] != far["group"]:
                    distance = _OTHER_GROUP
                else:
                    distance = _SAME_SWITCH if near["switch"] == far["switch"] else _SAME_GROUP
                farthest = max(farthest, distance)
                if (first_node, k) in elsewhere or (other, k) in elsewhere:
                    left_out = True
                    continue
                group, lot = k * _DISTANCES + distance, number * _DISTANCES + distance
                if out:
                    _add(apart, first_one + k, first_other + k, group, lot, phase, meeting, out)
                if back:
                    _add(apart, first_other + k, first_one + k, group, lot, phase, meeting, back)
            lot = number * _DISTANCES + farthest
            for at_once, sender, receiver in zip(
                rates[2:], (first_node, other), (other, first_node), strict=True
            ):
                if at_once and all(at_once) and not left_out:
                    whole = sum(rate for rate in at_once if rate)
                    _add(together, sender, receiver, farthest, lot, phase, meeting, whole)
            meeting += 1
    widest = max((len(node["nics"]) for node in nodes), default=1)
    for samples, per_pair in ((apart, 2 * widest), (together, 2)):
        _relate(samples, _FEWEST_PAIRS * per_pair)
    return apart, together


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
    nodes: dict[int, list[int]] = {}
    for sender, receiver, group, phase in rates:
        if phase == 1 and group in small:
            both = [samples.ends[sender][0], samples.ends[receiver][0]]
            nodes.setdefault(group, []).extend(both)
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
        end: min((-number, group) for group, number in Counter(groups).items())[1]
        for end, groups in met.items()
    }
    of_position = grouped((group // _DISTANCES, group) for group in usual.values())
    of_most = {Counter(groups).most_common(1)[0][0] for groups in of_position.values()}
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
    low: dict[int, float] = {}
    for logs in of_distance.values():
        middle = median([log for _, log in logs])
        for position, log in logs:
            if log - middle < -least:
                low[position] = min(log - middle, low.get(position, 0.0))
    return sorted(low.items())


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
    known = [effect for effect in (*sent, *received) if effect is not None]
    typical = median([effect.error for effect in known]) if known else 0.0
    whole = _healthy_deviation([effect.score for effect in known])
    spread = math.sqrt(max(0.0, whole**2 - typical**2))
    levels = {group: samples.middles[group] + middle for group, middle in classes.items()}
    return Fit((sent, received), rests, levels, noise, spread, typical, samples.far)


def _used(samples: Samples, suspected: Container[int]) -> tuple[list[bool], list[bool]]:
    """Return of each value whether it counts for the end that sends, and for that which receives.

    A partner counts once in a phase: low pairs are measured several times and would outweigh the
    other partners. Phase 2 counts for suspects only; their partners would have them twice.
    """
    ends = samples.ends
    first: dict[tuple[int, int, int], int] = {}
    counts: dict[int, bool] = {}
    used: tuple[list[bool], list[bool]] = ([], [])
    for sender, receiver, phase, meeting in zip(
        samples.senders, samples.receivers, samples.phases, samples.meetings, strict=True
    ):
        node, other = ends[sender][0], ends[receiver][0]
        counts_here = counts.get(meeting)
        if counts_here is None:
            key = (phase, min(node, other), max(node, other))
            counts_here = counts[meeting] = first.setdefault(key, meeting) == meeting
        used[SENDING].append(counts_here and (phase == 1 or node in suspected))
        used[RECEIVING].append(counts_here and (phase == 1 or other in suspected))
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
                median([y - others[partner] for y, partner in zip(of_end, with_, strict=True)])
                if of_end
                else 0.0
                for of_end, with_ in zip(values[way], partners[way], strict=True)
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
        node, other = sorted((samples.ends[sender][0], samples.ends[receiver][0]))
        return node in suspected or other in suspected or (node, other) in low_pairs

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
    shift = {lot: median(values_of_lot) for lot, values_of_lot in of_lot.items()}
    return [log - shift.get(lot, 0.0) for lot, log in zip(samples.lots, samples.logs, strict=True)]


def _centre(scores: list[float], values: Sequence[list[float]], positions: Sequence[int]) -> None:
    """Subtract from the scores the median of their position."""
    of_position = grouped(
        (position, score)
        for score, values_of_end, position in zip(scores, values, positions, strict=True)
        if values_of_end
    )
    middle = {position: median(values_of_end) for position, values_of_end in of_position.items()}
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
    values_of_end, with_ = values[way][end], partners[way][end]
    count = len(values_of_end)
    own_noise = robust_deviation(
        [y - others[partner] - score for y, partner in zip(values_of_end, with_, strict=True)]
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


def nic_name(rounds: RoundsMember, end: End) -> str:
    """Return the name of a NIC as the system has it, else its rank's."""
    node = rounds["nodes"][end[0]]
    return node["nics"][end[1]]["name"] or f"rank{node['ranks'][end[1]]}"


def end_name(rounds: RoundsMember, end: End) -> str:
    """Return ``node:NIC``, or the node for all NICs at once."""
    node = rounds["nodes"][end[0]]["node"]
    return node if end[1] == ALL else f"{node}:{nic_name(rounds, end)}"


def elsewhere_of(document: ResultDocument, rounds: RoundsMember) -> dict[End, str]:
    """Return a sentence for each node and position whose messages left by another way than most."""
    ranks = document.get("ranks") or []
    used = {
        (index, position): ranks[number].get("network")
        for index, node in enumerate(rounds["nodes"])
        for position, number in enumerate(node["ranks"])
    }
    # What cannot be told has a note in the document, and is compared with nothing.
    ways = Counter(
        (network["transport"], network["provider"])
        for network in used.values()
        if network and network["transport"] and network["provider"]
    )
    if not ways:
        return {}
    transport, provider = ways.most_common(1)[0][0]
    elsewhere = {}
    for (index, position), network in used.items():
        if network is None or network["transport"] is None:
            continue
        if network["transport"] != transport or network["provider"] not in (provider, None):
            node = rounds["nodes"][index]
            elsewhere[index, position] = (
                f"Messages of rank {node['ranks'][position]} of {node['node']} left it by "
                f"{_way(network)}, unlike those of most ranks: its rates are left out."
            )
    return elsewhere


def _way(network: RankNetwork) -> str:
    by = listed(
        str(word) for word in (network["transport"], network["provider"]) if word is not None
    )
    names = enumerated(nic["name"] for nic in network["nics"])
    return f"{by} ({names})" if names else by


def missing(
    document: ResultDocument, rounds: RoundsMember, samples: tuple[Samples, Samples],
    elsewhere: Container[End],
) -> Iterator[str]:  # fmt: skip
    """Yield sentences on what is missing: nodes left out, failed pairs, rounds not reached."""
    for wrong in rounds["wrong"]:
        yield _wrong(rounds, wrong)
    reasons = list(
        dict.fromkeys(lost["reason"] for lost in (*rounds["left_out"], *rounds["failed"]))
    )
    yield from reasons
    outcome = document["outcome"]
    if outcome["status"] not in ("good", "wrong-data") and outcome["message"] not in reasons:
        ended = outcome["status"] not in ("running", "interrupted", "time-limit")
        yield (f"The run ended with {outcome['status']}" if ended else "The run did not finish") + (
            f": {outcome['message'].rstrip('.')}." if outcome["message"] else "."
        )
    done = sum(measured_round["phase"] == 1 for measured_round in rounds["rounds"])
    if done < rounds["planned"]:
        yield f"{done} of {count(rounds['planned'], 'round')} were measured."
    yield from _without_rate(rounds, *samples, elsewhere)


def _without_rate(
    rounds: RoundsMember, apart: Samples, together: Samples, elsewhere: Container[End]
) -> Iterator[str]:
    """Yield what met others and has no rate of a direction, or none of all NICs at once."""
    sent, received = (
        {apart.ends[end] for end in ends} for ends in (apart.senders, apart.receivers)
    )
    at_once = {together.ends[end][0] for end in (*together.senders, *together.receivers)}
    any_at_once = any(
        any(round_["together_out"]) or any(round_["together_back"]) for round_ in rounds["rounds"]
    )
    for index in sorted(
        {node for round_ in rounds["rounds"] for pair in round_["pairs"] for node in pair}
    ):
        node = rounds["nodes"][index]
        ends = [
            (index, position)
            for position in range(len(node["nics"]))
            if (index, position) not in elsewhere
        ]
        for end in ends:
            lacks = [
                word
                for word, seen in (("sending", sent), ("receiving", received))
                if end not in seen
            ]
            if lacks:
                what = f" of {lacks[0]}" if len(lacks) == 1 else ""
                yield f"{end_name(rounds, end)} has no rate{what}."
        complete = all(end in sent and end in received for end in ends)
        if any_at_once and complete and len(ends) == len(node["nics"]) and index not in at_once:
            yield f"{node['node']} has no rate with all its NICs at once."


def _wrong(rounds: RoundsMember, wrong: WrongMessage) -> str:
    sender, receiver = (
        end_name(rounds, (node, wrong["nic"])) for node in (wrong["from"], wrong["to"])
    )
    return (
        f"Data from {sender} to {receiver} was wrong: {count(wrong['errors'], 'byte')}, the first "
        f"at byte {wrong['offset_bytes']}, expected {wrong['expected']}, found {wrong['found']}."
    )
