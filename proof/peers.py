"""What the rule for peers names where another rule stands, beside that rule.

python -m proof.peers                      # all places; 2 minutes
python -m proof.peers --places fleet       # one of them
python -m proof.peers --write              # into docs/evidence/peers.md
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from fabric import phase_two
from fabricheck.core import peers, show, whole_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.statistics import deviation, quantile
from fabricheck.judge.calibration import rule as calibration
from fabricheck.judge.fabric import attributing
from fabricheck.judge.fleet import outliers, reading
from fabricheck.references import rules
from fabricheck.rfm.relative import PeerRatio
from fleet import drawn_fleets
from fleet.drawn_fleets import Fault
from limits import drawn_sessions
from peer_percents import Ways, percents_of
from peer_percents import ways as ways_of
from proof import fabric

PAGE = ROOT / "docs" / "evidence" / "peers.md"

#: The seed of all draws.
SEED = 1

#: The healthy members, or sessions, that may be named: one in so many of what is judged together.
FALSE = 0.01

PEERS = f"peers, {100 * peers.LEAST:g} % and {peers.DEVIATIONS:g} deviations"


@dataclass
class Rows:
    """By rule and column, how many were counted and of how many."""

    columns: tuple[str, ...]
    cells: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def add(self, rule: str, column: str, counted: int, number: int = 1) -> None:
        """Count in a cell."""
        cell = self.cells.setdefault(rule, {}).setdefault(column, [0, 0])
        cell[0] += counted
        cell[1] += number

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        yield "| rule | " + " | ".join(self.columns) + " |"
        yield "|" + (1 + len(self.columns)) * "---|"
        for rule, cells in self.cells.items():
            counts = [f"{cells[column][0]:,} of {cells[column][1]:,}" for column in self.columns]
            yield f"| {rule} | {' | '.join(counts)} |"


#: The nodes and the days on each of which sessions are drawn.
NODES, DAYS = 100, 5

Names = Callable[[Ways, float], set[int]]


def _behind_the_others(ways: Ways, allowed: float) -> set[int]:
    """Return the members that the present rule names: a limit of their percentage of the others."""
    percents = percents_of(ways)
    return {member for member, percent in enumerate(percents) if percent < 100 * (1 - allowed)}


def _behind(ways: Ways, least: float, deviations: float) -> set[int]:
    """Return the members that the rule for peers names as behind by all ways."""
    return set.intersection(*(_behind_by(way, least, deviations) for way in ways))


def _behind_by(members: Sequence[Any], least: float, deviations: float) -> set[int]:
    distances = peers.away({number: _rate(member) for number, member in enumerate(members)})
    if not distances:
        return set()
    limit = peers.limit(deviation([*distances.values()]), least, deviations)
    return {number for number, part in distances.items() if part < -limit}


def _rate(member: Any) -> float:
    return member.value if member.series[0]["better"] == "higher" else 1 / member.value


def _of_peers(ways: Ways, allowed: float) -> set[int]:
    return _behind(ways, peers.LEAST, peers.DEVIATIONS)


def _of_kind(ways: Ways, allowed: float) -> set[int]:
    return _behind(ways, allowed, peers.DEVIATIONS)


def _of_normal(ways: Ways, allowed: float) -> set[int]:
    return _behind(ways, peers.LEAST, quantile(_JUDGED, len(ways[0]), FALSE))


#: About so many members are judged in a session.
_JUDGED = 600

OF_A_NODE: Mapping[str, Names] = {
    "present: the recorded spread of the kind of transfer": _behind_the_others,
    PEERS: _of_peers,
    "peers, the least of the kind and 3.5 deviations": _of_kind,
    "peers, 1 % and the deviations of one false session in 100": _of_normal,
}


def members() -> Iterator[str]:
    """Yield what is named of the members of a node."""
    rng, chance = random.Random(SEED), random.Random(SEED)
    healthy = "healthy sessions with a name"
    losses = {
        "10 % in one member, missed": (0.9, 1),
        "10 % in two, missed": (0.9, 2),
        "40 % in one, missed": (0.6, 1),
    }
    rows = Rows((healthy, *losses))
    with drawn_sessions.chosen_once():
        session = drawn_sessions.session("lumi:gpu")
        compared = [each for each in session.judged if isinstance(each.metric, PeerRatio)]
        for _ in range(NODES):
            factors = drawn_sessions.factors(rng, session.documents)
            for _ in range(DAYS):
                session.draw(rng, factors)
                drawn = [_members(each, session.documents[each.check]) for each in compared]
                for name, rule in OF_A_NODE.items():
                    rows.add(name, healthy, any(rule(*each) for each in drawn))
                for column, (part, number) in losses.items():
                    for ways, allowed in drawn:
                        slow = set(chance.sample(range(len(ways[0])), number))
                        faulty = [_slowed(way, slow, part) for way in ways]
                        for name, rule in OF_A_NODE.items():
                            rows.add(name, column, not slow <= rule(faulty, allowed))
    few = sum(len(ways[0]) < peers.FEWEST for ways, _ in drawn)
    yield (
        f"{len(compared)} metrics of {NODES * DAYS} drawn sessions of a node with eight devices "
        f"([how](limits.md#what-the-rules-see)). {few} of them have two members, as all have on "
        "a node with two devices: of two the rule for peers names none."
    )
    yield ""
    yield from rows.lines()


def _members(judged: drawn_sessions.Judged, document: Any) -> tuple[Ways, float]:
    """Return the members of a metric, and the part that they may be behind."""
    metric = judged.metric
    assert isinstance(metric, PeerRatio) and judged.limits[0] is not None
    ways = ways_of(metric, document, judged.population)
    return ways, 1 - judged.limits[0] / 100


def _slowed(members: Sequence[Any], slow: set[int], part: float) -> list[Any]:
    return [
        replace(member, value=member.value * part ** _sign(member)) if number in slow else member
        for number, member in enumerate(members)
    ]


def _sign(member: Any) -> int:
    return 1 if member.series[0]["better"] == "higher" else -1


#: The sizes of drawn fleets, with how many are drawn.
FLEETS = {24: 18, 1000: 3}

#: A quarter of the metrics.
CHECKS = ("stream_local", "p2p_kernel", "memcpy_near", "mpi_collectives")

#: On nodes 1, 2 and so on.
FAULTS = (
    ("everything", 0.03), ("device 3", 0.03), ("device 5", 0.06), ("pair 0-6", 0.03),
    ("pair 2-3", 0.10), ("device 0", 0.04), ("domain 2", 0.10),
    ("p2p_kernel read_links4_worst", 0.05), ("stream_local triad_median", 0.03),
)  # fmt: skip


def _normal(deviations: float | None) -> Callable[[pl.Series, int], float]:
    """Return the rule for peers in the place of the limit of a fleet.

    :param deviations: without, those of one false name in 100 fleets of normal values.
    """

    def limit_of(distances: pl.Series, tests: int) -> float:
        values = distances.to_list()
        if len(values) < outliers.FEWEST:
            return math.inf
        many = deviations or quantile(tests * len(values), len(values), FALSE)
        return statistics.median(values) + many * deviation(values)

    return limit_of


OF_A_FLEET = {
    "present: extrapolated from the nodes": outliers.limit_of,
    PEERS: _normal(peers.DEVIATIONS),
    "peers, 1 % and the deviations of one false name in 100 fleets": _normal(None),
}


def fleets() -> Iterator[str]:
    """Yield what is named of the nodes of a fleet."""
    healthy, faults = "healthy nodes named", "nodes with a fault missed"
    yield (
        "Nodes with the deviations of 24 recorded sessions on H200 ([how](fleet.md)), of which one "
        f"has a slow copy; without and with {len(FAULTS)} faults of 3 to 10 %, each of a node (of "
        "24 nodes one)."
    )
    for nodes, number in FLEETS.items():
        rows = Rows((healthy, faults))
        names = drawn_fleets.names(nodes)
        for seed in range(number):
            for planted in ((), _faults(nodes, seed)):
                table = drawn_fleets.fleet(nodes, SEED + 100 * seed, planted, checks=CHECKS)
                partition = _partition(table)
                slow = {names[fault.node] for fault in planted}
                for rule, limit_of in OF_A_FLEET.items():
                    named = _outliers(partition, limit_of)
                    rows.add(rule, healthy, len(named - slow), nodes - len(slow))
                    rows.add(rule, faults, len(slow - named), len(slow))
        yield ""
        yield f"{number} fleets of {nodes:,} nodes:"
        yield ""
        yield from rows.lines()
    recorded = _partition(drawn_fleets.recorded())
    yield ""
    yield "Of the 24 recorded sessions are named:"
    yield ""
    for rule, limit_of in OF_A_FLEET.items():
        yield f"- {rule}: {len(_outliers(recorded, limit_of))}"


def _faults(nodes: int, seed: int) -> Sequence[Fault]:
    """Return a node with each fault; in a small fleet one of them."""
    every = [Fault(1 + number, *fault) for number, fault in enumerate(FAULTS)]
    return every if nodes >= 10 * len(every) else [every[seed % len(every)]]


def _partition(rows: pl.DataFrame) -> reading.Partition:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.parquet"
        rows.write_parquet(path)
        return reading.read([str(path)]).partitions[0]


def _outliers(
    partition: reading.Partition, limit_of: Callable[[pl.Series, int], float]
) -> set[str]:
    with mock.patch.object(outliers, "limit_of", limit_of):
        return {outlier.node for outlier in outliers.judge(partition).outliers}


#: The nodes and the sessions of each in a drawn campaign, and how many are drawn of each metric.
CALIBRATED, SESSIONS_OF_A_NODE, CAMPAIGNS = 12, 3, 40

ByNode = Mapping[str, Sequence[float]]


def _split(by_node: ByNode) -> set[str]:
    """Return the nodes that a calibration sets aside."""
    return set(calibration.slow_nodes(by_node, "GB/s")[0])


def _unlike(by_node: ByNode) -> set[str]:
    return _set_aside(by_node, peers.LEAST, peers.DEVIATIONS)


def _unlike_by_tolerance(by_node: ByNode) -> set[str]:
    return _set_aside(by_node, calibration.FLOORS["GB/s"], calibration.SPREADS)


def _set_aside(by_node: ByNode, least: float, deviations: float) -> set[str]:
    distances = peers.away({node: statistics.median(values) for node, values in by_node.items()})
    limit = peers.limit(deviation([*distances.values()]), least, deviations)
    return {node for node, part in distances.items() if part < -limit}


OF_A_CALIBRATION: Mapping[str, Callable[[ByNode], set[str]]] = {
    "present: a gap splits them off": _split,
    PEERS: _unlike,
    "peers, 2 % and 5 deviations, the floor and the spreads of a tolerance": _unlike_by_tolerance,
}


def calibrations() -> Iterator[str]:
    """Yield which nodes a calibration leaves out of a limit."""
    healthy, few, some = "healthy nodes set aside", "1 node 10 % slow, left in", "3, left in"
    narrow = "healthy sessions then below the limit"
    rows = Rows((healthy, narrow, few, some))
    recorded = sorted(drawn_fleets.deviations())
    for number, name in enumerate(recorded):
        source = drawn_fleets.Draw(CALIBRATED * CAMPAIGNS, SEED + 1000 * number)
        factors = source.noise(name, name).to_list()
        sessions = [source.normals().to_list() for _ in range(SESSIONS_OF_A_NODE)]
        for campaign in range(CAMPAIGNS):
            first = CALIBRATED * campaign
            by_node = {
                f"n{node}": [
                    factors[first + node] * (1 + drawn_fleets.ADDED * values[first + node])
                    for values in sessions
                ]
                for node in range(CALIBRATED)
            }
            for rule, set_aside in OF_A_CALIBRATION.items():
                out = set_aside(by_node)
                rows.add(rule, healthy, len(out), CALIBRATED)
                used = {node: values for node, values in by_node.items() if node not in out}
                least = calibration.middle_of(used) * (
                    1 - calibration.tolerance_of(used, "GB/s").taken
                )
                below = sum(value < least for values in by_node.values() for value in values)
                rows.add(rule, narrow, below, CALIBRATED * SESSIONS_OF_A_NODE)
                for column, many in ((few, 1), (some, 3)):
                    slow = {f"n{node}" for node in range(many)}
                    faulty = {
                        node: [0.9 * value for value in values] if node in slow else values
                        for node, values in by_node.items()
                    }
                    rows.add(rule, column, len(slow - set_aside(faulty)), many)
    yield (
        f"{CAMPAIGNS} calibrations of {CALIBRATED} nodes, {SESSIONS_OF_A_NODE} sessions of each, "
        f"for each of {len(recorded)} metrics with their deviations in 24 sessions on H200."
    )
    yield ""
    yield from rows.lines()


#: The nodes of drawn systems, the runs of each kind, and which kinds.
SYSTEM, RUNS = 16, 100
KINDS = (0, 1, 2, 11, 12)


def _drawn(rules: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield what is named of drawn systems by each rule: a module and what it has instead."""
    kinds = {number: fabric.KINDS[number] for number in KINDS}
    rows = Rows(tuple(_missed(kind) for kind in kinds.values() if kind.plant is not None))
    false = dict.fromkeys(rules, 0)
    for rule, (module, values) in rules.items():
        with mock.patch.multiple(module, **values) if values else contextlib.nullcontext():
            for number, kind in kinds.items():
                for run in range(RUNS):
                    seen = fabric.count(number, SYSTEM, run, SEED)
                    false[rule] += seen["false"]
                    if kind.plant is not None:
                        lost = seen["planted"] - seen["said"]
                        rows.add(rule, _missed(kind), lost, seen["planted"])
    yield (
        f"Systems of {SYSTEM} nodes ([how](network.md)), {RUNS} healthy ones, {RUNS} whose NICs "
        "differ as LUMI's published values do, and as many with each fault."
    )
    yield ""
    yield from rows.lines()
    yield ""
    named = "; ".join(f"{rule}: {number}" for rule, number in false.items())
    yield f"Good NICs and nodes that are named in these {RUNS * len(KINDS)} systems: {named}."


