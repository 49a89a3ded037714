"""What is shown of soaks: lines for a terminal, and a page with time on the x axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import fabricheck
from fabricheck.core import show
from fabricheck.core.amounts import short
from fabricheck.core.grouping import grouped
from fabricheck.core.text import count
from fabricheck.judge.drift.model import Finding, Judged, Soaks, Trend
from fabricheck.report.rendering import KINDS, templates
from fabricheck.results.soaks import Round, Soak

#: The most rows of a table in the terminal; --json has all.
_MOST = 12

#: A drawing in pixels, with room for the names of its ends.
WIDTH, HEIGHT, LEFT, BELOW = 640, 90, 60, 14

#: What is drawn of devices in each round, with its unit.
_OF_DEVICES = (
    ("temperature", "temperature_c", "deg C"),
    ("memory temperature", "memory_temperature_c", "deg C"),
    ("power", "power_w", "W"),
)


def lines(soaks: Soaks) -> Iterator[show.Block]:
    """Yield the text for a terminal."""
    if len(soaks.soaks) > 1:
        yield from _of_nodes(soaks)
    for judged in soaks.soaks:
        yield from _of_soak(judged)


def _of_nodes(soaks: Soaks) -> Iterator[show.Block]:
    """Yield a row for each node: hours passed, drift, errors."""
    rows = [
        (
            judged.node or judged.name,
            judged.status,
            f"{judged.hours:.1f} of {judged.wanted_h:g}",
            str(judged.rounds),
            _largest(judged),
            str(sum(counter.grew for counter in judged.counters)),
            str(sum(finding.rule == "wrong-data" for finding in judged.findings)),
        )
        for judged in soaks.soaks
    ]
    columns = ("Node", "Status", "Hours", "Rounds", "Largest loss", "Errors", "Wrong data")
    yield show.Table(columns, rows, columns[2:])
    for behind in soaks.behind:
        yield (
            f"{behind.node} is {_percent(-behind.change)} behind the median of {behind.nodes} "
            f"nodes in {behind.member} under load (more than {_percent(behind.floor)} counts)."
        )


def _largest(judged: Judged) -> str:
    trend = judged.worst_change
    return "-" if trend is None else f"{_percent(-trend.change)} ({trend.member})"


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %"


def heading(judged: Judged) -> str:
    """Return the line on a soak as a whole."""
    kind = ", simulated" if judged.clock == "simulated" else ""
    on = f" on {judged.node}" if judged.node else ""
    return (
        f"Soak {judged.name}{on}{kind}: {judged.hours:.2f} of {judged.wanted_h:g} h, "
        f"{count(judged.rounds, 'round')} under load: {judged.status}"
    )


def _of_soak(judged: Judged) -> Iterator[show.Block]:
    yield show.status(heading(judged), judged.status.lower())
    if judged.ended is not None:
        yield f"Ended early: {judged.ended}."
    rows = [_cells(finding) for finding in judged.findings]
    yield show.Table(("Status", "Rule", "What", "When", "How much", ""), rows, most=_MOST)
    trends = [_trend(trend) for trend in judged.trends]
    yield show.Table(
        ("Over the rounds", "Start", "Change", "95 % interval", "Counts from", "Spread"),
        trends,
        ("Start", "Change", "95 % interval", "Counts from", "Spread"),
        most=_MOST,
    )
    counters = [
        (
            f"device {counter.device}",
            counter.what,
            str(counter.grew),
            f"{counter.per_hour:.3g}",
            "-" if counter.per_tb is None else f"{counter.per_tb:.3g}",
        )
        for counter in judged.counters
    ]
    columns = ("Device", "Counter", "Grew", "Per hour", "Per TB moved")
    yield show.Table(columns, counters, columns[2:], most=_MOST)
    if judged.cpu_cores is not None:
        yield f"The load kept {judged.cpu_cores:.2f} cores of the host busy."


def _trend(trend: Trend) -> tuple[str, ...]:
    floor = "-" if trend.floor == float("inf") else _percent(trend.floor)
    return (
        trend.member,
        f"{short(trend.start)} {trend.unit}"
        if trend.unit != "us"
        else f"1/{short(1 / trend.start)} us",
        f"{100 * trend.change:+.2f} %",
        f"{100 * trend.low:+.2f} to {100 * trend.high:+.2f} %",
        floor,
        f"{100 * trend.spread:.2f} %",
    )


def when(finding: Finding) -> str:
    """Return when it was, in hours since the soak began."""
    if finding.to_h - finding.from_h < 0.01:
        return f"{finding.from_h:.2f} h"
    return f"{finding.from_h:.2f} to {finding.to_h:.2f} h"


def how_much(finding: Finding) -> str:
    """Return the change with its interval, or the value."""
    if finding.change is None and finding.value is None:
        return ""
    if finding.rule == "wrong-data" and finding.value is not None:
        return count(int(finding.value), "word")
    if finding.change is None or finding.rule == "throttled":
        return f"{short(finding.value or 0.0)} {finding.unit}"
    text = f"{100 * finding.change:+.3g} %"
    if finding.low is not None and finding.high is not None:
        text += f" ({100 * finding.low:+.3g} to {100 * finding.high:+.3g})"
    return text


#: The rules whose members are not named after devices.
WITHOUT_DEVICES = ("counters", "throttled")


def what(finding: Finding) -> str:
    """Return the member with its devices, which the names of counters and of kinds lack."""
    if finding.rule not in WITHOUT_DEVICES:
        return finding.member
    return f"{finding.member}, {show.numbered('device', finding.devices)}"


def _cells(finding: Finding) -> tuple[show.Cell, ...]:
    word = finding.status or "told"
    drains = "may drain the node. " if finding.live else ""
    return (
        show.status(word, word.lower() if finding.status else "pass"),
        finding.rule,
        what(finding),
        when(finding),
        how_much(finding),
        f"{drains}{finding.note}",
    )


@dataclass(frozen=True)
class Curve:
    """A line of a drawing: its name, and its points in pixels as SVG has them."""

    name: str
    style: str
    points: str


@dataclass(frozen=True)
class Panel:
    """A small multiple: curves over hours, between two values."""

    title: str
    unit: str
    low: float
    high: float
    curves: Sequence[Curve]


def html(soaks: Soaks) -> str:
    """Return the page of soaks as one file without scripts."""
    return (
        templates()
        .get_template("soak.html.j2")
        .render(
            soaks=soaks,
            shown=[
                (judged, list(_panels(judged.soak)), list(_marks(judged))) for judged in soaks.soaks
            ],
            heading=heading,
            when=when,
            how_much=how_much,
            what=what,
            largest=_largest,
            percent=_percent,
            size=(WIDTH, HEIGHT, LEFT, BELOW),
            kinds=KINDS,
            version=fabricheck.__version__,
        )
    )


def _x(soak: Soak, at_h: float) -> float:
    whole = max(soak.hours, 1e-9)
    return LEFT + (WIDTH - LEFT) * min(at_h / whole, 1.0)


def _marks(judged: Judged) -> Iterator[tuple[float, str, str]]:
    """Yield the place, the kind and the text of what is marked on the axis of time."""
    soak = judged.soak
    for each in soak.rounds:
        yield _x(soak, each.began_h), "quiet" if each.kind == "quiet" else "round", each.session
    for finding in judged.findings:
        if finding.status is not None and finding.rule != "missing":
            text = f"{finding.rule}: {what(finding)}"
            yield _x(soak, finding.from_h), "found", text


def _panels(soak: Soak) -> Iterator[Panel]:
    load = soak.of_kind("load")
    groups = grouped(
        (member.group, name) for name, member in soak.members.items() if member.kind == "load"
    )
    for group, names in groups.items():
        unit = soak.members[names[0]].unit
        worst_is_low = soak.members[names[0]].better == "higher"
        by_round = [
            (each, [each.values[name].middle for name in names if name in each.values])
            for each in load
        ]
        known = [(each, values) for each, values in by_round if values]
        low = [(each, min(values)) for each, values in known]
        high = [(each, max(values)) for each, values in known]
        ends = (
            (("worst", low), ("best", high)) if worst_is_low else (("best", low), ("worst", high))
        )
        yield from _panel(soak, group, unit, ends)
    for title, field, unit in _OF_DEVICES:
        of_devices = [
            (each, [getattr(device, field) for device in each.devices.values()]) for each in load
        ]
        read = [
            (each, [value for value in values if value is not None]) for each, values in of_devices
        ]
        there = [(each, values) for each, values in read if values]
        ends = (
            ("highest", [(each, max(values)) for each, values in there]),
            ("lowest", [(each, min(values)) for each, values in there]),
        )
        yield from _panel(soak, title, unit, ends)
    yield from _panel(soak, "errors counted", "", (("all devices", list(_errors(load))),))


def _errors(load: Sequence[Round]) -> Iterator[tuple[Round, float]]:
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
        yield each, float(total)


def _panel(
    soak: Soak,
    title: str,
    unit: str,
    ends: Iterable[tuple[str, Sequence[tuple[Round, float]]]],
) -> Iterator[Panel]:
    """Yield a panel of some curves, if one has points."""
    drawn = [(name, points) for name, points in ends if points]
    values = [value for _, points in drawn for _, value in points]
    if not values:
        return
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    curves = []
    for place, (name, points) in enumerate(drawn):
        text = " ".join(
            f"{_x(soak, each.middle_h):.1f},{(HEIGHT - 4) * (1 - (value - low) / span) + 2:.1f}"
            for each, value in points
        )
        curves.append(Curve(name, "first" if place == 0 else "second", text))
    yield Panel(title, unit, low, high, curves)
