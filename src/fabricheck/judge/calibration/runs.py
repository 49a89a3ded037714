"""Values of sessions by node, with letters for the nodes and numbers for the campaigns.

A campaign is a sequence of sessions on one node without a longer pause. Documents do not record
when a machine was started, so a restart appears as a pause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.core.show import first_of
from fabricheck.core.vocabulary import Clock
from fabricheck.judge.calibration.values import Value
from fabricheck.results.session import Session

#: The parts of a document that are kept. Samples are dropped: those of some hundred nodes would
#: fill the memory.
KEPT = ("clock", "program", "versions", "devices")


@dataclass(frozen=True)
class Unused:
    """A case without values. `sentence` may name files and nodes; `reason` does not."""

    check: str
    reason: str
    sentence: str


@dataclass
class Run:
    """The results of one session on one node of one partition.

    node: its name in the scheduler, else the hostname; records do not contain it. overlay: the
    change to a simulated node. group: the node's letter in the record. number: counts from 1 in
    order of time. devices: the unique ids. values: by check and metric. documents: the parts in
    `KEPT` of each document.
    """

    session: Session
    node: str
    overlay: str | None = None
    number: int = 0
    campaign: int = 0
    group: str = ""
    devices: frozenset[str] = frozenset()
    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    unused: list[Unused] = field(default_factory=list)
    documents: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        """``measured`` or ``simulated``; all documents of a partition have the same clock."""
        clock: Clock = self.documents[0]["clock"] if self.documents else "measured"
        return clock

    @property
    def named(self) -> str:
        """The name of the node in sentences."""
        return f"{self.node} with overlay {self.overlay}" if self.overlay else self.node


def leave_out(runs: Sequence[Run], without: AbstractSet[str]) -> None:
    """Remove the values of nodes; the record lists these nodes as left out.

    :raises UsageError: for a node that no session has.
    """
    unknown = sorted(without - {run.node for run in runs})
    if unknown:
        known = sorted({run.node for run in runs})
        raise UsageError(f"No session has {', '.join(unknown)}; the nodes are {', '.join(known)}.")
    for run in runs:
        if run.node in without and run.values:
            said = f"{run.session.id}: node {run.node} was left out."
            run.unused += [Unused(check, "left out", said) for check in run.values]
            run.values = {}


def refuse_impossible(runs: Sequence[Run]) -> None:
    """Refuse physically impossible values.

    The whole session is refused: an error in a clock or a count affects its other values too,
    without a sign.

    :raises InvalidInputError: with a sentence for each value.
    """
    sentences = []
    for run in runs:
        for check, metrics in run.values.items():
            for metric, one in metrics.items():
                if one.impossible:
                    sentences.append(
                        f"{check} {metric}: session {run.session.id} ({run.session.uuid}) on "
                        f"{run.named} has {one.value:g} {one.unit}, {one.impossible}."
                    )
    if sentences:
        raise InvalidInputError(
            f"{len(sentences)} value(s) are physically impossible, so their measurement is "
            "wrong: leave out that node (--without) or session (name the reports of the "
            f"others). {' '.join(first_of(sentences))}"
        )


def name_nodes(runs: Sequence[Run]) -> None:
    """Name nodes A, B ... in order of time: by devices, else by name and overlay.

    A session that used some of the devices of a node belongs to that node.
    """
    sets: list[tuple[frozenset[str], set[str]]] = []
    for run in runs:
        for index, (devices, names) in enumerate(sets):
            told = devices and run.devices
            if same_devices(devices, run.devices) if told else run.named in names:
                sets[index] = (devices | run.devices, names | {run.named})
                run.group = letters(index)
                break
        else:
            run.group = letters(len(sets))
            sets.append((run.devices, {run.named}))


def letters(index: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    head, last = divmod(index, 26)
    return (letters(head - 1) if head else "") + chr(ord("A") + last)


def number_campaigns(runs: Sequence[Run], pause: float) -> None:
    """Number the sessions and campaigns. A new campaign starts on another node or after a pause."""
    before: dict[str, Run] = {}
    campaigns = 0
    for index, run in enumerate(runs, start=1):
        run.number = index
        last = before.get(run.group)
        if last is None or run.session.start - last.session.end > 60 * pause:
            campaigns += 1
            run.campaign = campaigns
        else:
            run.campaign = last.campaign
        before[run.group] = run


def same_devices(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sessions used the same devices, or one of them a part of the other's devices."""
    return one <= other or other <= one


def missing(runs: Sequence[Run]) -> Mapping[tuple[str, str], list[int]]:
    """Return, by check and metric, the numbers of the sessions that lack it."""
    runs = [run for run in runs if not any(one.reason == "left out" for one in run.unused)]
    every = {
        (check, metric) for run in runs for check in run.values for metric in run.values[check]
    }
    lacking = {
        (check, metric): [run.number for run in runs if metric not in run.values.get(check, {})]
        for check, metric in sorted(every)
    }
    return {key: numbers for key, numbers in lacking.items() if numbers}
