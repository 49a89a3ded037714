"""Fleets that are drawn: tables as `results export` writes them, of nodes with recorded noise.

The healthy values, and which devices and pairs a metric is made of, are those of the simulated
session of a node with four MI250X. A node's values deviate as those of 24 recorded sessions on
H200 did: each check of a node takes one of these sessions, so that what varied together there
varies together here, and each device or pair one of its two devices. A deviation
is multiplied by a factor of its own between 0 and 2, so that 24 sessions do not make 24 groups of
nodes, and normal ones are added: 0.1 %, the published spread of pairs.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl

from fabricheck.core.checkout import ROOT
from fabricheck.results import export
from fabricheck.results.reading import read

OUTPUTS = ROOT / "tests" / "outputs"
SIMULATED = OUTPUTS / "simulated-mi250x"
SESSIONS = OUTPUTS / "h200" / "node-sessions-x2.json"

#: The recorded metric whose deviations a value takes, by the words of its name: the first to fit.
ALIKE = (
    (("pingpong", "pageable"), "pingpong_right h2d_pageable"),
    (("pingpong", "there_and_back"), "pingpong_right both_pinned"),
    (("pingpong", "h2d"), "pingpong_right h2d_pinned"),
    (("pingpong", "d2h"), "pingpong_right d2h_pinned"),
    (("pageable", "h2d"), "memcpy_near_pageable h2d_pageable_near"),
    (("pageable", "d2h"), "memcpy_near_pageable d2h_pageable_near"),
    (("pageable", "both"), "memcpy_near_pageable both_pageable_near"),
    (("both", "pinned"), "memcpy_near both_pinned_near"),
    (("d2h",), "memcpy_near d2h_pinned_near"),
    (("h2d",), "memcpy_near h2d_pinned_near"),
    (("managed", "read"), "memcpy_near h2d_pinned_near"),
    (("managed", "write"), "memcpy_near d2h_pinned_near"),
    (("mpi_pairs", "latency"), "mpi_pairs latency_switch18"),
    (("mpi_pairs",), "mpi_pairs bandwidth_switch18"),
    (("latency",), "p2p_engine latency_switch18"),
    (("engine_both",), "p2p_engine engine_both_switch18"),
    (("engine",), "p2p_engine engine_switch18"),
    (("p2p_kernel", "write"), "p2p_kernel write_switch18"),
    (("p2p_kernel", "copy"), "p2p_kernel copy_switch18"),
    (("p2p_kernel",), "p2p_kernel read_switch18"),
    (("stream_local",), "stream_local copy"),
)

#: Of values that are not made of devices or pairs.
WHOLE = (
    (("mpi_collectives",), "mpi_collectives bcast_2"),
    (("copy_one",), "stream_concurrent copy_one"),
    (("stream_concurrent",), "stream_concurrent copy_two_spread_share"),
    (("together",), "mpi_pairs bandwidth_switch18"),
    (("best",), "p2p_engine engine_switch18_alike"),
)

#: The columns of a check that have the same cell on all nodes of a drawn fleet.
OF_CHECKS = (
    "session_id", "session_start", "result", "program_version", "commit", "runtime",
    "runtime_version", "driver", "mpi", "status", "complete",
)  # fmt: skip

#: The standard deviation of the normal deviations, as a fraction.
ADDED = 0.001


@dataclass(frozen=True)
class Fault:
    """What is slower on one node: by ``part``, a fraction of its rate.

    where: device 3, pair 0-6, domain 1, everything, or the check and metric of one value.
    """

    node: int
    where: str
    part: float

    def strikes(self, column: Member) -> bool:
        """Whether a series or a value of its node is slower."""
        kind, _, what = self.where.partition(" ")
        match kind:
            case "everything":
                return True
            case "device":
                return int(what) in column.devices
            case "pair":
                return set(column.devices) == set(map(int, what.split("-")))
            case "domain":
                return column.domain == int(what)
            case _:
                return False


@dataclass(frozen=True)
class Member:
    """A device or a pair of a metric: the index of its series, its devices, its NUMA domain."""

    series: int
    devices: tuple[int, ...] = ()
    domain: int | None = None


@dataclass(frozen=True)
class Base:
    """A metric before its reduction: check, name, unit, healthy value, members, recorded noise."""

    check: str
    name: str
    unit: str
    value: float
    noise: str
    members: tuple[Member, ...] = ()
    reductions: tuple[str, ...] = ()
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)


@cache
def deviations() -> Mapping[str, Sequence[tuple[float, float]]]:
    """Return by recorded metric, for each session, the two devices' values over their median.

    Metrics of one value have it twice.
    """
    values: dict[str, list[float]] = {}
    for session in json.loads(SESSIONS.read_text(encoding="utf-8")):
        for check, metrics in session["values"].items():
            for name, value in metrics.items():
                values.setdefault(f"{check} {name}", []).append(value)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, own in values.items():
        if not statistics.median(own):
            continue
        pairs = [(one, one) for one in own]
        stem, _, reduction = name.rpartition("_")
        if reduction == "worst":
            middles = values[f"{stem}_median"]
            pairs = [(one, 2 * middle - one) for one, middle in zip(own, middles, strict=True)]
            name = stem
        middle = statistics.median([one for pair in pairs for one in pair])
        found[name] = [(one / middle, other / middle) for one, other in pairs]
    return found


@cache
def exported() -> pl.DataFrame:
    """Return the table of the simulated session."""
    told = export.ExportLog()
    return export.frame(list(export.stream(read([str(SIMULATED)]), told)))


@cache
def bases() -> tuple[Base, ...]:
    """Return the metrics of the simulated session, worst and median of the same series as one."""
    rows = exported().filter(pl.col("row_type") == "metric", pl.col("unit") != "count").to_dicts()
    series = {
        (one["check"], one["index"]): one
        for one in exported().filter(pl.col("row_type") == "series").to_dicts()
    }
    found: dict[tuple[str, str], Base] = {}
    for row in rows:
        check, metric = row["check"], row["metric"]
        if row["reduce"] is None:
            words = f"{check} {metric}"
            noise = next(name for parts, name in WHOLE if all(one in words for one in parts))
            found[check, metric] = Base(check, metric, row["unit"], row["value"], noise, row=row)
            continue
        stem = metric.rpartition("_")[0]
        noise = next(
            name for parts, name in ALIKE if all(one in f"{check} {stem}" for one in parts)
        )
        members = tuple(
            member(series[check, int(one)]) for one in row["series"].strip("[]").split()
        )
        found.setdefault(
            (check, stem),
            Base(check, stem, row["unit"], row["value"], noise, members, ("worst", "median"), row),
        )
    return tuple(found.values())


def member(row: Mapping[str, Any]) -> Member:
    ends = (row["source_device"], row["destination_device"], row["device"])
    devices = tuple(sorted({one for one in ends if one is not None}))
    domains = [row["source_domain"], row["destination_domain"]]
    domain = next((one for one in domains if one is not None), None)
    return Member(row["index"], devices, domain)


class Draw:
    """The noise of a fleet: each call gives other values, the same of the same seed."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.nodes = nodes
        self.seed = seed
        count = 100_003
        normal = statistics.NormalDist()
        self.normal = pl.Series([normal.inv_cdf((one + 0.5) / count) for one in range(count)])
        self.sessions: dict[str, pl.Series] = {}

    def _next(self) -> int:
        self.seed += 1
        return self.seed

    def normals(self) -> pl.Series:
        """Return a standard normal value for each node."""
        return self.normal.sample(self.nodes, with_replacement=True, seed=self._next())

    def whole_numbers(self, below: int) -> pl.Series:
        """Return a number from 0 for each node."""
        return pl.Series(range(below)).sample(self.nodes, with_replacement=True, seed=self._next())

    def noise(self, check: str, recorded: str) -> pl.Series:
        """Return a factor around 1 for each node."""
        found = deviations()[recorded]
        if check not in self.sessions:
            self.sessions[check] = self.whole_numbers(len(found))
        flat = pl.Series([one - 1 for pair in found for one in pair])
        which = self.sessions[check] * 2 + self.whole_numbers(2)
        stretched = flat.gather(which) * self.whole_numbers(2000) / 1000
        return 1 + stretched + self.normals() * ADDED


