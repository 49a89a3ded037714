"""The sessions of a job: one on each node of its allocation, then one of its network.

The driver starts the sessions of the nodes, watches them, and records how each ends. The session of
the network is over all nodes that answered. It runs beside the driver, not on a node, and each of
its checks is a step of several nodes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import statistics
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from fabricheck.core import nodelists, processes
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import host
from fabricheck.run import sessions
from fabricheck.run.every_node import session, staging
from fabricheck.run.every_node.session import NodeSession
from fabricheck.schedulers import table
from fabricheck.schedulers.row import Allocation
from fabricheck.site import partitions, sets, sites

#: Seconds at the end of the job reserved for stopping hung sessions and for the verdict; of more
#: nodes, one more for each so many: the verdict takes 24 s of processor time for 1,000 of them.
KEPT_S, NODES_A_SECOND = 60, 20

#: Seconds for an ending session to write its report, and then for its process to end.
GRACE_S, LAST_GRACE_S = 15.0, 10.0

#: Seconds after which a session that has not begun no longer delays others: at most, and at least.
#: Between them it is so many times the median of the sessions that have begun.
STARTING_S, LEAST_STARTING_S, STARTING_TIMES = 60.0, 3.0, 3.0

#: How many sessions read their files at the same time by default: shared ones, and staged ones.
AT_ONCE, AT_ONCE_STAGED = 32, 128

#: Seconds between two polls of all sessions.
_LOOK_S = 0.2

#: The part of the driver's time that may go into writing the file of nodes, and into calls to the
#: scheduler for ended sessions: both take longer with more nodes.
_PART = 0.05

#: The longest time in s between two such calls: one that hung must not delay the next for long.
_LONGEST_S = 20.0


class _RateLimiter:
    """Spaces out what takes long, so that it takes a small part of the time."""

    def __init__(self) -> None:
        self._at = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._at

    def did(self, began: float) -> None:
        """Note that it was done, since ``began`` on the monotonic clock."""
        now = time.monotonic()
        self._at = now + min((now - began) / _PART, _LONGEST_S)


class Driver:
    """The sessions of one run. ``folder`` has the file of nodes, and a results folder for each."""

    def __init__(
        self,
        command: Sequence[str],
        allocation: Allocation,
        results: Path,
        say: Callable[[str], object],
        *,
        chosen: Sequence[str],
        minutes: float | None = None,
        at_once: int | None = None,
        stage: bool = False,
        network_only: bool = False,
    ) -> None:
        """Create the folder of the run, with all nodes in its file.

        :param command: that of each session.
        :param results: the results folder.
        :param say: called with each sentence of progress.
        :param chosen: the part of the command that selects the checks.
        :param minutes: the time limit of one session; None for the rest of the job.
        :param at_once: how many sessions read their files at the same time; None for the usual
            number.
        :param stage: whether they read them from an archive of their own.
        :param network_only: whether no node has a session.
        :raises UsageError: when no time limit applies to a hung node.
        :raises NotFoundError: when the folder or its file cannot be written.
        """
        self._given, self._allocation, self._say = command, allocation, say
        self._minutes, self._asked_at_once, self._stage = minutes, at_once, stage
        self._reserve_s = KEPT_S + len(allocation.nodes) // NODES_A_SECOND
        self._ends = _monotonic(allocation.ends, self._reserve_s)
        if self._ends is None and minutes is None:
            raise UsageError(
                f"The job {allocation.job} has no time limit, so a hung node would be waited for "
                "without end: set --minutes."
            )
        if self._is_over():
            raise UsageError(
                f"The job {allocation.job} ends at {allocation.ends:%H:%M:%S}, and "
                f"{self._reserve_s} s of its time are reserved for the verdict: no time is left "
                "to measure."
            )
        self.folder = _new_folder(results / requested_nodes.FOLDER, allocation.job)
        self.nodes = RequestedNodes(
            partition=None,
            chosen=tuple(chosen),
            reached_by=allocation.scheduler.name,
            started=requested_nodes.now(),
            job=allocation.job,
            nodes={
                name: RequestedNode(
                    results=name, state=node.state, because=node.because, how_ended=node.unusable
                )
                for name, node in allocation.nodes.items()
            },
            network_only=network_only,
        )
        requested_nodes.write(self._file, self.nodes)
        self._unwritten: NotFoundError | None = None
        self._is_changed, self._writing, self._calling = False, _RateLimiter(), _RateLimiter()
        self._waiting = deque(
            name for name, node in self.nodes.nodes.items() if node.how_ended is None
        )
        #: In the order in which they were started.
        self._running: dict[str, NodeSession] = {}
        #: Those that have not begun and delay others, and how long the latest took to begin, in s.
        self._starting: list[NodeSession] = []
        self._at_once = at_once or AT_ONCE
        self._took: deque[float] = deque(maxlen=100)
        #: The most sessions at the same time.
        self._most = len(self._waiting)
        #: Nodes whose steps are to be ended, because their session left no report.
        self._swept: set[str] = set()
        #: For sessions that are being stopped: the next stage, and when.
        self._next: dict[str, tuple[int, float]] = {}
        self._signals: list[int] = []
        self._ended = 0

    @property
    def _file(self) -> Path:
        return self.folder / requested_nodes.NAME

    @property
    def left_s(self) -> float | None:
        """The seconds left to measure in; None without a limit of the job."""
        return None if self._ends is None else self._ends - time.monotonic()

    def run(self) -> int | None:
        """Run all sessions; return the number of the signal that ended the run, if one did.

        :raises NotFoundError: at the end, when the file of the nodes could not be written.
        """
        for node in self.nodes.nodes.values():
            if node.how_ended is not None:
                self._say(node.how_ended)
        if self.nodes.network_only:
            return None
        self._most, sentence = session.number_of_starters(self._allocation.scheduler, self._most)
        if sentence is not None:
            self._say(sentence)
        before = self._allocation.scheduler.running_steps(self._allocation.job)
        taken = processes.signals_taken(lambda number, frame: self._signals.append(number))
        with taken, self._command() as self._arguments:
            try:
                while self._waiting or self._running:
                    self._start()
                    self._look(before)
                    time.sleep(_LOOK_S)
                self._sweep(before)
            finally:
                if self._is_changed:
                    self._write()
        if self._unwritten is not None:
            raise self._unwritten
        return self._signals[0] if self._signals else None

    @contextlib.contextmanager
    def _command(self) -> Iterator[Sequence[str]]:
        """Give the command of the sessions; the staged archive exists inside the context."""
        given = self._given
        if not self._stage:
            yield given
            return
        with contextlib.ExitStack() as stack:
            try:
                given = stack.enter_context(
                    staging.staged(self.folder, self._allocation, given, self._say)
                )
                self._at_once = self._asked_at_once or AT_ONCE_STAGED
            except staging.CannotStage as error:
                self._say(f"The sessions read the shared files: {error}.")
            yield given

    def _start(self) -> None:
        limit = STARTING_S
        if self._took:
            usual = STARTING_TIMES * statistics.median(self._took)
            limit = min(limit, max(usual, LEAST_STARTING_S))
        self._starting = [
            node_session for node_session in self._starting if self._delays(node_session, limit)
        ]
        while self._waiting and not self._signals and not self._is_over():
            if len(self._starting) >= self._at_once or len(self._running) >= self._most:
                return
            node = self._waiting.popleft()
            try:
                scheduler = self._allocation.scheduler
                started = NodeSession(scheduler, node, self.folder / node, self._arguments)
            except BlockingIOError:
                if not self._wait_for_room(node):
                    return
            except OSError as error:
                self._note({node: f"{node}: the session cannot be started ({error})."})
            else:
                self._running[node] = started
                self._starting.append(started)

    def _delays(self, node_session: NodeSession, limit: float) -> bool:
        """Whether a session still reads its files, so that another one has to wait."""
        if self._running.get(node_session.node) is not node_session:
            return False
        age = time.monotonic() - node_session.began
        if node_session.has_begun():
            self._took.append(age)
            return False
        return age < limit

    def _is_over(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    def _look(self, spared: Collection[str]) -> None:
        """Record what has ended, and end what has reached its limit."""
        ended = [(node_session, status) for node_session in self._running.values()
                 if (status := node_session.status) is not None]  # fmt: skip
        for node_session, status in ended:
            del self._running[node_session.node]
            self._next.pop(node_session.node, None)
            self._note_end(node_session, status)
            if node_session.stopped or not session.has_report(node_session.folder):
                self._swept.add(node_session.node)
        if self._calling.is_due:
            self._sweep(spared)
        if self._signals:
            name = signal.Signals(self._signals[0]).name
            self._stop(self._running.values(), f"was stopped because {name} ended the run")
            self._leave(f"was not started because {name} ended the run")
        if self._is_over():
            when = f"{self._reserve_s} s before the end of the job's time"
            self._stop(self._running.values(), f"did not end until {when} and was stopped")
            self._leave(f"was not started until {when}")
        if self._minutes is not None:
            limit = self._minutes
            until = time.monotonic() - 60 * limit
            late = itertools.takewhile(
                lambda node_session: node_session.began < until, self._running.values()
            )
            noun = "minute" if limit == 1 else "minutes"
            self._stop(late, f"did not end within {limit:g} {noun} and was stopped")
        if self._calling.is_due or len(self._signals) > 1:
            self._go_on_stopping(spared)
        if self._is_changed and self._writing.is_due:
            self._write()

    def _sweep(self, spared: Collection[str]) -> None:
        """End what is left on nodes whose session left no report.

        A check is a separate step, which outlives the session that started it.
        """
        if self._swept:
            began = time.monotonic()
            self._allocation.scheduler.end_steps(self._allocation.job, self._swept, spared)
            self._swept.clear()
            self._calling.did(began)

    def _note_end(self, ended: NodeSession, status: int) -> None:
        if ended.stopped is not None:
            self._note({ended.node: ended.stopped})
        elif session.has_report(ended.folder):
            how = "well" if status == 0 else f"with exit status {status}"
            self._note({ended.node: None}, f"{ended.node}: ended {how}", status)
        else:
            words = session.last_words(ended.folder, self._allocation.scheduler.noise)
            why = f"{ended.node} ended without a run report: {words}."
            # A process that started a session ends with 0 when its node fails.
            self._note({ended.node: why}, status=status or None)

    def _leave(self, why: str) -> None:
        left = list(self._waiting)
        self._waiting.clear()
        if left:
            self._note({node: f"{node} {why}." for node in left})

    def _note(
        self, sentences: dict[str, str | None], line: str | None = None, status: int | None = None
    ) -> None:
        nodes = self.nodes.nodes
        for node, sentence in sentences.items():
            ended = requested_nodes.now() if (self.folder / node).exists() else None
            change = {"ended": ended, "status": status, "how_ended": sentence}
            nodes[node] = nodes[node].model_copy(update=change)
            self._ended += 1
            total = sum(requested.unusable is None for requested in self._allocation.nodes.values())
            shown = (line or sentence or node).rstrip(".")
            self._say(f"{shown} ({self._ended} of {total})")
        self._is_changed = True

    def _write(self) -> None:
        began = time.monotonic()
        self._is_changed = False
        try:
            requested_nodes.write(self._file, self.nodes)
            self._unwritten = None
        except NotFoundError as error:
            # Running sessions continue: their results may be on another file system, or space is
            # freed later.
            if self._unwritten is None:
                self._say(str(error))
            self._unwritten = error
        self._writing.did(began)

    def _wait_for_room(self, node: str) -> bool:
        """Put a node back for which there was no process; return whether others may be started."""
        if not self._running:
            self._note({node: f"{node}: the session cannot be started: {session.NO_PROCESS}."})
            return True
        self._waiting.appendleft(node)
        self._most = len(self._running)
        self._say(
            f"With {self._most} sessions {session.NO_PROCESS}: as many run at a time from now "
            f"on, and {len(self._waiting)} nodes wait."
        )
        return False

    def _stop(self, sessions: Iterable[NodeSession], why: str) -> None:
        for node_session in sessions:
            if node_session.stopped is None:
                node_session.stopped = f"{node_session.node} {why}."
                self._next[node_session.node] = (0, time.monotonic())

    def _go_on_stopping(self, spared: Collection[str]) -> None:
        """Take the next of three stages with each session that is being stopped and still runs."""
        now = time.monotonic()
        ending, ended = set[str](), set[str]()
        for node, (stage, at) in list(self._next.items()):
            if now < at and len(self._signals) < 2:
                continue
            if stage == 0:
                ending.add(node)
                self._next[node] = (1, now + GRACE_S)
            elif stage == 1:
                ended.add(node)
                self._next[node] = (2, now + LAST_GRACE_S)
            else:
                self._running[node].process.kill()
        if ending:
            self._allocation.scheduler.end_sessions(self._allocation.job, ending)
        if ended:
            self._allocation.scheduler.end_steps(self._allocation.job, ended, spared)
            for node in ended:
                self._running[node].process.terminate()
        if ending or ended:
            self._calling.did(now)


def _new_folder(parent: Path, job: str) -> Path:
    """Create the folder of a run; a later run of the same job gets a number as suffix."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = parent / (job if number == 1 else f"{job}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        raise NotFoundError(f"{parent} cannot be written ({error.strerror}).") from None


