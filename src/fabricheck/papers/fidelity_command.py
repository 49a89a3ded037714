"""The command ``fabricheck papers fidelity``: a simulated node compared with published values.

The comparison is shown as Markdown, which is also a page of the documentation, or as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.text import capitalized
from fabricheck.core.whole_files import write_whole
from fabricheck.node import load
from fabricheck.papers.fidelity import AIM, Fidelity, Judged, Share, compare
from fabricheck.papers.fidelity_plan import Row, Table
from fabricheck.references.published import Record

_UNITS = {"GB/s": "GB/s", "us": "us", "percent": "%", "ratio": "ratio"}


@commands.command("papers fidelity")
def fidelity(
    node: Annotated[str, typer.Argument(help="A node model: its name, or a YAML file.")],
    programs: Annotated[
        Path | None,
        typer.Option(
            "--programs", help="Folder of the simulated programs; default: build/sim/bin."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--output", help="Write the documentation page to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a node and compare it with published values of real nodes.

    Runs the simulated programs. Nothing is measured: every printed number is either published or
    simulated.
    """
    comparison = compare(load(node), programs)
    if page is not None:
        write_whole(page, page_of(comparison))
        show.line(f"wrote {page}", to_stderr=True)
    if as_json or page is None:
        show.result(json_of(comparison), text_of(comparison).splitlines(), as_json, wrapped=False)


def page_of(fidelity: Fidelity) -> str:
    """Return the page of the documentation, which depends on the model and the records alone."""
    name = fidelity.plan.node.name
    tolerance = fidelity.plan.file.tolerance
    out = [
        f"# Fidelity of the simulated node {name}",
        "",
        f"Written by `fabricheck papers fidelity {name} --output PAGE`, not by hand;",
        f"`fabricheck papers fidelity {name}` prints each record.",
        "",
        f"[The simulated node](simulated-node.md) {name} beside published values. **Published**",
        "is a record of `reference_values/published_values.yaml`. **Simulated** follows from the",
        f"node model; it was measured nowhere. `reference_values/{fidelity.plan.path.name}` says",
        "which run each record is compared with. Compared are all measured, exact, not secondary",
        f"records of {show.enumerated(fidelity.plan.file.experiments)} on "
        f"{show.listed(fidelity.plan.node.systems)}.",
        *(
            f"Of {also.system} also those of {show.enumerated(also.experiments)}: {also.reason}."
            for also in fidelity.plan.file.also
        ),
        "",
        "Deviation is simulated / published - 1. A bandwidth within "
        f"{_percent(tolerance.bandwidth)} and a latency within {_percent(tolerance.latency)}",
        "of the published value are *within*. Everything else is *not explained*: the model has no",
        "reason for it, and nothing was fitted to it.",
        "",
        *summary(fidelity),
        *_left_out(fidelity),
    ]
    return "\n".join(out).rstrip("\n") + "\n"


def text_of(fidelity: Fidelity) -> str:
    """Return the command's output: summary and tables."""
    return "\n".join([*summary(fidelity), *tables(fidelity)]).rstrip("\n") + "\n"


def summary(fidelity: Fidelity) -> list[str]:
    """Return the summary as lines of Markdown."""
    n_fitted = sum(len(table.rows) for table in fidelity.tables["fitted"])
    columns = ["predicted", "n", "tolerance", "within", "part", "aim", "different simulated values"]
    rows, notes = [], []
    for aim in fidelity.plan.file.aims or (None,):
        for latency, what in ((False, "bandwidths"), (True, "latencies")):
            name = what if aim is None else f"{what} of {aim}"
            share = fidelity.share(latency=latency, aim=aim)
            if not share.n:
                continue
            rows.append(
                [
                    name,
                    str(share.n),
                    _percent(share.tolerance),
                    str(share.within),
                    f"{100 * share.part:.1f} %",
                    f"{_percent(AIM)}, {'met' if share.part >= AIM else 'not met'}",
                    str(share.distinct),
                ]
            )
            notes += _notes(name, share, fidelity.share(latency=latency, beside=True, aim=aim))
        remark = aim and fidelity.plan.file.aims[aim].remark
        if remark:
            notes.append(f"- {aim}: {remark}.")
    if fidelity.statements:
        holds = sum(judged.holds for judged in fidelity.statements)
        notes.append(f"- Statements: {holds} of {len(fidelity.statements)} hold.")
    notes.append(
        "- The records are not as many independent predictions: places that are alike in the "
        "model, such as pairs of one link class, have one simulated value."
    )
    return [
        *("## Summary", "", f"Fitted records, which do not count: {n_fitted}.", ""),
        *(*show.markdown(columns, rows, right=columns[1:5]), "", *notes, ""),
    ]


def _notes(name: str, share: Share, both: Share) -> list[str]:
    worst = show.listed(
        f"{row.record.id} {'not run' if row.deviation is None else _deviation(row)}"
        for row in share.worst
    )
    notes = [f"- Worst predicted {name}: {worst}."]
    if both.n > share.n:
        notes.append(
            f"- With the {both.n - share.n} {name} that are shown but not counted: "
            f"{both.within} of {both.n} within {_percent(both.tolerance)} "
            f"({100 * both.part:.1f} %)."
        )
    return notes


