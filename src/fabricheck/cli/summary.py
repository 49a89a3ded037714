"""`fabricheck summary`: a session on one screen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.amounts import short
from fabricheck.core.show import Table, cut, listed
from fabricheck.core.text import count
from fabricheck.results import reading
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

if TYPE_CHECKING:
    from rich.text import Text

    from fabricheck.judge.verdict.model import Reason
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


@dataclass(frozen=True)
class Partition:
    """One partition of a session: its status, a row for each experiment, and for each GPU."""

    partition: str
    kind: str
    status: str
    label: str
    says: str
    experiments: Sequence[Mapping[str, Any]]
    devices: Sequence[Mapping[str, Any]]


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
    as_json: AsJson = False,
) -> None:
    """Show a session on one screen: status, E1 to E17, and the worst findings."""
    # These take half a second to import, and no other command needs them.
    from fabricheck.judge.verdict.judging import judge
    from fabricheck.report import experiments, verdict, worst

    results = reading.read([what])
    verdicts = judge(results)
    found = [(0, 0.0, one.sentence) for one in results.problems]
    partitions = []
    for observed in results.observed:
        judged = verdict.of(verdicts, observed)
        rows = list(map(_experiment, experiments.of(observed)))
        partitions.append(Partition(
            observed.where or "no partition", observed.kind, judged.status, judged.label,
            verdict.says(observed), rows, list(_devices(observed)),
        ))  # fmt: skip
        if judged.diagnosis is not None and judged.diagnosis.degraded:
            found.append((-1, 0.0, judged.diagnosis.sentence))
        found += _findings(observed, verdict.failures(judged), worst.of(observed))
    findings = [sentence for *_, sentence in sorted(found)]
    result = {"of": results.title, "partitions": partitions, "findings": findings}
    show.result(result, _text(results.title, partitions, findings), as_json)


def _text(
    title: str, partitions: Sequence[Partition], findings: Sequence[str]
) -> Iterator[str | Text | Table]:
    yield f"Summary of {title}"
    for one in partitions[:MOST_PARTITIONS]:
        line = show.plain(f"\n{one.partition}, {one.kind}: ")
        line.append(one.label, f"bold {STATUS_COLOURS.get(one.status, 'red')}")
        yield line.append(f"; {one.says}.")
        yield from _table(one.experiments)
        yield from _matrix(one.devices)
    left = len(partitions) - MOST_PARTITIONS
    if left > 0:
        yield f"And {count(left, 'partition')} more: fabricheck verdict"
    shown = findings[:MOST_FINDINGS]
    of = f" of {len(findings)}" if len(findings) > len(shown) else ""
    yield f"\nWorst findings{of}:" if shown else "\nNo findings."
    yield from (f"- {cut(sentence, LONGEST)}" for sentence in shown)


def _experiment(row: Row) -> dict[str, Any]:
    return {
        "experiment": row.id,
        "title": row.title,
        "outcome": row.outcome,
        "metric": row.metric,
        "unit": row.unit,
        "best": row.best,
        "worst": row.worst,
        "limit": row.limit,
        "reference": row.reference,
        "kind": row.shown and row.shown.kind,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str | Table]:
    """Yield a row for each experiment that has a value, and a line of the others."""
    right = ("Best", "Worst", "Required")
    shown, others = [], dict[str, list[str]]()
    for row in rows:
        if row["kind"] is None:
            others.setdefault(row["outcome"], []).append(row["experiment"])
            continue
        word, colour = OUTCOMES.get(row["outcome"], (row["outcome"], ""))
        kind = KINDS.get(row["kind"], row["kind"])
        unit = "" if row["unit"] == "count" else row["unit"]
        shown.append((
            row["experiment"], row["title"], row["metric"].split(" ", 1)[-1],
            short(row["best"].value) if row["best"] else "",
            f"{short(row['worst'].value)} {unit}" if row["worst"] else "",
            row["limit"],
            "" if row["reference"] is None else f"{short(row['reference'])} {kind}",
            show.plain(word, colour),
        ))  # fmt: skip
    columns = ("", "Experiment", "Metric", *right, "Reference", "")
    yield Table(columns, shown, right, WIDTHS, cut_cells=True)
    for outcome, names in others.items():
        yield f"{outcome.capitalize()}: {listed(names)} (fabricheck results coverage)"


def _devices(observed: Observed) -> Iterator[dict[str, Any]]:
    """Yield of each measured GPU its memory, its host link and the copies to its peers, in GB/s."""
    if observed.simulated or observed.runtimes <= {"host"}:
        return
    own = {
        name: {one.device: one.value for one in sorted(observed.select(**fields), key=_size)}
        for name, fields in OF_A_DEVICE.items()
    }
    pairs = {
        one.pair: one.value
        for one in sorted(observed.select(**OF_PAIRS), key=_size)
        if one.pair is not None
    }
    found = {device for values in own.values() for device in values if device is not None}
    for device in sorted({*found, *itertools.chain.from_iterable(pairs)}):
        peers = {to: value for (source, to), value in pairs.items() if source == device}
        yield {
            "device": device,
            **{name: values.get(device) for name, values in own.items()},
            "peers": peers,
        }


def _matrix(devices: Sequence[Mapping[str, Any]]) -> Iterator[str | Table]:
    shown = devices[:MOST_DEVICES]
    peers = [one["device"] for one in shown] if any(one["peers"] for one in devices) else []
    columns = ("GB/s", *OF_A_DEVICE, *(f"to {peer}" for peer in peers))
    rows = []
    for one in shown:
        values = [*(one[name] for name in OF_A_DEVICE), *(one["peers"].get(to) for to in peers)]
        cells = ("" if value is None else short(value) for value in values)
        rows.append([f"device {one['device']}", *cells])
    if rows:
        yield ""
    yield Table(columns, rows, columns[1:])


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
