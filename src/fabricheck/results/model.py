"""The result document as Python types, each field with its meaning.

``ci/result_schema.py`` makes ``result-1.schema.json`` of them. A member that is not required was
added later: older documents do not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from annotated_types import Len, MaxLen, MinLen
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from fabricheck.core.forms import NodeName, PciAddress, Word
from fabricheck.core.vocabulary import (
    Better,
    BytesCounted,
    Clock,
    ComparedBy,
    Concern,
    Datatype,
    Direction,
    Distance,
    EnergyCounter,
    Engine,
    Experiment,
    LinkError,
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

Text = Annotated[str, MinLen(1)]


class Program(TypedDict):
    """The measuring program."""

    name: Word
    version: Word
    commit: Annotated[Word, "git describe --always --dirty at configure time, or 'unknown'"]
    runtime: Runtime
    compiler: str


class NumaDomain(TypedDict):
    """One NUMA domain of the host."""

    index: NonNegativeInt
    cores: list[NonNegativeInt]
    memory_bytes: NonNegativeInt


class Host(TypedDict):
    """The machine that the program ran on."""

    hostname: NodeName
    scheduler_node: NotRequired[
        Annotated[
            NodeName | None,
            "the scheduler's name of the node, as it told it the process that measured "
            "(SLURMD_NODENAME), of a launch of ranks rank 0; null or absent where it told "
            "none. A simulated node was simulated there.",
        ]
    ]
    container: NotRequired[
        Annotated[
            Literal["kubernetes", "podman", "docker", "apptainer", "lxc"] | None,
            "what holds the process, by its signs: a pod of Kubernetes, or another container; null "
            "without one",
        ]
    ]
    own_name: NotRequired[
        Annotated[
            bool | None,
            "whether the host name is of a namespace of its own, as most containers have, and need "
            "not be the machine's; null where the kernel does not tell",
        ]
    ]
    kernel: str
    cpu_model: str
    cores_allowed: Annotated[
        list[NonNegativeInt],
        "cores (hardware threads) this process may run on, by operating system index",
    ]
    cpu_quota: NotRequired[
        Annotated[
            float | None,
            "the cores whose time the quotas of control groups grant this process (cpu.max), as in "
            "a container; null without a quota, or where not readable. Absent in documents of "
            "before 0.4.",
        ]
    ]
    numa_domains: list[NumaDomain]
    last_level_cache_bytes: NonNegativeInt
    page_size_bytes: PositiveInt
    numa_balancing: Annotated[
        int | None, "/proc/sys/kernel/numa_balancing, null where not readable"
    ]
    transparent_hugepage: Annotated[
        str | None,
        "the active word of /sys/kernel/mm/transparent_hugepage/enabled, null where not readable",
    ]


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

    managed: Annotated[bool, "the device has managed memory"]
    concurrent_access: Annotated[bool, "device and host may use it at the same time"]
    pageable_access: Annotated[bool, "the device reaches ordinary host memory"]
    xnack: Annotated[
        bool | None,
        "the device retries an access after a page fault (AMD), which page migration "
        "needs; null where there is no such mode",
    ]


class Device(TypedDict):
    """One device as the runtime presents it."""

    index: Annotated[
        NonNegativeInt,
        "as the runtime numbers it in this process; of a launch of ranks, which may see "
        "different ones, in the order first seen",
    ]
    name: str
    arch: Annotated[Word, "gfx90a, sm_90, or host"]
    pci_address: PciAddress | None
    pci_id: NotRequired[
        Annotated[
            Word | None,
            "what it is: vendor and kind of device by PCI (1002:74a1), null where nothing tells it",
        ]
    ]
    pci_subsystem: NotRequired[Annotated[Word | None, "the same of the board (10de:16c1)"]]
    unique_id: Annotated[Word | None, "the vendor's UUID of the device, null where there is none"]
    memory_bytes: Annotated[
        NonNegativeInt | None, "null, as the next two, where no runtime was asked: of topology"
    ]
    compute_units: PositiveInt | None
    last_level_cache_bytes: NonNegativeInt | None
    numa_domain: Annotated[
        int | None, "the host NUMA domain the device is attached to, null where unknown"
    ]
    power_cap_w: NotRequired[
        Annotated[
            PositiveFloat | None, "the power limit in W; null, as the next two, where not readable"
        ]
    ]
    clock_mhz: NotRequired[
        Annotated[
            PositiveFloat | None, "the clock of the compute units in MHz, as the runtime states it"
        ]
    ]
    memory_clock_mhz: NotRequired[Annotated[PositiveFloat | None, "that of the device memory"]]
    managed_memory: NotRequired[
        Annotated[
            ManagedMemory | None,
            "what the runtime says of managed memory; null where it was not asked",
        ]
    ]


class Versions(TypedDict):
    """Versions of runtime and driver."""

    runtime: Annotated[str, "of HIP or CUDA, as it states it"]
    driver: str
    rocm: NotRequired[
        Annotated[
            str,
            "version of the ROCm that the loaded HIP is a part of, by its installation; absent "
            "where that does not tell it. Up to 7.2 HIP had the same number.",
        ]
    ]
    mpi: NotRequired[
        Annotated[str, "name and version of the MPI library, as it states them; absent without MPI"]
    ]
    rccl: NotRequired[Annotated[str, "version of the library RCCL or NCCL; absent without it"]]
    libfabric: NotRequired[
        Annotated[str, "version of libfabric, as fi_info states it; absent without it"]
    ]
    ucx: NotRequired[Annotated[str, "version of UCX, as ucx_info states it; absent without it"]]
    rdma_core: NotRequired[
        Annotated[
            str, "version of rdma-core, by the name of its library libibverbs; absent without it"
        ]
    ]


class Outcome(TypedDict):
    """How the run ended."""

    exit_code: int | None
    status: Status
    message: Annotated[str | None, "one sentence when the status is not good"]


class Place(TypedDict):
    """Where an array lies."""

    memory: Memory
    device: Annotated[int | None, "the device that holds the memory; null for host memory"]
    numa_domain: Annotated[
        int | None,
        "the NUMA domain that holds the memory, where it is host memory and was proved; else null",
    ]
    huge_page_bytes: NotRequired[
        Annotated[
            NonNegativeInt | None,
            "bytes of host memory that lie in huge pages; null or absent where the system "
            "does not say",
        ]
    ]


class HostClock(TypedDict):
    """The same samples timed by the host's clock."""

    median: float
    ratio: Annotated[float, "host clock's median over the device events' median"]
    agrees: Annotated[bool, "true when the ratio is within 2 % of 1"]


