"""What is judged of soaks: the records that text, JSON and page show."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricheck.core.vocabulary import EXIT_NODE_FAILED, EXIT_NODE_OPEN
from fabricheck.judge.verdict.rules import FAILED, STATUSES, NodeStatus, worst
from fabricheck.results.soaks import Soak


@dataclass(frozen=True)
class Finding:
    """What a soak has against a node, or tells of it.

    rule: of the table of rules; status: what it makes of the node, None where it is only told.
    member: the work, metric or counter; devices: those that it concerns. from_h, to_h: when, in
    hours since the soak began. change: relative to the start, the peers or the middle; low, high:
    its interval of 95 %. floor: the least change that counts. value, unit: how much it is now.
    offset_bytes, bits: of wrong data the place of the first word in the array, and the bits in
    which it differs. note: the limit's source, or the verdict's own sentence. live: whether it may
    drain the node. next_step: that of its rule; empty where it is only told.
    """

    rule: str
    status: NodeStatus | None
    member: str
    devices: tuple[int, ...] = ()
    from_h: float = 0.0
    to_h: float = 0.0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    value: float | None = None
    unit: str = ""
    offset_bytes: int | None = None
    bits: tuple[int, ...] = ()
    note: str = ""
    live: bool = False
    next_step: str = ""


@dataclass(frozen=True)
class Trend:
    """How a member changed over the rounds: relative to its start, over the whole time.

    spread: the median distance of a round from the line, relative to the start.
    """

    member: str
    rounds: int
    start: float
    unit: str
    change: float
    low: float
    high: float
    spread: float
    floor: float


@dataclass(frozen=True)
class Counter:
    """A counter of errors of a device: how much it grew over the soak.

    per_hour, per_tb: of load, and of 1e12 bytes that the device moved.
    """

    device: int
    what: str
    grew: int
    per_hour: float
    per_tb: float | None
    last: int


@dataclass(frozen=True)
class Judged:
    """What is judged of a soak; `--json` is this.

    status: of the node. hours, wanted_h: that have passed, and that were to.
    """

    name: str
    node: str | None
    status: NodeStatus
    hours: float
    wanted_h: float
    rounds: int
    ended: str | None
    clock: str | None
    cpu_cores: float | None
    findings: tuple[Finding, ...]
    trends: tuple[Trend, ...]
    counters: tuple[Counter, ...]
    soak: Soak = field(repr=False)

    @property
    def live(self) -> bool:
        """Whether a finding may drain the node."""
        return any(finding.live for finding in self.findings)

    @property
    def worst_change(self) -> Trend | None:
        """The trend that lost most, of those under load."""
        lost = [trend for trend in self.trends if trend.change < 0]
        return min(lost, key=lambda trend: trend.change, default=None)


@dataclass(frozen=True)
class Behind:
    """A node that is behind others under equal load: the member, and how far in parts."""

    node: str
    member: str
    change: float
    floor: float
    nodes: int


@dataclass(frozen=True)
class Soaks:
    """The soaks of one node or of several; `--json` is this."""

    form: str
    soaks: tuple[Judged, ...]
    behind: tuple[Behind, ...]

    @property
    def worst_first(self) -> list[Judged]:
        """The soaks, those of the worst nodes first."""
        return sorted(self.soaks, key=lambda judged: STATUSES.index(judged.status))

    @property
    def status(self) -> NodeStatus:
        """The worst of the nodes."""
        return worst(each.status for each in self.soaks)

    @property
    def exit_code(self) -> int:
        """As of a verdict: 12 if a node failed, 13 if one is unstable or incomplete."""
        if any(each.status in FAILED for each in self.soaks):
            return EXIT_NODE_FAILED
        if self.behind or any(each.status != "PASS" for each in self.soaks):
            return EXIT_NODE_OPEN
        return 0
