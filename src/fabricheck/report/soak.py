"""What is shown of soaks: lines for a terminal, and a page with time on the x axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import fabricheck
from fabricheck.core import show
from fabricheck.core.amounts import short
from fabricheck.core.text import count
from fabricheck.judge.drift.model import Behind, Finding, Judged, Soaks, Trend
from fabricheck.report.rendering import KINDS, templates
from fabricheck.results.reading import slug

if TYPE_CHECKING:
    from fabricheck.report.figure import Figure, Shown

#: The most rows of a table in the terminal; --json has all.
_MOST = 12


def lines(soaks: Soaks) -> Iterator[show.Block]:
    """Yield the text for a terminal."""
    if len(soaks.soaks) > 1:
        yield from of_nodes(soaks)
    for judged in soaks.soaks:
        yield from _of_soak(judged)


#: The columns of a node among others.
NODE_COLUMNS = ("Node", "Status", "Hours", "Rounds", "Largest loss", "Errors", "Wrong data")


def node_cells(judged: Judged) -> tuple[str, ...]:
    """Return a node by hours passed, drift and errors."""
    trend = judged.worst_change
    return (
        judged.node or judged.name,
        judged.status,
        f"{judged.hours:.1f} of {judged.wanted_h:g}",
        str(judged.rounds),
        "-" if trend is None else f"{_percent(-trend.change)} ({trend.member})",
        str(sum(counter.grew for counter in judged.counters)),
        str(sum(finding.rule == "wrong-data" for finding in judged.findings)),
    )


def of_nodes(soaks: Soaks) -> Iterator[show.Block]:
    """Yield a row for each node, the worst first, and who is behind the others."""
    rows = [node_cells(judged) for judged in soaks.worst_first]
    yield show.Table(NODE_COLUMNS, rows, NODE_COLUMNS[2:], most=_MOST)
    yield from map(behind_others, soaks.behind)


def behind_others(behind: Behind) -> str:
    """Return the sentence on a node that is behind others under equal load."""
    return (
        f"{behind.node} is {_percent(-behind.change)} behind the median of {behind.nodes} "
        f"nodes in {behind.member} under load (more than {_percent(behind.floor)} counts)."
    )


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
    for finding in judged.findings[:1]:
        if finding.next_step:
            yield f"Next for {judged.node or judged.name} ({finding.rule}): {finding.next_step}"
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
    yield from host_use(judged)


def host_use(judged: Judged) -> Iterator[str]:
    """Yield how much of the host the load took; nothing of a simulated node."""
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


def note(finding: Finding) -> str:
    """Return where data was wrong, or else what its rule notes; and that it may drain the node."""
    text = finding.note
    if finding.offset_bytes is not None:
        bits = " ".join(map(str, finding.bits))
        text = f"byte {finding.offset_bytes}, bits {bits}"
    return f"may drain the node. {text}" if finding.live else text


#: The rules whose members are not named after devices.
WITHOUT_DEVICES = ("counters", "throttled")


def what(finding: Finding) -> str:
    """Return the member with its devices, which the names of counters and of kinds lack."""
    if finding.rule not in WITHOUT_DEVICES:
        return finding.member
    return f"{finding.member}, {show.numbered('device', finding.devices)}"


def _cells(finding: Finding) -> tuple[show.Cell, ...]:
    word = finding.status or "told"
    return (
        show.status(word, word.lower() if finding.status else "pass"),
        finding.rule,
        what(finding),
        when(finding),
        how_much(finding),
        note(finding),
    )


def html(soaks: Soaks) -> str:
    """Return the page of soaks as one file without scripts."""
    # What draws is loaded for a page only.
    from fabricheck.report.figures.soak import figures

    drawn = [(judged, list(figures(judged))) for judged in soaks.soaks]
    return (
        templates()
        .get_template("soak.html.j2")
        .render(
            soaks=soaks,
            shown=[(judged, list(_inlined(of_soak))) for judged, of_soak in drawn],
            heading=heading,
            when=when,
            how_much=how_much,
            what=what,
            note=note,
            node_columns=NODE_COLUMNS,
            node_cells=node_cells,
            behind_others=behind_others,
            host_use=host_use,
            kinds=KINDS,
            version=fabricheck.__version__,
        )
    )


def _inlined(drawn: Iterable[Figure]) -> Iterator[Shown]:
    """Yield figures for a page that is one file."""
    from fabricheck.report.figure import Shown, inline

    for figure in drawn:
        name = slug(figure.id)
        yield Shown(name, figure, inline(figure.svg, name, figure.title), csv="")