class Mismatch(TypedDict):
    """The first element that differs from what was expected."""

    device: Annotated[int | None, "null where host memory was compared"]
    rank: NotRequired[Annotated[NonNegativeInt, "the rank that compared; absent without MPI"]]
    offset_bytes: NonNegativeInt
    expected: Annotated[str, "the 64-bit word, hexadecimal; of elements with a datatype the number"]
    found: Annotated[str, "as expected"]


class Verification(TypedDict):
    """The comparison of the data at the destination after a measured sample."""

    bytes_checked: Annotated[
        NonNegativeInt,
        "bytes of the destination that were compared after a measured sample, where it "
        "lies; of a pointer chase those of the word it arrived at",
    ]
    errors: Annotated[NonNegativeInt, "elements that differ"]
    first_mismatch: Mismatch | None
    by: NotRequired[ComparedBy]


class DeviceUnderLoad(TypedDict):
    """A device while it works; null where no source tells the value."""

    index: Annotated[NonNegativeInt, "as in devices"]
    clock_mhz: NonNegativeFloat | None
    temperature_c: float | None
    memory_temperature_c: float | None
    power_w: NonNegativeFloat | None
    throttle: list[Throttle] | None


class CountedEnergy(TypedDict):
    """What one counter of energy counted while an operation was repeated."""

    kind: EnergyCounter
    name: Annotated[Word, "its PCI address; of an accelerator or the node as the system calls it"]
    devices: Annotated[
        list[NonNegativeInt],
        "whose energy it counts, as in devices; empty where the system does not tell it",
    ]
    works: Annotated[
        bool | None, "whether one of them takes part in the operation; null where that is not known"
    ]
    source: Text
    watts: Annotated[
        list[float],
        "power during the load, in consecutive parts of at least ten steps each; empty with `why`",
    ]
    idle_before_w: Annotated[float | None, "power in the quiet time before; null if not seen"]
    idle_after_w: Annotated[float | None, "the same after it"]
    step_s: Annotated[
        NonNegativeFloat | None, "median time between two changes; null if it did not change"
    ]
    delay_s: Annotated[
        float | None,
        "how much later than the load it rises; null where the load is not seen in it",
    ]
    why: Annotated[str | None, "why it has no watts; null where it has"]


class SeriesEnergy(TypedDict):
    """Energy while the operation of a series was repeated, after its samples."""

    started: Annotated[Text, "when the load began"]
    seconds: Annotated[PositiveFloat, "of the load, which is between two quiet times"]
    bytes: Annotated[PositiveFloat, "moved in these seconds, counted as bytes_moved"]
    busy: Annotated[
        NonNegativeFloat, "part of the seconds in which the operation ran, by the clock of samples"
    ]
    counters: list[CountedEnergy]
    idle: Annotated[list[DeviceUnderLoad], "the devices in the quiet time before the load"]
    loaded: Annotated[list[DeviceUnderLoad], "the devices in the middle of the load"]
    after: Annotated[list[DeviceUnderLoad], "the devices in the quiet time after it"]


