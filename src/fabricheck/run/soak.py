"""A soak: sessions of load on this node, one after another, for hours.

The loop starts an ordinary session for each round, has it judged, and leaves a record of it in the
folder of its outputs. When it is started again it counts the rounds that are there. Of the sessions
the first ones, the last ones and those with a finding are left whole; of others the record is left.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from fabricheck.core import processes
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.core.vocabulary import ENV_RESULTS, ENV_SIMULATED_CLOCK, EXIT_NODE_OPEN
from fabricheck.results import marking, reading, soaks
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import Results
from fabricheck.results.session import ABORTED, Session
from fabricheck.results.soaks import Phase, Plan, Round, RoundFinding, Soak
from fabricheck.run import sessions
from fabricheck.schedulers import table

#: Sessions one after another that measure nothing, after which the soak ends.
MOST_FAILED = 3

#: Sessions with a finding that are left whole, from the first on.
MOST_WHOLE = 5

#: Bytes of a session, and of the record of a round, for what is said of the disk before. Of eight
#: devices a round has 88 series and 360 samples each.
SESSION_BYTES, ROUND_BYTES = 4_000_000, 20_000

#: What a round may take besides its load: arrays are filled, states are read, a session starts; and
#: about what a session takes that is no hour of the soak, because no program runs.
BESIDE_S, START_S = 60.0, 10.0

#: The variable with the seed of the noise of a simulated node.
_SEED = "FABRICHECK_SIM_SEED"

#: Judges a session: what its verdict has against the node.
Judge = Callable[[Results], Sequence[RoundFinding]]


@dataclass(frozen=True)
class Needs:
    """What a soak will take. bytes: of disk, at most. ends: when it will have its hours."""

    bytes: int
    free_bytes: int
    ends: datetime


def needs(results: Path, soak: Soak) -> Needs:
    """Return what is left of a soak to take."""
    left_h = max(soak.plan.hours - soak.hours, 0.0)
    rounds = int(left_h * 60 / soak.plan.round_minutes) + 1
    whole = min(rounds, MOST_WHOLE + 4) * SESSION_BYTES
    free = shutil.disk_usage(results).free
    ends = datetime.now().astimezone() + timedelta(hours=left_h, seconds=START_S * rounds)
    return Needs(whole + rounds * ROUND_BYTES, free, ends)


def begun(results: Path, name: str, plan: Plan) -> Soak:
    """Return the record of a soak that goes on, or of a new one.

    :raises UsageError: when the soak of that name has other arguments, or its hours.
    """
    named = [soak for soak in soaks.read(results) if soak.name == name]
    if not named:
        return Soak(name, plan)
    (there,) = named
    if there.plan.arguments != plan.arguments:
        arguments = " ".join(there.plan.arguments) or "none"
        raise UsageError(
            f"The soak {name} in {results} has other arguments of reframe ({arguments}): go on "
            "with those, or name another soak."
        )
    if there.hours >= plan.hours:
        raise UsageError(
            f"The soak {name} in {results} has its {plan.hours:g} hours: name another one."
        )
    return replace(there, plan=plan, ended=None)


class Loop:
    """The sessions of one soak. ``soak`` is its record, ``signal`` what ended it."""

    def __init__(
        self,
        soak: Soak,
        results: Path,
        reframe: str,
        judge: Judge,
        say: Callable[[str], object],
        *,
        goes_on: bool,
        until: datetime | None = None,
    ) -> None:
        """Take up a soak.

        :param reframe: the command.
        :param say: called with a line on each round.
        :param goes_on: whether evidence of hardware does not end it.
        :param until: the end of the allocation; no round begins that would go beyond.
        """
        self.soak, self.results = soak, results
        self.signal: int | None = None
        self._reframe, self._judge, self._say = reframe, judge, say
        self._goes_on, self._failed = goes_on, 0
        self._ends = None if until is None else time.monotonic() + _seconds_to(until)

    def run(self) -> None:
        """Run rounds until the hours have passed, or something ends them.

        :raises NotFoundError: when the record of a round cannot be written; the others stay.
        """
        with processes.signals_taken(self._taken):
            while self.soak.ended is None and self.soak.hours < self.soak.plan.hours:
                self._round()

    def _taken(self, number: int, _frame: object) -> None:
        self.signal = number

    def _next_phase(self) -> Phase:
        """Return what comes next."""
        plan = self.soak.plan
        since = 0
        for each in reversed(self.soak.rounds):
            if each.phase == "quiet":
                break
            since += 1
        else:
            return "load" if plan.quiet_set is None else "quiet"
        due = plan.quiet_every > 0 and since >= plan.quiet_every
        return "quiet" if due and plan.quiet_set is not None else "load"

    def _round(self) -> None:
        phase = self._next_phase()
        length_s = 60 * self.soak.plan.round_minutes + BESIDE_S
        if self._ends is not None and time.monotonic() + length_s > self._ends:
            self._end("the allocation ends before another round would")
            return
        last = self.soak.rounds[-1].number if self.soak.rounds else 0
        name = soaks.session_name(self.soak.name, last + 1)
        results = self._measured_before(name)
        if results is None:
            self._session(name, phase)
            if self.signal is not None:
                self._end(f"{signal.Signals(self.signal).name} ended it")
                return
            results = _results_of(name)
        self._add(name, phase, results)

    def _measured_before(self, name: str) -> Results | None:
        """Return the session of a round that ended when the soak was killed, before its record.

        One that a signal ended as well is measured again.
        """
        results = _results_of(name) if self.soak.rounds else None
        if results is None or results.session is None:
            return None
        if any(case.result == ABORTED for case in results.session.cases):
            return None
        return results

    def _session(self, name: str, phase: Phase) -> None:
        """Run a session until it ends by itself or by a signal."""
        plan = self.soak.plan
        chosen = [f"--mode={plan.quiet_set}"]
        if phase == "load":
            chosen = ["--mode=soak", "-S", f"load_s={60 * plan.round_minutes:g}"]
        environment = {
            **os.environ,
            ENV_RESULTS: str(self.results),
            marking.ENV_SESSION: name,
            # Each round of a simulated node has other noise.
            _SEED: str(int(os.environ.get(_SEED) or 1) + len(self.soak.rounds)),
            ENV_SIMULATED_CLOCK: f"{3600 * self.soak.hours:.3f}",
            # ReFrame's own database would grow with every round.
            "RFM_ENABLE_RESULTS_STORAGE": "n",
        }
        command = [self._reframe, "--nocolor", "-r", *chosen, *plan.arguments]
        process = sessions.start(command, environment, self._log)
        if not sessions.wait(process, lambda: self.signal is not None):
            sessions.end(process)
        if process.returncode == EXIT_NODE_OPEN:
            self._end("another session measures the node")

    @property
    def _log(self) -> Path:
        """What the last session printed."""
        return self.results / f"{self.soak.name}.log"

    def _last_line(self) -> str:
        """Return the last line that a session printed, behind a colon; empty without one."""
        return f": {sessions.last_words(self._log)}" if self._log.exists() else ""

    def _add(self, name: str, phase: Phase, results: Results | None) -> None:
        """Add the record of a round, and delete what need not be left of others."""
        if results is None or not list(results.checks):
            round_ = self._without_checks(name, phase)
        else:
            measured = soaks.measured(results, self.soak, phase, name)
            round_ = measured.model_copy(update={"findings": list(self._judge(results))})
        self.soak = replace(self.soak, rounds=(*self.soak.rounds, round_))
        self._failed = self._failed + 1 if round_.problem is not None else 0
        if self._failed >= MOST_FAILED:
            self._end(f"{MOST_FAILED} sessions measured nothing, the last as {round_.problem}")
        if any(each.positive for each in round_.findings) and not self._goes_on:
            self._end("a round has evidence of a fault of hardware")
        if results is not None:
            self._write(results, round_)
        self._prune()
        self._say(_line(self.soak, round_))

    def _without_checks(self, name: str, phase: Phase) -> Round:
        """Return the round of a session that ended before a check."""
        return Round(
            soak=self.soak.name,
            plan=self.soak.plan,
            phase=phase,
            session=name,
            began=datetime.now().astimezone(),
            began_h=self.soak.hours,
            took_s=0,
            problem=f"its session ran no check{self._last_line()}",
        )

    def _write(self, results: Results, round_: Round) -> None:
        """Write the record of a round beside what else its session left."""
        for outputs in results.sources[0].session.outputs[:1]:
            outputs.mkdir(parents=True, exist_ok=True)
            soaks.write(outputs, round_.model_copy(update={"ended": self.soak.ended}))

    def _end(self, why: str) -> None:
        self.soak = replace(self.soak, ended=why)

    def _prune(self) -> None:
        """Delete the files of sessions whose record is enough."""
        whole = left_whole(self.soak)
        delete_sessions(self.results, {each.session for each in self.soak.rounds} - whole)


def left_whole(soak: Soak) -> set[str]:
    """Return the sessions whose files are left: the first and the last of each phase, the worst
    round of load, and those with findings.
    """
    whole: set[str] = set()
    for phase in ("load", "quiet"):
        rounds = [each for each in soak.rounds if each.phase == phase]
        whole.update(each.session for each in [*rounds[:1], *rounds[-1:]])
    load = soak.of_phase("load")
    if load:
        whole.add(min(load, key=lambda each: _part_of_first(soak, each, load[0])).session)
    with_findings = [each for each in soak.rounds if each.findings or each.wrong or each.problem]
    whole.update(each.session for each in with_findings[:MOST_WHOLE])
    return whole


def _part_of_first(soak: Soak, each: Round, first: Round) -> float:
    """Return the worst member of a round relative to the first one."""
    parts = [1.0]
    for name, value in each.values.items():
        start = first.values.get(name)
        if start is None or start.middle <= 0 or value.middle <= 0:
            continue
        ratio = value.middle / start.middle
        parts.append(ratio if soak.members[name].better == "higher" else 1 / ratio)
    return min(parts)


def delete_sessions(results: Path, names: Collection[str]) -> None:
    """Delete the marks of sessions that were given names, and their files but for the record."""
    folder = ResultsFolder(results)
    for session in folder.sessions:
        mark = folder.mark(session)
        if mark is None or mark.name not in names:
            continue
        for path in _files_of(session, results):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        (results / marking.FOLDER / f"{mark.number:06}.json").unlink(missing_ok=True)


def _files_of(session: Session, results: Path) -> Iterator[Path]:
    if session.report is not None:
        yield session.report
    yield results / "logs" / f"reframe-{session.stamp}.log"
    for outputs in session.outputs:
        yield results / "stage" / outputs.name
        if outputs.is_dir():
            yield from (path for path in outputs.iterdir() if path.name != soaks.NAME)


def _results_of(name: str) -> Results | None:
    """Return the session of a name; None where there is none that can be read."""
    try:
        return reading.read([name])
    except (FabricheckError, NotFoundError):
        return None


def is_name(text: str) -> bool:
    """Whether a text can name a soak, and with a number each of its sessions."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,50}", text) is not None


def end_of_allocation(environment: Mapping[str, str]) -> datetime | None:
    """Return when the allocation around this process ends; None without one, or without an end."""
    row = table.around(environment)
    ends = None if row is None else row.ends(environment)
    return None if ends is None else ends.astimezone()


def _seconds_to(moment: datetime) -> float:
    return (moment - datetime.now(moment.tzinfo)).total_seconds()


def _line(soak: Soak, round_: Round) -> str:
    what = "under load" if round_.phase == "load" else "quiet"
    worst = [finding.status for finding in round_.findings]
    status = round_.problem or (", ".join(dict.fromkeys(worst)) or "nothing wrong")
    return f"{soak.hours:.2f} of {soak.plan.hours:g} h: {round_.session}, {what}: {status}"
