"""The components of a node that can be degraded, and the resources of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import get_args

from fabricheck.core.vocabulary import COLLECTIVES
from fabricheck.judge.diagnosis.model import Component, ComponentKind, Direction
from fabricheck.judge.diagnosis.transfers import Transfer
from fabricheck.node import NodeModel
from fabricheck.node.platform import End, Resource, ResourceKind
from fabricheck.results.series import Place

_LATENCIES: tuple[ResourceKind, ...] = (
    "latency of copies {0.number}-{1.number}",
    "latency of messages {0.number}-{1.number}",
    "latency of link {0.number}-{1.number}",
)
_PAIR: ResourceKind = "pair {0.number}-{1.number}"
_COPIES: ResourceKind = "copy engine of copies {0}-{1}"
_KERNELS: tuple[ResourceKind, ...] = ("kernels of {0}", "accesses of kernels of {0} to {1}")
_HOST_ACCESSES: tuple[ResourceKind, ...] = (
    "host reads of kernels of {0}",
    "host writes of kernels of {0}",
)

#: The kinds of resources that are slower where a component is degraded, all by the same factor. A
#: device has all that begins or ends at it, but for latencies.
RESOURCES: Mapping[ComponentKind, tuple[ResourceKind, ...]] = {
    "device": tuple(arg for arg in get_args(ResourceKind) if arg not in (*_LATENCIES, _PAIR)),
    "pair": (_PAIR,),
    "package": (*_KERNELS, "memory of {0}"),
    "hbm": ("memory of {0}",),
    "compute_units": (*_KERNELS, *_HOST_ACCESSES),
    "kernel_accesses": _KERNELS[1:],
    "host_accesses": _HOST_ACCESSES,
    "copy_engines": (_COPIES, "copy engines of {0}"),
    "copies": (_COPIES,),
    "host_link": ("host link to {1}", "host link from {0}"),
    "pageable_copies": (
        "pageable copies to {1}",
        "pageable copies from {0}",
        "pageable copies of all devices",
    ),
    "page_migration": ("page migration of {0}",),
    "messages": ("copy engine of messages {0}-{1}",),
    "rank": ("rank on {0}",),
    "link": ("link {0.number}-{1.number}",),
    "latency_of_copies": _LATENCIES[:1],
    "latency_of_messages": _LATENCIES[1:2],
    "latency_of_link": _LATENCIES[2:],
    "ddr": ("memory of {0}",),
    "numa_connection": ("interconnect {0}-{1}",),
    "mpi": ("{0.number} of mpi",),
    "rccl": ("{0.number} of rccl",),
}

#: The components of each device.
_OF_DEVICE: tuple[tuple[ComponentKind, Direction | None], ...] = (
    ("hbm", None),
    ("compute_units", None),
    ("copy_engines", None),
    ("copies", "from"),
    ("copies", "to"),
    ("host_link", "to"),
    ("host_link", "from"),
    ("host_link", None),
    ("host_accesses", None),
    ("pageable_copies", "to"),
    ("pageable_copies", "from"),
    ("pageable_copies", None),
    ("page_migration", None),
    ("messages", None),
    ("messages", "from"),
    ("messages", "to"),
    ("rank", None),
    ("link", None),
    ("device", None),
    ("latency_of_copies", "from"),
    ("latency_of_messages", None),
)

#: The components of each ordered pair of devices.
_OF_PAIR: tuple[ComponentKind, ...] = (
    "copies",
    "messages",
    "kernel_accesses",
    "latency_of_copies",
    "latency_of_messages",
)

#: The kinds of which all of a node may be degraded alike.
_OF_ALL: tuple[ComponentKind, ...] = (
    "hbm",
    "compute_units",
    "copy_engines",
    "link",
    "host_link",
    "ddr",
    "pageable_copies",
    "page_migration",
    "messages",
)

#: The kinds that may be slower for transfers of some sizes only.
OF_SIZES: tuple[ComponentKind, ...] = (
    "link",
    "host_link",
    "pageable_copies",
    "copy_engines",
    "hbm",
    "ddr",
)

_LIBRARIES: tuple[ComponentKind, ...] = ("mpi", "rccl")


@dataclass(frozen=True)
class Candidate:
    """A component that can be degraded.

    devices: those that it belongs to or connects; empty for a component that all share. loose:
    whether the loose slacks of transfers apply. sizes: the least and the most bytes of the
    transfers that are slower, where others are not. cost: of supposing that.
    """

    component: Component
    devices: tuple[int, ...] = ()
    loose: bool = False
    sizes: tuple[int, int] | None = None
    cost: float = 0.0


def passes(component: Component, resource: Resource) -> bool:
    """Whether a resource is slower where a component is degraded."""
    kind = component.kind
    if resource.kind not in RESOURCES[kind]:
        return False
    if component.operation is not None:
        return resource.source == End("operation", component.operation)
    of = "domain" if kind in ("ddr", "numa_connection") else "device"
    ends = tuple(End(of, number) for number in component.ids)
    if not ends:
        return resource.owner is None or resource.owner.what == of
    if component.direction == "from":
        return resource.source == ends[0]
    if component.direction == "to":
        return resource.destination == ends[0]
    its_ends = (resource.source, resource.destination)
    if component.direction == "one-way":
        return its_ends == ends
    if kind in ("compute_units", "copy_engines", "package"):
        return resource.owner in ends
    return set(ends) <= set(its_ends)


def candidates(node: NodeModel | None, transfers: Iterable[Transfer]) -> list[Candidate]:
    """Return the components of a node that can be degraded.

    :param node: None without a model; the devices and pairs that the transfers name are then
        returned.
    """
    if node is None:
        return [*_without_model(transfers)]
    return [*_of_devices(node), *_of_pairs(node), *_of_domains(node), *_of_all(node)]


def _of_devices(node: NodeModel) -> Iterator[Candidate]:
    for device in node.devices:
        for kind, direction in _OF_DEVICE:
            yield _of(kind, device.index, direction=direction)
    for package in node.packages:
        if 1 < len(package) < len(node.devices):
            yield _of("package", *package)


def _of_pairs(node: NodeModel) -> Iterator[Candidate]:
    if node.switch is None:
        for a, b in node.links:
            yield _of("link", a, b, direction="one-way")
            yield _of("link", b, a, direction="one-way")
            yield _of("link", a, b)
            yield _of("latency_of_link", a, b)
    else:
        for device in range(len(node.devices)):
            yield _of("link", device, direction="from")
            yield _of("link", device, direction="to")
    for a, b in permutations(range(len(node.devices)), 2):
        for kind in _OF_PAIR:
            yield _of(kind, a, b, direction="one-way")
        if a < b:
            yield _of("copies", a, b)
            yield _of("messages", a, b)


def _of_domains(node: NodeModel) -> Iterator[Candidate]:
    for domain in node.domains:
        yield Candidate(Component(kind="ddr", ids=(domain.index,)), domain.devices)
        for other in node.domains:
            if other is not domain:
                ids = (domain.index, other.index)
                yield Candidate(Component(kind="numa_connection", ids=ids, direction="one-way"))


def _of_all(node: NodeModel) -> Iterator[Candidate]:
    if len(node.devices) == 1:
        return
    for kind in _OF_ALL:
        yield _of(kind)
    for library in _LIBRARIES:
        for operation in ("collectives", *COLLECTIVES):
            yield Candidate(Component(kind=library, operation=operation))
    yield _of("latency_of_copies")
    yield _of("latency_of_messages")


def _without_model(transfers: Iterable[Transfer]) -> Iterator[Candidate]:
    for name in dict.fromkeys(name for transfer in transfers for name in transfer.slack):
        ends = [end.number for end in (name.source, name.destination) if end is not None]
        yield _of("pair" if len(ends) == 2 else "device", *map(int, ends))


def _of(kind: ComponentKind, *devices: int, direction: Direction | None = None) -> Candidate:
    return Candidate(Component(kind=kind, ids=devices, direction=direction), devices)


@dataclass(frozen=True)
class Change:
    """A wiring other than the model's: the transfers that become slower or faster, and by how much.

    logs: by index in the list of transfers, the logarithm of the rate over the model's rate.
    places: the differences from the model, as the node's tools would report them. cost: the cost of
    the tools' reports, as that of a hypothesis.
    """

    component: Component
    devices: tuple[int, ...]
    logs: Mapping[int, float]
    places: frozenset[Place] = frozenset()
    cost: float = 0.0
