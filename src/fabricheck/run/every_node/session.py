"""The session of a node of an allocation.

A session is started on its node by a process here, and starts steps of the job itself. Processes
and memory limit how many such processes there may be where the command runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fabricheck.core import processes
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.run import sessions
from fabricheck.schedulers.row import Scheduler
from fabricheck.tools.runner import text_of

#: The log of a session, in the folder of its node.
LOG = "session.log"

#: ReFrame's line when all check files are read and the first check is about to start.
_BEGINS = b"[==========] Running "


def start(
    scheduler: Scheduler, folder: Path, command: Sequence[str], **variables: str
) -> subprocess.Popen[bytes]:
    """Start a session of a job.

    :param scheduler: of the allocation.
    :param folder: its results folder, which is made; its log is there.
    :param variables: further variables of its environment.
    :raises OSError: when it cannot be started, or its log cannot be written.
    """
    folder.mkdir(parents=True)
    environment = {**os.environ, ENV_RESULTS: str(folder), **variables}
    scheduler.make_of_session(environment)
    return sessions.start(command, environment, folder / LOG)


class NodeSession:
    """A session that was started on a node.

    node: its name. folder: its results. began: the start on the monotonic clock, in s. stopped: why
    it was told to end, in a sentence; None if it ends by itself. process: the one that started it.
    """

    def __init__(
        self, scheduler: Scheduler, node: str, folder: Path, arguments: Sequence[str]
    ) -> None:
        """Start the session.

        :param scheduler: of the allocation.
        :param folder: its results folder, which is made.
        :param arguments: the command.
        :raises OSError: as `start`.
        """
        self.node, self.folder = node, folder
        self.stopped: str | None = None
        self.began = time.monotonic()
        self.process = start(scheduler, folder, scheduler.session(node, arguments))

    @property
    def status(self) -> int | None:
        """Its exit status; 128 plus the number of a signal that ended it; None while it runs."""
        code = self.process.poll()
        return None if code is None else processes.exit_status(code)

    def has_begun(self) -> bool:
        """Whether it has read its files, so that the next one may load the file system."""
        return _BEGINS in (self.folder / LOG).read_bytes()


def has_report(folder: Path) -> bool:
    """Whether ReFrame has left a report in a results folder."""
    return any(folder.glob("reports/run-*.json"))


def last_words(folder: Path, noise: Sequence[str] = ()) -> str:
    """Return the last message in the log of a results folder, as `sessions.last_words`."""
    return sessions.last_words(folder / LOG, noise)


#: What the process that starts a session takes, measured with srun of Slurm 22.05: two processes,
#: of which one has five threads; and 10 MB of memory.
TASKS, BYTES = 6, 10_000_000

#: What is said when the system refuses a process.
NO_PROCESS = "there is no room for more processes (ulimit -u, or the limit of a group of processes)"

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def number_of_starters(scheduler: Scheduler, wanted: int) -> tuple[int, str | None]:
    """Return how many sessions may run at a time, and a sentence where it is fewer than wanted.

    One is always allowed. Limits that the system does not show are taken as not there.
    """
    limits = [
        (max(left, 0) // each, f"each needs {what}; {why}") for left, each, what, why in _room()
    ]
    most, why = min(limits, default=(wanted, ""))
    if most >= wanted:
        return wanted, None
    most = max(most, 1)
    return most, (
        f"Here is room for {most} {scheduler.starter}s at a time ({why}), so {wanted} nodes are "
        "not measured all together: a node is started when another one has ended. Start the "
        "command where there is more, or measure the nodes in parts (--nodes)."
    )


def _room() -> Iterator[tuple[int, int, str, str]]:
    """Yield what is left of each limit, what a process takes of it, in words too, and the limit."""
    uid = os.getuid()
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    of_user, all_ = _tasks(uid)
    tasks, memory = f"{TASKS} processes and threads", f"{BYTES // 1_000_000} MB of memory"
    # The superuser is not counted.
    if limit != resource.RLIM_INFINITY and uid != 0:
        yield limit - of_user, TASKS, tasks, f"ulimit -u is {limit}"
    for name in ("pid_max", "threads-max"):
        most = _number(_PROC / "sys" / "kernel" / name)
        if most is not None:
            yield most - all_, TASKS, tasks, f"kernel.{name} is {most}"
    free = re.search(r"^MemAvailable:\s+(\d+) kB$", text_of(_PROC / "meminfo"), re.MULTILINE)
    if free:
        left = int(free[1]) * 1024
        yield left, BYTES, memory, f"{left / 1e9:.1f} GB are available"
    for folder in _own_groups():
        most, used = (_number(folder / f"pids.{name}") for name in ("max", "current"))
        if most is not None:
            yield most - (used or 0), TASKS, tasks, f"{folder}/pids.max is {most}"
        most, used = (_number(folder / f"memory.{name}") for name in ("max", "current"))
        if most is not None:
            left = most - (used or 0)
            yield left, BYTES, memory, f"{left / 1e9:.1f} GB are left of {folder}/memory.max"


def _own_groups() -> Iterator[Path]:
    """Yield the folders of this process's control group and of those around it."""
    group = re.search(r"^0::/(.*)$", text_of(_PROC / "self" / "cgroup"), re.MULTILINE)
    if group:
        folder = _GROUPS / group[1]
        yield from (path for path in (folder, *folder.parents) if path.is_relative_to(_GROUPS))


def _number(file: Path) -> int | None:
    text = text_of(file).strip()
    return int(text) if text.isdecimal() else None


def _tasks(uid: int) -> tuple[int, int]:
    """Return how many processes and threads a user has, and how many there are."""
    of_user = all_ = 0
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                number = sum(1 for _ in (folder / "task").iterdir())
                all_ += number
                of_user += number if folder.stat().st_uid == uid else 0
    return of_user, all_