class Series(TypedDict):
    """One operation at one size in one place, with every sample."""

    experiment: Experiment
    operation: Operation
    role: Role
    device: Annotated[
        int | None, "the device that executes; null for a sum, and for messages between ranks"
    ]
    device_set: Annotated[
        list[NonNegativeInt],
        "all devices active at the same time; of a single pair the source's first (of a "
        "copy within a peer's memory: the device that executes). Of ranks the devices "
        "they use; empty where they use none.",
    ]
    source: Place
    destination: Place
    engine: Engine
    engines: NotRequired[
        Annotated[
            PositiveInt | None,
            "how many copy engines share one copy; null where none does or the number is "
            "not known, absent in documents from before it was recorded",
        ]
    ]
    stores: NotRequired[Stores | None]
    loads: NotRequired[Loads | None]
    movement: NotRequired[Movement | None]
    direction: Direction
    distance: NotRequired[Distance | None]
    ranks: NotRequired[
        Annotated[
            Annotated[list[NonNegativeInt], MinLen(1)] | None,
            "the ranks that take part, in order; of a pair the source's first. Null or "
            "absent without MPI.",
        ]
    ]
    datatype: NotRequired[Datatype | None]
    placement: NotRequired[
        Annotated[
            Text | None,
            "of E6: how the ranks were placed, by a name of the node model's placements, or "
            "given; null or absent elsewhere",
        ]
    ]
    in_place: NotRequired[
        Annotated[
            bool | None,
            "of RCCL and NCCL: whether a rank receives where it sends from; null or absent "
            "elsewhere",
        ]
    ]
    bytes: Annotated[
        PositiveInt, "size of one array or message; of a pointer chase the array chased through"
    ]
    bytes_moved: Annotated[
        PositiveInt,
        "bytes counted per operation, by the convention of bytes_counted; of all "
        "devices for a sum. Of a pointer chase those of one load.",
    ]
    bytes_counted: BytesCounted
    regime: Regime
    block_size: Annotated[int | None, "threads per block; null without a kernel"]
    elements: NotRequired[
        Annotated[
            int | None,
            "elements of 16 bytes a thread of a kernel; null without a kernel, absent in "
            "documents from before it was recorded",
        ]
    ]
    grid: NotRequired[
        Annotated[
            PositiveInt | None,
            "blocks of a launch of a kernel that loops over the arrays, and so the most "
            "compute units at work; null without a kernel and where the blocks cover the "
            "arrays, absent in documents from before it was recorded",
        ]
    ]
    batch: Annotated[PositiveInt, "operations per sample; of a pointer chase loads"]
    passes: NotRequired[
        Annotated[
            PositiveInt | None,
            "how many of a sample's operations one launch of a kernel makes; null or absent "
            "without a kernel, and in documents from before it was recorded",
        ]
    ]
    unit: SeriesUnit
    better: Better
    samples: Annotated[
        Annotated[list[float], MinLen(1)], "every sample, in order of measurement, in 'unit'"
    ]
    median: float
    p99: NotRequired[
        Annotated[
            PositiveFloat | None,
            "of latencies between nodes: the time that 99 % of single messages do not "
            "exceed; null or absent elsewhere",
        ]
    ]
    mad: Annotated[NonNegativeFloat, "median absolute deviation from the median, not scaled"]
    ci95: Annotated[
        Annotated[list[float], Len(2, 2)] | None,
        "interval of at least 95 % confidence for the median, from order statistics; "
        "null with fewer than six samples",
    ]
    relative_half_width: Annotated[
        float | None, "half the width of ci95 over the median; null without ci95"
    ]
    host_clock: Annotated[
        HostClock | None,
        "the same samples by the host's clock; null for a simulated clock, for a share, "
        "and where the samples themselves are by the host's clock",
    ]
    noisy: Annotated[bool, "true when relative_half_width is above the noise limit of the run"]
    verification: Verification
    energy: NotRequired[
        Annotated[
            SeriesEnergy,
            "of a single transfer or of the sum of several; absent where it was not asked for or "
            "no counter can be read",
        ]
    ]


class NodeOverlay(TypedDict):
    """The overlay that changed a simulated node."""

    name: Text
    content: Annotated[dict[str, Any], "the overlay file as a whole"]


class SimulatedNode(TypedDict):
    """The node model that was simulated."""

    name: Text
    digest: Annotated[str, "SHA-256 of the model's file"]
    overlay: Annotated[
        NodeOverlay | None, "what changed the node; null for the node as its model says"
    ]


class NetworkPlace(TypedDict):
    """Where a NIC is in the network."""

    group: Text
    switch: Text
    port: Text | None


class UsedNic(TypedDict):
    """A NIC whose counters moved with a rank's messages, and the part of the bytes it sent."""

    name: Word
    part: PositiveFloat


