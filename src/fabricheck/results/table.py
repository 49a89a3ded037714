"""The table of results: a row is one check, metric, series, state or node.

Rows are plain Python, one class for each kind; a field with a description is a column of
`fabricheck results export` (docs/reference/export.md has them). A metric, a series and a state
refer to the row of their check, whose columns they share. Columns are never renamed.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import moment
from fabricheck.core.vocabulary import (
    BETTER,
    ENGINE_SWITCHES,
    ENV_ENGINES,
    ENV_PEER_ENGINES,
    Clock,
    LinkError,
)
from fabricheck.node import NodeModel, products
from fabricheck.results.entry import Entry
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.model import (
    BusyProcess,
    Device,
    DeviceProcess,
    DeviceState,
    HostState,
    MemoryErrors,
    Pcie,
    Place,
    ResultDocument,
)
from fabricheck.results.model import Series as Measured
from fabricheck.results.requested_nodes import RequestedNodes
from fabricheck.results.series import (
    Columns,
    Noise,
    device_pair,
    kernel_variant,
    members,
    noise,
)
from fabricheck.results.session import REPETITION, Case, MetricResult, Session

Type = Literal["text", "integer", "number", "boolean", "time"]

#: Two devices: source and destination of a transfer, or the ranks' in order. Of a kernel's copy
#: within a peer's memory the executing device and its peer.
Pair = tuple[int, int]

Key = TypeVar("Key", bound=Hashable)

#: The result of a requested node without any check in the table, and of one with checks.
LOST = "lost"
PRESENT = "present"
#: A metric without a limit: its value is recorded, and no value can miss it.
REPORT_ONLY = "report-only"


#: Experiments whose two devices are the ends of a transfer, so that they have a link class.
_OF_PAIRS = frozenset({"E7", "E8", "E9", "E14"})

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
    def kind(self) -> str:
        """The kind of value in a table beside series."""
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
        own = (
            index for index in record.series if document["series"][index]["median"] == self.value
        )
        return tuple(own) or record.series

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
    def kind(self) -> str:
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


def check_row(
    session: Session | None, case: Case | None, entry: Entry | None, node: str | None = None
) -> Check:
    """Return the row of one check, or of one document outside any session.

    :param node: its node, where more is known than case and document tell.
    """
    document = entry.document if entry is not None else None
    of: dict[str, Any] = _of_session(session) | _of_run(document)
    if case is not None:
        repetition = REPETITION.search(case.name)
        of |= {
            "system": case.system,
            "partition": case.partition,
            "environment": case.environ,
            "check": REPETITION.sub("", case.name),
            "repetition": int(repetition["number"]) if repetition else None,
            "result": case.result,
            "failed_attempts": case.failed_attempts,
            "phase": case.phase,
            "experiment": " ".join(sorted(case.experiments)),
            "reason": case.reason or (str(entry.problem) if entry and entry.problem else None),
        }
    elif entry is not None and entry.path is not None:
        of["check"] = entry.path.resolve().parent.name
    recorded = entry or case
    # The scheduler's name of the node, else the host's own.
    named = node or (recorded and recorded.node) or of.get("hostname")
    return Check(case=case, entry=entry, node=named, **of)


def _of_session(session: Session | None) -> dict[str, Any]:
    if session is None:
        return {}
    return {
        "session": session.uuid,
        "session_id": session.id,
        "session_start": datetime.fromtimestamp(session.start, UTC),
    }


def _of_run(document: ResultDocument | None) -> dict[str, Any]:
    if document is None:
        return {}
    program, versions = document["program"], document["versions"]
    simulated: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = simulated.get("overlay") or {}
    return {
        "hostname": document["host"]["hostname"],
        "measured_at": moment(document["started"]),
        "clock": document["clock"],
        "complete": document["complete"],
        "status": document["outcome"]["status"],
        "node_model": simulated.get("name"),
        "overlay": overlay.get("name"),
        "faults_injected": "; ".join(document["faults_injected"]),
        "program": program["name"],
        "program_version": program["version"],
        "commit": program["commit"],
        "runtime": program["runtime"],
        "runtime_version": versions["runtime"],
        "rocm_version": versions.get("rocm"),
        "driver": versions["driver"],
        "mpi": versions.get("mpi"),
        "rccl": versions.get("rccl"),
    }


def by_place(rows: Iterable[Check]) -> dict[tuple[str, str | None], list[Check]]:
    """Return checks by partition and the scheduler's name of the node.

    Where a partition has one node, checks without one join it.
    """
    every = list(rows)
    nodes = grouped((row.where, row.scheduler_node) for row in every)
    named = {where: {name for name in own if name is not None} for where, own in nodes.items()}
    only = {where: own.pop() for where, own in named.items() if len(own) == 1}
    found: dict[tuple[str, str | None], list[Check]] = {
        (where, node): [] for where, own in nodes.items() for node in own
    }
    for row in every:
        found[row.where, row.scheduler_node or only.get(row.where)].append(row)
    return {place: own for place, own in found.items() if own}


def metrics(row: Check) -> Iterator[Metric]:
    """Yield the metrics of a check."""
    records = row.entry.metrics if row.entry is not None else {}
    document = row.document
    for name, recorded in row.case.metrics.items() if row.case is not None else ():
        record = records.get(name)
        yield Metric(
            check_row=row,
            recorded=recorded,
            record=record,
            metric=name,
            value=recorded.value,
            unit=recorded.unit,
            better=BETTER.get(recorded.unit),
            reference=recorded.reference if recorded.has_limit else None,
            least=recorded.least,
            most=recorded.most,
            judged=_judged(recorded),
            series=record.series if record is not None else None,
            reduce=record.reduce if record is not None else None,
            noise=_noise(document, document["series"][record.series[0]])
            if document is not None and record is not None and record.series
            else None,
        )


def _judged(recorded: MetricResult) -> str | None:
    """Return ReFrame's result, which is pass for a metric without a limit too."""
    if recorded.result == "pass" and not recorded.has_limit:
        return REPORT_ONLY
    return recorded.result


