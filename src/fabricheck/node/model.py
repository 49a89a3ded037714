"""A node model in memory: immutable, with everything that can be derived from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, permutations
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from fabricheck.core.errors import UsageError
from fabricheck.core.vocabulary import Mover
from fabricheck.node import paths, subsets
from fabricheck.node.paths import LinkClass, Matrix, Pair, Path
from fabricheck.node.schema import Provenance, SimulationSection, Source

if TYPE_CHECKING:
    from fabricheck.node.overlay import Overlay  # most nodes have none

#: The ROCm before 6.0 uses one engine for a copy; simulations are fitted to such bandwidths.
FITTED_ROCM = "5.7"

#: The peaks that bound what is measured.
_PEAKS = ("devices.memory_peak", "links.peak", "switch.peak", "host_link.peak")

#: The kinds of facts that a limit may rest on.
SOUND = ("published", "measured", "derived")

#: The type of a host link where there is none: cores and compute units share one memory.
SHARED_MEMORY = "shared memory"


@dataclass(frozen=True)
class Device:
    """One device, as HIP or CUDA numbers it.

    Bandwidths are peaks in GB/s; ``host_link_gbs`` is per direction, and infinite where it is
    unknown, as peaks of links and of a switch are. ``near_cores`` are the cores of its NUMA domain
    that are nearest to it, reserved ones left out. ``unique_id`` is the vendor's, where the model
    is a draft of one machine.
    """

    index: int
    package: int
    domain: int
    memory_bytes: int
    memory_peak_gbs: float | None
    host_link_gbs: float
    near_cores: tuple[int, ...]
    pci_address: str | None = None
    unique_id: str | None = None


@dataclass(frozen=True)
class Domain:
    """One NUMA domain; ``memory_peak_gbs`` is ``None`` where no document states it."""

    index: int
    cores: tuple[int, ...]
    reserved: tuple[int, ...]
    devices: tuple[int, ...]
    memory_peak_gbs: float | None

    @property
    def usable_cores(self) -> tuple[int, ...]:
        """Its cores but those reserved for the system."""
        return tuple(core for core in self.cores if core not in self.reserved)


@dataclass(frozen=True)
class Link:
    """The links between two devices: how many, and the peak of one, in GB/s per direction."""

    count: int
    peak_gbs: float

    @property
    def total_gbs(self) -> float:
        """The peak of all links together, in GB/s per direction."""
        return self.count * self.peak_gbs


@dataclass(frozen=True)
class Switch:
    """A switch: links of each device to it, and the peak of one, in GB/s per direction."""

    links_per_device: int
    peak_gbs: float


@dataclass(frozen=True)
class CopyEngine:
    """Peak of one copy-engine transfer in GB/s, and engines per device; ``None`` is unknown."""

    peak_gbs: float | None
    count: int | None


@dataclass(frozen=True)
class Nic:
    """A NIC: its name in the system, and what it hangs on.

    ``device`` is ``None`` if it hangs on the NUMA domain itself. Bandwidths are peaks in GB/s per
    direction; ``pcie_gbs`` and ``mtu_bytes`` are ``None`` where no document states them.
    """

    index: int
    name: str
    device: int | None
    domain: int
    peak_gbs: float
    pcie_gbs: float | None = None
    mtu_bytes: int | None = None


@dataclass(frozen=True)
class NodeModel:
    """A node model.

    ``links`` contains pairs ``(a, b)`` with a < b; a node with a ``switch`` has none. ``facts``
    maps the key of each fact in the file to its provenance. ``part_of`` is the number of devices in
    the file, if this is a :meth:`part` of them. ``rocm`` is the version that a simulation imitates.
    """

    name: str
    title: str
    vendor: Literal["amd", "nvidia"]
    device_model: str
    architecture: str
    file: str
    sha256: str
    devices: tuple[Device, ...]
    domains: tuple[Domain, ...]
    links: Mapping[Pair, Link]
    switch: Switch | None
    host_link_type: str
    copy_engine: CopyEngine
    sources: Mapping[str, Source]
    facts: Mapping[str, Provenance]
    nics: tuple[Nic, ...] = ()
    systems: tuple[str, ...] = ()
    overlay: Overlay | None = field(default=None)
    simulation: SimulationSection | None = None
    part_of: int | None = None
    rocm: str = FITTED_ROCM

    @property
    def link_facts(self) -> tuple[str, str]:
        """The keys of what the peak of a linked pair rests on: its links, and the peak of one."""
        return ("links", "links.peak_gbs") if self.switch is None else ("switch", "switch.peak_gbs")

    def doubt(self, *keys: str) -> str | None:
        """Return the first of some facts that no limit may rest on; None if one may rest on all.

        An assumption never fails a node.
        """
        for key in keys:
            kind = self.facts[key].kind
            if kind not in SOUND:
                return f"the {kind} {key} of the node model {self.name}"
        return None

    @property
    def unknown_peaks(self) -> list[str]:
        """The keys of the peaks of devices and links that are unknown."""
        facts = ((f"{peak}_gbs", self.facts.get(f"{peak}_gbs")) for peak in _PEAKS)
        return [key for key, fact in facts if fact is not None and fact.kind == "unknown"]

    @property
    def shares_memory(self) -> bool:
        """Whether a device and its NUMA domain share one memory, without a link between them."""
        return self.host_link_type == SHARED_MEMORY

    def part(self, count: int) -> NodeModel:
        """Return the node with its first devices and the cores near them, as a machine may show it.

        Cores that are near to other devices only are left out, and a NUMA domain without a core
        that remains is left out too. All devices are the node itself.

        :raises UsageError: for no device, for more devices than the node has, and for a node whose
            file does not state that machines show a part of it (key ``parts``).
        """
        whole = len(self.devices)
        if count == whole:
            return self
        if not 1 <= count < whole:
            raise UsageError(f"{self.name} has {whole} devices, and {count} were requested.")
        if "parts" not in self.facts:
            raise UsageError(
                f"{self.name} has {whole} devices, and {count} were requested: {self.file} does "
                "not state what a machine with some of them shows (key parts)."
            )
        near = {core for device in self.devices[:count] for core in device.near_cores}
        away = {core for device in self.devices[count:] for core in device.near_cores} - near
        domains = (
            replace(
                domain,
                cores=tuple(core for core in domain.cores if core not in away),
                reserved=tuple(core for core in domain.reserved if core not in away),
                devices=tuple(device for device in domain.devices if device < count),
            )
            for domain in self.domains
        )
        return replace(
            self,
            name=f"{self.whole_name} ({count} of {self.part_of or whole} devices)",
            devices=self.devices[:count],
            domains=tuple(domain for domain in domains if domain.cores),
            nics=tuple(nic for nic in self.nics if nic.device is not None and nic.device < count),
            part_of=self.part_of or whole,
        )

    @property
    def whole_name(self) -> str:
        """The name of the model, also of a part of it."""
        return PurePath(self.file).stem if self.part_of else self.name

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of the model, for a result: names, digests, and the overlay's content.

        Keys: ``node``, ``file``, ``sha256``, ``overlay`` (``None``, or ``name``, ``file``,
        ``sha256``, ``content``).
        """
        return {
            "node": self.name,
            "file": self.file,
            "sha256": self.sha256,
            "overlay": None if self.overlay is None else self.overlay.identity,
        }

    @cached_property
    def packages(self) -> tuple[tuple[int, ...], ...]:
        """The devices of each package."""
        numbers = sorted({device.package for device in self.devices})
        return tuple(
            tuple(d.index for d in self.devices if d.package == number) for number in numbers
        )

    @cached_property
    def link_counts(self) -> Mapping[Pair, int]:
        """Links of each directly connected pair (a < b); through a switch, those of a device."""
        if self.switch is not None:
            pairs = combinations(range(len(self.devices)), 2)
            return MappingProxyType(dict.fromkeys(pairs, self.switch.links_per_device))
        return MappingProxyType({pair: link.count for pair, link in self.links.items()})

    @cached_property
    def hop_matrix(self) -> Matrix:
        """Length of the shortest path of each pair, in hops: figure 6a of the paper on MI250X."""
        return paths.hop_matrix(self.link_counts, len(self.devices))

    @cached_property
    def link_matrix(self) -> Matrix:
        """Direct links of each pair; 0 where there is none."""
        n = len(self.devices)
        counts = self.link_counts
        return tuple(
            tuple(counts.get((min(a, b), max(a, b)), 0) for b in range(n)) for a in range(n)
        )

    @cached_property
    def detour_pairs(self) -> tuple[Pair, ...]:
        """Pairs whose widest path is longer than their shortest one."""
        return tuple(
            (a, b)
            for a, b in combinations(range(len(self.devices)), 2)
            if self.hop_matrix[a][b] and self.link_class(a, b).hops > self.hop_matrix[a][b]
        )

    @cached_property
    def link_classes(self) -> Mapping[LinkClass, tuple[Pair, ...]]:
        """The pairs (a < b) of each link class, the widest class first."""
        classes: dict[LinkClass, list[Pair]] = {}
        for pair in combinations(range(len(self.devices)), 2):
            classes.setdefault(self.link_class(*pair), []).append(pair)
        ordered = sorted(classes, key=lambda c: (-c.links, c.hops))
        return MappingProxyType({c: tuple(classes[c]) for c in ordered})

    def device(self, index: int) -> Device:
        """Return a device.

        :raises UsageError: when the node has no such device.
        """
        if not 0 <= index < len(self.devices):
            raise UsageError(
                f"{self.name} has no device {index}; its devices are 0 to {len(self.devices) - 1}."
            )
        return self.devices[index]

    def widest_path(self, source: int, destination: int) -> Path:
        """Return the path with most links at its narrowest hop, then with the fewest hops."""
        self._pair(source, destination)
        return self._widest_paths[source, destination]

    @cached_property
    def _widest_paths(self) -> Mapping[Pair, Path]:
        """The widest path by ordered pair: each series of a result asks for one."""
        pairs = permutations(range(len(self.devices)), 2)
        return {pair: paths.widest_path(self.link_counts, *pair) for pair in pairs}

    def link_class(self, source: int, destination: int) -> LinkClass:
        """Return the link class of a pair: the links and the hops of its widest path."""
        self._pair(source, destination)
        return self._link_classes[source, destination]

    @cached_property
    def _link_classes(self) -> Mapping[Pair, LinkClass]:
        """The link class by ordered pair: each series of a result asks for one."""
        return {
            pair: paths.link_class(self.link_counts, path, switched=self.switch is not None)
            for pair, path in self._widest_paths.items()
        }

    def path_peak_gbs(self, path: Path) -> float:
        """Return the theoretical peak of a path, its narrowest hop's, in GB/s per direction."""
        if self.switch is not None:
            return self.switch.links_per_device * self.switch.peak_gbs
        return min(self.links[(min(hop), max(hop))].total_gbs for hop in pairwise(path))

    def peer_peak_gbs(self, source: int, destination: int, engine: Mover = "kernel") -> float:
        """Return the theoretical peak of a transfer between two devices, in GB/s per direction.

        By kernel it is that of the widest path; where there is none, the data takes the host links
        of both. By copy engine it is also limited by the peak stated for one engine, which
        documents round: use the kernel's as the physical bound.

        :raises UsageError: for a device that the node lacks.
        """
        path = self.widest_path(source, destination)
        if not path:
            return min(self.devices[end].host_link_gbs for end in (source, destination))
        peak = self.path_peak_gbs(path)
        if engine == "copy-engine" and self.copy_engine.peak_gbs is not None:
            return min(peak, self.copy_engine.peak_gbs)
        return peak

    def nearest_nic(self, device: int) -> Nic | None:
        """Return the NIC nearest to a device; ``None`` on a node whose model has no NICs.

        That is the one on the device itself, else on its package, else on its NUMA domain, else on
        the device with the widest path: of several the first that was taken by the fewest devices
        before this one.

        :raises UsageError: for a device that the node lacks.
        """
        self.device(device)
        return self._nearest_nics[device] if self.nics else None

    @cached_property
    def _nearest_nics(self) -> Sequence[Nic]:
        chosen: list[Nic] = []
        for device in self.devices:
            steps = {nic: self._steps(device, nic) for nic in self.nics}
            least = min(steps.values())
            near = [nic for nic in self.nics if steps[nic] == least]
            chosen.append(min(near, key=chosen.count))
        return chosen

    def _steps(self, device: Device, nic: Nic) -> tuple[int, float]:
        """Return how far a NIC is from a device, and the missing bandwidth of the way there."""
        if nic.device == device.index:
            return 0, 0.0
        if nic.device is not None and self.devices[nic.device].package == device.package:
            return 1, 0.0
        if nic.domain == device.domain:
            return 2, 0.0
        if nic.device is None:
            return 4, 0.0
        return 3, -self.peer_peak_gbs(device.index, nic.device)

    @cached_property
    def nic_devices(self) -> tuple[int, ...]:
        """The device of the rank beside each NIC: the one that it hangs on, else the first near it.

        :raises UsageError: when a NIC has no device near it.
        """
        taken: list[int] = []
        for nic in self.nics:
            near = [
                device.index
                for device in self.devices
                if self.nearest_nic(device.index) == nic and device.index not in taken
            ]
            if nic.device is None and not near:
                raise UsageError(f"{self.name} has no device near NIC {nic.name}.")
            taken.append(near[0] if nic.device is None else nic.device)
        return tuple(taken)

    def device_sets(self) -> Mapping[str, tuple[int, ...]]:
        """Return the device sets of E5 that this node has, by name."""
        return subsets.device_sets(self.packages, len(self.devices))

    def best_subsets(self, k: int) -> tuple[tuple[int, ...], ...]:
        """Return the best sets of k devices, the first in order first.

        :raises UsageError: when k is below 1 or the node has fewer than k devices.
        """
        return subsets.best_subsets(self.link_matrix, k, self.name)

    @cached_property
    def growing_subsets(self) -> tuple[tuple[int, ...], ...]:
        """Return sets of 2, 3 ... all devices with the best bandwidth, nested where possible."""
        return subsets.growing_subsets(self.link_matrix, self.name)

    @cached_property
    def usable_cores(self) -> tuple[int, ...]:
        """The cores of all NUMA domains but those reserved for the system."""
        return tuple(core for domain in self.domains for core in domain.usable_cores)

    @cached_property
    def direct_peaks_gbs(self) -> tuple[tuple[float, ...], ...]:
        """Peak of the direct links of each pair, in GB/s per direction; 0 where there is none."""
        n = len(self.devices)
        peaks = {pair: link.total_gbs for pair, link in self.links.items()}
        if self.switch is not None:
            total = self.switch.links_per_device * self.switch.peak_gbs
            peaks = dict.fromkeys(self.link_counts, total)
        return tuple(
            tuple(peaks.get((min(a, b), max(a, b)), 0.0) for b in range(n)) for a in range(n)
        )

    def _pair(self, source: int, destination: int) -> None:
        self.device(source)
        self.device(destination)
        if source == destination:
            raise UsageError(f"{source}-{destination} is not a pair of two devices.")
