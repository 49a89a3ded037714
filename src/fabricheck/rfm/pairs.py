"""Measurements between devices: their common parts, and the check of the best k devices (E14).

The check compares the sets of devices that the node model predicts with the measured ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from fabricheck.node import NodeModel
from fabricheck.node.paths import Pair
from fabricheck.node.placement import judge
from fabricheck.results.model import ResultDocument
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, Population, series_of


def ordered_pairs(node: NodeModel) -> dict[str, list[Pair]]:
    """Return all ordered pairs of devices by the name of their link class."""
    return {
        link_class.name: [*pairs, *((b, a) for a, b in pairs)]
        for link_class, pairs in node.link_classes.items()
    }


def one_each(pairs: Iterable[Sequence[int]]) -> tuple[tuple[list[int]], ...]:
    """Return the distinguishing values of a metric's series, one for each of some pairs."""
    return tuple((list(pair),) for pair in pairs)


def peers_of_the_first(node: NodeModel) -> dict[str, Pair]:
    """Return by link class the pair of device 0 and the first device connected by that class.

    Used for curves over sizes, which would be the same for all pairs of a class. The classes are
    those of direct links or, if device 0 has no direct link, all of its classes.
    """
    first_of_class = {
        link_class: min(pair for pair in pairs if pair[0] == 0)
        for link_class, pairs in node.link_classes.items()
        if any(pair[0] == 0 for pair in pairs)
    }
    direct = {link_class: pair for link_class, pair in first_of_class.items() if link_class.direct}
    return {link_class.name: pair for link_class, pair in (direct or first_of_class).items()}


def pair_arguments(check: MeasuringCheck) -> list[str]:
    """Return the options of all measurements of all pairs: array size, time of a series, noise
    limit.

    Eight devices have up to 168 series; each one that stays noisy would take seconds.
    """
    size = check.current_partition.extras.get("peer_bytes") or check.extra("array_bytes")
    noise = check.extra("noise_limit")
    return ["--sizes", str(size), "--series-time", "0.5", "--noise-limit", str(noise)]


@dataclass(frozen=True)
class BestSet(Metric):
    """The set of ``k`` devices that a node model predicts as the best, in % of the best measured
    set.

    ``where`` and ``among`` select one series, in GB/s, of each ordered pair of devices.
    """

    node: NodeModel = field(kw_only=True)
    k: int = field(kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure from all pairs; the weakest pair of the predicted set decides.

        :raises MetricError: as `Metric.figure` does.
        """
        chosen = series_of(document, self, {}, "GB/s")
        by_pair = {(series["device_set"][0], series["device_set"][1]): series for series in chosen}
        measured = {pair: series["median"] for pair, series in by_pair.items()}
        sets = judge(self.node, self.k, measured)
        weakest = by_pair[sets.weakest]
        predicted, best = (",".join(map(str, devices)) for devices in (sets.predicted, sets.best))
        compared = (
            f"{weakest['median']:.1f} of {sets.weakest_peak_gbs:g} GB/s, the lowest share of its "
            f"peak among devices {predicted}, predicted as the best {self.k}; with "
            f"{sets.predicted_gbs:.1f} GB/s on average between two they have {sets.percent:.1f} "
            f"% of devices {best}"
        )
        return Figure(self, sets.percent, chosen, (weakest,), compared)


class BestDevicesCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Measures all ordered pairs once, and examines every set of k devices.

    set_sizes: the values of k, each a metric ``best_K_of_measured``. Sizes of the whole node and
    above leave no choice and are skipped, as is a partition without any. where: the values of the
    series' fields that select one series of each ordered pair.
    """

    set_sizes: Sequence[int]
    where: Mapping[str, Any]

    def expected_metrics(self) -> Sequence[BestSet]:
        """Return one metric for each k; skips if there is no choice."""
        node = self.required_node
        count = len(node.devices)
        self.skip_if(
            count <= min(self.set_sizes),
            f"Partition {self.current_partition.fullname} has {count} devices: there is no "
            "choice where all are used.",
        )
        pairs = one_each(permutations(range(count), 2))
        return [
            BestSet(
                f"best_{k}_of_measured",
                self.where,
                ("device_set",),
                unit="%",
                among=pairs,
                node=node,
                k=k,
            )
            for k in self.set_sizes
            if k < count
        ]
