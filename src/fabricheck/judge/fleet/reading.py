"""Reading of a fleet: the metrics of many nodes, as a matrix for each partition.

Everything becomes one lazy table with the columns of `fabricheck export`: files of that table are
scanned, and sessions are exported to memory. Each question scans the few columns that it needs, so
that thousands of nodes fit into memory.
"""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from fabricheck.core import nodelists
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.results import archive, reading, split_checks
from fabricheck.results.export import table, writing
from fabricheck.results.table import LOST, columns

#: The files of tables, by suffix.
TABLES = (".parquet", ".csv")

#: The suffixes of files that list names, one a line.
LISTS = (".txt", ".list")

#: The columns that tell a metric from others, and those of its partition.
PARTITION = ("system", "partition", "clock")
KEY = (*PARTITION, "environment", "experiment", "check", "metric", "unit")

#: Facts about software of a check's row, and of host and devices of a state's row, in words.
OF_CHECKS = {
    "program_version": "programs",
    "commit": "commit of the programs",
    "runtime_version": "runtime",
    "driver": "driver",
    "mpi": "MPI",
    "rccl": "RCCL",
}
OF_STATES = {
    "vbios": "VBIOS",
    "firmware": "firmware",
    "compute_partition": "compute partition",
    "memory_partition": "memory partition",
    "power_cap_w": "power cap in W",
    "clock_max_mhz": "highest clock in MHz",
    "memory_clock_max_mhz": "highest memory clock in MHz",
    "ecc": "ECC",
    "pcie_width": "PCIe lanes",
    "links_up": "links that are up",
    "governor": "frequency governor",
    "huge_pages_reserved": "huge pages reserved",
}

#: What identifies a series of a node, its place included.
SERIES = (
    "environment", "check", "experiment", "unit", "better", "operation", "role", "direction",
    "engine", "engines", "stores", "loads", "movement", "placement", "datatype", "in_place",
    "link_class", "devices", "device", "source_memory", "source_device", "source_domain",
    "destination_memory", "destination_device", "destination_domain", "ranks", "bytes",
    "bytes_counted", "regime", "block_size", "elements", "grid",
)  # fmt: skip

_NEEDED = tuple(dict.fromkeys((
    "kind", "node", "hostname", "session", "session_id", "result", "reason", "value", *KEY,
    "series", "index", "runtime", *OF_CHECKS, *OF_STATES, *SERIES,
)))  # fmt: skip

#: A table without one of these is not one of `fabricheck export`.
_REQUIRED = ("kind", "node", "check", "metric", "value", "unit")

#: The file or the results folder that a row is from.
ORIGIN = "origin"

_TYPES = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
    "time": pl.String(),
}

#: Where the nodes of many rows are told apart quickly.
_WORD = pl.Categorical()


