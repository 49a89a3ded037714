"""`fabricheck coverage`: which experiments ran, and why the others did not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fabricheck import coverage as rules
from fabricheck import partitions, testable
from fabricheck.cli import output
from fabricheck.cli.results import AsJson
from fabricheck.errors import NotFoundError
from fabricheck.results.folder import Entry, ResultsFolder
from fabricheck.results.session import Session


def coverage(
    session: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="A session's id; the latest by default.")
    ] = "latest",
    as_json: AsJson = False,
) -> None:
    """Show which of the experiments E1 to E15 a session ran, and why not the others."""
    chosen, entries = _session(session)
    folders = rules.checks_folders()
    sites = partitions.read_sites()
    able = rules.partitions_for(folders, sites)
    features = testable.features_of_devices(sites)
    rows = rules.coverage(chosen, entries, rules.experiments_with_check(folders), able, features)
    if as_json:
        output.write_json(
            {"session": chosen.id if chosen else None, "experiments": [_json(row) for row in rows]}
        )
        return
    console = output.console()
    console.print(f"Coverage of session {chosen.id}" if chosen else "Coverage: no session yet")
    if not folders:
        console.print("The checks were not found: run this in the repository.")
    table = output.table("", "Experiment", "Ran in this session, or why not and how to get it")
    for row in rows:
        table.add_row(row.experiment.id, row.experiment.title, _sentence(row))
    console.print(table)
    ran = sum(row.measured_anything for row in rows)
    simulated = sum(row.only_simulated for row in rows)
    of_those = f", {simulated} of those only simulated" if simulated else ""
    console.print(f"{ran} of {len(rows)} experiments have results in this session{of_those}.")


def _session(name: str) -> tuple[Session | None, list[Entry]]:
    try:
        folder = ResultsFolder.default()
        session = folder.session(name)
    except NotFoundError:
        # Before the first session the table still says what there is and how to get it.
        if name != "latest":
            raise
        return None, []
    return session, folder.entries(session)


def _sentence(row: rules.Coverage) -> str:
    tool = row.missing_tool
    lacking = f"; not by {tool.name}, which are {tool.get}" if tool else ""
    no_more = [
        f"not testable here ({where}): {reason}"
        for where, reasons in row.not_testable.items()
        for reason in reasons
    ]
    # Of checks that were all skipped the reason says everything.
    ran = [
        _ran(ran) for ran in row.ran if ran.cases > ran.skipped or ran.where not in row.not_testable
    ]
    if row.ran or no_more:
        return "; ".join([*ran, *no_more]) + lacking
    return _why_not(row) + lacking


def _why_not(row: rules.Coverage) -> str:
    needs = f"; needs {row.experiment.needs}"
    if not row.has_check:
        return f"{row.why_not}{needs}"
    if row.partitions:
        plural = "has" if len(row.partitions) == 1 else "have"
        return f"{row.why_not}{needs}, which {', '.join(row.partitions)} {plural}"
    return f"{row.why_not}{needs}; {row.experiment.get}"


def _ran(ran: rules.Ran) -> str:
    what = ", ".join(sorted(ran.clocks)) or "nothing measured"
    runtimes = f" by the {', '.join(sorted(ran.runtimes))} runtime" if ran.runtimes else ""
    parts = [
        f"{count} {word}"
        for count, word in (
            (ran.passed, "passed"),
            (ran.failed, "failed"),
            (ran.skipped, "skipped"),
            (ran.unread, "without a document"),
        )
        if count
    ]
    checks = "check" if ran.cases == 1 else "checks"
    found = f"{ran.series} series"
    if ran.comparisons:
        found = f"{ran.comparisons} comparison{'s' if ran.comparisons > 1 else ''}"
    return f"{what} in {ran.where}{runtimes}: {found}, {ran.cases} {checks} ({', '.join(parts)})"


def _json(row: rules.Coverage) -> dict[str, Any]:
    return {
        "experiment": row.experiment.id,
        "title": row.experiment.title,
        "has_check": row.has_check,
        "needs": row.experiment.needs,
        "get": row.experiment.get,
        "missing_tool": row.missing_tool.name if row.missing_tool else None,
        "why_not": row.why_not,
        "not_testable": {where: list(reasons) for where, reasons in row.not_testable.items()},
        "partitions": list(row.partitions) if row.partitions is not None else None,
        "ran": [
            {
                "where": ran.where,
                "clocks": sorted(ran.clocks),
                "runtimes": sorted(ran.runtimes),
                "series": ran.series,
                "comparisons": ran.comparisons,
                "cases": ran.cases,
                "passed": ran.passed,
                "failed": ran.failed,
                "skipped": ran.skipped,
                "without_document": ran.unread,
            }
            for ran in row.ran
        ],
    }
