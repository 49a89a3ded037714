"""`fabricheck limits show` and `check`: references, and their sources."""

from __future__ import annotations

from typing import Annotated

import typer

from fabricheck.cli import commands, references_table
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NO_REFERENCE
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import listing
from fabricheck.references.entries import required
from fabricheck.references.listing import MISSING
from fabricheck.references.published import folder
from fabricheck.references.stated import references_in
from fabricheck.site import partitions


@commands.command("limits show")
def references(
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="System or partition, such as lumi or lumi:gpu.",
            autocompletion=partition_names,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show the reference of each metric, and its source (docs/limits.md).

    The metrics come from a dry run of all checks that the system's environments can run, so they
    are those that ReFrame will use. Exit status 9 if a metric has no reference.
    """
    chosen, known = partitions.choose(system), references_in(folder())
    found = listing.of_system(system, chosen, listing.ask(system, checks_folders()), known)
    show.result(found, references_table.blocks(found), as_json)
    if found.told_nothing or any(row.kind == MISSING for row in found.references):
        raise typer.Exit(EXIT_NO_REFERENCE)


@commands.command("limits check")
def check(as_json: AsJson = False) -> None:
    """Check the reference files: each limit has value, bounds and unit, and a source that gives it.

    Needs no ReFrame and no system. Exit status 4 if a limit is wrong, with a sentence for each.
    """
    found = references_in(folder())
    faults = list(found.faults())
    limits = sum(required(entry) for *_, entry in found.all_entries())
    outcome = count(len(faults), "fault") if faults else "each has a source that gives it"
    total = f"{found.folder}: {count(limits, 'limit')}; {outcome}."
    show.result(
        {"folder": found.folder, "limits": limits, "faults": faults},
        (*faults, total),
        as_json,
        wrapped=False,
    )
    if faults:
        raise typer.Exit(InvalidInputError.exit_code)
