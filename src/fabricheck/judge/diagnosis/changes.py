"""Miswired nodes as explanations: a missing link, exchanged cables, other NUMA domains."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.diagnosis.components import Change
from fabricheck.judge.diagnosis.model import Component
from fabricheck.judge.diagnosis.search import MOST
from fabricheck.judge.diagnosis.transfers import Key, Routes, Transfer, rates_of
from fabricheck.node import NodeModel
from fabricheck.node.overlay import Overlay, OverlayFile, apply_overlay
from fabricheck.node.platform import End, Resource
from fabricheck.results.model import Difference, ResultDocument
from fabricheck.results.series import Place, place_of

#: The cost of a place where the node's tools contradict the prediction.
_A_PLACE = 20.0

#: Two rates with a smaller relative difference are equal.
_SAME = 0.005


def changes(
    node: NodeModel,
    documents: Mapping[str, ResultDocument],
    transfers: Mapping[Key, Transfer],
    concerned: Collection[Resource],
) -> Iterator[Change]:
    """Yield wirings that the node may have instead of its model's, with their effect on transfers.

    Missing links are replaced by a detour over other devices, which NVIDIA's devices do not do.

    :param concerned: the links on the route of the transfers to be explained.
    """
    if node.switch is not None or node.vendor != "amd":
        return
    healthy = rates_of(documents, Routes(node))
    places = {key: number for number, key in enumerate(transfers)}
    for component, devices, content in _contents(node, documents, concerned):
        name = component.label
        parts = OverlayFile.model_validate({"name": name, "description": name, **content})
        overlay = Overlay(name, name, "", MappingProxyType({}), parts)
        try:
            other = apply_overlay(replace(node, overlay=None), overlay)
        except FabricheckError:
            continue  # the node could not run so
        logs = {
            places[key]: math.log(rate / healthy[key])
            for key, rate in rates_of(documents, Routes(other)).items()
            if key in places and healthy.get(key, 0.0) > 0 and 0 < rate < math.inf
        }
        logs = {number: log for number, log in logs.items() if abs(log) > _SAME}
        changed = _changed(node, other)
        yield Change(component, devices, logs, changed, _told(changed, documents))


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


def _told(changed: frozenset[Place], documents: Mapping[str, ResultDocument]) -> float:
    """Return the cost of the node's tools: for each place, whether they agree with the prediction.

    A change that explains few of many differences is no explanation: the node is another one.
    """
    topologies = [
        differences
        for differences in map(_of_topology, documents.values())
        if differences is not None
    ]
    if not topologies:
        return 0.0
    places = {place_of(difference) for differences in topologies for difference in differences}
    if MOST * len(changed & places) < len(places):
        return _A_PLACE * len(places)
    return _A_PLACE * (len(changed - places) - len(changed & places))


def _of_topology(document: ResultDocument) -> list[Difference] | None:
    """Return the differences of a node's topology; those of its NICs tell of no link or device."""
    return None if document["program"]["name"] == "nics" else document.get("differences")


def _contents(
    node: NodeModel, documents: Mapping[str, ResultDocument], concerned: Collection[Resource]
) -> Iterator[tuple[Component, tuple[int, ...], dict[str, object]]]:
    """Yield possible changes, with their devices, and the overlay that describes the change."""
    differs = any(map(_of_topology, documents.values()))
    pairs = {frozenset((resource.source, resource.destination)) for resource in concerned}
    for a, b in node.links:
        if not differs and frozenset((End("device", a), End("device", b))) not in pairs:
            continue
        gone = Component(kind="link_gone", ids=(a, b))
        yield gone, gone.ids, {"links": [{"pair": [a, b], "gone": True}]}
        turns = Component(kind="link_turns", ids=(a, b))
        names = [f"link {a}-{b}", f"link {b}-{a}"]
        yield turns, turns.ids, {"resources": [{"names": names, "take_turns": True}]}
    if not differs:
        return  # no sign that the node is wired differently
    order = list(range(len(node.devices)))
    equal = [(one, other) for one, other in combinations(node.packages, 2)
             if 1 < len(one) == len(other)]  # fmt: skip
    for first, second in (*(((a,), (b,)) for a, b in combinations(order, 2)), *equal):
        to = dict(zip((*first, *second), (*second, *first), strict=True))
        exchanged = Component(kind="cables_exchanged", ids=(*first, *second))
        yield (
            exchanged,
            exchanged.ids,
            {"remap_links": [to.get(device, device) for device in order]},
        )
    domains = [domain.index for domain in node.domains]
    for steps in range(1, len(domains)):
        turned = (*domains[steps:], *domains[:steps])
        yield Component(kind="numa_rotated", ids=turned), (), {"rotate_numa": steps}
