"""Other nodes than the model: a link that is gone, cables exchanged, domains that are others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.diagnosis.components import Change
from fabricheck.judge.diagnosis.transfers import Key, Routes, Transfer, rates_of
from fabricheck.node import NodeModel
from fabricheck.node.overlay import Overlay, OverlayFile, apply_overlay
from fabricheck.results.model import ResultDocument

#: Two rates that differ by less are the same.
_SAME = 0.005


def changes(
    node: NodeModel,
    documents: Mapping[str, ResultDocument],
    transfers: Mapping[Key, Transfer],
    concerned: Collection[str],
) -> Iterator[Change]:
    """Yield what a node can be instead of its model, with what it does to the transfers.

    :param concerned: the links that are on the way of what is to be explained.
    Links that are gone are taken as detoured by other devices, which NVIDIA's devices do not do.
    """
    if node.switch is not None or node.vendor != "amd":
        return
    healthy = rates_of(documents, Routes(node))
    places = {key: number for number, key in enumerate(transfers)}
    for name, devices, content in _contents(node, documents, concerned):
        try:
            other = apply_overlay(replace(node, overlay=None), _overlay(name, content))
        except FabricheckError:
            continue  # the node could not run so
        logs = {}
        for key, rate in rates_of(documents, Routes(other)).items():
            before = healthy.get(key, 0.0)
            if key in places and before > 0 and rate > 0 and math.isfinite(rate):
                log = math.log(rate / before)
                if abs(log) > _SAME:
                    logs[places[key]] = log
        if logs or "remap_links" in content or "rotate_numa" in content or "links" in content:
            yield Change(name, devices, logs, _differing(node, other))


def _differing(node: NodeModel, other: NodeModel) -> Callable[[frozenset[int], str], bool]:
    """Return whether the pair or the device of a sentence is another one in a changed node."""
    links = {
        frozenset((a, b))
        for a, b in combinations(range(len(node.devices)), 2)
        if node.link_matrix[a][b] != other.link_matrix[a][b]
    }
    domains = {
        one.index
        for one, now in zip(node.devices, other.devices, strict=True)
        if one.domain != now.domain
    }

    def differs(devices: frozenset[int], sentence: str) -> bool:
        if len(devices) == 2:
            return devices in links
        return "NUMA" in sentence and devices <= domains and bool(devices)

    return differs


def _overlay(name: str, content: Mapping[str, object]) -> Overlay:
    parts = OverlayFile.model_validate({"name": name, "description": name, **content})
    return Overlay(name, name, "", MappingProxyType({}), parts)


def _contents(
    node: NodeModel, documents: Mapping[str, ResultDocument], concerned: Collection[str]
) -> Iterator[tuple[str, tuple[int, ...], dict[str, object]]]:
    """Yield what may have changed: its name, its devices, and the overlay that says it."""
    differs = any(document.get("differences") for document in documents.values())
    for a, b in node.links:
        links = [f"link {a}-{b}", f"link {b}-{a}"]
        if not differs and not any(one.removeprefix("latency of ") in links for one in concerned):
            continue
        yield f"link {a}-{b} gone", (a, b), {"links": [{"pair": [a, b], "gone": True}]}
        turns = {"names": links, "take_turns": True}
        yield f"turns of both directions of link {a}-{b}", (a, b), {"resources": [turns]}
    if not differs:
        return  # nothing says that the node is wired otherwise
    order = list(range(len(node.devices)))
    for a, b in combinations(order, 2):
        other = [b if one == a else a if one == b else one for one in order]
        yield f"cables of devices {a} and {b} exchanged", (a, b), {"remap_links": other}
    for first, second in combinations(node.packages, 2):
        if 1 < len(first) == len(second):
            to = dict(zip((*first, *second), (*second, *first), strict=True))
            name = f"cables of packages {list(first)} and {list(second)} exchanged"
            yield name, (*first, *second), {"remap_links": [to.get(one, one) for one in order]}
    for steps in range(1, len(node.domains)):
        yield f"NUMA domains rotated by {steps}", (), {"rotate_numa": steps}
