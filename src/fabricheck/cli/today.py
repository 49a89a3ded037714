"""The output of `fabricheck` without a command: daily commands, and the latest session."""

from __future__ import annotations

from collections import Counter

import typer

from fabricheck.cli import output
from fabricheck.core.errors import FabricheckError, NotFoundError

#: The daily commands; `fabricheck --help` lists all.
COMMANDS = {
    "reframe --mode=node -r": "measure this node (smoke: the short set, full: everything)",
    "fabricheck verdict": "the status of each node, why, and nodes to drain",
    "fabricheck summary": "the latest session on one screen",
    "fabricheck report": "its page, with figures and what was published",
    "fabricheck compare OLD NEW": "what changed between two sessions",
}


def show() -> None:
    """Write the commands, then the latest session with the status of each node."""
    width = max(map(len, COMMANDS)) + 2
    for command, what in COMMANDS.items():
        typer.echo(f"{command:{width}}{what}")
    typer.echo(f"{'fabricheck --help':{width}}all commands")
    typer.echo()
    try:
        for line in _latest():
            typer.echo(output.plain(line).plain)
    except NotFoundError:
        typer.echo("Nothing was measured yet.")
    except FabricheckError as error:
        typer.echo(output.plain(f"The latest session cannot be read: {error}").plain)


def _latest() -> list[str]:
    from fabricheck.cli.results import heading
    from fabricheck.judge.verdict import documents, judging
    from fabricheck.results import reading

    results = reading.read(())
    rows = documents.whole(results.name, judging.judge(results)).nodes
    labels = Counter(f"{one.told}, simulated" if one.simulated else one.told for one in rows)
    statuses = "; ".join(
        label if len(rows) == 1 else f"{number} x {label}" for label, number in labels.items()
    )
    return [f"Latest: {heading(results)}", f"Status: {statuses or 'none'}"]
