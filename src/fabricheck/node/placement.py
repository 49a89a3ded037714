"""Which devices and cores are used: lists of cores, sets of devices, placements of ranks.

Cores are listed as Linux and Slurm write them (``0-7,12``). Sets are the best k devices to use
together, and those of experiment E5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING

from fabricheck.core.errors import UsageError

if TYPE_CHECKING:
    from fabricheck.node.model import NodeModel

_PART = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")

#: More cores than any node has, so that a damaged range does not fill the memory.
MOST = 1 << 16


def parse_cores(text: str | int) -> tuple[int, ...]:
    """Parse a list of cores.

    :param text: such as ``0-7,12``; a single number may be an integer; an empty text is no core.
    :returns: the cores, ascending.
    :raises ValueError: for a malformed list, a descending range, or a core given twice.
    """
    cores: list[int] = []
    for part in filter(None, str(text).replace(" ", "").split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part[:40]}' is neither a core nor a range of cores such as 0-7")
        first = int(match[1])
        last = int(match[2] or first)
        if last >= MOST:
            raise ValueError(f"the core {last} exceeds any machine")
        if last < first:
            raise ValueError(f"the range {part} descends")
        cores.extend(range(first, last + 1))
    ordered = sorted(cores)
    for core, following in pairwise(ordered):
        if core == following:
            raise ValueError(f"core {core} is named twice")
    return tuple(ordered)


def format_cores(cores: Iterable[int]) -> str:
    """Format cores as a list with ranges: ``0-7,12``."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


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
        """The cores in the form of Slurm's ``--cpu-bind=map_cpu``."""
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


def near_masks(node: NodeModel) -> str:
    """Return the cores of each device in the form of Slurm's ``--cpu-bind=mask_cpu``.

    They are those near it, divided among the devices that are near the same ones.
    """
    masks = []
    for device in node.devices:
        alike = [other.index for other in node.devices if other.near_cores == device.near_cores]
        number = len(device.near_cores) // len(alike)
        first = number * alike.index(device.index)
        masks.append(sum(1 << core for core in device.near_cores[first : first + number]))
    return ",".join(map(hex, masks))


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
    every = tuple(device.index for device in node.devices)
    half = tuple(package[0] for package in node.packages)
    found = [right(node, every)]
    wrong = [_make(node, "in_order", every, sorted(found[0].cores))]
    if 1 < len(half) < len(every):
        found.append(right(node, half, "half_right"))
        cores = list(found[1].cores)
        middle = len(cores) // 2
        wrong.append(_make(node, "half_rotated", half, cores[middle:] + cores[:middle]))
    remote = [
        core
        for domain in node.domains
        if not domain.devices
        for core in domain.cores
        if core not in domain.reserved
    ]
    if len(remote) >= len(every):
        wrong.append(_make(node, "far", every, remote[: len(every)]))
        kept = len(every) - len(every) // 2
        mixed = [*found[0].cores[:kept], *remote[: len(every) // 2]]
        wrong.append(_make(node, "spread", every, mixed))
    home = next(d for d in node.domains if d.index == node.devices[0].domain)
    crowded = [core for core in home.cores if core not in home.reserved][: len(every)]
    if len(crowded) == len(every):
        wrong.append(_make(node, "shared_domain", every, crowded))
    found.extend(placement for placement in wrong if not all(placement.local))
    first = node.devices[0]
    if len(first.near_cores) > 1:
        found.append(_make(node, "shared_device", (0, 0), list(first.near_cores[:2])))
    return MappingProxyType({placement.name: placement for placement in found})


FloatMatrix = Sequence[Sequence[float]]

#: Two means that differ by less than this (relative) are a tie: they differ by rounding only.
_TIE = 1e-9


def filled_matrix(direct: FloatMatrix) -> tuple[tuple[float, ...], ...]:
    """Fill the pairs without a direct link with the best of all two-hop paths.

    A two-hop path has the bandwidth of its narrower hop. This is the rule of the Hugging Face
    page on AMD Instinct connectivity.

    :param direct: n x n, bandwidth of the direct links in any unit, 0 where there is none; the
        diagonal is not used.
    """
    n = len(direct)

    def cell(a: int, b: int) -> float:
        if a == b or direct[a][b] > 0:
            return direct[a][b]
        via = (min(direct[a][c], direct[c][b]) for c in range(n) if c not in (a, b))
        return max(via, default=0.0)

    return tuple(tuple(cell(a, b) for b in range(n)) for a in range(n))


def best_subsets(direct: FloatMatrix, k: int, name: str) -> tuple[tuple[int, ...], ...]:
    """Return the sets of k devices with the greatest mean bandwidth between two of them.

    Every set is tried; sets of equal mean are all returned, in order.

    :param direct: as in :func:`filled_matrix`.
    :param k: size of the set.
    :param name: what to call the node in an error.
    :raises UsageError: when k is below 1 or above the number of devices.
    """
    n = len(direct)
    if not 1 <= k <= n:
        raise UsageError(f"{name} has {n} devices; {k} cannot be chosen from them.")
    matrix = filled_matrix(direct)
    means = {chosen: mean_between(matrix, chosen) for chosen in combinations(range(n), k)}
    best = max(means.values())
    return tuple(chosen for chosen, mean in means.items() if mean >= best * (1 - _TIE))


def mean_between(matrix: FloatMatrix, chosen: Sequence[int]) -> float:
    """Return the mean over the ordered pairs of some devices; 0 for a single one."""
    cells = [matrix[a][b] for a, b in permutations(chosen, 2)]
    return sum(cells) / len(cells) if cells else 0.0


def growing_subsets(direct: FloatMatrix, name: str) -> tuple[tuple[int, ...], ...]:
    """Return one of the best sets of 2, 3 ... all devices, each with one device more where
    possible.

    Of sets of equal mean it is the first that contains the set before it, so that a step from k to
    k + 1 ranks adds a device and changes nothing else. On MI250X these are the sets of the paper's
    collectives, as far as its scripts name them without a fault.

    :param direct: as in :func:`filled_matrix`.
    :param name: what to call the node in an error.
    """
    sets: list[tuple[int, ...]] = []
    for k in range(2, len(direct) + 1):
        best = best_subsets(direct, k, name)
        before = set(sets[-1]) if sets else set()
        sets.append(next((chosen for chosen in best if before <= set(chosen)), best[0]))
    return tuple(sets)


def device_sets(packages: Sequence[tuple[int, ...]], devices: int) -> Mapping[str, tuple[int, ...]]:
    """Return the device sets of E5: one, two of one package, two and four spread, all.

    Spread sets take the first device of packages at equal distance: 0,4 and 0,2,4,6 on MI250X, the
    sets of the paper's scripts. A set that the node does not have, or that equals another one, is
    left out.
    """
    firsts = [package[0] for package in packages]
    sets: dict[str, tuple[int, ...]] = {"one": (firsts[0],)}
    paired = next((package for package in packages if len(package) > 1), None)
    if paired is not None:
        sets["two_one_package"] = paired[:2]
    for name, size in (("two_spread", 2), ("four_spread", 4)):
        if len(firsts) >= size:
            sets[name] = tuple(firsts[i * len(firsts) // size] for i in range(size))
    everything = tuple(range(devices))
    if everything not in sets.values():
        sets["all"] = everything
    return MappingProxyType(sets)


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
