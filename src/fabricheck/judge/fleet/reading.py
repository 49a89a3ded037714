"""Reading of a fleet: the metrics of many nodes, as a matrix for each partition.

Everything becomes one table in memory with columns of `fabricheck results export`: files of that
table are scanned, and sessions are exported. Of these columns it has the few that a fleet needs,
whose words are stored once, so that thousands of nodes fit into memory.
"""

from __future__ import annotations

import glob
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import polars as pl

from fabricheck.core import nodelists, show
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.text import count, read_text
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.comparison.circumstances import FIXED
from fabricheck.results import archive, export, reading
from fabricheck.results.metric_records import RENAMED
from fabricheck.results.series import Noise
from fabricheck.results.table import LOST

#: The files of tables, by suffix.
_TABLES = (".parquet", ".csv")

#: The suffixes of files that list names, one a line.
_LISTS = (".txt", ".list")

#: The suffixes of result documents. One of another name is one if it begins as JSON does.
_DOCUMENTS = (".json", ".partial")

#: What is raised about a table that cannot be read; a panic of polars is no Exception.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)

#: The columns that tell a metric from others, and those of its partition.
_PARTITION = ("system", "partition", "clock")
_KEY = (*_PARTITION, "environment", "experiment", "check", "metric", "unit")

#: Facts about software, host and devices by column, in words.
_FACTS = {
    "program_version": "programs",
    "commit": "commit of the programs",
    "runtime_version": "runtime",
    "rocm_version": "ROCm",
    "driver": "driver",
    "mpi": "MPI",
    "rccl": "RCCL",
    **FIXED,
    "firmware": "firmware",
    "pcie_width": "PCIe lanes",
    "links_up": "links that are up",
    "governor": "frequency governor",
    "huge_pages_reserved": "huge pages reserved",
}

#: The types of rows that a fleet needs, and their columns beside the value, whose cells are words.
_ROW_TYPES = ("check", "metric", "state", "node")
_WORDS = ("row_type", "node", "hostname", "session_id", "result", *_KEY, "noise", *_FACTS)

#: A table without one of these is not one of `fabricheck results export`.
_REQUIRED = ("row_type", "node", "check", "metric", "value", "unit")

#: The file or the results folder that a row is from.
ORIGIN = "origin"

