"""The best k devices (E14): a node model's prediction against measured bandwidths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

from fabricheck.node import NodeModel, best_subsets
from fabricheck.node.subsets import mean_between

Pair = tuple[int, int]


@dataclass(frozen=True)
class BestDevices:
    """The predicted set of devices and the best measured set of that size.

    Means are of the bandwidths measured between two of the devices, in GB/s. ``weakest`` is the
    ordered pair of the predicted set with the lowest share of its theoretical peak,
    ``weakest_peak_gbs``.
    """

    predicted: tuple[int, ...]
    predicted_gbs: float
    best: tuple[int, ...]
    best_gbs: float
    weakest: Pair
    weakest_peak_gbs: float

    @property
    def percent(self) -> float:
        """The mean of the predicted set, in % of that of the best set."""
        return 100 * (self.predicted_gbs / self.best_gbs)


def judge(node: NodeModel, k: int, measured: Mapping[Pair, float]) -> BestDevices:
    """Compare the set of k devices that a node predicts with every set of k, by measured
    bandwidths.

    :param node: the healthy node.
    :param k: 2 or more.
    :param measured: the bandwidth of every ordered pair of devices in GB/s, above zero.
    :raises KeyError: when a pair is missing.
    """
    n = len(node.devices)
    matrix = [[0.0 if a == b else measured[a, b] for b in range(n)] for a in range(n)]
    predicted = node.best_subsets(k)[0]
    equal = best_subsets(matrix, k, node.name)
    best = predicted if predicted in equal else equal[0]
    pairs = list(permutations(predicted, 2))
    # A transfer uses the pair's links and possibly those of others: of equal shares the nearest
    # pair is the most telling, and shares that differ by less than 1 % count as equal.
    weakest = min(
        pairs,
        key=lambda pair: (
            round(measured[pair] / node.peer_peak_gbs(*pair), 2),
            node.link_class(*pair).hops,
        ),
    )
    return BestDevices(
        predicted,
        mean_between(matrix, predicted),
        best,
        mean_between(matrix, best),
        weakest,
        node.peer_peak_gbs(*weakest),
    )
