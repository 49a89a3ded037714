"""The network of a job: one session over all nodes that answered, after the sessions of the nodes.

It runs beside the driver, not on a node, and each of its checks is a step of several nodes.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fabricheck.core import nodelists, processes
from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import host
from fabricheck.run.every_node import session
from fabricheck.run.every_node.driver import GRACE_S, LAST_GRACE_S
from fabricheck.site import partitions, sets, sites

#: The results folder in that of the job.
FOLDER = "network"

#: Seconds between two looks at the session.
_LOOK_S = 0.2


def arguments(given: Sequence[str]) -> list[str]:
    """Return ReFrame's arguments for the checks of the network.

    :param given: those of the sessions of nodes, whose choice of checks is replaced.
    """
    return [*sets.without_choice(given), *requested_nodes.CHOSEN_OF_NETWORK]


def is_joined(given: Sequence[str]) -> bool:
    """Whether the site names a fabric that joins the nodes of a partition that sessions measure.

    :param given: ReFrame's arguments; without a system there, that of this machine.
    """
    system, part = sites.selected(given)
    if not system:
        # Where it is refused, the sessions were, and said so.
        with contextlib.suppress(FabricheckError):
            system = sites.system_of(host.system_name(), *sites.folders()) or ""
    return any(
        "several_nodes" in one.get("features", [])
        for name, one in partitions.named(partitions.read_site(system)[0])
        if part in ("", name.partition(":")[2])
    )


def measure(
    folder: Path,
    requested: RequestedNodes,
    command: Sequence[str],
    left_s: float | None,
    say: Callable[[str], object],
) -> int | None:
    """Run the session, and record in the file of nodes how it ended.

    :param folder: that of the job, with the file of its nodes.
    :param requested: the nodes, and how their own sessions ended.
    :param command: that of the session.
    :param left_s: the seconds that it may take; None for no limit.
    :param say: called with each sentence of progress.
    :returns: the number of the signal that ended it, if one did.
    :raises NotFoundError: when the folder or the file cannot be written.
    """
    answered = [name for name, one in requested.nodes.items() if one.said is None]
    if len(answered) < 2:
        say(f"The network is not measured: {count(len(answered), 'node')} answered, not two.")
        return None
    say(f"The network of {nodelists.folded(answered)}: one session over all of them")
    file = folder / requested_nodes.NAME
    network = RequestedNode(results=FOLDER)
    requested_nodes.write(file, requested.model_copy(update={"network": network}))
    status, said, number = _run(folder / FOLDER, command, answered, left_s, requested.job or "")
    if said is None and not session.has_report(folder / FOLDER):
        words = session.last_words(folder / FOLDER)
        said = f"The session of the network ended without a run report: {words}."
    how = "well" if status == 0 else f"with exit status {status}"
    say(said or f"The session of the network ended {how}.")
    ended = {"ended": requested_nodes.now(), "status": status, "said": said}
    requested_nodes.write(
        file, requested.model_copy(update={"network": network.model_copy(update=ended)})
    )
    return number


def _run(
    results: Path, command: Sequence[str], nodes: Sequence[str], left_s: float | None, job: str
) -> tuple[int | None, str | None, int | None]:
    """Run the session until it ends by itself, by a signal or by its time.

    :returns: its exit status, why it was stopped, and the number of the signal.
    """
    until = None if left_s is None else time.monotonic() + left_s
    signals: list[int] = []
    with processes.signals_taken(lambda number, frame: signals.append(number)):
        # Steps are of the nodes that answered, not of those that the job has lost.
        process = session.start(results, command, SLURM_JOB_NODELIST=nodelists.folded(nodes))
        while process.poll() is None and not signals:
            if until is not None and time.monotonic() >= until:
                break
            time.sleep(_LOOK_S)
        number = signals[0] if signals else None
        if process.poll() is not None:
            return processes.exit_status(process.returncode), None, number
        why = f"{signal.Signals(number).name} ended the run" if number else "its time had passed"
        _stop(process, job)
        return None, f"The session of the network was stopped because {why}.", number


def _stop(process: subprocess.Popen[bytes], job: str) -> None:
    """Let the session end its check and write what was measured; then end it and its steps."""
    process.terminate()
    try:
        process.wait(GRACE_S + LAST_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    left = {step.node for step in session.steps(job) if nodelists.is_several(step.node)}
    if left:
        session.end_steps(job, left, ())