def tables(fidelity: Fidelity) -> list[str]:
    """Return all tables as lines of Markdown."""
    fitted = "A parameter of the node model was fitted to each of these."
    predicted, reproduced, beside = fidelity.tables.values()
    return [
        *("## Predicted", "", *_sections(predicted, "within", "not explained")),
        *("## Fitted", "", fitted, "", *_sections(reproduced, "reproduced", "not reproduced")),
        *(("## Shown but not counted", "") if beside else ()),
        *_sections(beside, "within", "not explained"),
        *_statements(fidelity.statements),
        *_left_out(fidelity),
    ]


def _sections(tables: Sequence[Table], good: str, bad: str) -> Iterator[str]:
    columns = ["record", "unit", "published", "simulated", "deviation", "verdict"]
    for table in tables:
        yield from (f"### {capitalized(table.title)}", "")
        yield from (f"Published: {place}." for place in _places(table))
        if table.remark:
            yield f"Remark: {table.remark}."
        rows = (
            (
                row.record.id,
                _UNITS[row.record.unit],
                f"{(row.record.qualifier or '').replace('_', ' ')} {row.record.printed}".strip(),
                "-" if row.simulated is None else f"{row.simulated:.2f}",
                _deviation(row),
                "not run" if row.simulated is None else good if row.within else f"**{bad}**",
            )
            for row in table.rows
        )
        yield from ("", *show.markdown(columns, rows, right=columns[2:5]), "")


def _place(record: Record) -> str:
    """Return where a value is published, and whether it was inferred there."""
    system = f"{record.system} (inferred)" if record.inferred else record.system
    return f"{system}; {record.place}"


def _places(table: Table) -> list[str]:
    """Return where the rows are published; for many places, their common part."""
    places = list(dict.fromkeys(_place(row.record) for row in table.rows))
    if len(places) <= 3:
        return places
    parts = zip(*(place.split(", ") for place in places), strict=False)
    common = show.listed(same[0] for same in takewhile(lambda part: len(set(part)) == 1, parts))
    return [f"{common}, {len(places)} places"] if common else places


def _deviation(row: Row) -> str:
    if row.deviation is None:
        return "-"
    shown = f"{100 * row.deviation:+.1f}"
    return f"{'0.0' if shown == '-0.0' else shown} %"


def _percent(part: float) -> str:
    return f"{100 * part:g} %"


def _statements(statements: Sequence[Judged]) -> list[str]:
    if not statements:
        return []
    columns = ["statement", "records", "published", "simulated", "n", "fitted", "verdict"]
    rows = []
    for judged in statements:
        ends = dict.fromkeys(f"{round(end, 2) + 0.0:.2f}" for end in (judged.low, judged.high))
        unit = "" if judged.unit == "ratio" else f" {_UNITS[judged.unit]}"
        rows.append((
            judged.title,
            show.listed(dict.fromkeys(judged.records)),
            f"{judged.published}{unit}",
            f"{' to '.join(ends)}{unit}",
            str(judged.n),
            str(judged.fitted),
            "holds" if judged.holds else "**not explained**",
        ))  # fmt: skip
    return [
        "## Statements",
        "",
        "Published in ranges and round numbers. n: simulated values compared; fitted: how many of",
        "them a parameter was fitted to.",
        "",
        *show.markdown(columns, rows, right=("n", "fitted")),
        "",
    ]


def _left_out(fidelity: Fidelity) -> list[str]:
    left = [f"- {name}: {reason}." for name, reason in fidelity.plan.file.left_out.items()]
    return ["## Left out", "", *left, ""] if left else []


def json_of(fidelity: Fidelity) -> dict[str, Any]:
    """Return the comparison for programs; deviations are fractions, not percent."""

    def shares(aim: str | None = None) -> dict[str, Any]:
        kinds = {"bandwidths": False, "latencies": True}
        return {
            kind: {
                "n": share.n,
                "within": share.within,
                "part": share.part,
                "tolerance": share.tolerance,
                "aim": AIM,
                "distinct_simulated": share.distinct,
                "worst": [row.record.id for row in share.worst],
            }
            for kind, latency in kinds.items()
            for share in [fidelity.share(latency=latency, aim=aim)]
        }

    return {
        "node": fidelity.plan.node.identity,
        **shares(),
        "aims": {aim: shares(aim) for aim in fidelity.plan.file.aims},
        "rows": [
            {
                "record": row.record.id,
                "kind": kind,
                "system": row.record.system,
                "where": row.record.place,
                "unit": row.record.unit,
                "published": row.record.value,
                "simulated": row.simulated,
                "deviation": row.deviation,
                "within": row.within,
            }
            for kind, tables in fidelity.tables.items()
            for table in tables
            for row in table.rows
        ],
        "statements": [asdict(judged) for judged in fidelity.statements],
        "left_out": fidelity.plan.file.left_out,
    }
