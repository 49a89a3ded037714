"""`fabricheck limits show` and `check`: references, and their sources."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from fabricheck.cli import commands, references_table
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.core import show
from fabricheck.core.errors import (
    FabricheckError,
    InvalidInputError,
    NotFoundError,
    UsageError,
)
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NO_REFERENCE
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import listing
from fabricheck.references.entries import required
from fabricheck.references.listing import MISSING, Listing
from fabricheck.references.published import folder
from fabricheck.references.stated import references_in
from fabricheck.results.folder import ResultsFolder
from fabricheck.site import partitions


@commands.command("limits show")
def references(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Checks, metrics or both, as a failure prints them; default: all. Naming "
            "checks makes the answer come sooner.",
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            help="System or partition, such as lumi or lumi:gpu; default: the latest session's.",
            autocompletion=partition_names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the reference of each metric, and its source (docs/limits.md).

    The metrics come from a dry run of all checks that the system's environments can run, so they
    are those that ReFrame will use. Exit status 9 if a metric has no reference.
    """
    if system is None:
        system = _latest_partition()
    chosen, known = partitions.choose(system), references_in(folder())
    checks = [name for name in names or () if name in known.file_of]
    metrics = [name for name in names or () if name not in known.file_of]
    asked = listing.ask(system, checks_folders(), names=checks)
    listed = listing.of_system(system, chosen, asked, known)
    if names:
        listed = _of_metrics(listed, metrics)
    show.result(listed, references_table.blocks(listed), as_json)
    if listed.silent_checks or any(row.kind == MISSING for row in listed.references):
        raise typer.Exit(EXIT_NO_REFERENCE)


def _latest_partition() -> str:
    """Return the partition of the latest session.

    :raises UsageError: when there is no session, or it ran on several.
    """
    try:
        session = ResultsFolder.default().latest()
    except FabricheckError as error:
        raise UsageError(f"Say whose limits with --system, such as lumi:gpu. {error}") from None
    ran = sorted({case.where for case in session.cases})
    if len(ran) != 1:
        raise UsageError(
            f"Say whose limits with --system: session {session.id} ran on {listed(ran)}."
        )
    return ran[0]


def _of_metrics(listed: Listing, metrics: Sequence[str]) -> Listing:
    """Return the rows of named metrics, or all of the named checks where no metric is.

    :raises NotFoundError: when a metric is of none of the checks.
    """
    rows = listed.references
    for metric in metrics:
        names = sorted({row.metric for row in rows})
        if metric not in names:
            close = difflib.get_close_matches(metric, names)
            meant = f"; did you mean {enumerated(close, last='or')}?" if close else "."
            raise NotFoundError(f"{listed.system} has no check and no metric {metric}{meant}")
    chosen = tuple(row for row in rows if not metrics or row.metric in metrics)
    return replace(listed, references=chosen, unused=())


@commands.command("limits check")
def check(as_json: AsJson = False) -> None:
    """Check the reference files: each limit has value, bounds and unit, and a source that gives it.

    Needs no ReFrame and no system. Exit status 4 if a limit is wrong, with a sentence for each.
    """
    stated = references_in(folder())
    faults = list(stated.faults())
    limits = sum(required(entry) for *_, entry in stated.all_entries())
    outcome = count(len(faults), "fault") if faults else "each has a source that gives it"
    total = f"{stated.folder}: {count(limits, 'limit')}; {outcome}."
    show.result(
        {"folder": stated.folder, "limits": limits, "faults": faults},
        (*faults, total),
        as_json,
        wrapped=False,
    )
    if faults:
        raise typer.Exit(InvalidInputError.exit_code)
