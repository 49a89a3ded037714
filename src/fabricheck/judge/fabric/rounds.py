"""What was measured between nodes in rounds, from a result document of the program ``fabric``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from fabricheck.core.show import MOST_SENTENCES, first_of, listed
from fabricheck.core.text import count
from fabricheck.node.fabric import Place
from fabricheck.results.model import (
    MeasuredRound,
    RankNetwork,
    ResultDocument,
    RoundsMember,
    WrongMessage,
)

#: The position of an end that is a node with all of its NICs at once.
ALL = -1

#: A node and the position of a NIC of it.
End = tuple[int, int]

#: One rate in GB/s for each NIC position of a pair of nodes; None where it was not measured.
Rates = Sequence[float | None]


@dataclass(frozen=True)
class Nic:
    """A NIC of a node; ``name`` as the system has it."""

    name: str
    place: Place | None = None


@dataclass(frozen=True)
class Node:
    """A node and its NICs by position: position k of one node is measured with k of another."""

    name: str
    nics: tuple[Nic, ...]


@dataclass(frozen=True)
class NodePair:
    """What two nodes measured with each other in one round, in GB/s by NIC position.

    ``one`` and ``other`` are indices of nodes. ``out`` is from one to the other and ``back`` the
    other way, each NIC apart; the two with ``together`` are of all NICs at once, one way.
    """

    one: int
    other: int
    out: Rates
    back: Rates
    together_out: Rates = ()
    together_back: Rates = ()


@dataclass(frozen=True)
class Round:
    """Pairs of nodes that were measured at the same time; ``phase`` 2 measures suspects again."""

    phase: int
    pairs: Sequence[NodePair]


@dataclass(frozen=True)
class Measured:
    """The nodes of a launch and its rounds, in order.

    ``suspects``, the lowest first, and ``low_pairs`` are what phase 2 measures again.
    ``incomplete`` are the sentences on what is missing: nodes that were left out, pairs that
    failed, rounds that were not reached.
    """

    nodes: Sequence[Node]
    rounds: Sequence[Round]
    suspects: tuple[End, ...] = ()
    low_pairs: tuple[tuple[int, int], ...] = ()
    incomplete: tuple[str, ...] = ()


def measured_of(document: ResultDocument) -> Measured:
    """Return the rounds of a document that has some, and sentences on what is missing of them.

    Rates of a rank whose messages left its node by another way than those of most ranks say
    nothing about a NIC, and are left out.
    """
    rounds = document["rounds"]
    assert rounds is not None
    nodes = [
        Node(
            node["node"],
            tuple(
                Nic(nic["name"] or f"rank{rank}", nic["place"] and Place(**nic["place"]))
                for nic, rank in zip(node["nics"], node["ranks"], strict=True)
            ),
        )
        for node in rounds["nodes"]
    ]
    elsewhere = _elsewhere(rounds, document)
    measured = Measured(nodes, [_round(its, elsewhere) for its in rounds["rounds"]])
    missing = [*elsewhere.values(), *_missing(rounds, document, measured, elsewhere)]
    return replace(
        measured,
        suspects=tuple(
            (nic["node"], ALL if nic["nic"] is None else nic["nic"]) for nic in rounds["suspects"]
        ),
        low_pairs=tuple((one, other) for one, other in rounds["low_pairs"]),
        incomplete=tuple(first_of(missing, 2 * MOST_SENTENCES)),
    )


def _elsewhere(rounds: RoundsMember, document: ResultDocument) -> dict[End, str]:
    """Return a sentence for each node and position whose messages left by another way than most."""
    ranks = document.get("ranks") or []
    used = {
        (index, position): ranks[number].get("network")
        for index, node in enumerate(rounds["nodes"])
        for position, number in enumerate(node["ranks"])
    }
    # What cannot be told has a note in the document, and is compared with nothing.
    ways = Counter(
        (its["transport"], its["provider"])
        for its in used.values()
        if its and its["transport"] and its["provider"]
    )
    if not ways:
        return {}
    transport, provider = ways.most_common(1)[0][0]
    found: dict[End, str] = {}
    for (index, position), its in used.items():
        if its is None or its["transport"] is None:
            continue
        if its["transport"] != transport or its["provider"] not in (provider, None):
            node = rounds["nodes"][index]
            found[index, position] = (
                f"Messages of rank {node['ranks'][position]} of {node['node']} left it by "
                f"{_way(its)}, unlike those of most ranks: its rates are left out."
            )
    return found


def _way(its: RankNetwork) -> str:
    by = listed(str(word) for word in (its["transport"], its["provider"]) if word is not None)
    names = " and ".join(nic["name"] for nic in its["nics"])
    return f"{by} ({names})" if names else by


def _round(measured: MeasuredRound, elsewhere: Container[End]) -> Round:
    columns = (
        measured["out"],
        measured["back"],
        measured["together_out"],
        measured["together_back"],
    )
    return Round(
        measured["phase"],
        [
            NodePair(pair[0], pair[1], *(_kept(pair, each, elsewhere) for each in rates))
            for pair, *rates in zip(measured["pairs"], *columns, strict=True)
        ],
    )


def _kept(pair: Sequence[int], rates: Rates, elsewhere: Container[End]) -> Rates:
    if not elsewhere:
        return rates
    return [
        None if any((node, position) in elsewhere for node in pair) else rate
        for position, rate in enumerate(rates)
    ]


def _missing(
    rounds: RoundsMember, document: ResultDocument, measured: Measured, elsewhere: Container[End]
) -> Iterator[str]:
    for wrong in rounds["wrong"]:
        yield _wrong(measured, wrong)
    reasons = list(
        dict.fromkeys(
            typed_dict["reason"] for typed_dict in (*rounds["left_out"], *rounds["failed"])
        )
    )
    yield from reasons
    outcome = document["outcome"]
    if outcome["status"] not in ("good", "wrong-data") and outcome["message"] not in reasons:
        ended = outcome["status"] not in ("running", "interrupted", "time-limit")
        yield (f"The run ended with {outcome['status']}" if ended else "The run did not finish") + (
            f": {outcome['message'].rstrip('.')}." if outcome["message"] else "."
        )
    done = sum(measured_round["phase"] == 1 for measured_round in rounds["rounds"])
    if done < rounds["planned"]:
        yield f"{done} of {count(rounds['planned'], 'round')} were measured."
    yield from _without_rate(measured, elsewhere)


def _without_rate(measured: Measured, elsewhere: Container[End]) -> Iterator[str]:
    """Yield what met others and has no rate of a direction, or none of all NICs at once."""
    ways = [
        way
        for round_ in measured.rounds
        for pair in round_.pairs
        for way in (
            (pair.one, pair.other, pair.out, pair.together_out),
            (pair.other, pair.one, pair.back, pair.together_back),
        )
    ]
    met = {node for node, *_ in ways}
    sent = {(node, k) for node, _, rates, _ in ways for k, rate in enumerate(rates) if rate}
    received = {(node, k) for _, node, rates, _ in ways for k, rate in enumerate(rates) if rate}
    any_at_once = any(together for *_, together in ways)
    at_once = {node for one, other, _, together in ways if together and all(together)
               for node in (one, other)}  # fmt: skip
    for index in sorted(met):
        node = measured.nodes[index]
        ends = [
            (index, position)
            for position in range(len(node.nics))
            if (index, position) not in elsewhere
        ]
        for end in ends:
            lacks = [
                word
                for word, seen in (("sending", sent), ("receiving", received))
                if end not in seen
            ]
            if lacks:
                what = f" of {lacks[0]}" if len(lacks) == 1 else ""
                yield f"{node.name}:{node.nics[end[1]].name} has no rate{what}."
        complete = all(end in sent and end in received for end in ends)
        if any_at_once and complete and len(ends) == len(node.nics) and index not in at_once:
            yield f"{node.name} has no rate with all its NICs at once."


def _wrong(measured: Measured, wrong: WrongMessage) -> str:
    sender, receiver = (
        f"{measured.nodes[node].name}:{measured.nodes[node].nics[wrong['nic']].name}"
        for node in (wrong["from"], wrong["to"])
    )
    return (
        f"Data from {sender} to {receiver} was wrong: {count(wrong['errors'], 'byte')}, the first "
        f"at byte {wrong['offset_bytes']}, expected {wrong['expected']}, found {wrong['found']}."
    )