@dataclass(frozen=True)
class Metric:
    """A metric of a partition; its values are those of the nodes that have it."""

    environment: str | None
    experiment: str | None
    check: str
    name: str
    unit: str

    @property
    def title(self) -> str:
        """The check and the metric."""
        return f"{self.check} {self.name}"

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower value is better."""
        return self.unit in SMALLER_IS_BETTER or self.unit == "count"


@dataclass(frozen=True)
class Partition:
    """The nodes of one partition, measured or simulated.

    values: a row for each node, a column for each metric, by its number; of repetitions and several
    sessions the median. Null where a node has no value; NaN where the value is no number.
    """

    where: str
    clock: str
    nodes: list[str]
    metrics: list[Metric]
    values: pl.DataFrame

    @property
    def title(self) -> str:
        """Its name, and that it is simulated."""
        return self.where if self.clock == "measured" else f"{self.where} ({self.clock})"

    @property
    def key(self) -> tuple[str, str]:
        """What the same partition has at another time."""
        return self.where, self.clock


@dataclass(frozen=True)
class Fleet:
    """The nodes that some names stand for.

    rows: the table, with the column ``origin``. partitions: by size, the largest first. problems:
    sentences about what cannot be read.
    """

    title: str
    rows: pl.LazyFrame
    partitions: list[Partition]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[str]:
        """All nodes with a value, each once."""
        return list(dict.fromkeys(one for part in self.partitions for one in part.nodes))

    @cached_property
    def checks(self) -> pl.DataFrame:
        """Node, result and facts of each check; of tables without checks, of the metrics."""
        wanted = ["node", "check", "result", *OF_CHECKS]
        for kind in ("check", "metric"):
            rows = self.rows.filter(pl.col("kind") == kind)
            found = rows.select(pl.col(wanted).cast(_WORD)).unique().collect(engine="streaming")
            if len(found):
                return found
        return found

    @cached_property
    def lost(self) -> list[str]:
        """The requested nodes without any result."""
        rows = self.rows.filter(pl.col("kind") == "node", pl.col("result") == LOST)
        found = rows.select("node").unique().collect()["node"].to_list()
        return sorted(set(found) - set(self.nodes), key=nodelists.natural)

    @cached_property
    def facts(self) -> pl.DataFrame:
        """Fact, value and node, where a node has it; a fact of devices has no device."""
        states = self.rows.filter(pl.col("kind") == "state").select("node", *OF_STATES)
        found = states.with_columns(pl.col("firmware").str.split(", "))
        parts = [
            _facts(self.checks.lazy(), OF_CHECKS),
            _facts(found.explode("firmware"), OF_STATES),
        ]
        return pl.concat(parts).unique().sort("fact", "node", "value").collect()

    def sessions(self, nodes: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
        """Return by node the sessions that its rows are from, each with its file or folder."""
        rows = self.rows.filter(pl.col("node").is_in(list(nodes)), pl.col("kind") != "node")
        found = rows.select("node", "session_id", ORIGIN).unique().collect()
        by_node: dict[str, list[tuple[str, str]]] = {}
        for node, session, origin in sorted(found.rows(), key=str):
            by_node.setdefault(node, []).append((session or "", origin or ""))
        return by_node


def _facts(rows: pl.LazyFrame, told: dict[str, str]) -> pl.LazyFrame:
    texts = [pl.col(name).cast(pl.String).alias(word) for name, word in told.items()]
    long = rows.select(pl.col("node").cast(pl.String), *texts).unpivot(
        index="node", variable_name="fact", value_name="value"
    )
    return long.drop_nulls().unique().select("fact", "value", "node")


def read(names: Sequence[str]) -> Fleet:
    """Return the fleet that names stand for.

    :param names: tables, folders of tables or of results folders, globs, files that list names, and
        names of results as everywhere.
    :raises NotFoundError: when there is nothing of a name, or no metric in all.
    :raises InvalidInputError: when nothing of it can be read.
    """
    tables: list[Path] = []
    others: list[str] = []
    for name in _expanded(names):
        (tables if Path(name).suffix in TABLES else others).append(name)  # type: ignore[arg-type]
    tables = [Path(one) for one in tables]
    frames, problems, notes = [], [], []
    if tables:
        found, unread = _scanned(tables)
        frames += found
        problems += unread
    if others:
        results = reading.read(others)
        told = table.Told()
        frames.append(_exported(results, told))
        problems += told.problems
        notes += told.notes
    if not frames:
        raise InvalidInputError("\n".join(problems))
    rows = pl.concat(frames)
    partitions = _partitions(rows)
    if not partitions:
        raise NotFoundError(
            " ".join([*problems, f"{' '.join(names) or reading.LATEST} has no metric of any node."])
        )
    title = " ".join(names) if 0 < len(names) <= 3 else f"{len(names)} names"
    return Fleet(title, rows, partitions, tuple(problems), tuple(dict.fromkeys(notes)))


def _expanded(names: Sequence[str]) -> Iterator[str]:
    """Yield tables and names of results: of globs, lists and folders what is in them."""
    for name in names:
        path = Path(name)
        if not path.exists() and glob.has_magic(name):
            # Unlike Path.glob it takes absolute patterns, too.
            found = sorted(glob.glob(name), key=nodelists.natural)  # noqa: PTH207
            if not found:
                raise NotFoundError(f"No file or folder fits {name}.")
            yield from _expanded(found)
        elif path.is_file() and path.suffix in LISTS and not archive.is_archive(path):
            lines = [line.partition("#")[0].strip() for line in read_text(path).splitlines()]
            listed = [line for line in lines if line]
            if not listed:
                raise NotFoundError(f"{path} lists no name.")
            yield from _expanded([one for one in listed if one != name])
        elif path.is_dir() and not reading.holds_sessions(path):
            yield from _inside(path)
        else:
            if path.suffix in TABLES and not path.is_file():
                raise NotFoundError(f"There is no file {name}.")
            yield name


def _inside(folder: Path) -> Iterator[str]:
    """Yield the tables of a folder, else the results folders in it, else the folder itself."""
    every = sorted(folder.iterdir(), key=lambda one: nodelists.natural(one.name))
    tables = [one for one in every if one.suffix in TABLES and one.is_file()]
    results = [one for one in every if one.is_dir() and reading.holds_sessions(one)]
    for one in tables or results or [folder]:
        yield str(one)


def _scanned(paths: Sequence[Path]) -> tuple[list[pl.LazyFrame], list[str]]:
    """Return the tables of files lazily, and a sentence for each that cannot be read."""
    frames: list[pl.LazyFrame] = []
    problems: list[str] = []
    parquet = [one for one in paths if one.suffix == ".parquet"]
    by_columns: dict[tuple[str, ...], list[Path]] = {}
    for path in parquet:
        try:
            by_columns.setdefault(tuple(pl.read_parquet_schema(path)), []).append(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            problems.append(_unreadable(path, error))
    for names, own in by_columns.items():
        lacks = [one for one in _REQUIRED if one not in names]
        if lacks:
            problems += [_no_table(path, lacks) for path in own]
            continue
        frames.append(_needed(pl.scan_parquet(own, include_file_paths=ORIGIN)))
    for path in paths:
        if path.suffix != ".csv":
            continue
        try:
            scanned = pl.scan_csv(path, infer_schema=False, include_file_paths=ORIGIN)
            lacks = [one for one in _REQUIRED if one not in scanned.collect_schema()]
        except (pl.exceptions.PolarsError, OSError) as error:
            problems.append(_unreadable(path, error))
            continue
        if lacks:
            problems.append(_no_table(path, lacks))
        else:
            frames.append(_needed(scanned))
    return frames, problems


def _unreadable(path: Path, error: Exception) -> str:
    said = " ".join(str(error).split()).partition("This error occurred")[0]
    return f"{path}: cannot be read ({said[:200].rstrip('. ')})."


def _no_table(path: Path, lacks: Sequence[str]) -> str:
    return f"{path}: it is no table of `fabricheck export`: the column {lacks[0]} is missing."


def _needed(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns that a fleet needs, with their types; null where a table lacks them."""
    there = rows.collect_schema()
    types = {one.name: _TYPES[one.type] for one in columns()}
    cells = []
    for name in _NEEDED:
        kind = types[name]
        if name not in there:
            cells.append(pl.lit(None, dtype=kind).alias(name))
        elif kind == pl.Boolean() and there[name] == pl.String():
            cells.append(pl.col(name) == "true")
        elif there[name] != kind:
            cells.append(pl.col(name).cast(kind, strict=False))
        else:
            cells.append(pl.col(name))
    selected = rows.select(*cells, pl.col(ORIGIN))
    return selected.with_columns(pl.coalesce("node", "hostname").alias("node"))


