"""The tables of measured values: a row for each kind of series, or with --all for each series."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from fabricheck.core import amounts, show
from fabricheck.core.grouping import grouped
from fabricheck.core.show import Block, Table, listed
from fabricheck.results import table
from fabricheck.results.model import ResultDocument, describe_ranks
from fabricheck.results.series import host_domains, is_too_noisy
from fabricheck.results.session import Case
from fabricheck.results.table import Check, Series

#: The columns of kinds of series, and those of single ones; those that are right-aligned.
KINDS = ("Kind", "Size", "n", "Worst", "at", "Median", "Best", "at", "±", "Data")
SERIES = ("Op", "Device", "Source -> destination", "Size", "Block", "Median", "95 % interval", "n",
          "Data", "Kernel")  # fmt: skip
RIGHT = ("Size", "n", "Worst", "Median", "Best", "±", "Block", "95 % interval")

_UNITS = {"GB/s": "GB/s (1e9 bytes per second)", "us": "us"}


def blocks(heading: str, checks: Iterable[Check], show_all: bool) -> Iterator[Block]:
    """Yield the lines and tables of all checks, and the metrics of those without a document."""
    yield heading
    hidden = summarised = 0
    for check in checks:
        if check.document is None:
            yield from _metrics(check)
            continue
        yield ""
        yield from _about(check, check.document)
        units = grouped(
            ((series.unit, series.bytes_counted), series) for series in table.series(check, None)
        )
        for (unit, counted), every in units.items():
            yield f"{check.clock}, in {_UNITS[unit]}; bytes counted {counted}"
            alone = [series for series in every if show_all or _is_remarkable(series)]
            kinds = _kinds(series for series in every if not (show_all or _is_remarkable(series)))
            yield Table(KINDS, [_of_kind(kind, several) for kind, several in kinds.items()], RIGHT)
            columns = SERIES if any(series.variant for series in alone) else SERIES[:-1]
            yield Table(columns, list(map(_of_series, alone)), RIGHT)
            shown = sum(map(len, kinds.values()))
            summarised += shown
            hidden += len(every) - len(alone) - shown
    if summarised:
        more = f" {hidden} more series: --all." if hidden else ""
        yield (
            "\nA row has the n places of a kind of series, each at its largest size and with its "
            "best block size and variant. N: a NUMA domain in which host memory was proved to lie. "
            f"±: half of the widest 95 % interval.{more}"
        )


def _metrics(check: Check) -> Iterator[str]:
    """Yield a line about a check that leaves no document, as a plain test of ReFrame."""
    case = check.case
    if case is not None and check.entry is None and not case.skipped:
        yield f"\n{case.name} @{case.place} ({case.outcome}), without a document"
        yield from (f"  {name}: {amounts.number(value)} {unit}"
                    for name, (value, unit) in case.values.items())  # fmt: skip
        yield from (f"  check: {' '.join(why.split())}" for why in filter(None, [case.reason]))


def _kinds(every: Iterable[Series]) -> dict[str, list[Series]]:
    """Return by kind the best series of each place at its largest size, the worst place first."""
    kinds: dict[str, dict[str, Series]] = {}
    for series in sorted(every, key=lambda series: (series.bytes, _goodness(series))):
        kind = f"{series.kind} in place" if series.in_place else series.kind
        kinds.setdefault(kind, {})[series.place] = series
    return {kind: sorted(places.values(), key=_goodness) for kind, places in sorted(kinds.items())}


def _of_kind(kind: str, several: Sequence[Series]) -> tuple[show.Cell, ...]:
    median = amounts.short(statistics.median(series.value for series in several))
    ends = [(amounts.short(series.value), _place(series)) for series in (several[0], several[-1])]
    if ends[0][0] == ends[1][0]:
        ends = [("", _place(several[0]) if len(several) == 1 else ""), ("", "")]
    widths = [
        (high - low) / 2 / series.value
        for series in several
        if series.interval and series.value
        for low, high in [series.interval]
    ]
    width = f"{100 * max(widths):.2g} %" if widths else "-"
    size = amounts.size(max(series.bytes for series in several))
    return kind, size, str(len(several)), *ends[0], median, *ends[1], width, _data(several)


def _of_series(series: Series) -> tuple[show.Cell, ...]:
    ends = (
        (series.source_memory, series.source_device, series.source_domain),
        (series.destination_memory, series.destination_device, series.destination_domain),
    )
    interval = "-" if series.interval is None else " - ".join(map(amounts.number, series.interval))
    return (
        series.operation + " in place" * bool(series.in_place),
        {"sum": "sum {}", "beside": "{}, beside"}.get(series.role, "{}").format(_who(series)),
        " -> ".join(_memory(*end) for end in ends),
        amounts.size(series.bytes),
        str(series.block_size or "-"),
        amounts.number(series.value),
        interval,
        str(series.n),
        _data([series]),
        *filter(None, [series.variant]),
    )


def _place(series: Series) -> str:
    """Return who takes part, and the NUMA domain of host memory."""
    return " ".join([_who(series), *(f"N{domain}" for domain in host_domains(series.measured))])


def _who(series: Series) -> str:
    noun, numbers = series.members
    # Ranks that share a device are told apart by their numbers.
    return f"{noun} {numbers}" if series.ranks and len(series.devices) == 1 else numbers


def _memory(memory: str, device: int | None, domain: int | None) -> str:
    text = memory.removeprefix("host-")
    if text in ("peer", "managed") and device is not None:
        text += f" {device}"
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


def _is_remarkable(series: Series) -> bool:
    """Whether a series must be shown: its data is wrong or unverified, or it is too noisy."""
    return bool(series.errors) or not series.bytes_checked or is_too_noisy(series.measured)


def _about(check: Check, document: ResultDocument) -> Iterator[str]:
    program, outcome, case = document["program"], document["outcome"], check.case
    of = f"{case.name} @{case.place} ({case.outcome}): " if case is not None else ""
    yield (
        f"{of}{program['name']} {program['version']} on {document['host']['hostname']}, runtime "
        f"{program['runtime']}, {len(document['devices'])} device(s), clock {document['clock']}"
    )
    if case is not None:
        yield from _earlier_attempts(case)
    if outcome["status"] != "good":
        message = f": {outcome['message']}" if outcome["message"] else ""
        yield f"  outcome {outcome['status']}{message}"
    if case is not None and not case.passed and case.reason:
        reason = " ".join(case.reason.split())
        # A check mostly repeats the program's message, which is in the line above.
        if outcome["message"] is None or outcome["message"] not in reason:
            yield f"  check: {reason}"
    if not document["complete"]:
        yield "  incomplete: the series are only those finished"
    if document["faults_injected"]:
        yield f"  injected faults: {listed(document['faults_injected'])}"
    differences = document.get("differences")
    if differences is not None:
        yield f"  differences from the node model: {len(differences) or 'none'}"
        yield from (f"    {difference['sentence']}" for difference in differences)
    if not document["series"]:
        for line in describe_ranks(document):
            yield f"  {line}"
    for note in document["notes"]:
        yield f"  note: {note}"


def _earlier_attempts(case: Case) -> Iterator[str]:
    for number, attempt in enumerate(case.earlier, 1):
        if attempt.passed:
            continue
        reason = f": {' '.join(attempt.reason.split())}" if attempt.reason else ""
        yield f"  attempt {number} ({attempt.result}){reason}"
        if attempt.document_path is not None:
            yield f"  attempt {number} left {attempt.document_path}"
