"""`fabricheck site sets`: the checks of each set, with limits, predicted and measured times."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.completion import partition_names
from fabricheck.cli.output import AsJson
from fabricheck.core import page_block, show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.judge import set_times
from fabricheck.judge.coverage import checks_folders
from fabricheck.judge.set_times import Listed, Took
from fabricheck.references import dry_run
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session, read_report
from fabricheck.site import partitions
from fabricheck.site import sets as rules

HEAD = ("Set", "Jobs", "Their limits", "May take", "Predicted", "Took", "In sessions")


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
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            help="Write the tables between their markers in this page; times of sets that no "
            "session ran stay.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the checks of each set, with its time limit on a node, predicted and measured times.

    The checks come from a dry run on this machine, each a job of its own or a step in an
    allocation. Measured times are those of sessions that ran the whole set on one node
    (docs/sets.md).
    """
    if page is not None and as_json:
        raise UsageError("--page and --json cannot be combined.")
    listed = set_times.listed(dry_run.ask(system, checks_folders()))
    times = [one for session in _sessions(results) for one in set_times.took(session)]
    if as_json:
        output.write_json(_json(listed, times))
    elif page is None:
        _print(listed, times)
    else:
        blocks = {where: f"sets of {where}" for where in listed}
        kept = {where: _times_in(page_block.read(page, name)) for where, name in blocks.items()}
        page_block.rewrite(
            page,
            {
                blocks[where]: markdown(where, own, times, kept[where])
                for where, own in listed.items()
            },
        )
        for where in listed:
            typer.echo(f"wrote {page}: {where}", err=True)


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


def _print(listed: Mapping[str, Sequence[Listed]], times: Sequence[Took]) -> None:
    for where, own in listed.items():
        output.line(f"{where}: {_about(where, _is_measured(where, times))}", "bold")
        rows = [_row(one, _latest_first(times, where, one.name)[:1]) for one in own]
        output.print_table(HEAD, rows, ("Jobs", "Their limits"))
        for line in _checks(own):
            output.line(line)
        output.line()
    for name, about in rules.known().items():
        output.line(f"{name} shows {about.shows}; not {about.not_}.")
    for where, own in listed.items():
        for each in own:
            for latest in _latest_first(times, where, each.name)[:1]:
                if latest.over:
                    output.line(f"{latest.sentence} ({latest.session})")


def markdown(
    where: str,
    own: Sequence[Listed],
    times: Sequence[Took],
    kept: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return the table of a partition, and the checks of its sets, as Markdown.

    :param kept: by set the two cells of its times that stay where no session ran it.
    """
    rows = []
    for one in own:
        sessions = _latest_first(times, where, one.name)
        cells = _row(one, sessions)
        if not sessions and one.name in kept:
            cells = (*cells[:-2], *kept[one.name])
        rows.append(cells)
    checks = [f"- {line}" for line in _checks(own)]
    about = _about(where, bool(kept) or _is_measured(where, times))
    table = show.markdown(HEAD, rows, HEAD[1:5])
    return "\n".join([*table, "", f"`{where}`: {about}.", "", *checks, ""])


def _times_in(block: str) -> dict[str, Sequence[str]]:
    """Return by set the cells with times in the table of a page, if any."""
    rows = [line.strip("| ").split(" | ") for line in block.splitlines() if line.startswith("|")]
    return {
        row[0]: row[-2:]
        for row in rows
        if len(row) == len(HEAD) and row[0] in rules.known() and row[-1] != "-"
    }


def _is_measured(where: str, times: Sequence[Took]) -> bool:
    return any(one.where == where for one in times)


def _about(where: str, measured: bool) -> str:
    known = partitions.known(where)
    kind = "measured" if measured else "not measured"
    if "simulated" in known.get("features", []):
        kind = "simulated"
    return f"{known.get('descr', 'no site of this repository')}; {kind}"


def _latest_first(times: Sequence[Took], where: str, name: str) -> list[Took]:
    own = [one for one in times if (one.where, one.name) == (where, name)]
    return sorted(own, key=lambda one: one.date, reverse=True)


def _row(one: Listed, times: Sequence[Took]) -> tuple[str, ...]:
    limit = rules.known()[one.name].limit_s
    return (
        one.name,
        str(len(one.checks)),
        f"{one.limits_s:g} s",
        "-" if limit is None else f"{limit:g} s",
        "-" if one.whole_s is None else f"{one.whole_s:.0f} s",
        _took(times),
        _of(times),
    )


def _took(times: Sequence[Took]) -> str:
    if not times:
        return "-"
    said = f"{_amount([one.seconds for one in times])} s"
    simulated = [one.simulated_s for one in times if one.simulated_s is not None]
    if simulated:
        said += f", {_amount(simulated)} s simulated"
    if any(one.over for one in times):
        said += "; over its limit"
    return said


def _amount(values: Sequence[float]) -> str:
    """Format a value, or the median and range of several."""
    least, middle, most = (
        f"{one:.1f}" for one in (min(values), statistics.median(values), max(values))
    )
    return middle if least == most else f"{middle} ({least} to {most})"


def _of(times: Sequence[Took]) -> str:
    if not times:
        return "-"
    days = sorted({f"{one.date:%Y-%m-%d}" for one in times})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    number = times[0].session if len(times) == 1 else f"{len(times)} sessions"
    ran = sorted({one.checks for one in times})
    jobs = f"{ran[0]}" if len(ran) == 1 else f"{ran[0]} to {ran[-1]}"
    failed = sum(one.failed for one in times)
    return f"{number}, {span}, {jobs} ran" + (f", {failed} failed" if failed else "")


def _checks(own: Sequence[Listed]) -> Iterator[str]:
    before: set[str] = set()
    for one in own:
        if rules.known()[one.name].several_nodes:
            yield f"{one.name}, on several nodes: {', '.join(one.checks)}."
            continue
        added = [check for check in one.checks if check not in before]
        besides = ", besides" if before else ""
        yield f"{one.name}{besides}: {', '.join(added) or 'nothing more'}."
        before.update(one.checks)
    reasons = dict.fromkeys(reason for one in own for reason in one.not_predicted)
    if reasons:
        yield f"Not predicted: {' '.join(reasons)}"


def _json(listed: Mapping[str, Sequence[Listed]], times: Sequence[Took]) -> list[dict[str, Any]]:
    return [
        {
            "partition": where,
            "set": one.name,
            "checks": list(one.checks),
            "limits_s": one.limits_s,
            "limit_s": rules.known()[one.name].limit_s,
            "predicted_s": one.whole_s,
            "predicted_checks_s": one.predicted_s,
            "not_predicted": list(one.not_predicted),
            "took": [
                asdict(each) | {"date": each.date.isoformat(), "over": each.over}
                for each in _latest_first(times, where, one.name)
            ],
        }
        for where, own in listed.items()
        for one in own
    ]
