"""Reading of a fleet: the metrics of many nodes, as a matrix for each partition.

Everything becomes one lazy table with the columns of `fabricheck results export`: files of that
table are scanned, and sessions are exported to memory. Each question scans the few columns that it
needs, so that thousands of nodes fit into memory.
"""

from __future__ import annotations

import glob
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from fabricheck.core import nodelists, show
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.text import count, read_text
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.comparison.circumstances import FIXED
from fabricheck.results import archive, export, reading
from fabricheck.results.series import Noise
from fabricheck.results.table import LOST, columns

#: The files of tables, by suffix.
TABLES = (".parquet", ".csv")

#: The suffixes of files that list names, one a line.
LISTS = (".txt", ".list")

#: The suffixes of result documents. One of another name is one if it begins as JSON does.
DOCUMENTS = (".json", ".partial")

#: What is raised about a table that cannot be read; a panic of polars is no Exception.
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)

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
    **FIXED,
    "firmware": "firmware",
    "pcie_width": "PCIe lanes",
    "links_up": "links that are up",
    "governor": "frequency governor",
    "huge_pages_reserved": "huge pages reserved",
}

_NEEDED = tuple(dict.fromkeys((
    "kind", "node", "hostname", "session", "session_id", "result", "reason", "value", *KEY,
    "noise", *OF_CHECKS, *OF_STATES,
)))  # fmt: skip

#: A table without one of these is not one of `fabricheck results export`.
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

#: How polars keeps only a part of a table in memory.
STREAMING: Literal["streaming"] = "streaming"

#: Where the nodes of many rows are told apart quickly.
_WORD = pl.Categorical()


@dataclass(frozen=True)
class Metric:
    """A metric of a partition; its values are those of the nodes that have it.

    noise: what its noise is that of; by its unit where a table does not tell.
    """

    environment: str | None
    experiment: str | None
    check: str
    name: str
    unit: str
    noise: Noise = field(default="devices", compare=False)

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
    """The nodes of one partition, measured or simulated; or its networks, by host list.

    values: a row for each node, a column for each metric, by its number; of repetitions and several
    sessions the median. Null where a node has no value; NaN where the value is no number.
    """

    where: str
    clock: str
    nodes: list[str]
    metrics: list[Metric]
    values: pl.DataFrame
    networks: bool = False

    @property
    def title(self) -> str:
        """Its name, and that it is simulated, or of networks."""
        words = [self.clock] * (self.clock != "measured") + ["networks"] * self.networks
        return f"{self.where} ({show.listed(words)})" if words else self.where

    @property
    def key(self) -> tuple[str, str, bool]:
        """What the same partition has at another time."""
        return self.where, self.clock, self.networks

    @property
    def size(self) -> str:
        """The number of its nodes or networks, in words."""
        return count(len(self.nodes), "network" if self.networks else "node")


