"""The columns of results: name, type and meaning of each, and the values of a row."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fabricheck.core.show import listed
from fabricheck.core.vocabulary import Throttle
from fabricheck.results.model import (
    BusyProcess,
    DeviceProcess,
    DeviceState,
    HostState,
    MemoryErrors,
    Pcie,
)
from fabricheck.results.rows import Check, Metric, Node, Row, Series, State

Type = Literal["text", "integer", "number", "boolean", "time"]


@dataclass(frozen=True)
class _Summary:
    """A column of states that sums up several members: type, meaning, and how its value is made."""

    type: Type
    meaning: str
    value: Callable[[Any], Any]


def _throttle(device: DeviceState) -> str | None:
    if device["throttle"] is None:
        return None
    return " ".join(device["throttle"]) or "none"


def _throttled_s(device: DeviceState, cause: Throttle) -> float | None:
    times = device["throttled_s"]
    return None if times is None else times.get(cause)


def _links(device: DeviceState) -> int | None:
    links = device["links"]
    return None if links is None else links["number"]


def _links_up(device: DeviceState) -> int | None:
    links = device["links"]
    return None if links is None else links["number"] - len(links["down"])


def _link_errors(device: DeviceState) -> int | None:
    kinds = device.get("link_errors")
    if kinds is None:
        return None
    return sum(sum(links.values()) for links in kinds.values())


def _link_errors_by_kind(device: DeviceState) -> str | None:
    kinds = device.get("link_errors")
    if kinds is None:
        return None
    counters = [
        f"{kind} {link} {number}" for kind, links in kinds.items() for link, number in links.items()
    ]
    return listed(counters) or "none"


def _firmware(device: DeviceState) -> str | None:
    versions = device["firmware"]
    if not versions:
        return None
    return listed(f"{name} {version}" for name, version in sorted(versions.items()))


def _processes(processes: Sequence[DeviceProcess | BusyProcess] | None) -> str | None:
    if processes is None:
        return None
    described = [
        f"{process['pid']} {process['user'] or '?'} {process['command'] or '?'}"
        for process in processes
    ]
    return listed(described) or "none"


def _of_others(host: HostState, name: Literal["seconds", "busy_cores", "stolen_cores"]) -> Any:
    others = host["others"]
    return None if others is None else others[name]


def _busiest_processes(host: HostState) -> str | None:
    others = host["others"]
    return None if others is None else _processes(others["processes"])


def _free_bytes(host: HostState) -> int | None:
    free = host["free_bytes"]
    return sum(free.values()) if free else None


def _free_bytes_least(host: HostState) -> int | None:
    free = host["free_bytes"]
    return min(free.values()) if free else None


_OF_DEVICE: Mapping[str, _Summary] = {
    "throttle": _Summary("text", "why it runs below its clock: power, ..., or none", _throttle),
    "throttled_power_s": _Summary(
        "number",
        "a counter of the time below its clock due to the power cap, in s",
        lambda device: _throttled_s(device, "power"),
    ),
    "throttled_thermal_s": _Summary(
        "number",
        "a counter of the time below its clock due to temperature, in s",
        lambda device: _throttled_s(device, "thermal"),
    ),
    "throttled_hardware_s": _Summary(
        "number",
        "a counter of the time below its clock due to a limit of the board, in s",
        lambda device: _throttled_s(device, "hardware"),
    ),
    "links": _Summary("integer", "its links to other devices", _links),
    "links_up": _Summary("integer", "how many of these links are up", _links_up),
    "link_errors": _Summary(
        "integer", "a counter of the errors of its links, all kinds together", _link_errors
    ),
    "link_errors_by_kind": _Summary(
        "text", "the counters that are not 0: kind link count, ...", _link_errors_by_kind
    ),
    "firmware": _Summary("text", "versions of its firmware: name version, ...", _firmware),
    "processes": _Summary(
        "text",
        "other processes that use it, for the host the busiest: pid user command, ...",
        lambda device: _processes(device["processes"]),
    ),
}
_OF_HOST: Mapping[str, _Summary] = {
    "processes": _Summary("text", "as of a device", _busiest_processes),
    "others_s": _Summary(
        "number",
        "the interval of busy_cores and stolen_cores, in s",
        lambda host: _of_others(host, "seconds"),
    ),
    "busy_cores": _Summary(
        "number",
        "cores kept busy by others than this run",
        lambda host: _of_others(host, "busy_cores"),
    ),
    "stolen_cores": _Summary(
        "number",
        "cores whose time the hypervisor took",
        lambda host: _of_others(host, "stolen_cores"),
    ),
    "free_bytes": _Summary("integer", "free memory of the host", _free_bytes),
    "free_bytes_least": _Summary(
        "integer", "free memory of the NUMA domain with the least", _free_bytes_least
    ),
}


def of_device(device: DeviceState) -> dict[str, Any]:
    """Return the state of a device by column."""
    return _of_state(device, DeviceState, _OF_DEVICE)


def of_host(host: HostState) -> dict[str, Any]:
    """Return the state of the host by column."""
    return _of_state(host, HostState, _OF_HOST)


def _of_state(
    state: Mapping[str, Any], state_type: Any, summaries: Mapping[str, _Summary]
) -> dict[str, Any]:
    by_column = {name: summary.value(state) for name, summary in summaries.items()}
    for name, (record, member, _, _) in _columns_of(state_type).items():
        if record:
            by_column[name] = (state.get(record) or {}).get(member)
        else:
            by_column[name] = state.get(member)
    return by_column


@dataclass(frozen=True)
class Column:
    """One column: its name, type and description, and the types of rows that have it."""

    name: str
    type: Type
    meaning: str
    row_types: tuple[str, ...]


#: The classes of rows by the column ``row_type``; a sample is its series with one value.
ROW_TYPES: Mapping[str, type[Any]] = {
    "check": Check,
    "metric": Metric,
    "series": Series,
    "state": State,
    "node": Node,
}

#: Those that have the columns of their check.
_OF_A_CHECK = (Metric, Series, State)

_TYPES: Mapping[Any, Type] = {
    bool: "boolean", int: "integer", float: "number", datetime: "time", str: "text"
}  # fmt: skip

#: What a hint may have around the type of a value.
_OPTIONAL = (typing.NotRequired, typing.Union, types.UnionType)


#: Columns of a check that the rows of its metrics, series and states do not have.
_OF_THE_CHECK_ALONE = ("reason",)

#: Columns of a series that the rows of its samples do not have.
_OF_THE_SERIES_ALONE = ("mad", "ci_low", "ci_high")


@functools.cache
def columns() -> tuple[Column, ...]:
    """Return the columns in the order of `fabricheck results export`."""
    row_types: dict[str, list[str]] = {"row_type": [*ROW_TYPES]}
    described: dict[str, tuple[Type, str]] = {
        "row_type": ("text", "what the row is of: check, metric, series, sample, state or node")
    }
    for row_type, row in ROW_TYPES.items():
        of_row = _own_columns(row_type)
        of_check = _of_check() if row in _OF_A_CHECK else ()
        for name in dict.fromkeys((*of_check, *of_row)):
            row_types.setdefault(name, []).append(row_type)
        for name, column in of_row.items():
            described.setdefault(name, column)
    for name, rows_of in row_types.items():
        if name == "sample":
            rows_of[:] = ["sample"]
        elif "series" in rows_of and name not in _OF_THE_SERIES_ALONE:
            rows_of.insert(rows_of.index("series") + 1, "sample")
    return tuple(
        Column(name, type_, meaning, tuple(row_types[name]))
        for name, (type_, meaning) in described.items()
    )


@functools.cache
def _own_columns(row_type: str) -> Mapping[str, tuple[Type, str]]:
    """Return type and description of the columns of a type of rows itself."""
    if row_type == "state":
        of_series = _own_columns("series")
        named = ("device", "device_name", "device_arch", "pci_address", "unique_id")
        summaries = {**_OF_DEVICE, **_OF_HOST, "processes": _OF_DEVICE["processes"]}
        return {
            "moment": ("text", "before or after the program's body"),
            "taken_at": ("time", "when that was, in UTC"),
            "taken_s": ("number", "time to read host and all devices, in s"),
            **{name: of_series[name] for name in named},
            **{name: (type_, meaning)
               for part in (DeviceState, HostState)
               for name, (_, _, type_, meaning) in _columns_of(part).items()},
            **{name: (column.type, column.meaning) for name, column in summaries.items()},
        }  # fmt: skip
    hints = typing.get_type_hints(ROW_TYPES[row_type], include_extras=True)
    described = {
        field.name: _described(hints[field.name])
        for field in dataclasses.fields(ROW_TYPES[row_type])
    }
    return {
        name: (_TYPES.get(type_, "text"), meaning)
        for name, (type_, meaning) in described.items()
        if meaning
    }


@functools.cache
def _columns_of(record_type: Any, record: str = "") -> Mapping[str, tuple[str, str, Type, str]]:
    """Return the columns of a type: its numbers and texts, and those of the records in it.

    By column the record, the member, its type and its meaning; a member without one is no column.
    """
    columns: dict[str, tuple[str, str, Type, str]] = {}
    for name, hint in typing.get_type_hints(record_type, include_extras=True).items():
        type_, meaning = _described(hint)
        if type_ in (MemoryErrors, Pcie):
            columns |= _columns_of(type_, name)
        elif type_ in _TYPES and meaning and name != "index":
            columns[f"{record}_{name}" if record else name] = (record, name, _TYPES[type_], meaning)
    return columns


def _described(hint: Any) -> tuple[Any, str]:
    """Return the type that a hint has beside null, and its description; empty without one."""
    meaning = ""
    while typing.get_origin(hint) in (*_OPTIONAL, Annotated):
        inside = typing.get_args(hint)
        meaning = meaning or next((text for text in inside if isinstance(text, str)), "")
        hint = next(other for other in inside if other is not type(None))
    return hint, meaning


@functools.cache
def _of_check() -> tuple[str, ...]:
    return tuple(name for name in _own_columns("check") if name not in _OF_THE_CHECK_ALONE)


def values(row: Row) -> dict[str, Any]:
    """Return the columns of a row and of its check, by name."""
    row_type = next(word for word, rows in ROW_TYPES.items() if type(row) is rows)
    values_of_row: dict[str, Any] = {"row_type": row_type}
    if isinstance(row, _OF_A_CHECK):
        values_of_row |= {name: getattr(row.check_row, name) for name in _of_check()}
    for name, (type_, _) in _own_columns(row_type).items():
        value = row.values.get(name) if isinstance(row, State) else getattr(row, name)
        values_of_row[name] = float(value) if type_ == "number" and value is not None else value
    return values_of_row
