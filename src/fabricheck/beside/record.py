"""Runs of the rounds: each launch has its own time limit, and a failure is a result too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from fabricheck.beside import launches, table
from fabricheck.beside.launches import COMPARISONS, TOOLS, Command
from fabricheck.beside.table import (
    Failure,
    LaunchRecord,
    Manifest,
    OurOutput,
    devices_of,
    read_printed,
)
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError, UsageError
from fabricheck.node import products
from fabricheck.results.model import ResultDocument
from fabricheck.tools.runner import (
    SEVERITY,
    Ended,
    EndedBadly,
    Interrupted,
    TimeLimit,
    signals,
    start,
    text_of,
    worst,
)

Say = Callable[[str], None]


class NotKept(FabricheckError):
    """The manifest cannot be written; some or all failures before it are then in no file."""

    def __init__(self, error: FabricheckError, what: str, failures: Sequence[Failure]) -> None:
        super().__init__(f"{str(error).rstrip('.')}: {what}.")
        self.exit_code, self.failures = error.exit_code, tuple(failures)


def record(
    folder: Path,
    programs: Path,
    tools: Mapping[str, Path],
    rounds: int,
    limit_s: float,
    say: Say = lambda sentence: None,
) -> Manifest:
    """Run all rounds, and leave outputs and manifest in a folder.

    The manifest is written before the first launch and after each, so that an interruption keeps
    everything before it. Without a manifest nothing is left in the folder.

    :param folder: empty or not yet existing.
    :param programs: the folder of our programs.
    :param tools: the executables of the tools.
    :param limit_s: for all rounds together, in s.
    :param say: receives a line about each launch.
    :raises UsageError: when the folder is not empty, or our programs simulate.
    :raises NotFoundError: when an executable is missing, or cannot be executed.
    :raises NotKept: when the manifest cannot be written; the previous one stays.
    :raises FabricheckError: when the devices cannot be determined.
    """
    _require(programs, tools)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = list(folder.iterdir())
    except OSError as error:
        raise NotFoundError(f"{folder} cannot be created or read ({error.strerror}).") from None
    if entries:
        raise UsageError(f"{folder} is not empty, and recorded rounds are never overwritten.")
    run, end = None, None
    try:
        with signals():
            run = _Rounds(folder, programs, tools, rounds, limit_s, say)
            run.all()
    except Interrupted as interrupted:
        end = interrupted.number
    finally:
        if not (folder / table.FILE).exists():
            for file in folder.glob("facts-0.*"):
                file.unlink()
    if run is None:
        assert end is not None
        raise EndedBadly(_ended_by(end), 128 + end)
    return run.finish(end)


def exit_code(manifest: Manifest) -> int:
    """Return the exit code: 0 when no launch failed."""
    if manifest.signal is not None:
        return 128 + manifest.signal
    return worst(failure.code for failure in manifest.failures)


def _ended_by(number: int) -> str:
    return f"Signal {number} ended the rounds."


def _require(programs: Path, tools: Mapping[str, Path]) -> None:
    needed = [programs / name for name in ("stream", "memcpy", "p2p")]
    for path in (*needed, *tools.values()):
        if not path.is_file():
            raise NotFoundError(f"There is no program {path}.")
        if not os.access(path, os.X_OK):
            raise NotFoundError(f"The program {path} cannot be executed.")


class _Rounds:
    def __init__(
        self,
        folder: Path,
        programs: Path,
        tools: Mapping[str, Path],
        rounds: int,
        limit_s: float,
        say: Say,
    ) -> None:
        self.folder, self.programs = folder.resolve(), programs
        self.limit_s, self.say = limit_s, say
        self.began = time.monotonic()
        started = _now()
        document = self._facts()
        count = len(document["devices"])
        runtime = document["program"]["runtime"]
        left_out = {
            tool.title: "not given"
            for name, tool in TOOLS.items()
            if name not in tools and runtime in tool.runtimes
        }
        left_out |= {
            TOOLS[name].title: f"our programs are of {runtime}"
            for name in tools
            if runtime not in TOOLS[name].runtimes
        }
        left_out |= {
            TOOLS[name].title: "there is only one device"
            for name in tools
            if count < TOOLS[name].fewest_devices
        }
        shape = products.kernel_shape(products.label(document["devices"][0]))
        self.commands = launches.ours(programs, count, runtime, shape)
        for name, path in tools.items():
            if TOOLS[name].title not in left_out:
                self.commands += launches.theirs(name, path, count)
        program = document["program"]
        self.manifest = Manifest(
            started=started,
            rounds=rounds,
            runtime=cast(Literal["cuda", "rocm"], runtime),
            devices=devices_of(document),
            versions={
                "fabricheck": f"{program['version']} (commit {program['commit']}, "
                f"runtime {program['runtime']})",
                "runtime": document["versions"]["runtime"],
                "driver": document["versions"]["driver"],
            },
            left_out=left_out,
            planned=tuple(command.name for command in self.commands),
        )
        table.save(self.folder, self.manifest)
        for name, why in left_out.items():
            say(f"{name} is left out: {why}")

    def _facts(self) -> ResultDocument:
        command = launches.facts(self.programs)
        limit_s = self._limit(command)
        self._require_good(command, self._start(command, limit_s), limit_s)
        document = OurOutput(self.folder / command.output, command.name).document
        path = self.programs / "stream"
        if document["clock"] != "measured":
            raise UsageError(f"{path} simulates, but the third-party tools measure.")
        if document["program"]["runtime"] not in COMPARISONS:
            raise UsageError(f"{path} has no devices, which the third-party tools measure.")
        return document

    def all(self) -> None:
        rounds = self.manifest.rounds
        for number in range(1, rounds + 1):
            ordered = launches.order(self.commands, number)
            for position, command in enumerate(ordered, 1):
                launched = f"[round {number}/{rounds}, {position}/{len(ordered)}] {command.name}"
                launch = self._launch(replace(command, round=number))
                # A signal from here on finds this launch in the manifest.
                with signals.held():
                    self._keep(launch)
                how = launch.failure.sentence if launch.failure else "good"
                self.say(f"{launched}: {how} ({launch.seconds:.1f} s)")
                if launch.interrupted:
                    return

    def _launch(self, command: Command) -> LaunchRecord:
        failure, ended = None, Ended(None, 0.0)
        began = time.monotonic()
        try:
            limit_s = self._limit(command)
            ended = self._start(command, limit_s)
            self._require_good(command, ended, limit_s)
            self._read(command)
        except FabricheckError as error:
            sentence = " ".join(str(error).split())
            # Also if a tool, or its loader, prints its own path.
            for folder in (self.folder, command.executable.resolve().parent):
                sentence = sentence.replace(f"{folder}/", "")
            failure = Failure(code=error.exit_code, sentence=sentence)
        except Interrupted as end:
            ended = Ended(None, time.monotonic() - began)
            sentence = f"{command.output}: {_ended_by(end.number)}"
            failure = Failure(code=128 + end.number, sentence=sentence)
        return LaunchRecord(
            round=command.round,
            name=command.name,
            tool=command.tool,
            command=command.line,
            output=command.output,
            exit_code=ended.code,
            seconds=round(ended.seconds, 3),
            failure=failure,
        )

    def _limit(self, command: Command) -> float:
        left = self.limit_s - (time.monotonic() - self.began)
        if left <= 0:
            limit = f"the limit of {self.limit_s:g} s for all rounds passed before it"
            raise TimeLimit(f"{command.output}: {limit}.")
        return min(command.limit_s, left)

    def _files(self, command: Command) -> tuple[Path, Path, Path]:
        """Return the files of output, of printed text (the same for a tool), and of errors."""
        output = self.folder / command.output
        printed = output.with_suffix(".out") if command.tool is None else output
        return output, printed, output.with_suffix(".err")

    def _start(self, command: Command, limit_s: float) -> Ended:
        output, printed, errors = self._files(command)
        # Run in the folder, with names without folders, so that documents contain no paths.
        line = [str(command.executable.resolve()), *command.words]
        try:
            environment = {**os.environ, **command.environment}
            return start(line, printed, errors, limit_s, self.folder, environment)
        except OSError as error:
            what = Path(error.filename or command.executable).name
            reason = f"{what} cannot be written or started ({error.strerror})"
            raise InvalidInputError(f"{output}: {reason}.") from None
        finally:
            for file in (printed, errors):
                if file != output and file.exists() and not file.stat().st_size:
                    file.unlink()

    def _require_good(self, command: Command, ended: Ended, limit_s: float) -> None:
        output, printed, errors = self._files(command)
        if ended.code and command.tool is None and output.exists():
            # Its document states the reason in one sentence.
            try:
                OurOutput(output, command.name)
            except FabricheckError as error:
                code = ended.code if ended.code in SEVERITY else error.exit_code
                raise EndedBadly(str(error), code) from None
        ended.require_good(f"{output}: it", limit_s, text_of(errors), text_of(printed))

    def _read(self, command: Command) -> None:
        output = self.folder / command.output
        if not output.exists():
            raise InvalidInputError(f"{output}: it succeeded but left no result document.")
        if command.tool is None:
            OurOutput(output, command.name).check(self.manifest.devices, self.manifest.runtime)
            return
        printed = read_printed(output, command.tool, command.name, self.manifest.devices)
        if printed.version is not None:
            self.manifest.versions[TOOLS[command.tool].title] = printed.version

    def _keep(self, launch: LaunchRecord) -> None:
        self.manifest.launches.append(launch)
        if launch.failure is not None:
            self.manifest.failures.append(launch.failure)
        self._save(f"{launch.name} of round {launch.round} is missing from it")

    def _save(self, what: str) -> None:
        try:
            table.save(self.folder, self.manifest)
        except FabricheckError as error:
            raise NotKept(error, what, self.manifest.failures) from None

    def finish(self, end: int | None) -> Manifest:
        """Write the end of the rounds: the date, or the signal `end` between two launches."""
        if end is not None:
            self.manifest.failures.append(Failure(code=128 + end, sentence=_ended_by(end)))
        if self.manifest.signal is None:
            self.manifest.finished = _now()
        self._save("it does not state how the rounds ended")
        return self.manifest


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
