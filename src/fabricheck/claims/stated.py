"""Numbers that documents state, from the published data set: none is typed in a rule."""

from __future__ import annotations

from fabricheck.claims.model import NotTestable, Number
from fabricheck.errors import NotFoundError
from fabricheck.references.published import FILE, UNITS, published
from fabricheck.references.stated import folder


def stated(record: str) -> float:
    """Return a record's value: in GB/s (1e9 bytes per second) or us, others in their own unit.

    :raises NotTestable: when the data set is not there.
    :raises InvalidInputError: when it can not be read, or has no such record.
    """
    return _value(record)[0]


def published_number(what: str, record: str) -> Number:
    """Return a record as a number beside those of a session; the errors are those of `stated`."""
    value, unit = _value(record)
    return Number(what, value, unit, "published")


def _value(record: str) -> tuple[float, str]:
    try:
        data = published(folder() / FILE)
    except NotFoundError:
        raise NotTestable(f"there is no data set of published values ({FILE})") from None
    entry = data.record(record)
    if entry.get("unit_si", entry["unit"]) in UNITS:
        return data.value(record)
    return float(entry["value"]), str(entry["unit"])
