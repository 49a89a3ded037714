"""The result document as Python types; the schema describes each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict

from fabricheck.core.vocabulary import (
    Better,
    BytesCounted,
    Clock,
    ComparedBy,
    Concern,
    Datatype,
    Direction,
    Distance,
    Engine,
    Experiment,
    Loads,
    LogKind,
    Memory,
    Movement,
    Operation,
    Regime,
    Role,
    Runtime,
    SeriesUnit,
    Status,
    Stores,
    Throttle,
    Transport,
)
from fabricheck.node.cores import format_cores


class Program(TypedDict):
    """The measuring program."""

    name: str
    version: str
    commit: str
    runtime: Runtime
    compiler: str


class NumaDomain(TypedDict):
    """One NUMA domain of the host."""

    index: int
    cores: list[int]
    memory_bytes: int


class Host(TypedDict):
    """The machine that the program ran on."""

    hostname: str
    scheduler_node: NotRequired[str | None]
    kernel: str
    cpu_model: str
    cores_allowed: list[int]
    numa_domains: list[NumaDomain]
    last_level_cache_bytes: int
    page_size_bytes: int
    numa_balancing: int | None
    transparent_hugepage: str | None


def node_name(host: Mapping[str, Any]) -> str:
    """Return the scheduler's name of a host, else its host name."""
    return str(host.get("scheduler_node") or host["hostname"])


def describe_ranks(document: ResultDocument) -> Iterator[str]:
    """Yield one line for each rank: its cores, NUMA domain and device."""
    addresses = {device["index"]: device["pci_address"] for device in document["devices"]}
    for rank in document.get("ranks") or ():
        device = rank["device"]
        address = f" ({addresses[device]})" if device is not None and addresses[device] else ""
        yield (
            f"rank {rank['rank']} on {rank['host']}: cores {format_cores(rank['cores']) or 'none'},"
            f" NUMA domain {rank['numa_domain']}, device {device}{address}"
        )


class ManagedMemory(TypedDict):
    """What the runtime reports about managed memory on a device."""

    managed: bool
    concurrent_access: bool
    pageable_access: bool
    xnack: bool | None


class Device(TypedDict):
    """One device as the runtime presents it."""

    index: int
    name: str
    arch: str
    pci_address: str | None
    unique_id: str | None
    memory_bytes: int | None
    compute_units: int | None
    last_level_cache_bytes: int | None
    numa_domain: int | None
    power_cap_w: NotRequired[float | None]
    clock_mhz: NotRequired[float | None]
    memory_clock_mhz: NotRequired[float | None]
    managed_memory: NotRequired[ManagedMemory | None]


class Versions(TypedDict):
    """Versions of runtime and driver."""

    runtime: str
    driver: str
    mpi: NotRequired[str]
    rccl: NotRequired[str]
    libfabric: NotRequired[str]
    ucx: NotRequired[str]
    rdma_core: NotRequired[str]


class Outcome(TypedDict):
    """How the run ended."""

    exit_code: int | None
    status: Status
    message: str | None


class Place(TypedDict):
    """Where an array lies."""

    memory: Memory
    device: int | None
    numa_domain: int | None
    huge_page_bytes: NotRequired[int | None]


class HostClock(TypedDict):
    """The same samples timed by the host's clock."""

    median: float
    ratio: float
    agrees: bool


class Mismatch(TypedDict):
    """The first element that differs from what was expected."""

    device: int | None
    rank: NotRequired[int]
    offset_bytes: int
    expected: str
    found: str


class Verification(TypedDict):
    """The comparison of the data at the destination after a measured sample."""

    bytes_checked: int
    errors: int
    first_mismatch: Mismatch | None
    by: NotRequired[ComparedBy]


class Series(TypedDict):
    """One operation at one size in one place, with every sample."""

    experiment: Experiment
    operation: Operation
    role: Role
    device: int | None
    device_set: list[int]
    source: Place
    destination: Place
    engine: Engine
    engines: NotRequired[int | None]
    stores: NotRequired[Stores | None]
    loads: NotRequired[Loads | None]
    movement: NotRequired[Movement | None]
    direction: Direction
    distance: NotRequired[Distance | None]
    ranks: NotRequired[list[int] | None]
    datatype: NotRequired[Datatype | None]
    placement: NotRequired[str | None]
    in_place: NotRequired[bool | None]
    bytes: int
    bytes_moved: int
    bytes_counted: BytesCounted
    regime: Regime
    block_size: int | None
    elements: NotRequired[int | None]
    grid: NotRequired[int | None]
    batch: int
    passes: NotRequired[int | None]
    unit: SeriesUnit
    better: Better
    samples: list[float]
    median: float
    p99: NotRequired[float | None]
    mad: float
    ci95: list[float] | None
    relative_half_width: float | None
    host_clock: HostClock | None
    noisy: bool
    verification: Verification


