"""Claims on where ranks sit: host and device by one rank per device (E6)."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from fabricheck.judge.claims import host, needs
from fabricheck.judge.claims.judging import above, above_by, mean
from fabricheck.judge.claims.model import (
    Claim,
    Finding,
    NotTestable,
    Number,
    computed,
    number,
    verdict,
)
from fabricheck.judge.claims.published import value
from fabricheck.results.observed import Observed, Point

#: EPICURE's single copies spread by up to 12 % around a rank's mean; a tenth of a ratio.
MARGIN = 0.10

#: A rank alone is measured by another program; published are 0.1 %.
EQUAL = 0.03

#: Between the published losses of 0.7 % and 12.7 % of four ranks.
SOME_LOSS = 0.05

#: Ranks of Leonardo's near and far domain differ by 2.5 % at most, their means by 0.6 %.
LITTLE = 0.03


def _records(run: str, ranks: int) -> tuple[str, ...]:
    return tuple(f"epicure-{run}-rank{rank}" for rank in range(ranks))


RIGHT, WRONG = _records("lumi-multi8-correct", 8), _records("lumi-multi8-incorrect", 8)
HALF, HALF_WRONG = _records("lumi-half-correct", 4), _records("lumi-half-incorrect", 4)
NEAR, FAR, SPREAD = (
    _records(f"leo-multi4-{which}", 4) for which in ("correct", "incorrect", "spread")
)


def _mean_of(records: tuple[str, ...]) -> float:
    return statistics.fmean(map(value, records))


def ranks_of(observed: Observed, placement: str) -> dict[int, Point]:
    """Return by rank the largest copy there and back of pageable memory in a placement.

    :raises NotTestable: when the session has none, or not of every rank.
    """
    found = observed.select(
        experiment="E6", operation="both", memory="host-pageable", placement=placement, unit="GB/s"
    )
    needs.some(found, f"copies of pageable memory by ranks in the placement {placement}", "E6")
    size = max(point.bytes for point in found)
    by_rank: dict[int, Point] = {}
    for point in found:
        ranks = point.series.get("ranks")
        if point.bytes == size and ranks:
            by_rank.setdefault(ranks[0], point)
    launch = next(point.document for point in found if point.bytes == size).get("ranks") or ()
    if not launch or len(by_rank) != len(launch):
        raise NotTestable(f"of the placement {placement} the session has some ranks only (E6)")
    return dict(sorted(by_rank.items()))


def _both(observed: Observed, one: str, other: str) -> tuple[dict[int, Point], dict[int, Point]]:
    """Return the ranks of two placements, the same in both."""
    ones, others = ranks_of(observed, one), ranks_of(observed, other)
    if ones.keys() != others.keys():
        raise NotTestable(f"the placements {one} and {other} have different numbers of ranks (E6)")
    return ones, others


def _numbers(name: str, points: dict[int, Point]) -> list[Number]:
    return [number(f"{name}, rank {rank}", point) for rank, point in points.items()]


def _right_above_wrong_mean(observed: Observed) -> Finding:
    needs.own_domains(observed)
    right, wrong = _both(observed, "right", "in_order")
    ratio = mean(right.values()) / mean(wrong.values())
    wanted = value("epicure-lumi-multi8-correct-mean") / value("epicure-lumi-multi8-incorrect-mean")
    return verdict(
        abs(ratio / wanted - 1) <= MARGIN,
        f"Ranks near their devices get {mean(right.values()):.2f} GB/s, with cores in order "
        f"{mean(wrong.values()):.2f}, means over {len(right)} ranks: {ratio:.2f} times as much; "
        f"published are {wanted:.2f}.",
        computed(
            "right over wrong, of the means", ratio, "ratio", *right.values(), *wrong.values()
        ),
        computed("right, mean of the ranks", mean(right.values()), "GB/s", *right.values()),
        computed("wrong, mean of the ranks", mean(wrong.values()), "GB/s", *wrong.values()),
    )


def _right_above_wrong_each(observed: Observed) -> Finding:
    needs.own_domains(observed)
    right, wrong = _both(observed, "right", "in_order")
    published = [value(good) / value(bad) for good, bad in zip(RIGHT, WRONG, strict=True)]
    least, most = min(published), max(published)
    ratios = {rank: right[rank].median / wrong[rank].median for rank in right}
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


def _eight_below_one(observed: Observed) -> Finding:
    needs.own_domains(observed)
    right, alone = ranks_of(observed, "right"), _alone(observed)
    rate = mean(right.values())
    part = 100 * rate / alone[0]
    wanted = 100 * value("epicure-lumi-multi8-correct-mean") / value("epicure-lumi-single-full")
    return verdict(
        abs(part / wanted - 1) <= MARGIN,
        f"{len(right)} ranks near their devices get {rate:.2f} GB/s each, the mean, and one device "
        f"alone {alone[0]:.2f}: {part:.0f} %; published are {wanted:.0f} %.",
        computed("right, mean of the ranks", rate, "GB/s", *right.values()),
        computed("one device alone, there and back", alone[0], "GB/s", *alone[1]),
    )


def _alone(observed: Observed) -> tuple[float, list[Point]]:
    """Return the median device's copy there and back alone, near its memory, and the series."""
    to, back = (host.by_device(observed, operation, "pageable") for operation in ("h2d", "d2h"))
    both = [(to[device], back[device]) for device in to if device in back]
    if not both:
        raise NotTestable("no device has copies of pageable memory in both directions (E2)")
    rates = [host.there_and_back(*pair) for pair in both]
    return statistics.median(rates), [point for pair in both for point in pair]


