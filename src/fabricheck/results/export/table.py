"""The table as a stream of rows, with what there is to say of what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fabricheck.core.errors import NotFoundError
from fabricheck.results.export import rows
from fabricheck.results.export.rows import Row
from fabricheck.results.export.sources import Asked, Found, Source, Unreadable
from fabricheck.results.nodes_asked import AskedNode, AskedNodes

#: The result of a node that was asked for and has no check in the table, and of one that has.
LOST = "lost"
PRESENT = "present"

#: Sentences about what can not be read that are said one by one.
MOST = 20


@dataclass
class Told:
    """What became known while the table was made.

    counts: rows by kind. sessions: how many. bare: by result the checks that have no value.
    problems: sentences about what is there and can not be read, so that rows are missing. notes:
    what else there is to know.
    """

    counts: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    bare: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> Iterator[str]:
        """Everything, in sentences; how much there is comes last."""
        yield from self.problems[:MOST]
        if len(self.problems) > MOST:
            yield f"And {len(self.problems) - MOST} more of what can not be read."
        yield from self.notes
        if self.bare:
            said = ", ".join(f"{count} {result}" for result, count in sorted(self.bare.items()))
            yield (
                f"{self.bare.total()} check(s) without any value ({said}): each has its row of "
                "kind check, which says why."
            )
        counts = self.counts
        samples = f", {counts['sample']} samples" if counts["sample"] else ""
        nodes = f", {counts['node']} nodes asked for" if counts["node"] else ""
        yield (
            f"{self.sessions} session(s), {counts['check']} checks: {counts['metric']} metrics, "
            f"{counts['series']} series{samples}{nodes}."
        )


def stream(found: Iterable[Found], told: Told, samples: bool = False) -> Iterator[Row]:
    """Yield all rows, a session after the other; only one session is held at a time.

    :param told: gets what there is to say.
    :param samples: whether each sample has a row.
    :raises NotFoundError: at the end, when there was no row.
    """
    present: set[str] = set()
    for one in found:
        match one:
            case Unreadable():
                told.problems.append(one.sentence)
                continue
            case Asked():
                made = _nodes(one.nodes, present, {})
            case Source():
                told.sessions += 1
                made = _source(one, told, samples)
        for row in made:
            told.counts[row["kind"]] += 1
            if row["kind"] == "check" and row.get("node"):
                present.add(row["node"])
            yield row
    if not told.counts:
        raise NotFoundError(" ".join(told.problems) or "There is no session to export.")


def _source(source: Source, told: Told, samples: bool) -> Iterator[Row]:
    gathered = source.gathered
    told.problems += gathered.warnings
    told.notes += gathered.notes
    common = rows.of_session(gathered.session)
    entries = {id(entry.case): entry for entry in gathered.entries if entry.case is not None}
    cases = gathered.session.cases if gathered.session else ()
    others = [one for one in gathered.entries if not any(one.case is case for case in cases)]
    hosts = {one.document["host"]["hostname"] for one in gathered.entries if one.document}
    # Where all ran on one machine and no scheduler gave nodes, what left nothing ran there too.
    alone = next(iter(hosts)) if len(hosts) == 1 and not any(case.node for case in cases) else None
    named: set[str] = set()
    for case in cases:
        entry = entries.get(id(case))
        if entry is not None and entry.path is not None and entry.problem is not None:
            told.problems.append(str(entry.problem))
        if not case.values and not (entry and entry.document and entry.document["series"]):
            told.bare[case.result] += 1
        for row in rows.of_case(common, case, entry, alone, samples):
            named.add(row["node"] or "")
            yield row
    for entry in others:
        if entry.path is not None and entry.problem is not None:
            told.problems.append(str(entry.problem))
        for row in rows.of_case(common, entry.case, entry, alone, samples):
            named.add(row["node"] or "")
            yield row
    if source.asked is not None:
        yield from _nodes(source.asked, named, common)


def _nodes(asked: AskedNodes, present: set[str], common: Row) -> Iterator[Row]:
    system, _, partition = (asked.partition or "").partition(":")
    for name, node in asked.nodes.items():
        yield {
            "session_start": rows.time(asked.started.timestamp()),
            **common,
            "kind": "node",
            "node": rows.text(name),
            "system": rows.text(system),
            "partition": rows.text(partition),
            "result": PRESENT if name in present else LOST,
            "reason": rows.text(_of_node(node)),
        }


def _of_node(node: AskedNode) -> str:
    state = f"{node.state}{f' ({node.because})' if node.because else ''}" if node.state else ""
    return "; ".join(one for one in (state, node.said or "") if one)
