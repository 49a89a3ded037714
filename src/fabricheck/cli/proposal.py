"""What the commands that write a calibration's record have in common: options, and the end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli.output import partition_names, say
from fabricheck.core import nodelists, show
from fabricheck.core.errors import UsageError
from fabricheck.judge.calibration import changes
from fabricheck.judge.calibration.gathering import Run, gather
from fabricheck.references.calibrated import Record
from fabricheck.references.entries import formatted

Sessions = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Results folders or first-hour archives (all their sessions are used), or sessions: "
        "run-3, a run report."
    ),
]
System = Annotated[
    str,
    typer.Option("--system", help="Partition, such as h200:x2.", autocompletion=partition_names),
]
Folder = Annotated[Path, typer.Option("--output", help="Folder of the reference files.")]
Write = Annotated[
    bool,
    typer.Option("--write", help="Write the record; by default its changes are only shown."),
]
Looser = Annotated[
    bool, typer.Option("--accept-looser", help="Accept references that become looser.")
]
Without = Annotated[
    str, typer.Option("--without", help="Leave these nodes out, such as node[3,7-9].")
]
Pause = Annotated[
    float,
    typer.Option("--pause", min=0, help="Least pause between two campaigns in minutes."),
]

#: The folder of the reference files.
REFERENCES = Path("reference_values")

#: The most nodes that are shown side by side.
MOST_BESIDE = 8


def require_partition(option: str, name: str) -> None:
    """Require the name of a partition, which becomes part of a file name.

    :raises UsageError: when it is none.
    """
    if not re.fullmatch(r"\w[\w.+-]*:\w[\w.+-]*", name):
        raise UsageError(
            f"{option} {name or 'is missing: it'} must name a partition, such as h200:x2."
        )


def runs_of(sessions: Sequence[Path], system: str, pause: float, without: str) -> list[Run]:
    """Return the runs of a partition in some sessions; those without any are said.

    :param pause: the least pause between two campaigns in minutes. without: nodes to leave out.
    :raises UsageError: when that is no list of nodes.
    """
    left_out = frozenset(nodelists.unfolded(without)) if without else frozenset()
    gathered = gather(sessions, system, pause, left_out)
    say(*gathered.silent)
    return gathered.runs


def end(
    proposal: changes.Proposal,
    write: bool,
    accept_looser: bool,
    accept_slow: bool = False,
    as_json: bool = False,
    above: Iterable[show.Block] = (),
) -> None:
    """Show a proposal and what speaks against it, and write it if that is asked.

    :param above: what the text shows before the changes.
    """
    show.result(proposal, itertools.chain(above, _text(proposal)), as_json, wrapped=False)
    say(*proposal.notes)
    if isinstance(proposal.record, Record):
        _say_slow_nodes(proposal.record)
    say(
        *(
            f"report only: {change.check} {change.metric}: {change.why}."
            for change in proposal.changes
            if change.why != "rule"
            and change.entry[3] != "count"
            and change.entry[1:3] == (None, None)
        )
    )
    # All of them, accepted or not, so that a user who accepts one sees the others too.
    if not write or accept_looser:
        say(*(f"looser: {sentence}" for sentence in proposal.looser))
    if not write or accept_slow:
        say(*(f"far from published values: {sentence}" for sentence in proposal.far_from_published))
    if write:
        show.line(f"wrote {changes.write(proposal, accept_looser, accept_slow)}", to_stderr=True)
    else:
        say("nothing was written: add --write to write.")


def _say_slow_nodes(calibration: Record) -> None:
    """Name nodes that are slow in a metric and therefore excluded from its reference."""
    say(
        *(
            f"{check} {metric}: node {node} is excluded: its "
            f"{(change.by_devices or {})[node].median:.5g} {change.unit} differs from the others "
            f"({change.min:.5g} to {change.max:.5g} of all)."
            for check, metrics in calibration.checks.items()
            for metric, change in metrics.items()
            for node in change.excluded
        )
    )


def _text(proposal: changes.Proposal) -> Iterator[show.Block]:
    calibration = proposal.record
    columns = ("Check", "Metric", "Present", "New", "Value", "Effect")
    rows = []
    for change in proposal.changes:
        present = "-" if change.present is None else formatted(change.present)
        by = "" if change.value_change is None else f"{change.value_change:+.1%}"
        entry = formatted(change.entry)
        rows.append((change.check, change.metric, present, entry, by, change.effect))
    yield show.Table(columns, rows, ("Value",))
    if (
        isinstance(calibration, Record)
        and not calibration.same_devices
        and len(calibration.device_sets) <= MOST_BESIDE
    ):
        yield from _devices(calibration)


def _devices(calibration: Record) -> Iterator[show.Block]:
    names = list(calibration.device_sets)
    yield ""
    yield "Medians by node (devices):"
    rows = [
        (
            check, metric, change.unit,
            *(f"{groups[name].median:.5g}" if name in groups else "-" for name in names),
        )
        for check, metrics in calibration.checks.items()
        for metric, change in metrics.items()
        for groups in [change.by_devices or {}]
    ]  # fmt: skip
    yield show.Table(("Check", "Metric", "Unit", *names), rows, names)
