"""The platform of a simulated node: resources, routes and costs, fully resolved.

The sim runtime reads it as JSON and knows nothing else about nodes: it starts flows over the links
that a route names. All bandwidths are those that a flow can reach: peaks times efficiencies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any, Literal, NamedTuple

from fabricheck.core.errors import InvalidFile
from fabricheck.core.show import listed
from fabricheck.node import over_time
from fabricheck.node.model import Device, Domain, Nic, NodeModel
from fabricheck.node.overlay import ResourceChange
from fabricheck.node.paths import Path
from fabricheck.node.schema import KnownQuantity, SimulationSection

#: The version of the JSON format, raised with every change that the runtime must know.
FORMAT = "fabricheck-platform-6"
#: The smaller number in the ratio of how often far and near pageable copies name their shared link
#: is at most this.
_MOST_TIMES = 10
#: The end of the name of a resource of one node of a system.
OF_NODE = re.compile(r" of node\d+")
#: The kinds of resources, by the text of their names.
ResourceKind = Literal[
    "memory of {0}",
    "link {0.number}-{1.number}",
    "host link to {1}",
    "host link from {0}",
    "interconnect {0}-{1}",
    "host reads of kernels of {0}",
    "host writes of kernels of {0}",
    "accesses of kernels of {0} to {1}",
    "page migration of {0}",
    "pageable copies to {1}",
    "pageable copies from {0}",
    "pageable copies of all devices",
    "copy engine of copies {0}-{1}",
    "copy engine of messages {0}-{1}",
    "copy engines of {0}",
    # Of no platform: what else limits a measurement, for the diagnosis.
    "kernels of {0}",
    "rank on {0}",
    "latency of copies {0.number}-{1.number}",
    "latency of messages {0.number}-{1.number}",
    "latency of link {0.number}-{1.number}",
    "latency of host copies to {1}",
    "latency of host copies from {0}",
    "transfers at once from {0}",
    "transfers at once to {1}",
    "{0.number} of mpi",
    "{0.number} of rccl",
    "device {0.number}",
    "pair {0.number}-{1.number}",
]


class End(NamedTuple):
    """Where a resource begins or ends: a device, a NUMA domain, the switch; or an operation."""

    what: str
    number: int | str

    def __str__(self) -> str:
        return f"{self.what}{self.number}"


class Resource(str):
    """The name of a resource, which knows what it is and where it begins and ends."""

    kind: ResourceKind
    source: End | None
    destination: End | None

    def __new__(  # noqa: D102 - as the class
        cls, kind: ResourceKind, source: End | None = None, destination: End | None = None
    ) -> Resource:
        key = (kind, source, destination)
        if key not in _MADE:
            made = _MADE[key] = super().__new__(cls, kind.format(source, destination))
            made.kind, made.source, made.destination = key
        return _MADE[key]

    @property
    def owner(self) -> End | None:
        """The end that it belongs to: the device of which it begins, else that at which it ends."""
        if self.source is not None and (self.source.what == "device" or self.destination is None):
            return self.source
        return self.destination


#: Each resource that was named: a diagnosis names the same ones for each wiring that it tries.
_MADE: dict[tuple[ResourceKind, End | None, End | None], Resource] = {}


def platform(node: NodeModel) -> dict[str, Any]:
    """Return the platform of a node model, with its overlay applied.

    Keys: ``format``; ``node`` (name, digest and overlay, for the result document); ``devices``;
    ``domains``; ``rocm``, the version that it imitates; ``launch_us``, of a kernel; ``links``
    (``gbs`` in GB/s; with ``each`` every flow gets that much, else all flows share it; a flow uses
    a link as often as its route names it; ``faults`` are those of an overlay that depend on the
    transfer); ``kernel`` (for a device and the memory it reads or writes, the links of both
    directions); ``copy`` (for two places, the links of a copy-engine transfer, and the ``start_us``
    before its data flow; for directly connected devices, how many are ``parallel``; with host
    memory also the links of ``pageable`` memory); ``pageable`` (``pin_us`` more before a copy of
    pageable memory, except of at most ``staged_bytes``); ``messages`` (for two places, the links of
    an MPI message ``by_engine`` and ``by_kernel``, the same between two domains; and the ``queue``
    among them that is the engine); ``message_cost`` (what a message costs its receiver: ``us`` of
    device memory, ``small_us`` of host memory and of fewer than ``small_bytes``). What an overlay
    changes with time is ``over_time``: of a link the parts of its bandwidth, of the platform the
    counters and flipped bits of devices (:mod:`fabricheck.node.over_time`).

    :raises InvalidFile: when the model lacks what a simulation needs, or the overlay names a
        resource that the platform does not have.
    """
    if node.overlay is not None and node.overlay.parts.of_systems:
        reason = "it changes a system of several nodes: export it with --nodes"
        raise InvalidFile(node.overlay.file, node.overlay.parts.of_systems, reason)
    return _with_overlay(node, simulated(node).content())


def simulated(node: NodeModel) -> Platform:
    """Return the links and routes of a node, without the resources that its overlay changes.

    :raises InvalidFile: when the model lacks what a simulation needs.
    """
    if node.simulation is None:
        raise InvalidFile(node.file, "simulation", "a simulation needs this key")
    if node.switch is not None:
        raise InvalidFile(node.file, "switch", "a node with a switch cannot be simulated yet")
    return Platform(node, node.simulation)


def routes(node: NodeModel) -> dict[str, Any]:
    """Return the platform of any node, for reasoning: the resources of each transfer and their
    peaks.

    What a model without ``simulation`` does not state is 1 (a whole peak, 1 us, 1 byte); a resource
    of unknown bandwidth has none (``gbs`` is None). The memory of a domain without a peak is taken
    as what its devices move at once. Through a switch a transfer uses the link of each device to
    it. The runtime cannot use this platform.

    :raises InvalidFile: when the overlay names a resource that the node does not have.
    """
    parameters = node.simulation or _PEAKS
    return _with_overlay(node, Platform(node, parameters).content())


def _with_overlay(node: NodeModel, content: dict[str, Any]) -> dict[str, Any]:
    overlay = node.overlay
    if overlay is None:
        return content
    whole = changed(content, overlay.parts.of_node, overlay.file)
    described = [change.described() for change in overlay.parts.devices]
    return whole | ({"over_time": described} if described else {})


#: The parameters of a node that reaches its peaks.
_PEAKS = SimulationSection.model_validate({
    name: KnownQuantity(value=1, kind="assumed", note="a whole peak, or a unit")
    for name, field in SimulationSection.model_fields.items() if field.is_required()
})  # fmt: skip


#: Where a transfer begins or ends: in the memory of a device or of a NUMA domain.
Place = Device | Domain


def end_of(place: Place) -> End:
    """Return a place as the end of a resource; its text is the name in a platform."""
    return End("device" if isinstance(place, Device) else "domain", place.index)


class Platform:
    """The links of a node, named as they are asked for, and the routes over them."""

    def __init__(self, node: NodeModel, parameters: SimulationSection) -> None:
        self.node = node
        self.parameters = parameters
        self.links: dict[Resource, dict[str, Any]] = {}
        self.places: Sequence[Place] = (*node.devices, *node.domains)
        self._domains = {domain.index: domain for domain in node.domains}
        # Messages take the ways of kernels and copies: each is made once.
        self._kernels: dict[tuple[End, End], dict[str, Any]] = {}
        self._copies: dict[tuple[End, End], dict[str, Any]] = {}

    @property
    def stated(self) -> bool:
        """Whether the model states what a simulation needs."""
        return self.parameters is not _PEAKS

    def content(self) -> dict[str, Any]:
        """Return the platform; see :func:`platform`."""
        node, parameters = self.node, self.parameters
        kernel = [self._kernel(device, place) for device in node.devices for place in self.places]
        copies = [
            self._copy(source, destination)
            for source, destination in permutations(self.places, 2)
            if self._copied(source, destination)
        ]
        messages = [
            self._message(source, destination)
            for source in self.places
            for destination in self.places
        ]
        for device in node.devices:
            migration = float(parameters.migration_gbs.value) if self.stated else None
            self._link(Resource("page migration of {0}", end_of(device)), migration)
        identity = node.identity
        overlay = identity["overlay"]
        return {
            "format": FORMAT,
            "node": {
                "name": node.name,
                "digest": node.sha256,
                "overlay": overlay and {"name": overlay["name"], "content": overlay["content"]},
            },
            "devices": [
                {
                    "model": node.device_model,
                    "architecture": node.architecture,
                    "memory_bytes": device.memory_bytes,
                    "compute_units": int(parameters.compute_units.value),
                    "cache_bytes": int(parameters.cache_bytes.value),
                    "domain": device.domain,
                    "pci_address": device.pci_address,
                }
                for device in node.devices
            ],
            "domains": [
                {
                    "index": domain.index,
                    "cores": list(domain.cores),
                    "memory_bytes": int(parameters.host_memory_bytes.value),
                }
                for domain in node.domains
            ],
            "rocm": node.rocm,
            "launch_us": float(parameters.launch_us.value),
            "pageable": {
                "pin_us": float(parameters.pageable_pin_us.value),
                "staged_bytes": int(parameters.pageable_staged_bytes.value),
            },
            "links": [{"name": name, **link} for name, link in self.links.items()],
            "kernel": kernel,
            "copy": copies,
            "messages": messages,
            "message_cost": {
                "us": float(parameters.message_us.value),
                "small_us": float(parameters.message_small_us.value),
                "small_bytes": int(parameters.message_small_bytes.value),
            },
        }

    def _copied(self, source: Place, destination: Place) -> bool:
        return isinstance(source, Device) or isinstance(destination, Device)

    def _link(self, name: Resource, gbs: float | None, each: bool = False) -> Resource:
        if self.stated and gbs == math.inf:
            raise InvalidFile(
                self.node.file, listed(self.node.unknown_peaks), "a simulation needs a value"
            )
        self.links.setdefault(name, {"gbs": gbs, "each": each})
        return name

    def _memory(self, place: Place) -> Resource:
        """Return the memory of a place: reads and writes share it."""
        name, peak = Resource("memory of {0}", end_of(place)), place.memory_peak_gbs
        if peak is None and self.stated:
            key = "devices" if isinstance(place, Device) else "domains"
            reason = "a simulation needs its value, which is unknown"
            raise InvalidFile(self.node.file, f"{key}.memory_peak_gbs", reason)
        if isinstance(place, Device) and peak is not None:
            peak *= float(self.parameters.memory_efficiency.value)
        elif isinstance(place, Domain) and peak is None:
            near = place.devices or range(len(self.node.devices))
            peak = sum(2 * self.node.devices[index].host_link_gbs for index in near)
        return self._link(name, peak)

    def _fabric(self, path: Path) -> list[Resource]:
        """Return the links of a path between devices, in its direction."""
        efficiency = float(self.parameters.link_efficiency.value)
        ends = [End("device", index) for index in path]
        peaks = [self.node.path_peak_gbs(pair) * efficiency for pair in pairwise(path)]
        if self.node.switch is not None:
            ends.insert(1, End("", "switch"))
            peaks *= 2
        return [
            self._link(Resource("link {0.number}-{1.number}", *pair), peak)
            for pair, peak in zip(pairwise(ends), peaks, strict=True)
        ]

    def _between(self, source: Device, destination: Device) -> list[Resource]:
        """Return the links from a device to another: over devices, else over the host."""
        path = self.node.widest_path(source.index, destination.index)
        if path:
            return self._fabric(path)
        ways = ((source, False), (destination, True))
        home = self._domains[source.domain]
        return [link for end, down in ways for link in self._host_links(end, home, down=down)]

    def _host_links(self, device: Device, domain: Domain, *, down: bool) -> list[Resource]:
        """Return the links between a device and a domain, one way; down is to the device."""
        name = Resource("host link to {1}" if down else "host link from {0}", *_way(device, down))
        efficiency = float(self.parameters.host_link_efficiency.value)
        links = [self._link(name, device.host_link_gbs * efficiency)]
        home = self._domains[device.domain]
        return links + self._interconnect(*((domain, home) if down else (home, domain)))

    def _interconnect(self, source: Domain, destination: Domain) -> list[Resource]:
        """Return the connection of two domains, where the model has one."""
        between = self.parameters.interconnect_gbs
        if between is None or source is destination:
            return []
        name = Resource("interconnect {0}-{1}", end_of(source), end_of(destination))
        return [self._link(name, float(between.value))]

    def _kernel(self, device: Device, place: Place) -> dict[str, Any]:
        """Return the links over which a device's kernel reads and writes a memory."""
        ends = end_of(device), end_of(place)
        if ends not in self._kernels:
            self._kernels[ends] = self._new_kernel(device, place)
        return self._kernels[ends]

    def _new_kernel(self, device: Device, place: Place) -> dict[str, Any]:
        memory, end = self._memory(place), end_of(device)
        read, write = [memory], [memory]
        if isinstance(place, Domain):
            peak = device.host_link_gbs * float(self.parameters.host_kernel_efficiency.value)
            reads = Resource("host reads of kernels of {0}", end)
            writes = Resource("host writes of kernels of {0}", end)
            for links, window, down in ((read, reads, True), (write, writes, False)):
                links += [self._link(window, peak), *self._host_links(device, place, down=down)]
        elif place is not device:
            peak = self.node.peer_peak_gbs(device.index, place.index)
            peak *= float(self.parameters.kernel_window.value)
            name = Resource("accesses of kernels of {0} to {1}", end, end_of(place))
            window = self._link(name, peak)
            read += [window, *self._between(place, device)]
            write += [window, *self._between(device, place)]
        return {"device": device.index, "memory": str(end_of(place)), "read": read, "write": write}

    def _copy(self, source: Place, destination: Place) -> dict[str, Any]:
        """Return the links and the start time of a copy-engine transfer."""
        ends = end_of(source), end_of(destination)
        if ends not in self._copies:
            self._copies[ends] = self._new_copy(source, destination)
        return self._copies[ends]

    def _new_copy(self, source: Place, destination: Place) -> dict[str, Any]:
        parameters = self.parameters
        start = float(parameters.copy_start_us.value)
        hop = float(parameters.copy_hop_us.value)
        links = [self._memory(source), self._memory(destination)]
        limits: list[Resource] = []
        route: dict[str, Any] = _ends(source, destination)
        more: dict[str, Any] = {}
        if isinstance(source, Device) and isinstance(destination, Device):
            path = self.node.widest_path(source.index, destination.index)
            links += self._between(source, destination)
            start += hop * (len(path) - 1 if path else 2)
            pair = sorted((source.index, destination.index))
            if self.node.link_class(*pair).links > 1:
                start += float(parameters.copy_split_us.value)
            if link := self.node.links.get((pair[0], pair[1])):
                more = {"parallel": link.count}
        else:
            down = isinstance(destination, Device)
            device, domain = (destination, source) if down else (source, destination)
            assert isinstance(device, Device) and isinstance(domain, Domain)
            links += self._host_links(device, domain, down=down)
            start += hop
            limits = self._pageable(device, domain, down=down)
        links += self._engines(source, destination)
        if limits:
            more = {"pageable": [*links, *limits]}
        return route | {"links": links, "start_us": start} | more

    def _pageable(self, device: Device, domain: Domain, *, down: bool) -> list[Resource]:
        """Return the limits of copies of pageable memory: the device's, and that of all copies."""
        parameters = self.parameters
        efficiency = float(parameters.pageable_efficiency.value)
        kind: ResourceKind = "pageable copies to {1}" if down else "pageable copies from {0}"
        peak = device.host_link_gbs * efficiency if self.stated else None
        limits = [self._link(Resource(kind, *_way(device, down)), peak)]
        if parameters.pageable_host_gbs is None or parameters.pageable_far_cost is None:
            return limits
        ratio = Fraction(parameters.pageable_far_cost.value).limit_denominator(_MOST_TIMES)
        times = ratio.denominator if domain.index == device.domain else ratio.numerator
        total = float(parameters.pageable_host_gbs.value) * ratio.denominator
        return limits + times * [self._link(Resource("pageable copies of all devices"), total)]

    def _message(self, source: Place, destination: Place) -> dict[str, Any]:
        """Return the links of a message of MPI between two ranks, by the memory of their buffers.

        Between host buffers it goes through shared memory on the sender's domain: it is read and
        written there, read again, and written on the receiver's domain. By kernel, a device that
        receives reads it, and one that sends to the host writes it. Devices without a path go
        through the memory of the sender's domain, there and on.
        """
        route: dict[str, Any] = _ends(source, destination)
        if (
            isinstance(source, Device)
            and isinstance(destination, Device)
            and source is not destination
            and not self.node.widest_path(source.index, destination.index)
        ):
            host = self._domains[source.domain]
            there, on = self._message(source, host), self._message(host, destination)
            return route | {way: [*there[way], *on[way]] for way in ("by_engine", "by_kernel")}
        ends = [self._memory(source), self._memory(destination)]
        if isinstance(destination, Device):
            by_kernel = [*self._kernel(destination, source)["read"], ends[1]]
        elif isinstance(source, Device):
            by_kernel = [*self._kernel(source, destination)["write"], ends[0]]
        else:
            by_kernel = [*ends, *2 * ends[:1], *self._interconnect(source, destination)]
        by_engine = by_kernel
        if source is not destination and self._copied(source, destination):
            links = self._copy(source, destination)["links"]
            by_engine = [self._queue(link, source, destination) for link in links]
        queue = _queue(source, destination)
        route |= {"by_engine": by_engine, "by_kernel": by_kernel}
        return route | ({"queue": queue} if queue in by_engine else {})

    def network_end(
        self, place: Place, nic: Nic, *, out: bool, staged: bool = False
    ) -> list[Resource]:
        """Return the links of the node that a message passes between a memory and a NIC, one way.

        A NIC accesses memory itself, through the device that it hangs on. ``staged`` messages of a
        device go through the memory of its domain, over host links.
        """
        memory = self._memory(place)
        if isinstance(place, Device) and staged:
            domain = self._domains[place.domain]
            host_links = self._host_links(place, domain, down=not out)
            on = self.network_end(domain, nic, out=out)
            return [memory, *host_links, self._memory(domain), *on]
        if nic.device is None:
            home = self._domains[nic.domain]
            if isinstance(place, Device):
                return [memory, *self._host_links(place, home, down=not out)]
            return [memory, *self._interconnect(*((place, home) if out else (home, place)))]
        owner = self.node.devices[nic.device]
        if isinstance(place, Domain):
            return [memory, *self._host_links(owner, place, down=out)]
        if place is owner:
            return [memory]
        ends = (place.index, owner.index) if out else (owner.index, place.index)
        return [memory, *self._fabric(self.node.widest_path(*ends))]

    def _queue(self, link: Resource, source: Place, destination: Place) -> Resource:
        """Return the queue that messages use instead of a link that every flow has to itself.

        The messages of a pair go through one queue of an engine, one after the other.
        """
        if not self.links[link]["each"]:
            return link
        return self._link(_queue(source, destination), self.links[link]["gbs"])

    def _engines(self, source: Place, destination: Place) -> list[Resource]:
        """Return the limits of copy engines: of one copy, and of all copies of the device."""
        engine = self.node.copy_engine
        ends = end_of(source), end_of(destination)
        name = Resource("copy engine of copies {0}-{1}", *ends)
        if engine.peak_gbs is None:
            return [] if self.stated else [self._link(name, None, each=True)]
        limits = [self._link(name, engine.peak_gbs, each=True)]
        if engine.count is not None:
            total = engine.peak_gbs * engine.count
            limits.append(self._link(Resource("copy engines of {0}", name.owner), total))
        return limits