class RankNetwork(TypedDict):
    """What a rank's messages left its node by, as counters and open files showed."""

    nics: Annotated[
        list[UsedNic],
        "the NICs, or interfaces of the kernel's stack, whose counters moved with its "
        "messages, the busiest first, with the part of the bytes that each sent. Empty "
        "where none moved or none can be read.",
    ]
    transport: Transport | None
    provider: Annotated[
        Text | None,
        "the driver of the NICs that the process keeps open: cxi or verbs; tcp where it "
        "keeps none and the kernel's counters moved. Null where it cannot be told.",
    ]
    place: Annotated[
        NetworkPlace | None,
        "group, switch and port of the busiest NIC, where its address or the places "
        "given to the program tell them",
    ]


class Rank(TypedDict):
    """The cores, memory, devices and network of one rank of a launch."""

    rank: NonNegativeInt
    host: Annotated[NodeName, "name of its machine"]
    cores: Annotated[list[NonNegativeInt], "cores it may run on, by operating system index"]
    numa_domain: Annotated[
        int | None, "the NUMA domain of all those cores; null when there are several"
    ]
    memory_domain: Annotated[
        int | None,
        "the NUMA domain on which memory was found that it allocated; null when the "
        "system does not say",
    ]
    visible_devices: Annotated[
        list[NonNegativeInt], "indices in devices, in the order of the rank's own numbers"
    ]
    device: Annotated[
        NonNegativeInt | None, "index in devices of the one it uses; null without one"
    ]
    network: NotRequired[
        Annotated[
            RankNetwork | None,
            "of a rank with messages to other nodes: what they left its node by, read back "
            "before any rate was measured. Null or absent elsewhere.",
        ]
    ]


class NicPcie(TypedDict):
    """The PCIe link of a NIC as it is, and the most that the NIC itself allows."""

    gt_per_s: PositiveFloat | None
    width: PositiveInt | None
    gt_per_s_max: PositiveFloat | None
    width_max: PositiveInt | None


class NodeNic(TypedDict):
    """A NIC of a node; null where the kernel does not tell it, with the reason in absent."""

    node: Annotated[NodeName, "the scheduler's name of the node, else its host name"]
    name: Annotated[Word, "the kernel's name of it: cxi0, mlx5_0, or that of the interface"]
    kind: NotRequired[
        Annotated[
            Literal["cxi", "infiniband", "net"],
            "by the class of the kernel that has it. cxi: Slingshot. infiniband: InfiniBand "
            "and RoCE. net: Ethernet, listed where a node has neither.",
        ]
    ]
    link_layer: NotRequired[
        Annotated[
            Literal["InfiniBand", "Ethernet"] | None,
            "of a NIC of the class infiniband, whose ports may be either",
        ]
    ]
    interface: NotRequired[Annotated[Word | None, "the kernel's network interface on it"]]
    address: NotRequired[
        Annotated[
            Word | None, "the MAC address of that interface; of InfiniBand the GUID of the NIC"
        ]
    ]
    pci_address: NotRequired[PciAddress | None]
    numa_domain: NotRequired[NonNegativeInt | None]
    near_devices: NotRequired[
        Annotated[
            list[PciAddress],
            "PCI addresses of the devices with which it shares the most PCIe bridges; empty "
            "where it shares none",
        ]
    ]
    state: NotRequired[Literal["up", "down"] | None]
    gbit_per_s: NotRequired[
        Annotated[PositiveFloat | None, "the present rate of its link to the network, in Gb/s"]
    ]
    mtu_bytes: NotRequired[
        Annotated[
            PositiveInt | None,
            "of CXI the largest packet of high-performance traffic, else that of the interface",
        ]
    ]
    pcie: NotRequired[
        Annotated[NicPcie, "its PCIe link at present, and the most that it allows itself"]
    ]
    firmware: NotRequired[Text | None]
    driver: NotRequired[
        Annotated[Text | None, "name and, where it states one, version of its driver"]
    ]
    place: NotRequired[
        Annotated[
            NetworkPlace | None,
            "its group, switch and port in the network, where its fabric tells them",
        ]
    ]
    loopback_gbs: NotRequired[
        Annotated[
            PositiveFloat | None,
            "what a vendor's loopback reached, in GB/s; null or absent without one",
        ]
    ]
    errors: NotRequired[
        Annotated[
            dict[str, Annotated[list[NonNegativeInt], Len(2, 2)]],
            "by counter (docs/network.md) its value before and after. Only those that can be read.",
        ]
    ]
    absent: NotRequired[Annotated[list[Absent], "what is not known of it, each with the reason"]]


class Skipped(TypedDict):
    """An operation that was requested but cannot be measured on this node."""

    operation: Text
    reason: Text


class NicOfRounds(TypedDict):
    """The NIC beside a rank; the name is null where it is not known."""

    name: Annotated[Word | None, "null where it is not known"]
    place: NetworkPlace | None