def _noise(document: ResultDocument, measured: Measured) -> Noise:
    return "host" if document["program"]["runtime"] == "host" else noise(measured)


def series(row: Check, model: NodeModel | None) -> Iterator[Series]:
    """Yield the series of a check's document.

    :param model: the healthy node model, for link classes.
    """
    document = row.document
    if document is None:
        return
    devices = {device["index"]: device for device in document["devices"]}
    for index in range(len(document["series"])):
        yield _series(row, document, index, model, devices)


def _series(
    row: Check,
    document: ResultDocument,
    index: int,
    model: NodeModel | None,
    devices: Mapping[int, Device],
) -> Series:
    one = document["series"][index]
    verification, ranks, clock = one["verification"], one.get("ranks"), one["host_clock"]
    own = devices.get(one["device"]) if one["device"] is not None else None
    interval, source, destination = one["ci95"], one["source"], one["destination"]
    return Series(
        check_row=row,
        document=document,
        measured=one,
        index=index,
        experiment=one["experiment"],
        value=one["median"],
        unit=one["unit"],
        better=one["better"],
        operation=one["operation"],
        role=one["role"],
        direction=one["direction"],
        engine=one["engine"],
        engines=one.get("engines"),
        stores=one.get("stores"),
        loads=one.get("loads"),
        movement=one.get("movement"),
        placement=one.get("placement"),
        datatype=one.get("datatype"),
        in_place=one.get("in_place"),
        link_class=link_class(one, model),
        devices=tuple(one["device_set"]),
        device_count=len(one["device_set"]),
        device=one["device"],
        device_name=products.label(own) if own else None,
        device_arch=own["arch"] if own else None,
        pci_address=own["pci_address"] if own else None,
        unique_id=own["unique_id"] if own else None,
        source_memory=source["memory"],
        source_device=source["device"],
        source_domain=source["numa_domain"],
        destination_memory=destination["memory"],
        destination_device=destination["device"],
        destination_domain=destination["numa_domain"],
        ranks=None if ranks is None else tuple(ranks),
        rank_count=None if ranks is None else len(ranks),
        bytes=one["bytes"],
        bytes_moved=one["bytes_moved"],
        bytes_counted=one["bytes_counted"],
        regime=one["regime"],
        block_size=one["block_size"],
        elements=one.get("elements"),
        grid=one.get("grid"),
        batch=one["batch"],
        passes=one.get("passes"),
        n=len(one["samples"]),
        mad=one["mad"],
        ci_low=interval[0] if interval else None,
        ci_high=interval[1] if interval else None,
        noise=_noise(document, one),
        noisy=one["noisy"],
        host_clock_agrees=None if clock is None else clock["agrees"],
        bytes_checked=verification["bytes_checked"],
        errors=verification["errors"],
        verified_by=verification.get("by", "program"),
    )


