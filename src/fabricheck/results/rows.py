"""The rows of results: one check, metric, series, state or node each, and how series are chosen.

Rows are plain Python, one class for each kind; a field with a description is a column of
`fabricheck results export` (docs/reference/export.md has them). A metric, a series and a state
refer to the row of their check, whose columns they share. Columns are never renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import ENGINE_SWITCHES, ENV_ENGINES, ENV_PEER_ENGINES, Clock
from fabricheck.results.entry import Entry
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.model import Place, ResultDocument
from fabricheck.results.model import Series as Measured
from fabricheck.results.run_report import MetricResult
from fabricheck.results.series import Columns, Noise, kernel_variant, members
from fabricheck.results.session import Case

#: Two devices: source and destination of a transfer, or the ranks' in order. Of a kernel's copy
#: within a peer's memory the executing device and its peer.
Pair = tuple[int, int]

Key = TypeVar("Key", bound=Hashable)

#: The experiment of every NUMA domain with every device.
OF_DOMAINS = "E4"

#: Experiments whose series by a copy engine or a kernel of the runtime are copies.
_COPIES = frozenset({"E2", "E4", "E6", "E7"})


@dataclass(slots=True, kw_only=True, eq=False)
class _Row:
    """The columns that rows of every kind have."""

    session: Annotated[str | None, "UUID of ReFrame's session; null outside a session"] = None
    session_id: Annotated[str | None, "the session's name within its results folder: run-3"] = None
    session_start: Annotated[datetime | None, "when the session began, in UTC"] = None
    system: Annotated[str | None, "ReFrame's system"] = None
    partition: Annotated[str | None, "ReFrame's partition, without the system"] = None
    node: Annotated[str | None, "the node's name in the scheduler, else its host name"] = None
    result: Annotated[str | None, "of the check: pass, fail, ...; of a node: present, lost"] = None
    reason: Annotated[str | None, "why it failed, was skipped or is lost"] = None


@dataclass(slots=True, kw_only=True, eq=False)
class Check(_Row):
    """One check on one node; ``case`` and ``entry`` are its sources."""

    case: Case | None = None
    entry: Entry | None = None

    environment: Annotated[str | None, "ReFrame's environment"] = None
    hostname: Annotated[str | None, "the host name where the program ran"] = None
    check: Annotated[str | None, "the check; outside a session the document's folder"] = None
    repetition: Annotated[int | None, "the repetition of the check, from 0 (--repeat)"] = None
    failed_attempts: Annotated[int | None, "failed attempts before the one in the row"] = None
    phase: Annotated[str | None, "ReFrame's stage in which the check failed"] = None
    experiment: Annotated[str | None, "E1 to E17"] = None
    measured_at: Annotated[
        datetime | None, "when the run began, in UTC; null without a document"
    ] = None
    clock: Annotated[Clock | None, "measured or simulated; null without a document"] = None
    complete: Annotated[bool | None, "whether the run completed; null without a document"] = None
    status: Annotated[str | None, "how the run ended: good, wrong-data, time-limit, ..."] = None
    node_model: Annotated[str | None, "the node model that was simulated"] = None
    overlay: Annotated[str | None, "the overlay that changed the simulated node"] = None
    faults_injected: Annotated[str | None, "faults that were injected into the program"] = None
    program: Annotated[str | None, "the program or tool that measured"] = None
    program_version: Annotated[str | None, "its version"] = None
    commit: Annotated[str | None, "the commit it was built from"] = None
    runtime: Annotated[str | None, "rocm, cuda, host or sim"] = None
    runtime_version: Annotated[str | None, "version of HIP or CUDA, from the runtime"] = None
    rocm_version: Annotated[str | None, "version of ROCm, from its installation"] = None
    driver: Annotated[str | None, "the version of the driver"] = None
    mpi: Annotated[str | None, "name and version of the MPI library"] = None
    rccl: Annotated[str | None, "version of RCCL or NCCL"] = None

    @property
    def where(self) -> str:
        """``system:partition``; empty outside a session."""
        return self.case.where if self.case is not None else ""

    @property
    def scheduler_node(self) -> str | None:
        """The scheduler's name of the node, where it is recorded."""
        recorded = self.entry or self.case
        return recorded.node if recorded is not None else None

    @property
    def title(self) -> str:
        """ReFrame's name of the check; outside a session the document's path."""
        if self.case is not None:
            return self.case.name
        return str(self.entry.path) if self.entry is not None else ""

    @property
    def document(self) -> ResultDocument | None:
        """The document of the run, if it can be read."""
        return self.entry.document if self.entry is not None else None