class NodeOfRounds(TypedDict):
    """A node of a launch over many, its ranks and the NIC beside each."""

    node: Annotated[NodeName, "the scheduler's name of the node, else its host's"]
    ranks: Annotated[list[NonNegativeInt], MinLen(1)]
    nics: Annotated[list[NicOfRounds], "the NIC beside each of its ranks"]


class MeasuredRound(TypedDict):
    """Pairs of nodes at the same time; the columns have a list for each pair, by NIC."""

    phase: Annotated[
        int,
        "1: every node with partners in turn. 2: suspects again, with partners that "
        "proved good, and pairs that were low.",
    ]
    distance: Distance | None
    seconds: Annotated[NonNegativeFloat, "from the command to the last result"]
    pairs: list[Annotated[list[NonNegativeInt], Len(2, 2)]]
    out: Annotated[
        list[list[PositiveFloat | None]],
        "GB/s from the first node of the pair to the second, each NIC apart",
    ]
    back: Annotated[list[list[PositiveFloat | None]], "the same from the second to the first"]
    together_out: Annotated[
        list[list[PositiveFloat | None]], "as out, of all NICs of the node at the same time"
    ]
    together_back: Annotated[
        list[list[PositiveFloat | None]], "as back, of all NICs at the same time"
    ]
    both: Annotated[
        list[list[PositiveFloat | None]],
        "the sum of both directions at once, GB/s, of all NICs at the same time",
    ]
    latency: Annotated[
        list[list[PositiveFloat | None]], "half a round trip of a small message, us, each NIC apart"
    ]


class LeftOut(TypedDict):
    """A node that was not measured, or from a round on not any more."""

    node: NodeName
    round: Annotated[NonNegativeInt | None, "index of the round; null before the first"]
    reason: Text


class FailedMessages(TypedDict):
    """Messages of a pair of NICs that failed."""

    round: NonNegativeInt
    nodes: Annotated[list[NonNegativeInt], Len(2, 2)]
    nic: NonNegativeInt
    reason: Text


#: Messages that arrived with wrong data.
WrongMessage = TypedDict(
    "WrongMessage",
    {
        "round": NonNegativeInt,
        "from": NonNegativeInt,
        "to": NonNegativeInt,
        "nic": NonNegativeInt,
        "errors": PositiveInt,
        "offset_bytes": NonNegativeInt,
        "expected": str,
        "found": str,
    },
)


class SuspectNic(TypedDict):
    """What phase 2 measured again: a NIC of a node, null for all of its NICs at once."""

    node: NonNegativeInt
    nic: Annotated[NonNegativeInt | None, "null for all NICs of the node at once"]


class RoundsMember(TypedDict):
    """Rates between nodes that were paired in rounds."""

    bytes: Annotated[PositiveInt, "of each message of a rate"]
    messages: Annotated[PositiveInt, "messages in flight at once, a sample"]
    repetitions: Annotated[PositiveInt, "samples of each rate, of which it is the median"]
    memory: Memory
    planned: Annotated[NonNegativeInt, "rounds of phase 1 that were planned"]
    bytes_checked: Annotated[
        NonNegativeInt, "bytes that were compared after messages, of all nodes"
    ]
    nodes: Annotated[
        list[NodeOfRounds], "the nodes that were measured, in the order of their first ranks"
    ]
    rounds: Annotated[
        list[MeasuredRound],
        "in the order of measurement. The columns have a list for each pair, with a "
        "number for each NIC; null where it was not measured.",
    ]
    suspects: Annotated[list[SuspectNic], "what phase 2 measured again, the lowest first"]
    low_pairs: Annotated[
        list[Annotated[list[NonNegativeInt], Len(2, 2)]],
        "pairs of nodes without a suspect that were low and were measured again",
    ]
    left_out: Annotated[
        list[LeftOut],
        "nodes that were not measured, or from a round on not any more, each with the "
        "reason as a sentence",
    ]
    failed: Annotated[
        list[FailedMessages], "messages that failed, each with the reason as a sentence"
    ]
    wrong: Annotated[
        list[WrongMessage],
        "messages that arrived with wrong data, with the first element that differs",
    ]


class Setting(TypedDict):
    """A setting of the node or the job that changes measured values."""

    name: Word
    value: Text
    concerns: Concern


class BusyProcess(TypedDict):
    """A process that used CPU time of the host."""

    pid: PositiveInt
    user: str | None
    command: str | None
    cores: PositiveFloat


class HostUse(TypedDict):
    """What else the host did during the run."""

    seconds: PositiveFloat
    busy_cores: Annotated[
        NonNegativeFloat, "the mean number of cores that were busy with anything else than this run"
    ]
    stolen_cores: Annotated[
        NonNegativeFloat, "the mean number of cores whose time the hypervisor took"
    ]
    processes: Annotated[
        Annotated[list[BusyProcess], MaxLen(5)],
        "those that took most of it, at least 0.2 cores each",
    ]


