"""The hours of load that an agreement asks for, by the records of soaks that `drift` judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fabricheck.core.errors import FabricheckError
from fabricheck.judge.acceptance.criteria import Answer
from fabricheck.judge.acceptance.doubts import Judge
from fabricheck.judge.acceptance.model import Change, Doubt, Hardware, Outcome, Reason
from fabricheck.judge.acceptance.sessions import Root
from fabricheck.judge.drift import judging
from fabricheck.judge.drift.model import Judged
from fabricheck.judge.verdict.rules import FAILED
from fabricheck.results import requested_nodes, soaks

#: The most reasons of a soak.
_MOST = 5


@dataclass(frozen=True)
class Soaked:
    """A soak of a node: where its record is, and what is judged of it."""

    node: str
    place: str
    judged: Judged

    @property
    def began(self) -> datetime:
        """When its first round began."""
        return self.judged.soak.rounds[0].began


def of_root(root: Root, nodes: Sequence[str]) -> tuple[list[Soaked], list[str]]:
    """Return the soaks of nodes in a results folder, as they began; and what cannot be read."""
    folders = [root.path, *sorted(root.path.glob(f"{requested_nodes.FOLDER}/*/*"))]
    there: list[Soaked] = []
    problems: list[str] = []
    for folder in folders:
        try:
            of_folder = soaks.read(folder)
        except FabricheckError as error:
            problems.append(str(error))
            continue
        for soak in of_folder:
            if soak.node is not None and soak.node in nodes:
                there.append(Soaked(soak.node, root.place(folder), judging.judge(soak)))
    return sorted(there, key=lambda each: each.began), problems


def answer(soaked: Soaked, hours: float, judge: Judge) -> Answer:
    """Return what a soak says of the hours that are wanted."""
    judged = soaked.judged
    reasons = tuple(
        Reason(rule=finding.rule, sentence=finding.note)
        for finding in judged.findings[:_MOST]
        if finding.status is not None
    )
    outcome: Outcome = "met"
    if judged.status in FAILED:
        outcome = "missed"
    elif judged.status != "PASS" or judged.hours < hours:
        outcome = "open"
    return Answer(outcome, judged.hours, hours, None, "h", tuple(_doubts(soaked, judge)), reasons)


def _doubts(soaked: Soaked, judge: Judge) -> list[Doubt]:
    """Return why a soak does not count, by its record: sessions in between may be deleted."""
    soak, agreement = soaked.judged.soak, judge.agreement
    doubts = []
    clocks = {each.clock for each in soak.rounds if each.clock is not None}
    if "simulated" in clocks and not agreement.simulated:
        doubts.append(Doubt(kind="simulated"))
    if "measured" in clocks and agreement.simulated:
        doubts.append(Doubt(kind="measured"))
    if soaked.began < agreement.begins:
        doubts.append(Doubt(kind="before", facts=[soaked.began.isoformat(timespec="seconds")]))
    commits = sorted({commit for each in soak.rounds for commit in each.commits})
    others = [commit for commit in commits if not judge.is_agreed(commit)]
    if others or not commits:
        doubts.append(Doubt(kind="commit", facts=others))
    now = judge.latest.get(soaked.node)
    changes = [] if now is None else _changes(soaked, now)
    if changes:
        facts = [f"{change.where}: {change.before} -> {change.after}" for change in changes]
        doubts.append(Doubt(kind="hardware", facts=facts[:_MOST]))
    return doubts


def _changes(soaked: Soaked, now: Hardware) -> list[Change]:
    """Return the devices whose serial is not what it was in a round."""
    serial_of = {device.pci_address: device.unique_id for device in now.devices}
    changes = {}
    for each in soaked.judged.soak.rounds:
        for device in each.devices.values():
            new = serial_of.get(device.pci_address)
            if new and device.unique_id and device.unique_id != new and device.pci_address:
                changes[device.pci_address] = Change(
                    what="serial", where=device.pci_address, before=device.unique_id, after=new
                )
    return [*changes.values()]