@dataclass(slots=True, kw_only=True, eq=False)
class Metric:
    """One metric of a check; ``recorded`` is its source, ``record`` what the check recorded."""

    check_row: Check
    recorded: MetricResult
    record: MetricRecord | None = None

    metric: Annotated[str, "the metric, as in the reference file"]
    value: Annotated[float | None, "the value; of a series the median of its samples"] = None
    unit: Annotated[str, "of value and its limits: GB/s (1e9 B/s), us, count or %"]
    better: Annotated[
        str | None, "whether higher or lower is better; null where the unit does not tell"
    ] = None
    reference: Annotated[
        float | None, "the reference that it was compared with; null without a limit"
    ] = None
    least: Annotated[float | None, "the least value that passes; null for no limit"] = None
    most: Annotated[float | None, "the greatest value that passes; null for no limit"] = None
    judged: Annotated[
        str | None,
        "ReFrame's result of the metric: pass, fail, xfail or xpass; report-only without a limit, "
        "which no value can miss",
    ] = None
    series: Annotated[
        tuple[int, ...] | None,
        "indices of its series in the document, from 0: [3 7]; null where unknown",
    ] = None
    reduce: Annotated[
        str | None,
        "worst, best or median of its series; peers: a member in percent of its peers; null where "
        "unknown or computed otherwise",
    ] = None
    noise: Annotated[
        Noise | None,
        "what its noise from one session to the next is that of: devices, pinned, pinned at once, "
        "moved by the host, latency, host; of a metric that of its series",
    ] = None

    @property
    def subject(self) -> Columns:
        """What identifies it within its check."""
        return (("metric", self.metric),)

    @property
    def terms(self) -> Columns:
        """How it was measured: values under other terms are not comparable."""
        return (("unit", self.unit),)

    @property
    def description(self) -> str:
        """What it is in a table beside series."""
        return "metric"

    @property
    def place(self) -> str:
        """Its name, which has the place."""
        return self.metric

    @property
    def decisive(self) -> tuple[int, ...]:
        """The indices of the series that gave its value: for worst and best not all of them."""
        document, record = self.check_row.document, self.record
        if document is None or record is None or self.value is None:
            return ()
        if record.decided or record.reduce not in ("worst", "best"):
            return record.decided or record.series
        deciding = (
            index for index in record.series if document["series"][index]["median"] == self.value
        )
        return tuple(deciding) or record.series

    @property
    def decisive_series(self) -> list[Measured]:
        """The series that gave its value; none where they are unknown."""
        document = self.check_row.document
        return [] if document is None else [document["series"][index] for index in self.decisive]

    @property
    def limit(self) -> float | None:
        """The limit on the side of worse values; None where its reference has none."""
        return self.most if self.least is None else self.least

    @property
    def margin(self) -> float | None:
        """What remains to the nearest limit, in percent of it; None without one, and of counts."""
        nearest = self.recorded.nearest_limit
        return nearest[2] if nearest is not None else None

    def is_beyond(self, value: float) -> bool:
        """Whether a value of one of its series is beyond its limits."""
        low = self.least is not None and value < self.least
        return low or (self.most is not None and value > self.most)