#: A word is stored once, however many cells have it.
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
        words = []
        if self.clock != "measured":
            words.append(self.clock)
        if self.networks:
            words.append("networks")
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
    networks last. requested: the nodes that its sessions were to measure, and the networks without
    a result, with how the part of each ended. problems: sentences about what cannot be read.
    results: the sessions among the names, whose documents are there.
    """

    title: str
    rows: pl.DataFrame
    partitions: list[Partition]
    requested: Mapping[str, str | None]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    results: reading.Results | None = None

    @property
    def nodes(self) -> list[str]:
        """All nodes with a value, each once."""
        return list(dict.fromkeys(node for part in self.partitions for node in part.nodes))

    @cached_property
    def lost(self) -> list[str]:
        """The requested nodes without any result."""
        nodes = self.rows.filter(pl.col("row_type") == "node", pl.col("result") == LOST)["node"]
        single = itertools.filterfalse(nodelists.is_several, self.requested)
        return sorted({*nodes.drop_nulls(), *single} - {*self.nodes}, key=nodelists.natural)

    @property
    def lost_networks(self) -> list[str]:
        """A sentence for each network that was to be measured and has no result."""
        return [
            f"There is no result of the {nodelists.titled(name)}{f': {why}' if why else '.'}"
            for name, why in self.requested.items()
            if nodelists.is_several(name)
        ]

    @cached_property
    def facts(self) -> pl.DataFrame:
        """Fact, value and node, where a node has it; a fact of devices has no device."""
        each = (
            self.rows.select("node", *_FACTS).unique().unpivot(index="node", variable_name="fact")
        )
        words = each.drop_nulls().unique().with_columns(pl.col("node", "value").cast(pl.String))
        of_firmware = pl.col("fact") == "firmware"
        values = (
            pl.when(of_firmware)
            .then(pl.col("value").str.split(", "))
            .otherwise(pl.concat_list("value"))
        )
        facts = words.with_columns(value=values, fact=pl.col("fact").replace(_FACTS))
        return facts.explode("value", empty_as_null=True).unique().sort("fact", "node", "value")

    def sessions(self, nodes: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        """Return by node its sessions, each with its file or folder."""
        word = pl.col("node", "row_type", "session_id").cast(pl.String)
        rows = (
            self.rows.select("node", "session_id", ORIGIN, "row_type").unique().with_columns(word)
        )
        wanted = rows.filter(pl.col("node").is_in(list(nodes)), pl.col("row_type") != "node")
        return grouped(
            (node, (session or "", origin or ""))
            for node, session, origin in sorted(wanted.drop("row_type").unique().rows(), key=str)
        )


def read(names: Sequence[str], all_sessions: bool = False) -> Fleet:
    """Return the fleet that names stand for.

    :param names: tables, folders of tables or of results folders, globs, files that list names, and
        names of results as everywhere.
    :param all_sessions: all of results folders, not only the latest.
    :raises NotFoundError: when there is nothing of a name, or no metric in all.
    :raises InvalidInputError: when nothing of it can be read.
    """
    named = list(dict.fromkeys(_expanded(names, set())))
    if names and not named:
        raise NotFoundError(f"{' '.join(names)} lists no name.")
    tables = [Path(name) for name in named if _suffix(name) in _TABLES]
    others = [name for name in named if _suffix(name) not in _TABLES]
    strange = [other for other in others if _is_not_json(Path(other))]
    asked = [other for other in others if other not in strange]
    log = export.ExportLog(
        problems=[f"{name} is neither a table nor a result." for name in strange]
    )
    by_suffix = grouped((path.suffix.lower(), path) for path in tables)
    unread: list[str] = []
    frames = [frame for alike in by_suffix.values() for frame in _tables(alike, unread)]
    requested: dict[str, str | None] = {}
    results: reading.Results | None = None
    if asked or not names:
        try:
            results = reading.read(asked, all_sessions)
            frames += _exported(results, log)
            requested = _requested(results)
        except InvalidInputError as error:
            if not tables:
                raise
            log.problems.append(str(error))
    problems = tuple(dict.fromkeys([*unread, *log.problems]))
    if problems and not (frames or requested):
        raise InvalidInputError("\n".join(problems))
    values, rows = map(pl.concat, zip(*frames, strict=True)) if frames else 2 * (pl.DataFrame(),)
    partitions = _partitions(values) if frames else []
    if not partitions:
        named_all = " ".join(names) or reading.LATEST
        raise NotFoundError(" ".join([*problems, f"{named_all} has no metric of any node."]))
    title = " ".join(names) if 0 < len(names) <= 3 else f"{len(names)} names"
    return Fleet(
        title if names else reading.LATEST,
        rows,
        partitions,
        requested,
        problems,
        tuple(dict.fromkeys(log.notes)),
        # Copies, since these keep the documents that were read.
        results and replace(results, sources=tuple(map(replace, results.sources))),
    )


def _suffix(name: str) -> str:
    return Path(name).suffix.lower()


def _is_not_json(path: Path) -> bool:
    """Whether a path is a file that is neither a table, nor results, nor a document."""
    if not path.is_file() or archive.is_archive(path) or path.suffix.lower() in _DOCUMENTS:
        return False
    try:
        with path.open("rb") as file:
            return not file.read(100).lstrip().startswith(b"{")
    except OSError:
        return False  # its reader says why it cannot be read


def _expanded(names: Sequence[str], seen: set[Path]) -> Iterator[str]:
    """Yield tables and names of results: of globs, lists and folders what is in them.

    :param seen: the lists that were read before, and are not read again; they are added to it.
    """
    for name in names:
        path = Path(name)
        if not path.exists() and glob.has_magic(name):
            # Unlike Path.glob it takes absolute patterns, too.
            paths = sorted(glob.glob(name), key=nodelists.natural)  # noqa: PTH207
            if not paths:
                raise NotFoundError(f"No file or folder fits {name}.")
            yield from _expanded(paths, seen)
        elif path.is_file() and _suffix(name) in _LISTS and not archive.is_archive(path):
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
            if _suffix(name) in _TABLES and not path.is_file():
                raise NotFoundError(f"There is no file {name}.")
            yield name


def _inside(folder: Path) -> Iterator[str]:
    """Yield the tables of a folder, else the results folders in it, else the folder itself."""
    paths = sorted(folder.iterdir(), key=lambda path: nodelists.natural(path.name))
    tables = [path for path in paths if path.suffix.lower() in _TABLES and path.is_file()]
    results = [path for path in paths if path.is_dir() and reading.holds_sessions(path)]
    for path in tables or results or [folder]:
        yield str(path)


def _tables(paths: list[Path], problems: list[str]) -> Iterator[list[pl.DataFrame]]:
    """Yield the tables of files of one suffix: read at once, or by halves where that fails.

    It fails where a file cannot be read, or has other columns than the first one.

    :param problems: a sentence is added for each file that cannot be read.
    """
    try:
        # A bracket in a path is no glob.
        if paths[0].suffix.lower() == ".parquet":
            rows = pl.scan_parquet(paths, include_file_paths=ORIGIN, glob=False)
        else:
            rows = pl.scan_csv(paths, infer_schema=False, include_file_paths=ORIGIN, glob=False)
        yield _needed(rows)
        return
    except InvalidInputError as error:
        reason = str(error)
    except _UNREADABLE as error:
        first = " ".join(str(error).split()).partition("This error occurred")[0]
        reason = f"cannot be read ({first[:200].rstrip('. ')})."
    if len(paths) == 1:
        problems.append(f"{paths[0]}: {reason}")
    else:
        half = len(paths) // 2
        yield from _tables(paths[:half], problems)
        yield from _tables(paths[half:], problems)


def _needed(rows: pl.LazyFrame) -> list[pl.DataFrame]:
    """Return what a fleet needs of an export: the metrics of nodes, and the facts about them.

    A column that it lacks is null.

    :raises InvalidInputError: when it lacks one without which there is no fleet, or a cell of one
        that is needed may have several values.
    """
    rows = _renewed(rows)
    there = rows.collect_schema()
    lacks = [f"{name} is missing" for name in _REQUIRED if name not in there]
    needed = (*_WORDS, "value")
    nested = [name for name, kind in there.items() if name in needed and kind.is_nested()]
    if lacks or nested:
        reason = [*lacks, *(f"{name} has cells of several values" for name in nested)][0]
        raise InvalidInputError(
            f"it is no table of `fabricheck results export`: the column {reason}."
        )
    words = [
        (pl.col(name) if name in there else pl.lit(None)).cast(pl.String).cast(_WORD).alias(name)
        for name in _WORDS
    ]
    selected = (
        rows.filter(pl.col("row_type").cast(pl.String).is_in(_ROW_TYPES))
        .select(*words, pl.col("value").cast(pl.Float64, strict=False), ORIGIN)
        .with_columns(node=pl.coalesce("node", "hostname"))
    )
    values = selected.filter(pl.col("row_type") == "metric", pl.col("node").is_not_null())
    about = selected.select(
        "row_type", "node", "check", "session_id", "result", ORIGIN, *_FACTS
    ).unique()
    return pl.collect_all(
        [values.select(*_KEY, "node", "noise", "value"), about], engine="streaming"
    )


def _renewed(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return a table with today's names of columns and metrics."""
    names = rows.collect_schema().names()
    if "kind" in names and "row_type" not in names:
        rows = rows.rename({"kind": "row_type"})
    if "metric" in names:
        rows = rows.with_columns(pl.col("metric").cast(pl.String).replace(dict(RENAMED)))
    return rows


