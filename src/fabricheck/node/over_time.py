"""What an overlay changes with time: when a change is there, as the runtime reads it.

The runtime knows points only: seconds and a value, straight lines between them. Two points at the
same second are a jump. Seconds are those of a soak, whose rounds continue each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field, model_validator

from fabricheck.core.models import StrictModel
from fabricheck.core.vocabulary import Throttle

#: How long a soak may be, in hours: a week, and some more.
LONGEST_H = 240.0

#: The points of a counter that grows ever faster.
_PARTS = 20

Hours = Annotated[float, Field(gt=0, le=LONGEST_H)]

#: A time in s, and a value.
Point = tuple[float, float]


class When(StrictModel):
    """When a change is there.

    begins_h: from this hour on. grows_h: it takes as many hours to become whole. every_h, lasts_h:
    it comes again each ``every_h`` hours, and goes after ``lasts_h``.
    """

    begins_h: Annotated[float, Field(ge=0, le=LONGEST_H)] = 0.0
    grows_h: Hours | None = None
    every_h: Hours | None = None
    lasts_h: Hours | None = None

    @model_validator(mode="after")
    def _is_one_shape(self) -> When:
        if (self.every_h is None) != (self.lasts_h is None):
            raise ValueError("every_h and lasts_h go together")
        if self.every_h is None or self.lasts_h is None:
            return self
        if self.grows_h is not None or self.lasts_h >= self.every_h:
            raise ValueError("what comes and goes does not grow, and goes before it comes")
        return self

    def shares(self) -> list[Point]:
        """Return the share of the change that is there, from 0 to 1, at points in s."""
        begin = 3600 * self.begins_h
        end = 3600 * LONGEST_H
        if self.every_h is not None and self.lasts_h is not None:
            return [*self._periods(begin, end)]
        if self.grows_h is not None:
            return [(0.0, 0.0), (begin, 0.0), (begin + 3600 * self.grows_h, 1.0), (end, 1.0)]
        return [(0.0, 0.0), (begin, 0.0), (begin, 1.0), (end, 1.0)]

    def _periods(self, begin: float, end: float) -> Iterator[Point]:
        assert self.every_h is not None and self.lasts_h is not None
        yield 0.0, 0.0
        while begin < end:
            until = begin + 3600 * self.lasts_h
            yield from ((begin, 0.0), (begin, 1.0), (until, 1.0), (until, 0.0))
            begin += 3600 * self.every_h
        yield end, 0.0


def factors(when: When, factor: float) -> list[Point]:
    """Return what is left of a bandwidth at points in s; 1 without the change."""
    return [(at, 1 + (factor - 1) * share) for at, share in when.shares()]


class Flip(StrictModel):
    """A bit that is wrong once, from an hour on, in the memory that a device's own copies write.

    offset_bytes: its place in all of that memory, as the document of `soak` has it.
    """

    at_h: Annotated[float, Field(ge=0, le=LONGEST_H)]
    offset_bytes: Annotated[int, Field(ge=0, lt=1 << 20)] = 0
    bit: Annotated[int, Field(ge=0, le=63)]


#: A rate of a counter, for each hour that the change is there.
Rate = Annotated[float, Field(gt=0)]


class DeviceChange(StrictModel):
    """A change of what the driver of a device tells, or of its data.

    corrected, uncorrected: errors of its memory each hour. replays: PCIe packets sent again each
    hour. throttled: why it runs below its clock; how slow it is then, resources tell.
    """

    device: Annotated[int, Field(ge=0)]
    when: When = When()
    corrected: Rate | None = None
    uncorrected: Rate | None = None
    replays: Rate | None = None
    throttled: Throttle | None = None
    flip: Flip | None = None

    @model_validator(mode="after")
    def _changes_one_thing(self) -> DeviceChange:
        named = (self.corrected, self.uncorrected, self.replays, self.throttled, self.flip)
        if sum(value is not None for value in named) != 1:
            raise ValueError(
                "exactly one of corrected, uncorrected, replays, throttled and flip is needed"
            )
        return self

    def described(self) -> dict[str, Any]:
        """Return it as the platform has it."""
        if self.flip is not None:
            flip = [3600 * self.flip.at_h, self.flip.offset_bytes, self.flip.bit]
            return {"device": self.device, "flip": flip}
        rates = {
            "memory_errors.corrected": self.corrected,
            "memory_errors.uncorrected": self.uncorrected,
            "pcie.replays": self.replays,
            f"throttled_s.{self.throttled}": 3600.0 if self.throttled is not None else None,
        }
        ((counter, rate),) = [(name, each) for name, each in rates.items() if each is not None]
        return {"device": self.device, "counter": counter, "points": [*self._counted(rate / 3600)]}

    def _counted(self, a_second: float) -> Iterator[Point]:
        """Yield what a counter has counted, at points in s."""
        total = 0.0
        yield 0.0, 0.0
        for (start, share), (end, later) in pairwise(self.when.shares()):
            parts = _PARTS if share != later else 1
            for part in range(parts):
                middle = share + (later - share) * (part + 0.5) / parts
                total += a_second * middle * (end - start) / parts
                yield start + (end - start) * (part + 1) / parts, total
