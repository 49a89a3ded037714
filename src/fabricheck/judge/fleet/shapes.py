"""Shapes of an odd node: which device, pair or NUMA domain its slow values have in common.

Of a node's series, if the table has them, each device, pair and domain is a candidate, in all of
its experiments or in those of one kind, and so is everything. What fits the slow series best is
said, by the Dice coefficient: twice what both have over the sum of their sizes. Without series the
metrics tell less: their names have the check, the operation, the memory and the link class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fabricheck.core.text import count
from fabricheck.judge.calibration.groups import NORMAL
from fabricheck.judge.fleet.odd import BEHIND, Judged, Odd
from fabricheck.judge.fleet.reading import SERIES
from fabricheck.references.stated import REDUCED

#: The least Dice coefficient of a shape that is said, and that of everything.
FITS = 0.6
EVERYTHING = 0.8

#: The nodes with which the series of odd ones are compared, and the odd ones whose series are read.
OTHERS = 100
MOST = 40

#: A series is slow from this many spreads behind on, and at least by BEHIND.
SPREADS = 3.5

#: Kinds of experiments, in words.
KINDS: Mapping[str, frozenset[str]] = {
    "own memory": frozenset({"E1"}),
    "copies from and to the host": frozenset({"E2", "E3", "E4", "E5", "E6"}),
    "transfers to and from peers": frozenset({"E7", "E8", "E9", "E14"}),
}

#: The shape of a node whose metrics of the kind `worst` are slow.
WORST = "its worst device or pair"

#: The end of a metric's name that is a size.
_SIZE = re.compile(r"_[0-9]+[KMG]?i?B$")


@dataclass(frozen=True)
class Shape:
    """What the slow values of a node have in common.

    what: in words. explained, slow: how many of the slow series, or metrics, it explains. of:
    series or metrics. behind: the median distance of the slow ones, as a fraction.
    """

    what: str
    explained: int
    slow: int
    of: str
    behind: float

    @property
    def sentence(self) -> str:
        """The shape, and what it explains."""
        if not self.slow:
            return self.what
        return f"{self.what} ({self.explained} of {self.slow} slow {self.of})"


def others_of(judged: Judged) -> list[str]:
    """Return the nodes with which the series of the odd ones are compared."""
    named = {one.node for one in judged.odd}
    healthy = [one for one in judged.partition.nodes if one not in named]
    return healthy[:: max(1, len(healthy) // OTHERS)][:OTHERS]


def of(judged: Judged, rows: pl.DataFrame) -> dict[str, Shape]:
    """Return the shape of each odd node by its name.

    :param rows: those of the odd nodes and of the others.
    """
    found = {one.node: of_metrics(judged, one) for one in judged.odd}
    return found | dict(_of_series(judged, rows))


def of_metrics(judged: Judged, odd: Odd) -> Shape:
    """Return the shape that the names of the metrics show."""
    metrics = judged.partition.metrics
    slow = {one.number for one in odd.values if one.metric.unit not in ("%", "count")}
    could = {one for one in odd.could_show if metrics[one].unit not in ("%", "count")}
    behind = odd.typical
    if not slow:
        every = [*odd.values, *odd.unbelieved]
        named = f"one metric, {every[0].metric.title}" if len(every) == 1 else "no one part"
        return Shape(named, len(every), 0, "metrics", behind)
    if len(slow) == 1:
        (number,) = slow
        return Shape(f"one metric, {metrics[number].title}", 1, 0, "metrics", behind)
    if _dice(slow, could) >= EVERYTHING:
        return Shape("everything", len(slow & could), len(slow), "metrics", behind)
    worst = {one for one in could if metrics[one].name.endswith("_worst")}
    sets: dict[str, set[int]] = {WORST: worst}
    for number in could:
        sets.setdefault(f"check {metrics[number].check}", set()).add(number)
        for part in _parts(metrics[number].name):
            sets.setdefault(f"`{part}`", set()).add(number)
    sets |= {f"{WORST} of {name}": own & worst for name, own in sets.items() if name != WORST}
    fit, name = max((_dice(slow, own), name) for name, own in sets.items())
    if fit < FITS:
        return Shape("no one part", len(slow), 0, "metrics", behind)
    return Shape(name, len(slow & sets[name]), len(slow), "metrics", behind)


def _parts(name: str) -> Iterator[str]:
    """Yield the beginnings and ends of a metric's name: what moves the data, and where it does."""
    words = _SIZE.sub("", REDUCED.sub("", name)).split("_")
    for at in range(1, len(words)):
        yield "_".join(words[:at])
        yield "_".join(words[at:])


