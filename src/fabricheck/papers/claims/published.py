"""Published numbers for claims, read from the data set by record id and never typed again."""

from __future__ import annotations

from fabricheck.core.errors import FabricheckError
from fabricheck.papers.claims.model import NotTestable, Number
from fabricheck.references.published import folder, of_folder


def number(record: str) -> Number:
    """Return a record's value, with its place and machine.

    The unit is GB/s (1e9 bytes per second), us, or percent where the record's unit can be
    converted, else the record's own unit.

    :raises NotTestable: when the data set cannot be read, or lacks the record.
    """
    try:
        found = of_folder(folder()).record(record)
    except FabricheckError as error:
        raise NotTestable(f"the published values cannot be read: {error}") from None
    # A value that its document cites from another one is marked.
    secondary = " (secondary)" if found.secondary else ""
    what = f"{found.metric.replace('_', ' ')}, {found.system}{secondary}"
    return Number(what, found.value, found.unit, "published", record=record, place=found.place)


def value(record: str) -> float:
    """Return a record's value, in the unit of `number`.

    :raises NotTestable: as `number`.
    """
    return number(record).value