@dataclass(slots=True, kw_only=True, eq=False)
class Series:
    """One series of a document: an operation at one size in one place.

    ``measured`` is the series itself, with its samples.
    """

    check_row: Check
    document: ResultDocument
    measured: Measured

    index: Annotated[int, "index of the series in its document, from 0"]
    experiment: Annotated[str, "E1 to E17"]
    value: Annotated[float, "the value; of a series the median of its samples"]
    unit: Annotated[str, "of value and its limits: GB/s (1e9 B/s), us, count or %"]
    better: Annotated[str, "whether higher or lower is better; null where the unit does not tell"]
    operation: Annotated[str, "what was done: copy, h2d, engine, allreduce, ..."]
    role: Annotated[str, "single; of several at once a share or their sum"]
    direction: Annotated[str, "local, one-way, both-ways or collective"]
    engine: Annotated[str, "what moves the data: kernel, copy-engine, cpu, mpi, rccl"]
    engines: Annotated[int | None, "how many copy engines share one copy, where known"] = None
    stores: Annotated[str | None, "how a kernel writes: plain or streaming"] = None
    loads: Annotated[str | None, "how a kernel reads: plain or streaming"] = None
    movement: Annotated[str | None, "of E3: zero-copy, page-migration or prefetch"] = None
    placement: Annotated[str | None, "the placement of ranks (E6)"] = None
    datatype: Annotated[str | None, "of messages: byte, int32, float or double"] = None
    in_place: Annotated[bool | None, "of RCCL: whether a rank receives where it sends"] = None
    link_class: Annotated[
        str | None, "link class of the pair in the node model: links4, switch18, ..."
    ] = None
    devices: Annotated[tuple[int, ...], "the devices at work, in order: [0 1]"]
    device_count: Annotated[int, "number of devices at work"]
    device: Annotated[int | None, "the executing device, or the one whose state it is"] = None
    device_name: Annotated[str | None, "its name"] = None
    device_arch: Annotated[str | None, "its architecture: gfx90a, sm_90"] = None
    pci_address: Annotated[str | None, "its PCI address"] = None
    unique_id: Annotated[str | None, "its unique id"] = None
    source_memory: Annotated[str, "kind of memory that is read"]
    source_device: Annotated[int | None, "the device that has it"] = None
    source_domain: Annotated[int | None, "NUMA domain of host memory, where known"] = None
    destination_memory: Annotated[str, "kind of memory that is written"]
    destination_device: Annotated[int | None, "the device that has it"] = None
    destination_domain: Annotated[int | None, "NUMA domain of host memory, where known"] = None
    ranks: Annotated[tuple[int, ...] | None, "the ranks that take part, in order: [0 1]"] = None
    rank_count: Annotated[int | None, "number of ranks"] = None
    bytes: Annotated[int, "size of one array or message"]
    bytes_moved: Annotated[int, "bytes counted as moved by one operation"]
    bytes_counted: Annotated[str, "how bytes are counted: once, read+write or bus"]
    regime: Annotated[str, "memory, or cache for arrays near the size of the caches"]
    block_size: Annotated[int | None, "threads per block of a kernel"] = None
    elements: Annotated[int | None, "elements of 16 bytes a thread of a kernel"] = None
    grid: Annotated[int | None, "blocks of a kernel that loops over the arrays"] = None
    batch: Annotated[int, "operations per sample"]
    passes: Annotated[int | None, "operations per launch of a kernel"] = None
    n: Annotated[int, "number of samples of the series"]
    sample: Annotated[int | None, "index of the sample, from 0 in the order of measurement"] = None
    mad: Annotated[float | None, "median absolute deviation, in unit, not scaled"] = None
    ci_low: Annotated[float | None, "lower end of the median's 95 % interval, in unit"] = None
    ci_high: Annotated[float | None, "upper end of the median's 95 % interval, in unit"] = None
    noise: Annotated[
        Noise,
        "what its noise from one session to the next is that of: devices, pinned, pinned at once, "
        "moved by the host, latency, host; of a metric that of its series",
    ]
    noisy: Annotated[bool, "whether the interval is wider than the run's noise limit"]
    host_clock_agrees: Annotated[bool | None, "whether the host's clock agrees"] = None
    bytes_checked: Annotated[int, "bytes that were compared; 0 means not verified"]
    errors: Annotated[int, "elements that differed; above 0 means wrong data"]
    verified_by: Annotated[str, "program or tool"]
    pj_per_bit: Annotated[
        float | None,
        "energy in pJ of the devices at work for a bit of bytes_moved, derived from counters while "
        "the operation was held; null where none was measured",
    ] = None
    pj_per_bit_low: Annotated[float | None, "lower end of its 95 % interval"] = None
    pj_per_bit_high: Annotated[float | None, "upper end of its 95 % interval"] = None
    net_pj_per_bit: Annotated[float | None, "the same without their idle power"] = None
    net_pj_per_bit_low: Annotated[float | None, "lower end, with the error of idle power"] = None
    net_pj_per_bit_high: Annotated[float | None, "upper end, with the error of idle power"] = None
    energy_by_package: Annotated[
        bool | None, "whether a counter of them counts another device of its package too"
    ] = None
    energy_same_clock: Annotated[
        bool | None, "whether the clock when idle was that under load; null where not known"
    ] = None
    node_pj_per_bit: Annotated[float | None, "the same of the whole node, by its own counter"] = (
        None
    )
    held_j: Annotated[
        float | None, "energy in J that the devices at work took while the operation was held"
    ] = None
    idle_devices_j: Annotated[
        float | None, "the same of the devices that had no part in it; null where none was counted"
    ] = None

    @property
    def check(self) -> str:
        """ReFrame's name of the check, empty outside a session."""
        return self.check_row.case.name if self.check_row.case is not None else ""

    @property
    def clock(self) -> Clock:
        """``measured`` or ``simulated``."""
        return self.document["clock"]

    @property
    def program(self) -> str:
        """The measuring program: one of this suite's, ``osu`` or ``rccl``."""
        return self.document["program"]["name"]

    @property
    def subject(self) -> Columns:
        """Who moved what from where to where."""
        return (
            ("program", self.program),
            ("experiment", self.experiment),
            ("operation", self.operation),
            ("role", self.role),
            ("device", self.device),
            ("device_set", self.devices),
            ("source", (self.source_memory, self.source_device)),
            ("destination", (self.destination_memory, self.destination_device)),
            ("engine", self.engine),
            ("direction", self.direction),
            ("ranks", self.ranks),
            ("placement", self.placement),
        )

    @property
    def terms(self) -> Columns:
        """How it was measured: values of one subject under other terms are not comparable.

        domains: the NUMA domains in E4, which measures them; empty elsewhere, where the domain near
        the device or rank is used, whatever its number. engines_off: the variables that turn AMD's
        copy engines off. shared_by: the number of engines that share a copy, where known and more
        than one.
        """
        domains = (self.source_domain, self.destination_domain)
        environment = (
            self.document["environment"] if self.check_row.runtime in ("rocm", "sim") else {}
        )
        return (
            ("unit", self.unit),
            ("bytes_counted", self.bytes_counted),
            ("size", self.bytes),
            ("block_size", self.block_size),
            # Documents from before these were recorded have the defaults.
            ("elements", self.elements or (1 if self.engine == "kernel" else None)),
            ("loads", self.loads or ("plain" if self.engine == "kernel" else None)),
            ("grid", self.grid),
            ("datatype", self.datatype),
            ("movement", self.movement),
            ("in_place", self.in_place),
            ("domains", domains if self.experiment == OF_DOMAINS else ()),
            (
                "engines_off",
                tuple(switch for switch in ENGINE_SWITCHES if environment.get(switch) == "0"),
            ),
            ("shared_by", self.engines if self.ganged else None),
        )

    @property
    def members(self) -> tuple[str, str]:
        """Who takes part, as a noun and numbers."""
        return members(self.measured)

    @property
    def place(self) -> str:
        """Who takes part, and the NUMA domain at the host's end where it is known, in words."""
        domain = "" if self.host_domain is None else f", NUMA domain {self.host_domain}"
        return " ".join(self.members) + domain

    @property
    def description(self) -> str:
        """What was done, in words: experiment, operation, memory and role, in any place."""
        memory = "-".join(
            dict.fromkeys(
                memory.removeprefix("host-")
                for memory in (self.source_memory, self.destination_memory)
            )
        )
        parts = [self.experiment, self.operation, memory.replace("device-peer", "peer")]
        if self.role != "single":
            parts.append(self.role)
        stated = "both" in self.operation or self.operation == "there-and-back"
        if self.direction == "both-ways" and not stated:
            parts.append("both ways")
        return " ".join([*parts, *([self.movement] if self.movement else [])])

    @property
    def by_engines(self) -> bool:
        """Whether copy engines may move the data (AMD).

        For copies the series states it; otherwise, and in older documents, it is true unless
        HSA_ENABLE_SDMA is 0.
        """
        if self.experiment in _COPIES and "engines" in self.measured:
            return self.engine == "copy-engine"
        return self.document["environment"].get(ENV_ENGINES) != "0"

    @property
    def by_peer_switch_alone(self) -> bool:
        """Whether HSA_ENABLE_PEER_SDMA is 0 and HSA_ENABLE_SDMA is not."""
        environment = self.document["environment"]
        off = [environment.get(name) == "0" for name in (ENV_PEER_ENGINES, ENV_ENGINES)]
        return off == [True, False]

    @property
    def in_threads(self) -> bool:
        """Whether each device of a process has a thread, in a third-party tool."""
        launches = self.document["options"].get("launches", ())
        return any(launch.get("threads", 1) > 1 for launch in launches)

    @property
    def ganged(self) -> bool:
        """Whether several copy engines share one copy, as far as known."""
        return (self.engines or 1) > 1

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median; None for too few samples, as of a simulated one."""
        if self.ci_low is None or self.ci_high is None:
            return None
        return self.ci_low, self.ci_high

    @property
    def variant(self) -> str:
        """How its kernel differs from the default: elements, loads, grid; empty if it does not."""
        return kernel_variant(self.measured)

    @property
    def pair(self) -> Pair | None:
        """The two devices of a transfer between devices, else None."""
        return (self.devices[0], self.devices[1]) if len(self.devices) == 2 else None

    @property
    def taking_part(self) -> int | None:
        """The number of ranks, or of devices, of a message or collective, else None."""
        return len(self.ranks or self.devices) or None

    @property
    def host(self) -> Place | None:
        """The end of a transfer that is on the host, else None."""
        for place in (self.measured["source"], self.measured["destination"]):
            if place["memory"].startswith("host") or place["memory"] == "managed":
                return place
        return None

    @property
    def host_memory(self) -> str | None:
        """The kind of memory at the host's end: host-pinned, host-pageable, managed, or None."""
        return self.host["memory"] if self.host else None

    @property
    def host_domain(self) -> int | None:
        """The NUMA domain at the host's end, where known."""
        return self.host["numa_domain"] if self.host else None

    @property
    def right(self) -> bool:
        """Whether the data was right, and no fault was injected."""
        return not self.errors and not self.document["faults_injected"]


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """One device, or the host, before or after the program of a check, as values by column.

    Columns are the members of their types in a document, and what sums up others.
    """

    check_row: Check
    values: Mapping[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Node(_Row):
    """One requested node, and whether it left any result."""


Row = Check | Metric | Series | State | Node


def by_place(rows: Iterable[Check]) -> dict[tuple[str, str | None], list[Check]]:
    """Return checks by partition and the scheduler's name of the node.

    Where a partition has one node, checks without one join it.
    """
    all_rows = list(rows)
    nodes = grouped((row.where, row.scheduler_node) for row in all_rows)
    named = {where: {name for name in names if name is not None} for where, names in nodes.items()}
    only = {where: names.pop() for where, names in named.items() if len(names) == 1}
    by_node: dict[tuple[str, str | None], list[Check]] = {
        (where, node): [] for where, names in nodes.items() for node in names
    }
    for row in all_rows:
        by_node[row.where, row.scheduler_node or only.get(row.where)].append(row)
    return {place: names for place, names in by_node.items() if names}


def select(rows: Iterable[Series], **fields: Any) -> list[Series]:
    """Return the series whose fields and properties have these values.

    :param fields: by name a value, or a set that contains it (``operation={"read"}``).
    """
    wanted = {
        name: value if isinstance(value, (set, frozenset)) else {value}
        for name, value in fields.items()
    }
    return [row for row in rows if all(getattr(row, name) in wanted[name] for name in wanted)]


def largest(rows: Iterable[Series], key: Callable[[Series], Key]) -> Mapping[Key, Series]:
    """Return the largest series of each key; the first one of equal size."""
    largest_of: dict[Key, Series] = {}
    for row in rows:
        name = key(row)
        if name not in largest_of or row.bytes > largest_of[name].bytes:
            largest_of[name] = row
    return largest_of


def curve(rows: Iterable[Series]) -> list[Series]:
    """Return the series by size, the first of each size."""
    return [first for _, (first, *_) in sorted(grouped((row.bytes, row) for row in rows).items())]
