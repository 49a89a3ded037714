"""Why a session does not count: other clock, commit, programs, values, time or hardware."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fabricheck.core import checkout
from fabricheck.core.grouping import grouped
from fabricheck.judge.acceptance import hardware
from fabricheck.judge.acceptance.model import Doubt, Hardware
from fabricheck.judge.acceptance.sessions import Tried
from fabricheck.references.agreement import THIS_CHECKOUT, Agreement

#: A commit's hash in what git describes: alone, or behind a tag; changes are marked.
_HASH = re.compile(r"(?:.*-g)?([0-9a-f]{7,40})")

#: The clocks of two machines may differ by this, in seconds.
SLACK_S = 60.0

#: The most facts of a doubt: a session with other limits has hundreds.
_MOST = 6


@functools.cache
def is_of_this_checkout(commit: str) -> bool:
    """Whether programs of a commit were built from the sources of this checkout; git is asked."""
    return checkout.has_sources_of(commit)


def is_same_commit(agreed: str, recorded: str) -> bool:
    """Whether two commits are the same one, however short their hashes; a changed one is none."""
    first, second = _HASH.fullmatch(agreed), _HASH.fullmatch(recorded)
    if first is None or second is None:
        return False
    return first[1].startswith(second[1]) or second[1].startswith(first[1])


@dataclass(frozen=True)
class Judge:
    """What sessions are compared with.

    commits: those that take the place of this checkout's; None for this checkout. programs: by name
    the SHA-256 that all should have. latest: by node its hardware now. twice: by node the serials
    and host names that another node has, too. copies: by digest of samples the nodes that have it.
    """

    agreement: Agreement
    now: datetime
    commits: Sequence[str] | None
    programs: Mapping[str, str]
    latest: Mapping[str, Hardware]
    twice: Mapping[str, Sequence[str]]
    copies: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls,
        agreement: Agreement,
        sessions: Sequence[Tried],
        now: datetime,
        commits: Sequence[str] | None,
    ) -> Judge:
        """Return what the sessions of all nodes, in their order, are compared with."""
        latest = {
            session.node: session.facts.hardware
            for session in sessions
            if session.facts.hardware.devices
        }
        twice = {} if agreement.simulated else hardware.same_machines(latest)
        holders = grouped(
            (digest, session.node)
            for session in sessions
            for digest in session.facts.digests.values()
        )
        copies = {digest: names for digest, names in holders.items() if len({*names}) > 1}
        judge = cls(agreement, now, commits, agreement.programs, latest, twice, copies)
        if agreement.programs:
            return judge
        # Programs of another commit say nothing of what those of the agreed one are.
        agreed = [
            session
            for session in sessions
            if all(map(judge.is_agreed, session.verdict.versions.commits))
        ]
        return replace(judge, programs=_usual(agreed))

    def doubts(self, session: Tried) -> list[Doubt]:
        """Return why a session counts for no criterion; none if it may count."""
        return [
            *self._of_clock(session),
            *self._of_time(session),
            *self._of_software(session),
            *self._of_hardware(session),
            *self._of_numbers(session),
        ]

    def _of_clock(self, session: Tried) -> Iterator[Doubt]:
        verdict = session.verdict
        if verdict.simulated is not None and not self.agreement.simulated:
            yield Doubt(kind="simulated", facts=[verdict.simulated.label])
        if verdict.simulated is None and self.agreement.simulated:
            yield Doubt(kind="measured")
        if verdict.faults_injected and not self.agreement.simulated:
            yield Doubt(kind="faults-injected", facts=verdict.faults_injected[:_MOST])

    def _of_time(self, session: Tried) -> Iterator[Doubt]:
        if not session.began:
            return
        began = datetime.fromtimestamp(session.began, UTC)
        if began < self.agreement.begins:
            yield Doubt(kind="before", facts=[began.isoformat(timespec="seconds")])
        if session.began > self.now.timestamp() + SLACK_S:
            yield Doubt(kind="future", facts=[began.isoformat(timespec="seconds")])

    def _of_software(self, session: Tried) -> Iterator[Doubt]:
        if not session.verdict.sessions:
            return  # it left nothing
        commits = session.verdict.versions.commits
        others = [commit for commit in commits if not self.is_agreed(commit)]
        if others or not commits:
            yield Doubt(kind="commit", facts=others)
        record = session.record
        recorded = record.checkout if record is not None else None
        is_stated = self.agreement.commit != THIS_CHECKOUT
        if is_stated and recorded and not is_same_commit(self.agreement.commit, recorded):
            yield Doubt(kind="checkout", facts=[recorded])
        differ = [
            name
            for name, digest in session.programs.items()
            if self.programs.get(name, digest) != digest
        ]
        lacking = [name for name in self.agreement.programs if name not in session.programs]
        if differ or lacking:
            yield Doubt(kind="programs", facts=sorted({*differ, *lacking})[:_MOST])
        elif not session.programs:
            yield Doubt(kind="programs")

    def is_agreed(self, commit: str) -> bool:
        """Whether programs of a commit are those that were agreed."""
        if self.agreement.commit != THIS_CHECKOUT:
            return is_same_commit(self.agreement.commit, commit)
        if self.commits is not None:
            return commit in self.commits
        return is_of_this_checkout(commit)

    def _of_hardware(self, session: Tried) -> Iterator[Doubt]:
        before, now = session.facts.hardware, self.latest.get(session.node)
        changes = [] if now is None or not before.devices else hardware.changes(before, now)
        if changes:
            each = [f"{change.where}: {change.before} -> {change.after}" for change in changes]
            yield Doubt(kind="hardware", facts=each[:_MOST])
        if session.node in self.twice:
            yield Doubt(kind="same-machine", facts=[*self.twice[session.node]][:_MOST])
        others: set[str] = set()
        for digest in session.facts.digests.values():
            others |= {*self.copies.get(digest, ())}
        others.discard(session.node)
        if others:
            yield Doubt(kind="copied", facts=sorted(others)[:_MOST])

    def _of_numbers(self, session: Tried) -> Iterator[Doubt]:
        if session.facts.values_differ:
            yield Doubt(kind="values", facts=[*session.facts.values_differ][:_MOST])


def _usual(sessions: Sequence[Tried]) -> dict[str, str]:
    """Return by name of a program the digest that most nodes have."""
    digests = grouped(
        (name, (session.node, digest))
        for session in sessions
        for name, digest in session.programs.items()
    )
    usual = {}
    for name, pairs in digests.items():
        by_node = Counter(digest for _, digest in dict.fromkeys(pairs))
        usual[name] = by_node.most_common(1)[0][0]
    return usual
