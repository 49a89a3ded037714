"""The shape of kernels that sessions propose for config/devices.yaml, of checks that try several.

A shape is proposed if in every session it moved more than the present one, by more than what
sessions differ anyway. It is proposed, not taken: a person writes it, and calibrates again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fabricheck.node.products import KernelShape

#: The kernels of STREAM, which count alike.
KERNELS = ("copy", "scale", "add", "triad")

#: The least gain that is proposed, as a fraction: means of two scans of 40 shapes within a minute
#: differed by up to 0.03 % on an H100 and by 0.09 % on an H200, where a single kernel differed by
#: 0.35 %.
LEAST_GAIN = 0.003


class Shape(NamedTuple):
    """Threads of a block, elements of 16 B a thread, and how it loads."""

    block_size: int
    elements: int
    loads: str

    @classmethod
    def stated(cls, shape: KernelShape) -> Shape:
        """Return the shape that a product has."""
        return cls(shape.block_size, shape.elements, shape.loads)

    def __str__(self) -> str:
        """As in config/devices.yaml."""
        return f"block_size: {self.block_size}, elements: {self.elements}, loads: {self.loads}"


class Proposal(NamedTuple):
    """A shape, its least gain over the present one as a fraction, and the number of sessions."""

    shape: Shape
    gain: float
    sessions: int


def rates(documents: Iterable[Mapping[str, Any]]) -> dict[Shape, float]:
    """Return the mean rate of each shape in GB/s, of one device on its own memory.

    The mean is the geometric one over the kernels of one document, each at its largest arrays;
    shapes that lack a kernel are left out. Empty where no document has several shapes.
    """
    by_shape: dict[Shape, float] = {}
    for document in documents:
        rate_of: dict[Shape, dict[str, float]] = defaultdict(dict)
        alone = [series for series in document["series"] if _is_of_own_memory(series)]
        largest = max((series["bytes"] for series in alone), default=0)
        for series in alone:
            if series["bytes"] == largest:
                shape = Shape(series["block_size"], series["elements"], series["loads"])
                rate_of[shape][series["operation"]] = series["median"]
        kernels = {kernel for kernel_rates in rate_of.values() for kernel in kernel_rates}
        whole = {shape: each for shape, each in rate_of.items() if each.keys() == kernels}
        if len(whole) > len(by_shape) and len(whole) > 1:
            by_shape = {shape: _mean([*each.values()]) for shape, each in whole.items()}
    return by_shape


def _is_of_own_memory(series: Mapping[str, Any]) -> bool:
    return (
        series["experiment"] == "E1"
        and series["role"] == "single"
        and series["operation"] in KERNELS
        and series["regime"] == "memory"
        and None not in (series["block_size"], series.get("elements"), series.get("loads"))
    )


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def proposed(sessions: Sequence[Mapping[Shape, float]], present: Shape) -> Proposal | None:
    """Return the shape that was faster than the present one in each session that tried both."""
    tried = [rate_of for rate_of in sessions if present in rate_of]
    if not tried:
        return None
    in_all = set.intersection(*(set(rate_of) for rate_of in tried))
    gains = {
        shape: min(rate_of[shape] / rate_of[present] for rate_of in tried) - 1 for shape in in_all
    }
    best = max(gains, key=lambda shape: (gains[shape], shape))
    if gains[best] < LEAST_GAIN:
        return None
    return Proposal(best, gains[best], len(tried))
