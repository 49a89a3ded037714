"""The components of a node that can be degraded, with the resources of each, and other wirings.

A wiring in place of the node model's is a missing link, exchanged cables or other NUMA domains.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, permutations
from types import MappingProxyType
from typing import get_args

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import COLLECTIVES
from fabricheck.judge.diagnosis.hypotheses import Candidate, Touch
from fabricheck.judge.diagnosis.model import Component, ComponentKind, Direction
from fabricheck.judge.diagnosis.search import FURTHER_GAIN, MOST
from fabricheck.judge.diagnosis.transfers import (
    Routes,
    Transfer,
    rates_of,
)
from fabricheck.judge.diagnosis.ways import Key, chosen_series
from fabricheck.node import NodeModel
from fabricheck.node.overlaid import apply_overlay
from fabricheck.node.overlay import Overlay, OverlayFile
from fabricheck.node.platform import End, Resource, ResourceKind
from fabricheck.results.model import ResultDocument
from fabricheck.results.series import Place, place_of

_LATENCIES: tuple[ResourceKind, ...] = (
    "latency of copies {0.number}-{1.number}",
    "latency of messages {0.number}-{1.number}",
    "latency of link {0.number}-{1.number}",
)
_HOST_LATENCIES: tuple[ResourceKind, ...] = (
    "latency of host copies to {1}",
    "latency of host copies from {0}",
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
    "device": tuple(
        arg for arg in get_args(ResourceKind) if arg not in (*_LATENCIES, *_HOST_LATENCIES, _PAIR)
    ),
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
    "latency_of_host_copies": _HOST_LATENCIES,
    "transfers_at_once": ("transfers at once from {0}", "transfers at once to {1}"),
    "ddr": ("memory of {0}",),
    "numa_connection": ("interconnect {0}-{1}",),
    "mpi": ("{0.number} of mpi",),
    "rccl": ("{0.number} of rccl",),
}

#: The components of a node that can be degraded, by what they are of: kind and direction.
_COMPONENTS: Mapping[str, tuple[tuple[ComponentKind, Direction | None], ...]] = {
    "device": (
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
        ("latency_of_host_copies", "to"),
        ("latency_of_host_copies", "from"),
        ("latency_of_host_copies", None),
        ("transfers_at_once", "from"),
        ("transfers_at_once", "to"),
        ("transfers_at_once", None),
    ),
    "package": (("package", None),),
    "link, one way": (("link", "one-way"),),
    "link": (("link", None), ("latency_of_link", None)),
    "port of a switch": (("link", "from"), ("link", "to")),
    "pair, one way": (
        ("copies", "one-way"),
        ("messages", "one-way"),
        ("kernel_accesses", "one-way"),
        ("latency_of_copies", "one-way"),
        ("latency_of_messages", "one-way"),
    ),
    "pair": (("copies", None), ("messages", None)),
    "domain": (("ddr", None),),
    "pair of domains": (("numa_connection", "one-way"),),
    "node": (
        ("hbm", None),
        ("compute_units", None),
        ("copy_engines", None),
        ("link", None),
        ("host_link", None),
        ("ddr", None),
        ("pageable_copies", None),
        ("page_migration", None),
        ("messages", None),
        ("latency_of_copies", None),
        ("latency_of_messages", None),
        ("latency_of_host_copies", None),
        ("transfers_at_once", None),
    ),
}

#: The kinds that may be slower for transfers of some sizes only.
OF_SIZES: tuple[ComponentKind, ...] = (
    "link",
    "host_link",
    "pageable_copies",
    "copy_engines",
    "hbm",
    "ddr",
)

#: Libraries whose collectives may be slow: all of them, or one.
_LIBRARIES: tuple[ComponentKind, ...] = ("mpi", "rccl")

_LINKS: tuple[ResourceKind, ...] = (
    "link {0.number}-{1.number}",
    "latency of link {0.number}-{1.number}",
)

#: The cost of a place where the node's tools contradict the prediction.
_A_PLACE = 20.0

#: Two rates with a smaller relative difference are equal.
_SAME = 0.005


def passes(component: Component, resource: Resource) -> bool:
    """Whether a resource is slower where a component is degraded."""
    kind = component.kind
    if resource.kind not in RESOURCES[kind]:
        return False
    if component.operation is not None:
        return resource.source == End("operation", component.operation)
    what = "domain" if kind in ("ddr", "numa_connection") else "device"
    ends = tuple(End(what, number) for number in component.ids)
    if not ends:
        return resource.owner is None or resource.owner.what == what
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


def candidates(node: NodeModel | None, transfers: Iterable[Transfer]) -> Iterator[Candidate]:
    """Yield the components of a node that can be degraded.

    :param node: None without a model; the devices and pairs that the transfers name are then
        yielded.
    """
    if node is None:
        for name in dict.fromkeys(name for transfer in transfers for name in transfer.slack):
            ids = tuple(int(end.number) for end in (name.source, name.destination) if end)
            yield Candidate(Component(kind="pair" if len(ids) == 2 else "device", ids=ids), ids)
        return
    devices = range(len(node.devices))
    domains = {domain.index: domain.devices for domain in node.domains}
    links = [*node.links] if node.switch is None else []
    parts: dict[str, Iterable[tuple[int, ...]]] = {
        "device": ((device,) for device in devices),
        "package": (package for package in node.packages if 1 < len(package) < len(devices)),
        "link, one way": (way for a, b in links for way in ((a, b), (b, a))),
        "link": links,
        "port of a switch": ((device,) for device in devices if node.switch is not None),
        "pair, one way": permutations(devices, 2),
        "pair": combinations(devices, 2),
        "domain": ((domain,) for domain in domains),
        "pair of domains": permutations(domains, 2),
        "node": [()] if len(devices) > 1 else [],
    }
    for what, ids in ((what, ids) for what, groups in parts.items() for ids in groups):
        concerned = (
            domains[ids[0]] if what == "domain" else () if what == "pair of domains" else ids
        )
        for kind, direction in _COMPONENTS[what]:
            yield Candidate(Component(kind=kind, ids=ids, direction=direction), concerned)
    for library in _LIBRARIES if len(devices) > 1 else ():
        for operation in ("collectives", *COLLECTIVES):
            yield Candidate(Component(kind=library, operation=operation))


def touching(
    node: NodeModel | None,
    documents: Mapping[str, ResultDocument],
    transfers: Mapping[Key, Transfer],
    concerned: Collection[int],
) -> Iterator[Candidate]:
    """Yield the wirings and components that can explain something, with all that they touch.

    :param concerned: the indices of the transfers to be explained.
    """
    measured = list(transfers.values())
    resources = dict.fromkeys(name for number in concerned for name in measured[number].slack)
    if node is not None:
        links = [name for name in resources if name.kind in _LINKS]
        yield from _wirings(node, documents, transfers, links)
    passing = grouped(
        (name, number) for number, transfer in enumerate(measured) for name in transfer.slack
    )
    by_kind = grouped((name.kind, name) for name in passing)
    for candidate in candidates(node, measured):
        of_kinds = [
            name for kind in RESOURCES[candidate.component.kind] for name in by_kind.get(kind, ())
        ]
        names = [name for name in of_kinds if passes(candidate.component, name)]
        if resources.keys().isdisjoint(names):
            continue
        uses = [(number, name) for name in names for number in passing[name]]
        touched = _touched(
            Touch(number, measured[number].slack[name], measured[number].share.get(name, 1.0))
            for number, name in uses
        )
        yield replace(candidate, touched=touched)
        loose = _touched(
            Touch(
                number,
                (measured[number].loose or measured[number].slack)[name],
                measured[number].share.get(name, 1.0),
            )
            for number, name in uses
        )
        if loose != touched:
            yield replace(candidate, touched=loose)
        if candidate.component.kind in OF_SIZES:
            # It may be slower for transfers of some sizes, if others are not slow.
            sizes = {each.number: measured[each.number].series["bytes"] for each in touched}
            slow = [sizes[number] for number in sizes if number in concerned]
            known = (min(slow), max(slow))
            of_sizes = [each for each in touched if known[0] <= sizes[each.number] <= known[1]]
            if len(of_sizes) < len(touched):
                yield replace(candidate, touched=of_sizes, sizes=known, cost=FURTHER_GAIN)


def _touched(touches: Iterable[Touch]) -> list[Touch]:
    """Return each transfer once, by its least slack, the least first."""
    by_transfer = grouped((touch.number, touch) for touch in touches)
    least = [
        min(touches_of_one, key=lambda touch: touch.slack)
        for touches_of_one in by_transfer.values()
    ]
    return sorted(least, key=lambda touch: touch.slack)


def _wirings(
    node: NodeModel,
    documents: Mapping[str, ResultDocument],
    transfers: Mapping[Key, Transfer],
    concerned: Collection[Resource],
) -> Iterator[Candidate]:
    """Yield wirings that the node may have instead of its model's, with their effect on transfers.

    Missing links are replaced by a detour over other devices, which NVIDIA's devices do not do.

    :param concerned: the links on the route of the transfers to be explained.
    """
    if node.switch is not None or node.vendor != "amd":
        return
    # The differences of its NICs tell of no link or device.
    topologies = [
        differences
        for document in documents.values()
        if document["program"]["name"] != "nics"
        if (differences := document.get("differences")) is not None
    ]
    reported = {place_of(difference) for differences in topologies for difference in differences}
    chosen = chosen_series(documents)
    modelled = Routes(node)
    healthy = rates_of(chosen, modelled)
    places = {key: number for number, key in enumerate(transfers)}
    for kind, ids, content in _contents(node, bool(reported), concerned):
        component = Component(kind=kind, ids=ids)
        name = component.label
        parts = OverlayFile.model_validate({"name": name, "description": name, **content})
        overlay = Overlay(name, name, "", MappingProxyType({}), parts)
        try:
            other = apply_overlay(replace(node, overlay=None), overlay)
        except FabricheckError:
            continue  # the node could not run so
        logs = {
            places[key]: math.log(rate / healthy[key])
            for key, rate in rates_of(chosen, Routes(other), other_than=modelled).items()
            if key in places and healthy.get(key, 0.0) > 0 and 0 < rate < math.inf
        }
        logs = {number: log for number, log in logs.items() if abs(log) > _SAME}
        changed = _changed(node, other)
        devices = ids if kind != "numa_rotated" else ()
        cost = _cost(changed, reported) if topologies else 0.0
        touched = [Touch(number, log) for number, log in logs.items()]
        yield Candidate(component, devices, touched, cost, places=changed)


def _changed(node: NodeModel, other: NodeModel) -> frozenset[Place]:
    """Return the differing places of a changed node: pairs and links, devices and domains."""
    links = (
        (frozenset((a, b)), other.link_matrix[a][b])
        for a, b in combinations(range(len(node.devices)), 2)
        if node.link_matrix[a][b] != other.link_matrix[a][b]
    )
    domains = (
        (frozenset((before.index,)), now.domain)
        for before, now in zip(node.devices, other.devices, strict=True)
        if before.domain != now.domain
    )
    return frozenset((*links, *domains))


def _cost(changed: frozenset[Place], reported: set[Place]) -> float:
    """Return the cost of what the node's tools told: for each place, whether they agree.

    A change that explains few of many differences is no explanation: the node is another one.
    """
    if MOST * len(changed & reported) < len(reported):
        return _A_PLACE * len(reported)
    return _A_PLACE * (len(changed - reported) - len(changed & reported))


def _contents(
    node: NodeModel, differs: bool, concerned: Collection[Resource]
) -> Iterator[tuple[ComponentKind, tuple[int, ...], Mapping[str, object]]]:
    """Yield possible changes: kind, ids, and the overlay that describes the change.

    :param differs: whether the node's tools see a difference from its model.
    """
    pairs = {frozenset((resource.source, resource.destination)) for resource in concerned}
    for a, b in node.links:
        if not differs and frozenset((End("device", a), End("device", b))) not in pairs:
            continue
        yield "link_gone", (a, b), {"links": [{"pair": [a, b], "gone": True}]}
        names = [f"link {a}-{b}", f"link {b}-{a}"]
        yield "link_turns", (a, b), {"resources": [{"names": names, "take_turns": True}]}
    if not differs:
        return  # no sign that the node is wired differently
    order = list(range(len(node.devices)))
    equal = [(package, other) for package, other in combinations(node.packages, 2)
             if 1 < len(package) == len(other)]  # fmt: skip
    for first, second in (*(((a,), (b,)) for a, b in combinations(order, 2)), *equal):
        to = dict(zip((*first, *second), (*second, *first), strict=True))
        remapped = {"remap_links": [to.get(device, device) for device in order]}
        yield "cables_exchanged", (*first, *second), remapped
    domains = [domain.index for domain in node.domains]
    for steps in range(1, len(domains)):
        yield "numa_rotated", (*domains[steps:], *domains[:steps]), {"rotate_numa": steps}
