"""The command ``fabricheck compare``: two sessions compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fabricheck.cli import commands, compare_lists, compare_text, output
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_MISSING, EXIT_WORSE
from fabricheck.judge.comparison import pairing
from fabricheck.judge.comparison.compare import Comparison
from fabricheck.judge.comparison.compare import compare as compare_nodes


@commands.command("compare")
def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Session, job, document, folder of documents, results folder, first-hour "
            "archive or report; @PARTITION, @NODE or both may follow.",
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The same, compared with A.")],
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
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON with every value.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Write a short summary in Markdown.")
    ] = False,
) -> None:
    """Show what is worse, better, missing or not comparable in B relative to A (docs/result.md).

    Ends with 10 when something is worse beyond noise, 4 when a document cannot be read or is
    incomplete, 11 when values of A are missing; 0 otherwise, and for measured against simulated
    results.
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown cannot be combined.")
    one, other = pairing.named(a), pairing.named(b)
    least = None if floor is None else floor / 100
    pairs = pairing.pair_up(one, other)
    found = [compare_nodes(mine, theirs, least) for mine, theirs in pairs]
    unread = [f"{letter}: {why}" for letter, side in (("A", one), ("B", other))
              for why in side.unread]  # fmt: skip
    code = exit_code(found, bool(unread))
    if as_json:
        output.write_json(compare_lists.as_json(one, other, found, code))
    elif as_markdown:
        typer.echo(compare_lists.as_markdown(one, other, found))
    else:
        compare_text.show(one, other, found, show_all)
    elsewhere = pairing.elsewhere(pairs)
    if elsewhere:
        each = "it" if len(elsewhere) == 1 else "each"
        output.say(
            f"{', '.join(elsewhere)}: {each} ran on other nodes in B than in A, so nothing of it "
            "is compared. Add @NODE to A and B to compare two nodes."
        )
    for sentence in (*unread, *(each for comparison in found for each in comparison.unread)):
        output.say(sentence)
    if code == NotFoundError.exit_code:
        raise NotFoundError(f"{a} and {b} have nothing comparable.")
    if code != EXIT_GOOD:
        raise typer.Exit(code)


def exit_code(found: Sequence[Comparison], unread: bool = False) -> int:
    """Return the exit code for all partitions: worse, unread, missing, nothing, good.

    :param unread: whether a whole session of either side cannot be read.
    """
    judging = [one for one in found if not one.informs]
    if any(one.worse for one in judging):
        return EXIT_WORSE
    if unread or any(one.unread for one in found):
        return InvalidInputError.exit_code
    if not any(one.determined for one in found):
        return NotFoundError.exit_code
    if any(one.missing for one in judging):
        return EXIT_MISSING
    return EXIT_GOOD