def link_class(one: Measured, model: NodeModel | None) -> str | None:
    """Return the link class of a transfer between two devices; None of all else."""
    pair = device_pair(one)
    if model is None or len(pair) != 2 or one["experiment"] not in _OF_PAIRS:
        return None
    if max(pair) >= len(model.devices) or pair[0] == pair[1]:
        return None
    return model.link_class(pair[0], pair[1]).name


def states(row: Check) -> Iterator[State]:
    """Yield the states of host and devices before the check's program, then those after it."""
    document = row.document
    state = document.get("state") if document is not None else None
    if document is None or state is None:
        return
    devices = {device["index"]: device for device in document["devices"]}
    for when, snapshot in (("before", state["before"]), ("after", state["after"])):
        if snapshot is None:
            continue
        taken = {
            "moment": when,
            "taken_at": moment(snapshot["at"]),
            "taken_s": snapshot["seconds"],
        }
        yield State(check_row=row, values=taken | _members(snapshot["host"], HostState, _OF_HOST))
        for device_state in snapshot["devices"]:
            own = devices[device_state["index"]]
            named = {
                "device": device_state["index"],
                "device_name": products.label(own),
                "device_arch": own["arch"],
                "pci_address": own["pci_address"],
                "unique_id": own["unique_id"],
            }
            members = _members(device_state, DeviceState, _OF_DEVICE)
            yield State(check_row=row, values=taken | named | members)


def _members(
    state: Mapping[str, Any], kind: Any, sums: Mapping[str, tuple[Type, str, Callable[[Any], Any]]]
) -> dict[str, Any]:
    """Return the values of a device, or of the host, by column."""
    found = {name: value(state) for name, (_, _, value) in sums.items()}
    for name, (record, member, _, _) in _columns_of(kind).items():
        found[name] = (state.get(record) or {}).get(member) if record else state.get(member)
    return found


def _processes(found: Sequence[DeviceProcess | BusyProcess] | None) -> str | None:
    if found is None:
        return None
    each = (
        f"{process['pid']} {process['user'] or '?'} {process['command'] or '?'}"
        for process in found
    )
    return listed(each) or "none"


def _link_errors(kinds: Mapping[LinkError, Mapping[str, int]] | None) -> int | None:
    return None if kinds is None else sum(sum(links.values()) for links in kinds.values())


def _link_errors_by_kind(kinds: Mapping[LinkError, Mapping[str, int]] | None) -> str | None:
    if kinds is None:
        return None
    each = (
        f"{kind} {link} {number}" for kind, links in kinds.items() for link, number in links.items()
    )
    return listed(each) or "none"


