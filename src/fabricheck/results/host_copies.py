"""Consistency of host-device series: hipMemcpy (E2, E4) and managed memory (E3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fabricheck.core.vocabulary import COMPUTE, COPY_ENGINES, OF_HOST
from fabricheck.results.model import Place, Series

Findings = Iterator[tuple[str, str]]
Sides = tuple[Literal["source", "destination"], Literal["source", "destination"]]

_SIDES: Sides = ("source", "destination")
_MAPPED = ("managed", "host-pinned")
_DEVICE = ("device",)


@dataclass(frozen=True)
class _Operation:
    """An operation: what moves the data, the kinds of memory at both ends, and how much data.

    swaps: the kinds may also be swapped, as in a share of both directions. messages: messages of
    the whole operation, for each device of its set.
    """

    engines: tuple[str, ...]
    source: tuple[str, ...]
    destination: tuple[str, ...]
    swaps: bool = False
    messages: int = 1


_TO_DEVICE = _Operation(COPY_ENGINES, OF_HOST, _DEVICE)
_TO_HOST = _Operation(COPY_ENGINES, _DEVICE, OF_HOST)
_PREFETCH = _Operation(("copy-engine",), ("managed",), ("managed",))

_COPIES = {
    "h2d": _TO_DEVICE,
    "d2h": _TO_HOST,
    "both": _Operation(COPY_ENGINES, OF_HOST, _DEVICE, swaps=True, messages=2),
    "h2d-sync": _TO_DEVICE,
    "d2h-sync": _TO_HOST,
}
_MANAGED = {
    "read": _Operation(("kernel",), _MAPPED, _DEVICE),
    "write": _Operation(("kernel",), _DEVICE, _MAPPED),
    "host-read": _Operation(("cpu",), _MAPPED, ("host-pageable",)),
    "host-write": _Operation(("cpu",), ("host-pageable",), _MAPPED),
    "prefetch-h2d": _PREFETCH,
    "prefetch-d2h": _PREFETCH,
}
_OPERATIONS = {"E2": _COPIES, "E3": _MANAGED, "E4": _COPIES}


def messages(series: Series) -> int:
    """Return in how many messages of ``bytes`` bytes each device of the series' set takes part."""
    operation = _operation(series)
    return operation.messages if operation and series["role"] == "sum" else 1


def _operation(series: Series) -> _Operation | None:
    return _OPERATIONS.get(series["experiment"], {}).get(series["operation"])


def contradictions(series: Series) -> Findings:
    """Yield the field and the reason of each fault of a series of E2, E3 or E4."""
    movement = series.get("movement")
    experiment = series["experiment"]
    if experiment not in _OPERATIONS or series["operation"] == COMPUTE:
        if movement is not None:
            yield "movement", f"is {movement}, but the experiment is {experiment}"
        return
    operation = _operation(series)
    if operation is None:
        yield "operation", f"{series['operation']!r} is not an operation of {experiment}"
        return
    if series["engine"] not in operation.engines:
        by = " or ".join(operation.engines)
        yield "engine", f"is {series['engine']}, but {series['operation']} uses {by}"
    yield from _of_what_is_counted(series, operation)
    yield from _of_the_ends(series, operation)
    if experiment == "E3":
        yield from _of_the_movement(series)
    elif movement is not None:
        yield "movement", f"is {movement}, but the experiment is {experiment}"
    if experiment == "E4":
        yield from _of_the_domain(series)


def _of_what_is_counted(series: Series, operation: _Operation) -> Findings:
    name = series["operation"]
    if series["unit"] != "GB/s":
        yield "unit", f"is {series['unit']}, but {name} is a bandwidth"
    if series["bytes_counted"] != "once":
        yield "bytes_counted", f"is {series['bytes_counted']}, but {name} counts once"
    direction = "both-ways" if operation.swaps else "one-way"
    if series["direction"] != direction:
        yield "direction", f"is {series['direction']}, but {name} is {direction}"
    if operation.swaps == (series["role"] in ("single", "beside")):
        yield "role", f"is {series['role']}, which {name} cannot have"
    moved = messages(series) * len(series["device_set"]) * series["bytes"]
    if series["role"] == "sum" and series["bytes_moved"] != moved:
        yield "bytes_moved", f"is {series['bytes_moved']}, but the shares move {moved}"


def _of_the_ends(series: Series, operation: _Operation) -> Findings:
    kinds = tuple(series[side]["memory"] for side in _SIDES)
    allowed = [(operation.source, operation.destination)]
    if operation.swaps and series["role"] != "sum":
        allowed.append((operation.destination, operation.source))
    if not any(kinds[0] in sources and kinds[1] in ends for sources, ends in allowed):
        yield "source", f"is {kinds[0]} to {kinds[1]}, which is not {series['operation']}"
        return
    for side in _SIDES:
        yield from _of_managed_memory(series, side)


def _of_managed_memory(series: Series, side: Literal["source", "destination"]) -> Findings:
    place = series[side]
    if place["memory"] != "managed":
        return
    if place["device"] is not None and place["numa_domain"] is not None:
        yield f"{side}.numa_domain", "is set, and so is the device that holds the pages"
    # A prefetch moves pages to where its name says; kernels find the pages on the host.
    name = series["operation"]
    on_device = (side == "destination") == (name == "prefetch-h2d")
    if name in ("read", "write"):
        on_device = False
    elif not name.startswith("prefetch"):
        return
    if on_device != (place["device"] is not None):
        holder = "a device" if on_device else "the host"
        yield f"{side}.device", f"contradicts {name}, whose pages are on {holder} there"


def _of_the_movement(series: Series) -> Findings:
    movement = series.get("movement")
    if movement is None:
        yield "movement", "is missing, but the memory is managed or mapped"
    elif (movement == "prefetch") != series["operation"].startswith("prefetch"):
        yield "movement", f"is {movement}, but the operation is {series['operation']}"


def _of_the_domain(series: Series) -> Findings:
    # For a sum too: without it, sums of several domains could not be told apart.
    for side in _SIDES:
        if _is_on_the_host(series[side]) and series[side]["numa_domain"] is None:
            yield f"{side}.numa_domain", "is null, but E4 tells series apart by NUMA domain"


def host_domains(series: Series) -> list[int]:
    """Return the NUMA domains in which the series' host memory was verified to be, in order."""
    domains = {series[side]["numa_domain"] for side in _SIDES}
    return sorted(domain for domain in domains if domain is not None)


def _is_on_the_host(place: Place) -> bool:
    return place["memory"] in OF_HOST
