"""What several commands have: arguments, options, completion, and lines on standard error."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, UsageError

if TYPE_CHECKING:
    from fabricheck.results.model import ResultDocument


def partition_names(incomplete: str) -> list[str]:
    """Return the systems and partitions of the site files that begin with some letters."""
    from fabricheck.site import partitions

    names = [name for name, _ in partitions.named(partitions.known_sites())]
    systems = dict.fromkeys(name.partition(":")[0] for name in names)
    return [name for name in (*systems, *names) if name.startswith(incomplete)]


def session_names(incomplete: str) -> list[str]:
    """Return the sessions and jobs of the results folder that begin with some letters."""
    from fabricheck.results.folder import ResultsFolder
    from fabricheck.results.requested_nodes import RequestedNodes

    try:
        sessions, _ = ResultsFolder.default().begun()
    except FabricheckError:
        return []  # there is no results folder yet
    names = [begun.name if isinstance(begun, RequestedNodes) else begun.id for begun in sessions]
    return [name for name in names if name.startswith(incomplete)]


_NAMES = (
    "a session's id, a job's number, a results folder, a run report, a document, a folder of "
    "documents, or a first-hour archive; @PARTITION, @NODE or both may follow."
)

#: What a command reads, and what one reads that combines several.
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help=f"What to read: {_NAMES}", autocompletion=session_names),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help=f"What to read; default: the latest session, and several are combined: {_NAMES}",
        autocompletion=session_names,
    ),
]

OnNodes = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NODE", help="Show only these nodes: node3, or node[1-3,7]."),
]

Devices = Annotated[
    int | None,
    typer.Option("--devices", help="How many of its devices the machine has, from the first on."),
]

FabricName = Annotated[
    str | None,
    typer.Option("--fabric", help="The fabric that joins the nodes: its name, or a YAML file."),
]

Programs = Annotated[
    Path | None,
    typer.Option(
        "--programs", help="Folder of the programs; default: build/rocm/bin or build/cuda/bin."
    ),
]

#: What is run where the status of a node changed.
Notify = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="COMMAND",
        help="Where the status of a node is another one than in the last notice: run a command "
        "with the verdict as JSON on its standard input.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]


def archive_target(named: Path | None, what: str, node: str) -> Path:
    """Return the archive to write: the named one, by default WHAT-NODE-TIME.tar.gz here.

    :raises UsageError: when the name is not that of an archive.
    """
    from fabricheck.results.archive import is_archive

    name = f"{what}-{node}-{time.strftime('%Y%m%dT%H%M%S')}.tar.gz"
    target = (named or Path(name)).absolute()
    if not is_archive(target):
        raise UsageError(f"{target} must end with .tar.gz: it is the name of an archive.")
    return target


def say(*sentences: object) -> None:
    """Print sentences to standard error, each in one line."""
    from fabricheck.results.archive import naming_archives  # most commands have nothing to say

    for sentence in sentences:
        text = naming_archives(" ".join(str(sentence).split()))
        show.line(f"fabricheck: {text}", to_stderr=True)


def note(*sentences: str) -> None:
    """Print sentences to standard error without a prefix, such as what is being done."""
    for sentence in sentences:
        show.line(sentence, to_stderr=True)


def end_compared(document: ResultDocument) -> None:
    """Print a line for each difference of a document, its notes as errors, and end as it did.

    :raises Exit: with the exit code of the outcome, whose message is printed.
    """
    for difference in document.get("differences") or ():
        show.line(difference["sentence"])
    note(*(f"note: {text}" for text in document["notes"]))
    end_by(document)


def end_by(document: ResultDocument) -> None:
    """End the command as the run of a document ended, unless that was well.

    :raises Exit: with the exit code of the outcome, whose message is printed.
    """
    outcome = document["outcome"]
    if outcome["message"] is not None:
        say(outcome["message"])
        raise typer.Exit(outcome["exit_code"] or FabricheckError.exit_code)
