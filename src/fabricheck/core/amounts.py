"""Sizes and measured values as text, for tables and sentences."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """Format bytes exactly, in the largest binary unit that divides them: 256 MiB, 1000 B."""
    unit = 0
    while count >= 1024 and count % 1024 == 0 and unit < len(_BINARY) - 1:
        count //= 1024
        unit += 1
    return f"{count} {_BINARY[unit]}"


def sizes(option: str) -> str:
    """Return the sizes of a program's option in words: ``4:1GiB`` is 4 B to 1 GiB."""
    if not option:
        return "-"
    if ":" in option:
        first, last = option.split(":")
        if first == last:
            return _spaced(first)
        return f"{_spaced(first)} to {_spaced(last)}"
    each = option.split(",")
    if len(each) == 1:
        return _spaced(each[0])
    return f"{_spaced(each[0])} to {_spaced(each[-1])} ({len(each)})"


def _spaced(text: str) -> str:
    """Return a size of an option with a space before its unit."""
    if text.isdecimal():
        return size(int(text))
    digits = text.rstrip("BiKMGT")
    return f"{digits} {text[len(digits) :]}"


def number(value: float) -> str:
    """Format a measured value with five significant digits, without an exponent below 1e9."""
    digits = 5
    if not 0 < abs(value) < float("inf"):
        return f"{value or 0:g}"
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    return f"{value:.{max(digits - before, 0)}f}" if abs(value) >= 0.01 else f"{value:.{digits}g}"


def short(value: float) -> str:
    """Return a value with three significant digits, as people compare values: 24.3, 1,400."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def about(count: int) -> str:
    """Format bytes in the largest binary unit, rounded to four digits: 64 KiB, 4 B, 1.5 GiB."""
    for power in range(len(_BINARY) - 1, 0, -1):
        if count >= 1024**power:
            return f"{count / 1024**power:.4g} {_BINARY[power]}"
    return f"{count} B"
