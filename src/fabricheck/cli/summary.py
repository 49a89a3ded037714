"""`fabricheck summary`: a session on one screen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.cli import commands
from fabricheck.core import show
from fabricheck.core.amounts import short
from fabricheck.core.show import cut
from fabricheck.core.text import count
from fabricheck.results import reading
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

if TYPE_CHECKING:
    from rich.text import Text

    from fabricheck.judge.verdict.model import NodeVerdict, Reason
    from fabricheck.report.experiments import Row
    from fabricheck.report.worst import Worst

#: The most findings shown.
MOST_FINDINGS = 3

#: The most partitions with a table: two fit on a screen.
MOST_PARTITIONS = 2

#: Longest sentence of a finding; the report has the full sentence.
LONGEST = 290

#: The most devices whose pairs fit into the width of a screen.
MOST_DEVICES = 8

#: The columns of a device, by the properties of its series.
OF_A_DEVICE = {
    "Memory": {"experiment": "E1", "operation": "copy", "role": "single", "regime": "memory"},
    "From host": {"experiment": "E2", "operation": "h2d", "source_memory": "host-pinned"},
    "To host": {"experiment": "E2", "operation": "d2h", "destination_memory": "host-pinned"},
}

#: The series of the pairs, by engine.
OF_PAIRS = {"experiment": "E7", "operation": "engine", "role": "single"}

#: The widths of the columns of a table: together a line.
WIDTHS = (3, 20, 19, 6, 10, 14, 16, 8)

#: Kinds of references shown by another word: a shorter one, or none.
KINDS = {"published elsewhere": "published", "calibration": "calibrated", "report only": ""}

#: The mark of an experiment's outcome, in words and in colour.
OUTCOMES = {"missed": ("MISSED", "red"), "within": ("within", "green")}

#: Colours of statuses; all others fail.
STATUS_COLOURS = {"PASS": "green", "UNSTABLE": "yellow", "INCOMPLETE": "yellow"}


@commands.command("summary")
def summary(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[SESSION|JOB|FOLDER|FILE]",
            help="A session's id (the latest by default), the number of a job over many nodes, a "
            "results folder, a run report or a document.",
        ),
    ] = "latest",
) -> None:
    """Show a session on one screen: status, E1 to E17, and the worst findings."""
    # These take half a second to import, and no other command needs them.
    from fabricheck.judge.verdict.judging import judge
    from fabricheck.report import experiments, verdict, worst

    results = reading.read([what])
    verdicts = judge(results)
    show.line(f"Summary of {results.title}")
    findings: list[tuple[int, float, str]] = []
    for observed in results.observed[:MOST_PARTITIONS]:
        judged = verdict.of(verdicts, observed)
        show.line()
        show.line(_heading(observed, judged, verdict.says(observed)))
        _table(experiments.of(observed))
        _devices(observed)
        findings += _findings(observed, verdict.failures(judged), worst.of(observed))
    left = len(results.observed) - MOST_PARTITIONS
    if left > 0:
        show.line(f"And {count(left, 'partition')} more: fabricheck verdict")
    show.line()
    findings += [(0, 0.0, one.sentence) for one in results.problems]
    shown = sorted(findings)[:MOST_FINDINGS]
    of = f" of {len(findings)}" if len(findings) > len(shown) else ""
    show.line(f"Worst findings{of}:" if shown else "No findings.")
    for *_, sentence in shown:
        show.line(f"- {cut(sentence, LONGEST)}")


def _heading(observed: Observed, judged: NodeVerdict, says: str) -> Text:
    line = show.plain(f"{observed.where or 'no partition'}, {observed.kind}: ")
    line.append(judged.label, f"bold {STATUS_COLOURS.get(judged.status, 'red')}")
    return line.append(f"; {says}.")


def _table(rows: Sequence[Row]) -> None:
    """Write a row for each experiment that has a value, and a line of the others."""
    right = ("Best", "Worst", "Required")
    shown = []
    for row in rows:
        if row.shown is None:
            continue
        word, colour = OUTCOMES.get(row.outcome, (row.outcome, ""))
        kind = KINDS.get(row.shown.kind, row.shown.kind)
        of = "" if row.reference is None else f"{short(row.reference)} {kind}"
        unit = "" if row.unit == "count" else row.unit
        metric = row.metric.split(" ", 1)[-1]
        best = short(row.best.value) if row.best else ""
        worst = f"{short(row.worst.value)} {unit}" if row.worst else ""
        cells = (row.id, row.title, metric, best, worst)
        shown.append((*cells, row.limit, of, show.plain(word, colour)))
    if shown:
        columns = ("", "Experiment", "Metric", *right, "Reference", "")
        show.table(columns, shown, right, WIDTHS, cut_cells=True)
    for outcome_of in dict.fromkeys(row.outcome for row in rows if row.shown is None):
        names = ", ".join(row.id for row in rows if row.shown is None and row.outcome == outcome_of)
        show.line(f"{outcome_of.capitalize()}: {names} (fabricheck results coverage)")


def _devices(observed: Observed) -> None:
    """Write of each measured GPU its memory, its host link and the copies to its peers, in GB/s."""
    if observed.simulated or observed.runtimes <= {"host"}:
        return
    own = [
        {one.device: one.value for one in sorted(observed.select(**fields), key=_size)}
        for fields in OF_A_DEVICE.values()
    ]
    pairs = {
        one.pair: one.value
        for one in sorted(observed.select(**OF_PAIRS), key=_size)
        if one.pair is not None
    }
    found = {device for column in own for device in column if device is not None}
    devices = sorted({*found, *itertools.chain.from_iterable(pairs)})[:MOST_DEVICES]
    peers = devices if pairs else []
    columns = ("GB/s", *OF_A_DEVICE, *(f"to {peer}" for peer in peers))
    rows = []
    for device in devices:
        values = [column.get(device) for column in own]
        values += [pairs.get((device, peer)) for peer in peers]
        rows.append([f"device {device}", *("" if one is None else short(one) for one in values)])
    if rows:
        show.line()
        show.table(columns, rows, columns[1:])


def _size(series: Series) -> int:
    return series.bytes


def _findings(
    observed: Observed, failures: Sequence[Sequence[Reason]], found: Worst
) -> Iterator[tuple[int, float, str]]:
    """Yield each finding with its sort key: worst status, then worst margin."""
    from fabricheck.report.worst import sentence

    where = observed.where or "no partition"
    told = [first for first, *_ in failures if first.status != "PERF-FAIL"]
    for one in told:
        yield 0, 0.0, f"{where}, {one.status}: {one.sentence}"
    for far in found.failed:
        if not any((far.of.title, far.metric) == (one.check, one.metric) for one in told):
            yield 1, far.margin or 0.0, f"{where}, {sentence(far)}."
    for slow in found.slow[:1]:
        yield 2, -slow.percent, f"{where}, {slow.sentence}."
