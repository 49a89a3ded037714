"""`fabricheck fleet`: which of many nodes is odd, and what a maintenance changed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.nodelists import unfolded
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_ODD
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.verdict import history
from fabricheck.results.folder import default_path


@commands.command("fleet")
def fleet(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Tables of `fabricheck results export` (.parquet, .csv), folders and globs of "
            "them, a file of names (.txt), and names of results as for that command (default: the "
            "latest). With --after, what was before.",
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            "--after",
            metavar="NAME",
            help="The same nodes later, such as after a maintenance; may be repeated.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write an HTML page (.html)."),
    ] = None,
    all_sessions: Annotated[
        bool, typer.Option("--all", help="All sessions of results folders, not only the latest.")
    ] = False,
    stale: Annotated[
        float | None,
        typer.Option(
            "--stale",
            metavar="DAYS",
            min=0,
            help="Show instead the nodes whose last session is older, by the verdicts in the "
            "results folder.",
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            metavar="LIST",
            help="With --stale: the nodes that must have sessions, such as node[1-40]; no others "
            "are shown.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show which of many nodes stand out, and what changed on them (docs/network.md).

    Exit status 14 if a node stands out, or is stale, 10 if something is worse after, 4 if something
    cannot be read, 11 if nodes or metrics are missing; 0 otherwise.
    """
    if stale is not None:
        if what or after or page or all_sessions:
            raise UsageError("--stale goes with --nodes and --json alone.")
        return _stale(stale, nodes, as_json)
    if nodes is not None:
        raise UsageError("--nodes requires --stale.")
    from fabricheck.judge.fleet import findings, reading
    from fabricheck.report import fleet as shown

    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{page}: the page is HTML; the name must end with .html or .htm.")
    later = reading.read(after, all_sessions) if after else None
    first = reading.read(what or [], all_sessions)
    result = findings.findings(later or first, first if later else None)
    show.result(findings.as_json(result), shown.lines(result), as_json, wrapped=False)
    earlier = result.changes.before.problems if result.changes is not None else ()
    output.say(*dict.fromkeys((*result.fleet.problems, *earlier)))
    output.say(*result.fleet.notes)
    if page is not None:
        # Last of all, so that no finding is lost where it cannot be written.
        try:
            page.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotFoundError(f"{page} cannot be written ({error.strerror}).") from None
        write_whole(page, shown.html(result, page))
        if not as_json:
            show.line(f"Page: {page}")
    return result.exit_code


def _stale(days: float, named: str | None, as_json: bool) -> int:
    """Show the nodes without a session in the last days, the one that waited longest first."""
    expected = [] if named is None else unfolded(named)
    read = history.read(default_path(), expected)
    now = datetime.now(UTC)
    old = [node for node in read.stale(days, now) if named is None or node.node in expected]
    old.sort(key=lambda node: node.began or datetime.min.replace(tzinfo=UTC))
    result = [
        {
            "node": node.node,
            "last_session": None if node.began is None else node.began.isoformat(),
            "status": None if node.last is None else node.last.status,
        }
        for node in old
    ]
    lines = [_stale_line(node, now) for node in old]
    good = f"Every node had a session in the last {days:g} days."
    show.result(result, lines or [good], as_json, wrapped=False)
    output.say(*read.problems)
    if old:
        return EXIT_ODD
    return InvalidInputError.exit_code if read.problems else EXIT_GOOD


def _stale_line(node: history.NodeHistory, now: datetime) -> str:
    if node.began is None or node.last is None:
        return f"{node.node}: no session"
    return f"{node.node}: {(now - node.began).days} days ago, {node.last.status}"
