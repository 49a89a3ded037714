"""Reasons of nodes from what was measured over several: those that an attribution names.

Two nodes cannot tell which of them is slow. Rounds over more nodes can: the attribution names NICs
and nodes that are slow with all partners, and only these get a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fabricheck.judge.verdict.attempts import TIMES
from fabricheck.judge.verdict.checks import key
from fabricheck.judge.verdict.evidence import Run, Software
from fabricheck.judge.verdict.grouping import NodeResults, Subject
from fabricheck.judge.verdict.rules import Finding, Way, finding

#: The nodes of a launch have one software: that of its programs.
ROUNDS = Software(("rounds",))


def named(
    found: Mapping[Subject, NodeResults],
) -> tuple[Mapping[str, Sequence[Finding]], Mapping[str, Run]]:
    """Return by node the findings of the attributions of all documents with rounds, and how each
    node went in the rounds.

    Nodes of a simulated system are no nodes of a machine.
    """
    findings: dict[str, list[Finding]] = defaultdict(list)
    runs: dict[str, Run] = {}
    for subject, results in found.items():
        for attempt in results.attempts if subject.simulated is None else ():
            document = attempt.document
            rounds = document.get("rounds") if document is not None else None
            if document is None or not rounds:
                continue
            from fabricheck.judge.fabric.attributing import attribute
            from fabricheck.judge.fabric.reading import measured_of

            measured = measured_of(rounds, document)
            for one in attribute(measured).named:
                findings[one.node].append(finding("network", one.sentence, attempt.check))
            for node in measured.nodes:
                # A node is named only after it was slow again with partners that proved good.
                failures: dict[Way, int] = (
                    {("network", None): TIMES} if node.name in findings else {}
                )
                runs[node.name] = Run(key(attempt), ROUNDS, not failures, failures=failures)
    return findings, runs
