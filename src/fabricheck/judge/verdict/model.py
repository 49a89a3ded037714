"""The documents of a verdict: their types, shown in docs/result.md, and their files.

The schema in ``verdict-4.schema.json`` is made of these types by ``ci/result_schema.py``. A verdict
has a file for each node, and one for all nodes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field

from fabricheck.core import models
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.forms import FileName
from fabricheck.core.grouping import grouped
from fabricheck.core.models import StrictModel
from fabricheck.core.show import listed
from fabricheck.core.text import printable_json, read_text
from fabricheck.core.vocabulary import Clock
from fabricheck.core.whole_files import write_all
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict.rules import STATUSES, Evidence, NodeStatus, worst
from fabricheck.results import archive
from fabricheck.results.requested_nodes import Moment

if TYPE_CHECKING:
    from fabricheck.results.reading import Results

#: The folder of verdicts in a results folder, or in the folder of a job over many nodes.
VERDICTS = "verdicts"

#: The file of all nodes.
WHOLE = "verdict.json"

#: Whether the GPUs of a node were measured; none: nothing shows that it has some.
Gpus = Literal["measured", "not-measured", "none"]


class Reason(StrictModel):
    """Why a node's verdict is not PASS."""

    status: NodeStatus
    """What this alone would make of the node."""
    rule: str
    """The rule, by its name in docs/result.md."""
    sentence: str
    """What happened, with pair, devices, PCI addresses and node where they are known."""
    check: str | None
    """The check; null for the node as a whole."""
    metric: str | None
    """The metric that missed its reference; null otherwise."""
    partition: str | None = None
    """The partition of the check; null for the node as a whole."""
    component: str | None = None
    """The part that it names, such as ``device 6 (0000:df:00.0)``; null where it names none."""
    next_step: str = ""
    """What to do next, by the rule; empty in documents from before it was recorded."""
    stands_for: int = 1
    """The findings that it tells of: more than one where it says how many are not listed."""


class Device(StrictModel):
    """A device of the node, as its runtime presents it."""

    index: int
    name: str
    arch: str
    pci_address: str | None
    unique_id: str | None


class Versions(StrictModel):
    """The versions behind the results; several of one kind if they differ."""

    fabricheck: list[str]
    """Versions of the programs."""
    commits: list[str]
    """Commits that the programs are of."""
    kernel: list[str] = []
    """The host's; empty in documents from before it was recorded, as vbios and firmware are."""
    runtime: list[str]
    """Of HIP or CUDA."""
    rocm: list[str] = []
    """Of the ROCm that HIP is a part of; empty where its installation does not tell it."""
    driver: list[str]
    vbios: list[str] = []
    firmware: dict[str, list[str]] = {}
    """Of the devices, by its name."""
    mpi: list[str]
    rccl: list[str]
    reframe: list[str]
    spack_locks: dict[str, str]
    """SHA-256 of each recorded spack.lock, by the name of its file."""


Doubt = Literal[
    "simulated",
    "nothing-measured",
    "injected-faults",
    "not-scheduled",
    "odd-name",
    "provisional",
    "failed-once",
    "unknown-software",
    "no-contrast",
    "many-alike",
    "all-alike",
]


class Drain(StrictModel):
    """Whether to drain a failed node: what speaks for it and what against."""

    live: bool
    """Whether the hardware is at fault by the evidence, without a doubt."""
    evidence: Evidence | None = None
    """`positive` or `contrast` (the table of rules says which); null where there is none."""
    rule: str | None = None
    """The rule of the evidence, or of what comes nearest to it."""
    check: str | None = None
    """Its check; null for the node as a whole."""
    doubts: list[Doubt]
    """What is missing, or speaks against it; empty where it is live."""
    arguments: list[str] = []
    """The command that drains the node, as the arguments of a process that no shell reads; empty
    unless it is live."""


class AllAlike(StrictModel):
    """A check that all nodes that ran it with the same software failed by one rule."""

    check: str
    rule: str
    nodes: int
    """How many ran it with this software, this one included."""
    drivers: list[str]
    """The versions of their driver; empty where they are unknown."""


class SimulatedNode(StrictModel):
    """The node that a partition simulates."""

    partition: str
    node_model: str | None
    """By its name; null where no document states it."""
    overlay: str | None
    """The name of what changes the node model; null where nothing does."""

    @property
    def label(self) -> str:
        """The partition and, where they are known, node model and overlay."""
        changed = f", changed by {self.overlay}" if self.overlay else ""
        return (
            f"{self.partition} ({self.node_model}{changed})" if self.node_model else self.partition
        )


class RanIn(StrictModel):
    """A session that the verdict covers."""

    id: str
    """Its id, or the name of its folders where it has no run report."""
    uuid: str | None
    """ReFrame's; null without a run report."""
    results: str
    """The results folder."""


class SkippedCheck(StrictModel):
    """A check that did not run."""

    check: str
    why: str


class Checks(StrictModel):
    """The checks of a node: each counts once, however often it ran."""

    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    """Checks with a reason; incomplete ones too."""
    skipped: list[SkippedCheck]
    missing: list[str]


