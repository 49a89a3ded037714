"""Reference entries, ``[value, lower, upper, unit]``, and their faults.

ReFrame accepts any entry. One that no value can miss, or whose unit is not the metric's, passes
there; here each is refused in one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from fabricheck.core.show import listed
from fabricheck.core.vocabulary import SMALLER_IS_BETTER

#: The first part of an expected failure in ReFrame's references.
EXPECTED_FAILURE = "$xfail"

Entry = tuple[float, float | None, float | None, str]


def report_only(unit: str) -> Entry:
    """Return the entry that requires nothing."""
    return (0, None, None, unit)


def requires(entry: Sequence[Any]) -> bool:
    """Whether an entry can be missed: [0, null, null, unit] cannot."""
    return any(bound is not None for bound in entry[1:3])


def required(entry: Any) -> bool:
    """Whether a file states an entry that can be missed."""
    return entry is not None and requires(plain(entry))


def entry_of(raw: Any) -> Entry | None:
    """Return a reference as a file states it, or None where it is not a plain one ($xfail)."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) != 4:
        return None
    value, lower, upper, unit = raw
    numbers = (value, *(bound for bound in (lower, upper) if bound is not None))
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        return None
    return (value, lower, upper, str(unit))


def plain(entry: Any) -> Any:
    """Return the entry; for an expected failure (['$xfail', why, entry]) the inner one."""
    if isinstance(entry, (list, tuple)):
        return plain(entry[-1]) if entry and entry[0] == EXPECTED_FAILURE else list(entry)
    return entry


def said(entry: Any) -> str:
    """Format an entry as in a reference file, with six digits; anything else as Python does."""
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        return repr(entry)
    words = (f"{one:.6g}" if isinstance(one, float) else one for one in entry)
    return f"[{listed('null' if word is None else str(word) for word in words)}]"


def faults(name: str, unit: str, entry: Any) -> Iterator[str]:
    """Yield one sentence for each fault of the reference of one metric.

    Only ``[0, null, null, unit]`` is report only.

    :param name: the metric's, for the sentence.
    :param unit: the metric's: GB/s, us or count.
    :param entry: the reference, ``(value, lower, upper, unit)``.
    """
    subject = f"The reference of metric {name}, {said(entry)},"
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) not in (3, 4):
        yield f"{subject} is not [value, lower, upper, unit]."
        return
    value, lower, upper = entry[:3]
    if len(entry) == 3 or entry[3] is None:
        yield f"{subject} has no unit; the metric is in {unit}."
    elif entry[3] != unit:
        yield f"{subject} is in {entry[3]}, but the metric is in {unit}."
    bounds = [one for one in (lower, upper) if one is not None]
    if not all(map(_is_number, (value, *bounds))):
        yield f"{subject} contains something other than a finite number."
        return
    if value < 0:
        yield f"{subject} has a negative value."
    elif not bounds:
        if value != 0:
            yield (
                f"{subject} has no limit, so nothing can miss it: write [0, null, null, {unit}] "
                "for report only."
            )
    else:
        yield from _of_the_limits(subject, value, lower, upper, unit)


def _of_the_limits(
    subject: str, value: float, lower: float | None, upper: float | None, unit: str
) -> Iterator[str]:
    counted = unit == "count"
    if value == 0 and not (counted and upper is not None):
        yield f"{subject} has a limit and the value 0; a limit is a fraction of the value."
    if lower is not None and not -1 < lower <= 0 and not (counted and value == 0):
        yield f"{subject} has a lower limit outside -1 (exclusive) to 0."
    if upper is not None and upper < 0:
        yield f"{subject} has a negative upper limit."
    if unit in SMALLER_IS_BETTER and upper is None:
        yield f"{subject} has a lower limit only, but a smaller value of {unit} is better."
    if unit not in SMALLER_IS_BETTER and lower is None:
        yield f"{subject} has an upper limit only, but a larger value in {unit} is better."


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max
