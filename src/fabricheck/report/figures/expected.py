"""What this session expected of a series: ReFrame's reference of the metric that judges it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fabricheck.judge.claims import CLAIMS
from fabricheck.judge.claims.model import Claim
from fabricheck.node import NodeModel
from fabricheck.report.figures import words
from fabricheck.report.figures.rows import Row
from fabricheck.results.observed import Observed, Point

#: Of so many claims a figure gives the names.
_MOST_CLAIMS = 4


@dataclass(frozen=True)
class Expected:
    """A reference and its limits, in the unit of the series; a limit is None where there is none.

    metric: whose reference it is, of the check that measured the series.
    """

    metric: str
    value: float
    least: float | None
    most: float | None

    def missed(self, value: float) -> bool:
        """Whether a value is outside of the limits."""
        low = self.least is not None and value < self.least
        return low or (self.most is not None and value > self.most)

    @property
    def limit(self) -> float | None:
        """The limit that a worse value passes."""
        return self.most if self.least is None else self.least


def of_pair(observed: Observed, point: Point) -> Expected | None:
    """Return what was expected of a transfer between two devices, by its link class.

    The class is that of the healthy node model, as the checks take it. None where nothing was
    expected: report only, or a check that was not judged.
    """
    if observed.node is None or point.pair is None:
        return None
    count = len(observed.node.devices)
    if point.pair[0] == point.pair[1] or not all(0 <= device < count for device in point.pair):
        return None
    name = observed.node.link_class(*point.pair).name
    return _stated(observed, point, f"{point.operation.replace('-', '_')}_{name}")


def of_host_copy(observed: Observed, point: Point) -> Expected | None:
    """Return what was expected of a copy between a device and host memory next to it, or far."""
    if observed.node is None or point.device is None or point.memory is None:
        return None
    if point.device >= len(observed.node.devices):
        return None
    near = point.domain in (None, observed.node.devices[point.device].domain)
    kind = point.memory.removeprefix("host-")
    return _stated(observed, point, f"{point.operation}_{kind}_{'near' if near else 'far'}")


def fitted(observed: Observed, rows: Iterable[Row]) -> str:
    """Return which published values of a figure are no evidence for a simulation; empty for none.

    Those that it was fitted to, and the claims on others that are fitted or built in.
    """
    if observed.node is None or not observed.simulated:
        return ""
    facts = observed.node.facts
    shown = {row.get("record") for row in rows} - {None, ""}
    keys = {
        fact.record: key
        for key, fact in facts.items()
        if fact.kind == "fitted" and fact.record in shown
    }
    said = ""
    if keys:
        named = words.listed(f"{record} ({key})" for record, key in keys.items())
        said = (
            f" The simulation was fitted to {named}: that it agrees there, and wherever the same "
            "parameter decides, is no evidence."
        )
    others = shown - keys.keys()
    claims = [
        claim.id
        for claim in CLAIMS
        if others.intersection(claim.records)
        and (claim.built_in or _fitted_of(claim, observed.node))
    ]
    if claims:
        more = f" ({len(claims) - _MOST_CLAIMS} more)" if len(claims) > _MOST_CLAIMS else ""
        said += (
            " Of the claims on published values here, these rest on what was fitted or is built "
            f"in, so that it is no evidence where they hold: {', '.join(claims[:_MOST_CLAIMS])}"
            f"{more}."
        )
    return said


def _fitted_of(claim: Claim, node: NodeModel) -> bool:
    facts = (node.facts.get(key) for key in claim.rests_on)
    return any(fact is not None and fact.kind == "fitted" for fact in facts)


def _stated(observed: Observed, point: Point, stem: str) -> Expected | None:
    for case in observed.cases:
        # The worst of a class is judged, so that each of it is; a check of one pair has no worst.
        for name in (f"{stem}_worst", stem) if case.name == point.check else ():
            judged = case.judged.get(name)
            if judged and judged.reference and (judged.least, judged.most) != (None, None):
                return Expected(name, judged.reference, judged.least, judged.most)
    return None
