"""Published numbers for claims: by record id from the data set, never typed again."""

from __future__ import annotations

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.claims.model import NotTestable, Number
from fabricheck.references.published import folder, of_folder


def number(record: str) -> Number:
    """Return a record's value, with its place and machine.

    In GB/s (1e9 bytes per second), us, or percent where its unit can be made one of these; else in
    the record's own unit.

    :raises NotTestable: when the data set cannot be read, or has no such record.
    """
    try:
        found = of_folder(folder()).record(record)
    except FabricheckError as error:
        raise NotTestable(f"the published values cannot be read: {error}") from None
    # A value that its document takes from another one is told apart.
    secondary = " (secondary)" if found.secondary else ""
    what = f"{found.metric.replace('_', ' ')}, {found.system}{secondary}"
    return Number(what, found.value, found.unit, "published", record=record, place=found.place)


def value(record: str) -> float:
    """Return a record's value, in the unit that `number` has.

    :raises NotTestable: as `number`.
    """
    return number(record).value
