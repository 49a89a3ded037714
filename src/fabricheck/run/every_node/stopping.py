"""Ending the steps of a job on some of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from fabricheck.tools.runner import run

#: What the step of a node's session is called.
SESSION = "fabricheck-every-node"

#: Seconds after which a controller that does not answer is left alone.
PATIENCE_S = 20


@dataclass(frozen=True)
class Step:
    """A step: its number as scancel takes it, what it is called, and its node."""

    id: str
    name: str
    node: str


def steps(job: str) -> Sequence[Step]:
    """Return the numbered steps of a job that run on one node; none where Slurm does not say it."""
    said = _call("squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i|%j|%N")
    return list(_read(said))


def _read(text: str) -> Iterator[Step]:
    for line in text.splitlines():
        id_, _, rest = line.strip().partition("|")
        name, _, node = rest.rpartition("|")
        if id_.rpartition(".")[2].isdigit():
            yield Step(id_, name, node)


def tell(job: str, nodes: Collection[str]) -> None:
    """Ask the sessions of nodes to end: they end their checks, and write what was measured."""
    told = [one.id for one in steps(job) if one.node in nodes and one.name == SESSION]
    if told:
        _call("scancel", "--signal=TERM", *told)


def end(job: str, nodes: Collection[str], spared: Collection[str]) -> None:
    """End all steps of nodes but those that are spared, by number."""
    ended = [one.id for one in steps(job) if one.node in nodes and one.id not in spared]
    if ended:
        _call("scancel", *ended)


def _call(*command: str) -> str:
    try:
        return run(command, PATIENCE_S).out
    except OSError:
        # A step that nobody ends has ended by the end of the job.
        return ""
