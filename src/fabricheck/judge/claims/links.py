"""Claims on which devices are linked (E13): of a node model that the node was compared with."""

from __future__ import annotations

from itertools import combinations

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, Number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.node import NodeModel
from fabricheck.results.observed import Observed, Pair

#: The records of the page's table of rocm-smi: one of each linked pair.
TABLE = {
    (int(pair[0]), int(pair[1])): f"hf-nodesbw-{pair}"
    for pair in ("01", "02", "06", "13", "15", "23", "24", "37", "45", "46", "57", "67")
}
#: Devices of that machine.
DEVICES = 8

_OWN = "its links are those of the node model"


def as_modelled(observed: Observed) -> None:
    """Ask for a comparison of the node's links with its model that found no difference.

    :raises NotTestable: when there is none, or the node differs.
    """
    found = [one for one in observed.documents if one.get("differences") is not None]
    if not found:
        raise NotTestable("the session has no comparison of the node with its model (E13)")
    for document in found:
        for sentence in document.get("differences") or ():
            raise NotTestable(f"the node is not as its model says: {sentence}")
        if "links" not in _compared(document["notes"]):
            raise NotTestable("the node's tools do not tell its links (E13)")


def _compared(notes: list[str]) -> list[str]:
    """Return what was compared, from the note that names it."""
    for note in notes:
        start, _, listed = note.partition(": ")
        if start.startswith("compared with "):
            return listed.split(", ")
    return []


def differences_from_table(node: NodeModel) -> list[Pair]:
    """Return the pairs whose links are not those of the page's table."""
    pairs = combinations(range(max(len(node.devices), DEVICES)), 2)
    return [pair for pair in pairs if _modelled(node, pair) != _published(pair)]


def _modelled(node: NodeModel, pair: Pair) -> float:
    link = node.links.get(pair)
    return link.total_gbs if link else 0.0


def _published(pair: Pair) -> float:
    return value(TABLE[pair]) if pair in TABLE else 0.0


def _two_hops(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    as_modelled(observed)
    longest = max(max(row) for row in node.hop_matrix)
    most = value("paper-p2p-maxhops")
    apart = [pair for kind, pairs in node.link_classes.items() if not kind.links for pair in pairs]
    return verdict(
        longest <= most and not apart,
        f"The longest of the shortest paths of {node.name} has {longest} hops, and "
        f"{len(apart)} pairs have no path; the node's links are those of the model.",
        Number("longest of the shortest paths", float(longest), "hops", "derived", None, True),
    )


def _table(observed: Observed) -> Finding:
    node = needs.packages_of_two(observed)
    as_modelled(observed)
    found = differences_from_table(node)
    listed = [
        f"{a}-{b} {_modelled(node, (a, b)):g} (page: {_published((a, b)):g})" for a, b in found[:3]
    ]
    told = f": {', '.join(listed)}{' and more' if len(found) > 3 else ''} GB/s" if found else ""
    return verdict(
        not found,
        f"Of the page's table {len(found)} pairs differ from {node.name}{told}.",
        Number("pairs that differ", float(len(found)), "pairs", "derived", None, True),
    )


CLAIMS = (
    Claim(
        id="shortest-path-two-hops",
        statement="The shortest path between two devices is never longer than two hops.",
        document="paper",
        where="V.A.1 and figure 6a",
        rule="so it is in the node model, and the node's tools tell the links of the model (E13); "
        "a count, so no tolerance",
        judge=_two_hops,
        experiments=("E13",),
        records=("paper-p2p-maxhops",),
        built_in=_OWN,
    ),
    Claim(
        id="rocm-smi-link-table",
        statement="The links between devices are those of the page's table of rocm-smi.",
        document="hugging-face",
        where="Dual-die topology",
        rule="the node model has the peak of the table for every pair, and the node's tools tell "
        "the links of the model (E13); nodes of the same GPU may have other links",
        judge=_table,
        experiments=("E13",),
        records=tuple(TABLE.values()),
        built_in=_OWN,
    ),
)
