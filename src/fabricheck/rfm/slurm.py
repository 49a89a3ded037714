"""What Slurm knows of a job beside what ReFrame asks it: how it ended, and whether it has its node.

ReFrame's scheduler ``squeue`` takes every job that left the queue for completed, and knows no exit
code of it. The controller keeps the record of a job for some minutes after its end (MinJobAge, 300
s unless a site says otherwise), and ``scontrol`` shows it without accounting.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reframe.core.exceptions import JobBlockedError, JobError, ReframeError

from fabricheck.core import nodelists
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.rfm import seams

#: What the launcher of a partition is called whose ranks are steps of the allocation around it.
STEP_LAUNCHER = "srun"

#: What ReFrame calls the schedulers that submit a job for each check.
SCHEDULERS = ("slurm", "squeue")

#: What lets one process use all cores of its step: sites bind it to one core unless told otherwise
#: (Frontier user guide, "Common srun options": --cpu-bind=threads), and it serves every device.
ALL_CORES = "--cpu-bind=none"

#: A job whose node is lost ends. Slurm would put it back into the queue, where it waits for a node
#: that may never return, or starts again in a folder that holds what it left.
ONCE = "--no-requeue"

#: States of a node in which a job that asks for it waits for somebody to mend it, and those in
#: which it waits for the end of a reservation that it does not name.
_LOST = {"DOWN", "DRAIN", "FAIL"}
_RESERVED = {"MAINT", "MAINTENANCE", "RESERVED"}

#: The states of a node, as ``DOWN*+DRAIN``.
_STATE = re.compile(r"[A-Z_]+[*~#!%$@^-]?(?:\+[A-Z_]+[*~#!%$@^-]?)*")

#: Seconds after which the controller of a busy cluster is not waited for.
PATIENCE_S = 120


def submits(partition: Any) -> bool:
    """Return whether the checks of a partition are jobs of Slurm."""
    return partition.scheduler.registered_name in SCHEDULERS


def of_the_allocation(partitions: Iterable[Any]) -> list[str]:
    """Return the names of those whose checks are steps of the allocation around the session."""
    return sorted(
        one.fullname
        for one in partitions
        if one.scheduler.registered_name == "local"
        and one.launcher_type.registered_name == STEP_LAUNCHER
    )


def record(job: str) -> Mapping[str, str]:
    """Return what the controller says of a job, by its own words (``JobState``, ``ExitCode``).

    :raises LookupError: when it cannot be asked or no longer knows the job, with its first line.
    """
    # Of an array or a heterogeneous job it prints all.
    found = [one for one in _records(_shown("job", job)) if one["JobId"] == job]
    if len(found) != 1:
        raise LookupError("scontrol prints no record of the job, or several")
    return found[0]


def cancel_if_blocked(
    cancel: Any, scheduler: Any, jobs: Sequence[Any], reasons: Any = None
) -> None:
    """Let ReFrame cancel the jobs that are blocked, but none that will have its turn.

    Slurm's reason ``ReqNodeNotAvail`` is of every job that asks for a node which another job waits
    for already, healthy or not, and ReFrame takes it for blocked: a second session would cost the
    first its jobs. So one that asks for a node is blocked by the state of the node.
    """
    asking = [one for one in jobs if one.pin_nodes and seams.is_pending(one)]
    names = sorted({name for one in asking for name in one.pin_nodes})
    found: dict[str, RequestedNode] = {}
    if names:
        with contextlib.suppress(LookupError):
            found = query_nodes(",".join(names))
    lost = {one: [name for name in one.pin_nodes if _is_lost(found, name, one)] for one in asking}
    cancel(scheduler, [one for one in jobs if lost.get(one, True)], reasons)
    for one, nodes in lost.items():
        if isinstance(one.exception, JobBlockedError) and nodes[0] in found:
            node = found[nodes[0]]
            because = f" ({node.because})" if node.because else ""
            said = (
                f"node {nodes[0]} is {node.state}{because}: the job would wait for it, and was "
                "cancelled"
            )
            seams.set_failed(one, JobBlockedError(said, one.jobid))


def _is_lost(found: Mapping[str, RequestedNode], name: str, job: Any) -> bool:
    """Return whether a job waits for a node in vain; of an unknown one ReFrame's word holds."""
    if name not in found:
        return True
    states = set((found[name].state or "").split("+"))
    options = (*job.sched_access, *job.options, *job.cli_options)
    reserved = any(option.startswith("--reservation") for option in options)
    return bool(states & _LOST) or (bool(states & _RESERVED) and not reserved)


def parse_node(description: str) -> RequestedNode:
    """Return a node with its state and the reason that is given for it.

    :param description: one line of ``scontrol show nodes --oneliner``.
    :raises LookupError: where it tells no state, or is of several nodes.
    """
    words = _words(description)
    name = words["NodeName"]
    if not _STATE.fullmatch(words["State"]):
        raise LookupError(f"scontrol prints a damaged state of node {name}")
    reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\]| \w+=|$)", description)
    return RequestedNode(state=words["State"], because=reason[1].strip() if reason else None)


def query_nodes(names: str) -> dict[str, RequestedNode]:
    """Return nodes by name, each with its state and the reason that is given for it.

    :param names: a list of hosts, as ``node[1-4]``.
    :raises LookupError: as `record`.
    """
    shown = _shown("nodes", names)
    lines = _records(shown)
    found = {one["NodeName"]: parse_node(one.line) for one in lines}
    if len(found) != len(lines) or not set(nodelists.unfolded(names)).issuperset(found):
        raise LookupError("scontrol prints a node twice, or one that it was not asked for")
    return found


