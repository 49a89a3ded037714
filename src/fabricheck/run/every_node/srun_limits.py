"""How many sruns there is room for where the command runs: processes, and memory."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

#: What one srun of a session takes, measured with Slurm 22.05: two processes, of which one has five
#: threads; and 10 MB of memory.
TASKS, BYTES = 6, 10_000_000

#: What is said when the system refuses a process.
NO_PROCESS = "there is no room for more processes (ulimit -u, or the limit of a group of processes)"

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def number_of_sruns(wanted: int) -> tuple[int, str | None]:
    """Return how many sruns may run at the same time, and a sentence where it is fewer than wanted.

    One is always allowed. Limits that the system does not show are taken as not there.
    """
    found = [*_of_processes(), *_of_memory()]
    most, why = min(found, default=(wanted, ""))
    if most >= wanted:
        return wanted, None
    most = max(most, 1)
    return most, (
        f"Here is room for {most} sruns at a time ({why}), so {wanted} nodes are not measured all "
        "together: a node is started when another one has ended. Start the command where there is "
        "more, or measure the nodes in parts (--nodes)."
    )


def _of_processes() -> Iterator[tuple[int, str]]:
    uid = os.getuid()
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    own, all_ = _tasks(uid)
    # The superuser is not counted.
    if limit != resource.RLIM_INFINITY and uid != 0:
        yield _sruns(limit - own, f"ulimit -u is {limit}")
    for name in ("pid_max", "threads-max"):
        most = _number(_PROC / "sys" / "kernel" / name)
        if most is not None:
            yield _sruns(most - all_, f"kernel.{name} is {most}")
    for folder in _own_groups():
        most, used = (_number(folder / f"pids.{name}") for name in ("max", "current"))
        if most is not None:
            yield _sruns(most - (used or 0), f"{folder}/pids.max is {most}")


def _sruns(tasks: int, why: str) -> tuple[int, str]:
    return tasks // TASKS, f"each needs {TASKS} processes and threads; {why}"


def _of_memory() -> Iterator[tuple[int, str]]:
    free = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = (_PROC / "meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        free.append((int(line.split()[1]) * 1024, "are available"))
    for folder in _own_groups():
        limit, used = (_number(folder / f"memory.{name}") for name in ("max", "current"))
        if limit is not None:
            free.append((limit - (used or 0), f"are left of {folder}/memory.max"))
    for bytes_, why in free:
        why = f"each needs {BYTES // 1_000_000} MB of memory; {bytes_ / 1e9:.1f} GB {why}"
        yield max(bytes_, 0) // BYTES, why


def _own_groups() -> Iterator[Path]:
    """Yield the folders of this process's control group and of those around it."""
    with contextlib.suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                folder = _GROUPS / line.removeprefix("0::/")
                yield from (
                    path for path in (folder, *folder.parents) if path.is_relative_to(_GROUPS)
                )
                return


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _tasks(uid: int) -> tuple[int, int]:
    """Return how many processes and threads a user has, and how many there are."""
    own = all_ = 0
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                number = sum(1 for _ in (folder / "task").iterdir())
                all_ += number
                own += number if folder.stat().st_uid == uid else 0
    return own, all_
