"""The state of host and devices before and after the checks of a partition, as ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from fabricheck.core.text import count
from fabricheck.results import state
from fabricheck.results.model import DeviceState, ResultDocument, Snapshot
from fabricheck.results.observed import Observed

#: The columns of the table of devices.
COLUMNS = (
    "Device",
    "Clock in MHz",
    "Temperature in °C",
    "Power in W",
    "PCIe",
    "Links up",
    "Memory errors",
    "Modes",
    "VBIOS and firmware",
)

#: The text of an item that no tool reports.
UNKNOWN = "unknown"


@dataclass(frozen=True)
class State:
    """The snapshots of a partition, summarized; empty without any.

    causes: sentences on states that can explain a value, once for all checks. host: facts of the
    host. devices: a row of texts for each device, as COLUMNS. absent: items without a value, with
    the reason. seconds: the shortest and the longest time of a snapshot.
    """

    causes: tuple[str, ...]
    host: tuple[str, ...]
    devices: tuple[tuple[str, ...], ...]
    absent: tuple[str, ...]
    seconds: str


def of(observed: Observed) -> State | None:
    """Return the state around the checks of a partition; None if no document has it."""
    documents = [one for one in observed.documents if "state" in one]
    snapshots = [one for document in documents for one in _snapshots(document)]
    if not snapshots:
        return None
    every = chain.from_iterable(map(state.causes, documents))
    absent = {one["item"]: one["why"] for each in documents for one in each["state"]["absent"]}
    return State(
        causes=tuple(map(state.sentence, state.merged(every))),
        host=tuple(_host(snapshots)),
        devices=tuple(_devices(snapshots)),
        absent=tuple(f"{item}: {why}" for item, why in absent.items()),
        seconds=_range((one["seconds"] for one in snapshots), ".3f") or UNKNOWN,
    )


def _snapshots(document: ResultDocument) -> Iterator[Snapshot]:
    both = document["state"]
    yield both["before"]
    if both["after"] is not None:
        yield both["after"]


def _host(snapshots: Sequence[Snapshot]) -> Iterator[str]:
    hosts = [one["host"] for one in snapshots]
    used = [one["others"] for one in hosts if one["others"] is not None]
    cores = _range((one["cores"] for one in hosts), "g")
    busy = _range((one["busy_cores"] for one in used), ".1f")
    stolen = max((one["stolen_cores"] for one in used), default=0.0)
    load = _range((one["load_1min"] for one in hosts), ".1f")
    governors = dict.fromkeys(one["governor"] for one in hosts if one["governor"])
    pages = _range((one["huge_pages_reserved"] for one in hosts), "g")
    free = [sum(one["free_bytes"].values()) for one in hosts if one["free_bytes"]]
    yield f"others than the run kept {busy or 'an unknown number'} of {cores or '?'} cores busy"
    if stolen:
        yield f"the hypervisor took up to {stolen:.2g} of them"
    yield f"load in the last minute {load or UNKNOWN}"
    yield f"frequency governor {', '.join(governors) or UNKNOWN}"
    yield f"huge pages reserved {pages or UNKNOWN}"
    yield f"free memory {min(free) / 2**30:.1f} GiB at least" if free else f"free memory {UNKNOWN}"


def _devices(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, ...]]:
    by_index: dict[int, list[DeviceState]] = {}
    for snapshot in snapshots:
        for device in snapshot["devices"]:
            by_index.setdefault(device["index"], []).append(device)
    for index, own in sorted(by_index.items()):
        yield (str(index), *(cell(own) or UNKNOWN for cell in _CELLS))


def _clock(own: Sequence[DeviceState]) -> str:
    shown = _range((one["clock_mhz"] for one in own), ",.0f")
    return shown and f"{shown}{_of((one['clock_max_mhz'] for one in own), ',.0f')}"


def _temperature(own: Sequence[DeviceState]) -> str:
    shown = _range((one["temperature_c"] for one in own), ".0f")
    memory = _range((one["memory_temperature_c"] for one in own), ".0f")
    return f"{shown}, memory {memory}" if shown and memory else shown


def _power(own: Sequence[DeviceState]) -> str:
    shown = _range((one["power_w"] for one in own), ".0f")
    return shown and f"{shown}{_of((one['power_cap_w'] for one in own), '.0f')}"


def _pcie(own: Sequence[DeviceState]) -> str:
    found = [one["pcie"] for one in own if one["pcie"] is not None]
    width = _range((one["width"] for one in found), "d")
    rate = _range((one["gt_per_s"] for one in found), "g")
    replays = max((one["replays"] for one in found if one["replays"] is not None), default=None)
    shown = [f"{width} lanes" if width else "", f"{rate} GT/s" if rate else ""]
    shown += [count(replays, "replay")] if replays is not None else []
    return ", ".join(one for one in shown if one)


def _links(own: Sequence[DeviceState]) -> str:
    known = [one["links"] for one in own if one["links"] is not None]
    up = _range((links["number"] - len(links["down"]) for links in known), "d")
    return up and f"{up} of {max(links['number'] for links in known)}"


def _errors(own: Sequence[DeviceState]) -> str:
    found = [one["memory_errors"] for one in own if one["memory_errors"] is not None]
    shown = (
        (_range((one["corrected"] for one in found), "d"), "corrected"),
        (_range((one["uncorrected"] for one in found), "d"), "uncorrected"),
    )
    return ", ".join(f"{number} {kind}" for number, kind in shown if number)


def _modes(own: Sequence[DeviceState]) -> str:
    modes = [(one["compute_partition"], one["memory_partition"]) for one in own]
    ecc = {one["ecc"] for one in own if one["ecc"] is not None}
    shown = [mode for pair in modes for mode in pair if mode]
    shown += [f"ECC {'on' if on else 'off'}" for on in sorted(ecc, reverse=True)]
    return ", ".join(dict.fromkeys(shown))


def _firmware(own: Sequence[DeviceState]) -> str:
    shown = [one["vbios"] for one in own if one["vbios"]]
    shown += [
        f"{name} {version}" for one in own for name, version in (one["firmware"] or {}).items()
    ]
    return ", ".join(dict.fromkeys(shown))


_CELLS: Sequence[Callable[[Sequence[DeviceState]], str]] = (
    _clock,
    _temperature,
    _power,
    _pcie,
    _links,
    _errors,
    _modes,
    _firmware,
)


def _range(values: Iterable[float | None], form: str) -> str:
    """Return the smallest and largest of some values; nothing if none is known."""
    known = [one for one in values if one is not None]
    if not known:
        return ""
    least, most = format(min(known), form), format(max(known), form)
    return least if least == most else f"{least} to {most}"


def _of(values: Iterable[float | None], form: str) -> str:
    """Return the maximum as a suffix, `` of 1,980``; empty where it is unknown."""
    shown = _range(values, form)
    return f" of {shown}" if shown else ""
