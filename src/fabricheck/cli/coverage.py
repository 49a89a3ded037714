"""`fabricheck results coverage`: which experiments ran, and why the others did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Name
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError
from fabricheck.judge import coverage as rules
from fabricheck.results.reading import LATEST, Results, read
from fabricheck.site import partitions


@commands.command("results coverage")
def coverage(
    session: Name = "latest",
    as_json: AsJson = False,
) -> None:
    """Show which of the experiments E1 to E17 a session ran, and why not the others."""
    results = _read(session)
    name = results.name if results is not None and results.sessions else None
    sites = partitions.known_sites()
    rows = rules.coverage(results, sites)
    parts = results.observed if results is not None else ()
    unknown = dict.fromkeys(sentence for part in parts for sentence in rules.not_judged(part.node))
    result = {
        "session": name,
        "experiments": [
            {
                "experiment": row.experiment.id,
                "sentence": row.sentence,
                "title": row.experiment.title,
                "has_check": row.has_check,
                "needs": row.experiment.needs,
                "get": row.experiment.get,
                "missing_tool": row.missing_tool and row.missing_tool.name,
                "why_not": row.why_not,
                "not_testable": row.not_testable,
                "partitions": row.partitions,
                "ran": row.ran,
            }
            for row in rows
        ],
        "not_judged": [*unknown],
    }
    show.result(result, [*_text(name, rows, sites is not None), *unknown], as_json)


def _text(
    name: str | None, rows: Sequence[rules.Coverage], has_sites: bool
) -> Iterator[show.Block]:
    yield f"Coverage of session {name}" if name else "Coverage: no session yet"
    if not has_sites:
        yield "The sites were not found: change to the root of the repository."
    yield show.Table(
        ("", "Experiment", "Ran in this session, or why not and how to run it"),
        [(row.experiment.id, row.experiment.title, row.sentence) for row in rows],
    )
    ran = sum(row.measured_anything for row in rows)
    simulated = sum(row.only_simulated for row in rows)
    of_those = f", {simulated} of those only simulated" if simulated else ""
    yield f"{ran} of {len(rows)} experiments have results in this session{of_those}."


def _read(name: str) -> Results | None:
    try:
        results = read([name])
    except NotFoundError:
        # Before the first session the table still lists the experiments and how to run them.
        if name != LATEST:
            raise
        return None
    if not results.sessions:
        raise NotFoundError(
            f"{results.title} has no run report, so it is unknown which checks ran."
        )
    return results