def draw(
    nodes: int,
    seed: int,
    faults: Sequence[Fault] = (),
    sizes: int = 0,
    checks: Sequence[str] = (),
) -> Iterator[tuple[Base, str, str, pl.Series]]:
    """Yield each metric of a fleet: its base, name, unit, and a value for each node.

    :param sizes: how many bases are measured at a further size, as metrics of their own.
    :param checks: the checks that are drawn; all, if none is named.
    """
    source = Draw(nodes, seed)
    further = [one for one in bases() if one.members][:sizes]
    for size, every in (("", bases()), ("_16MiB", further)):
        for base in every:
            if checks and base.check not in checks:
                continue
            lower = base.unit == "us"
            if not base.members:
                value = source.noise(base.check, base.noise) * base.value
                value = _slowed(value, faults, Member(-1), lower, f"{base.check} {base.name}")
                yield base, base.name, base.unit, value
                continue
            members = []
            for one in base.members:
                value = source.noise(base.check, base.noise) * base.value
                members.append(_slowed(value, faults, one, lower))
            wide = pl.DataFrame([one.alias(str(at)) for at, one in enumerate(members)])
            worst = wide.max_horizontal() if lower else wide.min_horizontal()
            middle = wide.select(pl.concat_arr(pl.all()).arr.median().alias("median")).to_series()
            assert worst is not None
            for reduction, value in (("worst", worst), ("median", middle)):
                name = f"{base.name}{size}_{reduction}"
                what = f"{base.check} {name}"
                yield base, name, base.unit, _slowed(value, faults, Member(-1), lower, what, True)
            percent = 100 * (middle / worst if lower else worst / middle)
            if not size:
                yield base, f"{base.name}_alike", "%", percent


