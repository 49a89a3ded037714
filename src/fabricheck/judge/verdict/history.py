"""What the verdicts of a results folder say of each node over time: the last, and the last PASS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.core.models import read_model
from fabricheck.core.nodelists import is_several, natural
from fabricheck.judge.verdict.model import VERDICTS, WHOLE, NodeVerdict
from fabricheck.results import requested_nodes


@dataclass(frozen=True)
class NodeHistory:
    """A node over its verdicts.

    last: the verdict on its last session; None where it has none. passed: when the last session
    began that passed; None without one.
    """

    node: str
    last: NodeVerdict | None
    passed: datetime | None

    @property
    def began(self) -> datetime | None:
        """When its last session began; None without one."""
        return None if self.last is None else self.last.start


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
    verdicts, problems = [], []
    for path in _documents(folder):
        try:
            verdict = read_model(path, NodeVerdict)
        except FabricheckError as error:
            problems.append(str(error))
            continue
        if verdict.simulated is None and not is_several(verdict.node):
            verdicts.append(verdict)
    by_node = grouped((verdict.node, verdict) for verdict in verdicts)
    names = sorted({*by_node, *expected}, key=natural)
    nodes = tuple(_history(name, by_node.get(name, [])) for name in names)
    return History(nodes, tuple(problems))


def _history(node: str, verdicts: Iterable[NodeVerdict]) -> NodeHistory:
    sessions = sorted(
        ((verdict.start, verdict) for verdict in verdicts if verdict.start is not None),
        key=lambda session: session[0],
    )
    passes = [start for start, verdict in sessions if verdict.status == "PASS"]
    last = sessions[-1][1] if sessions else None
    return NodeHistory(node, last, passes[-1] if passes else None)


def _documents(folder: Path) -> Iterator[Path]:
    """Yield the documents of nodes: of sessions, and of jobs over many nodes."""
    for home in (folder, *sorted(folder.glob(f"{requested_nodes.FOLDER}/*"))):
        for path in sorted((home / VERDICTS).rglob("*.json")):
            if path.name not in (WHOLE, "noticed.json"):
                yield path