def _ends(source: Place, destination: Place) -> dict[str, Any]:
    return {"source": str(end_of(source)), "destination": str(end_of(destination))}


def _way(device: Device, down: bool) -> tuple[End | None, End | None]:
    """Return the ends of what is to a device, or from it."""
    return (None, end_of(device)) if down else (end_of(device), None)


def _queue(source: Place, destination: Place) -> Resource:
    """Return the engine of all messages from one place to another."""
    return Resource("copy engine of messages {0}-{1}", end_of(source), end_of(destination))


def changed(
    content: dict[str, Any], resources: Sequence[ResourceChange], file: str
) -> dict[str, Any]:
    """Return a platform with resources changed by an overlay.

    A change of every transfer becomes the link's bandwidth; others are faults of the link, which
    the runtime checks for each transfer.

    :param file: the overlay's file in an error.
    :raises InvalidFile: for a resource that the platform does not have, with similar names.
    """
    content = content | {"links": [dict(link) for link in content["links"]]}
    for number, change in enumerate(resources):
        links = {link["name"]: link for link in content["links"]}
        names = _named(change.names, list(links), file, f"resources[{number}].names")
        if change.take_turns:
            content = _with_one_link(content, names)
            continue
        for link in map(links.__getitem__, names):
            if change.bandwidth_factor is not None and change.when is not None:
                link["over_time"] = over_time.factors(change.when, change.bandwidth_factor)
            elif change.bandwidth_factor is not None and change.bytes is None:
                link["gbs"] *= change.bandwidth_factor
            else:
                fault = change.model_dump(exclude={"names"}, exclude_none=True, mode="json")
                link.setdefault("faults", []).append(fault)
    return content


def _named(patterns: Sequence[str], names: Sequence[str], file: str, key: str) -> list[str]:
    """Return the resources that match patterns, in order; without a node those of every node."""
    matched: dict[str, None] = {}
    for pattern in patterns:
        matches = [
            name for name in names
            if fnmatchcase(name, pattern) or fnmatchcase(OF_NODE.sub("", name), pattern)
        ]  # fmt: skip
        if not matches:
            near = listed(f"'{match}'" for match in get_close_matches(pattern, names, cutoff=0))
            reason = f"there is no resource '{pattern}'; similar names: {near}"
            raise InvalidFile(file, key, reason)
        matched |= dict.fromkeys(matches)
    return list(matched)


def _with_one_link(content: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a platform whose routes have the first of some links instead of all of them."""
    first, *others = names

    def replaced(value: Any) -> Any:
        if isinstance(value, list):
            return [replaced(entry) for entry in value]
        return first if value in others else value

    routes = {
        key: [{field: replaced(value) for field, value in route.items()} for route in content[key]]
        for key in ("kernel", "copy", "messages")
    }
    links = [link for link in content["links"] if link["name"] not in others]
    return content | routes | {"links": links}
