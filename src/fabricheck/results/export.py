"""Results as one tidy table: a row is one value, a column is one variable.

It is made as a stream of rows of cells, with the sentences about missing rows, and written as CSV
(RFC 4180), as Parquet, and as OpenMetrics for GitLab's merge requests and for Prometheus.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import math
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import fabricheck
from fabricheck.core.amounts import number
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import first_of, listed
from fabricheck.core.text import count, printable
from fabricheck.core.whole_files import replaced
from fabricheck.results import table
from fabricheck.results.columns import columns, values
from fabricheck.results.observed import series_of
from fabricheck.results.reading import NO_REPORT, Results, Source
from fabricheck.results.rows import Row, Series
from fabricheck.results.session import PASSED, SKIPPED
from fabricheck.results.table import LOST, metrics

if TYPE_CHECKING:
    import polars as pl

Cells = dict[str, Any]

#: Characters at the start of a text that make a spreadsheet calculate it.
_FORMULA = re.compile(r"^[=+\-@]")

#: The most sentences about unreadable files that are shown one by one.
MOST = 20


@dataclass
class ExportLog:
    """What was learned while the table was made.

    counts: rows by type. sessions: how many. bare: the checks without a value, by result. problems:
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
            results = listed(f"{number} {result}" for result, number in sorted(self.bare.items()))
            yield (
                f"Without a value: {count(self.bare.total(), 'check')} ({results}). The row of "
                "type check of each says why."
            )
        counts = self.counts
        samples = f", {count(counts['sample'], 'sample')}" if counts["sample"] else ""
        states = f", {count(counts['state'], 'state')}" if counts["state"] else ""
        nodes = f", {count(counts['node'], 'requested node')}" if counts["node"] else ""
        yield (
            f"{count(self.sessions, 'session')}, {count(counts['check'], 'check')}: "
            f"{count(counts['metric'], 'metric')}, {counts['series']} series"
            f"{samples}{states}{nodes}."
        )


def stream(results: Results, log: ExportLog, samples: bool = False) -> Iterator[Cells]:
    """Yield all rows, one session after the other; only one session is kept in memory.

    :param log: receives what is to be reported.
    :param samples: whether each sample has a row.
    :raises NotFoundError: at the end, when there was no row.
    """
    log.problems += [problem.sentence for problem in results.problems]
    log.notes += results.notes
    present: set[str | None] = set()
    for source in results.sources:
        log.sessions += 1
        # A copy: what it reads is not kept.
        for cells in of_source(dataclasses.replace(source), log, samples, bool(results.parts)):
            log.counts[cells["row_type"]] += 1
            if cells["row_type"] == "check":
                present.add(cells["node"])
            yield cells
    for job in results.jobs:
        for row in table.nodes(job, present):
            log.counts["node"] += 1
            yield of_row(row)
    if not log.counts:
        raise NotFoundError(" ".join(log.problems) or "There is no session to export.")


def of_source(
    source: Source, log: ExportLog, samples: bool = False, several: bool = False
) -> Iterator[Cells]:
    """Yield the rows of one session, or of documents outside any.

    :param several: whether it is one of several, of which a killed one leaves nothing out.
    """
    if source.killed and source.of_job is None:
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
    of_series = of_row(series) | {
        "row_type": "sample",
        "mad": None,
        "ci_low": None,
        "ci_high": None,
    }
    for index, sample in enumerate(series.measured["samples"]):
        yield {**of_series, "value": float(sample), "sample": index}


def of_row(row: Row) -> Cells:
    """Return a row as cells, by column."""
    return {name: _cell(value) for name, value in values(row).items()}


def _cell(value: Any) -> Any:
    match value:
        case str():
            return cell_text(value)
        case float():
            return value if math.isfinite(value) else None
        case tuple():
            # As one text, which no reader takes for a number.
            return f"[{' '.join(map(str, value))}]"
        case _:
            return value


@functools.lru_cache(maxsize=4096)
def cell_text(value: str) -> str | None:
    """Return the text of a cell: one line, without control characters, never a formula.

    An empty text is None. A text that a spreadsheet would calculate gets an apostrophe in front.
    """
    line = printable(" ".join(value.split()))
    return (f"'{line}" if _FORMULA.match(line) else line) or None


# Files

#: Rows in memory at once, some 50 MB.
BATCH = 10_000

#: The key of the columns' descriptions in a Parquet file's metadata, as JSON.
METADATA = "fabricheck.columns"


