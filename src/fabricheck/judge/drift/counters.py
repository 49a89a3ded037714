"""Counters of errors and throttled seconds of devices, over the rounds of a soak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricheck.judge.drift.model import Counter, Finding
from fabricheck.judge.verdict.rules import RULES
from fabricheck.results.soaks import Round


@dataclass(frozen=True)
class ErrorLimit:
    """How often a counter of errors may grow, with the source; per_hour 0: not at all."""

    per_hour: float
    source: str


_DCGM = "NVIDIA DCGM, dcgm_gpu_hardware_limits.h"

#: Growth of counters that a source calls too much, by what is counted. Of all others no source
#: states a limit, and growth is told without one; new uncorrected errors are findings of the
#: verdict on their round.
ERROR_LIMITS = {
    "PCIe replay": ErrorLimit(8 * 60, f"{_DCGM}: 8 replays a minute"),
    "NVLink replay": ErrorLimit(0, f"{_DCGM}: any NVLink replay"),
    "NVLink recovery event": ErrorLimit(0, f"{_DCGM}: any NVLink recovery"),
    "NVLink CRC error": ErrorLimit(100 * 3600, f"{_DCGM}: 100 CRC errors a second"),
}

#: The part of a load in which a device may be throttled by heat or a limit of its board.
THROTTLED_PART = 0.01


def counters(rounds: Sequence[Round]) -> Iterator[Counter]:
    """Yield the counters that grew, of each device.

    What a counter grew between two rounds belongs to it; one that is lower than before began anew.
    """
    hours = sum(each.load_s for each in rounds) / 3600
    devices = sorted({index for each in rounds for index in each.devices})
    for index in devices:
        grew: dict[str, int] = {}
        last: dict[str, int] = {}
        moved = 0.0
        for each in rounds:
            device = each.devices.get(index)
            if device is None:
                continue
            moved += device.moved_tb
            for what, number in device.after.items():
                first = device.before.get(what, number)
                start = last.get(what, first)
                # Counters begin anew where a driver was loaded again.
                rise = number - (start if start <= number else min(first, number))
                grew[what] = grew.get(what, 0) + rise
                last[what] = number
        for what, number in grew.items():
            if number > 0:
                yield Counter(
                    device=index,
                    what=what,
                    grew=number,
                    per_hour=number / hours if hours > 0 else 0.0,
                    per_tb=number / moved if moved > 0 else None,
                    last=last[what],
                )


def of_counters(grown: Iterable[Counter], rounds: Sequence[Round]) -> Iterator[Finding]:
    """Yield the growth of counters, with a status where a source calls it too much."""
    for counter in grown:
        limit = ERROR_LIMITS.get(counter.what)
        beyond = limit is not None and counter.per_hour > limit.per_hour
        yield Finding(
            rule="counters",
            status=RULES["counters"].status if beyond else None,
            member=counter.what,
            devices=(counter.device,),
            from_h=rounds[0].began_h,
            to_h=rounds[-1].middle_h,
            value=counter.per_hour,
            unit="per hour",
            note=limit.source if limit is not None else "",
        )


def throttled(rounds: Sequence[Round]) -> Iterator[Finding]:
    """Yield devices that heat or a limit of their board throttled; of the power cap it is told."""
    devices = sorted({index for each in rounds for index in each.devices})
    for index in devices:
        kinds = {kind for each in rounds for kind in _seconds_of(each, index)}
        for kind in sorted(kinds):
            in_rounds = [each for each in rounds if _seconds_of(each, index).get(kind, 0.0) > 0]
            seconds = sum(_seconds_of(each, index).get(kind, 0.0) for each in in_rounds)
            part = seconds / sum(each.load_s for each in rounds)
            if part > THROTTLED_PART:
                yield Finding(
                    rule="throttled",
                    status=None if kind == "power" else RULES["throttled"].status,
                    member=kind,
                    devices=(index,),
                    from_h=in_rounds[0].began_h,
                    to_h=in_rounds[-1].middle_h,
                    change=part,
                    value=seconds,
                    unit="s",
                )


def _seconds_of(each: Round, index: int) -> dict[str, float]:
    device = each.devices.get(index)
    return {} if device is None else device.throttled_s