def _dice(one: set[int], other: set[int]) -> float:
    return 2 * len(one & other) / ((len(one) + len(other)) or 1)


def _of_series(judged: Judged, rows: pl.DataFrame) -> Iterator[tuple[str, Shape]]:
    """Yield the shapes of the odd nodes that have series, and are not alone to have them."""
    clock = judged.partition.clock
    series = rows.filter(
        pl.col("kind") == "series", pl.col("clock") == clock, pl.col("value").is_finite()
    )
    odd = [one for one in judged.odd if one.values][:MOST]
    others = others_of(judged)
    if not len(series) or not odd:
        return
    # A node's value of repeated series is their median.
    each = series.group_by(["node", *SERIES]).agg(pl.col("value").median())
    typical = (
        each.filter(pl.col("node").is_in(others))
        .group_by(SERIES)
        .agg(
            pl.col("value").median().alias("typical"),
            (pl.col("value") / pl.col("value").median() - 1).abs().median().alias("spread"),
        )
    )
    for one in odd:
        own = each.filter(pl.col("node") == one.node)
        joined = own.join(typical, on=SERIES, nulls_equal=True)
        found = _best(joined.to_dicts())
        if found is not None:
            yield one.node, found


def _best(rows: Sequence[Mapping[str, Any]]) -> Shape | None:
    """Return the shape that fits the slow series best; None without a slow series."""
    behind, limits = [], []
    for row in rows:
        ratio = row["value"] / row["typical"] if row["typical"] else 1.0
        behind.append(ratio - 1 if row["better"] == "lower" else 1 - ratio)
        limits.append(max(BEHIND, SPREADS * NORMAL * row["spread"]))
    slow = {at for at, (far, limit) in enumerate(zip(behind, limits, strict=True)) if far > limit}
    if not slow:
        return None
    typical = sorted(behind[at] for at in slow)[len(slow) // 2]
    could = {at for at, limit in enumerate(limits) if limit <= typical} | slow
    candidates = {name: own & could for name, own in _candidates(rows)}
    fit, name = 0.0, ""
    for one, own in candidates.items():  # the smallest part first
        if own and _dice(slow, own) > fit + 1e-9:
            fit, name = _dice(slow, own), one
    if fit < FITS:
        many = {place for at in slow for place in _devices(rows[at])}
        where = f"no one part: {count(len(many), 'device')}" if many else "no one part"
        return Shape(where, len(slow), len(slow), "series", typical)
    explained = len(slow & candidates[name])
    return Shape(name, explained, len(slow), "series", typical)


def _candidates(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, set[int]]]:
    """Yield the parts of a node with the series that they take part in, the smallest first."""
    places: dict[str, set[int]] = {}
    for at, row in enumerate(rows):
        for place in _places(row):
            places.setdefault(place, set()).add(at)
    order = ("pair", "device", "NUMA domain")
    for place, own in sorted(
        places.items(), key=lambda one: next(i for i, w in enumerate(order) if one[0].startswith(w))
    ):
        for kind, experiments in KINDS.items():
            some = {at for at in own if rows[at]["experiment"] in experiments}
            if some != own:
                yield f"{place}, {kind}", some
        yield f"{place}", own
    for kind, experiments in KINDS.items():
        yield f"all {kind}", {at for at, row in enumerate(rows) if row["experiment"] in experiments}
    yield "everything", set(range(len(rows)))


def _places(row: Mapping[str, Any]) -> Iterable[str]:
    devices = _devices(row)
    if len(devices) == 2:
        yield f"pair {devices[0]}-{devices[1]}"
    if len(devices) <= 2:
        yield from (f"device {one}" for one in devices)
    for end in ("source", "destination"):
        if row[f"{end}_domain"] is not None and str(row[f"{end}_memory"]).startswith("host"):
            yield f"NUMA domain {row[f'{end}_domain']}"


def _devices(row: Mapping[str, Any]) -> list[int]:
    ends = (row["source_device"], row["destination_device"], row["device"])
    found = {one for one in ends if one is not None}
    if not found and row["devices"]:
        found = {int(one) for one in str(row["devices"]).strip("[]").split() if one.isdigit()}
    return sorted(found)