def _exported(results: reading.Results, told: table.Told) -> pl.LazyFrame:
    """Return the table of results, kept in memory with the columns that a fleet needs."""
    kept: list[pl.DataFrame] = []
    for source in results.sources:
        alone = reading.Results(
            results.name, results.title, source.results, (source,), parts=results.parts
        )
        try:
            rows = table.stream(alone, told)
            for batch in _batches(rows):
                frame = writing.frame(batch).lazy()
                origin = pl.lit(str(source.results)).alias(ORIGIN)
                kept.append(_needed(frame.with_columns(origin)).collect())
        except NotFoundError as error:
            told.problems.append(str(error))
    told.problems[:0] = [problem.sentence for problem in results.problems]
    told.notes += results.notes
    nodes = [
        {"kind": "node", "node": name, "result": LOST}
        for name in results.requested
    ]  # fmt: skip
    if nodes:
        requested = pl.DataFrame(nodes).with_columns(pl.lit("").alias(ORIGIN)).lazy()
        kept.append(_needed(requested).collect())
    return pl.concat(kept).lazy() if kept else pl.LazyFrame()


def _batches(rows: Iterable[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    every = iter(rows)
    while batch := list(itertools.islice(every, writing.BATCH)):
        yield batch


def _partitions(rows: pl.LazyFrame) -> list[Partition]:
    metrics = rows.filter(pl.col("kind") == "metric", pl.col("node").is_not_null())
    words = [pl.col(name).cast(_WORD) for name in (*KEY, "node")]
    grouped = (
        metrics.select(*words, "value")
        .group_by(KEY, maintain_order=True)
        .agg(pl.col("node"), pl.col("value"))
        .collect(engine="streaming")
    )
    found = [
        _partition(own) for _, own in grouped.group_by(PARTITION, maintain_order=True)
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-len(one.nodes), one.title))


def _partition(grouped: pl.DataFrame) -> Partition:
    """Return the matrix of one partition.

    :param grouped: a row for each metric, with the lists of its nodes and values.
    """
    texts = grouped["node"].explode(empty_as_null=True).unique().cast(pl.String)
    nodes = sorted(texts.to_list(), key=nodelists.natural)
    at = pl.DataFrame({"node": nodes, "at": range(len(nodes))}).with_columns(
        pl.col("node").cast(_WORD), pl.col("at").cast(pl.UInt32)
    )
    wide: list[pl.Series] = []
    metrics: dict[tuple[str | None, ...], int] = {}
    first = grouped.row(0, named=True)
    places = _places(at)
    for row, node, value in zip(
        grouped.select(KEY).iter_rows(named=True), grouped["node"], grouped["value"], strict=True
    ):
        check = split_checks.of_metric(row["check"] or "", row["metric"])
        key = (row["environment"], row["experiment"], check, row["metric"], row["unit"] or "")
        series = _column(places.gather(node.to_physical()), value, len(nodes))
        if key in metrics:  # of a check that was split, the older part
            own = metrics[key]
            wide[own] = pl.select(pl.coalesce(wide[own], series)).to_series()
            continue
        metrics[key] = len(wide)
        wide.append(series)
    frame = pl.DataFrame([one.alias(str(number)) for number, one in enumerate(wide)])
    where = ":".join(one for one in (first["system"], first["partition"]) if one) or "(none)"
    told = [Metric(*key) for key in metrics]  # type: ignore[arg-type]
    return Partition(where, first["clock"] or "measured", nodes, told, frame)


def _places(at: pl.DataFrame) -> pl.Series:
    """Return by the code of a node its row."""
    codes = at["node"].to_physical()
    most = codes.max()
    assert isinstance(most, int)
    empty = pl.Series([0], dtype=pl.UInt32).new_from_index(0, most + 1)
    return empty.scatter(codes, at["at"])


def _column(rows: pl.Series, values: pl.Series, count: int) -> pl.Series:
    """Return a value for each node: the median where it has several."""
    if rows.n_unique() < len(rows):
        several = pl.DataFrame({"row": rows, "value": values.fill_null(float("nan"))})
        alone = several.group_by("row").agg(pl.col("value").median())
        rows, values = alone["row"], alone["value"]
    empty = pl.Series([None], dtype=pl.Float64).new_from_index(0, count)
    return empty.scatter(rows, values.fill_null(float("nan")))
