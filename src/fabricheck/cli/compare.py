"""The command ``fabricheck compare``: two sessions compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.compare_tables import blocks
from fabricheck.cli.output import AsJson
from fabricheck.cli.results import titled
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_MISSING, EXIT_WORSE
from fabricheck.judge.comparison import compare as comparing
from fabricheck.judge.comparison.compare import Comparison


@commands.command("compare")
def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Session, job, document, folder of documents, results folder, first-hour "
            "archive or report; @PARTITION, @NODE or both may follow.",
            autocompletion=output.session_names,
        ),
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B", help="The same, compared with A.", autocompletion=output.session_names
        ),
    ],
    floor: Annotated[
        float | None,
        typer.Option(
            "--floor",
            min=0,
            help="Least change that counts, in %, for all series; by default it depends on the "
            "kind.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every value, not only the worst of each group.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Write the tables in Markdown.")
    ] = False,
) -> int:
    """Show what is worse, better, missing or not comparable in B relative to A (docs/result.md).

    Exit status 10 if something is worse beyond noise, 4 if a document cannot be read or is
    incomplete, 11 if values of A are missing; 0 otherwise, and for measured against simulated
    results.
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown cannot be combined.")
    before, other = comparing.side(a), comparing.side(b)
    least = None if floor is None else floor / 100
    pairs = comparing.pair_up(before, other)
    comparisons = [comparing.compare(mine, theirs, least) for mine, theirs in pairs]
    unread = [f"{letter}: {why}" for letter, side in (("A", before), ("B", other))
              for why in side.unread]  # fmt: skip
    code = exit_code(comparisons, bool(unread))
    text = blocks(before, other, comparisons, show_all)
    sides = {
        letter: {"name": side.name, "title": titled(side.results), "software": side.says}
        for letter, side in (("a", before), ("b", other))
    }
    result = {**sides, "exit_code": code, "partitions": comparisons}
    show.result(result, text, as_json, as_markdown)
    elsewhere = comparing.elsewhere(pairs)
    if elsewhere:
        each = "it" if len(elsewhere) == 1 else "each"
        output.say(
            f"{show.listed(elsewhere)}: {each} ran on other nodes in B than in A, so nothing of it "
            "is compared. Add @NODE to A and B to compare two nodes."
        )
    output.say(*unread, *(each for comparison in comparisons for each in comparison.unread))
    if code == NotFoundError.exit_code:
        raise NotFoundError(f"{a} and {b} have nothing comparable.")
    return code


def exit_code(comparisons: Sequence[Comparison], unread: bool = False) -> int:
    """Return the exit code for all partitions: worse, unread, missing, nothing, good.

    :param unread: whether a whole session of either side cannot be read.
    """
    judging = [comparison for comparison in comparisons if not comparison.informs_only]
    if any(comparison.is_worse for comparison in judging):
        return EXIT_WORSE
    if unread or any(comparison.unread for comparison in comparisons):
        return InvalidInputError.exit_code
    if not any(comparison.determined for comparison in comparisons):
        return NotFoundError.exit_code
    if any(comparison.lacks for comparison in judging):
        return EXIT_MISSING
    return EXIT_GOOD
