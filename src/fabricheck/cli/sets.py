"""`fabricheck site sets`: the checks of each set, with their time limits and measured times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.judge import set_times
from fabricheck.judge.coverage import checks_folders
from fabricheck.judge.set_times import SetTimes, Took
from fabricheck.references import listing
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session, read_report
from fabricheck.site import partitions
from fabricheck.site import sets as rules

_HEAD = ("Set", "Jobs", "Their limits", "May take", "Took", "In session")


@commands.command("site sets")
def sets(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Results folders or run reports; default: the results folder."),
    ] = None,
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="System or partition, such as lumi:gpu; default: this machine's.",
            autocompletion=partition_names,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the checks of each set, with its time limit on a node and measured times.

    The checks come from a dry run on this machine, each a job of its own or a step in an
    allocation. Measured times are those of sessions that ran the whole set on one node
    (docs/reference/sets.md).
    """
    took = [time for session in _sessions(results) for time in set_times.took(session)]
    times = set_times.times(listing.ask(system, checks_folders()), took)
    show.result(times, _text(times), as_json)


def _sessions(results: Sequence[Path] | None) -> Iterator[Session]:
    if not results:
        try:
            folder = ResultsFolder.default()
        except NotFoundError:
            return  # before the first session the table still lists the checks
        yield from folder.sessions
        return
    for path in results:
        if path.is_dir():
            yield from ResultsFolder(path).sessions
        else:
            yield read_report(path, path.resolve().parent.parent)


def _text(times: Sequence[SetTimes]) -> Iterator[show.Block]:
    for where, of_partition in groupby(times, key=lambda time: time.partition):
        chosen = list(of_partition)
        about = f"{where}: {_about(where, any(entry.took for entry in chosen))}"
        rows = [
            (entry.set, str(len(entry.checks)), f"{entry.limits_s:g} s",
             "-" if entry.limit_s is None else f"{entry.limit_s:g} s",
             *(_time(entry.took[0]) if entry.took else ("-", "-")))
            for entry in chosen
        ]  # fmt: skip
        yield show.Table(_HEAD, rows, ("Jobs", "Their limits"), above=show.plain(about, "bold"))
        yield from _checks(chosen)
        yield ""
    for name, known in rules.known().items():
        yield f"{name} shows {known.shows}; not {known.not_}."
    last = (time.took[0] for time in times if time.took)
    yield from (f"{took.sentence} ({took.session})" for took in last if took.over)


def _about(where: str, measured: bool) -> str:
    known = partitions.known(where)
    simulated = "simulated" in known.get("features", [])
    kind = "simulated" if simulated else "measured" if measured else "not measured"
    return f"{known.get('descr', 'no site of this repository')}; {kind}"


def _time(took: Took) -> tuple[str, str]:
    text = f"{took.seconds:.1f} s"
    if took.simulated_s is not None:
        text += f", {took.simulated_s:.1f} s simulated"
    if took.over:
        text += "; over its limit"
    failed = f", {took.failed} failed" if took.failed else ""
    return text, f"{took.session}, {took.date:%Y-%m-%d}, {took.checks} ran{failed}"


def _checks(of_partition: Sequence[SetTimes]) -> Iterator[str]:
    before: set[str] = set()
    for times in of_partition:
        if rules.known()[times.set].several_nodes:
            yield f"{times.set}, on several nodes: {listed(times.checks)}."
            continue
        added = [check for check in times.checks if check not in before]
        besides = ", besides" if before else ""
        yield f"{times.set}{besides}: {listed(added) or 'nothing more'}."
        before.update(times.checks)
