"""The row of one series: its columns, what identifies it, and how it is told from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fabricheck.core.vocabulary import ENGINE_SWITCHES, ENV_ENGINES, ENV_PEER_ENGINES, Clock
from fabricheck.results.check_rows import Check
from fabricheck.results.model import Place, ResultDocument
from fabricheck.results.model import Series as Measured
from fabricheck.results.series import Columns, Noise, kernel_variant, members

#: Two devices: source and destination of a transfer, or the ranks' in order. Of a kernel's copy
#: within a peer's memory the executing device and its peer.
Pair = tuple[int, int]

#: The experiment of every NUMA domain with every device.
OF_DOMAINS = "E4"

#: Experiments whose series by a copy engine or a kernel of the runtime are copies.
_COPIES = frozenset({"E2", "E4", "E6", "E7"})


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
        # Documents from before elements and loads were recorded have the defaults.
        by_kernel = self.engine == "kernel"
        elements = self.elements or (1 if by_kernel else None)
        loads = self.loads or ("plain" if by_kernel else None)
        domains: tuple[int | None, ...] = ()
        if self.experiment == OF_DOMAINS:
            domains = (self.source_domain, self.destination_domain)
        return (
            ("unit", self.unit),
            ("bytes_counted", self.bytes_counted),
            ("size", self.bytes),
            ("block_size", self.block_size),
            ("elements", elements),
            ("loads", loads),
            ("grid", self.grid),
            ("datatype", self.datatype),
            ("movement", self.movement),
            ("in_place", self.in_place),
            ("domains", domains),
            ("engines_off", self._engines_off),
            ("shared_by", self.engines if self.ganged else None),
        )

    @property
    def _engines_off(self) -> tuple[str, ...]:
        """The variables that turn copy engines off, where these are AMD's."""
        if self.check_row.runtime not in ("rocm", "sim"):
            return ()
        environment = self.document["environment"]
        return tuple(switch for switch in ENGINE_SWITCHES if environment.get(switch) == "0")

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
        source = self.source_memory.removeprefix("host-")
        destination = self.destination_memory.removeprefix("host-")
        memory = source if source == destination else f"{source}-{destination}"
        parts = [self.experiment, self.operation, memory.replace("device-peer", "peer")]
        if self.role != "single":
            parts.append(self.role)
        is_in_operation = "both" in self.operation or self.operation == "there-and-back"
        if self.direction == "both-ways" and not is_in_operation:
            parts.append("both ways")
        if self.movement:
            parts.append(self.movement)
        return " ".join(parts)

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
        return environment.get(ENV_PEER_ENGINES) == "0" and environment.get(ENV_ENGINES) != "0"

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
