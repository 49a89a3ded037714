"""Consistency of the rounds between nodes in a document of ``fabric``."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.results.model import MeasuredRound, ResultDocument, RoundsMember

Findings = Iterator[tuple[str, str]]


def compared_data(document: ResultDocument) -> bool:
    """Whether the document has rounds between nodes in which data was compared."""
    rounds = document.get("rounds")
    return rounds is not None and rounds["bytes_checked"] > 0


def has_wrong_data(document: ResultDocument) -> bool:
    """Whether messages of a round arrived with wrong data."""
    rounds = document.get("rounds")
    return rounds is not None and bool(rounds["wrong"])


def of_the_rounds(document: ResultDocument) -> Findings:
    """Yield the place and the reason of each fault of the document's rounds."""
    rounds = document.get("rounds")
    if rounds is None:
        return
    if rounds["wrong"] and document["outcome"]["status"] == "good":
        yield "$.rounds.wrong", "is not empty, but the outcome is good"
    for place, reason in _of_the_nodes(rounds, len(document.get("ranks") or ())):
        yield f"$.rounds.nodes{place}", reason
    for number, one in enumerate(rounds["rounds"]):
        for place, reason in _of_a_round(one, rounds):
            yield f"$.rounds.rounds[{number}].{place}", reason
    first = [one["phase"] for one in rounds["rounds"]].count(1)
    if first > rounds["planned"]:
        yield "$.rounds.planned", f"is {rounds['planned']}, but phase 1 has {first} rounds"
    for number, suspect in enumerate(rounds["suspects"]):
        nic = suspect["nic"]
        nics = _nics(rounds, suspect["node"])
        if not nics or (nic is not None and nic >= nics):
            yield f"$.rounds.suspects[{number}]", "is not among the nodes and their NICs"
    for number, pair in enumerate(rounds["low_pairs"]):
        if not all(_nics(rounds, node) for node in pair):
            yield f"$.rounds.low_pairs[{number}]", "has a node that is not among the nodes"
    for number, failed in enumerate(rounds["failed"]):
        if any(failed["nic"] >= _nics(rounds, node) for node in failed["nodes"]):
            yield f"$.rounds.failed[{number}]", "is not of nodes and their NICs"
    for number, wrong in enumerate(rounds["wrong"]):
        if any(wrong["nic"] >= _nics(rounds, node) for node in (wrong["from"], wrong["to"])):
            yield f"$.rounds.wrong[{number}]", "is not of nodes and their NICs"


def _nics(rounds: RoundsMember, node: int) -> int:
    return len(rounds["nodes"][node]["nics"]) if node < len(rounds["nodes"]) else 0


def _of_the_nodes(rounds: RoundsMember, ranks: int) -> Findings:
    names: set[str] = set()
    seen: set[int] = set()
    for number, node in enumerate(rounds["nodes"]):
        if node["node"] in names:
            yield f"[{number}].node", f"{node['node']} is there twice"
        names.add(node["node"])
        if len(node["nics"]) != len(node["ranks"]):
            yield f"[{number}].nics", f"has {len(node['nics'])} for {len(node['ranks'])} rank(s)"
        for rank in node["ranks"]:
            if rank >= ranks or rank in seen:
                reason = "there twice" if rank in seen else "not among the document's ranks"
                yield f"[{number}].ranks", f"rank {rank} is {reason}"
            seen.add(rank)


def _of_a_round(one: MeasuredRound, rounds: RoundsMember) -> Findings:
    met: set[int] = set()
    for index, pair in enumerate(one["pairs"]):
        for node in pair:
            if node >= len(rounds["nodes"]):
                yield f"pairs[{index}]", f"node {node} is not among the nodes"
                return
            if node in met:
                yield f"pairs[{index}]", f"node {node} is in two pairs"
            met.add(node)
    columns: dict[str, list[list[float | None]]] = {
        "out": one["out"], "back": one["back"], "together_out": one["together_out"],
        "together_back": one["together_back"], "both": one["both"], "latency": one["latency"],
    }  # fmt: skip
    for name, column in columns.items():
        if len(column) != len(one["pairs"]):
            yield name, f"has {len(column)} lists for {len(one['pairs'])} pair(s)"
            continue
        for index, (pair, rates) in enumerate(zip(one["pairs"], column, strict=True)):
            least = min(_nics(rounds, node) for node in pair)
            if len(rates) > least:
                yield f"{name}[{index}]", f"has {len(rates)} rates, and a node has {least} NIC(s)"
    for name, other in (("out", "back"), ("together_out", "together_back")):
        for index, (ways, back) in enumerate(zip(columns[name], columns[other], strict=False)):
            if len(ways) != len(back):
                yield f"{other}[{index}]", f"has {len(back)} rates, and {name} has {len(ways)}"
