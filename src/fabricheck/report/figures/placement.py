"""Bandwidth of each rank in every placement, and over size (EPICURE)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.peers import unlike
from fabricheck.core.show import enumerated
from fabricheck.core.text import capitalized
from fabricheck.report.figure import Figure
from fabricheck.report.figures.bars import bars
from fabricheck.report.figures.curves import curve_figure
from fabricheck.report.figures.rows import (
    Row,
    amount,
    beside,
    is_of_session,
    of_members,
    of_noise,
    of_point,
    of_value,
    session_rows,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series, largest

#: The placements of a node model in the order of the drawing, with the records of their ranks. The
#: records are of pageable memory, there and back, over the time of both copies.
_PLACEMENTS: Mapping[str, tuple[str, ...]] = {
    "right": ("epicure-lumi-multi8-correct-rank?", "epicure-leo-multi4-correct-rank?"),
    "in_order": ("epicure-lumi-multi8-incorrect-rank?",),
    "far": ("epicure-leo-multi4-incorrect-rank?",),
    "spread": ("epicure-leo-multi4-spread-rank?",),
    "shared_domain": (),
    "half_right": ("epicure-lumi-half-correct-rank?",),
    "half_rotated": ("epicure-lumi-half-incorrect-rank?",),
    "shared_device": (),
}

#: The location of a rank's core, and the colours of bars for it: light and dark, distinguishable in
#: grey too.
NEAR, REMOTE, UNKNOWN = "core near its device", "core of another domain", "domain not known"
_CORES = {NEAR: "#56B4E9", REMOTE: "#D55E00", UNKNOWN: "#999999"}

_MEMORIES = {"host-pageable": "pageable", "host-pinned": "pinned"}

#: The size curve of a single rank, pageable, round trip.
_SIZES = ("epicure-lumi-size-*", "epicure-lumi-single-full")

#: The check of the size curve; all other checks of E6 measure one placement at one size.
_SCAN = "pingpong_scan"


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield bars for pageable and for pinned memory, and the size curve."""
    points = observed.select(experiment="E6", operation="there-and-back")
    for memory, name in _MEMORIES.items():
        here = [
            series for series in points if series.host_memory == memory and series.check != _SCAN
        ]
        if here:
            yield _bars(observed, name, here)
    scans = [point for point in points if point.check == _SCAN]
    if len({point.bytes for point in scans}) > 1:
        yield _curve(observed, scans)


def _rank(point: Series) -> int:
    return point.ranks[0] if point.ranks else 0


def _label(placement: str) -> str:
    return placement.replace("_", " ")


def _near(point: Series) -> str:
    """Whether the rank's core and its device are in one NUMA domain, as the run found.

    The node model is not used: a virtual machine may have other domains than its node.
    """
    ranks = {rank["rank"]: rank["numa_domain"] for rank in point.document.get("ranks") or ()}
    domains = {device["index"]: device["numa_domain"] for device in point.document["devices"]}
    core = ranks.get(_rank(point))
    device = domains.get(point.device) if point.device is not None else None
    if core is None or device is None:
        return UNKNOWN
    return NEAR if core == device else REMOTE


def _bars(observed: Observed, memory: str, points: Sequence[Series]) -> Figure:
    by_rank = largest(points, lambda point: (point.placement or "", _rank(point)))
    known = [*_PLACEMENTS, *(name for name, _ in by_rank if name not in _PLACEMENTS)]
    rows: list[Row] = []
    sentences = []
    odd: dict[str, dict[int, float]] = {}
    for placement in dict.fromkeys(known):
        ranks = {rank: point for (name, rank), point in by_rank.items() if name == placement}
        if not ranks:
            continue
        label = _label(placement)
        group = [
            of_point(label, point, rank=rank, core=_near(point))
            for rank, point in sorted(ranks.items())
        ]
        rows += group
        odd[label] = _odd_ranks(group)
        sentences.append(_in_words(label, group, odd[label]))
        if memory == "pageable":
            rows += _published(observed, label, _PLACEMENTS.get(placement, ()))
    mine = session_rows(rows)
    return Figure(
        id=f"placement-{memory}",
        title=f"Every rank of each placement, {memory} memory",
        kind=observed.clock,
        says=(
            f"A copy to the device and one back, {memory} memory of {about(mine[0]['bytes'])},"
            f" all ranks at once. {' '.join(sentences)}{_of_published(rows)}{of_noise(rows)}"
        ),
        rows=rows,
        drawing=bars(
            [
                {
                    **row,
                    "text": f"rank {row['rank']}"
                    if is_of_session(row) and row["rank"] in odd[row["series"]]
                    else "",
                }
                for row in rows
            ],
            within="rank",
            fill="core",
            colours=_CORES,
            unit="GB/s per rank",
            thick=7,
        ),
    )


def _published(observed: Observed, label: str, records: tuple[str, ...]) -> Iterator[Row]:
    for value in beside(observed.node, *records):
        rank = int(value.id.rpartition("rank")[2])
        yield of_value(label, value, rank=rank, core="")


def _odd_ranks(rows: Sequence[Row]) -> dict[int, float]:
    """Return the ranks far from others of the same placement and distance to their device."""
    cores = grouped((row["core"], (row["rank"], row["value"])) for row in rows)
    percents = chain.from_iterable(unlike(dict(same)).items() for same in cores.values())
    return dict(sorted(percents))


def _in_words(label: str, rows: Sequence[Row], odd: Mapping[int, float]) -> str:
    text = of_members(label, "rank", {row["rank"]: row["value"] for row in rows}, odd)
    remote = [str(row["rank"]) for row in rows if row["core"] == REMOTE]
    if remote:
        whose = "all" if len(remote) == len(rows) else f"rank {enumerated(remote)}"
        text += f"; on cores of another domain: {whose}"
    return f"{text}."


def _of_published(rows: Sequence[Row]) -> str:
    """Return the range of the published ranks of each placement."""
    values = grouped((row["series"], row["value"]) for row in rows if row["kind"] == "published")
    parts = [
        f"{label} {amount(min(rates), '')} to {amount(max(rates))}"
        for label, rates in values.items()
    ]
    return f" Published: {'; '.join(parts)}." if parts else ""


def _curve(observed: Observed, points: Sequence[Series]) -> Figure:
    """Draw the slowest rank at each size, for which the others wait."""
    rows: list[Row] = []
    slowest: list[Row] = []
    for memory, name in _MEMORIES.items():
        here = [
            of_point(name, point, rank=_rank(point))
            for point in points
            if point.host_memory == memory
        ]
        rows += here
        slowest += [
            min((row for row in here if row["bytes"] == size), key=lambda row: row["value"])
            for size in sorted({row["bytes"] for row in here})
        ]
        if here and name == "pageable":
            theirs = [of_value(name, value, rank=None) for value in beside(observed.node, *_SIZES)]
            rows += theirs
            slowest += [{**row, "kind": "published, one rank alone"} for row in theirs]
    mine = session_rows(rows)
    ranks = len({row["rank"] for row in mine})
    whose = f"slowest of {ranks} ranks at once" if ranks > 1 else "one rank alone"
    place = _label(points[0].placement or "given")
    return curve_figure(
        "placement-curves",
        "Copy to the device and back, over size",
        observed.clock,
        rows,
        drawn=slowest,
        intro=f"{capitalized(whose)}, placement {place}. ",
        note=" The published values are of one rank alone." if len(mine) < len(rows) else "",
        unit=f"GB/s, {whose}",
        known=("pinned", "pageable"),
    )