def _missed(kind: fabric.Kind) -> str:
    return f"{kind.title.replace('the same', 'NICs as different as LUMI published')}: missed"


def choices() -> Iterator[str]:
    """Yield what becomes of faults where phase 2 measures others again."""
    instead = {"LEAST": -math.log(1 - peers.LEAST), "DEVIATIONS": peers.DEVIATIONS}
    yield from _drawn(
        {
            "present: peers, 1.5 % and 2.02 deviations": (phase_two, {}),
            PEERS: (phase_two, instead),
        }
    )


def systems() -> Iterator[str]:
    """Yield what is named between nodes."""
    instead = {
        "_LEAST_LOG": -math.log(1 - peers.LEAST),
        "quantile": lambda *_: peers.DEVIATIONS,
    }
    yield from _drawn(
        {
            "present: peers, 2.5 % and the deviations of 0.01 false names a run": (attributing, {}),
            PEERS: (attributing, instead),
        }
    )


#: The least distance and the deviations of alike members, of the file of rules.
_ALIKE = rules._stated().alike

#: Who asks the rule: the least distance, the deviations, and whose they are.
ASKED = (
    (
        "devices, pairs and nodes that figures mark",
        f"{100 * peers.LEAST:g} %",
        f"{peers.DEVIATIONS:g}",
        "of the members, robust",
    ),
    (
        "limits of alike members of a node",
        f"{_ALIKE.least_percent:g} %",
        f"{_ALIKE.times:g}",
        "recorded of the [kind of transfer](limits.md#rules)",
    ),
    (
        "NICs and nodes that are [named](network.md)",
        f"{100 * attributing.LEAST_LOSS:g} %",
        f"those of {attributing.FALSE:g} false names a run",
        "of healthy NICs, with the error of each",
    ),
    (
        "NICs that `fabric` measures again (C++)",
        f"{100 * (1 - math.exp(-phase_two.LEAST)):.3g} %",
        f"{phase_two.DEVIATIONS:.3g}, three median absolute deviations",
        "of all NICs",
    ),
)

