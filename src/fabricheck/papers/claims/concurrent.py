"""Claims on devices that use host memory at the same time (E5)."""

from __future__ import annotations

from itertools import chain

from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import ratio_near
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Judge
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The paper says "double", "no improvement" and "proportionally", and prints no number.
TOLERANCE = 0.10

WORDS = f"{100 * TOLERANCE:.0f} % either way, noise counting for it"
REASON = "the document's words, without a printed number, leave about a tenth"


def totals(observed: Observed, node: NodeModel, name: str) -> dict[int, Series]:
    """Return by size the total rates of STREAM copies between host arrays by a set of devices.

    :param name: the set's name in the node model.
    :raises NotTestable: when the session has none.
    """
    members = node.device_sets().get(name)
    if members is None:
        raise NotTestable(f"{node.name} has no set of devices for it")
    found = observed.select(
        experiment="E5",
        operation="copy",
        devices=members,
        role="single" if len(members) == 1 else "sum",
    )
    listed = ", ".join(map(str, members))
    what = f"STREAM copy of host memory by the device(s) {listed} at once"
    return {point.bytes: point for point in needs.large(found, what, "E5")}


def _scales(steps: dict[str, tuple[str, str]]) -> Judge:
    """Rule: the ratios of sets of devices are as published; a set and its base by record."""

    def judge(observed: Observed) -> Finding:
        node = needs.node(observed)
        by_size = {
            name: totals(observed, node, name) for name in dict.fromkeys(chain(*steps.values()))
        }
        sizes = set.intersection(*(set(found) for found in by_size.values()))
        if not sizes:
            raise NotTestable("the session has no size in common of these sets of devices (E5)")
        points = {name: found[max(sizes)] for name, found in by_size.items()}
        said, holds, ratios = [], True, []
        for record, (large, small) in steps.items():
            one, other = points[large], points[small]
            ratio = one.value / other.value
            holds &= ratio_near(one, other, value(record), TOLERANCE)
            many, few = len(one.devices), len(other.devices)
            said.append(f"{many} devices give {ratio:.2f} times as much as {few}")
            ratios.append(computed(f"{many} devices over {few}", ratio, "ratio", one))
        return verdict(
            holds,
            f"{'; '.join(said)}; published are {', '.join(f'{value(one):g}' for one in steps)}.",
            *ratios,
            *(
                number(f"devices {', '.join(map(str, point.devices))} at once", point)
                for point in points.values()
            ),
        )

    return judge


TWO_OVER_ONE = {"paper-cpugpu-stream-spread-2": ("two_spread", "one")}
FOUR_OVER_ONE = {"paper-cpugpu-stream-4": ("four_spread", "one")}

CLAIMS = (
    Claim(
        id="one-package-no-gain",
        statement="Two devices of one package give no more host bandwidth than one.",
        document="paper",
        where="IV.C, figure 4",
        rule=f"the ratio is 1, {WORDS}: {REASON}",
        requires=needs.own_domains,
        judge=_scales({"paper-cpugpu-stream-same-2": ("two_one_package", "one")}),
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
        judge=_scales(TWO_OVER_ONE),
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
        judge=_scales(TWO_OVER_ONE | FOUR_OVER_ONE),
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
        judge=_scales({"paper-cpugpu-stream-8v4": ("all", "four_spread")}),
        experiments=("E5",),
        records=("paper-cpugpu-stream-8v4",),
    ),
)
