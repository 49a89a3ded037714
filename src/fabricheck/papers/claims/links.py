"""Claims on which devices are linked (E13) and on the best devices to use together (E14).

The claims on links apply to a node model that was compared with the node.
"""

from __future__ import annotations

from itertools import chain, combinations, permutations

from fabricheck.core.show import listed
from fabricheck.node import NodeModel, best_subsets
from fabricheck.node.subsets import mean_between
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import accesses, every_pair
from fabricheck.papers.claims.groups import Group, Values, combined
from fabricheck.papers.claims.kinds import at_least, equal
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, counted, value, verdict
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Pair

#: The records of the page's rocm-smi table, one for each linked pair.
TABLE = {
    (int(pair[0]), int(pair[1])): f"hf-nodesbw-{pair}"
    for pair in ("01", "02", "06", "13", "15", "23", "24", "37", "45", "46", "57", "67")
}

#: The sets that the page names, and whether it names all equally good sets.
NAMED = (
    (((0, 1), (2, 3), (4, 5), (6, 7)), True),
    (((0, 1, 6),), False),
    (((0, 1, 6, 7), (2, 3, 4, 5)), False),
)
#: The fraction by which sets with equal links may differ; the rule gives the reason.
ALIKE = 0.02

_OWN = "its links are those of the node model"


def as_modelled(observed: Observed) -> None:
    """Require a comparison of the node's links with its model that found no difference.

    Where nothing differs, links were compared: else the comparison ends with an error.

    :raises NotTestable: when there is no comparison, or the node differs.
    """
    compared = [
        document
        for document in observed.documents
        if document["program"]["name"] != "nics"
        and document.get("differences") is not None
        and document["options"].get("node") is not None
    ]
    if not compared:
        raise NotTestable("the session has no comparison of the node with its model (E13)")
    for difference in chain.from_iterable(
        document.get("differences") or () for document in compared
    ):
        raise NotTestable(f"the node differs from its model: {difference['sentence']}")


def _modelled(node: NodeModel, pair: Pair) -> float:
    link = node.links.get(pair)
    return link.total_gbs if link else 0.0


def _published(pair: Pair) -> float:
    return value(TABLE[pair]) if pair in TABLE else 0.0


def _two_hops(observed: Observed) -> Finding:
    node = needs.node(observed)
    as_modelled(observed)
    longest = max(max(row) for row in node.hop_matrix)
    most = value("paper-p2p-maxhops")
    unlinked = [pairs for kind, pairs in node.link_classes.items() if not kind.links]
    apart = [pair for pairs in unlinked for pair in pairs]
    return verdict(
        longest <= most and not apart,
        f"The longest of the shortest paths of {node.name} has {longest} hops, and "
        f"{len(apart)} pairs have no path; the node's links are those of the model.",
        counted("longest of the shortest paths", longest, "hops"),
    )


def _table(observed: Observed) -> Finding:
    node = needs.node(observed)
    as_modelled(observed)
    among = combinations(range(max(len(node.devices), needs.EIGHT)), 2)
    differing_pairs = [pair for pair in among if _modelled(node, pair) != _published(pair)]
    pairs = [
        f"{a}-{b} {_modelled(node, (a, b)):g} (page: {_published((a, b)):g})"
        for a, b in differing_pairs
    ]
    differing = f", in GB/s: {listed(pairs, 3)}" if differing_pairs else ""
    return verdict(
        not differing_pairs,
        f"Of the page's table {len(differing_pairs)} pairs differ from {node.name}{differing}.",
        counted("pairs that differ", len(differing_pairs), "pairs"),
    )


def _predicted(observed: Observed) -> Finding:
    node = needs.node(observed)
    as_modelled(observed)
    holds, texts, numbers = True, [], []
    for named, complete in NAMED:
        size = len(named[0])
        best = node.best_subsets(size)
        holds &= set(named) == set(best) if complete else set(named) <= set(best)
        texts.append(f"of {size}: {' '.join(','.join(map(str, chosen)) for chosen in best)}")
        numbers.append(counted(f"best sets of {size}", len(best), "sets"))
    return verdict(
        holds, f"By its links {node.name} has as best sets {'; '.join(texts)}.", *numbers
    )


def _sets(name: str, *, best: bool) -> Group:
    """Return by named set the mean of writes between two of its devices, or of the best set."""

    def choose(observed: Observed) -> Values:
        node = needs.node(observed)
        rate = every_pair(accesses("write"), "E8").choose(observed)
        count = range(len(node.devices))
        rates = [[0.0 if a == b else rate[a, b].value for b in count] for a in count]
        values = {}
        for chosen in (chosen for named, _ in NAMED for chosen in named):
            measured = best_subsets(rates, len(chosen), node.name)[0] if best else chosen
            inside = [rate[pair] for pair in permutations(measured, 2)]
            values[chosen] = combined(mean_between(rates, measured), "GB/s", inside)
        return values

    return Group(name, choose, "set")


_STATEMENT = (
    "The best devices to use together are the two of a package; of three 0,1,6; of four 0,1,6,7 or "
    "2,3,4,5"
)

CLAIMS = (
    Claim(
        id="shortest-path-two-hops",
        statement="The shortest path between two devices is never longer than two hops.",
        document="paper",
        where="V.A.1 and figure 6a",
        rule="so it is in the node model, and the node's tools tell the links of the model (E13); "
        "a count, so no tolerance",
        requires=needs.tiers,
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
        requires=needs.packages_of_two,
        judge=_table,
        experiments=("E13",),
        records=tuple(TABLE.values()),
        built_in=_OWN,
    ),
    Claim(
        id="best-sets-predicted",
        statement=f"{_STATEMENT}: as the links predict.",
        document="hugging-face",
        where="Dual-die topology",
        rule="the sets are among those of the greatest mean peak between two devices, and of two "
        "devices there are no others; counts, so no tolerance; nodes with other links have "
        "other sets",
        requires=needs.eight_devices,
        judge=_predicted,
        experiments=("E13", "E14"),
        built_in="its links are those of the node model",
    ),
    Claim(
        id="best-sets-measured",
        statement=f"{_STATEMENT}: as bandwidths confirm.",
        document="hugging-face",
        where="Dual-die topology",
        rule="the mean of writes by kernel between two devices of each of these sets is that of "
        "the best set of its size, less 2 % at most, by which like pairs of the paper differ; "
        "nodes with other links have other sets",
        requires=needs.eight_devices,
        judge=equal(
            _sets("means of writes by kernel between two devices of a set", best=False),
            _sets("those of the best set of its size", best=True),
            at_least(1.0, part=ALIKE),
        ),
        experiments=("E8", "E14"),
        built_in="its bandwidths are those of the links that predict the sets",
    ),
)
