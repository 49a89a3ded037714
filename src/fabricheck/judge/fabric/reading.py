"""The rounds of a result document, as an attribution takes them."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.core.text import MOST_SENTENCES, count, first_of
from fabricheck.judge.fabric.model import Measured, Nic, Node, NodePair, Round
from fabricheck.node.fabric import Place
from fabricheck.results.model import (
    MeasuredRound,
    NodeOfRounds,
    ResultDocument,
    RoundsMember,
    WrongMessage,
)


def measured_of(rounds: RoundsMember, document: ResultDocument) -> Measured:
    """Return the rounds of a document, and sentences on what is missing of them."""
    nodes = [Node(one["node"], _nics(one)) for one in rounds["nodes"]]
    measured = Measured(nodes, [_round(one) for one in rounds["rounds"]])
    missing = first_of(list(_missing(rounds, document, measured)), 2 * MOST_SENTENCES)
    return Measured(nodes, measured.rounds, tuple(missing))


def _nics(node: NodeOfRounds) -> tuple[Nic, ...]:
    return tuple(
        Nic(nic["name"] or f"rank{rank}", None if nic["place"] is None else Place(**nic["place"]))
        for nic, rank in zip(node["nics"], node["ranks"], strict=True)
    )


def _round(one: MeasuredRound) -> Round:
    columns = (one["out"], one["back"], one["together_out"], one["together_back"])
    return Round(
        one["phase"],
        [
            NodePair(pair[0], pair[1], *rates)
            for pair, *rates in zip(one["pairs"], *columns, strict=True)
        ],
    )


def _missing(rounds: RoundsMember, document: ResultDocument, measured: Measured) -> Iterator[str]:
    nodes = measured.nodes
    yield from (one["reason"] for one in rounds["left_out"])
    for wrong in rounds["wrong"]:
        yield _wrong(measured, wrong)
    if document["outcome"]["status"] in ("running", "interrupted", "time-limit"):
        yield "The run did not finish" + (
            f": {document['outcome']['message']}." if document["outcome"]["message"] else "."
        )
    done = sum(one["phase"] == 1 for one in rounds["rounds"])
    if done < rounds["planned"]:
        yield f"{done} of {count(rounds['planned'], 'round')} were measured."
    failed: dict[tuple[int, int], str] = {}
    for one in rounds["failed"]:
        for node in one["nodes"]:
            failed[node, one["nic"]] = one["reason"]
    seen = {
        (node, position)
        for round_ in measured.rounds
        for pair in round_.pairs
        for position, rates in enumerate(zip(pair.out, pair.back, strict=True))
        if any(rates)
        for node in (pair.one, pair.other)
    }
    met = {
        node
        for round_ in measured.rounds
        for pair in round_.pairs
        for node in (pair.one, pair.other)
    }
    for index in sorted(met):
        for position, nic in enumerate(nodes[index].nics):
            if (index, position) not in seen:
                why = failed.get((index, position))
                yield f"{nodes[index].name}:{nic.name} has no rate" + (f": {why}" if why else ".")


def _wrong(measured: Measured, one: WrongMessage) -> str:
    sender, receiver = (
        f"{measured.nodes[node].name}:{measured.nodes[node].nics[one['nic']].name}"
        for node in (one["from"], one["to"])
    )
    return (
        f"Data from {sender} to {receiver} was wrong: {count(one['errors'], 'element')}, the first "
        f"at byte {one['offset_bytes']}, expected {one['expected']}, found {one['found']}."
    )
