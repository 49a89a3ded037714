"""Pairs of devices whose data takes another route in B, because other links join the devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from types import MappingProxyType

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.comparison.judging import Row
from fabricheck.node import NodeModel, paths
from fabricheck.node.overlaid import apply_overlay
from fabricheck.node.overlay import Overlay, OverlayFile
from fabricheck.node.paths import Pair
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import node_of
from fabricheck.results.rows import Check, Series
from fabricheck.results.series import device_pair
from fabricheck.results.table import link_class


class Rerouted:
    """The pairs (a < b) whose widest path over the links of A and over those of B differ.

    The links are those of the node model, changed as the documents say: by the overlay of a
    simulated node, or by what the check of the topology found of a measured one.
    """

    def __init__(self, a: Sequence[Check], b: Sequence[Check]) -> None:
        self.node = _node(a)
        self.pairs: frozenset[Pair] = frozenset()
        other = _node(b)
        if self.node is None or other is None or self.node.name != other.name:
            return
        if self.node.switch is not None:
            return  # all pairs are joined by it alone
        before, after = _links(self.node, a), _links(other, b)
        if before is not None and after is not None and before != after:
            self.pairs = frozenset(
                pair
                for pair in combinations(range(len(self.node.devices)), 2)
                if paths.widest_path(before, *pair) != paths.widest_path(after, *pair)
            )

    def has(self, row: Row) -> bool:
        """Whether a series is of such a pair, or a metric made of a series that is."""
        document = row.check_row.document
        if not self.pairs or document is None:
            return False
        all_series = [row.measured] if isinstance(row, Series) else []
        if not isinstance(row, Series):
            all_series = [document["series"][index] for index in row.series or ()]
        for series in all_series:
            if link_class(series, self.node) is not None:
                first, last = sorted(device_pair(series))
                if (first, last) in self.pairs:
                    return True
        return False


def _node(checks: Sequence[Check]) -> NodeModel | None:
    for row in checks:
        if row.document is not None:
            return node_of(row.where, [row.document], row.case)
    return None


def _links(node: NodeModel, checks: Sequence[Check]) -> dict[Pair, int] | None:
    """Return the links of each pair by the documents; None where they cannot be known."""
    documents = [row.document for row in checks if row.document is not None]
    links = dict(node.link_counts)
    overlay = _overlay(documents)
    if overlay is not None:
        try:
            links = dict(apply_overlay(node, overlay).link_counts)
        except FabricheckError:
            return None  # of a node model of another version
    for document in documents:
        for difference in document.get("differences") or ():
            if len(difference["devices"]) == 2 and difference["found"] is not None:
                first, last = sorted(difference["devices"])
                links[first, last] = difference["found"]
    return {pair: count for pair, count in links.items() if count}


def _overlay(documents: Iterable[ResultDocument]) -> Overlay | None:
    """Return the overlay of a simulated node, as the first document has its parts of links."""
    for document in documents:
        simulated = document.get("node")
        if simulated is not None:
            changed = simulated["overlay"]
            if changed is None:
                return None
            name, content = changed["name"], changed["content"]
            links = {key: content[key] for key in ("links", "remap_links") if key in content}
            if not links:
                return None
            parts = OverlayFile.model_validate({"name": name, "description": name, **links})
            return Overlay(name, name, "", MappingProxyType(content), parts)
    return None
