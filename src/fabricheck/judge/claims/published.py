"""Published numbers for claims: from the data set by the id of a record, never typed twice."""

from __future__ import annotations

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.claims.model import NotTestable, Number
from fabricheck.references.published import UNITS, folder, of_folder


def number(record: str) -> Number:
    """Return a record's value, with its place and machine.

    In GB/s (1e9 bytes per second), us, or percent where its unit can be made one of these; else in
    the record's own unit.

    :raises NotTestable: when the data set can not be read, or has no such record.
    """
    try:
        data = of_folder(folder())
        found = data.record(record)
        stated = found.get("unit_si", found["unit"])
        value, unit = data.value(record) if stated in UNITS else (float(found["value"]), stated)
    except FabricheckError as error:
        raise NotTestable(f"what was published can not be read: {error}") from None
    source = found["source"]
    place = f"{source['title']}, {source.get('where', '')}".rstrip(", ")
    # A value that its document takes from another one is told apart.
    secondary = " (secondary)" if found.get("secondary") else ""
    what = f"{found['metric'].replace('_', ' ')}, {found['system']}{secondary}"
    return Number(what, value, unit, "published", record=record, place=place)


def value(record: str) -> float:
    """Return a record's value, in the unit that `number` has.

    :raises NotTestable: as `number`.
    """
    return number(record).value