def _slowed(
    value: pl.Series, faults: Sequence[Fault], member: Member, lower: bool, what: str = "",
    named: bool = False,
) -> pl.Series:  # fmt: skip
    for fault in faults:
        if (not named and fault.strikes(member)) or (what and fault.where == what):
            slower = value[fault.node] * (1 / (1 - fault.part) if lower else 1 - fault.part)
            value = value.scatter(fault.node, slower)
    return value


def names(nodes: int) -> list[str]:
    """Return the names of the nodes."""
    digits = int(math.log10(nodes)) + 1
    return [f"n{one:0{digits}}" for one in range(1, nodes + 1)]


def fleet(
    nodes: int,
    seed: int,
    faults: Sequence[Fault] = (),
    metrics: int = 400,
    checks: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the metrics of a fleet: a row for each of each node, with the columns that differ.

    :param metrics: at most this many for each node. checks: as for `draw`.
    """
    ours = sum(3 if one.members else 1 for one in bases())
    own = pl.Series("node", names(nodes))
    parts = []
    sizes = max(0, (metrics - ours + 1) // 2)
    for base, name, unit, value in draw(nodes, seed, faults, sizes, checks):
        if len(parts) == metrics:
            break
        told = {
            "row_type": "metric", "system": "drawn", "partition": "gpu", "environment": "rocm",
            "clock": "measured", "experiment": base.row["experiment"], "check": base.check,
            "metric": name, "unit": unit, "better": "lower" if unit == "us" else "higher",
            "noise": base.row["noise"],
        }  # fmt: skip
        columns = [pl.lit(cell, dtype=pl.String).alias(column) for column, cell in told.items()]
        parts.append(pl.DataFrame([own, value.alias("value")]).with_columns(columns))
    return pl.concat(parts)


def as_exported(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return rows with all columns of an export; those of checks are as in a session."""
    first = exported().row(0, named=True)
    there = rows.collect_schema().names()
    return rows.with_columns(
        pl.lit(first[name] if name in OF_CHECKS else None, dtype=kind).alias(name)
        for name, kind in exported().schema.items()
        if name not in there
    ).select(exported().columns)


def recorded() -> pl.DataFrame:
    """Return the 24 recorded sessions on H200 as the metrics of 24 nodes."""
    rows = []
    for at, session in enumerate(json.loads(SESSIONS.read_text(encoding="utf-8"))):
        for check, metrics in session["values"].items():
            for metric, value in metrics.items():
                rows.append(
                    {
                        "row_type": "metric", "system": "h200", "partition": "x2",
                        "node": f"h{at:02}",
                        "environment": "cuda", "clock": "measured", "check": check,
                        "metric": metric, "value": value, "unit": _unit(metric),
                    }
                )  # fmt: skip
    return pl.DataFrame(rows)


def _unit(metric: str) -> str:
    if metric in ("misplaced", "differences", "unverified"):
        return "count"
    if metric.endswith(("_alike", "_of_single")):
        return "%"
    return "us" if "latency" in metric or metric == "bcast_2" else "GB/s"
