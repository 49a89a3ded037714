"""The reference of a series in this session: that of the metric that judges it."""

from __future__ import annotations

from collections.abc import Iterable

from fabricheck.core.show import enumerated
from fabricheck.report import added
from fabricheck.report.figures.rows import Row
from fabricheck.results.observed import Observed
from fabricheck.results.table import Metric, Series


def expected_by(observed: Observed, point: Series) -> Metric | None:
    """Return the metric whose reference is the expected value of a series.

    If the worst of several series is judged, each of them has the limit. The result is None if
    nothing was expected: report only, a check that was not judged, or metrics of an older session
    whose series are unknown.
    """
    for metric in observed.metrics_of(point):
        each = metric.reduce == "worst" or len(metric.series or ()) == 1
        if each and metric.reference and (metric.least, metric.most) != (None, None):
            return metric
    return None


def fitted(observed: Observed, rows: Iterable[Row]) -> str:
    """Return a sentence on published values that are no evidence for a simulation, or nothing.

    These are the values that it was fitted to, and what subpackages add of the others.
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
        named = enumerated(f"{record} ({key})" for record, key in keys.items())
        said = (
            f" The simulation was fitted to {named}: agreement there, and wherever the same "
            "parameter decides, is no evidence."
        )
    others = frozenset(shown - keys.keys())
    return said + "".join(each.fitted(observed, others) for each in added.sections())
