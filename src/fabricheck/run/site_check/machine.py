"""The examined machine, and the findings about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fabricheck.site.clusters import ALLOCATION
from fabricheck.tools.runner import run, text_of

Status = Literal["ok", "missing", "not seen"]

_TIME_LIMIT_S = 60


@dataclass(frozen=True)
class Finding:
    """One sentence about one requirement; for a missing one it states what to do."""

    status: Status
    says: str


def ok(says: str) -> Finding:
    """Return that the requirement is met."""
    return Finding("ok", says)


def missing(says: str) -> Finding:
    """Return that the requirement is missing, and what to do."""
    return Finding("missing", says)


def unseen(what: str) -> Finding:
    """Return that it can be seen on a compute node only."""
    return Finding("not seen", f"{what}: not visible on a login node.")


@dataclass(frozen=True)
class Machine:
    """A node as this process sees it, or a tree in its place.

    root: the folder with ``proc``, ``sys`` and the site's software. environ: the variables. cores:
    those that this process may use, by the system's index. stated: whether this is a compute node,
    if the user says so.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cores: frozenset[int] = field(default_factory=lambda: frozenset(os.sched_getaffinity(0)))
    stated: bool | None = None

    @property
    def is_compute(self) -> bool:
        """Whether devices can be expected: as stated, inside a job, or where a driver has some."""
        return self._judged[0]

    @property
    def because(self) -> str:
        """Why this is considered a compute node or not, and which option overrides it."""
        return self._judged[1]

    @property
    def _judged(self) -> tuple[bool, str]:
        if self.stated is not None:
            return self.stated, f"as --{'compute' if self.stated else 'login'} states"
        if ALLOCATION in self.environ:
            return True, f"because {ALLOCATION} is set; --login overrides this"
        if self.has_devices:
            return True, "because a driver has devices; --login overrides this"
        return False, (
            f"because {ALLOCATION} is not set and no driver has devices; --compute overrides this"
        )

    @property
    def has_devices(self) -> bool:
        """Whether AMD's or NVIDIA's driver has a device."""
        ids = self.at("/sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id")
        gpus = self.at("/proc/driver/nvidia/gpus").glob("*")
        return any(text_of(path).strip() not in ("", "0") for path in ids) or any(gpus)

    def at(self, path: str | Path) -> Path:
        """Return the location of a system path."""
        return self.root / str(path).lstrip("/")

    def which(self, name: str) -> str | None:
        """Return the file of a command on the PATH."""
        return shutil.which(name, path=self.environ.get("PATH", ""))

    def run(self, *command: str) -> tuple[int | None, str]:
        """Run a command; return its exit code and its whole output.

        If it did not start, or not end in time, the code is None and the text states it.
        """
        try:
            ended = run(command, _TIME_LIMIT_S, self.environ)
        except OSError as error:
            return None, str(error.strerror)
        if ended.code is None:
            return None, f"it did not end within {_TIME_LIMIT_S} s"
        return ended.code, ended.out + ended.err
