"""The acceptance record: criteria by nodes, what they rest on, and what does not count.

`fabricheck acceptance status --json` is this object, `close` writes it, `verify` makes it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from fabricheck.core.models import StrictModel
from fabricheck.core.nodelists import folded
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.judge.verdict.model import SkippedCheck
from fabricheck.judge.verdict.rules import NodeStatus
from fabricheck.references.agreement import Agreement, Waiver
from fabricheck.results.requested_nodes import Moment

#: What a node has of a criterion. `open`: no session counts, or the last one that counts is
#: UNSTABLE or INCOMPLETE.
Outcome = Literal["missed", "open", "waived", "met"]

#: All outcomes, in the order in which they are shown.
OUTCOMES: tuple[Outcome, ...] = ("missed", "open", "waived", "met")

#: Why a session does not count, for all criteria or for one. The facts of a doubt are names,
#: numbers and digests; `report/acceptance` makes the sentences.
DoubtKind = Literal[
    "simulated",
    "measured",
    "faults-injected",
    "commit",
    "checkout",
    "programs",
    "before",
    "future",
    "hardware",
    "same-machine",
    "copied",
    "limits",
    "values",
    "provisional",
    "no-gpu",
    "no-peak",
    "not-calibrated",
]


class Doubt(StrictModel):
    """Why a session does not count. facts: what differs, as words."""

    kind: DoubtKind
    facts: list[str] = []


class Change(StrictModel):
    """What of a node's hardware is not what it was.

    where: a PCI address, the number of a device without one, or the name of a NIC.
    """

    what: Literal["serial", "vbios", "firmware", "devices", "nic", "nic-firmware"]
    where: str
    before: str
    after: str


class DevicePart(StrictModel):
    """A device: what tells it from another one; None where no source tells it."""

    name: str
    pci_address: str | None
    unique_id: str | None
    vbios: str | None = None
    firmware: dict[str, str] = {}


class NicPart(StrictModel):
    """A NIC of a node, likewise."""

    name: str
    pci_address: str | None
    address: str | None
    firmware: str | None


class Hardware(StrictModel):
    """The devices and NICs of a node, as the documents of a session show them."""

    hostnames: list[str] = []
    devices: list[DevicePart] = []
    nics: list[NicPart] = []


class Attempt(StrictModel):
    """A session of a node, whether or not it counts.

    place: the results folder by its number and the path in it; with the session's id it names the
    session. set: that ran as a whole; None for a part of one. status, provisional: of the verdict.
    failed_before: checks that failed and were run again within the session. accepts: deviations
    that the site file accepts. clock_back_s: how much earlier its clock was than that of what
    began before.
    """

    id: str
    place: str
    began: Moment | None
    set: str | None
    status: NodeStatus
    provisional: bool
    failed_before: int
    commits: list[str]
    checkout: str | None
    programs: dict[str, str]
    accepts: list[str]
    clock_back_s: float
    doubts: list[Doubt]

    @property
    def counts(self) -> bool:
        """Whether it counts, as far as no single criterion asks for more."""
        return not self.doubts


class Reason(StrictModel):
    """What a verdict has against a node, or a check: its rule, and its own sentence."""

    rule: str
    sentence: str


class Cell(StrictModel):
    """What a node has of a criterion.

    value, least, most, unit: of a metric, and of hours of soak. session, place: that decided it;
    None where none did. tried: the sessions that answer the criterion; missed: those of them that
    did not meet it, whether or not they count. doubts: why the last one does not count, where none
    does. reasons: why the session that decided it did not pass. first_missed: whether the first one
    that counted missed it. waiver, waiver_ended: what the agreement has for it, whatever came.
    """

    criterion: str
    outcome: Outcome
    value: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = ""
    session: str | None = None
    place: str | None = None
    tried: int = 0
    missed: int = 0
    doubts: list[Doubt] = []
    reasons: list[Reason] = []
    first_missed: bool = False
    waiver: Waiver | None = None
    waiver_ended: bool = False


class NodeRow(StrictModel):
    """A node: its cells, its sessions in the order in which they began, its hardware now."""

    node: str
    cells: list[Cell]
    attempts: list[Attempt]
    hardware: Hardware
    changes: list[Change] = []
    skipped: list[SkippedCheck] = []
    caveats: list[str] = []

    @property
    def outcome(self) -> Outcome:
        """The worst of its cells."""
        return min((cell.outcome for cell in self.cells), key=OUTCOMES.index, default="open")

    @property
    def failed(self) -> int:
        """The sessions that did not pass."""
        return sum(attempt.status != "PASS" for attempt in self.attempts)

    @property
    def not_counted(self) -> int:
        """The sessions that do not count for any criterion."""
        return sum(not attempt.counts for attempt in self.attempts)

    @property
    def failed_at_first(self) -> bool:
        """Whether the first session that counts missed a criterion that is not waived."""
        return any(cell.first_missed for cell in self.cells)


class Next(StrictModel):
    """What to run next: a set on nodes, or a soak of some hours."""

    nodes: list[str]
    set: str | None = None
    hours: float | None = None


class Folder(StrictModel):
    """A results folder: where it was, and how many sessions began there and left something.

    missing_marks: the numbers of marks that are gone: sessions that somebody removed.
    """

    path: str
    sessions: int
    marks: int
    missing_marks: list[int] = []


class Environment(StrictModel):
    """An environment that sessions ran in: what built its programs, and their SHA-256.

    folder: of the programs, in the checkout where they are there.
    """

    name: str
    folder: str | None = None
    spack_environment: str | None
    build_command: str | None
    locks: list[str]
    programs: dict[str, str]


class AcceptanceRecord(StrictModel):
    """The acceptance of a machine at one time.

    by: the version of fabricheck. checkout: its commit. agreement_sha256: of the file. commits:
    those of the programs of all sessions that count. limits_sha256: of the reference files by name.
    commands: those of the sessions that count, each once.
    """

    form: Literal["fabricheck-acceptance-record-1"] = "fabricheck-acceptance-record-1"
    made: Moment
    by: str
    checkout: str
    agreement: Agreement
    agreement_sha256: str
    commits: list[str]
    nodes: list[NodeRow]
    folders: list[Folder]
    environments: list[Environment] = []
    commands: list[str] = []
    limits_sha256: dict[str, str] = Field(default_factory=dict)
    next: Next | None = None
    unreadable: list[str] = []

    def with_outcome(self, *outcomes: Outcome) -> list[NodeRow]:
        """Return the nodes with some outcome."""
        return [row for row in self.nodes if row.outcome in outcomes]

    @property
    def failed_at_first(self) -> list[str]:
        """The nodes that failed at first."""
        return [row.node for row in self.nodes if row.failed_at_first]

    @property
    def too_many_failed(self) -> bool:
        """Whether more nodes failed at first than may."""
        return len(self.failed_at_first) > self.agreement.may_fail_at_first

    @property
    def accepted(self) -> bool:
        """Whether each node has met each criterion, or has a waiver, and few enough failed."""
        return not self.with_outcome("missed", "open") and not self.too_many_failed

    @property
    def exit_code(self) -> int:
        """0 if it is accepted, 12 if a node or the number of nodes failed, 13 if some are open."""
        if self.accepted:
            return EXIT_GOOD
        if self.too_many_failed or self.with_outcome("missed"):
            return EXIT_NODE_FAILED
        return EXIT_NODE_OPEN


def hosts(rows: Iterable[NodeRow]) -> str:
    """Return the nodes of rows as a host list."""
    return folded(row.node for row in rows)
