"""Claims on the place of host memory: the NUMA domain of a single transfer (E4)."""

from __future__ import annotations

from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import above_by, mean
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Judge
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The fraction by which the means of two sockets may differ from the page's; the rule gives the
#: reason.
TWO_SOCKETS = 0.05

Ends = tuple[int, int]


def _far_and_near(
    observed: Observed, node: NodeModel, operation: str, memory: str, role: str
) -> list[tuple[Ends, Series, Series]]:
    """Return, for each device and far domain, its copies and those with its own domain.

    Both copies have the largest size that both domains share, at least 16 MiB.
    """
    cells: dict[Ends, dict[int, Series]] = {}
    for point in observed.select(
        experiment={"E2", "E4"},
        operation=operation,
        host_memory=memory,
        role=role,
        unit="GB/s",
        by_engines=True,
    ):
        if point.devices and point.host_domain is not None and point.bytes >= needs.LARGE:
            cells.setdefault((point.devices[0], point.host_domain), {}).setdefault(
                point.bytes, point
            )
    found = []
    for (device, domain), far in sorted(cells.items()):
        home = node.device(device).domain
        common = far.keys() & cells.get((device, home), {}).keys()
        if domain != home and common:
            size = max(common)
            found.append(((device, domain), far[size], cells[device, home][size]))
    return found


def _costs_at_most(memory: str, loss: float) -> Judge:
    """Rule: no device loses more than a fraction with far memory, beyond the noise."""

    def judge(observed: Observed) -> Finding:
        node = needs.node(observed)
        pairs = [
            (operation, *pair)
            for operation in ("h2d", "d2h")
            for pair in _far_and_near(observed, node, operation, f"host-{memory}", "single")
        ]
        if not pairs:
            raise NotTestable(
                f"the session has no copies of {memory} memory with near and far NUMA domains (E4)"
            )
        lost = [pair for pair in pairs if above_by(pair[3], pair[2], loss)]
        operation, (device, domain), far, near = min(pairs, key=lambda p: p[2].value / p[3].value)
        return verdict(
            not lost,
            f"Of {len(pairs)} copies of {memory} memory with a far NUMA domain {len(lost)} lose "
            f"more than {100 * loss:.0f} %; the worst, {operation} of device {device} with domain "
            f"{domain}, has {far.value:.2f} GB/s, with its own {near.value:.2f}.",
            number(f"{operation}, device {device}, far domain {domain}", far),
            number(f"{operation}, device {device}, its own domain", near),
        )

    return judge


def two_sockets(near: bool) -> tuple[str, ...]:
    """Return the records of copies in both directions with the near or the far socket."""
    return tuple(
        f"hf-rbt-bidir-gpu{device}-cpu{device // 4 if near else 1 - device // 4}"
        for device in range(8)
    )


def _two_sockets(observed: Observed) -> Finding:
    node = needs.node(observed)
    pairs = _far_and_near(observed, node, "both", "host-pinned", "sum")
    if not pairs:
        raise NotTestable("the session has no copies both ways with near and far NUMA domains (E4)")
    near = {ends[0]: point for ends, _, point in pairs}
    far = {ends: point for ends, point, _ in pairs}
    here, there = mean(near.values()), mean(far.values())
    wanted = [
        sum(map(value, two_sockets(local))) / len(two_sockets(local)) for local in (True, False)
    ]
    holds = all(
        abs(found / stated - 1) <= TWO_SOCKETS
        for found, stated in zip((here, there), wanted, strict=True)
    )
    return verdict(
        holds,
        f"Both directions together move {here:.1f} GB/s with the near socket's memory and "
        f"{there:.1f} with the far one's, means; published are {wanted[0]:.1f}, {wanted[1]:.1f}.",
        computed("both directions, near, mean", here, "GB/s", *near.values()),
        computed("both directions, far, mean", there, "GB/s", *far.values()),
        *(number(f"both directions, device {device}, near", one) for device, one in near.items()),
        *(number(f"both directions, device {ends[0]}, far", one) for ends, one in far.items()),
    )


CLAIMS = (
    Claim(
        id="numa-of-single-transfer",
        statement="The NUMA domain of pinned memory does not affect a single transfer.",
        document="paper",
        where="IV.B",
        rule="no device loses more than 2 % with memory of a far domain, noise counting for it: "
        "the document found no difference and prints no number",
        requires=needs.own_domains,
        judge=_costs_at_most("pinned", 0.02),
        experiments=("E4",),
        records=("paper-numa-nonlocal",),
        built_in="host memory is reached alike whatever domain it is on",
    ),
    Claim(
        id="numa-of-single-rank",
        statement="A single rank loses nothing with its pageable memory on a far NUMA domain.",
        document="epicure",
        where="Single task, Placement on an empty node",
        rule="no device loses more than 2 % with pageable memory of a far domain, noise counting "
        "for it: published values differ by 0.03 %",
        requires=needs.own_domains,
        judge=_costs_at_most("pageable", 0.02),
        experiments=("E2", "E4"),
        records=("epicure-lumi-single-full", "epicure-lumi-single-gpu4"),
        built_in="host memory is reached alike whatever domain it is on; far pageable memory takes "
        "more of what several ranks share, and no more of what one has",
    ),
    Claim(
        id="far-domain-small-loss",
        statement="Where all devices are near one domain, a single rank loses little with another.",
        document="epicure",
        where="Leonardo Booster, Placement of 1 task",
        rule="no device loses more than 5 % with pageable memory of a far domain, noise counting "
        "for it: the published loss, called small, is 3.1 %",
        requires=needs.one_domain_of_several,
        judge=_costs_at_most("pageable", 0.05),
        experiments=("E2", "E4"),
        records=("epicure-leo-single-correct", "epicure-leo-single-incorrect"),
    ),
    Claim(
        id="two-sockets-47-to-36",
        statement="With two sockets both directions move 47 GB/s with near memory, 36 with far.",
        document="hugging-face",
        where="NUMA nodes, bidirectional copy table",
        rule="the means of near and of far memory are each within 5 % of the means of the page's "
        "eight values: those differ from their mean by up to 4 %",
        requires=needs.shared_domains,
        judge=_two_sockets,
        experiments=("E4",),
        records=(*two_sockets(near=True), *two_sockets(near=False)),
        rests_on=("simulation.host_link_efficiency", "simulation.interconnect_gbs"),
    ),
)
