"""The row of one check on one node, and the columns that rows of every kind have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fabricheck.core.vocabulary import Clock
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case


@dataclass(slots=True, kw_only=True, eq=False)
class RowOfAnyKind:
    """The columns that rows of every kind have."""

    session: Annotated[str | None, "UUID of ReFrame's session; null outside a session"] = None
    session_id: Annotated[str | None, "the session's name within its results folder: run-3"] = None
    session_start: Annotated[datetime | None, "when the session began, in UTC"] = None
    system: Annotated[str | None, "ReFrame's system"] = None
    partition: Annotated[str | None, "ReFrame's partition, without the system"] = None
    node: Annotated[str | None, "the node's name in the scheduler, else its host name"] = None
    result: Annotated[str | None, "of the check: pass, fail, ...; of a node: present, lost"] = None
    reason: Annotated[str | None, "why it failed, was skipped or is lost"] = None


@dataclass(slots=True, kw_only=True, eq=False)
class Check(RowOfAnyKind):
    """One check on one node; ``case`` and ``entry`` are its sources."""

    case: Case | None = None
    entry: Entry | None = None

    environment: Annotated[str | None, "ReFrame's environment"] = None
    hostname: Annotated[str | None, "the host name where the program ran"] = None
    check: Annotated[str | None, "the check; outside a session the document's folder"] = None
    repetition: Annotated[int | None, "the repetition of the check, from 0 (--repeat)"] = None
    failed_attempts: Annotated[int | None, "failed attempts before the one in the row"] = None
    phase: Annotated[str | None, "ReFrame's stage in which the check failed"] = None
    experiment: Annotated[str | None, "E1 to E17"] = None
    measured_at: Annotated[
        datetime | None, "when the run began, in UTC; null without a document"
    ] = None
    clock: Annotated[Clock | None, "measured or simulated; null without a document"] = None
    complete: Annotated[bool | None, "whether the run completed; null without a document"] = None
    status: Annotated[str | None, "how the run ended: good, wrong-data, time-limit, ..."] = None
    node_model: Annotated[str | None, "the node model that was simulated"] = None
    overlay: Annotated[str | None, "the overlay that changed the simulated node"] = None
    faults_injected: Annotated[str | None, "faults that were injected into the program"] = None
    program: Annotated[str | None, "the program or tool that measured"] = None
    program_version: Annotated[str | None, "its version"] = None
    commit: Annotated[str | None, "the commit it was built from"] = None
    runtime: Annotated[str | None, "rocm, cuda, host or sim"] = None
    runtime_version: Annotated[str | None, "version of HIP or CUDA, from the runtime"] = None
    rocm_version: Annotated[str | None, "version of ROCm, from its installation"] = None
    driver: Annotated[str | None, "the version of the driver"] = None
    mpi: Annotated[str | None, "name and version of the MPI library"] = None
    rccl: Annotated[str | None, "version of RCCL or NCCL"] = None

    @property
    def where(self) -> str:
        """``system:partition``; empty outside a session."""
        return self.case.where if self.case is not None else ""

    @property
    def scheduler_node(self) -> str | None:
        """The scheduler's name of the node, where it is recorded."""
        recorded = self.entry or self.case
        return recorded.node if recorded is not None else None

    @property
    def title(self) -> str:
        """ReFrame's name of the check; outside a session the document's path."""
        if self.case is not None:
            return self.case.name
        return str(self.entry.path) if self.entry is not None else ""

    @property
    def document(self) -> ResultDocument | None:
        """The document of the run, if it can be read."""
        return self.entry.document if self.entry is not None else None
