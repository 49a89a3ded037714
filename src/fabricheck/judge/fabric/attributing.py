"""The attribution of what is slow between nodes to NICs, nodes, switches and pairs.

Two fits (module `fit`): of each NIC apart, and of nodes with all their NICs at once. A loss is
named where it is larger than what a healthy end shows at most once in a hundred runs, and was seen
again in phase 2 with partners that proved good.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricheck.core import peers
from fabricheck.core.grouping import grouped
from fabricheck.core.show import MOST_SENTENCES, first_of, listed
from fabricheck.core.statistics import MEDIAN_WIDER, median, quantile
from fabricheck.core.text import count
from fabricheck.judge.fabric.fit import (
    ALL,
    RECEIVING,
    SENDING,
    Effect,
    End,
    Fit,
    Samples,
    elsewhere_of,
    end_name,
    fit,
    low_positions,
    missing,
    nic_name,
    samples_of,
)
from fabricheck.results.model import ResultDocument, RoundsMember

#: The fewest nodes of an attribution: with three partners the median is that of good ones when one
#: is bad.
FEWEST_NODES = 4

#: The least part that a NIC position is lower than the others of which it is said. On LUMI-G the
#: published values of four positions are 6 % apart.
LOW_POSITION = 0.10

#: The loss of a NIC that an attribution is to find.
WANTED_LOSS = 0.05

#: Healthy ends named in a run on average: of NICs apart, and of nodes with all NICs at once. The
#: sum is below the 0.05 that are allowed, for tails that are not those of normal values.
FALSE = 0.01

#: The least part of the rate that is named: NICs of one kind in one good system differ as much.
#: (HPE's printed loopbacks of NICs of one kind: 182.44 to 186.61 Gb/s, 2.3 % apart.)
LEAST_LOSS = 0.025

#: The fewest partners that phase 2 needs.
FEWEST_AGAIN = 3

#: An end without a name of its own is part of a low node or switch from so many deviations on.
_LOW_DEVIATIONS = 2.0

#: The part of the NICs of a switch that are low where the switch is named, and how many at least.
_MOST = 2 / 3
_FEWEST_OF_SWITCH = 3

#: An end is unsteady where its own noise, over so many partners, is so many times that of all
#: others, and such a part of its rates.
_FEWEST_UNSTEADY = 8
_UNSTEADY_TIMES = 3.0
_UNSTEADY_LEAST = 0.03

_LEAST_LOG = -math.log(1 - LEAST_LOSS)
_NORMAL_95 = 1.96
_VERBS = {frozenset({SENDING}): "sends", frozenset({RECEIVING}): "receives"}
_WORDS = {frozenset({SENDING}): "sending", frozenset({RECEIVING}): "receiving"}

#: The least part of the rate that is said of two groups, where their links are shared by all.
_LEAST_OF_GROUPS = 0.05

#: The fewest pairs of nodes that tell about two groups.
_FEWEST_OF_GROUPS = 4


#: A pair is low from this part of what its NICs have with others on.
_LOW_PAIR = 0.9

#: The fewest rounds of a pair that is said to be low: what else uses the network may hit a pair
#: twice.
FEWEST_TIMES = 3


@dataclass(frozen=True)
class FaultyEndpoint:
    """A NIC or a node that is at fault.

    ``nic`` is ``None`` for a whole node. ``loss`` is the part of the rate that is missing compared
    with the same position of other nodes, between ``low`` and ``high`` at 95 %; ``score`` is the
    loss over the loss that is named, so at least 1. ``direction`` is sending, receiving or both.
    """

    node: str
    nic: str | None
    loss: float
    low: float
    high: float
    score: float
    partners: int
    direction: str
    sentence: str

    @property
    def name(self) -> str:
        """``node:NIC``, or the node."""
        return self.node if self.nic is None else f"{self.node}:{self.nic}"


@dataclass(frozen=True)
class NamedSwitch:
    """A switch of whose NICs most are low, so that it, not they, is named."""

    group: str
    switch: str
    loss: float
    nics: int
    all_nics: int
    sentence: str

    @property
    def name(self) -> str:
        """The switch with its group."""
        return f"switch {self.switch} of group {self.group}"


@dataclass(frozen=True)
class LowPair:
    """Two nodes that are low with each other and right with others: neither is at fault."""

    nodes: tuple[str, str]
    nics: tuple[str, ...]
    loss: float
    times: int
    sentence: str


@dataclass(frozen=True)
class Attribution:
    """Which NICs, nodes and switches are at fault, and what is low without a culprit.

    ``open`` are sentences on what is low or unsteady without a node at fault, and on what is
    missing; ``notes`` say what limits the attribution. ``spread`` is the robust standard deviation
    of healthy NICs and ``least`` the smallest loss that is named of a NIC with all partners, both
    as parts of the rate.
    """

    named: tuple[FaultyEndpoint, ...]
    switches: tuple[NamedSwitch, ...] = ()
    pairs: tuple[LowPair, ...] = ()
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: int = 0
    nics: int = 0
    rounds: int = 0
    spread: float | None = None
    least: float | None = None
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Low:
    """An end that is low: its worse direction, and whether phase 2 saw it again.

    ``far``: what is low may be the distance to its partners. It is then not confirmed.
    ``named``: it is low enough for a name.
    """

    effect: Effect
    ways: frozenset[int]
    score: float
    confirmed: bool
    far: bool
    named: bool

    @property
    def loss(self) -> float:
        return 1 - math.exp(self.effect.score)


def attribute(document: ResultDocument) -> Attribution:
    """Name the NICs, nodes and switches that are at fault, from a document that has rounds."""
    rounds = document["rounds"]
    assert rounds is not None
    elsewhere = elsewhere_of(document, rounds)
    apart, together = samples_of(rounds, elsewhere)
    incomplete = first_of(
        [*elsewhere.values(), *missing(document, rounds, (apart, together), elsewhere)],
        2 * MOST_SENTENCES,
    )
    suspects = [
        (nic["node"], ALL if nic["nic"] is None else nic["nic"]) for nic in rounds["suspects"]
    ]
    seen = {node for round_ in rounds["rounds"] for pair in round_["pairs"] for node in pair}
    attribution = Attribution(
        named=(),
        nodes=len(seen),
        nics=sum(len(rounds["nodes"][node]["nics"]) for node in seen),
        rounds=len(rounds["rounds"]),
        suspects=tuple(end_name(rounds, end) for end in suspects),
    )
    if len(seen) < FEWEST_NODES:
        why = (
            f"{count(len(seen), 'node')} cannot show whose NIC is slow, as a rate is of both nodes "
            f"of a pair: an attribution needs {FEWEST_NODES} nodes."
        )
        return replace(attribution, open=(*incomplete, why))
    if not apart.logs:
        return replace(attribution, open=(*incomplete, "No rate was measured."))
    suspected = {node for node, _ in suspects}
    low = {(node, other) for node, other in rounds["low_pairs"]}
    of_nics = fit(apart, suspected, low)
    of_nodes = fit(together, suspected, low)
    attribution, at_fault = _with_names(attribution, rounds, of_nics, of_nodes)
    attribution = _with_pairs(attribution, rounds, of_nics, apart, at_fault)
    least = attribution.least or 0.0
    sentences = [*attribution.open, *_low_positions(rounds, of_nics)]
    if least > WANTED_LOSS:
        sentences.append(
            f"Rates, or healthy NICs, differ so much that a NIC is named only from "
            f"{100 * least:.1f} % below the others on, where {100 * WANTED_LOSS:.0f} % are wanted: "
            "measure more rounds."
        )
    return replace(attribution, open=(*sentences, *incomplete))


def _low_positions(rounds: RoundsMember, fitted: Fit) -> Iterator[str]:
    """Yield what is low on most nodes, and so no NIC's fault against the others."""
    for position, log in low_positions(fitted.classes, -math.log(1 - LOW_POSITION)):
        names = {
            nic_name(rounds, (index, position))
            for index, node in enumerate(rounds["nodes"])
            if position < len(node["nics"])
        }
        yield (
            f"On most nodes NIC {listed(sorted(names), 2)} is "
            f"{100 * (1 - math.exp(log)):.0f} % slower than their other NICs: NICs are compared "
            "with those at the same position only, and none is named for it."
        )


