"""The network of a job: one session over all nodes that answered, after the sessions of the nodes.

It runs beside the driver, not on a node, and each of its checks is a step of several nodes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from fabricheck.core import ending_signals, nodelists, slurm_formats
from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import count
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import host
from fabricheck.rfm.steps import forget_tasks
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
        for name, one in partitions.named(partitions.known_site(system))
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
    ended = _Session(folder / FOLDER, command, answered, left_s)
    status, said, number = ended.run(requested.job or "")
    if said is None and not session.has_report(folder / FOLDER):
        words = session.last_words(folder / FOLDER)
        said = f"The session of the network ended without a run report: {words}."
    how = "well" if status == 0 else f"with exit status {status}"
    say(said or f"The session of the network ended {how}.")
    told = {"ended": requested_nodes.now(), "status": status, "said": said}
    requested_nodes.write(
        file, requested.model_copy(update={"network": network.model_copy(update=told)})
    )
    return number


class _Session:
    """The session, until it ends by itself, by a signal or by its time."""

    def __init__(
        self, results: Path, command: Sequence[str], nodes: Sequence[str], left_s: float | None
    ) -> None:
        self._results, self._command, self._nodes = results, command, nodes
        self._until = None if left_s is None else time.monotonic() + left_s
        self._signals: list[int] = []

    def run(self, job: str) -> tuple[int | None, str | None, int | None]:
        """Return its exit status, why it was stopped, and the number of a signal."""
        self._results.mkdir()
        # Steps are of the nodes that answered, not of those that the job has lost.
        environment = {
            **slurm_formats.standard(os.environ),
            ENV_RESULTS: str(self._results),
            "SLURM_JOB_NODELIST": nodelists.folded(self._nodes),
        }
        forget_tasks(environment)
        with (
            ending_signals.taken(self._take),
            (self._results / session.LOG).open("wb") as log,
            subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            while process.poll() is None and not self._signals and not self._is_over():
                time.sleep(_LOOK_S)
            said = None
            if process.poll() is None:
                why = "its time had passed"
                if self._signals:
                    why = f"{signal.Signals(self._signals[0]).name} ended the run"
                said = f"The session of the network was stopped because {why}."
                self._stop(process, job)
        code = process.returncode
        status = 128 - code if code < 0 else code
        number = self._signals[0] if self._signals else None
        return (None if said else status), said, number

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    @staticmethod
    def _stop(process: subprocess.Popen[bytes], job: str) -> None:
        """Let the session end its check and write what was measured; then end it and its steps."""
        process.terminate()
        try:
            process.wait(GRACE_S + LAST_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
        left = {one.node for one in session.steps(job) if nodelists.is_several(one.node)}
        if left:
            session.end_steps(job, left, ())