class ControllerErrors(TypedDict):
    """Errors that a memory controller of the host counted since boot."""

    controller: Text
    corrected: NonNegativeInt
    uncorrected: NonNegativeInt


class PciFunction(TypedDict):
    """An accelerator that PCI shows, whether or not a driver lists it."""

    address: PciAddress
    vendor: Annotated[str, "0x1002: AMD. 0x10de: NVIDIA."]
    device: Annotated[str, "the vendor's number of the kind of device"]
    driver: Annotated[Text | None, "the driver that has it; null where none does"]
    mode: Annotated[
        Text | None,
        "the mode in which the driver divides it, such as CPX or MIG; SPX or none where "
        "it is whole; null if unknown",
    ]
    accessible: Annotated[
        bool | None,
        "whether the program may open its device file, which a control group can "
        "prevent; null where its driver names none",
    ]


class HostState(TypedDict):
    """The host at one time."""

    load_1min: Annotated[
        NonNegativeFloat | None,
        "the load of the host in the last minute",
    ]
    cores: Annotated[PositiveInt | None, "cores of the host that are online"]
    others: Annotated[
        HostUse | None,
        "what the host did besides this run, in some seconds: since the snapshot before "
        "the body, or in a short time before that one",
    ]
    governor: Annotated[
        Text | None, "the frequency governor of the cores that the run may use; several with commas"
    ]
    huge_pages_reserved: Annotated[NonNegativeInt | None, "huge pages that the host reserves"]
    huge_pages_free: Annotated[NonNegativeInt | None, "huge pages of the host that are free"]
    huge_page_bytes: Annotated[PositiveInt | None, "the size of a huge page"]
    free_bytes: Annotated[dict[str, NonNegativeInt] | None, "free memory by NUMA domain"]
    memory_errors: NotRequired[
        Annotated[
            list[ControllerErrors] | None,
            "by memory controller the errors since the system was started. The memory of "
            "devices that are joined to the CPU may be among them.",
        ]
    ]
    pci_functions: NotRequired[list[PciFunction] | None]


class MemoryErrors(TypedDict):
    """Memory errors of a device since its driver was loaded."""

    corrected: Annotated[NonNegativeInt | None, "a counter of its corrected memory errors"]
    uncorrected: Annotated[NonNegativeInt | None, "a counter of its uncorrected memory errors"]


class Pcie(TypedDict):
    """The PCIe link between a device and the host, and what each end allows."""

    width: Annotated[NonNegativeInt | None, "lanes of its link to the host"]
    width_max: Annotated[NonNegativeInt | None, "the most lanes that this link can have"]
    width_max_port: NotRequired[
        Annotated[NonNegativeInt | None, "the most lanes of the port above the device"]
    ]
    gt_per_s: Annotated[NonNegativeFloat | None, "transfers per second of a lane, in 1e9"]
    gt_per_s_max: Annotated[
        NonNegativeFloat | None, "the highest rate of a lane, in 1e9 transfers per second"
    ]
    replays: Annotated[NonNegativeInt | None, "a counter of the PCIe packets sent again"]


class Links(TypedDict):
    """The links of a device to other devices."""

    number: Annotated[PositiveInt, "how many the device has"]
    down: Annotated[list[NonNegativeInt], "those that are not up, by their numbers from 0"]
    width: Annotated[NonNegativeInt | None, "the least number of lanes of those that are up"]
    gb_per_s: Annotated[
        NonNegativeFloat | None, "the least rate of those that are up, in one direction"
    ]


class DeviceProcess(TypedDict):
    """A process outside the run that uses a device."""

    pid: PositiveInt
    user: Annotated[str | None, "null, as the command, where this process may not see it"]
    command: str | None
    memory_bytes: NonNegativeInt | None