class NodeOverlay(TypedDict):
    """The overlay that changed a simulated node."""

    name: str
    content: dict[str, Any]


class SimulatedNode(TypedDict):
    """The node model that was simulated."""

    name: str
    digest: str
    overlay: NodeOverlay | None


class NetworkPlace(TypedDict):
    """Where a NIC is in the network."""

    group: str
    switch: str
    port: str | None


class UsedNic(TypedDict):
    """A NIC whose counters moved with a rank's messages, and the part of the bytes it sent."""

    name: str
    part: float


class RankNetwork(TypedDict):
    """What a rank's messages left its node by, as counters and open files showed."""

    nics: list[UsedNic]
    transport: Transport | None
    provider: str | None
    place: NetworkPlace | None


class Rank(TypedDict):
    """The cores, memory, devices and network of one rank of a launch."""

    rank: int
    host: str
    cores: list[int]
    numa_domain: int | None
    memory_domain: int | None
    visible_devices: list[int]
    device: int | None
    network: NotRequired[RankNetwork | None]


class NicPcie(TypedDict):
    """The PCIe link of a NIC as it is, and the most that the NIC itself allows."""

    gt_per_s: float | None
    width: int | None
    gt_per_s_max: float | None
    width_max: int | None


class NodeNic(TypedDict):
    """A NIC of a node; null where the kernel does not tell it, with the reason in absent."""

    node: str
    name: str
    kind: NotRequired[Literal["cxi", "infiniband", "net"]]
    interface: NotRequired[str | None]
    address: NotRequired[str | None]
    pci_address: NotRequired[str | None]
    numa_domain: NotRequired[int | None]
    near_devices: NotRequired[list[str]]
    state: NotRequired[Literal["up", "down"] | None]
    gbit_per_s: NotRequired[float | None]
    mtu_bytes: NotRequired[int | None]
    pcie: NotRequired[NicPcie]
    firmware: NotRequired[str | None]
    driver: NotRequired[str | None]
    place: NotRequired[NetworkPlace | None]
    loopback_gbs: NotRequired[float | None]
    errors: NotRequired[dict[str, list[int]]]
    absent: NotRequired[list[Absent]]


class Skipped(TypedDict):
    """An operation that was requested but cannot be measured on this node."""

    operation: str
    reason: str


class NicOfRounds(TypedDict):
    """The NIC beside a rank; the name is null where it is not known."""

    name: str | None
    place: NetworkPlace | None


class NodeOfRounds(TypedDict):
    """A node of a launch over many, its ranks and the NIC beside each."""

    node: str
    ranks: list[int]
    nics: list[NicOfRounds]


class MeasuredRound(TypedDict):
    """Pairs of nodes at the same time; the columns have a list for each pair, by NIC."""

    phase: int
    distance: Distance | None
    seconds: float
    pairs: list[list[int]]
    out: list[list[float | None]]
    back: list[list[float | None]]
    together_out: list[list[float | None]]
    together_back: list[list[float | None]]
    both: list[list[float | None]]
    latency: list[list[float | None]]


class LeftOut(TypedDict):
    """A node that was not measured, or from a round on not any more."""

    node: str
    round: int | None
    reason: str


class FailedMessages(TypedDict):
    """Messages of a pair of NICs that failed."""

    round: int
    nodes: list[int]
    nic: int
    reason: str


#: Messages that arrived with wrong data.
WrongMessage = TypedDict(
    "WrongMessage",
    {
        "round": int,
        "from": int,
        "to": int,
        "nic": int,
        "errors": int,
        "offset_bytes": int,
        "expected": str,
        "found": str,
    },
)


class SuspectNic(TypedDict):
    """What phase 2 measured again: a NIC of a node, null for all of its NICs at once."""

    node: int
    nic: int | None


class RoundsMember(TypedDict):
    """Rates between nodes that were paired in rounds."""

    bytes: int
    messages: int
    repetitions: int
    memory: Memory
    planned: int
    bytes_checked: int
    nodes: list[NodeOfRounds]
    rounds: list[MeasuredRound]
    suspects: list[SuspectNic]
    low_pairs: list[list[int]]
    left_out: list[LeftOut]
    failed: list[FailedMessages]
    wrong: list[WrongMessage]


class Setting(TypedDict):
    """A setting of the node or the job that changes measured values."""

    name: str
    value: str
    concerns: Concern


