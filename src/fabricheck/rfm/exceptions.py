"""Exceptions that a node's verdict distinguishes, and the ends of jobs.

ReFrame keeps the class name of an exception in its report (`fail_info`), from which
`results.run_report` reads why the check failed. ReFrame treats all subclasses of `SanityError`
alike.
"""

from __future__ import annotations

from typing import Any

from reframe.core.exceptions import SanityError

from fabricheck.core.ending_signals import signal_of
from fabricheck.core.vocabulary import EXIT_MEANING
from fabricheck.results.model import ResultDocument
from fabricheck.results.run_report import EXCEPTIONS, Failure

#: States of a job that was ended from outside, whatever its exit code (in Slurm's terms).
ENDED_FROM_OUTSIDE = {
    "BOOT_FAIL": "was not started, because its node did not boot",
    "CANCELLED": "was ended from outside: its job was cancelled",
    "DEADLINE": "was ended from outside: its job reached its deadline",
    "NODE_FAIL": "was ended from outside: its node failed",
    "OUT_OF_MEMORY": "was ended from outside: its job had no memory left",
    "PREEMPTED": "was ended from outside: its job was preempted",
    "TIMEOUT": "was ended from outside: its job reached its time limit",
}

#: Those of them that say nothing about the node.
ENDED_BY_SCHEDULER = frozenset({"CANCELLED", "DEADLINE", "PREEMPTED"})


_CLASSES: dict[Failure, type[SanityError]] = {
    failure: type(name, (SanityError,), {}) for failure, name in EXCEPTIONS.items()
}


def failed(failure: Failure | None, sentence: str) -> SanityError:
    """Return the exception of a check that failed; None where no rule is its own."""
    return SanityError(sentence) if failure is None else _CLASSES[failure](sentence)


def ended_well(job: Any) -> bool:
    """Whether a job ended by itself with code 0; a job that Slurm ended has code 0 too."""
    return job.exitcode == 0 and job.state not in ENDED_FROM_OUTSIDE


def of_end(job: Any, program: str, document: ResultDocument | None) -> SanityError:
    """Return the error for a failed job.

    :param program: the program that ended last.
    :param document: the document that it left.
    """
    failure: Failure | None = "ended-by-scheduler" if job.state in ENDED_BY_SCHEDULER else None
    if job.state == "TIMEOUT":
        failure = "time-over"
    return failed(failure, exit_sentence(job, program, document))


def exit_sentence(job: Any, program: str, document: ResultDocument | None) -> str:
    """Describe the end of a job, with the document's own message if it has one."""
    nodes, awaited = job.nodelist or (), job.pin_nodes
    if job.state == "CANCELLED" and awaited and not nodes:
        return (
            f"{program} was never started: its job waited for {_nodes(awaited)} and was cancelled."
        )
    if job.state in ENDED_FROM_OUTSIDE:
        on = f"on {_nodes(nodes)} " if nodes else ""
        meaning = f"{on}{ENDED_FROM_OUTSIDE[job.state]}"
    elif job.exitcode is None:
        meaning = "was ended from outside, without an exit code"
    elif (number := signal_of(job.exitcode)) is not None:
        meaning = f"was ended by signal {number} (exit code {job.exitcode})"
    else:
        known = EXIT_MEANING.get(job.exitcode, "not one of its own exit codes")
        meaning = f"ended with exit code {job.exitcode} ({known})"
    message = document["outcome"]["message"] if document else None
    return f"{program} {meaning}: {message}" if message else f"{program} {meaning}."


def _nodes(names: list[str]) -> str:
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names)}"
