"""Reasons of nodes from what was measured over several: those that an attribution names.

Two nodes cannot tell which of them is slow. Rounds over more nodes can: the attribution names NICs
and nodes that are slow with all partners, and only these get a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fabricheck.judge.fabric import attribution
from fabricheck.judge.verdict.grouping import NodeResults, Subject
from fabricheck.judge.verdict.rules import Finding, finding


def named(found: Mapping[Subject, NodeResults]) -> Mapping[str, Sequence[Finding]]:
    """Return by node the findings of the attributions of all documents with rounds.

    Nodes of a simulated system are no nodes of a machine.
    """
    told: dict[str, list[Finding]] = defaultdict(list)
    for subject, results in found.items():
        for attempt in results.attempts if subject.simulated is None else ():
            document = attempt.document
            if document is not None and document.get("rounds"):
                for one in attribution(document).named:
                    told[one.node].append(finding("network", one.sentence, attempt.check))
    return told
