"""Claims on devices that use host memory at the same time (E5), and on ranks' placement (E6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fabricheck.core.show import listed
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import Group, Values, by_subject, combined, group, pairs
from fabricheck.papers.claims.host import round_trips
from fabricheck.papers.claims.kinds import (
    Judge,
    Limits,
    at_least,
    at_most,
    both,
    equal,
    level,
    mean_of,
    order,
    quotient,
    ratio,
)
from fabricheck.papers.claims.model import Claim, NotTestable, value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

#: The tolerance of a ratio of devices at once, of which the paper prints no number, and of ranks.
TENTH = 0.10

#: The fraction that counts as a loss of a rank; the rules give the reasons.
SOME_LOSS = 0.05

WORDS = "10 % either way, allowing for noise"
REASON = "the document's words, without a printed number, leave about a tenth"


def _at_once(name: str, *others: str) -> Group:
    """Return the total rate of STREAM copies between host arrays by a set of devices, by size.

    :param name: the set's name in the node model. :param others: sets that have the size, too.
    """

    def choose(observed: Observed) -> Values:
        by_set = {each: _totals(observed, each) for each in (name, *others)}
        sizes = set.intersection(*(set(by_size) for by_size in by_set.values()))
        if not sizes:
            raise NotTestable("the session has no size in common of these sets of devices (E5)")
        return by_subject({max(sizes): by_set[name][max(sizes)]})

    return Group(f"STREAM copy of host memory by the devices {name}", choose, "size")


def _at_once_over(name: str, base: str, record: str, *others: str) -> Judge:
    """Rule: a set over another one can be what a record states, a tenth either way."""
    return equal(
        _at_once(name, base, *others), _at_once(base, name, *others), Limits(record, part=TENTH)
    )


def _totals(observed: Observed, name: str) -> dict[int, Series]:
    node = needs.node(observed)
    members = node.device_sets().get(name)
    if members is None:
        raise NotTestable(f"{node.name} has no set of devices for it")
    totals = needs.series(
        observed,
        f"STREAM copy of host memory by the device(s) {listed(map(str, members))} at once",
        rate=True,
        experiment="E5",
        operation="copy",
        devices=members,
        role="single" if len(members) == 1 else "sum",
    )
    return {point.bytes: point for point in totals}


def _records(run: str, ranks: int) -> tuple[str, ...]:
    return tuple(f"epicure-{run}-rank{rank}" for rank in range(ranks))


RIGHT, WRONG = _records("lumi-multi8-correct", 8), _records("lumi-multi8-incorrect", 8)
HALF, HALF_WRONG = _records("lumi-half-correct", 4), _records("lumi-half-incorrect", 4)
NEAR, FAR, SPREAD = (
    _records(f"leo-multi4-{which}", 4) for which in ("correct", "incorrect", "spread")
)


def _ranks(placement: str, name: str) -> Group:
    """Return by rank the largest round-trip copy of pageable memory in a placement."""

    def choose(observed: Observed) -> Values:
        points = needs.series(
            observed,
            f"copies of pageable memory by ranks in placement {placement}",
            experiment="E6",
            operation="there-and-back",
            host_memory="host-pageable",
            placement=placement,
            unit="GB/s",
        )
        size = max(point.bytes for point in points)
        of_size = [point for point in points if point.bytes == size]
        by_rank = {point.ranks[0]: point for point in reversed(of_size) if point.ranks}
        launch = of_size[0].document.get("ranks") or ()
        if not launch or len(by_rank) != len(launch):
            raise NotTestable(f"the session has only some ranks of placement {placement} (E6)")
        return by_subject(dict(sorted(by_rank.items())))

    return Group(f"copies by ranks {name}", choose, "rank", "mean")


RANKS = _ranks("right", "near their devices")
IN_ORDER = _ranks("in_order", "with cores in order")
HALF_RANKS = _ranks("half_right", "for each package, near it")
HALF_ROTATED = _ranks("half_rotated", "with their memory on other packages' domains")


@group("what a rank loses on other domains beyond the noise", "rank", "mean")
def _losses(observed: Observed) -> Values:
    both_placements = pairs(observed, HALF_RANKS, HALF_ROTATED)
    return {
        rank: combined(100 * (1 - wrong.high / right.low), "percent", (right, wrong))
        for rank, (right, wrong) in both_placements.items()
    }


def _gain(end: Callable[[Iterable[float]], float]) -> Callable[[], float]:
    """Return the least or the greatest published gain of a rank, when it is asked for."""
    return lambda: end(value(good) / value(bad) for good, bad in zip(RIGHT, WRONG, strict=True))


def _small_drop() -> float:
    """Return the largest loss that EPICURE calls a small drop, in percent."""
    pairs = zip(HALF, HALF_WRONG, strict=True)
    return 100 * (1 - min(value(bad) / value(good) for good, bad in pairs))


def _share_loses(placement: str, name: str) -> Judge:
    """Rule: even the best rank of a placement is below the others by more than the small drop."""
    best = _ranks(placement, name).whole("greatest")
    return ratio(best, RANKS, at_most(lambda: 1 - _small_drop() / 100))


LIMIT = "simulation.pageable_host_gbs"
COST = "simulation.pageable_far_cost"
EFFICIENCY = "simulation.pageable_efficiency"

CLAIMS = (
    Claim(
        id="one-package-no-gain",
        statement="Two devices of one package give no more host bandwidth than one.",
        document="paper",
        where="IV.C, figure 4",
        rule=f"the ratio is 1, {WORDS}: {REASON}",
        requires=needs.own_domains,
        judge=_at_once_over("two_one_package", "one", "paper-cpugpu-stream-same-2"),
        experiments=("E5",),
        records=("paper-cpugpu-stream-same-2",),
    ),
    Claim(
        id="spread-doubles",
        statement="Two devices of different packages give twice the host bandwidth of one.",
        document="paper",
        where="IV.C, figure 4",
        rule=f"the ratio is 2, {WORDS}: {REASON}",
        requires=needs.own_domains,
        judge=_at_once_over("two_spread", "one", "paper-cpugpu-stream-spread-2"),
        experiments=("E5",),
        records=("paper-cpugpu-stream-spread-2",),
    ),
    Claim(
        id="scaling-1-2-4",
        statement="Host bandwidth is proportional to one, two and four devices, spread.",
        document="paper",
        where="IV.C, figure 5",
        rule=f"the ratios to one device are 2 and 4, {WORDS}: {REASON}",
        requires=needs.own_domains,
        judge=both(
            _at_once_over("two_spread", "one", "paper-cpugpu-stream-spread-2", "four_spread"),
            _at_once_over("four_spread", "one", "paper-cpugpu-stream-4", "two_spread"),
        ),
        experiments=("E5",),
        records=("paper-cpugpu-stream-spread-2", "paper-cpugpu-stream-4"),
    ),
    Claim(
        id="eight-as-four",
        statement="Eight devices give no more host bandwidth than four of different packages.",
        document="paper",
        where="IV.C, figure 5",
        rule=f"the ratio is 1, {WORDS}: {REASON}",
        requires=needs.own_domains,
        judge=_at_once_over("all", "four_spread", "paper-cpugpu-stream-8v4"),
        experiments=("E5",),
        records=("paper-cpugpu-stream-8v4",),
    ),
    Claim(
        id="right-above-wrong-mean",
        statement="Ranks near their devices get 1.5 times what they get with cores in order.",
        document="epicure",
        where="Multiple tasks, correct and incorrect placement",
        rule="the ratio of the means over the ranks is the published one, 10 % either way: its "
        "single copies spread by up to 12 % around a rank's mean",
        requires=needs.own_domains,
        judge=ratio(
            RANKS,
            IN_ORDER,
            Limits(
                quotient("epicure-lumi-multi8-correct-mean", "epicure-lumi-multi8-incorrect-mean"),
                part=TENTH,
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
        judge=both(
            order(RANKS, IN_ORDER),
            level((RANKS.over(IN_ORDER).exact(), Limits(_gain(min), _gain(max), part=TENTH))),
        ),
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
            RANKS,
            round_trips,
            Limits(
                quotient("epicure-lumi-multi8-correct-mean", "epicure-lumi-single-full"), part=TENTH
            ),
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
        judge=level((HALF_RANKS.over(round_trips.whole()).exact(), Limits(1.0, part=0.03))),
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
        judge=level(
            (_losses.whole("greatest"), at_least(100 * SOME_LOSS)),
            (_losses.whole("least"), at_most(100 * SOME_LOSS)),
        ),
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
        judge=level(
            (
                HALF_ROTATED.over(HALF_RANKS, change=True).exact().whole("least"),
                Limits(lambda: -_small_drop(), points=5.0),
            )
        ),
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
        judge=_share_loses("shared_device", "of those that share a device"),
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
        judge=_share_loses("shared_domain", "of those that share a domain"),
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
            _ranks("spread", "spread over both domains"),
            RANKS,
            Limits(lambda: mean_of(SPREAD)() / mean_of(NEAR)(), part=TENTH),
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
        judge=ratio(_ranks("far", "on the far domain"), RANKS, Limits(1.0, part=0.03)),
        experiments=("E6",),
        records=(*NEAR, *FAR),
    ),
)
