"""Claims on the placement of ranks: host-device copies by one rank per device (E6)."""

from __future__ import annotations

import statistics
from dataclasses import replace

from fabricheck.papers.claims import host, needs
from fabricheck.papers.claims.judging import above, above_by, mean, median_of, middle
from fabricheck.papers.claims.model import (
    Claim,
    Finding,
    NotTestable,
    Number,
    computed,
    number,
    verdict,
)
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Group, Judge, near, ratio
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The fractions by which a ratio may differ from the published one and a rank from a device alone,
#: and those that count as a loss and as a small loss; the rules give the reasons.
MARGIN, EQUAL, SOME_LOSS, LITTLE = 0.10, 0.03, 0.05, 0.03


def _records(run: str, ranks: int) -> tuple[str, ...]:
    return tuple(f"epicure-{run}-rank{rank}" for rank in range(ranks))


RIGHT, WRONG = _records("lumi-multi8-correct", 8), _records("lumi-multi8-incorrect", 8)
HALF, HALF_WRONG = _records("lumi-half-correct", 4), _records("lumi-half-incorrect", 4)
NEAR, FAR, SPREAD = (
    _records(f"leo-multi4-{which}", 4) for which in ("correct", "incorrect", "spread")
)


def _mean_of(records: tuple[str, ...]) -> float:
    return statistics.fmean(map(value, records))


def ranks_of(observed: Observed, placement: str) -> dict[int, Series]:
    """Return by rank the largest round-trip copy of pageable memory in a placement.

    :raises NotTestable: when the session has none, or lacks some ranks.
    """
    found = observed.select(
        experiment="E6",
        operation="both",
        host_memory="host-pageable",
        placement=placement,
        unit="GB/s",
    )
    needs.some(found, f"copies of pageable memory by ranks in placement {placement}", "E6")
    size = max(point.bytes for point in found)
    by_rank: dict[int, Series] = {}
    for point in found:
        ranks = point.ranks
        if point.bytes == size and ranks:
            by_rank.setdefault(ranks[0], point)
    launch = next(point.document for point in found if point.bytes == size).get("ranks") or ()
    if not launch or len(by_rank) != len(launch):
        raise NotTestable(f"the session has only some ranks of placement {placement} (E6)")
    return dict(sorted(by_rank.items()))


def _ranks(placement: str, name: str) -> Group:
    return Group(name, lambda observed: ranks_of(observed, placement), each="rank")


NEAR_DEVICES = _ranks("right", "a rank near its device")
IN_ORDER = _ranks("in_order", "one with cores in order")
ALONE = replace(host.PAGEABLE, name="one device alone, there and back")


def _both(observed: Observed, one: str, other: str) -> tuple[dict[int, Series], dict[int, Series]]:
    """Return the ranks of two placements, which must be the same in both."""
    ones, others = ranks_of(observed, one), ranks_of(observed, other)
    if ones.keys() != others.keys():
        raise NotTestable(f"the placements {one} and {other} have different numbers of ranks (E6)")
    return ones, others


def _numbers(name: str, points: dict[int, Series]) -> list[Number]:
    return [number(f"{name}, rank {rank}", point) for rank, point in points.items()]


def _right_above_wrong_each(observed: Observed) -> Finding:
    right, wrong = _both(observed, "right", "in_order")
    published = [value(good) / value(bad) for good, bad in zip(RIGHT, WRONG, strict=True)]
    least, most = min(published), max(published)
    ratios = {rank: right[rank].value / wrong[rank].value for rank in right}
    worse = [rank for rank in right if not above(right[rank], wrong[rank])]
    inside = all(least * (1 - MARGIN) <= ratio <= most * (1 + MARGIN) for ratio in ratios.values())
    return verdict(
        inside and not worse,
        f"Each rank near its device gets {min(ratios.values()):.2f} to {max(ratios.values()):.2f} "
        f"times what it gets with cores in order, {len(worse)} of {len(ratios)} get no more; "
        f"published are {least:.2f} to {most:.2f}.",
        *_numbers("right", right),
        *_numbers("wrong", wrong),
    )


def _half_right_as_one(observed: Observed) -> Finding:
    half, alone = ranks_of(observed, "half_right"), ALONE.choose(observed)
    rate = middle(alone.values())
    away = max(half.values(), key=lambda point: abs(point.value - rate))
    return verdict(
        abs(away.value / rate - 1) <= EQUAL,
        f"A rank for each package, near it, gets {mean(half.values()):.2f} GB/s, the mean, and one "
        f"device alone {rate:.2f}; the rank farthest from that has {away.value:.2f}.",
        computed("one device alone, there and back", rate, "GB/s", *alone.values()),
        *_numbers("half, right", half),
    )


