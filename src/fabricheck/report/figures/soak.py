"""A soak over its hours: of each kind of work the worst and the best member, and its devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.judge.drift.model import Judged
from fabricheck.report.figure import Figure
from fabricheck.report.figures.charts import cell
from fabricheck.report.figures.hours import JUDGED, LOAD, QUIET, over_hours
from fabricheck.results.soaks import Round

#: The most rounds whose beginnings are marked: more would be a grey field.
_MOST_MARKED = 60

#: What is drawn of devices in each round, with its unit.
_OF_DEVICES = (
    ("temperature", "temperature_c", "deg C"),
    ("memory temperature", "memory_temperature_c", "deg C"),
    ("power", "power_w", "W"),
)

#: The value of a round, behind the name of its curve.
Point = tuple[str, Round, float]


def figures(judged: Judged) -> Iterator[Figure]:
    """Yield a figure for each kind of work, for what devices tell, and for the errors counted."""
    load = judged.soak.of_phase("load")
    marks = list(_marks(judged))
    members = judged.soak.members
    groups = grouped(
        (member.group, name) for name, member in members.items() if member.phase == "load"
    )
    for group, names in groups.items():
        first = members[names[0]]
        by_round = [
            (each, [each.values[name].middle for name in names if name in each.values])
            for each in load
        ]
        low, high = ("worst", "best") if first.better == "higher" else ("best", "worst")
        yield from _figure(judged, group, first.unit, _ends(by_round, low, high), marks)
    for title, field, unit in _OF_DEVICES:
        read = [
            (each, [getattr(device, field) for device in each.devices.values()]) for each in load
        ]
        known = [(each, [value for value in values if value is not None]) for each, values in read]
        yield from _figure(judged, title, unit, _ends(known, "lowest", "highest"), marks)
    yield from _figure(judged, "errors", "counted", list(_errors(load)), marks)


def _ends(by_round: Sequence[tuple[Round, Sequence[float]]], low: str, high: str) -> list[Point]:
    """Return the least and the greatest value of each round that has some, by the curves' names."""
    known = [(each, values) for each, values in by_round if values]
    points = [(low, each, min(values)) for each, values in known]
    return points + [(high, each, max(values)) for each, values in known]


def _errors(load: Sequence[Round]) -> Iterator[Point]:
    """Yield how many errors drivers had counted by each round, wrong data included."""
    total = 0
    last: dict[tuple[int, str], int] = {}
    for each in load:
        for index, device in each.devices.items():
            for counter, after in device.after.items():
                start = last.get((index, counter), device.before.get(counter, after))
                total += max(after - start, 0)
                last[index, counter] = after
        total += len(each.wrong)
        yield "all devices", each, float(total)


def _marks(judged: Judged) -> Iterator[Mapping[str, Any]]:
    """Yield when rounds began, and when what was judged."""
    rounds = judged.soak.rounds
    for each in rounds:
        if each.phase == "quiet":
            yield {"hour": each.began_h, "what": QUIET}
        elif len(rounds) <= _MOST_MARKED:
            yield {"hour": each.began_h, "what": LOAD}
    for finding in judged.findings:
        if finding.status is not None and finding.rule != "unfinished":
            yield {"hour": finding.from_h, "what": JUDGED}


def _figure(
    judged: Judged,
    title: str,
    unit: str,
    points: Sequence[Point],
    marks: Sequence[Mapping[str, Any]],
) -> Iterator[Figure]:
    """Yield the figure of some curves, if one has points."""
    if not points:
        return
    clock = judged.clock or "measured"
    rows = [
        {"series": name, "hour": each.middle_h, "value": value, "unit": unit, "kind": clock}
        for name, each, value in points
    ]
    texts = []
    for name, of_curve in grouped((name, value) for name, _, value in points).items():
        first, last = cell(of_curve[0]), cell(of_curve[-1])
        least, most = cell(min(of_curve)), cell(max(of_curve))
        texts.append(f"{name}: {first} {unit} at first, {last} at last, {least} to {most}.")
    yield Figure(
        id=f"{judged.name}-{title.replace(' ', '-')}",
        title=title,
        kind=clock,
        says=" ".join(texts),
        rows=rows,
        drawing=over_hours(rows, marks, unit=unit, hours=judged.hours),
    )