def _with_names(
    attribution: Attribution, rounds: RoundsMember, apart: Fit, together: Fit
) -> tuple[Attribution, set[End]]:
    """Name what is low in the fits of NICs apart and of nodes with all NICs at once.

    :returns: also the ends that explain what is low.
    """
    ends = [
        (node, position)
        for node, member in enumerate(rounds["nodes"])
        for position in range(len(member["nics"]))
    ]
    rule = _Rule(apart)
    low = rule.judged(ends)
    confirmed = {end for end, low_end in low.items() if low_end.confirmed}
    switches, of_switch = _switches(rounds, low, confirmed)
    left = {end: low_end for end, low_end in low.items() if end not in of_switch}
    named = list(_nodes(rounds, left, confirmed))
    whole = {endpoint.node for endpoint in named}
    named += [
        _named(rounds, end, low[end])
        for end in ends
        if end in confirmed and end in left and rounds["nodes"][end[0]]["node"] not in whole
    ]
    at_fault = of_switch | {
        end for end in left if end in confirmed or rounds["nodes"][end[0]]["node"] in whole
    }
    sentences = [
        *_unconfirmed(rounds, low, at_fault),
        *_unsteady(rounds, ends, apart, at_fault),
    ]
    known = {node for node, _ in at_fault}
    more = _Rule(together).judged([(node, ALL) for node in range(len(rounds["nodes"]))])
    more = {end: low_end for end, low_end in more.items() if end[0] not in known}
    named += [_named(rounds, end, low_end) for end, low_end in more.items() if low_end.confirmed]
    at_fault |= {end for end, low_end in more.items() if low_end.confirmed}
    sentences += _unconfirmed(rounds, more, at_fault)
    named.sort(key=lambda endpoint: -endpoint.loss)
    attribution = replace(
        attribution,
        named=tuple(named),
        switches=tuple(switches),
        open=tuple(sentences),
        spread=apart.spread,
        least=1 - math.exp(-rule.limit(apart.typical_error)),
    )
    return attribution, at_fault


