"""What the verdicts of a results folder say of each node over time: the last, and the last PASS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from fabricheck.core.errors import FabricheckError, InvalidFile
from fabricheck.core.forms import is_judged
from fabricheck.core.grouping import grouped
from fabricheck.core.models import read_model
from fabricheck.core.nodelists import natural
from fabricheck.judge.verdict.model import VERDICTS, WHOLE, NodeVerdict, Verdict
from fabricheck.results import requested_nodes


@dataclass(frozen=True)
class NodeHistory:
    """A node over its verdicts.

    last: the last verdict, also of a session in which the node did not answer; None without one.
    began, passed: when its last session began, and the last one that passed; None without one.
    """

    node: str
    last: NodeVerdict | None
    began: datetime | None
    passed: datetime | None


@dataclass(frozen=True)
class History:
    """The nodes of a results folder, and a sentence for each document that cannot be read."""

    nodes: tuple[NodeHistory, ...]
    problems: tuple[str, ...] = ()

    def stale(self, days: float, now: datetime) -> list[NodeHistory]:
        """Return the nodes without a session in the last days."""
        before = now - timedelta(days=days)
        return [node for node in self.nodes if node.began is None or node.began < before]


def read(folder: Path, expected: Iterable[str] = ()) -> History:
    """Read the documents of nodes that `fabricheck verdict` wrote below a results folder.

    Simulated nodes are left out, as they are no machines.

    :param expected: nodes that must be there; one without any document has no session.
    """
    dated: list[tuple[datetime, NodeVerdict]] = []
    problems = []
    for path in _totals(folder):
        try:
            total = read_model(path, Verdict)
            verdicts = [_read_node(path.with_name(row.file)) for row in total.nodes]
        except FabricheckError as error:
            problems.append(str(error))
            continue
        # A node that did not answer has no time of its own: it was asked with the others.
        starts = [verdict.start for verdict in verdicts if verdict.start is not None]
        asked = max(starts, default=total.made)
        dated += [(verdict.start or asked, verdict) for verdict in verdicts]
    by_node = grouped(
        (verdict.node, (at, verdict)) for at, verdict in dated if verdict.simulated is None
    )
    names = sorted({*by_node, *expected}, key=natural)
    nodes = tuple(_history(name, by_node.get(name, [])) for name in names)
    return History(nodes, tuple(problems))


def _read_node(path: Path) -> NodeVerdict:
    verdict = read_model(path, NodeVerdict)
    if not is_judged(verdict.node):
        raise InvalidFile(path, "node", f"{verdict.node!r} is not the name of a node or of several")
    return verdict


def _history(node: str, dated: Iterable[tuple[datetime, NodeVerdict]]) -> NodeHistory:
    in_order = sorted(dated, key=lambda each: each[0])
    sessions = [verdict for _, verdict in in_order if verdict.start is not None]
    passes = [verdict.start for verdict in sessions if verdict.status == "PASS"]
    return NodeHistory(
        node,
        last=in_order[-1][1] if in_order else None,
        began=sessions[-1].start if sessions else None,
        passed=passes[-1] if passes else None,
    )


def _totals(folder: Path) -> Iterator[Path]:
    """Yield the documents of all nodes: of sessions, and of jobs over many nodes."""
    for home in (folder, *sorted(folder.glob(f"{requested_nodes.FOLDER}/*"))):
        yield from sorted((home / VERDICTS).rglob(WHOLE))
