"""The attribution of what is slow between nodes to NICs, nodes, switches and pairs.

Two fits (module `fit`): of each NIC apart, and of nodes with all their NICs at once. A loss is
named where it is larger than what a healthy end shows at most once in a hundred runs, and was seen
again in phase 2 with partners that proved good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.fabric import choosing, naming, pairs
from fabricheck.judge.fabric.fit import Fit, fit
from fabricheck.judge.fabric.model import Attribution, Measured
from fabricheck.judge.fabric.reading import measured_of
from fabricheck.judge.fabric.samples import low_positions, samples_of
from fabricheck.results.model import ResultDocument

#: The fewest nodes of an attribution: with three partners the median is that of good ones when one
#: is bad.
FEWEST_NODES = 4

#: The least part that a NIC position is lower than the others of which it is said. On LUMI-G the
#: published values of four positions are 6 % apart.
LOW_POSITION = 0.10

#: The loss of a NIC that an attribution is to find.
WANTED_LOSS = 0.05


def attribution(document: ResultDocument) -> Attribution:
    """Name the NICs, nodes and switches that are at fault in the rounds of a document.

    :raises NotFoundError: when the document has no rounds.
    """
    rounds = document.get("rounds")
    if rounds is None:
        name = document["program"]["name"]
        raise NotFoundError(
            f"The document is of the program {name} and has no rounds between nodes; those are of "
            "the program fabric."
        )
    return attribute(measured_of(rounds, document))


def attribute(measured: Measured) -> Attribution:
    """Name the NICs, nodes and switches that are at fault."""
    seen = {
        node
        for round_ in measured.rounds
        for pair in round_.pairs
        for node in (pair.one, pair.other)
    }
    found = Attribution(
        named=(),
        open=measured.incomplete,
        nodes=len(seen),
        nics=sum(len(measured.nodes[node].nics) for node in seen),
        rounds=len(measured.rounds),
    )
    if len(seen) < FEWEST_NODES:
        said = (
            f"{count(len(seen), 'node')} cannot show whose NIC is slow, as a rate is of both nodes "
            f"of a pair: an attribution needs {FEWEST_NODES} nodes."
        )
        return replace(found, open=(*measured.incomplete, said))
    apart, together = samples_of(measured)
    if not apart.logs:
        return replace(found, open=(*measured.incomplete, "No rate was measured."))
    chosen = choosing.choose(len(measured.nodes), measured.rounds, apart, together)
    suspected = {node for node, _ in chosen.suspects}
    low = frozenset(chosen.low_pairs)
    of_nics, of_nodes = (fit(its, suspected, low) for its in (apart, together))
    named = naming.name(measured, of_nics, of_nodes)
    found_pairs = pairs.low_pairs(measured, of_nics, apart, named)
    return replace(
        found,
        named=named.named,
        switches=named.switches,
        pairs=found_pairs.pairs,
        open=(
            *named.open,
            *found_pairs.open,
            *_low_positions(measured, of_nics),
            *_too_noisy(named.least),
            *measured.incomplete,
        ),
        notes=found_pairs.notes,
        spread=of_nics.spread,
        least=named.least,
        suspects=tuple(naming.end_name(measured, *end) for end in chosen.suspects),
    )


def _too_noisy(least: float) -> tuple[str, ...]:
    if least <= WANTED_LOSS:
        return ()
    return (
        f"Rates, or healthy NICs, differ so much that a NIC is named only from {100 * least:.1f} % "
        f"below the others on, where {100 * WANTED_LOSS:.0f} % are wanted: measure more rounds.",
    )


def _low_positions(measured: Measured, fitted: Fit) -> Iterator[str]:
    """Yield what is low on most nodes, and so no NIC's fault against the others."""
    for position, log in low_positions(fitted.classes, -math.log(1 - LOW_POSITION)):
        names = {node.nics[position].name for node in measured.nodes if position < len(node.nics)}
        yield (
            f"On most nodes NIC {listed(sorted(names), 2)} is "
            f"{100 * (1 - math.exp(log)):.0f} % slower than their other NICs: NICs are compared "
            "with those at the same position only, and none is named for it."
        )