class DeviceState(TypedDict):
    """A device at one time; null where no source tells the value."""

    index: Annotated[NonNegativeInt, "as in devices"]
    clock_mhz: Annotated[NonNegativeFloat | None, "the clock of its compute units, in MHz"]
    clock_max_mhz: Annotated[
        NonNegativeFloat | None, "the highest clock of its compute units, in MHz"
    ]
    memory_clock_mhz: Annotated[NonNegativeFloat | None, "the clock of its memory, in MHz"]
    memory_clock_max_mhz: Annotated[
        NonNegativeFloat | None, "the highest clock of its memory, in MHz"
    ]
    temperature_c: Annotated[float | None, "its highest temperature, in deg C"]
    memory_temperature_c: Annotated[float | None, "the temperature of its memory, in deg C"]
    power_w: Annotated[NonNegativeFloat | None, "its power, in W"]
    power_cap_w: Annotated[PositiveFloat | None, "its power cap, in W"]
    power_cap_default_w: Annotated[PositiveFloat | None, "its power cap as delivered, in W"]
    busy_percent: Annotated[NonNegativeFloat | None, "its utilization, in per cent"]
    throttle: list[Throttle] | None
    throttled_s: dict[Throttle, float | None] | None
    energy_j: Annotated[NonNegativeFloat | None, "a counter of its energy, in J"]
    memory_errors: Annotated[
        MemoryErrors | None, "errors of the device's memory since the driver was loaded"
    ]
    pcie: Pcie | None
    links: Annotated[Links | None, "the links to other devices: NVLink, or xGMI"]
    link_errors: NotRequired[
        Annotated[
            dict[LinkError, dict[str, PositiveInt]] | None,
            "counters of the errors of its links, to other devices and to the host, by kind, "
            "and by the number of the link (all: the driver has one counter for all links); "
            "counters that are 0 are left out",
        ]
    ]
    vbios: Annotated[Text | None, "the version of its VBIOS"]
    firmware: Annotated[dict[str, str] | None, "versions by name"]
    compute_partition: Annotated[
        Text | None, "AMD's mode (SPX); of NVIDIA whether MIG is on (MIG) or off (none)"
    ]
    memory_partition: Annotated[Text | None, "its memory partition: NPS1, ..."]
    ecc: Annotated[bool | None, "whether its memory corrects errors"]
    processes: Annotated[
        list[DeviceProcess] | None, "processes that use the device and are not of this run"
    ]


class Absent(TypedDict):
    """An item that could not be determined."""

    item: Text
    why: Text


class Snapshot(TypedDict):
    """The node and its devices at one time."""

    at: str
    seconds: Annotated[NonNegativeFloat, "how long it took, without opening the vendor's library"]
    opening_seconds: Annotated[
        NonNegativeFloat | None, "how long it took to open that; null where none is opened"
    ]
    host: HostState
    devices: Annotated[list[DeviceState], "the devices that have a PCI address, in their order"]


class State(TypedDict):
    """The node before and after the body of the program.

    after: complete once the document is read; the file has only what changed.
    """

    before: Annotated[Snapshot, "host and devices have all their members"]
    after: Annotated[
        Snapshot | None,
        "of host and devices the members that are not as in before, or all. Null where "
        "the run did not finish.",
    ]
    absent: Annotated[list[Absent], "items of which nothing is known, each with the reason"]
    sources: Annotated[
        dict[str, Text], "by item the file, or the function of the vendor's library, that told it"
    ]


class LogLine(TypedDict):
    """What a line of a log says of a device."""

    kind: LogKind
    pci_address: PciAddress | None
    text: Text
    row: NotRequired[
        Annotated[
            Text,
            "the row of the table of lines that it matches; absent where it has none, or in an "
            "older document",
        ]
    ]


class Aftermath(TypedDict):
    """What another process saw of the node after the program ended badly."""

    exit_code: Annotated[
        NonNegativeInt, "of the program, as its shell saw it: 128 + n after signal n"
    ]
    pci_functions: list[PciFunction] | None
    kernel_log: Annotated[
        list[LogLine] | None,
        "lines of the kernel's log since the program began; null where it cannot be read",
    ]
    runtime_log: Annotated[
        list[LogLine] | None,
        "what ROCr wrote on the program's standard error about a device; null where "
        "that cannot be read",
    ]
    absent: Annotated[list[Absent], "what is not known, each with the reason"]


class Difference(TypedDict):
    """A difference between a node and its model."""

    sentence: Annotated[Text, "with the pair, device, NUMA domain or NIC"]
    devices: Annotated[
        list[NonNegativeInt], "the pair or the device that differs; empty where it is another part"
    ]
    found: Annotated[
        int | None,
        "the links of the pair or the NUMA domain of the device, as found; null where another "
        "property differs",
    ]
    lost: Annotated[
        bool,
        "whether a device, a link or a NIC is gone that the node model states (published or "
        "measured), that PCI shows, or that an earlier session of the host had",
    ]


class ReadingUnderLoad(TypedDict):
    """The devices at one time of a load."""

    at_s: Annotated[NonNegativeFloat, "since the load began"]
    devices: list[DeviceUnderLoad]


#: Data that a pass left wrong, or that became wrong where it lay since an earlier pass.
WrongUnderLoad = TypedDict(
    "WrongUnderLoad",
    {
        "at_s": Annotated[NonNegativeFloat, "when it was found, since the load began"],
        "pass": Annotated[int, "the pass after which it was found, from 0"],
        "series": Annotated[NonNegativeInt, "index of the series in the document"],
        "at_rest": Annotated[bool, "it was right after an earlier pass"],
        "errors": Annotated[PositiveInt, "words that differ"],
        "device": Annotated[int | None, "that holds the first of them; null for host memory"],
        "offset_bytes": Annotated[
            NonNegativeInt,
            "of the first of them, in the array that the copies write; of copies within a device's "
            "memory in all that they walk through",
        ],
        "expected": str,
        "found": str,
        "bits": Annotated[list[NonNegativeInt], "in which the first of them differs, 0 the lowest"],
    },
)