def _half_wrong(observed: Observed) -> tuple[dict[int, Series], dict[int, Series], list[int]]:
    """Return half of the ranks, placed right and placed wrong, and the ranks that lose."""
    right, wrong = _both(observed, "half_right", "half_rotated")
    losing = [rank for rank in right if above_by(right[rank], wrong[rank], SOME_LOSS)]
    return right, wrong, losing


def _half_wrong_some_lose(observed: Observed) -> Finding:
    right, wrong, losing = _half_wrong(observed)
    return verdict(
        0 < len(losing) < len(right),
        f"Of {len(right)} ranks with their memory on other packages' domains {len(losing)} lose "
        "more than 5 %; published are 2 of 4.",
        *_numbers("half, right", right),
        *_numbers("half, wrong", wrong),
    )


def _half_wrong_loss(observed: Observed) -> Finding:
    right, wrong, losing = _half_wrong(observed)
    loss = 100 * (1 - min(wrong[rank].value / right[rank].value for rank in right))
    wanted = 100 * small_drop()
    return verdict(
        bool(losing) and abs(loss - wanted) <= 100 * SOME_LOSS,
        f"The rank that loses most with its memory on another package's domain loses {loss:.1f} %; "
        f"published are {wanted:.1f} %.",
        computed("largest loss of a rank", loss, "percent", *right.values(), *wrong.values()),
        *_numbers("half, right", right),
        *_numbers("half, wrong", wrong),
    )


def small_drop() -> float:
    """Return the largest loss that EPICURE calls a small drop, as a fraction."""
    return 1 - min(value(bad) / value(good) for good, bad in zip(HALF, HALF_WRONG, strict=True))


def _share_loses(placement: str) -> Judge:
    """Return a rule: ranks in a shared placement lose more than EPICURE's small drop."""

    def judge(observed: Observed) -> Finding:
        right, shared = ranks_of(observed, "right"), ranks_of(observed, placement)
        limit = small_drop()
        rate, best = mean(right.values()), max(shared.values(), key=median_of)
        drop = 100 * (1 - mean(shared.values()) / rate)
        return verdict(
            best.value < rate * (1 - limit),
            f"Ranks in the placement {placement} get {mean(shared.values()):.2f} GB/s, the "
            f"mean, {drop:.0f} % less than {rate:.2f} near a device each; the best of them gets "
            f"{best.value:.2f}.",
            computed("right, mean of the ranks", rate, "GB/s", *right.values()),
            *_numbers(placement, shared),
        )

    return judge


LIMIT = "simulation.pageable_host_gbs"
COST = "simulation.pageable_far_cost"
EFFICIENCY = "simulation.pageable_efficiency"