#: Columns that sum up members of a device, and of the host: type, meaning, and the value.
_OF_DEVICE: Mapping[str, tuple[Type, str, Callable[[DeviceState], Any]]] = {
    "throttle": (
        "text",
        "why it runs below its clock: power, ..., or none",
        lambda device_state: (
            None
            if device_state["throttle"] is None
            else " ".join(device_state["throttle"]) or "none"
        ),
    ),
    "throttled_power_s": (
        "number",
        "a counter of the time below its clock due to the power cap, in s",
        lambda device_state: (device_state["throttled_s"] or {}).get("power"),
    ),
    "throttled_thermal_s": (
        "number",
        "a counter of the time below its clock due to temperature, in s",
        lambda device_state: (device_state["throttled_s"] or {}).get("thermal"),
    ),
    "throttled_hardware_s": (
        "number",
        "a counter of the time below its clock due to a limit of the board, in s",
        lambda device_state: (device_state["throttled_s"] or {}).get("hardware"),
    ),
    "links": (
        "integer",
        "its links to other devices",
        lambda device_state: device_state["links"] and device_state["links"]["number"],
    ),
    "links_up": (
        "integer",
        "how many of these links are up",
        lambda device_state: (
            device_state["links"]
            and device_state["links"]["number"] - len(device_state["links"]["down"])
        ),
    ),
    "link_errors": (
        "integer",
        "a counter of the errors of its links, all kinds together",
        lambda device_state: _link_errors(device_state.get("link_errors")),
    ),
    "link_errors_by_kind": (
        "text",
        "the counters that are not 0: kind link count, ...",
        lambda device_state: _link_errors_by_kind(device_state.get("link_errors")),
    ),
    "firmware": (
        "text",
        "versions of its firmware: name version, ...",
        lambda device_state: (
            device_state["firmware"]
            and listed(
                f"{name} {version}" for name, version in sorted(device_state["firmware"].items())
            )
        ),
    ),
    "processes": (
        "text",
        "other processes that use it, for the host the busiest: pid user command, ...",
        lambda device_state: _processes(device_state["processes"]),
    ),
}
_OF_HOST: Mapping[str, tuple[Type, str, Callable[[HostState], Any]]] = {
    "processes": (
        "text",
        "as of a device",
        lambda host: _processes(host["others"] and host["others"]["processes"]),
    ),
    "others_s": (
        "number",
        "the interval of busy_cores and stolen_cores, in s",
        lambda host: host["others"] and host["others"]["seconds"],
    ),
    "busy_cores": (
        "number",
        "cores kept busy by others than this run",
        lambda host: host["others"] and host["others"]["busy_cores"],
    ),
    "stolen_cores": (
        "number",
        "cores whose time the hypervisor took",
        lambda host: host["others"] and host["others"]["stolen_cores"],
    ),
    "free_bytes": (
        "integer",
        "free memory of the host",
        lambda host: sum(host["free_bytes"].values()) if host["free_bytes"] else None,
    ),
    "free_bytes_least": (
        "integer",
        "free memory of the NUMA domain with the least",
        lambda host: min((host["free_bytes"] or {}).values(), default=None),
    ),
}


def nodes(
    requested: RequestedNodes, present: Iterable[str | None], session: Session | None = None
) -> Iterator[Node]:
    """Yield a row for each requested node.

    :param present: the nodes with checks.
    :param session: the session that was to measure them; None for a job over many nodes.
    """
    there = set(present)
    system, _, partition = (requested.partition or "").partition(":")
    common = {"session_start": requested.started} | _of_session(session)
    for name, node in requested.measured.items():
        state = node.state and node.reported
        yield Node(
            **common,
            node=name,
            system=system,
            partition=partition,
            result=PRESENT if name in there else LOST,
            reason="; ".join(filter(None, [state, node.said])),
        )


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
    found: dict[Key, Series] = {}
    for row in rows:
        name = key(row)
        if name not in found or row.bytes > found[name].bytes:
            found[name] = row
    return found


def curve(rows: Iterable[Series]) -> list[Series]:
    """Return the series by size, the first of each size."""
    return [first for _, (first, *_) in sorted(grouped((row.bytes, row) for row in rows).items())]


@dataclass(frozen=True)
class Column:
    """One column: its name, type and description, and the kinds of rows that have it."""

    name: str
    type: Type
    meaning: str
    kinds: tuple[str, ...]


#: The classes of rows by the column ``kind``; a sample is its series with one value.
KINDS: Mapping[str, type[Any]] = {
    "check": Check,
    "metric": Metric,
    "series": Series,
    "state": State,
    "node": Node,
}

#: Those that have the columns of their check.
_OF_A_CHECK = (Metric, Series, State)

_TYPES: Mapping[Any, Type] = {
    bool: "boolean", int: "integer", float: "number", datetime: "time", str: "text"
}  # fmt: skip

#: What a hint may have around the type of a value.
_OPTIONAL = (typing.NotRequired, typing.Union, types.UnionType)


#: Columns of a check that the rows of its metrics, series and states do not have.
_OF_THE_CHECK_ALONE = ("reason",)

