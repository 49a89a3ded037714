"""The table as a stream of rows of cells, with the sentences about missing rows."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import first_of, listed
from fabricheck.core.text import printable
from fabricheck.results import table
from fabricheck.results.observed import series_of
from fabricheck.results.reading import NO_REPORT, Results, Source
from fabricheck.results.table import Row, Series, metrics, values

Cells = dict[str, Any]

#: Characters at the start of a text that make a spreadsheet calculate it.
_FORMULA = re.compile(r"^[=+\-@]")

#: The most sentences about unreadable files that are shown one by one.
MOST = 20


@dataclass
class ExportLog:
    """What was learned while the table was made.

    counts: rows by kind. sessions: how many. bare: the checks without a value, by result. problems:
    sentences about files that cannot be read, so that rows are missing. notes: further information.
    """

    counts: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    bare: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> Iterator[str]:
        """Return all sentences; the totals come last."""
        yield from first_of(self.problems, MOST, " files cannot be read")
        yield from self.notes
        if self.bare:
            said = listed(f"{count} {result}" for result, count in sorted(self.bare.items()))
            yield (
                f"{self.bare.total()} check(s) have no value ({said}): the row of kind check of "
                "each states why."
            )
        counts = self.counts
        samples = f", {counts['sample']} samples" if counts["sample"] else ""
        states = f", {counts['state']} states" if counts["state"] else ""
        nodes = f", {counts['node']} requested nodes" if counts["node"] else ""
        yield (
            f"{self.sessions} session(s), {counts['check']} checks: {counts['metric']} metrics, "
            f"{counts['series']} series{samples}{states}{nodes}."
        )


def stream(found: Results, log: ExportLog, samples: bool = False) -> Iterator[Cells]:
    """Yield all rows, one session after the other; only one session is kept in memory.

    :param log: receives what is to be reported.
    :param samples: whether each sample has a row.
    :raises NotFoundError: at the end, when there was no row.
    """
    log.problems += [problem.sentence for problem in found.problems]
    log.notes += found.notes
    present: set[str | None] = set()
    for source in found.sources:
        log.sessions += 1
        # A copy: what it reads is not kept.
        for cells in _source(dataclasses.replace(source), log, samples, bool(found.parts)):
            log.counts[cells["kind"]] += 1
            if cells["kind"] == "check":
                present.add(cells["node"])
            yield cells
    for job in found.jobs:
        for row in table.nodes(job.requested, present):
            log.counts["node"] += 1
            yield of_row(row)
    if not log.counts:
        raise NotFoundError(" ".join(log.problems) or "There is no session to export.")


def _source(source: Source, log: ExportLog, samples: bool, several: bool) -> Iterator[Cells]:
    if source.killed and source.of_job is None:
        # A killed session among several leaves nothing out of the others.
        (log.notes if several else log.problems).append(NO_REPORT)
    for check in source.checks:
        entry, case = check.entry, check.case
        if entry is not None and entry.path is not None:
            log.problems += map(str, entry.problems)
        if case is not None:
            measured = case.values or (check.document and check.document["series"])
            if source.reported is not None and not measured:
                log.bare[case.result] += 1
            yield of_row(check)
        yield from map(of_row, metrics(check))
        for series in series_of(check):
            yield of_row(series)
            if samples:
                yield from _samples(series)
        yield from map(of_row, table.states(check))
    yield from map(of_row, source.nodes)


def _samples(series: Series) -> Iterator[Cells]:
    """Yield a row for each sample: the row of its series, with the sample's own value."""
    of_series = of_row(series) | {"kind": "sample", "mad": None, "ci_low": None, "ci_high": None}
    for index, sample in enumerate(series.measured["samples"]):
        yield {**of_series, "value": float(sample), "sample": index}


def of_row(row: Row) -> Cells:
    """Return a row as cells, by column."""
    return {name: _cell(value) for name, value in values(row).items()}


def _cell(value: Any) -> Any:
    match value:
        case str():
            return text(value)
        case float():
            return value if math.isfinite(value) else None
        case tuple():
            # As one text, which no reader takes for a number.
            return f"[{' '.join(map(str, value))}]"
        case _:
            return value


@functools.lru_cache(maxsize=4096)
def text(value: str) -> str | None:
    """Return the text of a cell: one line, without control characters, never a formula.

    An empty text is None. A text that a spreadsheet would calculate gets an apostrophe in front.
    """
    line = printable(" ".join(value.split()))
    return (f"'{line}" if _FORMULA.match(line) else line) or None
