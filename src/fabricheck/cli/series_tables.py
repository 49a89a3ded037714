"""The tables of measured values: a row for each kind of series, or with --all for each series."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fabricheck.cli import check_lines
from fabricheck.core import amounts, show
from fabricheck.core.grouping import grouped
from fabricheck.core.show import Block, Table, listed
from fabricheck.results import table
from fabricheck.results.model import Place
from fabricheck.results.rows import Check, Series
from fabricheck.results.series import host_domains, is_too_noisy

#: The columns of kinds of series, and those of single ones; those that are right-aligned.
KINDS = ("Kind", "Size", "n", "Worst", "at", "Median", "Best", "at", "±", "Data")
SERIES = ("Op", "Device", "Source -> destination", "Size", "Block", "Median", "95 % interval", "n",
          "Data", "Kernel")  # fmt: skip
RIGHT = ("Size", "n", "Worst", "Median", "Best", "±", "Block", "95 % interval")

_UNITS = {"GB/s": "GB/s (1e9 bytes per second)", "us": "us"}


def blocks(heading: Iterable[str], checks: Iterable[Check], show_all: bool) -> Iterator[Block]:
    """Yield the lines and tables of all checks, those that failed first.

    A check without a document is shown by its metrics.
    """
    yield from heading
    hidden, summarised = 0, False
    for check in _failed_first(checks):
        if check.document is None:
            yield from check_lines.without_document(check)
            continue
        yield ""
        yield from check_lines.with_document(check, check.document)
        units = grouped(
            ((series.unit, series.bytes_counted), series) for series in table.series(check, None)
        )
        for (unit, counted), rows in units.items():
            yield f"{check.clock}, in {_UNITS[unit]}; bytes counted {counted}"
            # One whose data is wrong or unverified, or that is too noisy, must be shown.
            parts = grouped(
                (
                    show_all
                    or bool(series.errors)
                    or not series.bytes_checked
                    or is_too_noisy(series.measured),
                    series,
                )
                for series in rows
            )
            alone, summed = parts.get(True, []), _by_description(parts.get(False, []))
            yield Table(KINDS, [_summed(*each) for each in summed.items()], RIGHT)
            columns = SERIES if any(series.variant for series in alone) else SERIES[:-1]
            yield Table(columns, list(map(_of_series, alone)), RIGHT)
            hidden += len(rows) - len(alone) - sum(map(len, summed.values()))
            summarised = summarised or bool(summed)
    if summarised:
        more = f" {hidden} more series: --all." if hidden else ""
        yield ""
        yield (
            "A row has the n places of a kind of series, each at its largest size and with its "
            "best block size and variant. N: a NUMA domain in which host memory was proved to lie. "
            f"±: half of the widest 95 % interval.{more}"
        )


def _failed_first(checks: Iterable[Check]) -> list[Check]:
    return sorted(checks, key=lambda check: check.case is None or check.case.passed)


def matrices(heading: Iterable[str], checks: Iterable[Check]) -> Iterator[Block]:
    """Yield the rates between devices, a table for each kind of transfer of a check.

    A row is of the device whose memory is read, a column of that which is written; the value is the
    median at the largest size, or WRONG where bytes did not arrive as they were.
    """
    yield from heading
    shown = False
    for check in _failed_first(checks):
        pairs = [series for series in table.series(check, None) if _is_of_a_pair(series)]
        for description, places in _by_description(pairs).items():
            shown = True
            several = list(places.values())
            unit, size = several[0].unit, amounts.size(max(series.bytes for series in several))
            case = "" if check.case is None else f", {check.case.name} @{check.case.place}"
            yield ""
            yield _matrix(f"{description} of {size}{case}, {check.clock}, in {unit}", several)
    if not shown:
        yield "No rate between devices was measured."


def _is_of_a_pair(series: Series) -> bool:
    """Whether a series is of two devices, one way, with nothing beside it."""
    ends = {series.source_device, series.destination_device}
    return len(ends) == 2 and None not in ends and series.role == "single"


def _matrix(above: str, several: Sequence[Series]) -> Table:
    values: dict[tuple[int | None, int | None], str] = {}
    for series in several:
        a, b = series.source_device, series.destination_device
        values[a, b] = "WRONG" if series.errors else amounts.short(series.value)
        if series.direction == "both-ways":
            values.setdefault((b, a), values[a, b])
    devices = sorted({device for device in chain.from_iterable(values) if device is not None})
    rows = [[str(a), *(values.get((a, b), "-") for b in devices)] for a in devices]
    columns = ("from", *(f"to {device}" for device in devices))
    return Table(columns, rows, columns, above=above)


def _by_description(rows: Iterable[Series]) -> dict[str, dict[str, Series]]:
    """Return by description and place the best series at the largest size."""
    by_description: dict[str, dict[str, Series]] = {}
    for series in sorted(rows, key=lambda series: (series.bytes, _goodness(series))):
        description = series.description
        if series.in_place:
            description += " in place"
        place = " ".join(
            [_who(series), *(f"N{domain}" for domain in host_domains(series.measured))]
        )
        by_description.setdefault(description, {})[place] = series
    return dict(sorted(by_description.items()))


def _summed(description: str, places: Mapping[str, Series]) -> tuple[show.Cell, ...]:
    several = list(places.values())
    median = amounts.short(statistics.median(series.value for series in several))
    by_value = sorted(places, key=lambda place: _goodness(places[place]))
    ends = [(amounts.short(places[place].value), place) for place in (by_value[0], by_value[-1])]
    if ends[0][0] == ends[1][0]:
        ends = [("", by_value[0] if len(several) == 1 else ""), ("", "")]
    widths = [series.measured["relative_half_width"] for series in several]
    width = max((width for width in widths if width is not None), default=None)
    size = amounts.size(max(series.bytes for series in several))
    shown = "-" if width is None else f"{100 * width:.2g} %"
    return description, size, str(len(several)), *ends[0], median, *ends[1], shown, _data(several)


def _of_series(series: Series) -> tuple[show.Cell, ...]:
    ends = (series.measured["source"], series.measured["destination"])
    interval = "-" if series.interval is None else " - ".join(map(amounts.number, series.interval))
    return (
        f"{series.operation} in place" if series.in_place else series.operation,
        {"sum": "sum {}", "beside": "{}, beside"}.get(series.role, "{}").format(_who(series)),
        " -> ".join(map(_memory, ends)),
        amounts.size(series.bytes),
        str(series.block_size or "-"),
        amounts.number(series.value),
        interval,
        str(series.n),
        _data([series]),
        *filter(None, [series.variant]),
    )


def _who(series: Series) -> str:
    noun, numbers = series.members
    # Ranks that share a device are told apart by their numbers.
    return f"{noun} {numbers}" if series.ranks and len(series.devices) == 1 else numbers


def _memory(end: Place) -> str:
    text, domain = end["memory"].removeprefix("host-"), end["numa_domain"]
    if text in ("peer", "managed") and end["device"] is not None:
        text += f" {end['device']}"
    return text if domain is None else f"{text} N{domain}"


def _data(several: Sequence[Series]) -> show.Cell:
    """Return what of the data of some series is not good, with their number, or verified."""
    counts = {
        "not verified": sum(not (series.bytes_checked or series.errors) for series in several),
        "noisy": sum(series.noisy for series in several),
        "clocks differ": sum(series.host_clock_agrees is False for series in several),
        "cache": sum(series.regime == "cache" for series in several),
    }
    marks = [f"{series.errors} WRONG" for series in several if series.errors]
    for mark, number in counts.items():
        if number:
            marks.append(mark if number == len(several) else f"{number} {mark}")
    if not (counts["not verified"] or any(series.errors for series in several)):
        marks.insert(0, "verified")
    text = show.plain(listed(marks))
    text.highlight_words(["WRONG", "not verified"], "bold red")
    text.highlight_words(["noisy", "clocks differ"], "yellow")
    return text


def _goodness(series: Series) -> float:
    """Return the median with the sign that makes larger values better."""
    return series.value if series.better == "higher" else -series.value
