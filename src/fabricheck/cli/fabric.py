"""`fabricheck network fabric`: which NIC, node or switch is slow, from rounds of many nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson, Name
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError
from fabricheck.core.nodelists import folded
from fabricheck.core.show import first_of
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.judge.fabric.attributing import Attribution, attribute
from fabricheck.results.entry import Entry
from fabricheck.results.reading import LATEST, read

#: The most rows of the table, and sentences of a kind; --json has all.
MOST_ROWS = 16
MOST_SENTENCES = 6

_COLUMNS = ("At fault", "Loss", "95 %", "Direction", "Partners", "Score")


@commands.command("network fabric")
def fabric(
    what: Name = LATEST,
    as_json: AsJson = False,
) -> None:
    """Name the NICs, nodes and switches that are slow between nodes.

    Reads the rounds of the program fabric. Exit status 0 if nothing is slow, 12 if a NIC, a node or
    a switch is named, 13 if something is missing, or is slow without a culprit, 3 if there are no
    rounds, 4 if a document is invalid and nothing is named in another one.
    """
    results = read([what])
    output.say(*(problem.sentence for problem in results.problems))
    entries = list(results.entries)
    attributions = [
        (str(entry.path), attribute(entry.document))
        for entry in entries
        if entry.document is not None and entry.document.get("rounds") is not None
    ]
    invalid = [
        entry.problem for entry in entries if entry.document is None and entry.problem is not None
    ]
    output.say(*(invalid if attributions else invalid[1:]))
    if not attributions and invalid:
        raise invalid[0]
    if not attributions:
        raise NotFoundError(_no_rounds(what, entries))
    rounds = [{"document": path, **asdict(attribution)} for path, attribution in attributions]
    text = (block for path, attribution in attributions for block in _text(path, attribution))
    show.result(rounds, text, as_json, wrapped=False)
    if any(attribution.named or attribution.switches for _, attribution in attributions):
        raise typer.Exit(EXIT_NODE_FAILED)
    if invalid:
        raise typer.Exit(invalid[0].exit_code)
    if any(attribution.open for _, attribution in attributions):
        raise typer.Exit(EXIT_NODE_OPEN)


def _no_rounds(what: str, entries: Sequence[Entry]) -> str:
    for entry in entries:
        document = entry.document
        if document is not None and document["program"]["name"] == "fabric":
            why = document["outcome"]["message"] or document["outcome"]["status"]
            return f"{entry.path}: no rounds were measured: {why.rstrip('.')}."
    name = "the latest session" if what == LATEST else what
    return f"There are no rounds between nodes in {name}: they are of the program fabric."


def _text(path: str, attribution: Attribution) -> Iterator[show.Block]:
    yield (
        f"{path}: {count(attribution.nodes, 'node')}, {count(attribution.nics, 'NIC')}, "
        f"{count(attribution.rounds, 'round')}"
    )
    if attribution.spread is not None and attribution.least is not None:
        yield (
            f"  Healthy NICs differ by {100 * attribution.spread:.1f} % (standard deviation); a "
            f"NIC is named from {100 * attribution.least:.1f} % below the others on."
        )
    rows = [
        *(
            (
                switch.name,
                f"{100 * switch.loss:.1f} %",
                "-",
                "both",
                f"{switch.nics} of {switch.all_nics} NICs",
                "-",
            )
            for switch in attribution.switches
        ),
        *(
            (
                endpoint.name,
                f"{100 * endpoint.loss:.1f} %",
                f"{100 * endpoint.low:.1f} to {100 * endpoint.high:.1f} %",
                endpoint.direction,
                str(endpoint.partners),
                f"{endpoint.score:.1f}",
            )
            for endpoint in attribution.named
        ),
    ]
    yield show.Table(_COLUMNS, rows, ("Loss", "Score"), most=MOST_ROWS)
    if attribution.named:
        yield f"  Nodes: {folded(sorted({endpoint.node for endpoint in attribution.named}))}"
    if not rows and attribution.spread is not None:
        yield "  No NIC, node or switch is slow."
    for title, sentences in (
        ("Without one at fault, or missing", attribution.open),
        ("Notes", attribution.notes),
    ):
        if sentences:
            yield f"  {title}:"
            yield from (f"    {each}" for each in first_of(sentences, MOST_SENTENCES))