def _half_right_as_one(observed: Observed) -> Finding:
    needs.own_domains(observed)
    half, alone = ranks_of(observed, "half_right"), _alone(observed)
    away = max(half.values(), key=lambda point: abs(point.median - alone[0]))
    return verdict(
        abs(away.median / alone[0] - 1) <= EQUAL,
        f"A rank for each package, near it, gets {mean(half.values()):.2f} GB/s, the mean, and one "
        f"device alone {alone[0]:.2f}; the rank farthest from that has {away.median:.2f}.",
        computed("one device alone, there and back", alone[0], "GB/s", *alone[1]),
        *_numbers("half, right", half),
    )


def _half_wrong(observed: Observed) -> tuple[dict[int, Point], dict[int, Point], list[int]]:
    """Return half of the devices placed right and wrong, and the ranks that lose."""
    needs.own_domains(observed)
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
    loss = 100 * (1 - min(wrong[rank].median / right[rank].median for rank in right))
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
    """Return the largest loss that EPICURE calls a small drop, as a part."""
    return 1 - min(value(bad) / value(good) for good, bad in zip(HALF, HALF_WRONG, strict=True))


def _share_loses(placement: str) -> Callable[[Observed], Finding]:
    """Return a rule: ranks in a shared placement lose more than what EPICURE calls a small drop."""

    def judge(observed: Observed) -> Finding:
        needs.node(observed)
        right, shared = ranks_of(observed, "right"), ranks_of(observed, placement)
        limit = small_drop()
        rate, best = mean(right.values()), max(shared.values(), key=lambda point: point.median)
        drop = 100 * (1 - mean(shared.values()) / rate)
        return verdict(
            best.median < rate * (1 - limit),
            f"Ranks in the placement {placement} get {mean(shared.values()):.2f} GB/s, the "
            f"mean, {drop:.0f} % less than {rate:.2f} near a device each; the best of them gets "
            f"{best.median:.2f}.",
            computed("right, mean of the ranks", rate, "GB/s", *right.values()),
            *_numbers(placement, shared),
        )

    return judge


def _spread_over_domains(observed: Observed) -> Finding:
    needs.one_domain_of_several(observed)
    near, spread = _both(observed, "right", "spread")
    ratio = mean(spread.values()) / mean(near.values())
    wanted = _mean_of(SPREAD) / _mean_of(NEAR)
    return verdict(
        abs(ratio / wanted - 1) <= MARGIN,
        f"Ranks spread over both domains get {mean(spread.values()):.2f} GB/s, all on the near one "
        f"{mean(near.values()):.2f}, means: {ratio:.2f} times as much; published are {wanted:.2f}.",
        computed("spread over near, of the means", ratio, "ratio", *near.values()),
        *_numbers("near", near),
        *_numbers("spread", spread),
    )


def _near_or_far(observed: Observed) -> Finding:
    needs.one_domain_of_several(observed)
    near, far = _both(observed, "right", "far")
    ratio = mean(far.values()) / mean(near.values())
    return verdict(
        abs(ratio - 1) <= LITTLE,
        f"Ranks all on the far domain get {mean(far.values()):.2f} GB/s and on the near one "
        f"{mean(near.values()):.2f}, means; published are {_mean_of(FAR):.2f} and "
        f"{_mean_of(NEAR):.2f}.",
        computed("far over near, of the means", ratio, "ratio", *near.values()),
        *_numbers("near", near),
        *_numbers("far", far),
    )


LIMIT = "simulation.pageable_host_gbs"
COST = "simulation.pageable_far_cost"
ALONE = "simulation.pageable_efficiency"

CLAIMS = (
    Claim(
        id="right-above-wrong-mean",
        statement="Ranks near their devices get 1.5 times what they get with cores in order.",
        document="epicure",
        where="Multiple tasks, correct and incorrect placement",
        rule="the ratio of the means over the ranks is the published one, 10 % either way: its "
        "single copies spread by up to 12 % around a rank's mean",
        judge=_right_above_wrong_mean,
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
        judge=_eight_below_one,
        experiments=("E2", "E6"),
        records=("epicure-lumi-multi8-correct-mean", "epicure-lumi-single-full"),
        rests_on=(LIMIT, ALONE),
    ),
    Claim(
        id="half-right-as-one",
        statement="A rank for each package, near it, gets as much as a single rank.",
        document="epicure",
        where="Half usage",
        rule="every rank is within 3 % of a device alone (E2, there and back): published are 0.1 "
        "%, and another program measures the device alone",
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
        judge=_spread_over_domains,
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
        judge=_near_or_far,
        experiments=("E6",),
        records=(*NEAR, *FAR),
    ),
)
