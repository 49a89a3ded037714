"""Claims on the best devices to use together (E14): as the node model predicts, and as measured."""

from __future__ import annotations

from itertools import permutations

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import Points, accesses, every_pair
from fabricheck.judge.claims.links import DEVICES, as_modelled
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, Number, computed, verdict
from fabricheck.node import NodeModel, best_subsets
from fabricheck.node.subsets import mean_between
from fabricheck.results.observed import Observed, Point

#: The sets that the page names, and whether it names all that are as good.
NAMED = (
    (((0, 1), (2, 3), (4, 5), (6, 7)), True),
    (((0, 1, 6),), False),
    (((0, 1, 6, 7), (2, 3, 4, 5)), False),
)
#: Sets that are alike by their links: the paper's like pairs differ by up to 2 %.
ALIKE = 0.02


def _eight(observed: Observed) -> NodeModel:
    """Ask for a node like the page's: eight devices, two to a package."""
    node = needs.packages_of_two(observed)
    if len(node.devices) != DEVICES:
        raise NotTestable(f"it is of {DEVICES} devices, and {node.name} has {len(node.devices)}")
    return node


def _inside(points: Points, devices: tuple[int, ...]) -> list[Point]:
    return [points[pair] for pair in permutations(devices, 2)]


def _text(devices: tuple[int, ...]) -> str:
    return ",".join(map(str, devices))


def _predicted(observed: Observed) -> Finding:
    node = _eight(observed)
    as_modelled(observed)
    holds, texts, numbers = True, [], []
    for named, complete in NAMED:
        size = len(named[0])
        best = node.best_subsets(size)
        holds &= set(named) == set(best) if complete else set(named) <= set(best)
        texts.append(f"of {size}: {' '.join(_text(one) for one in best)}")
        numbers.append(
            Number(f"best sets of {size}", float(len(best)), "sets", "derived", None, True)
        )
    return verdict(
        holds, f"By its links {node.name} has as best sets {'; '.join(texts)}.", *numbers
    )


def _measured(observed: Observed) -> Finding:
    node = _eight(observed)
    found = every_pair(node, accesses(observed, "write"), "writes by kernel", "E8")
    count = len(node.devices)
    rates = [[0.0 if a == b else found[a, b].median for b in range(count)] for a in range(count)]
    holds, texts, numbers = True, [], []
    for named, _ in NAMED:
        best = best_subsets(rates, len(named[0]), node.name)[0]
        most = mean_between(rates, best)
        for chosen in named:
            mean = mean_between(rates, chosen)
            holds &= mean >= most * (1 - ALIKE)
            texts.append(f"{_text(chosen)} {mean:.1f}")
            numbers.append(
                computed(f"{_text(chosen)}, mean", mean, "GB/s", *_inside(found, chosen))
            )
        texts[-1] += f" (best: {_text(best)} {most:.1f})"
        numbers.append(
            computed(f"{_text(best)}, the best measured, mean", most, "GB/s", *_inside(found, best))
        )
    return verdict(
        holds,
        f"Means of writes by kernel between two devices of a set, in GB/s: {', '.join(texts)}.",
        *numbers,
    )


_STATEMENT = (
    "The best devices to use together are the two of a package; of three 0,1,6; of four 0,1,6,7 or "
    "2,3,4,5"
)

CLAIMS = (
    Claim(
        id="best-sets-predicted",
        statement=f"{_STATEMENT}: as the links predict.",
        document="hugging-face",
        where="Dual-die topology",
        rule="the sets are among those of the greatest mean peak between two devices, and of two "
        "devices there are no others; counts, so no tolerance; nodes with other links have "
        "other sets",
        judge=_predicted,
        experiments=("E13", "E14"),
        built_in="its links are those of the node model",
    ),
    Claim(
        id="best-sets-measured",
        statement=f"{_STATEMENT}: as bandwidths confirm.",
        document="hugging-face",
        where="Dual-die topology",
        rule="the mean of writes by kernel between two devices of each of these sets is that of "
        "the best set of its size, less 2 % at most, by which like pairs of the paper differ; "
        "nodes with other links have other sets",
        judge=_measured,
        experiments=("E8", "E14"),
        built_in="its bandwidths are those of the links that predict the sets",
    ),
)