class _Status(StrictModel):
    """The status of one node, what it rests on, and what it does not cover."""

    node: str
    """As the scheduler names it; the machine's own name where there is no scheduler. The host list
    of the nodes that checks between nodes measured."""
    scheduled: bool
    """Whether a scheduler knows the node by that name."""
    reached_by: str = "slurm"
    """How the node is reached: by slurm, flux, pbs or ssh, whose command drains it."""
    clock: Clock | None
    """Whether its values were measured or simulated; null where nothing shows that anything ran.
    Only a measured node is drained."""
    simulated: SimulatedNode | None
    """The simulated node; null where nothing is simulated."""
    faults_injected: list[str]
    """Faults that were injected to see them found; empty in a real measurement."""
    status: NodeStatus
    gpus: Gpus = "none"
    """Whether its GPUs were measured: `not-measured` where the site, the allocation or PCI shows
    some, `none` where nothing does, and of a simulated node."""
    accepted: bool = False
    """Whether the node is to be accepted: it passed, and its GPUs were measured."""
    uncalibrated: list[str] = []
    """The partitions that measured and have no calibration of their own."""
    provisional: list[str] = []
    """Those of them on whose limits the status rests."""
    set: str
    """What was chosen: smoke, node, full, other tags, or names of checks."""
    duration_s: float | None = Field(ge=0)
    """From the first start of a program on the node to the last end, over all sessions added; of
    this machine's clock, also where a node is simulated."""
    reasons: list[Reason]
    """The worst first; empty for PASS."""
    caveats: list[str]
    """What the status does not cover."""
    settings: list[str] = []
    """Settings of the job that can explain a missed limit: fewer cores than the node has, and
    variables that neither a check nor a site file sets."""
    diagnosis: Diagnosis | None = None
    """What explains the misses; null where there is none."""
    checks: Checks
    drain: Drain | None = None
    """What speaks for draining the node; null where it did not fail, and of several nodes, which do
    not show whose fault it is. Scripts go by `live`."""
    all_alike: list[AllAlike] = []
    """Checks that all nodes failed as this one did: look at software and settings first."""

    @property
    def label(self) -> str:
        """The status as printed."""
        return status_label(self.status, self.provisional)

    @property
    def badge(self) -> str:
        """The status as coloured: a PASS that accepts no node is a demonstration."""
        accepts_nothing = self.status == "PASS" and not self.accepted
        return "demonstration" if accepts_nothing else self.status.lower()


Status = TypeVar("Status", bound=_Status)


def by_label(statuses: Iterable[Status]) -> list[list[Status]]:
    """Group statuses by how they are printed: what was measured first, and of each the worst."""
    ordered = sorted(
        statuses,
        key=lambda each: (
            each.simulated is not None,
            STATUSES.index(each.status),
            bool(each.provisional),
        ),
    )
    groups = grouped(((status.simulated is not None, status.label), status) for status in ordered)
    return list(groups.values())


class NodeVerdict(_Status):
    """The verdict on one node."""

    form: Literal["fabricheck-node-verdict-4"] = "fabricheck-node-verdict-4"
    partitions: list[str]
    start: Moment | None
    devices: list[Device]
    versions: Versions
    sessions: list[RanIn]

    def in_partition(self, where: str) -> NodeVerdict:
        """Return the verdict without what is of the node's other partitions only."""
        reasons = [reason for reason in self.reasons if reason.partition in (None, where)]
        here = [where] if where and self.simulated is None else []
        return self.model_copy(
            update={
                "status": worst(reason.status for reason in reasons),
                "provisional": provisional_partitions(reasons, here, self.uncalibrated),
                "reasons": reasons,
            }
        )


class Row(_Status):
    """One node in the verdict on all."""

    file: FileName
    """The file of the node's own document, beside this one."""


class Verdict(StrictModel):
    """The verdict on all nodes of a session."""

    form: Literal["fabricheck-verdict-4"] = "fabricheck-verdict-4"
    of: str
    """The session, or the job over many nodes."""
    made: Moment
    by: str
    """The version of fabricheck that made the verdict."""
    exit_code: Literal[0, 12, 13]
    counts: dict[NodeStatus, int]
    """By status how many nodes have it."""
    nodes: list[Row]
    """The worst first."""
    networks: list[Row] = []
    """What joins nodes, by the host list of those that checks between nodes measured."""
    notes: list[str]
    """What else there is to know, in sentences."""


Document = Annotated[NodeVerdict | Verdict, Field(discriminator="form")]


#: The statuses that depend on limits. The other statuses hold, or prove nothing, whatever the
#: limits are.
_ON_LIMITS = ("PASS", "PERF-FAIL")


