"""Result documents of drawn systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import factories
from fabricheck.judge.fabric.rounds import ALL, Measured, NodePair, Round

_RATES = ("out", "back", "together_out", "together_back")


def document(measured: Measured, **changes: Any) -> dict[str, Any]:
    """Return the document of the program ``fabric`` that measured this."""
    first = 0
    nodes, ranks = [], []
    for node in measured.nodes:
        its = list(range(first, first + len(node.nics)))
        first += len(its)
        ranks += [_rank(rank, node.name) for rank in its]
        nodes.append({"node": node.name, "ranks": its, "nics": [
            {"name": nic.name, "place": None if nic.place is None else vars(nic.place)}
            for nic in node.nics
        ]})  # fmt: skip
    rounds = {
        "bytes": 4 << 20, "messages": 8, "repetitions": 3, "memory": "host-pageable",
        "planned": sum(one.phase == 1 for one in measured.rounds), "bytes_checked": 1,
        "nodes": nodes, "rounds": [_round(one) for one in measured.rounds],
        "suspects": [{"node": node, "nic": None if nic == ALL else nic}
                     for node, nic in measured.suspects],
        "low_pairs": [list(pair) for pair in measured.low_pairs],
        "left_out": [], "failed": [], "wrong": [],
    }  # fmt: skip
    program = {**factories.document()["program"], "name": "fabric"}
    content = factories.document(program=program, series=[], ranks=ranks, rounds=rounds, **changes)
    content["versions"]["mpi"] = "drawn"
    return content


def rounded(measured: Measured) -> Measured:
    """Return the rates as the document has them."""
    return replace(measured, rounds=[
        Round(one.phase, [
            NodePair(pair.one, pair.other, *(_column(pair, name) for name in _RATES))
            for pair in one.pairs
        ])
        for one in measured.rounds
    ])  # fmt: skip


def _rank(rank: int, node: str) -> dict[str, Any]:
    return {"rank": rank, "host": node, "cores": [0], "numa_domain": 0, "memory_domain": 0,
            "visible_devices": [], "device": None}  # fmt: skip


def _round(one: Round) -> dict[str, Any]:
    columns = {name: [_column(pair, name) for pair in one.pairs] for name in _RATES}
    return {"phase": one.phase, "distance": None, "seconds": 0.3,
            "pairs": [[pair.one, pair.other] for pair in one.pairs], **columns,
            "both": [[] for _ in one.pairs], "latency": [[] for _ in one.pairs]}  # fmt: skip


def _column(pair: NodePair, name: str) -> list[float | None]:
    return [None if rate is None else float(f"{rate:.5g}") for rate in getattr(pair, name)]