def _shown(what: str, name: str) -> str:
    try:
        ended = subprocess.run(
            ["scontrol", "show", what, "--oneliner", name],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupError(str(error)) from None
    if ended.returncode != 0:
        # The first line is the reason, and what follows advice for who gave the option.
        said = ended.stderr.strip().splitlines() or [f"scontrol ended with {ended.returncode}"]
        raise LookupError(said[0].strip())
    return ended.stdout


class _Words(dict[str, str]):
    """What a line says, by its words.

    line: itself.
    """

    line = ""

    def __missing__(self, word: str) -> str:
        raise LookupError(f"scontrol tells no {word}, or tells it twice")


#: What begins a path or a comment, which may hold anything.
_FREE = re.compile(r"\s(?:Command|WorkDir|Comment|Extra)=")


def _words(line: str) -> _Words:
    pairs = _pairs(line)
    # The first of each: what is free text further on does not count.
    found = _Words(reversed(pairs))
    found.line = line
    counts = Counter(word for word, _ in {*_pairs(_FREE.split(line)[0])})
    for word, count in counts.items():
        if count > 1:
            del found[word]
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(?:^|\s)(\w+)=(\S*)", text)


def _records(shown: str) -> list[_Words]:
    """Return the lines that say something.

    :raises LookupError: where the last one is cut: what is there of a word need not be all of it.
    """
    if not shown.endswith("\n"):
        raise LookupError("what scontrol prints is cut")
    return [_words(line) for line in shown.split("\n") if line.strip()]


def complete(job: Any) -> None:
    """Fill in how a job ended that is no longer in the queue: state, exit code and nodes.

    A signal gives 128 and its number, as a shell says it. Where the end is not known the job fails
    with that sentence: taken for completed it would pass.
    """
    try:
        known = record(job.jobid)
        code, signal = known["ExitCode"].split(":")
        exit_code = 128 + int(signal) if int(signal) else int(code)
        state, nodes = known["JobState"], known["NodeList"]
    except (LookupError, ValueError) as error:
        said = (
            f"Slurm does not say how the job ended ({error}): the scheduler squeue needs "
            "its record in the controller (MinJobAge); with accounting use the scheduler slurm"
        )
        seams.set_failed(job, JobError(said, job.jobid))
    else:
        seams.set_ended(job, state, exit_code, nodes)


def require_allocation(partitions: Sequence[str]) -> None:
    """Raise a sentence unless this session runs inside an allocation that has its node alone.

    :param partitions: those of the local scheduler that start their programs by srun.
    :raises ReframeError: where srun would wait in the queue for each check, or share its node.
    """
    if not partitions:
        return
    named = ", ".join(partitions)
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise ReframeError(
            f"Partition {named} runs the whole suite inside one allocation, and this session is in "
            "none (SLURM_JOB_ID is not set): start it by salloc or sbatch, with --exclusive."
        )
    try:
        shared = record(job)["OverSubscribe"]
    except LookupError as error:
        raise ReframeError(
            f"Slurm does not know the allocation {job}: {error}. Where this session is in none, "
            "the variable is left over: unset SLURM_JOB_ID."
        ) from None
    if shared != "NO":
        raise ReframeError(
            f"The allocation {job} may share its node (OverSubscribe={shared}), and partition "
            f"{named} measures it: add --exclusive to salloc or sbatch."
        )


def require_own_nodes(partitions: Iterable[Any]) -> None:
    """Raise a sentence when a queue gives no job its node alone, whatever it asks for.

    With ``OverSubscribe=FORCE`` Slurm takes ``--exclusive`` and starts others' jobs all the same.

    :raises ReframeError: naming the queue; where Slurm does not say it, a job will.
    """
    for one in filter(submits, partitions):
        queue = _queue(one)
        if queue is None:
            continue
        try:
            shared = _words(_shown("partition", queue)).get("OverSubscribe", "")
        except LookupError:
            continue
        if shared.startswith("FORCE"):
            raise ReframeError(
                f"Slurm's partition {queue} gives no job its node alone (OverSubscribe={shared}), "
                f"and {one.fullname} measures it: another partition is needed."
            )


def _queue(partition: Any) -> str | None:
    """Return Slurm's partition in the access options of ReFrame's."""
    queues = [one.partition("=")[2] for one in partition.access if one.startswith("--partition=")]
    return queues[-1] if queues else None


def require_nodes_of_one_kind(partitions: Iterable[Any]) -> None:
    """Raise a sentence when partitions of different node models would have the same nodes.

    :raises ReframeError: when that is the allocation around the session, or one queue.
    """
    found: dict[str, dict[str, str]] = {}
    for one in partitions:
        node = one.extras.get("node")
        if node is None or one.launcher_type.registered_name != STEP_LAUNCHER:
            continue
        where = "the allocation around this session"
        if one.scheduler.registered_name != "local":
            queue = _queue(one)
            where = f"the nodes of {f'--partition={queue}' if queue else one.fullname}"
        found.setdefault(where, {})[one.fullname] = node
    for where, nodes in found.items():
        if len(set(nodes.values())) > 1:
            raise ReframeError(
                f"The partitions {', '.join(nodes)} have different nodes "
                f"({', '.join(nodes.values())}), and all of them would run on {where}: choose one "
                f"of them, as by --system={next(iter(nodes))}."
            )