class ThrottledUnderLoad(TypedDict):
    """How long a device ran below its clock during a load."""

    index: Annotated[NonNegativeInt, "as in devices"]
    throttled_s: dict[Throttle, float | None] | None


class SoakMember(TypedDict):
    """A load on everything at once, in passes."""

    passes: Annotated[
        list[Annotated[list[NonNegativeFloat], Len(2, 2)]],
        "begin and end of each pass in s since the load began; each is a sample of each series",
    ]
    cpu_s: Annotated[
        NonNegativeFloat | None,
        "time of the host's processors that the program took during the load; null of a "
        "simulated node",
    ]
    readings: Annotated[list[ReadingUnderLoad], "of devices with a PCI address"]
    throttled: NotRequired[
        Annotated[
            list[ThrottledUnderLoad],
            "what drivers counted from the first pass on to the last; absent in documents from "
            "before it was recorded",
        ]
    ]
    wrong: Annotated[list[WrongUnderLoad], "wrong data, in the order in which it was found"]


class ResultDocument(TypedDict):
    """The result of one run of one program."""

    schema: Literal["fabricheck-result"]
    schema_version: Literal[1]
    complete: Annotated[
        bool,
        "true when every series that was asked for is there; false when the run ended "
        "early or is still going on",
    ]
    program: Program
    clock: Clock
    node: NotRequired[
        Annotated[
            SimulatedNode | None,
            "the node model that was simulated; null or absent where times are measured",
        ]
    ]
    started: str
    finished: str | None
    duration_s: NonNegativeFloat
    simulated_s: NotRequired[
        Annotated[
            NonNegativeFloat,
            "seconds that the simulated clock went on during the run: all operations of the "
            "simulated node, verification included, and no start of a program. Absent where "
            "times are measured, where the run did not end by itself, and in documents from "
            "before it was recorded.",
        ]
    ]
    host: Host
    devices: list[Device]
    versions: Annotated[Versions, "versions of runtime and driver as the runtime reports them"]
    environment: Annotated[dict[str, str], "only variables on the allow-list of the harness"]
    arguments: Annotated[list[str], MinLen(1)]
    options: Annotated[dict[str, Any], "the arguments as resolved, defaults included"]
    faults_injected: Annotated[
        list[str],
        "faults that were injected, as given on the command line; empty in a real measurement",
    ]
    outcome: Outcome
    ranks: NotRequired[
        Annotated[
            Annotated[list[Rank], MinLen(1)] | None,
            "the ranks of an MPI launch, in order: where each is, and what it sees. Null or "
            "absent without MPI.",
        ]
    ]
    settings: NotRequired[
        Annotated[
            list[Setting],
            "variables and other settings of the node or the job that change what is "
            "measured. Absent in documents from before they were recorded.",
        ]
    ]
    state: NotRequired[
        Annotated[
            State,
            "what the node and its devices were like before the body of the program and "
            "after it. Absent of a simulated node, and in documents from before it was "
            "recorded.",
        ]
    ]
    aftermath: NotRequired[
        Annotated[
            Aftermath,
            "what another process saw of the node after the program ended badly. Absent "
            "where it finished.",
        ]
    ]
    series: list[Series]
    rounds: NotRequired[
        Annotated[
            RoundsMember | None,
            "of fabric: rates between nodes that were paired in rounds. A NIC is that "
            "beside a rank, by its position among the ranks of its node; nodes are indices "
            "in its member nodes. Null or absent elsewhere.",
        ]
    ]
    soak: NotRequired[
        Annotated[
            SoakMember | None,
            "of soak: the passes of its load, and what was seen meanwhile. Null or absent "
            "elsewhere.",
        ]
    ]
    skipped: NotRequired[
        Annotated[
            list[Skipped] | None,
            "operations that were asked for and cannot be measured here, with the reason as "
            "a sentence. Null or absent where there are none.",
        ]
    ]
    differences: NotRequired[
        Annotated[
            list[Difference] | None,
            "what differs between the node and its model. Empty where nothing does; null or "
            "absent where nothing was compared.",
        ]
    ]
    nics: NotRequired[
        Annotated[
            list[NodeNic] | None,
            "the NICs of the nodes: of a comparison with the node model (E16) all that the "
            "kernel shows of them, of a launch over several nodes their names, addresses "
            "and errors. Null or absent elsewhere.",
        ]
    ]
    notes: Annotated[list[str], "sentences a reader of the numbers should know"]
