"""The state of host and devices before and after the checks of a partition, as ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fabricheck.core.amounts import about, short
from fabricheck.core.show import listed
from fabricheck.results import state, table
from fabricheck.results.observed import Observed

#: Columns of a state that are no row: other tables and the causes have them.
_ELSEWHERE = frozenset({
    "moment", "taken_at", "taken_s", "device", "device_name", "device_arch", "pci_address",
    "unique_id", "processes", "others_s",
})  # fmt: skip


@dataclass(frozen=True)
class State:
    """The snapshots of a partition, summarized.

    causes: sentences on states that can explain a value, once for all checks. host: ranges of the
    host by what they are of. indices: those of the devices. devices: by what they are of the ranges
    of each device; empty where it is unknown. absent: items without a value, with the reason.
    seconds: the shortest and the longest time of a snapshot.
    """

    causes: tuple[str, ...]
    host: Mapping[str, str]
    indices: tuple[int, ...]
    devices: Mapping[str, tuple[str, ...]]
    absent: tuple[str, ...]
    seconds: str


def partition_state(observed: Observed) -> State | None:
    """Return the state around the checks of a partition; None if no document has it."""
    documents = [document for document in observed.documents if "state" in document]
    rows = [row.values for check in observed.checks for row in table.states(check)]
    if not rows:
        return None
    every = chain.from_iterable(map(state.causes, documents))
    absent = {one["item"]: one["why"] for each in documents for one in each["state"]["absent"]}
    of_device = {
        index: [row for row in rows if row.get("device") == index]
        for index in sorted({row["device"] for row in rows if "device" in row})
    }
    devices = {index: dict(_ranges(own)) for index, own in of_device.items()}
    return State(
        causes=tuple(map(state.sentence, state.merged(every))),
        host=dict(_ranges(row for row in rows if "device" not in row)),
        indices=tuple(devices),
        devices={
            what: tuple(own.get(what, "") for own in devices.values())
            for what in dict.fromkeys(chain.from_iterable(devices.values()))
        },
        absent=tuple(f"{item}: {why}" for item, why in absent.items()),
        seconds=_range("taken_s", [row["taken_s"] for row in rows]),
    )


def _ranges(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what a column of the export is of, and the range of its values, where any is known."""
    every = list(rows)
    for column in table.columns():
        values = [row[column.name] for row in every if row.get(column.name) is not None]
        if values and "state" in column.kinds and column.name not in _ELSEWHERE:
            yield column.meaning, _range(column.name, values)


def _range(name: str, values: Iterable[Any]) -> str:
    """Return the least and the greatest of numbers, or each of other values."""
    known = sorted(set(values))
    if isinstance(known[0], (bool, str)):
        return listed("yes" if one is True else "no" if one is False else one for one in known)
    form = about if name.startswith(("free_bytes", "huge_page_bytes")) else short
    return " to ".join(dict.fromkeys(map(form, (known[0], known[-1]))))
