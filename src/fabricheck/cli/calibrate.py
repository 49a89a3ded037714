"""The command ``fabricheck limits calibrate``: references of a system from its own sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.completion import partition_names
from fabricheck.cli.output import say
from fabricheck.core import page_block, show
from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.judge.calibration import changes, noise, record, rule
from fabricheck.judge.calibration.gathering import PAUSE_MINUTES, Run, gather, missing, silent
from fabricheck.references.calibrated import Record, read_of
from fabricheck.references.entries import said
from fabricheck.site import partitions

#: The most nodes that are shown side by side.
MOST_BESIDE = 8


@commands.command("limits calibrate")
def calibrate(
    sessions: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Results folders or first-hour archives (all their sessions are used), or "
            "sessions: run-3, a run report."
        ),
    ] = None,
    system: Annotated[
        str,
        typer.Option(
            "--system", help="Partition, such as h200:x2.", autocompletion=partition_names
        ),
    ] = "",
    output: Annotated[Path, typer.Option("--output", help="Folder of the reference files.")] = Path(
        "reference_values"
    ),
    write: Annotated[
        bool,
        typer.Option("--write", help="Write the record; by default its changes are only shown."),
    ] = False,
    accept_looser: Annotated[
        bool, typer.Option("--accept-looser", help="Accept references that become looser.")
    ] = False,
    accept_slow: Annotated[
        bool, typer.Option("--accept-slow", help="Accept references far from published values.")
    ] = False,
    without: Annotated[
        str, typer.Option("--without", help="Leave these nodes out, such as node[3,7-9].")
    ] = "",
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Continue with too few sessions, as report only: no limit is required.",
        ),
    ] = False,
    pause: Annotated[
        float | None,
        typer.Option(
            "--pause",
            min=0,
            help=f"Least pause between two campaigns in minutes; {PAUSE_MINUTES:g} by default.",
        ),
    ] = None,
    like: Annotated[
        str, typer.Option("--like", help="Use the record of this measured partition ...")
    ] = "",
    other: Annotated[
        str, typer.Option("--for", help="... for this partition, which was not measured.")
    ] = "",
    show_noise: Annotated[
        bool, typer.Option("--noise", help="Write the table of noise, in Markdown.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option("--page", help="... between its markers in this page.")
    ] = None,
) -> None:
    """Calibrate references of a partition from its own repeated sessions (docs/limits.md).

    Without --write the changes are only shown. Without sessions, --noise reads the existing record.
    """
    of_sessions: dict[str, object] = {
        "sessions": sessions,
        "--report-only": report_only,
        "--pause": pause is not None,
        "--accept-slow": accept_slow,
        "--without": without,
    }
    if like or other:
        if not (like and other):
            raise UsageError("--like and --for require each other.")
        of_noise = {"--noise": show_noise, "--page": page is not None}
        _refuse("--like and --for", {"--system": system} | of_sessions | of_noise)
        _check_partition("--like", like)
        _check_partition("--for", other)
        _end(changes.transfer(output, like, other), write, accept_looser)
        return
    _check_partition("--system", system)
    if page is not None and not show_noise:
        raise UsageError("--page requires --noise.")
    if show_noise:
        of_writing = {"--write": write, "--accept-looser": accept_looser}
        of_writing |= {"--accept-slow": accept_slow, "--report-only": report_only}
        _refuse("--noise", of_writing)
    if show_noise and not sessions:
        _refuse("--noise without sessions", of_sessions)
        _noise(read_of(output, system), page)
        return
    if not sessions:
        raise UsageError("There is nothing to calibrate: name results folders or run reports.")
    runs = gather(sessions, system, PAUSE_MINUTES if pause is None else pause, _nodes(without))
    for sentence in silent(sessions, runs):
        say(sentence)
    _say_what_is_lost(runs, system)
    if show_noise:
        _noise(record.build(runs, system), page)
        return
    _refuse_few(runs, system, report_only)
    found = record.build(runs, system, record.published(output, system))
    _show_sessions(found, runs)
    proposal = changes.propose(found, output, partitions.extras(system).get("references"))
    _end(proposal, write, accept_looser, accept_slow)


def _nodes(names: str) -> frozenset[str]:
    """Expand a list of nodes as schedulers write it."""
    # Imported here: only some commands need this package.
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        return frozenset(NodeSet(names))
    except NodeSetException as error:
        raise UsageError(f"--without {names} is not a list of nodes ({error}).") from None


def _refuse(command: str, given: Mapping[str, object]) -> None:
    """Refuse options that would have no effect."""
    ignored = [name for name, value in given.items() if value]
    if ignored:
        raise UsageError(f"{', '.join(ignored)} cannot be combined with {command}.")


def _check_partition(option: str, name: str) -> None:
    # The name becomes part of a file name.
    if not re.fullmatch(r"\w[\w.+-]*:\w[\w.+-]*", name):
        raise UsageError(
            f"{option} {name or 'is missing: it'} must name a partition, such as h200:x2."
        )


def _refuse_few(runs: list[Run], partition: str, allowed: bool) -> None:
    used = [run for run in runs if run.values]
    nodes, when = [run.group for run in used], [run.campaign for run in used]
    said = rule.few(nodes, when)
    if said is not None and not allowed:
        several = f" of {len(set(nodes))} nodes" if len(set(nodes)) > 1 else ""
        raise InvalidInputError(
            f"{partition} has {len(used)} session(s) in {len(set(when))} campaign(s){several}; "
            f"references need {rule.LEAST_SESSIONS} in {rule.LEAST_CAMPAIGNS} ({said}): measure "
            "again, or use --report-only, which requires nothing."
        )


def _say_what_is_lost(runs: list[Run], system: str) -> None:
    unused = [one for run in runs for one in run.unused]
    for one in unused:
        say(f"not used: {one.sentence}")
    if unused:
        ran = sum(len(run.documents) for run in runs)
        say(f"{len(unused)} case(s) of {system} are not used, {ran} are.")
    if any(one.reason == "missed its reference" for one in unused):
        say(
            "sessions that missed their present reference are left out, so the rest was "
            "selected by that reference: measure with report-only references for an independent "
            "value."
        )
    lacking: dict[tuple[str, str], list[str]] = {}
    for (check, metric), numbers in missing(runs).items():
        lacking.setdefault((check, ", ".join(map(str, numbers))), []).append(metric)
    for (check, sessions), metrics in lacking.items():
        what = metrics[0] if len(metrics) == 1 else f"({len(metrics)} metrics)"
        say(f"{check} {what} is missing in session(s) {sessions}.")


def _end(
    proposal: changes.Proposal, write: bool, accept_looser: bool, accept_slow: bool = False
) -> None:
    _show(proposal)
    for note in proposal.notes:
        say(note)
    if isinstance(proposal.record, Record):
        _say_slow_nodes(proposal.record)
    for one in proposal.changes:
        if one.why != "rule" and one.entry[3] != "count" and one.entry[1:3] == (None, None):
            say(f"report only: {one.check} {one.metric}: {one.why}.")
    # All of them, accepted or not, so that a user who accepts one sees the others too.
    if not write or accept_looser:
        for sentence in changes.looser(proposal):
            say(f"looser: {sentence}")
    if not write or accept_slow:
        for sentence in proposal.slow:
            say(f"far from published values: {sentence}")
    if write:
        typer.echo(f"wrote {changes.write(proposal, accept_looser, accept_slow)}", err=True)
    else:
        say("nothing was written: add --write to write.")


def _say_slow_nodes(found: Record) -> None:
    """Name nodes that are slow in a metric and therefore excluded from its reference."""
    for check, metrics in found.checks.items():
        for metric, one in metrics.items():
            for node in one.aside:
                own = (one.by_devices or {})[node].median
                say(
                    f"{check} {metric}: node {node} is excluded: its {own:.5g} {one.unit} "
                    f"differs from the others ({one.min:.5g} to {one.max:.5g} of all)."
                )


def _show_sessions(found: Record, runs: list[Run]) -> None:
    """Show sessions with the names of their nodes, which no record contains, and their contents."""
    names = {run.number: run.named for run in runs}
    if found.clock == "simulated":
        typer.echo(
            f"All values of {found.partition} are simulated: this is a rehearsal, not a "
            "calibration of a machine."
        )
    for session in found.sessions:
        ids = ", ".join(found.device_sets[session.devices]) or "devices without ids"
        typer.echo(
            f"session {session.number}: {session.date}, campaign {session.campaign}, "
            f"devices {session.devices} ({ids}), node {names[session.number]}"
        )
    right = ("Median", "Unit", "n", "Nodes", "Of peak", "Of published")
    rows: list[tuple[str, ...]] = []
    for check, metrics in found.checks.items():
        # A count has neither a peak nor an engine.
        values = {metric: one for metric, one in metrics.items() if one.unit != "count"}
        if values:
            rows.append((check,))
        for metric, one in values.items():
            published = None if one.published is None else one.published.value
            parts = (None if of is None else one.median / of for of in (one.peak, published))
            nodes = str(len(one.by_devices or "A"))
            rows.append((
                f"  {metric}", one.link_class or "-", one.engine or "-",
                *(f"{one.median:.5g}", one.unit, str(one.n), nodes),
                *("-" if part is None else f"{part:.0%}" for part in parts),
            ))  # fmt: skip
    show.table(("Metric", "Link class", "Engine", *right), rows, right)
    typer.echo("")


def _show(proposal: changes.Proposal) -> None:
    found = proposal.record
    columns = ("Check", "Metric", "Present", "New", "Value", "Effect")
    rows = []
    for one in proposal.changes:
        present = "-" if one.present is None else said(one.present)
        by = "" if one.value_change is None else f"{one.value_change:+.1%}"
        rows.append((one.check, one.metric, present, said(one.entry), by, one.effect))
    show.table(columns, rows, ("Value",))
    if (
        isinstance(found, Record)
        and not found.same_devices
        and len(found.device_sets) <= MOST_BESIDE
    ):
        _show_devices(found)


def _show_devices(found: Record) -> None:
    names = list(found.device_sets)
    typer.echo("\nMedians by node (devices):")
    rows = []
    for check, metrics in found.checks.items():
        for metric, one in metrics.items():
            groups = one.by_devices or {}
            medians = (f"{groups[name].median:.5g}" if name in groups else "-" for name in names)
            rows.append((check, metric, one.unit, *medians))
    show.table(("Check", "Metric", "Unit", *names), rows, names)


def _noise(found: Record, page: Path | None) -> None:
    text = noise.table(found)
    if page is None:
        typer.echo(text, nl=False)
    else:
        page_block.rewrite(page, {f"noise of {found.partition}": text})
        typer.echo(f"wrote {page}", err=True)
