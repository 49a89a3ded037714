"""Drawn systems of many nodes: what the program ``fabric`` would measure of them.

The logarithm of a rate is that of its NIC position, an effect of the NIC that sends, one of the
NIC that receives, and noise. What is assumed:

- Positions: LUMI-G's published means by GCD for those beside a NIC (1, 3, 5 and 7), 23,800 to
  22,336 MB/s.
- NICs of one position: a standard deviation of 0.53 %, of which eight NICs show a range of 1.5 %:
  that of HPE's printed ``cxi_read_bw`` of eight NICs, 20,287 to 20,604 MB/s.
- Noise of a rate: 1.5 %; and 5 % of the pairs of a round are 30 % low, at random, as where others
  use the network. Both are assumptions.

``by_nic`` draws each NIC's effect from all eight published values instead, regardless of its
position: they are of one pair of nodes, which does not tell positions from NICs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import factories
from fabric.phase_two import LOW_PAIR, choose
from fabricheck.judge.fabric.fit import ALL, samples_of

#: MB/s of osu_bw between two nodes by GCD, thesis of a LUMI-G user (docs/evidence/network.md).
GCDS = (23411, 23800, 22945, 23468, 23076, 23433, 23033, 22336)
BESIDE_NICS = GCDS[1::2]

NICS = 4
NODES_OF_SWITCH = 16
NODES_OF_GROUP = 124
NIC_SPREAD = 0.0053
NOISE = 0.015
BUSY_PAIRS, BUSY_LOSS = 0.05, 0.30

#: Rounds of each distance above so many nodes, and of phase 2.
ALL_TO, ROUNDS, AGAIN, PAIRS_AGAIN = 128, 16, 8, 3


@dataclass
class Faults:
    """Factors of rates; a NIC is (node, position)."""

    sending: dict[tuple[int, int], float] = field(default_factory=dict)
    receiving: dict[tuple[int, int], float] = field(default_factory=dict)
    together: dict[int, float] = field(default_factory=dict)
    pairs: dict[frozenset[int], float] = field(default_factory=dict)
    groups: dict[frozenset[int], float] = field(default_factory=dict)
    noise: dict[tuple[int, int], float] = field(default_factory=dict)

    def nic(self, node: int, position: int, factor: float) -> None:
        """Make a NIC slow both ways."""
        self.sending[node, position] = self.receiving[node, position] = factor


class System:
    """A system of nodes with four NICs, each on a switch of its own, in groups of 124 nodes."""

    def __init__(self, nodes: int, rng: random.Random, by_nic: bool = False) -> None:
        self.rng = rng
        self.count = nodes
        self.nodes = [self._node(number) for number in range(nodes)]
        self.effects = [
            [self._effect(position, by_nic) for position in range(NICS)] for _ in range(nodes)
        ]

    def _node(self, number: int) -> dict[str, Any]:
        group, inside = divmod(number, NODES_OF_GROUP)
        return {
            "node": f"nid{number:06d}",
            "ranks": [NICS * number + k for k in range(NICS)],
            "nics": nics(str(group), NICS * (inside // NODES_OF_SWITCH)),
        }

    def _effect(self, position: int, by_nic: bool) -> float:
        # Both NICs of a rate have the same position, and half of its effect each.
        middle = math.log(sum(GCDS) / len(GCDS) / 1e3)
        if by_nic:  # of two such effects the deviation is that of the published values
            own = math.log(self.rng.choice(GCDS) / 1e3) - middle
            return middle / 2 + own / math.sqrt(2)
        return math.log(BESIDE_NICS[position] / 1e3) / 2 + self.rng.gauss(0, NIC_SPREAD)

    def distance(self, one: int, other: int) -> str:
        """Return how far apart two nodes are, by all their NICs."""
        if one // NODES_OF_GROUP != other // NODES_OF_GROUP:
            return "other-group"
        same = self.block(one) == self.block(other)
        return "same-switch" if same else "same-group"

    def block(self, node: int) -> tuple[int, int]:
        """Return the nodes at the same switches, as a key."""
        return node // NODES_OF_GROUP, node % NODES_OF_GROUP // NODES_OF_SWITCH

    def plan(self) -> list[list[tuple[int, int]]]:
        """Return the rounds of phase 1."""
        if self.count <= ALL_TO:
            return tournament(self.count)
        rounds = []
        for far in ("same-switch", "same-group", "other-group"):
            met: set[tuple[int, int]] = set()
            for _ in range(ROUNDS):
                pairs = self.matched(range(self.count), far, met)
                if pairs:
                    rounds.append(pairs)
        return rounds

    def matched(
        self, nodes: Iterable[int], far: str | None, met: set[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Return pairs at a distance that did not meet yet, as far as drawing finds them."""
        waiting = list(nodes)
        self.rng.shuffle(waiting)
        if far in ("same-switch", "same-group"):
            key = self.block if far == "same-switch" else (lambda node: node // NODES_OF_GROUP)
            waiting.sort(key=key)  # stable: still drawn within one
        pairs = []
        while len(waiting) > 1:
            one = waiting.pop()
            for back in range(1, min(40, len(waiting)) + 1):
                other = waiting[-back]
                pair = (min(one, other), max(one, other))
                if (far is None or self.distance(*pair) == far) and pair not in met:
                    del waiting[-back]
                    met.add(pair)
                    pairs.append(pair)
                    break
        return pairs

    def measure(
        self, phase: int, pairs: Iterable[tuple[int, int]], faults: Faults
    ) -> dict[str, Any]:
        """Return the rates of a round."""
        met = [list(pair) for pair in pairs]
        rates = [self._rates(one, other, faults) for one, other in met]
        columns = ("out", "back", "together_out", "together_back")
        return {"phase": phase, "distance": None, "seconds": 0.3, "pairs": met,
                **{name: [its[k] for its in rates] for k, name in enumerate(columns)},
                "both": [[] for _ in met], "latency": [[] for _ in met]}  # fmt: skip

    def _rates(self, one: int, other: int, faults: Faults) -> list[list[float]]:
        gauss, noises = self.rng.gauss, faults.noise
        between = BUSY_LOSS if self.rng.random() < BUSY_PAIRS else 0.0
        factor = (1 - between) * faults.pairs.get(frozenset((one, other)), 1.0)
        if faults.groups:
            groups = frozenset((one // NODES_OF_GROUP, other // NODES_OF_GROUP))
            factor *= faults.groups.get(groups, 1.0)

        def rates(sender: int, receiver: int, together: bool) -> list[float]:
            found = []
            for k in range(NICS):
                log = self.effects[sender][k] + self.effects[receiver][k]
                noise = NOISE
                if noises:
                    noise = max(noise, noises.get((sender, k), 0), noises.get((receiver, k), 0))
                rate = factor * math.exp(log + gauss(0, noise))
                rate *= faults.sending.get((sender, k), 1.0)
                rate *= faults.receiving.get((receiver, k), 1.0)
                if together:
                    rate *= faults.together.get(sender, 1.0) * faults.together.get(receiver, 1.0)
                found.append(rate)
            return found

        return [
            rates(sender, receiver, together)
            for together in (False, True)
            for sender, receiver in ((one, other), (other, one))
        ]

    def measured(self, faults: Faults) -> dict[str, Any]:
        """Measure both phases, as the program does, and return its document."""
        first = [self.measure(1, its, faults) for its in self.plan()]
        found = {
            "bytes": 4 << 20, "messages": 8, "repetitions": 3, "memory": "host-pageable",
            "planned": len(first), "bytes_checked": 1, "nodes": self.nodes, "rounds": first,
            "left_out": [], "failed": [], "wrong": [],
        }  # fmt: skip
        chosen = choose(self.count, first, *samples_of(found))
        again = [
            self.measure(2, pairs, faults)
            for pairs in self.again([node for node, _ in chosen.suspects], chosen.proven)
        ]
        pairs = list(chosen.low_pairs)
        for _ in range(PAIRS_AGAIN):
            rounds = [self.measure(2, its, faults) for its in disjoint(pairs)]
            again += rounds
            pairs = [(one, other) for its in rounds for one, other in low_of(its)]
        suspects = [
            {"node": node, "nic": None if nic == ALL else nic} for node, nic in chosen.suspects
        ]
        found |= {"rounds": [*first, *again], "suspects": suspects,
                  "low_pairs": [list(pair) for pair in chosen.low_pairs]}  # fmt: skip
        program = {**factories.document()["program"], "name": "fabric"}
        ranks = [
            {"rank": rank, "host": node["node"], "cores": [0], "numa_domain": 0,
             "memory_domain": 0, "visible_devices": [], "device": None}
            for node in self.nodes for rank in node["ranks"]
        ]  # fmt: skip
        document = factories.document(program=program, series=[], ranks=ranks, rounds=found)
        document["versions"]["mpi"] = "drawn"
        return document

    def again(self, suspects: list[int], proven: frozenset[int]) -> list[list[tuple[int, int]]]:
        """Return the rounds of suspects with proven partners; the other proven ones meet too."""
        rounds = []
        nodes = list(dict.fromkeys(suspects))
        met: set[tuple[int, int]] = set()
        for _ in range(AGAIN if nodes else 0):
            free = set(proven)
            pairs = []
            for node in nodes:
                order = sorted(free, key=lambda one: self._near(node, one))
                for other in order:
                    pair = (min(node, other), max(node, other))
                    if pair not in met:
                        met.add(pair)
                        free.remove(other)
                        pairs.append(pair)
                        break
            rounds.append(pairs + self.matched(free, None, set()))
        return rounds

    def _near(self, node: int, other: int) -> tuple[int, float]:
        order = ("same-switch", "same-group", "other-group")
        return order.index(self.distance(node, other)), self.rng.random()


def disjoint(pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the pairs in sets, no node in two pairs of one."""
    sets: list[tuple[set[int], list[tuple[int, int]]]] = []
    for pair in pairs:
        for nodes, its in sets:
            if not nodes.intersection(pair):
                nodes.update(pair)
                its.append(pair)
                break
        else:
            sets.append((set(pair), [pair]))
    return [its for _, its in sets]


def nics(group: str, first: int) -> list[dict[str, Any]]:
    """Return the NICs of a node, each at a switch of its own of a group, from a first one on."""
    return [
        {"name": f"cxi{k}", "place": {"group": group, "switch": str(first + k), "port": None}}
        for k in range(NICS)
    ]


def low_of(measured: dict[str, Any]) -> list[list[int]]:
    """Return the pairs of a round with a rate that is low by what is known of its position."""
    return [
        pair
        for pair, *columns in zip(measured["pairs"], measured["out"], measured["back"], strict=True)
        if any(
            rate < LOW_PAIR * middle / 1e3
            for rates in columns
            for rate, middle in zip(rates, BESIDE_NICS, strict=True)
            if rate
        )
    ]


def tournament(nodes: int) -> list[list[tuple[int, int]]]:
    """Return rounds in which each node meets each other one."""
    seats = nodes + nodes % 2
    rounds = []
    for number in range(seats - 1):
        pairs = []
        for table in range(seats // 2):
            first = seats - 1 if table == 0 else (number + table) % (seats - 1)
            second = (number + seats - 1 - table) % (seats - 1)
            if max(first, second) < nodes:
                pairs.append((min(first, second), max(first, second)))
        rounds.append(pairs)
    return rounds
