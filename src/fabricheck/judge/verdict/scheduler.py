"""Commands for the scheduler: scontrol lines for failed nodes, and nodes to run again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabricheck.core.nodelists import SLURM_NAME, folded, is_several, unfolded
from fabricheck.judge.verdict.model import Row
from fabricheck.judge.verdict.rules import FAILED

#: The characters of a reason: a shell and Slurm read none of them specially between quotes.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;/()+%@#_<>=-]")

#: The longest reason in a line for Slurm; sinfo and squeue truncate it anyway.
LONGEST_REASON = 200


def drain_lines(rows: Iterable[Row]) -> list[str]:
    """Return a line of ``scontrol`` for each failed node, to be read and run by a person.

    Provisional statuses have no line, nor have results of several nodes, which do not tell whose
    fault they are. The line is a comment if nothing was measured on the node, or no scheduler named
    it.
    """
    lines = []
    for row in rows:
        if row.status not in FAILED or row.provisional or is_several(row.node):
            continue
        if not SLURM_NAME.fullmatch(row.node):
            lines.append(f"# no name of a node of Slurm: {plain(row.node)}")
            continue
        said = plain(f"fabricheck {row.status}: {row.reasons[0].sentence}")[
            :LONGEST_REASON
        ].rstrip()
        line = f'scontrol update NodeName={row.node} State=DRAIN Reason="{said}"'
        doubts = [
            *(["simulated"] if row.kind == "simulated" else []),
            *(["no document tells what was measured"] if row.kind == "nothing" else []),
            *(["injected faults"] if row.faults_injected else []),
            *([] if row.scheduled else ["no scheduler named this node"]),
        ]
        lines.append(f"# {', '.join(doubts)}: {line}" if doubts else line)
    return lines


def to_run_again(rows: Iterable[Row]) -> str:
    """Return the nodes about which nothing is proven, as a host list; only nodes of a scheduler."""
    open_ones = [row.node for row in rows if row.status in ("UNSTABLE", "INCOMPLETE")]
    each = [name for one in open_ones for name in (unfolded(one) if is_several(one) else [one])]
    return folded(one for one in each if SLURM_NAME.fullmatch(one))


def plain(text: str) -> str:
    """Return a text without characters that a shell or a terminal interprets."""
    return _NOT_PLAIN.sub("?", " ".join(text.replace("'", "").replace('"', "").split()))