def _monotonic(ends: datetime | None, reserve_s: float) -> float | None:
    if ends is None:
        return None
    left = ends.astimezone() - requested_nodes.now() - timedelta(seconds=reserve_s)
    return time.monotonic() + left.total_seconds()


#: The results folder in that of the job.
NETWORK_FOLDER = "network"


def network_arguments(given: Sequence[str]) -> list[str]:
    """Return ReFrame's arguments for the checks of the network.

    :param given: those of the sessions of nodes, whose choice of checks is replaced.
    """
    return [*sets.without_choice(given), *requested_nodes.CHOSEN_OF_NETWORK]


def require_site(given: Sequence[str]) -> None:
    """Refuse a run whose sessions would all be refused, as no site file is for their nodes.

    Only on a node of the allocation: a login node may have a name of another kind.

    :param given: ReFrame's arguments.
    :raises FabricheckError: as `fabricheck.site.sites.of_this_machine`.
    """
    system, _ = sites.selected(given)
    around = table.around(os.environ)
    if not system and around is not None and around.is_inside(os.environ):
        _system_here()


def _system_here() -> str:
    folders = sites.folders()
    return sites.of_this_machine(host.system_name(), host.full_system_name, *folders).system


def is_joined(given: Sequence[str]) -> bool:
    """Whether the site names a fabric that joins the nodes of a partition that sessions measure.

    :param given: ReFrame's arguments; without a system there, that of this machine.
    """
    system, part = sites.selected(given)
    if not system:
        # Where it is refused, the sessions were, and said so.
        with contextlib.suppress(FabricheckError):
            system = _system_here()
    return any(
        "several_nodes" in partition.get("features", [])
        for name, partition in partitions.named(partitions.read_site(system)[0])
        if part in ("", name.partition(":")[2])
    )


