"""What is said of an experiment's coverage, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

from fabricheck.core.nodelists import folded
from fabricheck.judge.coverage import Coverage, Ran


def sentence(row: Coverage) -> str:
    """Return where an experiment ran, or why it did not and how to get it."""
    tool = row.missing_tool
    lacking = f"; not by {tool.name}, which are {tool.get}" if tool else ""
    no_more = [
        f"not testable here ({where}): {reason}"
        for where, reasons in row.not_testable.items()
        for reason in reasons
    ]
    # Of checks that were all skipped the reason says everything.
    ran = _by_outcome(
        ran for ran in row.ran if ran.cases > ran.skipped or ran.where not in row.not_testable
    )
    if row.ran or no_more:
        return "; ".join([*ran, *no_more]) + lacking
    return _why_not(row) + lacking


def _why_not(row: Coverage) -> str:
    needs = f"; needs {row.experiment.needs}"
    if not row.has_check:
        return f"{row.why_not}{needs}"
    if row.partitions:
        plural = "has" if len(row.partitions) == 1 else "have"
        return f"{row.why_not}{needs}, which {', '.join(row.partitions)} {plural}"
    return f"{row.why_not}{needs}; {row.experiment.get}"


def _by_outcome(every: Iterable[Ran]) -> list[str]:
    """Return a sentence for all nodes of a partition that have as much as one another."""
    alike: dict[tuple[str, str, str], list[str | None]] = {}
    for ran in every:
        alike.setdefault((ran.where, *_ran(ran)), []).append(ran.node)
    found = []
    for (where, what, counts), on in alike.items():
        names = folded(on)
        place = f"{where} on {names}" if names else where
        each = "each " if len(on) > 1 else ""
        found.append(f"{what.format(place)}: {each}{counts}")
    return found


def _ran(ran: Ran) -> tuple[str, str]:
    """Return what was done, with a place for where, and how much of it there is."""
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
    return f"{what} in {{}}{runtimes}", f"{found}, {ran.cases} {checks} ({', '.join(parts)})"
