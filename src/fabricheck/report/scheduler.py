"""Commands for the scheduler: scontrol lines for failed nodes, and nodes to run again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabricheck.core.nodelists import SLURM_NAME, folded, titled
from fabricheck.judge.verdict import model

#: The characters of a reason: a shell and Slurm read none of them specially between quotes.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;/()+%@#_<>=-]")

#: The longest reason in a line for Slurm; sinfo and squeue truncate it anyway.
LONGEST_REASON = 200


#: What keeps a line from being live, in the words of its comment.
DOUBTS: dict[model.Doubt, str] = {
    "simulated": "it is simulated",
    "nothing-measured": "no document shows what was measured",
    "injected-faults": "faults were injected",
    "not-scheduled": "no scheduler named this node",
    "provisional": "its limits have no calibration",
    "failed-once": "it failed so once, run it again",
    "unknown-software": "the driver's version is unknown",
    "no-contrast": "it passed nowhere with the same software",
    "many-alike": "many nodes failed alike",
    "all-alike": "all nodes failed alike",
}


def drain_lines(rows: Iterable[model.Row]) -> list[str]:
    """Return a line of ``scontrol`` for each failed node, to be read and run by a person.

    The line is a comment with its doubts where they keep it from being live. There is none where
    all nodes failed alike.
    """
    lines = []
    for row in rows:
        drain = row.drain
        if drain is None or "all-alike" in drain.doubts:
            continue
        if not SLURM_NAME.fullmatch(row.node):
            lines.append(f"# no name of a node of Slurm: {_plain(row.node)}")
            continue
        why = _plain(f"fabricheck {row.status}: {_reason(row).sentence}")[:LONGEST_REASON].rstrip()
        line = f'scontrol update NodeName={row.node} State=DRAIN Reason="{why}"'
        doubts = "; ".join(DOUBTS[doubt] for doubt in drain.doubts)
        lines.append(line if drain.live else f"# {doubts}: {line}")
    return lines


def advice(drain: model.Drain, node: str = "it") -> str:
    """Return whether to drain a failed node, and why not, as a sentence.

    No scheduler drains a machine that it does not name: that is measured again, or repaired.
    """
    scheduled = "not-scheduled" not in drain.doubts
    doubts = "; ".join(DOUBTS[doubt] for doubt in drain.doubts if doubt != "not-scheduled")
    if not doubts:
        return f"{'Drain' if scheduled else 'Repair'} {node}: the evidence is {drain.evidence}."
    return f"Do not drain {node}: {doubts}." if scheduled else f"Measure {node} again: {doubts}."


def _reason(row: model.Row) -> model.Reason:
    """Return the reason that a line states: the diagnosis, else that of the evidence."""
    first, drain = row.reasons[0], row.drain
    if drain is None or drain.rule is None or first.rule == "diagnosis":
        return first
    evidence = (
        reason for reason in row.reasons if (reason.rule, reason.check) == (drain.rule, drain.check)
    )
    return next(evidence, first)


def to_run_again(verdict: model.Verdict) -> list[str]:
    """Return the nodes about which nothing is proven, as a host list of those of a scheduler; then
    each network likewise.
    """
    nodes, networks = (
        [row.node for row in rows if row.status in ("UNSTABLE", "INCOMPLETE")]
        for rows in (verdict.nodes, verdict.networks)
    )
    listed = folded(node for node in nodes if SLURM_NAME.fullmatch(node))
    return [
        *([listed] if listed else []),
        *(
            f"the {titled(network)}, by fabricheck every-node --network-only"
            for network in dict.fromkeys(networks)
        ),
    ]


def _plain(text: str) -> str:
    """Return a text without characters that a shell or a terminal interprets."""
    return _NOT_PLAIN.sub("?", " ".join(text.replace("'", "").replace('"', "").split()))
