"""The table of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from fabricheck.cli import output, pairs
from fabricheck.core import amounts
from fabricheck.core.text import printable
from fabricheck.results.entry import Entry
from fabricheck.results.launches import rank_lines
from fabricheck.results.model import Place, ResultDocument, Series

#: Up to so many series that differ only in size and block are shown without being asked for.
SHORT_SCAN = 3

#: A set of devices is written in full with up to so many parts.
MOST_PARTS = 4

_SIDES: tuple[Literal["source"], Literal["destination"]] = ("source", "destination")
_NUMERIC = ("Size", "Block", "Median", "95 % interval", "n")


def show(heading: str, entries: Sequence[Entry], show_all: bool) -> None:
    """Write the tables of all documents to standard output."""
    console = output.console()
    console.print(printable(heading))
    hidden = 0
    in_matrices = False
    for entry in entries:
        if entry.document is None:
            continue
        console.print()
        for line in _about(entry, entry.document):
            console.print(printable(line))
        for (experiment, unit, counted, movement), series in _by_unit(
            entry.document["series"]
        ).items():
            matrices, others = ([], series) if show_all else pairs.split(series)
            chosen = others if show_all else summarise(list(filter(_is_row, others)))
            hidden += len(series) - len(chosen) - sum(matrix.shown for matrix in matrices)
            in_matrices = in_matrices or bool(matrices)
            console.print(
                f"{experiment}, {entry.document['clock']}, in {_UNITS[unit]}; bytes counted "
                f"{counted}{f'; by {movement}' if movement else ''}"
            )
            for matrix in matrices:
                pairs.show(console, matrix)
            if chosen:
                console.print(_table(chosen))
            domains = _domains(chosen)
            if domains:
                console.print(
                    f"N{domains[0]}: host memory that was proved to lie in that NUMA domain"
                )
    if in_matrices:
        console.print()
        console.print(
            "In a matrix: the medians at the largest size; ~ noisy, ! wrong data, ? not "
            "verified. Every series with its interval: --all."
        )
    if hidden:
        console.print()
        console.print(
            "Of each scan the largest size is shown, with its best block size, and of both "
            f"directions of one device their sum; "
            f"{hidden} more series: --all."
        )


_UNITS = {"GB/s": "GB/s (1e9 bytes per second)", "us": "us"}


def _about(entry: Entry, document: ResultDocument) -> Iterable[str]:
    program, outcome = document["program"], document["outcome"]
    case = f"{entry.case.name} @{entry.case.place} ({entry.case.outcome}): " if entry.case else ""
    yield (
        f"{case}{program['name']} {program['version']} on {document['host']['hostname']}, runtime "
        f"{program['runtime']}, {len(document['devices'])} device(s), clock {document['clock']}"
    )
    yield from _earlier_attempts(entry)
    if outcome["status"] != "good":
        said = f": {outcome['message']}" if outcome["message"] else ""
        yield f"  outcome {outcome['status']}{said}"
    yield from _check_failure(entry, outcome["message"])
    if not document["complete"]:
        yield "  incomplete: the series are only those finished"
    if document["faults_injected"]:
        yield f"  faults made on purpose: {', '.join(document['faults_injected'])}"
    differences = document.get("differences")
    if differences is not None:
        yield f"  differences from the node model: {len(differences) or 'none'}"
        for sentence in differences:
            yield f"    {sentence}"
    if not document["series"]:
        for line in rank_lines(document):
            yield f"  {line}"
    for note in document["notes"]:
        yield f"  note: {note}"


def _earlier_attempts(entry: Entry) -> Iterable[str]:
    for number, attempt in enumerate(entry.case.earlier if entry.case else (), 1):
        if attempt.passed:
            continue
        reason = f": {' '.join(attempt.reason.split())}" if attempt.reason else ""
        yield f"  attempt {number} ({attempt.result}){reason}"
        if attempt.document_path is not None:
            yield f"  attempt {number} left {attempt.document_path}"


def _check_failure(entry: Entry, said: str | None) -> Iterable[str]:
    if entry.case is None or entry.case.passed or not entry.case.reason:
        return
    reason = " ".join(entry.case.reason.split())
    # A check mostly repeats what the program said, which the line before has.
    if said is None or said not in reason:
        yield f"  check: {reason}"


def _by_unit(all_series: Iterable[Series]) -> dict[tuple[str, str, str, str], list[Series]]:
    groups: dict[tuple[str, str, str, str], list[Series]] = {}
    for series in all_series:
        convention = (series["unit"], series["bytes_counted"], series.get("movement") or "")
        key = (series["experiment"], *convention)
        groups.setdefault(key, []).append(series)
    return groups


def _is_row(series: Series) -> bool:
    """Whether a series is shown in a table: of both directions of one device only the sum is.

    Shares of ranks have no sum, also where all ranks use one device.
    """
    alone = len(series["device_set"]) == 1 and not series.get("ranks")
    share_of_one = series["role"] == "share" and alone
    return not share_of_one or pairs.is_remarkable(series)


def summarise(all_series: Sequence[Series]) -> list[Series]:
    """Choose the series to show: of each long scan over size and block the best at its largest.

    Series that failed their verification, and what is noisy, are always among them.
    """
    scans: dict[tuple[object, ...], list[Series]] = {}
    for series in all_series:
        scans.setdefault(_what(series), []).append(series)
    chosen: list[Series] = []
    for scan in scans.values():
        if len(scan) <= SHORT_SCAN:
            chosen += scan
            continue
        largest = [series for series in scan if series["bytes"] == _largest(scan)]
        best = max(largest, key=pairs.goodness)
        chosen += [series for series in scan if series is best or pairs.is_remarkable(series)]
    return chosen


def _largest(scan: Sequence[Series]) -> int:
    return max(series["bytes"] for series in scan)


def _what(series: Series) -> tuple[object, ...]:
    """All that tells two series of a table apart but size and block."""
    return (
        series["operation"],
        series.get("in_place"),
        tuple(series.get("ranks") or ()),
        series["role"],
        series["device"],
        tuple(series["device_set"]),
        *_where(series["source"]),
        *_where(series["destination"]),
        series["engine"],
        series["direction"],
    )


def _where(place: Place) -> tuple[object, ...]:
    return (place["memory"], place["device"], place["numa_domain"])


def _table(chosen: Sequence[Series]) -> object:
    columns = ("Op", "Device", "Source -> destination", *_NUMERIC, "Data")
    table = output.table(*columns, right=_NUMERIC)
    for series in chosen:
        interval = series["ci95"]
        table.add_row(
            output.plain(series["operation"] + (" in place" if series.get("in_place") else "")),
            _devices(series),
            f"{_place(series['source'])} -> {_place(series['destination'])}",
            amounts.size(series["bytes"]),
            "-" if series["block_size"] is None else str(series["block_size"]),
            amounts.number(series["median"]),
            "-" if interval is None else " - ".join(map(amounts.number, interval)),
            str(len(series["samples"])),
            ", ".join(_marks(series)),
        )
    return table


def _domains(chosen: Sequence[Series]) -> list[int]:
    places = [series[side] for series in chosen for side in _SIDES]
    return [place["numa_domain"] for place in places if place["numa_domain"] is not None]


def _devices(series: Series) -> str:
    together = ranges(series["device_set"])
    ranks = series.get("ranks")
    if series["device"] is None and ranks:
        if series["direction"] == "collective" or len(ranks) != 2:
            return together or f"{len(ranks)} ranks"
        ends = (series["source"]["device"], series["destination"]["device"])
        return "{} to {}".format(*ends) if None not in ends else "ranks {} to {}".format(*ranks)
    if series["role"] == "single":
        return str(series["device"])
    if series["role"] == "share":
        return f"{series['device']} of {together}"
    return f"sum {together}"


def ranges(indices: Iterable[int]) -> str:
    """Return indices with runs of three and more joined: 0-3,6.

    Of more than four parts the first two and the last are named, and how many indices there are:
    0,2,..,34 (18).
    """
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [
        part
        for run in runs
        for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))
    ]
    if len(parts) > MOST_PARTS:
        return f"{parts[0]},{parts[1]},..,{parts[-1]} ({sum(map(len, runs))})"
    return ",".join(parts)


def _place(place: Place) -> str:
    text = place["memory"].removeprefix("host-")
    if text in ("peer", "managed") and place["device"] is not None:
        text += f" {place['device']}"
    if place["numa_domain"] is not None:
        text += f" N{place['numa_domain']}"
    return text


def _marks(series: Series) -> list[str]:
    verification = series["verification"]
    if verification["errors"]:
        marks = [f"{verification['errors']} WRONG"]
    elif verification["bytes_checked"]:
        marks = ["verified"]
    else:
        marks = ["not verified"]
    if series["noisy"]:
        marks.append("noisy")
    if series["regime"] == "cache":
        marks.append("cache")
    if series["host_clock"] is not None and not series["host_clock"]["agrees"]:
        marks.append("clocks differ")
    return marks