def _exported(results: reading.Results, log: export.ExportLog) -> Iterator[list[pl.DataFrame]]:
    """Yield the tables of sessions."""
    log.problems[:0] = [problem.sentence for problem in results.problems]
    log.notes += results.notes
    for number, source in enumerate(results.sources, 1):
        with show.working(f"reading session {number} of {len(results.sources)}"):
            # A copy: what it reads is not kept.
            rows = export.of_source(replace(source), log, several=bool(results.parts))
            while batch := list(itertools.islice(rows, export.BATCH)):
                origin = pl.lit(str(source.results)).alias(ORIGIN)
                yield _needed(export.frame(batch).lazy().with_columns(origin))


def _requested(results: reading.Results) -> dict[str, str | None]:
    """Return how the parts of requested nodes ended, and of networks without a result."""
    requested = results.requested
    silent = results.silent if any(map(nodelists.is_several, requested)) else ()
    # The results of a network may be of some of its nodes.
    return {
        name: node.how_ended
        for name, node in requested.items()
        if name in silent or not nodelists.is_several(name)
    }


def _partitions(values: pl.DataFrame) -> list[Partition]:
    several = pl.col("node").cast(pl.String).str.contains(r"[\[,]").alias("networks")
    by_partition = values.with_columns(several).partition_by(
        *_PARTITION, "networks", maintain_order=True
    )
    return sorted(
        map(_partition, by_partition),
        key=lambda part: (part.networks, part.clock != "measured", -len(part.nodes), part.title),
    )


def _partition(rows: pl.DataFrame) -> Partition:
    """Return the matrix of one partition from the rows of its metrics."""
    each = rows.group_by(*_KEY, maintain_order=True).agg(pl.col("noise").drop_nulls().first())
    numbered = each.select(*_KEY).with_row_index("number")
    values = (
        rows.join(numbered, on=_KEY, nulls_equal=True)
        .select("number", "node", pl.col("value").fill_null(math.nan))
        .pivot("number", index="node", values="value", aggregate_function="median")
        .with_columns(pl.col("node").cast(pl.String))
    )
    names = values["node"].to_list()
    in_order = values[sorted(range(len(names)), key=lambda at: nodelists.natural(names[at]))]
    first = each.row(0, named=True)
    where = ":".join(word for word in (first["system"], first["partition"]) if word) or "(none)"
    return Partition(
        where,
        first["clock"] or "measured",
        in_order["node"].to_list(),
        [_metric(row) for row in each.iter_rows(named=True)],
        in_order.select(map(str, range(len(each)))),
        rows["networks"][0],
    )


def _metric(row: Mapping[str, Any]) -> Metric:
    unit = row["unit"] or ""
    unstated: Noise = "latency" if unit == "us" else "devices"
    noise = row["noise"] if row["noise"] in get_args(Noise) else unstated
    check = row["check"] or ""
    return Metric(row["environment"], row["experiment"], check, row["metric"], unit, noise)
