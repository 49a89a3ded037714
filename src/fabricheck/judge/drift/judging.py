"""What changed on a node under hours of load: drift, steps, stragglers, errors that grow.

Each member of a soak (a kind of work on a device or a pair, a clock, a metric of a quiet session)
is compared with itself over rounds, and under equal load with its peers. What counts is a change
beyond the floor of its noise between sessions, as `fabricheck compare` has it, whose interval
leaves no doubt that there is one. The node's state is what the worst finding makes of it; only a
finding of a round's own verdict is evidence that may drain it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fabricheck.core.grouping import grouped
from fabricheck.core.peers import away
from fabricheck.core.statistics import median
from fabricheck.judge.drift.counters import counters, of_counters, throttled
from fabricheck.judge.drift.lines import Line
from fabricheck.judge.drift.model import Behind, Finding, Judged, Soaks, Trend
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.rules import RULES, STATUSES, NodeStatus, worst
from fabricheck.results.soaks import Round, RoundFinding, Soak

#: Fewer peers do not tell which of them is the straggler.
FEWEST_PEERS = 3


def judge_all(soaks: Iterable[Soak]) -> Soaks:
    """Return what is judged of soaks, each by itself and beside the others."""
    judged = tuple(judge(soak) for soak in soaks)
    return Soaks("fabricheck-drift-1", judged, tuple(_behind(judged)))


def _behind(judged: Sequence[Judged]) -> Iterator[Behind]:
    """Yield nodes whose worst device or pair of a kind of work is behind that of other nodes."""
    levels: dict[str, dict[str, float]] = {}
    floors: dict[str, float] = {}
    for each in judged:
        for group, level, floor in _levels(each):
            levels.setdefault(group, {})[each.node or each.name] = level
            floors[group] = floor
    for group, of_nodes in levels.items():
        if len(of_nodes) < FEWEST_PEERS or math.isinf(floors[group]):
            continue
        for node, part in away(of_nodes).items():
            if part < -floors[group]:
                yield Behind(node, group, part, floors[group], len(of_nodes))


def _levels(judged: Judged) -> Iterator[tuple[str, float, float]]:
    """Yield each kind of work under load, the rate of its worst member, and its floor."""
    soak = judged.soak
    rounds = soak.of_phase("load")
    groups = grouped(
        (member.group, name) for name, member in soak.members.items() if member.phase == "load"
    )
    for group, names in groups.items():
        lines = [Line.of_member(name, soak.members[name], rounds) for name in names]
        known = [line for line in lines if line is not None]
        if known:
            yield group, min(median(line.rates) for line in known), known[0].floor


def of_verdicts(verdicts: Iterable[NodeVerdict]) -> Iterator[RoundFinding]:
    """Yield what the verdicts on the session of a round have against its node."""
    for judged in verdicts:
        drain = judged.drain
        for reason in judged.reasons:
            by_it = drain is not None and reason.rule == drain.rule
            yield RoundFinding(
                status=reason.status,
                rule=reason.rule,
                sentence=reason.sentence,
                live=drain is not None and by_it and drain.live,
                positive=drain is not None and by_it and drain.evidence == "positive",
            )


def judge(soak: Soak) -> Judged:
    """Return what the rounds of a soak show."""
    load, quiet = soak.of_phase("load"), soak.of_phase("quiet")
    findings = [*_of_rounds(soak.rounds)]
    trends: list[Trend] = []
    for name, member in soak.members.items():
        rounds = load if member.phase == "load" else quiet
        line = Line.of_member(name, member, rounds)
        if line is None:
            continue
        trends += line.trend()
        findings += line.findings()
    changed = {finding.member for finding in findings}
    findings += [each for each in _stragglers(soak, load) if each.member not in changed]
    grown = tuple(counters(load))
    findings += of_counters(grown, load)
    findings += throttled(load)
    findings += _missing(soak, load)
    ordered = [_with_next_step(finding) for finding in sorted(findings, key=_place)]
    loaded = sum(each.load_s for each in load)
    cpu = [each.cpu_s for each in load if each.cpu_s is not None]
    return Judged(
        name=soak.name,
        node=soak.node,
        status=worst(each.status for each in findings if each.status is not None),
        hours=soak.hours,
        wanted_h=soak.plan.hours,
        rounds=len(load),
        ended=soak.ended,
        clock=load[0].clock if load else None,
        cpu_cores=sum(cpu) / loaded if cpu and loaded > 0 else None,
        findings=tuple(ordered),
        trends=tuple(sorted(trends, key=lambda trend: trend.change)),
        counters=grown,
        soak=soak,
    )


def _with_next_step(finding: Finding) -> Finding:
    if finding.status is None:
        return finding
    return replace(finding, next_step=NEXT_STEPS[finding.rule])


def _place(finding: Finding) -> tuple[int, float]:
    """Return by what findings are sorted: the worst first, what is only told last."""
    status = finding.status
    return (len(STATUSES) if status is None else STATUSES.index(status)), finding.from_h


def _of_rounds(rounds: Iterable[Round]) -> Iterator[Finding]:
    """Yield what was wrong in single rounds: data, and what their own verdicts found."""
    listed = set()
    for each in rounds:
        for wrong in each.wrong:
            yield Finding(
                rule="wrong-data",
                status="DATA-FAIL",
                member=wrong.work,
                devices=() if wrong.device is None else (wrong.device,),
                from_h=wrong.at_h,
                to_h=wrong.at_h,
                value=float(wrong.errors),
                unit="words",
                offset_bytes=wrong.offset_bytes,
                bits=tuple(wrong.bits),
            )
        for finding in each.findings:
            same = (finding.rule, finding.sentence)
            if same in listed or (finding.rule == "wrong-data" and each.wrong):
                continue
            listed.add(same)
            yield Finding(
                rule=finding.rule,
                status=_status(finding.status),
                member=each.session,
                from_h=each.began_h,
                to_h=each.middle_h,
                note=finding.sentence,
                live=finding.live,
            )


def _status(word: str) -> NodeStatus:
    known: tuple[NodeStatus, ...] = ("DATA-FAIL", "HW-FAIL", "PERF-FAIL", "UNSTABLE")
    for status in known:
        if word == status:
            return status
    return "INCOMPLETE"


def _stragglers(soak: Soak, rounds: Sequence[Round]) -> Iterator[Finding]:
    """Yield members that are behind their peers in most rounds, where the other peers are alike."""
    groups = grouped(
        (member.group, name) for name, member in soak.members.items() if member.phase == "load"
    )
    for names in groups.values():
        lines = [Line.of_member(name, soak.members[name], rounds) for name in names]
        known = [line for line in lines if line is not None and not math.isinf(line.floor)]
        if len(known) < FEWEST_PEERS:
            continue
        levels = {line.name: median(line.rates) for line in known}
        for line in known:
            peers = [level for name, level in levels.items() if name != line.name]
            middle = median(peers)
            behind = levels[line.name] / middle - 1
            apart = (max(peers) - min(peers)) / middle
            if behind < -line.floor and apart < -behind / 2:
                yield Finding(
                    rule="straggler",
                    status=RULES["straggler"].status,
                    member=line.name,
                    devices=line.member.devices,
                    from_h=line.at_h[0],
                    to_h=line.at_h[-1],
                    change=behind,
                    floor=line.floor,
                    value=line.values[-1].middle,
                    unit=line.member.unit,
                )


def _missing(soak: Soak, load: Sequence[Round]) -> Iterator[Finding]:
    """Yield what keeps a soak from being complete: hours, rounds, or parts of rounds."""
    for each in soak.rounds:
        if each.problem is not None:
            yield Finding(
                "unfinished", "INCOMPLETE", each.session, (), each.began_h, note=each.problem
            )
    if soak.hours < soak.plan.hours:
        yield Finding(
            "unfinished",
            "INCOMPLETE",
            "hours",
            from_h=soak.hours,
            to_h=soak.plan.hours,
            value=soak.hours,
            unit="h",
            note=soak.ended or "",
        )
    first = set(load[0].values) if load else set()
    first -= {name for name in first if soak.members[name].group == "clock"}
    lost = {name for each in load[1:] for name in first - set(each.values)}
    for name in sorted(lost):
        without = [each for each in load[1:] if name not in each.values]
        gone = without[0]
        yield Finding(
            "lost", "HW-FAIL", name, soak.members[name].devices, gone.began_h, gone.middle_h
        )