_HEAD = """# One rule for what is unlike its peers

<!-- Written by `python -m proof.peers --write`, not by hand. -->

A member is unlike the others if it is farther from their median than a least distance, and than a
number of standard deviations (`fabricheck.core.peers`). Who asks that, and with what:

"""

_BELOW = """
A fleet and a calibration have rules of their own. Below is what the rule would name there, and with
the parameters of the first row in the other places. Values are drawn (derived) from recorded
deviations, or from assumptions that the linked pages state. These tables chose no threshold.

"""


def head() -> str:
    """Return the begin of the page."""
    asked = show.markdown(("place", "least", "deviations", "whose"), ASKED)
    return _HEAD + "\n".join(asked) + "\n" + _BELOW


#: Of each place: title, what follows from its table, and what is measured.
PLACES: Mapping[str, tuple[str, str, Callable[[], Iterator[str]]]] = {
    "members": (
        "Members of a node",
        "The deviation of a few members is now narrow, now wide by chance, and a second slow one "
        "widens it. A recorded spread has neither fault.",
        members,
    ),
    "systems": (
        "NICs between nodes",
        "Hundreds of ends are judged, and some are known less well than others: at 1 % and 3.5 "
        "deviations good ones are named.",
        systems,
    ),
    "choices": (
        "NICs that are measured again",
        "Either does: who is measured again is not yet named. The wider net stays, since larger "
        "systems were drawn with it alone.",
        choices,
    ),
    "fleets": (
        "Nodes of a fleet",
        "The tails of nodes' values are longer than those of normal ones, so no number of "
        "deviations fits all metrics.",
        fleets,
    ),
    "calibrations": (
        "Nodes that a calibration leaves out",
        "A limit must hold for all healthy nodes. The rule leaves out more of them, and more "
        "healthy sessions then miss the limit, for fewer slow nodes that stay in.",
        calibrations,
    ),
}


def lines(places: Sequence[str]) -> Iterator[str]:
    """Yield the sections of some places."""
    for place in places:
        title, conclusion, measured = PLACES[place]
        yield f"## {title}"
        yield ""
        yield from measured()
        yield ""
        yield conclusion
        yield ""


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m proof.peers", description=__doc__)
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    text = "\n".join(lines(options.places))
    if options.write:
        whole_files.write_whole(PAGE, f"{head()}{text.rstrip()}\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
