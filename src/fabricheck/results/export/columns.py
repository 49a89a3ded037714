"""The columns of the table: their names, types, and what they mean. Names stay as they are.

docs/export.md has the same list, and so has every Parquet file, in its metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fabricheck.core.vocabulary import Engine

Kind = Literal["metric", "series", "sample", "check", "node"]
Type = Literal["text", "integer", "number", "boolean", "time"]

_EVERY: tuple[Kind, ...] = ("metric", "series", "sample", "check", "node")
_CHECKS: tuple[Kind, ...] = ("metric", "series", "sample", "check")
_VALUES: tuple[Kind, ...] = ("metric", "series", "sample")
_SERIES: tuple[Kind, ...] = ("series", "sample")


@dataclass(frozen=True)
class Column:
    """One variable.

    kinds: the kinds of rows that may have it; it is null in all others.
    """

    name: str
    type: Type
    kinds: tuple[Kind, ...]
    meaning: str


COLUMNS = (
    Column("kind", "text", _EVERY, "what the row is: metric, series, sample, check or node"),
    Column("session", "text", _EVERY, "UUID of ReFrame's session; null outside of one"),
    Column("session_id", "text", _EVERY, "its name within its results folder: run-3"),
    Column("session_start", "time", _EVERY, "when it began, in UTC"),
    Column("system", "text", _EVERY, "ReFrame's system"),
    Column("partition", "text", _EVERY, "ReFrame's partition, without the system"),
    Column("environment", "text", _CHECKS, "ReFrame's environment"),
    Column("node", "text", _EVERY, "the node by the scheduler's name, else by its host name"),
    Column("hostname", "text", _CHECKS, "the host name where the program ran"),
    Column("check", "text", _CHECKS, "the check; outside of a session the document's folder"),
    Column("repetition", "integer", _CHECKS, "which repetition of the check, from 0 (--repeat)"),
    Column("result", "text", _EVERY, "of the check: pass, fail, ...; of a node: present, lost"),
    Column("failed_attempts", "integer", _CHECKS, "attempts that failed before the one of the row"),
    Column("phase", "text", _CHECKS, "ReFrame's stage in which a failed check failed"),
    Column("reason", "text", ("check", "node"), "why it failed, was skipped or is lost"),
    Column("experiment", "text", _CHECKS, "E1 to E15"),
    Column("metric", "text", ("metric",), "the metric, as in the reference file"),
    Column("value", "number", _VALUES, "the value; of a series the median of its samples"),
    Column("unit", "text", _VALUES, "of value and all beside it: GB/s (1e9 B/s), us, count or %"),
    Column("better", "text", _VALUES, "higher or lower; null for units that do not tell"),
    Column("reference", "number", ("metric",), "the reference it was held against"),
    Column("least", "number", ("metric",), "the least value that passes; null for no limit"),
    Column("most", "number", ("metric",), "the greatest value that passes; null for no limit"),
    Column("judged", "text", ("metric",), "ReFrame's result of the metric: pass, fail, xfail"),
    Column("operation", "text", _SERIES, "what was done: copy, h2d, engine, allreduce, ..."),
    Column("role", "text", _SERIES, "single; of several at once a share or their sum"),
    Column("direction", "text", _SERIES, "local, one-way, both-ways or collective"),
    Column("engine", "text", _SERIES, f"who moves the data: {', '.join(get_args(Engine))}"),
    Column("engines", "integer", _SERIES, "how many copy engines share one copy, where known"),
    Column("stores", "text", _SERIES, "how a kernel writes: plain or streaming"),
    Column("movement", "text", _SERIES, "of E3: zero-copy, page-migration or prefetch"),
    Column("placement", "text", _SERIES, "the placement of ranks (E6)"),
    Column("datatype", "text", _SERIES, "of messages: byte, int32, float or double"),
    Column("in_place", "boolean", _SERIES, "of RCCL: whether a rank receives where it sends"),
    Column("link_class", "text", _SERIES, "class of the pair by the node model: quad, dual, ..."),
    Column("devices", "text", _SERIES, "the devices at work, in order: [0 1]"),
    Column("device_count", "integer", _SERIES, "how many these are"),
    Column("device", "integer", _SERIES, "the device that works, where it is one"),
    Column("device_name", "text", _SERIES, "its name"),
    Column("device_arch", "text", _SERIES, "its architecture: gfx90a, sm_90"),
    Column("pci_address", "text", _SERIES, "its PCI address"),
    Column("unique_id", "text", _SERIES, "its unique id"),
    Column("source_memory", "text", _SERIES, "kind of memory that is read"),
    Column("source_device", "integer", _SERIES, "the device that holds it"),
    Column("source_domain", "integer", _SERIES, "NUMA domain of host memory, where known"),
    Column("destination_memory", "text", _SERIES, "kind of memory that is written"),
    Column("destination_device", "integer", _SERIES, "the device that holds it"),
    Column("destination_domain", "integer", _SERIES, "NUMA domain of host memory, where known"),
    Column("ranks", "text", _SERIES, "the ranks that take part, in order: [0 1]"),
    Column("rank_count", "integer", _SERIES, "how many these are"),
    Column("bytes", "integer", _SERIES, "size of one array or message"),
    Column("bytes_moved", "integer", _SERIES, "bytes that count as moved by one operation"),
    Column("bytes_counted", "text", _SERIES, "how these are counted: once, read+write or bus"),
    Column("regime", "text", _SERIES, "memory, or cache for arrays near the size of the caches"),
    Column("block_size", "integer", _SERIES, "threads per block of a kernel"),
    Column("batch", "integer", _SERIES, "operations per sample"),
    Column("passes", "integer", _SERIES, "operations per launch of a kernel"),
    Column("n", "integer", _SERIES, "number of samples of the series"),
    Column("sample", "integer", ("sample",), "which sample, from 0 in the order of measurement"),
    Column("mad", "number", ("series",), "median absolute deviation, in unit, not scaled"),
    Column("ci_low", "number", ("series",), "lower end of the median's 95 % interval, in unit"),
    Column("ci_high", "number", ("series",), "upper end of it"),
    Column("noisy", "boolean", _SERIES, "whether the interval is wider than the run's noise limit"),
    Column("host_clock_agrees", "boolean", _SERIES, "whether the host's clock says the same"),
    Column("bytes_checked", "integer", _SERIES, "bytes that were compared; 0 is not verified"),
    Column("errors", "integer", _SERIES, "elements that differed; not 0 is wrong data"),
    Column("verified_by", "text", _SERIES, "program or tool"),
    Column("measured_at", "time", _CHECKS, "when the run began, in UTC; null without a document"),
    Column("clock", "text", _CHECKS, "measured or simulated; null the same"),
    Column("complete", "boolean", _CHECKS, "whether the run came to its end; null the same"),
    Column("status", "text", _CHECKS, "how the run ended: good, wrong-data, time-limit, ..."),
    Column("node_model", "text", _CHECKS, "the node model that was simulated"),
    Column("overlay", "text", _CHECKS, "what changed the simulated node on purpose"),
    Column("faults_injected", "text", _CHECKS, "faults made on purpose in the program"),
    Column("program", "text", _CHECKS, "the program or tool that measured"),
    Column("program_version", "text", _CHECKS, "its version"),
    Column("commit", "text", _CHECKS, "the commit it was built from"),
    Column("runtime", "text", _CHECKS, "rocm, cuda, host or sim"),
    Column("runtime_version", "text", _CHECKS, "version of ROCm or CUDA, by the runtime"),
    Column("driver", "text", _CHECKS, "the version of the driver"),
    Column("mpi", "text", _CHECKS, "name and version of the MPI library"),
    Column("rccl", "text", _CHECKS, "version of RCCL or NCCL"),
)  # fmt: skip

NAMES = tuple(column.name for column in COLUMNS)
