"""Of which transfers a metric is, and what no true value of it passes: the peak of the node model.

ReFrame judges series while a session runs. Here the recorded value itself is judged, whatever it
was computed from: by the series of its document that its name and its value point to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.node import NodeModel
from fabricheck.results.model import ResultDocument, Series
from fabricheck.rfm.physics import node_bound
from fabricheck.rfm.plausible import Bound

#: A percentage of the best one measured.
WHOLE = Bound(100.0, "derived", "a part of the whole")


@dataclass(frozen=True)
class Subject:
    """Link class and engine of a metric, and its bound in the metric's unit; None if unknown."""

    link_class: str | None
    engine: str | None
    bound: Bound | None


def subject(
    document: ResultDocument, node: NodeModel | None, metric: str, value: float, unit: str
) -> Subject:
    """Return of which transfers a metric is.

    The series are those whose operation, link class and kind of memory its name has, and of them
    those whose median is its value, where there are some. Of several the largest bound counts.

    :param node: the healthy node model; without one nothing is known of classes and bounds.
    """
    if unit == "%":
        return Subject(None, None, WHOLE)
    name = f"_{metric}_"
    pairs = {} if node is None else node.link_classes
    classes = {one.name: frozenset(pairs[one]) for one in pairs}
    link_class = max((one for one in classes if f"_{one}_" in name), key=len, default=None)
    chosen = _of_the_operation([one for one in document["series"] if one["unit"] == unit], metric)
    if link_class is not None:
        chosen = [one for one in chosen if tuple(sorted(one["device_set"])) in classes[link_class]]
    for memory in ("pinned", "pageable"):
        if f"_{memory}_" in name:
            chosen = [one for one in chosen if f"host-{memory}" in _memories(one)]
    chosen = [one for one in chosen if one["median"] == value] or chosen
    engines = ", ".join(sorted({one["engine"] for one in chosen})) or None
    bounds = [] if node is None else [node_bound(node, one) for one in chosen]
    known = [one for one in bounds if one is not None]
    # Of a series without a bound there may be any value.
    bound = max(known, key=lambda one: one.value) if known and len(known) == len(bounds) else None
    return Subject(link_class, engines, bound)


def _of_the_operation(series: Sequence[Series], metric: str) -> list[Series]:
    named = {
        one["operation"]
        for one in series
        if f"{metric}_".startswith(f"{one['operation'].replace('-', '_')}_")
    }
    # `engine_both` is not `engine`.
    operation = max(named, key=len, default=None)
    return [one for one in series if one["operation"] == operation]


def _memories(series: Series) -> tuple[str, str]:
    return series["source"]["memory"], series["destination"]["memory"]


def impossible(value: float, unit: str, bound: Bound | None) -> str | None:
    """Return why a value can not be true, as the rest of a sentence, or None where it can.

    :param unit: GB/s, %, us, or count, of which any number is possible.
    """
    if unit == "count":
        return None
    if not math.isfinite(value) or value <= 0:
        return "which is no measurement"
    if bound is not None and unit != "us" and value > bound.value:
        return f"above the {bound.origin} physical bound of {bound.value:g} {unit} ({bound.how})"
    return None
