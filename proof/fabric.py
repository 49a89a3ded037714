"""Draw systems with faults, attribute what is slow, and count what is named.

python -m proof.fabric                 # 16 to 1,024 nodes; a quarter of an hour
python -m proof.fabric --nodes 9408    # that size; minutes
python -m proof.fabric --write         # into docs/evidence/network.md, with --nodes all
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from fabric.drawn_fabrics import NICS, NODES_OF_GROUP, NODES_OF_SWITCH, Faults, System
from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT
from fabricheck.judge.fabric.attributing import attribute

PAGE = ROOT / "docs" / "evidence" / "network.md"
BLOCK = "drawn systems"

#: Runs of each kind of fault by the number of nodes.
RUNS = {16: 200, 32: 60, 128: 4, 1024: 2, 9408: 1}


@dataclass
class Planted:
    """What is planted in a system, and what is to be said of it."""

    faults: Faults = field(default_factory=Faults)
    names: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)


Plant = Callable[[System, Planted, random.Random], None]


def _nic(factor: float, both: bool = True) -> Plant:
    def plant(system: System, planted: Planted, rng: random.Random) -> None:
        node, k = rng.randrange(system.count), rng.randrange(NICS)
        planted.faults.sending[node, k] = factor
        if both:
            planted.faults.receiving[node, k] = factor
        planted.names.add(f"{system.nodes[node]['node']}:cxi{k}")

    return plant


def _node(system: System, planted: Planted, rng: random.Random) -> None:
    node = rng.randrange(system.count)
    for k in range(NICS):
        planted.faults.nic(node, k, 0.95)
    planted.names.add(system.nodes[node]["node"])


def _at_once(system: System, planted: Planted, rng: random.Random) -> None:
    node = rng.randrange(system.count)
    planted.faults.together[node] = 0.5
    planted.names.add(system.nodes[node]["node"])


def _switch(system: System, planted: Planted, rng: random.Random) -> None:
    # The first group has switches of 16 nodes, the last of all may have few.
    node, k = (
        rng.randrange(NODES_OF_SWITCH * (NODES_OF_GROUP // NODES_OF_SWITCH)),
        rng.randrange(NICS),
    )
    for one in range(system.count):
        if system.block(one) == system.block(node):
            planted.faults.nic(one, k, 0.90)
    place = system.nodes[node]["nics"][k]["place"]
    planted.names.add(f"switch {place['switch']} of group {place['group']}")


def _pair(system: System, planted: Planted, rng: random.Random) -> None:
    one, other = rng.sample(range(system.count), 2)
    planted.faults.pairs[frozenset((one, other))] = 0.7
    planted.open.append(f"{min(one, other):06d} and nid{max(one, other):06d}")


def _groups(system: System, planted: Planted, rng: random.Random) -> None:
    groups = range(-(-system.count // NODES_OF_GROUP))
    one, other = sorted(rng.sample(groups, 2), key=str)
    planted.faults.groups[frozenset((one, other))] = 0.7
    planted.open.append(f"Groups {one} and {other}:")


def _noisy(system: System, planted: Planted, rng: random.Random) -> None:
    node, k = rng.randrange(system.count), rng.randrange(NICS)
    planted.faults.noise[node, k] = 0.12
    planted.open.append(f"{system.nodes[node]['node']}:cxi{k} is unsteady")


@dataclass(frozen=True)
class Kind:
    """A kind of system; ``sizes`` are those in which it makes sense."""

    title: str
    plant: Plant | None
    fewest: int = 16
    most: int = 9408
    by_nic: bool = False


KINDS = (
    Kind("healthy", None),
    Kind("a NIC 5 % low", _nic(0.95)),
    Kind("a NIC 5 % low in sending only", _nic(0.95, both=False), most=1024),
    Kind("a NIC 10 % low", _nic(0.90), most=1024),
    Kind("a NIC at half rate", _nic(0.5), most=1024),
    Kind("a node of 4 NICs 5 % low", _node, most=1024),
    Kind("a node at half rate with all NICs at once", _at_once, most=1024),
    Kind("a switch of 16 NICs 10 % low", _switch, fewest=128, most=1024),
    Kind("a pair of nodes 30 % low", _pair, most=128),
    Kind("two groups 30 % low between each other", _groups, fewest=1024, most=1024),
    Kind("a NIC with noise of 12 %", _noisy, most=1024),
    Kind("healthy, NICs as different as LUMI's published values", None, most=128, by_nic=True),
    Kind("the same, a NIC 5 % low", _nic(0.95), most=128, by_nic=True),
)


def count(kind: int, nodes: int, run: int, seed: int) -> tuple[Counter[str], float]:
    """Draw one system; return what was said of it, and the seconds of a core it took to say."""
    its = KINDS[kind]
    rng = random.Random(f"{its.title} {nodes} {run} {seed}")
    system, planted = System(nodes, rng, its.by_nic), Planted()
    # Several single NICs in a large system: few runs then tell as much.
    several = its.title.startswith("a NIC") or its.by_nic
    for _ in range(max(1, nodes // 64) if several else 1):
        if its.plant is not None:
            its.plant(system, planted, rng)
    measured = system.measured(planted.faults)
    found = attribute(measured)
    names = {one.name for one in found.named} | {one.name for one in found.switches}
    opened = sum(any(text in said for said in found.open) for text in planted.open)
    seen = Counter(
        runs=1,
        planted=len(planted.names) + len(planted.open),
        said=len(names & planted.names) + opened,
        false=len(names - planted.names),
        open=len(found.open),
    )
    return seen


def cell(kind: Kind, seen: Counter[str]) -> str:
    """Return how many planted faults were named; of healthy systems, how many good parts a run."""
    if kind.plant is None:
        return f"{seen['false'] / seen['runs']:.3f} a run"
    return f"{100 * seen['said'] / seen['planted']:.1f} % of {seen['planted']}"


def lines(sizes: Sequence[int], seed: int) -> Iterator[str]:
    """Yield the table of what was named, and the sums over all kinds."""
    yield f"Drawn with the seed {seed}; the share of faults named, of healthy systems false names:"
    yield ""
    yield f"| planted | {' | '.join(f'{nodes:,} nodes' for nodes in sizes)} |"
    yield "|" + (1 + len(sizes)) * "---|"
    totals = {nodes: Counter[str]() for nodes in sizes}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, kind in enumerate(KINDS):
            cells = []
            for nodes in sizes:
                if not kind.fewest <= nodes <= kind.most:
                    cells.append("")
                    continue
                runs = RUNS[nodes] * (2 if kind.plant is None and not kind.by_nic else 1)
                jobs = [pool.submit(count, number, nodes, run, seed) for run in range(runs)]
                seen = sum((job.result() for job in jobs), Counter[str]())
                cells.append(cell(kind, seen))
                if not kind.by_nic:
                    totals[nodes] += seen
            yield f"| {kind.title} | {' | '.join(cells)} |"
    sums = (
        f"{nodes:,} nodes: {total['false']} false names in {total['runs']} runs"
        for nodes, total in totals.items()
    )
    yield ""
    yield f"NICs, nodes and switches named that were good: {'; '.join(sums)}."


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", default="16,32,128,1024", help="numbers of nodes, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write it into the page")
    chosen = parser.parse_args(arguments)
    sizes = list(RUNS) if chosen.nodes == "all" else [int(one) for one in chosen.nodes.split(",")]
    found = []
    for line in lines(sizes, chosen.seed):
        print(line, flush=True)
        found.append(line)
    if chosen.write:
        whole_files.rewrite_block(PAGE, {BLOCK: "\n".join(found) + "\n"})


if __name__ == "__main__":
    main()
