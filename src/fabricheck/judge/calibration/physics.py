"""Of which transfers a metric is, and what no true value of it passes: the peak of the node model.

ReFrame judges series while a session runs. Here the recorded value itself is judged, whatever it
was computed from: by the series that it is made of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabricheck.node import NodeModel
from fabricheck.results import made_of
from fabricheck.results.model import ResultDocument
from fabricheck.results.table import Metric, link_class
from fabricheck.rfm.bounds import Bound, node_bound

#: A percentage of the best one measured.
WHOLE = Bound(100.0, "derived", "a part of the whole")


@dataclass(frozen=True)
class Subject:
    """Link class and engine of a metric, and its bound in the metric's unit; None if unknown."""

    link_class: str | None
    engine: str | None
    bound: Bound | None


def subject(metric: Metric, document: ResultDocument, node: NodeModel | None) -> Subject:
    """Return of which transfers a metric is.

    They are its series, or those that its name tells where these are not known, and of them those
    whose median is its value, where there are some. Of several the largest bound counts.

    :param node: the healthy node model; without one nothing is known of classes and bounds.
    """
    if metric.unit == "%":
        return Subject(None, None, WHOLE)
    of = metric.series
    if of is None:
        of = tuple(made_of.named(document, node, metric.metric, metric.unit))
    every = [document["series"][index] for index in of]
    chosen = made_of.decisive(document, of, metric.value or 0.0, metric.unit) or every
    classes = {link_class(one, node) for one in every}
    engines = ", ".join(sorted({one["engine"] for one in chosen})) or None
    bounds = [] if node is None else [node_bound(node, one) for one in chosen]
    known = [one for one in bounds if one is not None]
    # Of a series without a bound there may be any value.
    bound = max(known, key=lambda one: one.value) if known and len(known) == len(bounds) else None
    return Subject(classes.pop() if len(classes) == 1 else None, engines, bound)


def impossible(value: float, unit: str, bound: Bound | None) -> str | None:
    """Return why a value cannot be true, as the rest of a sentence, or None where it can.

    :param unit: GB/s, %, us, or count, of which any number is possible.
    """
    if unit == "count":
        return None
    if not math.isfinite(value) or value <= 0:
        return "which is not a measurement"
    if bound is not None and unit != "us" and value > bound.value:
        return f"above the {bound.origin} physical bound of {bound.value:g} {unit} ({bound.how})"
    return None