CLAIMS = (
    Claim(
        id="right-above-wrong-mean",
        statement="Ranks near their devices get 1.5 times what they get with cores in order.",
        document="epicure",
        where="Multiple tasks, correct and incorrect placement",
        rule="the ratio of the means over the ranks is the published one, 10 % either way: its "
        "single copies spread by up to 12 % around a rank's mean",
        requires=needs.own_domains,
        judge=ratio(
            NEAR_DEVICES,
            IN_ORDER,
            near(MARGIN),
            lambda: (
                value("epicure-lumi-multi8-correct-mean")
                / value("epicure-lumi-multi8-incorrect-mean")
            ),
        ),
        experiments=("E6",),
        records=("epicure-lumi-multi8-correct-mean", "epicure-lumi-multi8-incorrect-mean"),
        rests_on=(LIMIT, COST),
    ),
    Claim(
        id="right-above-wrong-each",
        statement="Every rank gains from a core near its device, 1.1 to 2.4 times.",
        document="epicure",
        where="Multiple tasks, correct and incorrect placement",
        rule="every rank is above itself with cores in order, the intervals do not meet, and its "
        "ratio is among the published ones, 10 % more or less: copies spread by up to 12 %",
        requires=needs.own_domains,
        judge=_right_above_wrong_each,
        experiments=("E6",),
        records=(*RIGHT, *WRONG),
        rests_on=(LIMIT, COST),
    ),
    Claim(
        id="eight-ranks-below-one",
        statement="Eight ranks near their devices get 73 % each of what one alone gets.",
        document="epicure",
        where="Multiple tasks, correct placement",
        rule="the mean over the ranks is the published part of a device alone (E2, there and "
        "back), 10 % either way: single copies spread by up to 12 %",
        requires=needs.own_domains,
        judge=ratio(
            NEAR_DEVICES,
            ALONE,
            near(MARGIN),
            lambda: value("epicure-lumi-multi8-correct-mean") / value("epicure-lumi-single-full"),
        ),
        experiments=("E2", "E6"),
        records=("epicure-lumi-multi8-correct-mean", "epicure-lumi-single-full"),
        rests_on=(LIMIT, EFFICIENCY),
    ),
    Claim(
        id="half-right-as-one",
        statement="A rank for each package, near it, gets as much as a single rank.",
        document="epicure",
        where="Half usage",
        rule="every rank is within 3 % of a device alone (E2, there and back): published are 0.1 "
        "%, and another program measures the device alone",
        requires=needs.own_domains,
        judge=_half_right_as_one,
        experiments=("E2", "E6"),
        records=("epicure-lumi-single-full", *HALF),
    ),
    Claim(
        id="half-wrong-some-lose",
        statement="With a rank for each package on other domains some ranks lose, others do not.",
        document="epicure",
        where="Half usage",
        rule="some ranks, not all, lose more than 5 % beyond the noise: published losses are 0.6 "
        "and 0.7 %, 12.5 and 12.7 %",
        requires=needs.own_domains,
        judge=_half_wrong_some_lose,
        experiments=("E6",),
        records=(*HALF, *HALF_WRONG),
        rests_on=(LIMIT, COST),
    ),
    Claim(
        id="half-wrong-13",
        statement="With a rank for each package on other domains a rank loses 13 % at most.",
        document="epicure",
        where="Half usage",
        rule="the largest loss of a rank is the published 12.7 %, 5 points either way: single "
        "copies spread by several percent",
        requires=needs.own_domains,
        judge=_half_wrong_loss,
        experiments=("E6",),
        records=(*HALF, *HALF_WRONG),
        rests_on=(LIMIT, COST),
    ),
    Claim(
        id="shared-device-loses",
        statement="Ranks that share a device lose a good part of their bandwidth.",
        document="epicure",
        where="Other tests",
        rule="even the best of them is more than 13 % below the mean of ranks with a device each: "
        'the document prints no number, "significantly" is more than the 13 % that it calls small',
        requires=needs.node,
        judge=_share_loses("shared_device"),
        experiments=("E6",),
    ),
    Claim(
        id="shared-domain-loses",
        statement="Ranks whose memory shares one NUMA domain lose a good part of their bandwidth.",
        document="epicure",
        where="Other tests",
        rule="even the best of them is more than 13 % below the mean of ranks near their devices: "
        'the document prints no number, "significantly" is more than the 13 % that it calls small',
        requires=needs.node,
        judge=_share_loses("shared_domain"),
        experiments=("E6",),
    ),
    Claim(
        id="spread-over-domains-helps",
        statement="Where all devices are near one domain, ranks gain from using another one, too.",
        document="epicure",
        where="Leonardo Booster, Placement of multiple tasks",
        rule="the ratio of the means over the ranks is the published 1.23, 10 % either way, as for "
        "the document's other ratios",
        requires=needs.one_domain_of_several,
        judge=ratio(
            _ranks("spread", "a rank spread over both domains"),
            _ranks("right", "one on the near domain"),
            near(MARGIN),
            lambda: _mean_of(SPREAD) / _mean_of(NEAR),
        ),
        experiments=("E6",),
        records=(*NEAR, *SPREAD),
    ),
    Claim(
        id="near-or-far-domain",
        statement="Where all devices are near one domain, all ranks on another one lose little.",
        document="epicure",
        where="Leonardo Booster, Placement of multiple tasks",
        rule="the means over the ranks differ by at most 3 %: published are 0.6 % for the means, "
        "and single ranks of one placement differ by 2.3 %",
        requires=needs.one_domain_of_several,
        judge=ratio(
            _ranks("far", "a rank on the far domain"),
            _ranks("right", "one on the near domain"),
            lambda found, _: abs(found - 1) <= LITTLE,
            lambda: _mean_of(FAR) / _mean_of(NEAR),
        ),
        experiments=("E6",),
        records=(*NEAR, *FAR),
    ),
)
