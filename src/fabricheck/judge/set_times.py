"""The number of checks of a set on a partition, and the times of its sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from fabricheck.core.grouping import grouped
from fabricheck.results.document import read_head
from fabricheck.results.session import PASSED, Case, Session
from fabricheck.site import sets

if TYPE_CHECKING:
    from fabricheck.references.listing import CheckMetrics, ListedCheck

#: Results of a case that ran and finished.
_ENDED = PASSED | {"fail", "xpass"}


@dataclass(frozen=True)
class Took:
    """A session that ran a whole set on one node.

    seconds: the real time of its jobs in sequence. simulated_s: for a simulated node, the simulated
    clock of the documents that have it, else None. checks: the checks that ran. failed: those that
    did not pass. over: whether it took longer than the set's limit.
    """

    session: str
    date: datetime
    name: str
    where: str
    seconds: float
    checks: int
    failed: int
    simulated_s: float | None
    over: bool

    @property
    def sentence(self) -> str:
        """Return the sentence on a session that took longer than the limit."""
        return (
            f"The set {self.name} took {self.seconds:.1f} s on {self.where}; its limit is "
            f"{sets.known()[self.name].limit_s:g} s on a node."
        )


@dataclass(frozen=True)
class Sets:
    """The checks of a system, and the sets that they make with their times."""

    checks: tuple[ListedCheck, ...]
    sets: tuple[SetTimes, ...]


@dataclass(frozen=True)
class SetTimes:
    """A set on a partition: its checks, each of which is a job or a step.

    limits_s: the sum of their time limits; limit_s: what the set may take on a node, if that is
    stated. took: the sessions that ran it, the latest first.
    """

    partition: str
    set: str
    checks: tuple[str, ...]
    limits_s: float
    limit_s: float | None
    took: tuple[Took, ...]


def times(asked: Iterable[CheckMetrics], took: Iterable[Took]) -> list[SetTimes]:
    """Return the sets of each partition, from the attributes of the checks."""
    latest = sorted(took, key=lambda time: time.date, reverse=True)
    times_of_sets = []
    for partition, of_partition in grouped((check.partition, check) for check in asked).items():
        for name, about in sets.known().items():
            checks = [check for check in of_partition if name in check.tags]
            if checks or not about.apart:
                times = SetTimes(
                    partition,
                    name,
                    tuple(sorted({check.check for check in checks})),
                    sum(check.limit_s for check in checks),
                    about.limit_s,
                    tuple(time for time in latest if (time.where, time.name) == (partition, name)),
                )
                times_of_sets.append(times)
    return times_of_sets


def took(session: Session) -> Iterator[Took]:
    """Yield the time of a session on each of its partitions.

    Sessions are skipped that ran no whole set, were stopped, repeated a check, or had jobs that
    waited in a queue.
    """
    name = session.choice.set
    if name is None:
        return
    for where, cases in grouped((case.where, case) for case in session.cases).items():
        ran = [case for case in cases if not case.skipped]
        checks = {(case.name.split()[0], case.environ) for case in ran}
        spans = [
            case.ended - case.submitted
            for case in ran
            if case.ended is not None and case.submitted is not None
            if case.node is None and not case.earlier and case.result in _ENDED
        ]
        if ran and len(checks) == len(spans) == len(ran):
            limit_s = sets.known()[name].limit_s
            yield Took(
                session=session.id,
                date=session.date,
                name=name,
                where=where,
                seconds=sum(spans),
                checks=len(ran),
                failed=sum(not case.passed for case in ran),
                simulated_s=_simulated(ran),
                over=limit_s is not None and sum(spans) > limit_s,
            )


def _simulated(cases: Iterable[Case]) -> float | None:
    heads = [read_head(case.document_path) for case in cases if case.document_path is not None]
    seconds_of_heads = [head.simulated_s for head in heads if head is not None]
    known = [seconds for seconds in seconds_of_heads if seconds is not None]
    return sum(known) if known else None
