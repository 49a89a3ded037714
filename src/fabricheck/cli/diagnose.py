"""`fabricheck diagnose`: the components of a node that explain its missed limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import nodelists, show
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.show import listed
from fabricheck.judge.diagnosis.model import Degraded, Diagnosis
from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.results import reading

COLUMNS = ("Component", "Loss", "Explains", "Odds", "Or as well")

#: The file descriptor of standard error.
_STDERR = 2

#: The most names of one kind that are printed; --json has all.
MOST = 6


@commands.command("diagnose")
def diagnose(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION|JOB|FOLDER...]",
            help="As for `fabricheck verdict`: default the latest session; several are combined.",
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Run the checks that distinguish equal explanations, then diagnose again; one "
            "node only.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show which degraded components of a node explain its missed limits.

    Names the smallest set that does, how far each component is down, the evidence for and against
    it, and other explanations of equal weight. Exit status 3 if there is no session; 0 otherwise.
    """
    results = reading.read(what or ())
    verdicts = judging.judge(results)
    if measure and _measured(verdicts):
        before = _sessions(verdicts)
        results = reading.read([*(what or dict.fromkeys(name for _, name in before)), "latest"])
        verdicts = judging.judge(results)
        if before == _sessions(verdicts):
            raise NotFoundError("ReFrame left no session of these checks; its output is above.")
    if as_json:
        show.write_json([_json(one) for one in verdicts])
        return
    for problem in results.problems:
        show.echo(str(problem.sentence))
    for one in verdicts:
        if one.diagnosis is not None:
            _show(one, one.diagnosis)
    for label in dict.fromkeys(one.label for one in verdicts):
        well = [one.node for one in verdicts if one.label == label and one.diagnosis is None]
        if well:
            show.echo(f"{nodelists.folded(well)}: {label}")
            show.echo("  No limit was missed: there is nothing to explain.")


def _json(one: NodeVerdict) -> dict[str, object]:
    told = one.diagnosis.model_dump(mode="json") if one.diagnosis is not None else None
    sentence = one.diagnosis.sentence if one.diagnosis is not None else None
    return {
        "node": one.node, "simulated": one.simulated, "status": one.status,
        "sentence": sentence, "diagnosis": told,
    }  # fmt: skip


def _show(one: NodeVerdict, told: Diagnosis) -> None:
    by = f", simulated by {one.simulated}" if one.simulated else ""
    show.echo(f"{one.node}{by}: {one.label}")
    show.echo(f"  {told.sentence}")
    if told.degraded:
        rows = [_cells(degraded, told) for degraded in told.degraded]
        show.table(COLUMNS, rows, ("Loss", "Explains", "Odds"))
    for degraded in told.degraded:
        _listed(f"For {degraded.component.label}", degraded.supporting)
        _listed(f"Against {degraded.component.label}", degraded.contradicting)
        if degraded.next:
            show.echo(f"  To distinguish them, run: {' '.join(_command(one, degraded.next))}")
    _listed("Not explained", told.unexplained)
    for sentence in told.lacking:
        show.echo(f"  {sentence}")


def _cells(one: Degraded, told: Diagnosis) -> tuple[str, ...]:
    misses = f"{one.explains}/{told.misses}"
    equals = ", ".join(each.label for each in one.equals)
    return one.component.label, one.loss or "-", misses, one.said_odds, equals


def _listed(label: str, names: Sequence[str]) -> None:
    if names:
        show.echo(f"  {label}: {listed(names, MOST)}")


def _sessions(verdicts: Iterable[NodeVerdict]) -> set[tuple[str, str]]:
    """Return the sessions of some verdicts: the results folder and the id of each."""
    return {(session.results, session.id) for one in verdicts for session in one.sessions}


def _command(one: NodeVerdict, checks: Iterable[str]) -> list[str]:
    """Return the command line that runs checks on the partition of a node."""
    chosen = [part for check in dict.fromkeys(checks) for part in ("-n", f"^{check}$")]
    system = [f"--system={one.partitions[0]}"] if one.partitions else []
    return ["reframe", *system, "-c", "reframe_checks", "-r", *chosen]


def _measured(verdicts: Sequence[NodeVerdict]) -> bool:
    """Run the checks that distinguish components; return whether there were any.

    :raises UsageError: for several nodes, and for a node changed by an overlay.
    :raises NotFoundError: when ReFrame or its checks are not found.
    """
    if len(verdicts) != 1:
        raise UsageError(f"--measure needs exactly one node; there are {len(verdicts)}.")
    (one,) = verdicts
    if one.diagnosis is None:
        return False
    checks = [check for degraded in one.diagnosis.degraded for check in degraded.next]
    if not checks:
        return False
    if one.simulated is not None and "changed by" in one.simulated:
        line = " ".join(_command(one, checks))
        raise UsageError(
            f"An overlay changed the simulated node: run {line} with the same overlay "
            "(-S overlay=FILE)."
        )
    reframe = Path(sys.executable).with_name("reframe")
    if not (ROOT / "reframe_checks").is_dir() or not reframe.exists():
        raise NotFoundError(
            "ReFrame and the checks were not found: change to the root of the repository."
        )
    command = _command(one, checks)
    # Standard output is for the diagnosis.
    typer.echo(f"Runs {' '.join(command)}", err=True)
    subprocess.run([str(reframe), *command[1:]], cwd=ROOT, stdout=_STDERR, check=False)
    return True
