"""The command ``fabricheck limits calibrate``: references of a system from its own sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, say
from fabricheck.cli.proposal import (
    REFERENCES,
    Folder,
    Looser,
    Pause,
    Sessions,
    System,
    Without,
    Write,
    end,
    require_partition,
    runs_of,
)
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.calibration import changes, record, rule, shapes
from fabricheck.judge.calibration.gathering import PAUSE_MINUTES, Run, missing
from fabricheck.node import load, products
from fabricheck.references.calibrated import Record
from fabricheck.results.other_devices import same_product
from fabricheck.site import partitions, this_machine


@commands.command("limits calibrate")
def calibrate(
    sessions: Sessions = None,
    system: System = "",
    output: Folder = REFERENCES,
    write: Write = False,
    accept_looser: Looser = False,
    accept_slow: Annotated[
        bool, typer.Option("--accept-slow", help="Accept references far from published values.")
    ] = False,
    without: Without = "",
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Continue with too few sessions, as report only: no limit is required.",
        ),
    ] = False,
    pause: Pause = PAUSE_MINUTES,
    as_json: AsJson = False,
) -> None:
    """Calibrate references of a partition from its own repeated sessions (docs/limits.md).

    Without --write the changes are only shown.
    """
    require_partition("--system", system)
    if not sessions:
        raise UsageError("There is nothing to calibrate: name results folders or run reports.")
    runs = runs_of(sessions, system, pause, without)
    _say_what_is_lost(runs, system)
    _say_faster_kernels(runs)
    _refuse_few(runs, system, report_only)
    calibration = record.build(runs, system, record.published(output, system))
    _refuse_other_machines(calibration, system)
    nodes = {run.number: run.named for run in runs}
    proposal = changes.propose(
        calibration, output, partitions.extras(system).get("references"), nodes
    )
    end(proposal, write, accept_looser, accept_slow, as_json, _sessions(calibration, nodes))


def _refuse_other_machines(calibration: Record, system: str) -> None:
    """Refuse sessions of `local:gpu` on other devices than those of this machine's node model."""
    named = this_machine.node() if system == this_machine.NAME else None
    if named is None:
        return
    model = load(named).device_model
    if len(calibration.device_names) != 1 or not same_product(model, calibration.device_names[0]):
        raise UsageError(
            f"The sessions are of {listed(calibration.device_names)}, and the node model {named} "
            f"is of {model}: calibrate each kind of machine by itself."
        )


def _say_faster_kernels(runs: list[Run]) -> None:
    """Propose the shape of kernels that was faster than the present one in every session."""
    documents = [document for run in runs for document in run.documents]
    labels = {products.label(device) for document in documents for device in document["devices"]}
    if len(labels) != 1:
        return
    (label,) = labels
    present = shapes.Shape.stated(products.kernel_shape(label))
    faster = shapes.proposed([run.shapes for run in runs if not run.left_out], present)
    if faster is not None:
        say(
            f"{label}: kernels with {faster.shape} moved at least {faster.gain:.1%} more than the "
            f"present {present}, in {count(faster.sessions, 'session')}: state them in "
            "config/devices.yaml, then measure and calibrate again."
        )


def _refuse_few(runs: list[Run], partition: str, allowed: bool) -> None:
    used = [run for run in runs if run.values]
    nodes, when = [run.group for run in used], [run.campaign for run in used]
    why = rule.few(nodes, when)
    if why is not None and not allowed:
        several = f" of {len(set(nodes))} nodes" if len(set(nodes)) > 1 else ""
        raise InvalidInputError(
            f"{partition} has {count(len(used), 'session')} in "
            f"{count(len(set(when)), 'campaign')}{several}; "
            f"references need {rule.LEAST_SESSIONS} in {rule.LEAST_CAMPAIGNS} ({why}): measure "
            "again, or use --report-only, which requires nothing."
        )


def _say_what_is_lost(runs: list[Run], system: str) -> None:
    unused = [row for run in runs for row in run.unused]
    say(*(f"not used: {row.sentence}" for row in unused))
    if unused:
        ran = sum(len(run.documents) for run in runs)
        say(f"Not used of {system}: {count(len(unused), 'case')}; used: {ran}.")
    if any(row.reason == "missed its reference" for row in unused):
        say(
            "sessions that missed their present reference are left out, so the rest was "
            "selected by that reference: measure with report-only references for an independent "
            "value."
        )
    lacking = grouped(
        ((check, listed(numbers)), metric) for (check, metric), numbers in missing(runs).items()
    )
    for (check, sessions), metrics in lacking.items():
        what = metrics[0] if len(metrics) == 1 else f"({len(metrics)} metrics)"
        say(f"{check} {what} is missing in these sessions: {sessions}.")


def _sessions(calibration: Record, names: Mapping[int, str]) -> Iterator[show.Block]:
    """Yield sessions with their nodes' names, which no record contains, and their contents."""
    if calibration.clock == "simulated":
        yield (
            f"All values of {calibration.partition} are simulated: this is a rehearsal, not a "
            "calibration of a machine."
        )
    for session in calibration.sessions:
        ids = listed(calibration.device_sets[session.devices]) or "devices without ids"
        yield (
            f"session {session.number}: {session.date}, campaign {session.campaign}, "
            f"devices {session.devices} ({ids}), node {names[session.number]}"
        )
    right = ("Median", "Unit", "n", "Nodes", "Of peak", "Of published")
    rows: list[tuple[str, ...]] = []
    for check, metrics in calibration.checks.items():
        # A count has neither a peak nor an engine.
        values = {metric: known for metric, known in metrics.items() if known.unit != "count"}
        if values:
            rows.append((check,))
        for metric, known in values.items():
            published = None if known.published is None else known.published.value
            parts = (
                None if reference is None else known.median / reference
                for reference in (known.peak, published)
            )
            nodes = str(len(known.by_devices or "A"))
            rows.append((
                f"  {metric}", known.link_class or "-", known.engine or "-",
                *(f"{known.median:.5g}", known.unit, str(known.n), nodes),
                *("-" if part is None else f"{part:.0%}" for part in parts),
            ))  # fmt: skip
    yield show.Table(("Metric", "Link class", "Engine", *right), rows, right)
    yield ""
