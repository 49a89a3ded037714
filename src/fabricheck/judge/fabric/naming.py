"""Names of NICs, nodes and switches, by their effects."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core.statistics import quantile
from fabricheck.core.text import count
from fabricheck.judge.fabric.fit import RECEIVING, SENDING, Effect, Fit
from fabricheck.judge.fabric.model import Measured, Named, NamedSwitch
from fabricheck.judge.fabric.samples import ALL

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


@dataclass(frozen=True)
class Names:
    """What is named, and the ends that explain what is low: ``at_fault`` by node and position."""

    named: tuple[Named, ...]
    switches: tuple[NamedSwitch, ...]
    open: tuple[str, ...]
    least: float
    at_fault: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class _Low:
    """An end that is low: its worse direction, and whether phase 2 saw it again.

    ``far``: what is low may be the distance to its partners. It is then not confirmed.
    """

    effect: Effect
    ways: frozenset[int]
    score: float
    confirmed: bool
    far: bool

    @property
    def loss(self) -> float:
        return 1 - math.exp(self.effect.score)


def end_name(measured: Measured, node: int, position: int) -> str:
    """Return ``node:NIC``, or the node for all NICs at once."""
    its = measured.nodes[node]
    return its.name if position == ALL else f"{its.name}:{its.nics[position].name}"


def name(measured: Measured, apart: Fit, together: Fit) -> Names:
    """Name what is low in the fits of NICs apart and of nodes with all NICs at once."""
    ends = [
        (node, position)
        for node, its in enumerate(measured.nodes)
        for position in range(len(its.nics))
    ]
    tests = sum(effect is not None for way in apart.effects for effect in way)
    rule = _Rule(apart, tests)
    passed, low = rule.judged(ends)
    confirmed = {end for end, one in passed.items() if one.confirmed}
    switches, of_switch = _switches(measured, low, confirmed)
    left = {end: one for end, one in low.items() if end not in of_switch}
    named = list(_nodes(measured, left, confirmed))
    whole = {one.node for one in named}
    for end in ends:
        if end in confirmed and end in left and measured.nodes[end[0]].name not in whole:
            named.append(_named(measured, end, passed[end]))
    at_fault = of_switch | {
        end for end in left if end in confirmed or measured.nodes[end[0]].name in whole
    }
    said = [*_unconfirmed(measured, passed, at_fault), *_unsteady(measured, ends, apart, at_fault)]
    known = {node for node, _ in at_fault}
    of_nodes = _Rule(together, sum(one is not None for way in together.effects for one in way))
    more, _ = of_nodes.judged([(node, ALL) for node in range(len(measured.nodes))])
    more = {end: one for end, one in more.items() if end[0] not in known}
    named += [_named(measured, end, one) for end, one in more.items() if one.confirmed]
    at_fault |= {end for end, one in more.items() if one.confirmed}
    said += _unconfirmed(measured, more, at_fault)
    named.sort(key=lambda one: -one.loss)
    least = 1 - math.exp(-rule.limit(apart.typical_error))
    return Names(tuple(named), tuple(switches), tuple(said), least, frozenset(at_fault))


class _Rule:
    """How far below the others an end of a fit is named."""

    def __init__(self, fitted: Fit, tests: int) -> None:
        self._fit = fitted
        self._deviations = quantile(tests, tests // 2, FALSE)

    def limit(self, error: float) -> float:
        """Return the loss, as a logarithm, from which on an end with that error is named."""
        return max(_LEAST_LOG, self._deviations * math.hypot(self._fit.spread, error))

    def judged(
        self, ends: Sequence[tuple[int, int]]
    ) -> tuple[dict[tuple[int, int], _Low], dict[tuple[int, int], _Low]]:
        """Return the ends that are low enough for a name, and all that are low."""
        passed: dict[tuple[int, int], _Low] = {}
        low: dict[tuple[int, int], _Low] = {}
        for index, end in enumerate(ends):
            effects = {
                way: effect
                for way in (SENDING, RECEIVING)
                if (effect := self._fit.effects[way][index]) is not None
            }
            below = {
                way: effect
                for way, effect in effects.items()
                if -effect.score >= self._low(effect.error)
            }
            if not below:
                continue
            # Of what was seen again, the worse direction.
            ranked = sorted(below.values(), key=lambda one: (not self._confirmed(one), one.score))
            worst = ranked[0]
            far = index in self._fit.far
            low[end] = _Low(
                worst, frozenset(below), -worst.score / self.limit(worst.error),
                self._confirmed(worst) and not far, far,
            )  # fmt: skip
            if any(-one.score >= self.limit(one.error) for one in ranked):
                passed[end] = low[end]
        return passed, low

    def _low(self, error: float) -> float:
        return max(_LEAST_LOG, _LOW_DEVIATIONS * math.hypot(self._fit.spread, error))

    def _confirmed(self, effect: Effect) -> bool:
        return (
            -effect.score >= self.limit(effect.error)
            and effect.again is not None
            and effect.partners_again >= FEWEST_AGAIN
            and -effect.again >= _LEAST_LOG
        )


def _switches(
    measured: Measured, low: Mapping[tuple[int, int], _Low], confirmed: set[tuple[int, int]]
) -> tuple[list[NamedSwitch], set[tuple[int, int]]]:
    of_switch: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for node, its in enumerate(measured.nodes):
        for position, nic in enumerate(its.nics):
            if nic.place is not None:
                of_switch.setdefault((nic.place.group, nic.place.switch), []).append(
                    (node, position)
                )
    found: list[NamedSwitch] = []
    taken: set[tuple[int, int]] = set()
    for (group, switch), ends in sorted(of_switch.items()):
        down = [end for end in ends if end in low]
        if (
            len(down) < max(_FEWEST_OF_SWITCH, _MOST * len(ends))
            or len({node for node, _ in down}) < 2
            or 2 * len(confirmed.intersection(down)) < len(down)
        ):
            continue
        loss = statistics.median(low[end].loss for end in down)
        taken |= set(down)
        found.append(
            NamedSwitch(
                group,
                switch,
                loss,
                len(down),
                len(ends),
                f"Switch {switch} of group {group}: {len(down)} of its {len(ends)} NICs are low, "
                f"by {_percent(loss)} in the middle; it is named in their place.",
            )
        )
    return found, taken


def _nodes(
    measured: Measured, low: Mapping[tuple[int, int], _Low], confirmed: set[tuple[int, int]]
) -> Iterator[Named]:
    """Yield the nodes of which all NICs are low, at least half of them by themselves."""
    for node, its in enumerate(measured.nodes):
        ends = [(node, position) for position in range(len(its.nics))]
        sure = [end for end in ends if end in confirmed]
        if len(ends) < 2 or any(end not in low for end in ends) or 2 * len(sure) < len(ends):
            continue
        effects = [low[end].effect for end in ends]
        loss = statistics.median(low[end].loss for end in ends)
        ways = frozenset.intersection(*(low[end].ways for end in ends)) or frozenset(
            {SENDING, RECEIVING}
        )
        error = max(one.error for one in effects)
        partners = min(one.partners for one in effects)
        yield Named(
            its.name, None, loss, *_interval(loss, error),
            max(low[end].score for end in sure), partners, _WORDS.get(ways, "both"),
            f"{its.name}: all of its {len(ends)} NICs are low, by {_percent(loss)} in the middle, "
            f"over {count(partners, 'partner')}, {_again(effects)} of them proven.",
        )  # fmt: skip


def _named(measured: Measured, end: tuple[int, int], low: _Low) -> Named:
    node, position = end
    nic = None if position == ALL else measured.nodes[node].nics[position].name
    lower, upper = _interval(low.loss, low.effect.error)
    verb = _VERBS.get(low.ways, "sends and receives")
    what = "than the same NIC of other nodes"
    if position == ALL:
        what = "with all its NICs at once than other nodes do, and each of its NICs apart is right"
    return Named(
        measured.nodes[node].name, nic, low.loss, lower, upper, low.score, low.effect.partners,
        _WORDS.get(low.ways, "both"),
        f"{end_name(measured, *end)} {verb} {_percent(low.loss)} ({100 * lower:.1f} to "
        f"{_percent(upper)}) slower {what}: the median over "
        f"{count(low.effect.partners, 'partner')}, {_again([low.effect])} of them proven.",
    )  # fmt: skip


def _again(effects: Sequence[Effect]) -> int:
    return min(one.partners_again for one in effects)


def _interval(loss: float, error: float) -> tuple[float, float]:
    log = math.log1p(-loss)
    return 1 - math.exp(log + _NORMAL_95 * error), 1 - math.exp(log - _NORMAL_95 * error)


def _unconfirmed(
    measured: Measured, passed: Mapping[tuple[int, int], _Low], at_fault: set[tuple[int, int]]
) -> Iterator[str]:
    """Yield what is low enough for a name and was not seen again."""
    for end, one in passed.items():
        if one.confirmed or end in at_fault:
            continue
        effect = one.effect
        of = "with all its NICs at once" if end[1] == ALL else "with its partners"
        said = f"{end_name(measured, *end)} is {_percent(one.loss)} low {of}"
        if one.far:
            yield (
                f"{said}, and is far from most of them, as few other nodes are: NIC and distance "
                "cannot be told apart, and it is not named."
            )
        elif effect.partners_again < FEWEST_AGAIN or effect.again is None:
            yield (
                f"{said} and was measured again with {effect.partners_again} proven ones, where "
                f"{FEWEST_AGAIN} are needed: it is not named."
            )
        else:
            loss = max(0.0, 1 - math.exp(effect.again))
            yield f"{said} and {_percent(loss)} low when it was measured again: it is not named."


def _unsteady(
    measured: Measured, ends: Sequence[tuple[int, int]], fitted: Fit, at_fault: set[tuple[int, int]]
) -> Iterator[str]:
    for index, end in enumerate(ends):
        noises = [
            effect.own_noise
            for way in fitted.effects
            if (effect := way[index]) is not None
            and effect.own_noise is not None
            and effect.partners >= _FEWEST_UNSTEADY
        ]
        own = max(noises, default=0.0)
        if end in at_fault or own < max(_UNSTEADY_LEAST, _UNSTEADY_TIMES * fitted.noise):
            continue
        yield (
            f"{end_name(measured, *end)} is unsteady: its rates vary by {_percent(own)} from "
            f"partner to partner, those of other NICs by {_percent(fitted.noise)}."
        )


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
