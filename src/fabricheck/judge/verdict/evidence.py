"""What all nodes of a verdict show: evidence against the hardware of one, and what they share.

A failed status says that something is wrong on a node; a driver, a variable or the format of a tool
can make it fail as well as its hardware. A node is to be drained only on evidence of hardware: a
finding that names it (positive), or one that the same software does not show elsewhere (contrast).
The rules state which of both each of them can be. What all nodes fail alike, and a driver or a
firmware that is not the same on all, are said too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import fabricheck
from fabricheck.core import nodelists
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.judge.verdict import draining, model
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.rules import FAILED, ISOLATING, RULES, STATUSES, TIMES, Way, worst
from fabricheck.results.requested_nodes import now

if TYPE_CHECKING:
    from fabricheck.judge.verdict.outcomes import Key

#: The most nodes that may fail alike and still be accused by contrast, as a part of those that ran.
FEW = 0.1

#: The nodes that all lose a device only by something that they share.
SEVERAL = 3

#: Rules of which all nodes together say something where they all fail by one: not a setting, which
#: its own sentence explains, and nothing that names hardware.
_OF_ALL = frozenset(
    {name for name, rule in RULES.items() if rule.evidence == "contrast"}
    | {"lost", "software", "refused", "tool", "ended", "time-limit"}
)


@dataclass(frozen=True)
class Software:
    """What could make a check fail as well as a device: versions, and the power caps of devices."""

    programs: tuple[str, ...]
    kernels: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    caps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """How one check went on one node with one software.

    passed: whether its last attempt passed. passed_before: whether an earlier one did. failures: by
    way, how many attempts failed so since the last pass; isolating: the ways that no document or
    sentence explains, which are a fault of the node where others pass.
    """

    check: Key
    software: Software | None
    passed: bool
    passed_before: bool = False
    failures: Mapping[Way, int] = field(default_factory=dict)
    isolating: frozenset[Way] = frozenset()


@dataclass(frozen=True)
class Judged:
    """A verdict on a node before others are looked at, and how its checks went."""

    verdict: model.NodeVerdict
    runs: Sequence[Run]


def decided(judged: Sequence[Judged], in_rounds: Mapping[str, Run]) -> list[model.NodeVerdict]:
    """Return the verdicts in their order, each with what all nodes together show.

    What only one node does twice becomes `isolated`. A failed node gets its drain, and every node
    what all of those that ran a check failed by, and a caveat on each version that few have.

    :param in_rounds: by node, how it went in rounds over several nodes.
    """
    others = _Cohorts(judged, in_rounds)
    caveats = grouped(
        (node, difference.caveat(value))
        for difference in differences([node.verdict for node in judged])
        for node, value in difference.rarer.items()
    )
    return [
        _decided(node, in_rounds.get(node.verdict.node), others, caveats.get(node.verdict.node, ()))
        for node in judged
    ]


def _decided(
    judged: Judged, in_rounds: Run | None, others: _Cohorts, caveats: Sequence[str]
) -> model.NodeVerdict:
    verdict = judged.verdict
    if in_rounds is not None:
        judged = Judged(verdict, [*judged.runs, in_rounds])
    reasons = [_isolated(reason, judged, others) for reason in verdict.reasons]
    if reasons != verdict.reasons:
        reasons.sort(key=lambda reason: STATUSES.index(reason.status))
        status = worst(reason.status for reason in reasons)
        held = verdict.provisional if status == verdict.status else []
        verdict = verdict.model_copy(
            update={"reasons": reasons, "status": status, "provisional": held}
        )
    may_drain = verdict.status in FAILED and not nodelists.is_several(verdict.node)
    alike = others.all_alike(judged.runs)
    if may_drain:
        drain = _drain(Judged(verdict, judged.runs), others, alike)
        verdict = verdict.model_copy(update={"drain": drain})
        if drain.live:
            arguments = {"arguments": draining.command(verdict)}
            verdict = verdict.model_copy(update={"drain": drain.model_copy(update=arguments)})
    changes: dict[str, object] = {}
    if verdict.clock == "measured":
        changes["all_alike"] = alike
        changes["caveats"] = [*verdict.caveats, *caveats]
    return verdict.model_copy(update=changes)


def _isolated(reason: model.Reason, judged: Judged, others: _Cohorts) -> model.Reason:
    """Return a reason as `isolated` where only this node does so, and did so twice."""
    way = (reason.rule, reason.metric)
    runs = [run for run in judged.runs if run.check[2] == reason.check and way in run.isolating]
    for run in runs if reason.rule in ISOLATING else ():
        if not others.doubts(judged.verdict, run, way):
            passed = others.passed_elsewhere(judged.verdict, run)
            where = f"on {count(len(passed), 'other node')}" if passed else "here before"
            rule = RULES["isolated"]
            sentence = (
                f"{reason.sentence.rstrip('.')}; it did so {run.failures[way]} times, and passed "
                f"{where} with the same software."
            )
            isolated = {
                "rule": rule.name,
                "status": rule.status,
                "sentence": sentence,
                "next_step": NEXT_STEPS[rule.name],
            }
            return reason.model_copy(update=isolated)
    return reason


def _drain(judged: Judged, others: _Cohorts, alike: Collection[model.AllAlike]) -> model.Drain:
    """Return what speaks for and against draining a failed node: its best evidence.

    :param alike: what all nodes failed by as this one did.
    """
    verdict = judged.verdict
    known: dict[model.Doubt, bool] = {
        "simulated": verdict.clock == "simulated",
        "nothing-measured": verdict.clock is None,
        "injected-faults": bool(verdict.faults_injected),
        "not-scheduled": not verdict.scheduled,
        "odd-name": nodelists.NODE_NAME.fullmatch(verdict.node) is None,
    }
    of_node = [doubt for doubt, holds in known.items() if holds]
    # All of several nodes lost something: they are another kind of machine.
    lack_alike = any(each.rule == "lost" and each.nodes >= SEVERAL for each in alike)
    drains = []
    for reason in verdict.reasons:
        evidence = RULES[reason.rule].evidence
        if reason.status not in FAILED or evidence is None:
            continue
        doubts = [*of_node]
        if evidence == "contrast":
            doubts += _doubts_of_contrast(reason, judged, others)
        elif reason.rule == "lost" and lack_alike:
            doubts.append("all-alike")
        drain = model.Drain(
            live=not doubts,
            evidence=evidence if len(doubts) == len(of_node) else None,
            rule=reason.rule,
            check=reason.check,
            doubts=doubts,
        )
        drains.append(drain)
    none = model.Drain(live=False, doubts=[*of_node, "no-contrast"])
    return min(drains, key=lambda drain: len(drain.doubts), default=none)


def _doubts_of_contrast(
    reason: model.Reason, judged: Judged, others: _Cohorts
) -> list[model.Doubt]:
    """Return what is missing for a contrast, of the run of the check in which least is missing."""
    rule = {"peers": "reference"}.get(reason.rule, reason.rule)
    doubts_of_runs = []
    for run in judged.runs:
        if reason.check not in (None, run.check[2]):
            continue
        ways = run.isolating if rule == "isolated" else [(rule, reason.metric)]
        for way in ways:
            if way not in run.failures:
                continue
            doubts = others.doubts(judged.verdict, run, way)
            if reason.rule == "reference" and run.check[0] in judged.verdict.uncalibrated:
                doubts.insert(0, "provisional")
            doubts_of_runs.append(doubts)
    return min(doubts_of_runs, key=len, default=["no-contrast"])


class _Cohorts:
    """The nodes that ran a check with the same software, and how it went on each."""

    def __init__(self, judged: Iterable[Judged], in_rounds: Mapping[str, Run]) -> None:
        self._nodes: dict[tuple[Key, Software | None], dict[str, Run]] = defaultdict(dict)
        for verdict, runs in ((each.verdict, each.runs) for each in judged):
            # A simulated node is no machine, and results of several nodes blame none of them.
            if verdict.clock == "measured" and not nodelists.is_several(verdict.node):
                for run in runs:
                    self._nodes[run.check, run.software][verdict.node] = run
        for node, run in in_rounds.items():
            self._nodes[run.check, run.software][node] = run

    def passed_elsewhere(self, verdict: model.NodeVerdict, run: Run) -> list[str]:
        """Return the other nodes on which a check passed with the same software."""
        cohort = self._nodes[run.check, run.software]
        return [node for node, other in cohort.items() if other.passed and node != verdict.node]

    def doubts(self, verdict: model.NodeVerdict, run: Run, way: Way) -> list[model.Doubt]:
        """Return what is missing for a contrast; empty where nothing is."""
        doubts: list[model.Doubt] = []
        if run.failures[way] < TIMES:
            doubts.append("failed-once")
        if run.software is None:
            doubts.append("unknown-software")
        elif not (run.passed_before or self.passed_elsewhere(verdict, run)):
            doubts.append("no-contrast")
        cohort = self._nodes[run.check, run.software]
        alike = sum(way in other.failures for other in cohort.values())
        if alike > max(1, FEW * len(cohort)):
            doubts.append("all-alike" if alike == len(cohort) else "many-alike")
        return doubts

    def all_alike(self, runs: Iterable[Run]) -> list[model.AllAlike]:
        """Return what all nodes, several, that ran a check of these runs failed by."""
        all_alike_ = []
        for run in runs:
            cohort = self._nodes[run.check, run.software]
            for rule in dict.fromkeys(rule for rule, _ in run.failures if rule in _OF_ALL):
                if len(cohort) > 1 and all(
                    rule in {failed_by for failed_by, _ in other.failures}
                    for other in cohort.values()
                ):
                    drivers = list(run.software.drivers) if run.software is not None else []
                    alike = model.AllAlike(
                        check=run.check[2], rule=rule, nodes=len(cohort), drivers=drivers
                    )
                    all_alike_.append(alike)
        return all_alike_


#: The nodes of a launch have one software: that of its programs.
ROUNDS = Software(("rounds",))


@dataclass(frozen=True)
class UnevenProperty:
    """A property that is not the same on all nodes of one kind.

    what: ``driver``, ``firmware smu``. nodes: by value the nodes that have it, the fewest first.
    """

    what: str
    nodes: dict[str, list[str]]

    @property
    def rarer(self) -> dict[str, str]:
        """The value of each node, if at least as many nodes have another value."""
        most = len([*self.nodes.values()][-1])
        several = sum(len(nodes) == most for nodes in self.nodes.values()) > 1
        rarer: dict[str, str] = {}
        for value, nodes in self.nodes.items():
            if several or len(nodes) < most:
                rarer |= dict.fromkeys(nodes, value)
        return rarer

    @property
    def note(self) -> str:
        """A sentence with all values, and the nodes of all but the most frequent value."""
        *fewer, (most, rest) = self.nodes.items()
        unlike = [f"{value} on {nodelists.folded(nodes)}" for value, nodes in fewer]
        even = len(rest) == len([*self.nodes.values()][-2])
        others = nodelists.folded(rest) if even else f"the other {count(len(rest), 'node')}"
        return f"The nodes differ in {self.what}: {listed(unlike)}, {most} on {others}."

    def caveat(self, value: str) -> str:
        """Return a sentence on one node that has a rarer value."""
        others = [
            f"{other} on {count(len(nodes), 'node')}"
            for other, nodes in reversed(self.nodes.items())
            if other != value
        ]
        return f"Its {self.what} is {value}; that of others is {listed(others)}."


def software_first(verdicts: Iterable[model.NodeVerdict | model.Row]) -> list[str]:
    """Return what to say before anything else where all nodes that ran checks failed them alike."""
    checks = grouped(
        ((alike.nodes, listed(alike.drivers)), alike.check)
        for verdict in verdicts
        for alike in verdict.all_alike
    )
    return [
        f"Software and settings first: all {nodes} nodes that ran "
        f"{listed([*dict.fromkeys(names)], 3)} "
        f"{f'with driver {driver} ' if driver else ''}failed alike."
        for (nodes, driver), names in checks.items()
    ]


def differences(verdicts: Sequence[model.NodeVerdict]) -> Iterator[UnevenProperty]:
    """Yield the differences among measured nodes that have the same devices."""
    kinds = grouped(
        (frozenset(device.name for device in verdict.devices), verdict)
        for verdict in verdicts
        if verdict.clock == "measured" and not nodelists.is_several(verdict.node)
    )
    for same_devices in kinds.values():
        by_value: dict[str, list[tuple[str, str]]] = {}
        for verdict in same_devices:
            for what, versions in _by_name(verdict.versions).items():
                if versions:
                    by_value.setdefault(what, []).append((listed(versions), verdict.node))
        for what, values in by_value.items():
            nodes = grouped(values)
            if len(nodes) > 1:
                ordered = sorted(nodes.items(), key=lambda each: (len(each[1]), each[0]))
                yield UnevenProperty(what, dict(ordered))


def _by_name(versions: model.Versions) -> dict[str, list[str]]:
    return {
        "kernel": versions.kernel,
        "driver": versions.driver,
        "VBIOS": versions.vbios,
        **{f"firmware {name}": values for name, values in versions.firmware.items()},
    }


def _place(verdict: model.NodeVerdict) -> tuple[object, ...]:
    """Return where a node stands in a table: machines above simulated nodes, the worst first."""
    simulated = verdict.simulated is not None
    return simulated, STATUSES.index(verdict.status), nodelists.natural(verdict.node)


def session_verdict(title: str, verdicts: Iterable[model.NodeVerdict]) -> model.Verdict:
    """Return the verdict on all nodes, machines first and then the worst, and what differs."""
    ordered = sorted(verdicts, key=_place)
    statuses = {verdict.status for verdict in ordered}
    good: bool = statuses <= {"PASS"}
    rows = [
        model.Row(
            **{name: getattr(verdict, name) for name in model.Row.model_fields if name != "file"},
            file=file,
        )
        for verdict, file in zip(ordered, model.file_names(ordered), strict=True)
    ]
    networks = [row for row in rows if nodelists.is_several(row.node)]
    nodes = [row for row in rows if not nodelists.is_several(row.node)]
    return model.Verdict(
        of=title,
        made=now(),
        by=fabricheck.__version__,
        exit_code=EXIT_NODE_FAILED if statuses & FAILED else EXIT_GOOD if good else EXIT_NODE_OPEN,
        counts={status: sum(node.status == status for node in nodes) for status in STATUSES},
        nodes=nodes,
        networks=networks,
        notes=[
            *filter(
                None,
                [model.provisional_note(p for verdict in ordered for p in verdict.provisional)],
            ),
            *(difference.note for difference in differences(ordered)),
        ],
    )