def provisional_partitions(
    reasons: Collection[Reason], partitions: Collection[str], uncalibrated: Collection[str]
) -> list[str]:
    """Return the partitions without their own calibration on whose limits a status depends.

    Returns none if a limit of a calibrated partition was missed, or a member is far behind its
    peers (`peers`), because that is enough proof.

    :param reasons: those of the status.
    :param partitions: the partitions that measured, by hardware.
    :param uncalibrated: the partitions without a calibration of their own.
    """
    status = worst(reason.status for reason in reasons)
    if status not in _ON_LIMITS or any(reason.rule == "peers" for reason in reasons):
        return []
    missed = {reason.partition for reason in reasons if reason.status == "PERF-FAIL"}
    resting = [each for each in partitions if status != "PERF-FAIL" or each in missed]
    provisional = [partition for partition in resting if partition in uncalibrated]
    return [] if status == "PERF-FAIL" and len(provisional) < len(resting) else provisional


def status_label(status: NodeStatus, provisional: object) -> str:
    """Return a status as printed: ``provisional PASS``."""
    return f"provisional {status}" if provisional else status


def provisional_note(partitions: Iterable[str]) -> str:
    """Return the sentence on partitions without a calibration; empty if there are none."""
    names = sorted(set(partitions))
    if not names:
        return ""
    has = "has no calibration of its own" if len(names) == 1 else "have no calibration of their own"
    return (
        f"{listed(names)} {has}: a status that depends on its limits is provisional and "
        "drains no node. fabricheck limits calibrate makes a calibration from repeated sessions."
    )


def folder(results: Results) -> Path:
    """Return the default folder of a verdict.

    For several sources it is the folder of the last. For an archive it lies beside the archive.
    """
    last = results.parts[-1] if results.parts else results
    if last.archive is not None:
        return last.archive.parent / VERDICTS / archive.stem(last.archive)
    return last.home / VERDICTS if last.job is not None else last.home / VERDICTS / last.name


def file_names(verdicts: Sequence[NodeVerdict]) -> list[str]:
    """Return a distinct file name for each node: its own name where that is safe."""
    names: list[str] = []
    for verdict in verdicts:
        where = f".simulated.{verdict.simulated.partition}" if verdict.simulated else ""
        plain = f"{verdict.node}{where}"
        safe = (
            re.sub(r"[^A-Za-z0-9._-]+", "-", plain.replace(":", "-"))[:100].lstrip(".-_") or "node"
        )
        if safe != plain.replace(":", "-") or f"{safe}.json" in (*names, WHOLE):
            safe += f"-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
        names.append(f"{safe}.json")
    return names


def write_new(base: Path, verdicts: Sequence[NodeVerdict], total: Verdict) -> Path:
    """Write all documents where no other verdict is: into a folder, else into its ``2``, ``3``, ...

    An equal verdict, whenever it was made, is not written again.

    :returns: the document of all nodes.
    :raises NotFoundError: when they cannot be written.
    """
    place, number, made = base, 1, as_json(total)
    while (place / WHOLE).exists():
        # It may differ in when and by which version it was made.
        if {**_earlier(place), "made": made["made"], "by": made["by"]} == made:
            return place / WHOLE
        number += 1
        place = base / str(number)
    return write(place, verdicts, total)


def _earlier(folder: Path) -> dict[str, Any]:
    """Return the content of ``verdict.json`` in a folder; empty where it cannot be read."""
    try:
        content = models.parse_json(read_text(folder / WHOLE), folder / WHOLE)
    except (NotFoundError, InvalidInputError):
        return {}
    return content if isinstance(content, dict) else {}


def write(folder: Path, verdicts: Sequence[NodeVerdict], total: Verdict) -> Path:
    """Write all documents, or none; documents of an earlier verdict on other nodes are removed.

    :returns: the document of all nodes.
    :raises NotFoundError: when they cannot be written.
    """
    by_subject = {(verdict.node, verdict.simulated): verdict for verdict in verdicts}
    texts = {
        folder / row.file: _text(by_subject[row.node, row.simulated])
        for row in (*total.nodes, *total.networks)
    } | {folder / WHOLE: _text(total)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{folder} cannot be created ({error.strerror}).") from None
    before = _files_of(folder)
    write_all(texts)
    for name in before - {path.name for path in texts}:
        (folder / name).unlink(missing_ok=True)
    return folder / WHOLE


def _files_of(folder: Path) -> set[str]:
    """Return the files of nodes that an earlier verdict in a folder lists, in any version."""
    earlier = _earlier(folder)
    ours = str(earlier.get("form")).startswith("fabricheck-verdict-")
    lists = [earlier.get("nodes"), earlier.get("networks")] if ours else []
    # A list that was changed by hand may have anything.
    rows = chain.from_iterable(rows for rows in lists if isinstance(rows, list))
    names = [row.get("file") for row in rows if isinstance(row, dict)]
    return {
        name
        for name in names
        if isinstance(name, str) and Path(name).name == name and (folder / name).is_file()
    }


def _text(document: NodeVerdict | Verdict) -> str:
    return printable_json(as_json(document)) + "\n"


def as_json(document: NodeVerdict | Verdict) -> Any:
    """Return a document as JSON types, its form first."""
    return {"form": document.form} | document.model_dump(mode="json")
