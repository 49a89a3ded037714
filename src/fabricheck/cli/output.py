"""What several commands have: the option --json, and sentences on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import printable
from fabricheck.results.archive import naming_archives

if TYPE_CHECKING:
    from fabricheck.results.model import ResultDocument

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]


def say(*sentences: object) -> None:
    """Print sentences to standard error, each in one line."""
    for sentence in sentences:
        said = naming_archives(" ".join(str(sentence).split()))
        print(f"fabricheck: {printable(said)}", file=sys.stderr)


def say_differences(document: ResultDocument) -> None:
    """Print a line for each difference of a document, and its notes as errors."""
    for one in document.get("differences") or ():
        typer.echo(one["sentence"])
    for note in document["notes"]:
        typer.echo(f"note: {note}", err=True)


def end_by(document: ResultDocument) -> None:
    """End the command as the run of a document ended, unless that was well.

    :raises Exit: with the exit code of the outcome, whose message is printed.
    """
    outcome = document["outcome"]
    if outcome["message"] is not None:
        say(outcome["message"])
        raise typer.Exit(outcome["exit_code"] or FabricheckError.exit_code)
