"""The result document as types. The meaning of each field is in the schema's descriptions."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fabricheck.core.vocabulary import (
    Better,
    BytesCounted,
    Clock,
    ComparedBy,
    Concern,
    Datatype,
    Direction,
    Engine,
    Experiment,
    Memory,
    Movement,
    Operation,
    Regime,
    Role,
    Runtime,
    SeriesUnit,
    Status,
    Stores,
)


class Program(TypedDict):
    """The program that measured."""

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


class ManagedMemory(TypedDict):
    """What the runtime says of a device and managed memory."""

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
    """The same samples by the host's clock."""

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
    """What was compared after a measured sample, where the destination lies."""

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
    movement: NotRequired[Movement | None]
    direction: Direction
    ranks: NotRequired[list[int] | None]
    datatype: NotRequired[Datatype | None]
    placement: NotRequired[str | None]
    in_place: NotRequired[bool | None]
    bytes: int
    bytes_moved: int
    bytes_counted: BytesCounted
    regime: Regime
    block_size: int | None
    batch: int
    passes: NotRequired[int | None]
    unit: SeriesUnit
    better: Better
    samples: list[float]
    median: float
    mad: float
    ci95: list[float] | None
    relative_half_width: float | None
    host_clock: HostClock | None
    noisy: bool
    verification: Verification


class NodeOverlay(TypedDict):
    """What changed a simulated node."""

    name: str
    content: dict[str, Any]


class SimulatedNode(TypedDict):
    """The node model that was simulated."""

    name: str
    digest: str
    overlay: NodeOverlay | None


class Rank(TypedDict):
    """Where one rank of a launch is, and what it sees."""

    rank: int
    host: str
    cores: list[int]
    numa_domain: int | None
    memory_domain: int | None
    visible_devices: list[int]
    device: int | None


class Skipped(TypedDict):
    """An operation that was asked for and cannot be measured here."""

    operation: str
    reason: str


class Setting(TypedDict):
    """A setting of the node or the job that changes what is measured."""

    name: str
    value: str
    concerns: Concern


class ResultDocument(TypedDict):
    """What one run of one program measured."""

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
    series: list[Series]
    skipped: NotRequired[list[Skipped] | None]
    differences: NotRequired[list[str] | None]
    notes: list[str]
