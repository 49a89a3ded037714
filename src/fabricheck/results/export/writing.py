"""The table as CSV (RFC 4180) and as Parquet, written completely or not at all."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import fabricheck
from fabricheck.core.errors import UsageError
from fabricheck.core.whole_files import replaced
from fabricheck.results.export.table import Cells
from fabricheck.results.table import columns

if TYPE_CHECKING:
    import polars as pl

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
    with replaced(path) as partial:
        if path.suffix == ".parquet":
            _to_parquet(partial, rows)
            return
        with partial.open("w", encoding="utf-8", newline="") as out:
            to_csv(out, rows)


def to_csv(out: IO[str], rows: Iterable[Cells]) -> None:
    """Write CSV: a header, CRLF line ends, quotes where needed, an empty cell for null."""
    names = [column.name for column in columns()]
    writer = csv.writer(out)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> Any:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case _:
            return value


def _to_parquet(path: Path, rows: Iterable[Cells]) -> None:
    """Write a Parquet file with one row group for each batch.

    :raises OSError: when it cannot be written.
    """
    import polars as pl

    described = {column.name: f"{column.type}: {column.meaning}" for column in columns()}
    metadata = {METADATA: json.dumps(described), "fabricheck.version": fabricheck.__version__}
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            parts = []
            for index, batch in enumerate(_batches(rows)):
                parts.append(Path(folder, f"{index:06}.parquet"))
                frame(batch).write_parquet(parts[-1])
            if len(parts) == 1:
                pl.read_parquet(parts[0]).write_parquet(path, metadata=metadata)
            else:
                pl.scan_parquet(parts).sink_parquet(path, metadata=metadata)
    except pl.exceptions.PolarsError as error:
        raise OSError(None, str(error)) from None


def _batches(rows: Iterable[Cells]) -> Iterator[list[Cells]]:
    """Yield lists of rows, at least one."""
    every = iter(rows)
    yield list(islice(every, BATCH))
    yield from iter(lambda: list(islice(every, BATCH)), [])


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
