"""Names of nodes: folded into host lists, in the order of people, and in lines for Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import NodeSet, NodeSetException

from fabricheck.errors import UsageError
from fabricheck.verdict.model import Row
from fabricheck.verdict.rules import FAILED

#: What a node is called in Slurm's own files.
_SLURM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: Characters of a reason: none that a shell, or Slurm, reads as anything but itself between quotes.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;/()+%@#_<>=-]")

#: Longest reason in a line for Slurm; sinfo and squeue cut it in any case.
LONGEST_REASON = 200


def unfolded(text: str) -> list[str]:
    """Return the nodes that a host list names: ``node[1-3],login``.

    :raises UsageError: when it is no host list, or names none.
    """
    try:
        found = list(NodeSet(text))
    except NodeSetException as error:
        raise UsageError(f"{text!r} is no list of nodes: {error}.") from None
    if not found:
        raise UsageError(f"{text!r} names no node.")
    return found


def folded(names: Iterable[str]) -> str:
    """Return nodes as a host list; names that are none of Slurm's as they are."""
    each = list(dict.fromkeys(names))
    plain = [name for name in each if _SLURM_NAME.fullmatch(name)]
    odd = [name for name in each if name not in plain]
    try:
        lists = [str(NodeSet.fromlist(plain))] if plain else []
    except NodeSetException:
        lists = plain
    return ",".join([*lists, *odd])


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts node2 before node10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.findall(r"[0-9]+|[^0-9]+", name)
    ]


def drain_lines(rows: Iterable[Row]) -> list[str]:
    """Return a line of ``scontrol`` for each node that failed: to be read, and run by a person.

    It is a comment where nothing was measured on the node, or no scheduler gave it its name.
    """
    lines = []
    for row in rows:
        if row.word not in FAILED:
            continue
        if not _SLURM_NAME.fullmatch(row.node):
            lines.append(f"# no name of a node of Slurm: {plain(row.node)}")
            continue
        said = plain(f"fabricheck {row.word}: {row.reasons[0].sentence}")[:LONGEST_REASON].rstrip()
        line = f'scontrol update NodeName={row.node} State=DRAIN Reason="{said}"'
        doubts = [
            *(["simulated"] if row.kind == "simulated" else []),
            *(["faults made on purpose"] if row.made_on_purpose else []),
            *([] if row.scheduled else ["no scheduler named this node"]),
        ]
        lines.append(f"# {', '.join(doubts)}: {line}" if doubts else line)
    return lines


def plain(text: str) -> str:
    """Return a text without what a shell or a terminal could read as more than text."""
    return _NOT_PLAIN.sub("?", " ".join(text.replace("'", "").replace('"', "").split()))
