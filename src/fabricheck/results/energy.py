"""Energy of a moved bit, derived from what counters counted while a series was held.

Gross is all that the devices at work took, net is without what they take when idle. A net value
has the uncertainty of the idle power too: half the difference of the two quiet times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.core.statistics import median, median_interval
from fabricheck.results.model import CountedEnergy, DeviceUnderLoad, Series, SeriesEnergy

#: Clocks that differ by less are the same, as a fraction: drivers state them in steps.
SAME_CLOCK = 0.01

_PICOJOULES = 1e12
_BITS = 8


@dataclass(frozen=True, slots=True)
class PerBit:
    """Energy of a bit in pJ, with the interval of at least 95 % of the median power."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BitEnergy:
    """Energy of a series.

    gross, net: of the devices that take part; net is None without idle power. packages: the
    counters of some count another device too, which may be idle. same_clock: the clocks were those
    of the quiet time, None where no driver tells them. node, node_net: the same of the whole node,
    None without a counter of it. joules: what the devices at work took during the load.
    idle_joules: what devices beside them took that had no part in it, None where none was counted.
    gb_per_s: bytes over the time of the load.
    """

    gross: PerBit
    net: PerBit | None
    packages: bool
    same_clock: bool | None
    node: PerBit | None
    node_net: PerBit | None
    joules: float
    idle_joules: float | None
    gb_per_s: float


def of_series(series: Series) -> BitEnergy | None:
    """Return the energy of a bit of a series.

    None where none was measured, or where a counter of a device at work has no watts.
    """
    energy = series.get("energy")
    if energy is None:
        return None
    working = [counter for counter in energy["counters"] if counter["works"]]
    counted = {device for counter in working for device in counter["devices"]}
    used = {*series["device_set"], series["source"]["device"], series["destination"]["device"]}
    if not working or not used - {None} <= counted:
        return None
    if any(not counter["watts"] for counter in working):
        return None
    with_watts = [counter for counter in energy["counters"] if counter["watts"]]
    of_node = [counter for counter in with_watts if counter["kind"] == "node"]
    idle = [counter for counter in with_watts if counter["works"] is False]
    return BitEnergy(
        gross=_gross(working, energy),
        net=_net(working, energy),
        packages=any(counter["kind"] == "package" for counter in working),
        same_clock=_same_clock(energy, counted),
        node=_gross(of_node, energy) if of_node else None,
        node_net=_net(of_node, energy) if of_node else None,
        joules=_joules(working, energy),
        idle_joules=_joules(idle, energy) if idle else None,
        gb_per_s=1e-9 * energy["bytes"] / energy["seconds"],
    )


def idle_watts(counter: CountedEnergy) -> float | None:
    """Return the mean power in W of the two quiet times; None unless both were measured."""
    before, after = counter["idle_before_w"], counter["idle_after_w"]
    return None if before is None or after is None else (before + after) / 2


def _joules(counters: Sequence[CountedEnergy], energy: SeriesEnergy) -> float:
    """Return what the counters' devices took during the load."""
    return energy["seconds"] * sum(median(counter["watts"]) for counter in counters)


def _gross(counters: Sequence[CountedEnergy], energy: SeriesEnergy) -> PerBit:
    """Return the energy of all counters; their intervals add up, as if they erred together."""
    low = value = high = 0.0
    for counter in counters:
        middle = median(counter["watts"])
        ends = median_interval(counter["watts"]) or (middle, middle)
        low += ends[0]
        value += middle
        high += ends[1]
    return PerBit(*(_per_bit(watts, energy) for watts in (value, low, high)))


def _net(counters: Sequence[CountedEnergy], energy: SeriesEnergy) -> PerBit | None:
    idle = uncertain = 0.0
    for counter in counters:
        before, after = counter["idle_before_w"], counter["idle_after_w"]
        if before is None or after is None:
            return None
        idle += (before + after) / 2
        uncertain += abs(before - after) / 2
    gross = _gross(counters, energy)
    return PerBit(
        gross.value - _per_bit(idle, energy),
        gross.low - _per_bit(idle + uncertain, energy),
        gross.high - _per_bit(idle - uncertain, energy),
    )


def _per_bit(watts: float, energy: SeriesEnergy) -> float:
    return _PICOJOULES * watts * energy["seconds"] / (_BITS * energy["bytes"])


def _clocks(devices: Sequence[DeviceUnderLoad]) -> dict[int, float]:
    return {
        device["index"]: clock
        for device in devices
        if (clock := device["clock_mhz"]) is not None and clock > 0
    }


def _same_clock(energy: SeriesEnergy, devices: set[int]) -> bool | None:
    loaded = _clocks(energy["loaded"])
    for quiet in (_clocks(energy["idle"]), _clocks(energy["after"])):
        for device in devices:
            if device not in loaded or device not in quiet:
                return None
            if abs(quiet[device] - loaded[device]) > SAME_CLOCK * loaded[device]:
                return False
    return True