#: Columns of a series that the rows of its samples do not have.
_OF_THE_SERIES_ALONE = ("mad", "ci_low", "ci_high")


@functools.cache
def columns() -> tuple[Column, ...]:
    """Return the columns in the order of `fabricheck results export`."""
    kinds: dict[str, list[str]] = {"kind": [*KINDS]}
    found: dict[str, tuple[Type, str]] = {
        "kind": ("text", "kind of row: check, metric, series, sample, state or node")
    }
    for kind, row in KINDS.items():
        own = _own_columns(kind)
        of_check = _of_check() if row in _OF_A_CHECK else ()
        for name in dict.fromkeys((*of_check, *own)):
            kinds.setdefault(name, []).append(kind)
        for name, column in own.items():
            found.setdefault(name, column)
    for name, of in kinds.items():
        if name == "sample":
            of[:] = ["sample"]
        elif "series" in of and name not in _OF_THE_SERIES_ALONE:
            of.insert(of.index("series") + 1, "sample")
    return tuple(
        Column(name, type_, meaning, tuple(kinds[name])) for name, (type_, meaning) in found.items()
    )


@functools.cache
def _own_columns(kind: str) -> Mapping[str, tuple[Type, str]]:
    """Return type and description of the columns of a kind of rows itself."""
    if kind == "state":
        of_series = _own_columns("series")
        named = ("device", "device_name", "device_arch", "pci_address", "unique_id")
        sums = {**_OF_DEVICE, **_OF_HOST, "processes": _OF_DEVICE["processes"]}
        return {
            "moment": ("text", "before or after the program's body"),
            "taken_at": ("time", "when that was, in UTC"),
            "taken_s": ("number", "time to read host and all devices, in s"),
            **{name: of_series[name] for name in named},
            **{name: (type_, meaning)
               for of in (DeviceState, HostState)
               for name, (_, _, type_, meaning) in _columns_of(of).items()},
            **{name: (type_, meaning) for name, (type_, meaning, _) in sums.items()},
        }  # fmt: skip
    hints = typing.get_type_hints(KINDS[kind], include_extras=True)
    described = {
        field.name: _described(hints[field.name]) for field in dataclasses.fields(KINDS[kind])
    }
    return {
        name: (_TYPES.get(of, "text"), meaning)
        for name, (of, meaning) in described.items()
        if meaning
    }


@functools.cache
def _columns_of(kind: Any, record: str = "") -> Mapping[str, tuple[str, str, Type, str]]:
    """Return the columns of a type: its numbers and texts, and those of the records in it.

    By column the record, the member, its type and its meaning; a member without one is no column.
    """
    found: dict[str, tuple[str, str, Type, str]] = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        of, meaning = _described(hint)
        if of in (MemoryErrors, Pcie):
            found |= _columns_of(of, name)
        elif of in _TYPES and meaning and name != "index":
            found[f"{record}_{name}" if record else name] = (record, name, _TYPES[of], meaning)
    return found


def _described(hint: Any) -> tuple[Any, str]:
    """Return the type that a hint has beside null, and its description; empty without one."""
    meaning = ""
    while typing.get_origin(hint) in (*_OPTIONAL, Annotated):
        inside = typing.get_args(hint)
        meaning = meaning or next((text for text in inside if isinstance(text, str)), "")
        hint = next(kind for kind in inside if kind is not type(None))
    return hint, meaning


@functools.cache
def _of_check() -> tuple[str, ...]:
    return tuple(name for name in _own_columns("check") if name not in _OF_THE_CHECK_ALONE)


def values(row: Row) -> dict[str, Any]:
    """Return the columns of a row and of its check, by name."""
    kind = next(word for word, rows in KINDS.items() if type(row) is rows)
    found: dict[str, Any] = {"kind": kind}
    if isinstance(row, _OF_A_CHECK):
        found |= {name: getattr(row.check_row, name) for name in _of_check()}
    for name, (type_, _) in _own_columns(kind).items():
        value = row.values.get(name) if isinstance(row, State) else getattr(row, name)
        found[name] = float(value) if type_ == "number" and value is not None else value
    return found