@dataclass(frozen=True)
class Fleet:
    """The nodes that some names stand for.

    rows: the table, with the column ``origin``. partitions: by size, the largest first, those of
    networks last. problems: sentences about what cannot be read. results: the sessions among the
    names, whose documents are there.
    """

    title: str
    rows: pl.LazyFrame
    partitions: list[Partition]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    results: reading.Results | None = None

    @property
    def nodes(self) -> list[str]:
        """All nodes with a value, each once."""
        return list(dict.fromkeys(node for part in self.partitions for node in part.nodes))

    @cached_property
    def checks(self) -> pl.DataFrame:
        """Node, result and facts of each check; of tables without checks, of the metrics."""
        check, facts = ["node", "check"], ["result", *OF_CHECKS]
        checks = self.rows.filter(pl.col("kind") == "check").select(*check, *facts).unique()
        found = checks.collect(engine=STREAMING)
        if len(found):
            return found
        metrics = self.rows.filter(pl.col("kind") == "metric").group_by(check)
        return metrics.agg(pl.col(facts).first()).collect(engine=STREAMING)

    @cached_property
    def lost(self) -> list[str]:
        """The requested nodes without any result."""
        found = set(self._lost["node"]) - set(self.nodes)
        return sorted(itertools.filterfalse(nodelists.is_several, found), key=nodelists.natural)

    @property
    def lost_networks(self) -> list[str]:
        """A sentence for each network that was to be measured and has no result."""
        return [
            f"There is no result of the {nodelists.titled(node)}{f': {why}' if why else '.'}"
            for node, why in self._lost.rows()
            if nodelists.is_several(node)
        ]

    @cached_property
    def _lost(self) -> pl.DataFrame:
        rows = self.rows.filter(pl.col("kind") == "node", pl.col("result") == LOST)
        return rows.select("node", "reason").unique(maintain_order=True).collect()

    @cached_property
    def facts(self) -> pl.DataFrame:
        """Fact, value and node, where a node has it; a fact of devices has no device."""
        states = self.rows.filter(pl.col("kind") == "state").select("node", *OF_STATES)
        found = states.with_columns(pl.col("firmware").str.split(", ")).explode(
            "firmware", empty_as_null=True
        )
        facts = pl.concat([_facts(self.checks.lazy(), OF_CHECKS), _facts(found, OF_STATES)])
        return facts.unique().sort("fact", "node", "value").collect()

    def sessions(self, nodes: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        """Return by node its sessions, each with its file or folder."""
        wanted = pl.col("node").is_in(list(nodes)), pl.col("kind") != "node"
        rows = self.rows.filter(*wanted).select("node", "session_id", ORIGIN).unique()
        return grouped(
            (node, (session or "", origin or ""))
            for node, session, origin in sorted(rows.collect(engine=STREAMING).rows(), key=str)
        )


def _facts(rows: pl.LazyFrame, titles: dict[str, str]) -> pl.LazyFrame:
    texts = [pl.col(name).cast(pl.String).alias(word) for name, word in titles.items()]
    long = rows.select(pl.col("node").cast(pl.String), *texts).unpivot(
        index="node", variable_name="fact", value_name="value"
    )
    return long.drop_nulls().unique().select("fact", "value", "node")


def read(names: Sequence[str], every: bool = False, each: bool = False) -> Fleet:
    """Return the fleet that names stand for.

    :param names: tables, folders of tables or of results folders, globs, files that list names, and
        names of results as everywhere.
    :param every: all sessions of results folders, not only the latest.
    :param each: look at each table by itself first, as when they cannot be read at once.
    :raises NotFoundError: when there is nothing of a name, or no metric in all.
    :raises InvalidInputError: when nothing of it can be read.
    """
    named = list(dict.fromkeys(_expanded(names, set())))
    if names and not named:
        raise NotFoundError(f"{' '.join(names)} lists no name.")
    tables = [Path(name) for name in named if _suffix(name) in TABLES]
    others = [name for name in named if _suffix(name) not in TABLES]
    strange = [other for other in others if _is_not_json(Path(other))]
    results = [other for other in others if other not in strange]
    log = export.ExportLog(
        problems=[f"{name} is neither a table nor a result." for name in strange]
    )
    exported: list[pl.LazyFrame] = []
    found: reading.Results | None = None
    if results or not names:
        try:
            found = reading.read(results, every)
            exported = _exported(found, log)
        except InvalidInputError as error:
            if not tables:
                raise
            log.problems.append(str(error))
    rows, partitions, problems = _rows(tables, exported, each)
    problems = list(dict.fromkeys([*problems, *log.problems]))
    if rows is None:
        raise InvalidInputError("\n".join(problems))
    if not partitions:
        named_all = " ".join(names) or reading.LATEST
        raise NotFoundError(" ".join([*problems, f"{named_all} has no metric of any node."]))
    title = " ".join(names) if 0 < len(names) <= 3 else f"{len(names)} names"
    return Fleet(
        title if names else reading.LATEST,
        rows,
        partitions,
        tuple(problems),
        tuple(dict.fromkeys(log.notes)),
        # Copies, since these keep the documents that were read.
        replace(found, sources=tuple(map(replace, found.sources))) if found is not None else None,
    )


def _suffix(name: str) -> str:
    return Path(name).suffix.lower()


def _is_not_json(path: Path) -> bool:
    """Whether a path is a file that is neither a table, nor results, nor a document."""
    if not path.is_file() or archive.is_archive(path) or path.suffix.lower() in DOCUMENTS:
        return False
    try:
        with path.open("rb") as file:
            return not file.read(100).lstrip().startswith(b"{")
    except OSError:
        return False  # its reader says why it cannot be read


def _rows(
    tables: Sequence[Path], exported: Sequence[pl.LazyFrame], each: bool
) -> tuple[pl.LazyFrame | None, list[Partition], list[str]]:
    """Return the rows of tables and results, their partitions, and sentences on unreadable tables.

    Without anything that can be read there are no rows.
    """
    if not each:
        try:
            frames = [*_at_once(tables), *exported]
            rows = pl.concat(frames) if frames else None
            return rows, _partitions(rows) if rows is not None else [], []
        except (*UNREADABLE, InvalidInputError):
            pass  # A file cannot be read, or has other columns than the first one.
    scanned, problems = _one_by_one(tables)
    frames = [*scanned, *exported]
    rows = pl.concat(frames) if frames else None
    return rows, _partitions(rows) if rows is not None else [], problems


def _expanded(names: Sequence[str], seen: set[Path]) -> Iterator[str]:
    """Yield tables and names of results: of globs, lists and folders what is in them.

    :param seen: the lists that were read before, and are not read again; they are added to it.
    """
    for name in names:
        path = Path(name)
        if not path.exists() and glob.has_magic(name):
            # Unlike Path.glob it takes absolute patterns, too.
            found = sorted(glob.glob(name), key=nodelists.natural)  # noqa: PTH207
            if not found:
                raise NotFoundError(f"No file or folder fits {name}.")
            yield from _expanded(found, seen)
        elif path.is_file() and _suffix(name) in LISTS and not archive.is_archive(path):
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            lines = [line.partition("#")[0].strip() for line in read_text(path).splitlines()]
            listed = [line for line in lines if line]
            if not listed:
                raise NotFoundError(f"{path} lists no name.")
            yield from _expanded(listed, seen)
        elif path.is_dir() and not reading.holds_sessions(path):
            yield from _inside(path)
        else:
            if _suffix(name) in TABLES and not path.is_file():
                raise NotFoundError(f"There is no file {name}.")
            yield name


def _inside(folder: Path) -> Iterator[str]:
    """Yield the tables of a folder, else the results folders in it, else the folder itself."""
    paths = sorted(folder.iterdir(), key=lambda path: nodelists.natural(path.name))
    tables = [path for path in paths if path.suffix.lower() in TABLES and path.is_file()]
    results = [path for path in paths if path.is_dir() and reading.holds_sessions(path)]
    for path in tables or results or [folder]:
        yield str(path)


def _at_once(paths: Sequence[Path]) -> list[pl.LazyFrame]:
    """Return the tables of files lazily, as if all had the columns of the first one.

    :raises pl.exceptions.PolarsError: now or when they are read, where that is not so.
    """
    by_suffix = grouped((path.suffix.lower(), path) for path in paths)
    return [_needed(_scan(alike)) for alike in by_suffix.values()]


def _one_by_one(paths: Sequence[Path]) -> tuple[list[pl.LazyFrame], list[str]]:
    """Return the tables of files lazily, and a sentence for each that cannot be read."""
    problems: list[str] = []
    readable: list[tuple[object, Path]] = []
    for path in paths:
        try:
            columns = tuple(_scan([path]).collect_schema().items())
            # Damage shows only when cells are read: the greatest of a column needs all of them.
            _needed(_scan([path])).select(pl.all().max()).collect(engine=STREAMING)
        except UNREADABLE as error:
            reason = " ".join(str(error).split()).partition("This error occurred")[0]
            problems.append(f"{path}: cannot be read ({reason[:200].rstrip('. ')}).")
            continue
        except InvalidInputError as error:
            problems.append(f"{path}: {error}")
            continue
        readable.append(((path.suffix.lower(), columns), path))
    return [_needed(_scan(alike)) for alike in grouped(readable).values()], problems


def _scan(paths: list[Path]) -> pl.LazyFrame:
    """Return the tables of files of one suffix lazily; a bracket in a path is no glob."""
    if paths[0].suffix.lower() == ".parquet":
        return _required(pl.scan_parquet(paths, include_file_paths=ORIGIN, glob=False))
    return _required(pl.scan_csv(paths, infer_schema=False, include_file_paths=ORIGIN, glob=False))


def _required(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return rows that have the columns of an export.

    :raises InvalidInputError: when they lack one without which there is no fleet, or a cell of one
        that is needed may have several values.
    """
    there = rows.collect_schema()
    lacks = [f"{name} is missing" for name in _REQUIRED if name not in there]
    nested = [name for name, kind in there.items() if name in _NEEDED and kind.is_nested()]
    if lacks or nested:
        reason = [*lacks, *(f"{name} has cells of several values" for name in nested)][0]
        raise InvalidInputError(
            f"it is no table of `fabricheck results export`: the column {reason}."
        )
    return rows


def _needed(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns that a fleet needs, with their types; null where a table lacks them."""
    there = rows.collect_schema()
    types = {column.name: _TYPES[column.type] for column in columns()}
    cells = []
    for name in _NEEDED:
        kind = types[name]
        if name not in there:
            cells.append(pl.lit(None, dtype=kind).alias(name))
        elif kind == pl.Boolean() and there[name] == pl.String():
            cells.append(pl.col(name) == "true")
        else:
            cells.append(pl.col(name).cast(kind, strict=False))
    selected = rows.select(*cells, pl.col(ORIGIN))
    return selected.with_columns(pl.coalesce("node", "hostname").alias("node"))


def _exported(results: reading.Results, log: export.ExportLog) -> list[pl.LazyFrame]:
    """Return the table of results, kept in memory with the columns that a fleet needs.

    There is none of documents that cannot be read.
    """
    kept: list[pl.DataFrame] = []
    for source in results.sources:
        alone = reading.Results(
            results.name, results.title, source.results, (source,), parts=results.parts
        )
        try:
            for batch in _batches(export.stream(alone, log)):
                origin = pl.lit(str(source.results)).alias(ORIGIN)
                rows = export.frame(batch).lazy().with_columns(origin)
                kept.append(_needed(rows).collect())
        except NotFoundError as error:
            log.problems.append(str(error))
    log.problems[:0] = [problem.sentence for problem in results.problems]
    log.notes += results.notes
    silent = results.silent
    nodes = [
        {"kind": "node", "node": name, "result": LOST, "reason": requested.said}
        for name, requested in results.requested.items()
        # The results of a network may be of some of its nodes.
        if name in silent or not nodelists.is_several(name)
    ]
    if nodes:
        requested = pl.DataFrame(nodes).with_columns(pl.lit("").alias(ORIGIN)).lazy()
        kept.append(_needed(requested).collect())
    return [pl.concat(kept).lazy()] if kept else []


def _batches(rows: Iterable[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    rest = iter(rows)
    while batch := list(itertools.islice(rest, export.BATCH)):
        yield batch


def _partitions(rows: pl.LazyFrame) -> list[Partition]:
    metrics = rows.filter(pl.col("kind") == "metric", pl.col("node").is_not_null())
    words = [pl.col(name).cast(_WORD) for name in (*KEY, "node", "noise")]
    grouped = (
        metrics.select(*words, "value", pl.col("node").str.contains(r"[\[,]").alias("networks"))
        .group_by(*KEY, "networks", maintain_order=True)
        .agg(pl.col("node"), pl.col("value"), pl.col("noise").drop_nulls().first())
        .collect(engine=STREAMING)
    )
    by_partition = grouped.group_by(*PARTITION, "networks", maintain_order=True)
    found = [_partition(its) for _, its in by_partition]
    return sorted(
        found,
        key=lambda part: (part.networks, part.clock != "measured", -len(part.nodes), part.title),
    )


def _partition(grouped: pl.DataFrame) -> Partition:
    """Return the matrix of one partition.

    :param grouped: a row for each metric, with the lists of its nodes and values.
    """
    codes = grouped["node"].explode(empty_as_null=True).unique()
    names = codes.cast(pl.String)
    order = sorted(range(len(names)), key=lambda at: nodelists.natural(names[at]))
    rows = pl.DataFrame({"node": codes[order]})
    columns: list[pl.Series] = []
    metrics: list[Metric] = []
    for number, row in enumerate(grouped.select(*KEY, "noise").iter_rows(named=True)):
        check, unit = row["check"] or "", row["unit"] or ""
        unstated: Noise = "latency" if unit == "us" else "devices"
        noise = row["noise"] if row["noise"] in get_args(Noise) else unstated
        of = (row["environment"], row["experiment"], check, row["metric"], unit)
        metrics.append(Metric(*of, noise))
        values = pl.DataFrame({name: grouped[name][number] for name in ("node", "value")})
        medians = values.group_by("node").agg(pl.col("value").fill_null(math.nan).median())
        columns.append(rows.join(medians, "node", how="left", maintain_order="left")["value"])
    frame = pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)])
    nodes = rows["node"].cast(pl.String).to_list()
    first = grouped.row(0, named=True)
    where = ":".join(word for word in (first["system"], first["partition"]) if word) or "(none)"
    return Partition(where, first["clock"] or "measured", nodes, metrics, frame, first["networks"])
