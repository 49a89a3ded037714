"""Placements of ranks: which device each one uses, and which core it is bound to.

And the best k devices that a node predicts, against those that were measured to be the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType

from fabricheck.core.errors import UsageError
from fabricheck.node.model import NodeModel
from fabricheck.node.paths import Pair
from fabricheck.node.subsets import best_subsets, mean_between


@dataclass(frozen=True)
class Placement:
    """Rank i computes on ``devices[i]`` and is bound to ``cores[i]``.

    ``local[i]`` is whether that core is in the device's NUMA domain.
    """

    name: str
    devices: tuple[int, ...]
    cores: tuple[int, ...]
    local: tuple[bool, ...]

    @property
    def map_cpu(self) -> str:
        """The cores, separated by commas."""
        return ",".join(map(str, self.cores))

    def first(self, number: int) -> Placement:
        """Return the placement of the first ranks."""
        return Placement(self.name, self.devices[:number], self.cores[:number], self.local[:number])


def domain_of_core(node: NodeModel, core: int) -> int:
    """Return the NUMA domain of a core.

    :raises UsageError: when the node has no such core.
    """
    for domain in node.domains:
        if core in domain.cores:
            return domain.index
    raise UsageError(f"{node.name} has no core {core}.")


def _make(node: NodeModel, name: str, devices: tuple[int, ...], cores: list[int]) -> Placement:
    local = tuple(
        node.device(device).domain == domain_of_core(node, core)
        for device, core in zip(devices, cores, strict=True)
    )
    return Placement(name, devices, tuple(cores), local)


def right(node: NodeModel, devices: tuple[int, ...], name: str = "right") -> Placement:
    """Place each rank on the first free core nearest to its device.

    On LUMI-G this is 49,57,17,25,1,9,33,41 for the devices 0 to 7.

    :raises UsageError: when the cores nearest to a device do not suffice.
    """
    cores: list[int] = []
    for index in devices:
        free = [core for core in node.device(index).near_cores if core not in cores]
        if not free:
            raise UsageError(f"{node.name} has no free core near device {index}.")
        cores.append(free[0])
    return _make(node, name, devices, cores)


def in_order_of_cores(node: NodeModel) -> tuple[int, ...]:
    """Return the devices in ascending order of the cores near them.

    A launcher that fills cores from the first one places rank i near the i-th of these: on LUMI-G
    4,5,2,3,6,7,0,1.
    """
    devices = sorted(node.devices, key=lambda device: (device.near_cores[:1], device.index))
    return tuple(device.index for device in devices)


def near_masks(node: NodeModel) -> list[str]:
    """Return the cores of each device as a mask in hexadecimal digits.

    They are those near it, divided among the devices that are near the same ones.
    """
    masks = []
    for device in node.devices:
        alike = [other.index for other in node.devices if other.near_cores == device.near_cores]
        number = len(device.near_cores) // len(alike)
        first = number * alike.index(device.index)
        masks.append(sum(1 << core for core in device.near_cores[first : first + number]))
    return [hex(mask) for mask in masks]


def cores_per_device(node: NodeModel) -> int:
    """Return the least number of usable cores that each device has to itself."""
    return min(
        len(device.near_cores)
        // sum(other.near_cores == device.near_cores for other in node.devices)
        for device in node.devices
    )


def placements(node: NodeModel) -> Mapping[str, Placement]:
    """Return the placements that differ on this node.

    *right* and *half_right* (the first device of each package) place each rank near its device.
    *in_order* has the same cores in ascending order, *half_rotated* those of *half_right* moved by
    half their number: the far placements of the EPICURE case study on LUMI-G. *far* places all
    ranks on a domain without devices, *spread* every second half there, as that study does on
    Leonardo. *shared_domain* places all ranks into the domain of device 0. A far placement in which
    every rank is near its device anyway is left out. *shared_device* has two ranks on device 0,
    both near it.
    """
    devices = tuple(device.index for device in node.devices)
    half = tuple(package[0] for package in node.packages)
    sets = [right(node, devices)]
    wrong = [_make(node, "in_order", devices, sorted(sets[0].cores))]
    if 1 < len(half) < len(devices):
        sets.append(right(node, half, "half_right"))
        cores = list(sets[1].cores)
        middle = len(cores) // 2
        wrong.append(_make(node, "half_rotated", half, cores[middle:] + cores[:middle]))
    without_devices = [domain for domain in node.domains if not domain.devices]
    remote = [core for domain in without_devices for core in domain.usable_cores]
    if len(remote) >= len(devices):
        wrong.append(_make(node, "far", devices, remote[: len(devices)]))
        near = len(devices) - len(devices) // 2
        mixed = [*sets[0].cores[:near], *remote[: len(devices) // 2]]
        wrong.append(_make(node, "spread", devices, mixed))
    home = next(d for d in node.domains if d.index == node.devices[0].domain)
    crowded = list(home.usable_cores[: len(devices)])
    if len(crowded) == len(devices):
        wrong.append(_make(node, "shared_domain", devices, crowded))
    sets.extend(placement for placement in wrong if not all(placement.local))
    first = node.devices[0]
    if len(first.near_cores) > 1:
        sets.append(_make(node, "shared_device", (0, 0), list(first.near_cores[:2])))
    return MappingProxyType({placement.name: placement for placement in sets})


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
