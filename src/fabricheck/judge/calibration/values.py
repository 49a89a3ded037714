"""One session's value of a metric on one node, and its physical bound.

ReFrame judges series during a session. This module judges the recorded value itself, however it was
computed, by the node model's peak for its series.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabricheck.judge.calibration.groups import FLOOR_AT_ONCE
from fabricheck.node import NodeModel
from fabricheck.results import made_of
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.table import Metric, link_class
from fabricheck.rfm.bounds import Bound, node_bound

#: The unit of a percentage of the best measured value.
WHOLE = Bound(100.0, "derived", "a part of the whole")


@dataclass(frozen=True)
class Value:
    """One session's value of a metric on one node.

    half_width: half the 95 % interval divided by the median, for a value that is the median of one
    series, else None.
    link_class, engine: those of its transfers; None for transfers that are not between two devices,
    or where the document has none. bound: the value's physical bound; None if unknown. floor: the
    smallest tolerance as a fraction of the value, where it exceeds that of the unit.
    """

    value: float
    unit: str
    half_width: float | None = None
    link_class: str | None = None
    engine: str | None = None
    bound: Bound | None = None
    floor: float = 0

    @property
    def impossible(self) -> str | None:
        """Why the value is physically impossible, as the rest of a sentence, or None.

        A count has no bound.
        """
        if self.unit == "count":
            return None
        if not math.isfinite(self.value) or self.value <= 0:
            return "which is not a measurement"
        bound = self.bound
        if bound is not None and self.unit != "us" and self.value > bound.value:
            return (
                f"above the {bound.origin} physical bound of {bound.value:g} {self.unit} "
                f"({bound.how})"
            )
        return None


def value_of(
    metric: Metric, value: float, document: ResultDocument, node: NodeModel | None
) -> Value:
    """Return a recorded value with the properties of its transfers.

    Its transfers are the series of the metric; where these are unknown, the series that match its
    name. If some of them have the value as their median, only those count. If several bounds apply,
    the largest counts.

    :param node: the healthy node model; without one, classes and bounds are unknown.
    """
    decisive = made_of.decisive(document, metric.series, value, metric.unit)
    half_width = _median([one["relative_half_width"] for one in decisive])
    if metric.unit == "%":
        return Value(value, metric.unit, half_width, bound=WHOLE)
    of = metric.series
    if of is None:
        of = tuple(made_of.named(document, node, metric.metric, metric.unit))
    every = [document["series"][index] for index in of]
    chosen = made_of.decisive(document, of, value, metric.unit) or every
    classes = {link_class(one, node) for one in every}
    ranks = document.get("ranks") or ()
    bounds = [] if node is None else [node_bound(node, one, ranks) for one in chosen]
    known = [one for one in bounds if one is not None]
    # A series without a bound allows any value.
    bound = max(known, key=lambda one: one.value) if known and len(known) == len(bounds) else None
    return Value(
        value,
        metric.unit,
        half_width,
        classes.pop() if len(classes) == 1 else None,
        ", ".join(sorted({one["engine"] for one in chosen})) or None,
        bound,
        FLOOR_AT_ONCE if any(map(_at_once_on_host_memory, chosen)) else 0,
    )


def _at_once_on_host_memory(series: Series) -> bool:
    memories = (series["source"]["memory"], series["destination"]["memory"])
    return len(series["device_set"]) > 1 and any(one.startswith("host-") for one in memories)


def middle(values: Sequence[Value]) -> Value:
    """Return the median of the values of a check that ReFrame repeated in a session.

    An impossible value is kept, so that the median does not hide it.
    """
    half_width = _median([one.half_width for one in values])
    false = next((one for one in values if one.impossible), None)
    if false is not None:
        return replace(false, half_width=half_width)
    value = statistics.median(one.value for one in values)
    return replace(values[0], value=value, half_width=half_width)


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None
