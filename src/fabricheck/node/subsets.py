"""Sets of devices: the best k to use together by the links between them, and those of E5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from types import MappingProxyType

from fabricheck.core.errors import UsageError

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
