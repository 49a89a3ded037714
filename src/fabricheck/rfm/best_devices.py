"""The check of the best k devices (E14): sets predicted from the node model, and those measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from fabricheck.node import NodeModel
from fabricheck.node.best_devices import BestDevices, judge
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument, Series
from fabricheck.rfm.base import RESULT, MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, Population, series_of, where_measured


@dataclass(frozen=True)
class BestSet(Metric):
    """The set of ``k`` devices that a node predicts as the best, in % of the best measured set.

    ``where`` and ``among`` choose one series, in GB/s, of each ordered pair of devices.
    """

    node: NodeModel = field(kw_only=True)
    k: int = field(kw_only=True)

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Make the figure of all pairs; the weakest pair of the predicted set decides.

        :raises MetricError: as `evaluate` does.
        """
        series = self.by_pair(document)
        verdict = self.verdict(series)
        chosen = tuple(series.values())
        return Figure(self, verdict.percent, chosen, (series[verdict.weakest],))

    def by_pair(self, document: ResultDocument) -> dict[tuple[int, int], Series]:
        """Return the series of each ordered pair.

        :raises MetricError: as `evaluate` does.
        """
        chosen = series_of(document, self, {}, "GB/s")
        return {(one["device_set"][0], one["device_set"][1]): one for one in chosen}

    def verdict(self, series: Mapping[tuple[int, int], Series]) -> BestDevices:
        """Compare the predicted set with all others."""
        measured = {pair: one["median"] for pair, one in series.items()}
        return judge(self.node, self.k, measured)

    def sentence(self, document: ResultDocument) -> str:
        """Name the predicted and the best measured set, and the pair that is to blame."""
        series = self.by_pair(document)
        found = self.verdict(series)
        weakest = series[found.weakest]
        predicted, best = (",".join(map(str, chosen)) for chosen in (found.predicted, found.best))
        return (
            f"Metric {self}: the devices {predicted}, predicted as the best {self.k}, have "
            f"{found.predicted_gbs:.1f} GB/s on average between two of them, {found.percent:.1f} % "
            f"of the {found.best_gbs:.1f} GB/s of the devices {best}; the least part of its peak "
            f"has {where_measured(document, (weakest,))}: {weakest['median']:.1f} of "
            f"{found.weakest_peak_gbs:g} GB/s."
        )


class BestDevicesCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Measures all ordered pairs once, and looks at every set of k devices.

    set_sizes: the k, each a metric ``best_K_of_measured``; those of the whole node and above are
        left out, as there is nothing to choose; a partition with none of them is skipped.
    where: the values of the series' fields that choose one series of each ordered pair.
    """

    set_sizes: Sequence[int]
    where: Mapping[str, Any]

    def expected_metrics(self) -> Sequence[BestSet]:
        """Return one metric for each k; without any there is nothing to choose: a skip."""
        node = self.required_node
        count = len(node.devices)
        self.skip_if(
            count <= min(self.set_sizes),
            f"Partition {self.current_partition.fullname} has {count} devices: nothing is to be "
            "chosen where all are taken.",
        )
        pairs = tuple((list(pair),) for pair in permutations(range(count), 2))
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

    def _missed(self) -> list[str]:
        document = load(Path(self.stagedir) / RESULT)
        failed = {key.rsplit(":", 1)[-1] for key, value in self.perfvalues.items()
                  if value[-1] == "fail"}  # fmt: skip
        return [
            metric.sentence(document) for metric in self.expected_metrics() if metric.name in failed
        ]