def measure_network(
    allocation: Allocation,
    folder: Path,
    requested: RequestedNodes,
    command: Sequence[str],
    left_s: float | None,
    say: Callable[[str], object],
) -> int | None:
    """Run the session, and record in the file of nodes how it ended.

    :param allocation: the job around the command.
    :param folder: that of the job, with the file of its nodes.
    :param requested: the nodes, and how their own sessions ended.
    :param command: that of the session.
    :param left_s: the seconds that it may take; None for no limit.
    :param say: called with each sentence of progress.
    :returns: the number of the signal that ended it, if one did.
    :raises NotFoundError: when the folder or the file cannot be written.
    """
    answered = [name for name, answer in requested.nodes.items() if answer.how_ended is None]
    if len(answered) < 2:
        say(f"The network is not measured: {count(len(answered), 'node')} answered, not two.")
        return None
    say(f"The network of {nodelists.folded(answered)}: one session over all of them")
    file = folder / requested_nodes.NAME
    network = RequestedNode(results=NETWORK_FOLDER)
    requested_nodes.write(file, requested.model_copy(update={"network": network}))
    status, failure, number = _run_network(
        allocation, folder / NETWORK_FOLDER, command, answered, left_s
    )
    if failure is None and not session.has_report(folder / NETWORK_FOLDER):
        words = session.last_words(folder / NETWORK_FOLDER, allocation.scheduler.noise)
        failure = f"The session of the network ended without a run report: {words}."
    how = "well" if status == 0 else f"with exit status {status}"
    say(failure or f"The session of the network ended {how}.")
    ended = {"ended": requested_nodes.now(), "status": status, "how_ended": failure}
    requested_nodes.write(
        file, requested.model_copy(update={"network": network.model_copy(update=ended)})
    )
    return number


def _run_network(
    allocation: Allocation,
    results: Path,
    command: Sequence[str],
    nodes: Sequence[str],
    left_s: float | None,
) -> tuple[int | None, str | None, int | None]:
    """Run the session until it ends by itself, by a signal or by its time.

    :returns: its exit status, why it was stopped, and the number of the signal.
    """
    until = None if left_s is None else time.monotonic() + left_s
    signals: list[int] = []
    with processes.signals_taken(lambda number, frame: signals.append(number)):
        # Steps are of the nodes that answered, not of those that the job has lost.
        variables = allocation.scheduler.of_nodes(nodes)
        process = session.start(allocation.scheduler, results, command, **variables)
        has_ended = sessions.wait(
            process, lambda: bool(signals) or (until is not None and time.monotonic() >= until)
        )
        number = signals[0] if signals else None
        if has_ended:
            return processes.exit_status(process.returncode), None, number
        why = f"{signal.Signals(number).name} ended the run" if number else "its time had passed"
        sessions.end(process, GRACE_S + LAST_GRACE_S)
        allocation.scheduler.end_steps_of_several(allocation.job)
        return None, f"The session of the network was stopped because {why}.", number