class _Rule:
    """How far below the others an end of a fit is named."""

    def __init__(self, fitted: Fit) -> None:
        self._fit = fitted
        tests = sum(effect is not None for way in fitted.effects for effect in way)
        self._deviations = quantile(tests, tests // 2, FALSE)

    def limit(self, error: float) -> float:
        """Return the loss, as a logarithm, from which on an end with that error is named."""
        return peers.limit(math.hypot(self._fit.spread, error), _LEAST_LOG, self._deviations)

    def judged(self, ends: Sequence[End]) -> dict[End, _Low]:
        """Return the ends that are low."""
        low: dict[End, _Low] = {}
        for index, end in enumerate(ends):
            below = {
                way: effect
                for way in (SENDING, RECEIVING)
                if (effect := self._fit.effects[way][index]) is not None
                and -effect.score >= self._low(effect.error)
            }
            if not below:
                continue
            # The worse direction of what was seen again.
            ranked = sorted(
                below.values(), key=lambda effect: (not self._confirmed(effect), effect.score)
            )
            worst = ranked[0]
            far = index in self._fit.far
            low[end] = _Low(
                worst, frozenset(below), -worst.score / self.limit(worst.error),
                self._confirmed(worst) and not far, far,
                any(-effect.score >= self.limit(effect.error) for effect in ranked),
            )  # fmt: skip
        return low

    def _low(self, error: float) -> float:
        return peers.limit(math.hypot(self._fit.spread, error), _LEAST_LOG, _LOW_DEVIATIONS)

    def _confirmed(self, effect: Effect) -> bool:
        return (
            -effect.score >= self.limit(effect.error)
            and effect.again is not None
            and effect.partners_again >= FEWEST_AGAIN
            and -effect.again >= _LEAST_LOG
        )


def _switches(
    rounds: RoundsMember, low: Mapping[End, _Low], confirmed: set[End]
) -> tuple[list[NamedSwitch], set[End]]:
    of_switch: dict[tuple[str, str], list[End]] = {}
    for node, member in enumerate(rounds["nodes"]):
        for position, nic in enumerate(member["nics"]):
            place = nic["place"]
            if place is not None:
                key = (place["group"], place["switch"])
                of_switch.setdefault(key, []).append((node, position))
    switches: list[NamedSwitch] = []
    taken: set[End] = set()
    for (group, switch), ends in sorted(of_switch.items()):
        down = [end for end in ends if end in low]
        if (
            len(down) < max(_FEWEST_OF_SWITCH, _MOST * len(ends))
            or len({node for node, _ in down}) < 2
            or 2 * len(confirmed.intersection(down)) < len(down)
        ):
            continue
        loss = median([low[end].loss for end in down])
        taken |= set(down)
        switches.append(
            NamedSwitch(
                group,
                switch,
                loss,
                len(down),
                len(ends),
                f"Switch {switch} of group {group}: {len(down)} of its {len(ends)} NICs are low, "
                f"median loss {_percent(loss)}; it is reported instead of its NICs.",
            )
        )
    return switches, taken


def _nodes(
    rounds: RoundsMember, low: Mapping[End, _Low], confirmed: set[End]
) -> Iterator[FaultyEndpoint]:
    """Yield the nodes of which all NICs are low, at least half of them by themselves."""
    for node, member in enumerate(rounds["nodes"]):
        ends = [(node, position) for position in range(len(member["nics"]))]
        sure = [end for end in ends if end in confirmed]
        if len(ends) < 2 or any(end not in low for end in ends) or 2 * len(sure) < len(ends):
            continue
        effects = [low[end].effect for end in ends]
        loss = median([low[end].loss for end in ends])
        ways = frozenset.intersection(*(low[end].ways for end in ends)) or frozenset(
            {SENDING, RECEIVING}
        )
        error = max(effect.error for effect in effects)
        partners = min(effect.partners for effect in effects)
        yield FaultyEndpoint(
            member["node"], None, loss, *_interval(loss, error),
            max(low[end].score for end in sure), partners, _WORDS.get(ways, "both"),
            f"{member['node']}: all of its {len(ends)} NICs are low, median loss {_percent(loss)}, "
            f"over {count(partners, 'partner')}, {_again(effects)} of them proven.",
        )  # fmt: skip


def _named(rounds: RoundsMember, end: End, low: _Low) -> FaultyEndpoint:
    node, position = end
    lower, upper = _interval(low.loss, low.effect.error)
    verb = _VERBS.get(low.ways, "sends and receives")
    what = "than the same NIC of other nodes"
    if position == ALL:
        what = "with all its NICs at once than other nodes do, and each of its NICs apart is right"
    return FaultyEndpoint(
        rounds["nodes"][node]["node"], None if position == ALL else nic_name(rounds, end),
        low.loss, lower, upper, low.score, low.effect.partners, _WORDS.get(low.ways, "both"),
        f"{end_name(rounds, end)} {verb} {_percent(low.loss)} ({100 * lower:.1f} to "
        f"{_percent(upper)}) slower {what}: the median over "
        f"{count(low.effect.partners, 'partner')}, {_again([low.effect])} of them proven.",
    )  # fmt: skip


def _again(effects: Sequence[Effect]) -> int:
    return min(effect.partners_again for effect in effects)


def _interval(loss: float, error: float) -> tuple[float, float]:
    log = math.log1p(-loss)
    return 1 - math.exp(log + _NORMAL_95 * error), 1 - math.exp(log - _NORMAL_95 * error)


def _unconfirmed(
    rounds: RoundsMember, low: Mapping[End, _Low], at_fault: set[End]
) -> Iterator[str]:
    """Yield what is low enough for a name and was not seen again."""
    for end, low_end in low.items():
        if low_end.confirmed or end in at_fault or not low_end.named:
            continue
        effect = low_end.effect
        when = "with all its NICs at once" if end[1] == ALL else "with its partners"
        what = f"{end_name(rounds, end)} is {_percent(low_end.loss)} low {when}"
        if low_end.far:
            yield (
                f"{what}, and is far from most of them, as few other nodes are: NIC and distance "
                "cannot be told apart, and it is not named."
            )
        elif effect.partners_again < FEWEST_AGAIN or effect.again is None:
            yield (
                f"{what} and was measured again with {effect.partners_again} proven ones, where "
                f"{FEWEST_AGAIN} are needed: it is not named."
            )
        else:
            loss = max(0.0, 1 - math.exp(effect.again))
            yield f"{what} and {_percent(loss)} low when it was measured again: it is not named."


def _unsteady(
    rounds: RoundsMember, ends: Sequence[End], fitted: Fit, at_fault: set[End]
) -> Iterator[str]:
    for index, end in enumerate(ends):
        noises = [
            effect.own_noise
            for way in fitted.effects
            if (effect := way[index]) is not None
            and effect.own_noise is not None
            and effect.partners >= _FEWEST_UNSTEADY
        ]
        noise = max(noises, default=0.0)
        if end not in at_fault and noise >= max(_UNSTEADY_LEAST, _UNSTEADY_TIMES * fitted.noise):
            yield (
                f"{end_name(rounds, end)} is unsteady: its rates vary by {_percent(noise)} "
                f"from partner to partner, those of other NICs by {_percent(fitted.noise)}."
            )


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _with_pairs(
    attribution: Attribution,
    rounds: RoundsMember,
    fitted: Fit,
    samples: Samples,
    at_fault: Collection[End],
) -> Attribution:
    """Add the pairs of nodes, and of groups, that are low beyond what their ends explain."""
    meetings = [
        (number, (min(pair), max(pair)))
        for number, round_ in enumerate(rounds["rounds"])
        for pair in round_["pairs"]
    ]
    far = quantile(len(fitted.rests), len(fitted.rests), FALSE)
    limit = peers.limit(fitted.noise, -math.log(_LOW_PAIR), far)
    times = Counter(pair for _, pair in meetings)
    met = (meetings[meeting] for meeting in samples.meetings)
    low = grouped(
        (pair, (number, samples.ends[sender][1], rest))
        for sender, (number, pair), rest in zip(samples.senders, met, fitted.rests, strict=True)
        if rest < -limit
    )
    groups = _groups(rounds, fitted, samples, [pair for _, pair in meetings])
    low_pairs: list[LowPair] = []
    once = not_again = 0
    nodes_at_fault = {node for node, _ in at_fault}
    for pair, rests in sorted(low.items()):
        times_low = len({number for number, _, _ in rests})
        explained = nodes_at_fault.intersection(pair) and times_low < FEWEST_TIMES
        if explained or _group_pair(rounds, *pair) in groups:
            continue
        if times[pair] < FEWEST_TIMES:
            not_again += 1
        elif times_low < times[pair]:
            once += 1
        else:
            low_pairs.append(_low_pair(rounds, pair, times_low, rests))
    low_pairs.sort(key=lambda low_pair: -low_pair.loss)
    sentences = first_of([low_pair.sentence for low_pair in low_pairs], what=" pairs like them")
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
    return replace(
        attribution,
        pairs=tuple(low_pairs),
        open=(*attribution.open, *groups.values(), *sentences),
        notes=tuple(notes),
    )


def _low_pair(
    rounds: RoundsMember, pair: tuple[int, int], times: int, rests: list[tuple[int, int, float]]
) -> LowPair:
    """Return a pair of nodes that is low in each of its rounds.

    :param rests: by round and NIC position what their rates lack.
    """
    first, other = (rounds["nodes"][node]["node"] for node in pair)
    which = sorted({position for _, position, _ in rests})
    nics = tuple(nic_name(rounds, (pair[0], position)) for position in which)
    loss = 1 - math.exp(median([rest for _, _, rest in rests]))
    return LowPair(
        (first, other), nics, loss, times,
        f"{first} and {other} are {100 * loss:.1f} % lower with each other than with others, by "
        f"{listed(nics, 4)}, in each of {count(times, 'round')}: what is between them "
        "is slow, and neither node is named for it.",
    )  # fmt: skip


def _group_pair(rounds: RoundsMember, first: int, other: int) -> tuple[str, str] | None:
    """Return the groups of two nodes, by their first NICs; ``None`` within one group."""
    places = [rounds["nodes"][node]["nics"][0]["place"] for node in (first, other)]
    groups = sorted({place["group"] for place in places if place is not None})
    return (groups[0], groups[1]) if len(groups) == 2 else None


def _groups(
    rounds: RoundsMember, fitted: Fit, samples: Samples, met: Sequence[tuple[int, int]]
) -> dict[tuple[str, str], str]:
    """Return a sentence for each two groups between which most pairs are low.

    :param met: the nodes of each meeting.
    """
    of_meeting = grouped(zip(samples.meetings, fitted.rests, strict=True))
    by_groups = grouped(
        (_group_pair(rounds, *met[meeting]), median(rests)) for meeting, rests in of_meeting.items()
    )
    middles = {
        groups: logs
        for groups, logs in by_groups.items()
        if groups is not None and len(logs) >= _FEWEST_OF_GROUPS
    }
    far = quantile(len(middles), len(fitted.rests), FALSE)
    sentences = {}
    for groups, logs in sorted(middles.items()):
        # Rates of one pair of nodes at the same time share links: they count as one value.
        error = MEDIAN_WIDER * fitted.noise / math.sqrt(len(logs))
        middle = median(logs)
        if middle < -peers.limit(error, -math.log(1 - _LEAST_OF_GROUPS), far):
            sentences[groups] = (
                f"Groups {groups[0]} and {groups[1]}: rates between them are "
                f"{100 * (1 - math.exp(middle)):.1f} % lower than their NICs have elsewhere, over "
                f"{count(len(logs), 'pair')} of nodes; no node is named for it."
            )
    return sentences
