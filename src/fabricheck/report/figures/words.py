"""Sentences on curves and bars: a description of a drawing in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from fabricheck.core.amounts import about
from fabricheck.core.text import capitalized
from fabricheck.report.figures.rows import Row, own

#: The fraction of its greatest value at which a curve counts as saturated.
SATURATED = 0.9

#: The smallest fall from one size to the next that is described, as a fraction of the value before.
FALL = 0.2


def amount(value: float, unit: str = "GB/s") -> str:
    """Return a value with three figures and its unit; whole numbers from 100 on."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def of_curve(rows: Sequence[Row]) -> str:
    """Return the end of a curve, its saturation, and its deepest fall, as a sentence.

    :param rows: of one series of this session, by size.
    """
    label, last, best = rows[0]["series"], rows[-1], max(row["value"] for row in rows)
    full = next(row for row in rows if row["value"] >= SATURATED * best)
    text = f"{capitalized(label)}: {amount(last['value'], last['unit'])} at {about(last['bytes'])}"
    if best > 1.1 * last["value"]:
        at = next(row for row in rows if row["value"] == best)
        text += f", at most {amount(best)} at {about(at['bytes'])}"
    text += f", {SATURATED * 100:.0f} % of its greatest from {about(full['bytes'])} on"
    falls = [(b["value"] / a["value"], a, b) for a, b in pairwise(rows)]
    ratio, before, after = min(falls, key=lambda fall: fall[0], default=(1.0, last, last))
    if ratio < 1 - FALL:
        text += (
            f"; it falls from {amount(before['value'])} at {about(before['bytes'])} "
            f"to {amount(after['value'])} at {about(after['bytes'])}"
        )
    return f"{text}."


def of_published(rows: Iterable[Row]) -> str:
    """Return the published and derived values of a figure; empty if it has none."""
    parts = []
    for row in rows:
        if row["kind"] in ("published", "derived"):
            at = f" at {about(row['bytes'])}" if row["bytes"] else ""
            parts.append(f"{row['series']} {amount(row['value'], row['unit'])}{at} ({row['kind']})")
    return f" For comparison: {'; '.join(parts)}." if parts else ""


def of_noise(rows: Iterable[Row]) -> str:
    """Return the number of noisy values of this session; empty if there are none."""
    mine = own(rows)
    noisy = sum(bool(row["noisy"]) for row in mine)
    return f" Noisy: {noisy} of {len(mine)} values." if noisy else ""
