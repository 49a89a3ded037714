"""The Slurm allocation around this process, and the session of one of its nodes.

A session is a step of the job, started by srun, with further steps inside it. Processes and memory
limit how many sruns there may be where the command runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fabricheck.core import nodelists, processes
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.rfm import slurm
from fabricheck.rfm.slurm import forget_tasks
from fabricheck.tools import runner
from fabricheck.tools.runner import text_of

#: The word in a node's state with which Slurm starts nothing on it.
DOWN = "DOWN"

#: Slurm's end time of a job without a limit.
_NO_END = ("Unknown", "UNLIMITED", "NONE", "None", "N/A")


@dataclass(frozen=True)
class Allocation:
    """The nodes of a job that are to be measured.

    job: its number. nodes: Slurm's description of each, by name and in order; one on which nothing
    can be started has a sentence about it. ends: the end of the job's time; None without a limit.
    is_whole: whether they are all nodes of the job.
    """

    job: str
    nodes: Mapping[str, RequestedNode]
    ends: datetime | None
    is_whole: bool = False


def find_allocation(
    chosen: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    needs_end: bool = True,
) -> Allocation:
    """Return the allocation that this process is in.

    :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
    :param environment: by default that of this process.
    :param needs_end: whether an end that Slurm does not report is an error; else it is None.
    :raises NotFoundError: outside an allocation, or in one that Slurm does not know.
    :raises UsageError: where its nodes may be shared, a selected node is not among them, or this is
        one of several tasks.
    """
    variables = os.environ if environment is None else environment
    job, stated = variables.get("SLURM_JOB_ID"), variables.get("SLURM_JOB_NODELIST")
    if not job or not stated:
        raise NotFoundError(
            "every-node measures the nodes of a Slurm allocation, but this shell is in none "
            "(SLURM_JOB_ID is not set): start it by sbatch or salloc, with --nodes=N "
            "--exclusive."
        )
    tasks = variables.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1":
        raise UsageError(
            f"every-node starts a step on each node itself, but srun started it {tasks} times: "
            "start it without srun."
        )
    nodes = nodelists.unfolded(stated)
    wanted = nodes if chosen is None else nodelists.unfolded(chosen)
    named = set(nodes)
    strange = [name for name in wanted if name not in named]
    if strange:
        raise UsageError(
            f"The allocation {job} has no {nodelists.folded(strange)}: it has {stated}."
        )
    try:
        known = slurm.record(job)
        # Slurm removes a failed node from the job, but leaves the variable unchanged.
        left = nodelists.unfolded(known["NodeList"])
        states = slurm.query_nodes(nodelists.folded(wanted))
    except LookupError as error:
        raise NotFoundError(
            f"Slurm does not know the allocation {job}: {error}. If this shell is in none, the "
            "variable is left over: unset SLURM_JOB_ID."
        ) from None
    added = [name for name in left if name not in named]
    if added:
        raise NotFoundError(
            f"Slurm reports {nodelists.folded(added)[:200]} in allocation {job}, which "
            f"SLURM_JOB_NODELIST ({stated}) does not have."
        )
    if known.get("OverSubscribe") != "NO":
        raise UsageError(
            f"The allocation {job} may share its nodes "
            f"(OverSubscribe={known.get('OverSubscribe')}), which are to be measured: add "
            "--exclusive to sbatch or salloc."
        )
    still = set(left)
    return Allocation(
        job=job,
        nodes={
            name: _requested(name, states.get(name, RequestedNode()), name in still)
            for name in wanted
        },
        ends=_end(job, known.get("EndTime", ""), needs_end),
        is_whole=len(wanted) == len(nodes),
    )


def _requested(name: str, node: RequestedNode, in_job: bool) -> RequestedNode:
    down = slurm.states(node)[0] == DOWN
    how_ended = None
    if down or not in_job:
        taken = "" if in_job else " and removed from the job"
        how_ended = f"{name} was {node.reported}{taken}, so nothing was started on it."
    return node.model_copy(update={"results": name, "how_ended": how_ended})


def _end(job: str, text: str, is_needed: bool) -> datetime | None:
    if text in _NO_END:
        return None
    try:
        if re.fullmatch(r"[0-9-]{10}T[0-9:]{8}", text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    if not is_needed:
        return None
    raise NotFoundError(
        f"Slurm does not report when allocation {job} ends: {text[:40]!r} is not a time (EndTime)."
    )


#: The name of the step of a node's session.
SESSION = "fabricheck-every-node"

#: The log of a session, in the folder of its node.
LOG = "session.log"

#: ReFrame's line when all check files are read and the first check is about to start.
_BEGINS = b"[==========] Running "

#: Lines of ReFrame at the end of every failed session.
_SAYS_NOTHING = ("Log file(s) saved in", "session stored with UUID")

#: Bytes at the end of a log that are searched for its last message.
_TAIL = 8192

#: Seconds after which an unresponsive controller is left alone.
PATIENCE_S = 20

#: The most steps that one scancel ends within that time.
_STEPS_AT_ONCE = 1000


def command(node: str, arguments: Sequence[str]) -> list[str]:
    """Return the command prefix that starts a command on one node of the job, beside its own steps.

    Without ``--overlap`` the steps that it starts would wait for its end.
    """
    return [
        "srun",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node}",
        f"--job-name={SESSION}",
        "--kill-on-bad-exit=0",
        "--cpu-bind=none",
        "--export=ALL",
        "--input=none",
        *arguments,
    ]


def start(folder: Path, command: Sequence[str], **variables: str) -> subprocess.Popen[bytes]:
    """Start a session in a process group of its own: Ctrl-C is handled by who started it.

    :param folder: its results folder, which is made; its log is there.
    :param variables: further variables of its environment.
    :raises OSError: when it cannot be started, or its log cannot be written.
    """
    folder.mkdir(parents=True)
    environment = {
        **processes.with_standard_slurm(os.environ),
        ENV_RESULTS: str(folder),
        **variables,
    }
    # The job's options are for as many tasks as it has nodes, or more.
    forget_tasks(environment)
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class NodeSession:
    """A session that was started on a node.

    node: its name. folder: its results. began: the start on the monotonic clock, in s. stopped: why
    it was told to end, in a sentence; None if it ends by itself. srun: the process of its step.
    """

    def __init__(self, node: str, folder: Path, arguments: Sequence[str]) -> None:
        """Start the session.

        :param folder: its results folder, which is made.
        :param arguments: the command.
        :raises OSError: as `start`.
        """
        self.node, self.folder = node, folder
        self.stopped: str | None = None
        self.began = time.monotonic()
        self.srun = start(folder, command(node, arguments))

    @property
    def status(self) -> int | None:
        """Its exit status; 128 plus the number of a signal that ended srun; None while it runs."""
        code = self.srun.poll()
        return None if code is None else processes.exit_status(code)

    def has_begun(self) -> bool:
        """Whether it has read its files, so that the next one may load the file system."""
        return _BEGINS in (self.folder / LOG).read_bytes()


def has_report(folder: Path) -> bool:
    """Whether ReFrame has left a report in a results folder."""
    return any(folder.glob("reports/run-*.json"))


def last_words(folder: Path) -> str:
    """Return the last message in the log of a results folder, without a full stop."""
    with (folder / LOG).open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
        lines = log.read().decode(errors="replace").splitlines()
    telling = [line for line in lines if not any(phrase in line for phrase in _SAYS_NOTHING)]
    return runner.last_words("\n".join(telling))


@dataclass(frozen=True)
class Step:
    """A step: its number for scancel, its name, and its node."""

    id: str
    name: str
    node: str


def steps(job: str) -> Sequence[Step]:
    """Return the numbered steps of a job that run on one node; empty where Slurm does not report
    them.
    """
    listing = _call("squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i|%j|%N")
    return list(_parsed(listing or "", job))


def _parsed(text: str, job: str) -> Iterator[Step]:
    """Yield the steps in complete lines: a line that is cut off may name another node."""
    lines = [line.strip().split("|") for line in text.split("\n")[:-1]]
    twice = Counter(line[0] for line in lines)
    for id_, *rest in lines:
        whole = len(rest) == 2 and twice[id_] == 1
        if whole and re.fullmatch(rf"{re.escape(job)}\.[0-9]+", id_):
            yield Step(id_, *rest)


def end_sessions(job: str, nodes: Collection[str]) -> None:
    """Ask the sessions of nodes to end: they end their checks, and write what was measured."""
    ids = [step.id for step in steps(job) if step.node in nodes and step.name == SESSION]
    _cancel(ids, "--signal=TERM")


def end_steps(job: str, nodes: Collection[str], spared: Collection[str]) -> None:
    """End all steps of nodes except the given ones, by number."""
    ended = [step.id for step in steps(job) if step.node in nodes and step.id not in spared]
    _cancel(ended)


def _cancel(ids: Sequence[str], *options: str) -> None:
    for first in range(0, len(ids), _STEPS_AT_ONCE):
        # After one call that got no answer the next would not get one either.
        if _call("scancel", *options, *ids[first : first + _STEPS_AT_ONCE]) is None:
            return


def _call(*command: str) -> str | None:
    """Return what a command of Slurm printed; None where it did not answer in time.

    A step that is not ended here ends with the job.
    """
    try:
        done = runner.run(command, PATIENCE_S, processes.with_standard_slurm(os.environ))
    except OSError:
        return None
    return done.out if done.code is not None else None


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
    limits = [
        (max(left, 0) // each, f"each needs {what}; {why}") for left, each, what, why in _room()
    ]
    most, why = min(limits, default=(wanted, ""))
    if most >= wanted:
        return wanted, None
    most = max(most, 1)
    return most, (
        f"Here is room for {most} sruns at a time ({why}), so {wanted} nodes are not measured all "
        "together: a node is started when another one has ended. Start the command where there is "
        "more, or measure the nodes in parts (--nodes)."
    )


def _room() -> Iterator[tuple[int, int, str, str]]:
    """Yield what is left of each limit, what one srun takes of it, in words too, and the limit."""
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