def require_format(path: Path) -> None:
    """Refuse a file name that cannot be written, before anything is read.

    :raises UsageError: when its suffix names no format.
    :raises ModuleNotFoundError: when polars, which writes Parquet, is missing.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"{path}: the format is unknown; the name must end with .csv or .parquet.")
    if path.suffix == ".parquet":
        import polars  # noqa: F401


def to_file(path: Path, rows: Iterable[Cells]) -> None:
    """Write a file, in the format that its suffix names; see `require_format`.

    :raises NotFoundError: when it cannot be written; then nothing has changed.
    """
    with replaced(path) as file:
        if path.suffix == ".parquet":
            _to_parquet(path, file, rows)
            return
        with io.TextIOWrapper(file, encoding="utf-8", newline="") as out:
            to_csv(out, rows)


def to_csv(out: IO[str], rows: Iterable[Cells]) -> None:
    """Write CSV: a header, CRLF line ends, quotes where needed, an empty cell for null."""
    names = [column.name for column in columns()]
    writer = csv.writer(out)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_csv_cell(row.get(name)) for name in names])


def _csv_cell(value: Any) -> Any:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case _:
            return value


def _to_parquet(path: Path, file: IO[bytes], rows: Iterable[Cells]) -> None:
    """Write rows, of which there is at least one, as Parquet.

    :param path: what it becomes; batches are written to a folder beside it.
    :raises OSError: when it cannot be written.
    """
    import polars as pl

    described = {column.name: f"{column.type}: {column.meaning}" for column in columns()}
    metadata = {METADATA: json.dumps(described), "fabricheck.version": fabricheck.__version__}
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            remaining, parts = iter(rows), list[Path]()
            while batch := list(islice(remaining, BATCH)):
                parts.append(Path(folder, f"{len(parts):06}.parquet"))
                frame(batch).write_parquet(parts[-1])
            pl.scan_parquet(parts).sink_parquet(file, metadata=metadata)
    except pl.exceptions.PolarsError as error:
        raise OSError(None, str(error)) from None


def frame(rows: list[Cells]) -> pl.DataFrame:
    """Return rows as a table with all columns, each of its type."""
    import polars as pl

    types: dict[str, pl.DataType | type[pl.DataType]] = {
        "text": pl.String,
        "integer": pl.Int64,
        "number": pl.Float64,
        "boolean": pl.Boolean,
        "time": pl.Datetime("ms", "UTC"),
    }
    return pl.DataFrame(
        {
            column.name: pl.Series(
                column.name, [row.get(column.name) for row in rows], dtype=types[column.type]
            )
            for column in columns()
        }
    )


# OpenMetrics. GitLab compares two files by name and labels, and values as texts: so no label names
# the session, and values have five digits. The unit is a label, as in the reference files: GB/s,
# not the bytes per second that OpenMetrics prefers.

Labels = tuple[tuple[str, str], ...]

_CHECK = ("system", "partition", "environment", "check")

#: Of a label's value. GitLab takes what follows a # for a comment, wherever it is.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "#": "_"})

#: Families in the order of the text: name, labels from columns, help, and how several values are
#: combined.
_METRIC = "fabricheck_metric"
_PASSED = "fabricheck_check_passed"
_PRESENT = "fabricheck_node_present"
_FAMILIES: dict[str, tuple[tuple[str, ...], str, Callable[[Sequence[float]], float]]] = {
    _METRIC: (
        (*_CHECK, "metric", "unit", "clock", "overlay"),
        "Value of a metric of a check, in the unit of its label; the median of several.",
        statistics.median,
    ),
    _PASSED: (
        (*_CHECK, "overlay"),
        "1 where the check passed, 0 where it did not; skipped checks are left out.",
        min,
    ),
    _PRESENT: (
        ("system", "partition"),
        "1 where a requested node has results, 0 where it has none.",
        min,
    ),
}


@dataclass
class OpenMetricsBuffer:
    """The values kept of a table's rows, by family and labels."""

    _values: dict[str, list[tuple[Labels, float]]] = field(
        default_factory=lambda: {name: [] for name in _FAMILIES}
    )
    _several_nodes: bool = False

    def watch(self, rows: Iterable[Cells]) -> Iterator[Cells]:
        """Yield the rows unchanged, and keep the values that the text needs."""
        nodes: set[str] = set()
        for row in rows:
            if row["row_type"] in ("check", "node") and row.get("node"):
                nodes.add(row["node"])
                self._several_nodes |= len(nodes) > 1
            match row["row_type"]:
                case "metric" if row["value"] is not None:
                    self._keep(_METRIC, row, row["value"])
                case "check" if row["result"] not in SKIPPED:
                    self._keep(_PASSED, row, float(row["result"] in PASSED))
                case "node":
                    self._keep(_PRESENT, row, float(row["result"] != LOST))
            yield row

    def _keep(self, family: str, row: Cells, value: float) -> None:
        names = (*_FAMILIES[family][0], "node")
        labels = tuple((name, row[name]) for name in names if row.get(name))
        self._values[family].append((labels, value))

    @property
    def text(self) -> str:
        """Return the text; the node is a label where there are several nodes, and for lost ones."""
        lines = []
        for name, (_, help_, together) in _FAMILIES.items():
            with_node = name == _PRESENT or self._several_nodes
            alike = grouped(
                (tuple(label for label in labels if with_node or label[0] != "node"), value)
                for labels, value in self._values[name]
            )
            if alike:
                lines += [f"# TYPE {name} gauge", f"# HELP {name} {help_}"]
            for labels, several in sorted(alike.items()):
                shown = ",".join(
                    f'{label}="{value.translate(_ESCAPES)}"' for label, value in labels
                )
                lines.append(f"{name}{{{shown}}} {number(together(several))}")
        return "\n".join([*lines, "# EOF"]) + "\n"
