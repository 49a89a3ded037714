"""`fabricheck site sets`: the checks of each set, with their time limits and measured times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.completion import partition_names
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError
from fabricheck.judge import set_times
from fabricheck.judge.coverage import checks_folders
from fabricheck.judge.set_times import Listed, Took
from fabricheck.references import dry_run
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session, read_report
from fabricheck.site import partitions
from fabricheck.site import sets as rules

if TYPE_CHECKING:
    from rich.text import Text

HEAD = ("Set", "Jobs", "Their limits", "May take", "Took", "In session")


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
    listed = set_times.listed(dry_run.ask(system, checks_folders()))
    times = [one for session in _sessions(results) for one in set_times.took(session)]
    show.result(_timed(listed, times), _text(listed, times), as_json)


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


def _text(
    listed: Mapping[str, Sequence[Listed]], times: Sequence[Took]
) -> Iterator[str | Text | show.Table]:
    over = []
    for where, own in listed.items():
        measured = any(one.where == where for one in times)
        yield show.plain(f"{where}: {_about(where, measured)}", "bold")
        rows = []
        for one in own:
            latest = next(iter(_latest_first(times, where, one.name)), None)
            rows.append(_row(one, latest))
            if latest is not None and latest.over:
                over.append(f"{latest.sentence} ({latest.session})")
        yield show.Table(HEAD, rows, ("Jobs", "Their limits"))
        yield from _checks(own)
        yield ""
    for name, about in rules.known().items():
        yield f"{name} shows {about.shows}; not {about.not_}."
    yield from over


def _about(where: str, measured: bool) -> str:
    known = partitions.known(where)
    kind = "measured" if measured else "not measured"
    if "simulated" in known.get("features", []):
        kind = "simulated"
    return f"{known.get('descr', 'no site of this repository')}; {kind}"


def _latest_first(times: Sequence[Took], where: str, name: str) -> list[Took]:
    own = [one for one in times if (one.where, one.name) == (where, name)]
    return sorted(own, key=lambda one: one.date, reverse=True)


def _row(one: Listed, latest: Took | None) -> tuple[str, ...]:
    limit = rules.known()[one.name].limit_s
    return (
        one.name,
        str(len(one.checks)),
        f"{one.limits_s:g} s",
        "-" if limit is None else f"{limit:g} s",
        *(("-", "-") if latest is None else _time(latest)),
    )


def _time(took: Took) -> tuple[str, str]:
    said = f"{took.seconds:.1f} s"
    if took.simulated_s is not None:
        said += f", {took.simulated_s:.1f} s simulated"
    if took.over:
        said += "; over its limit"
    failed = f", {took.failed} failed" if took.failed else ""
    return said, f"{took.session}, {took.date:%Y-%m-%d}, {took.checks} ran{failed}"


def _checks(own: Sequence[Listed]) -> Iterator[str]:
    before: set[str] = set()
    for one in own:
        if rules.known()[one.name].several_nodes:
            yield f"{one.name}, on several nodes: {show.listed(one.checks)}."
            continue
        added = [check for check in one.checks if check not in before]
        besides = ", besides" if before else ""
        yield f"{one.name}{besides}: {show.listed(added) or 'nothing more'}."
        before.update(one.checks)


def _timed(listed: Mapping[str, Sequence[Listed]], times: Sequence[Took]) -> list[dict[str, Any]]:
    return [
        {
            "partition": where,
            "set": one.name,
            "checks": one.checks,
            "limits_s": one.limits_s,
            "limit_s": rules.known()[one.name].limit_s,
            "took": [
                asdict(each) | {"over": each.over} for each in _latest_first(times, where, one.name)
            ],
        }
        for where, own in listed.items()
        for one in own
    ]