class BusyProcess(TypedDict):
    """A process that used CPU time of the host."""

    pid: int
    user: str | None
    command: str | None
    cores: float


class HostUse(TypedDict):
    """What else the host did during the run."""

    seconds: float
    busy_cores: float
    stolen_cores: float
    processes: list[BusyProcess]


class ControllerErrors(TypedDict):
    """Errors that a memory controller of the host counted since boot."""

    controller: str
    corrected: int
    uncorrected: int


class PciFunction(TypedDict):
    """An accelerator that PCI shows, whether or not a driver lists it."""

    address: str
    vendor: str
    device: str
    driver: str | None
    mode: str | None
    accessible: bool | None


class HostState(TypedDict):
    """The host at one time."""

    load_1min: float | None
    cores: int | None
    others: HostUse | None
    governor: str | None
    huge_pages_reserved: int | None
    huge_pages_free: int | None
    huge_page_bytes: int | None
    free_bytes: dict[str, int] | None
    memory_errors: NotRequired[list[ControllerErrors] | None]
    pci_functions: NotRequired[list[PciFunction] | None]


class MemoryErrors(TypedDict):
    """Memory errors of a device since its driver was loaded."""

    corrected: int | None
    uncorrected: int | None


class Pcie(TypedDict):
    """The PCIe link between a device and the host, and what each end allows."""

    width: int | None
    width_max: int | None
    width_max_port: NotRequired[int | None]
    gt_per_s: float | None
    gt_per_s_max: float | None
    replays: int | None


class Links(TypedDict):
    """The links of a device to other devices."""

    number: int
    down: list[int]
    width: int | None
    gb_per_s: float | None
    errors: dict[str, int] | None


class DeviceProcess(TypedDict):
    """A process outside the run that uses a device."""

    pid: int
    user: str | None
    command: str | None
    memory_bytes: int | None


class DeviceState(TypedDict):
    """A device at one time; null where no source tells the value."""

    index: int
    clock_mhz: float | None
    clock_max_mhz: float | None
    memory_clock_mhz: float | None
    memory_clock_max_mhz: float | None
    temperature_c: float | None
    memory_temperature_c: float | None
    power_w: float | None
    power_cap_w: float | None
    power_cap_default_w: float | None
    busy_percent: float | None
    throttle: list[Throttle] | None
    throttled_s: dict[Throttle, float | None] | None
    energy_j: float | None
    memory_errors: MemoryErrors | None
    pcie: Pcie | None
    links: Links | None
    vbios: str | None
    firmware: dict[str, str] | None
    compute_partition: str | None
    memory_partition: str | None
    ecc: bool | None
    processes: list[DeviceProcess] | None


class Absent(TypedDict):
    """An item that could not be determined."""

    item: str
    why: str


class Snapshot(TypedDict):
    """The node and its devices at one time."""

    at: str
    seconds: float
    opening_seconds: float | None
    host: HostState
    devices: list[DeviceState]


class State(TypedDict):
    """The node before and after the body of the program.

    after: complete once the document is read; the file has only what changed.
    """

    before: Snapshot
    after: Snapshot | None
    absent: list[Absent]
    sources: dict[str, str]


class LogLine(TypedDict):
    """What a line of a log says of a device."""

    kind: LogKind
    pci_address: str | None
    text: str


class Aftermath(TypedDict):
    """What another process saw of the node after the program ended badly."""

    exit_code: int
    pci_functions: list[PciFunction] | None
    kernel_log: list[LogLine] | None
    runtime_log: list[LogLine] | None
    absent: list[Absent]


class ResultDocument(TypedDict):
    """The result of one run of one program."""

    schema: str
    schema_version: int
    complete: bool
    program: Program
    clock: Clock
    node: NotRequired[SimulatedNode | None]
    started: str
    finished: str | None
    duration_s: float
    simulated_s: NotRequired[float]
    host: Host
    devices: list[Device]
    versions: Versions
    environment: dict[str, str]
    arguments: list[str]
    options: dict[str, Any]
    faults_injected: list[str]
    outcome: Outcome
    ranks: NotRequired[list[Rank] | None]
    settings: NotRequired[list[Setting]]
    state: NotRequired[State]
    aftermath: NotRequired[Aftermath]
    series: list[Series]
    rounds: NotRequired[RoundsMember | None]
    skipped: NotRequired[list[Skipped] | None]
    differences: NotRequired[list[str] | None]
    lost: NotRequired[list[str]]
    nics: NotRequired[list[NodeNic] | None]
    notes: list[str]
