"""Running the rounds: each launch with a time limit of its own, a failure among results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError, UsageError
from fabricheck.core.vocabulary import EXIT_CODE, Status
from fabricheck.results.model import ResultDocument
from fabricheck.tools.rounds import launches as plan
from fabricheck.tools.rounds import manifest as manifests
from fabricheck.tools.rounds.cases import TOOLS, Tool
from fabricheck.tools.rounds.launches import Launch
from fabricheck.tools.rounds.manifest import Failure, Manifest, Ran
from fabricheck.tools.rounds.reading import OurOutput, ToolOutput, devices_of
from fabricheck.tools.starting import Ended, Interrupted, signals, start

_WORST_FIRST: tuple[Status, ...] = (
    *("wrong-data", "time-limit", "unsupported", "too-noisy", "runtime-error", "usage"),
)
#: Of several failures the first of these decides the exit code.
_WEIGHT = tuple(EXIT_CODE[one] for one in _WORST_FIRST)

#: Exit codes that our programs and this command line share.
_SHARED = frozenset(_WEIGHT)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    programs: folder of our programs; tools: the executables of the others.
    limit_s: for all rounds together, in s.
    """

    programs: Path
    tools: Mapping[Tool, Path]
    rounds: int
    limit_s: float


class _Failed(FabricheckError):
    """A launch gave no result."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = code


class NotKept(FabricheckError):
    """The manifest can not be written; the failures before it are in no file then, or not all."""

    def __init__(self, error: FabricheckError, what: str, failures: Sequence[Failure]) -> None:
        super().__init__(f"{str(error).rstrip('.')}: {what}.")
        self.exit_code, self.failures = error.exit_code, tuple(failures)


def record(asked: Asked, folder: Path, say: Say = lambda sentence: None) -> Manifest:
    """Run all rounds, and leave outputs and manifest in a folder.

    The manifest is written before the first launch and after each, so that what ends this leaves
    all before it. Where there is none nothing is left in the folder.

    :param folder: where there is nothing yet; it is made.
    :param say: is told of each launch.
    :raises UsageError: when the folder holds something, or our programs simulate.
    :raises NotFoundError: when an executable is not there, or can not be executed.
    :raises NotKept: when the manifest can not be written; the one before stays.
    :raises FabricheckError: when even the devices can not be told.
    """
    _require(asked)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = list(folder.iterdir())
    except OSError as error:
        raise NotFoundError(f"{folder} can not be made or read ({error.strerror}).") from None
    if found:
        raise UsageError(f"{folder} is not empty, and recorded rounds are never written over.")
    run, end = None, None
    try:
        with signals():
            run = _Run(asked, folder, say)
            run.all()
    except Interrupted as interrupted:
        end = interrupted.number
    finally:
        if not (folder / manifests.FILE).exists():
            for file in folder.glob("facts-0.*"):
                file.unlink()
    if run is None:
        assert end is not None
        raise _Failed(128 + end, _ended_by(end))
    return run.finish(end)


def exit_code(manifest: Manifest) -> int:
    """Return the exit code of what happened: 0 when no launch failed."""
    codes = [failure.code for failure in manifest.failures]
    ended = [code for code in codes if code > 128]
    if ended:
        return ended[0]
    return min(codes, key=_WEIGHT.index) if codes else 0


def _ended_by(number: int) -> str:
    return f"Signal {number} ended the rounds."


def _require(asked: Asked) -> None:
    if asked.rounds < 1:
        raise UsageError(f"There are no {asked.rounds} rounds.")
    needed = [asked.programs / name for name in ("stream", "memcpy", "p2p")]
    for path in (*needed, *asked.tools.values()):
        if not path.is_file():
            raise NotFoundError(f"There is no program {path}.")
        if not os.access(path, os.X_OK):
            raise NotFoundError(f"The program {path} can not be executed.")


class _Run:
    def __init__(self, asked: Asked, folder: Path, say: Say) -> None:
        self.asked, self.folder, self.say = asked, folder.resolve(), say
        self.began = time.monotonic()
        started = _now()
        document = self._facts()
        self.count = len(document["devices"])
        left_out = {name: "not given" for tool, name in TOOLS.items() if tool not in asked.tools}
        if self.count < 2 and "p2p-test" in asked.tools:
            left_out[TOOLS["p2p-test"]] = "there is one device only"
        self.launches = plan.ours(asked.programs, self.count)
        self.launches += [
            launch
            for tool, path in asked.tools.items()
            if TOOLS[tool] not in left_out
            for launch in plan.theirs(tool, path)
        ]
        program = document["program"]
        self.manifest = Manifest(
            started=started,
            rounds=asked.rounds,
            devices=devices_of(document),
            versions={
                "fabricheck": f"{program['version']} (commit {program['commit']}, "
                f"runtime {program['runtime']})",
                "runtime": document["versions"]["runtime"],
                "driver": document["versions"]["driver"],
            },
            left_out=left_out,
            planned=tuple(launch.name for launch in self.launches),
        )
        manifests.save(self.folder, self.manifest)
        for name, why in left_out.items():
            say(f"{name} is left out: {why}")

    def _facts(self) -> ResultDocument:
        launch = plan.facts(self.asked.programs)
        ended = self._start(launch, 0)
        self._require_good(launch, 0, ended)
        document = OurOutput(self.folder / launch.output(0), launch.name).document
        if document["clock"] != "measured":
            path = self.asked.programs / "stream"
            raise UsageError(f"{path} simulates, and the other tools measure.")
        return document

    def all(self) -> None:
        for number in range(1, self.asked.rounds + 1):
            ordered = plan.order(self.launches, number)
            for position, launch in enumerate(ordered, 1):
                said = (
                    f"[round {number}/{self.asked.rounds}, {position}/{len(ordered)}] {launch.name}"
                )
                ran = self._launch(launch, number)
                # A signal that comes now finds this launch in the manifest.
                with signals.held():
                    self._keep(ran)
                self.say(
                    f"{said}: {ran.failure.sentence if ran.failure else 'good'} "
                    f"({ran.seconds:.1f} s)"
                )
                if ran.interrupted:
                    return

    def _launch(self, launch: Launch, number: int) -> Ran:
        failure, ended = None, Ended(None, 0.0)
        began = time.monotonic()
        try:
            ended = self._start(launch, number)
            self._require_good(launch, number, ended)
            self._read(launch, number)
        except FabricheckError as error:
            sentence = " ".join(str(error).split())
            # Also where a tool, or what loads it, names itself with its folder.
            for folder in (self.folder, launch.executable.resolve().parent):
                sentence = sentence.replace(f"{folder}/", "")
            failure = Failure(code=error.exit_code, sentence=sentence)
        except Interrupted as end:
            ended = Ended(None, time.monotonic() - began)
            sentence = f"{launch.output(number)}: {_ended_by(end.number)}"
            failure = Failure(code=128 + end.number, sentence=sentence)
        return Ran(
            round=number,
            name=launch.name,
            tool=launch.tool,
            command=launch.command(number),
            output=launch.output(number),
            exit_code=ended.code,
            seconds=round(ended.seconds, 3),
            failure=failure,
        )

    def _start(self, launch: Launch, number: int) -> Ended:
        left = self.asked.limit_s - (time.monotonic() - self.began)
        if left <= 0:
            limit = f"the limit of {self.asked.limit_s:g} s for all rounds was over before it"
            raise _Failed(6, f"{launch.output(number)}: {limit}.")
        # Run in the folder, by names without folders: so they stand in the documents.
        command = [str(launch.executable.resolve()), *launch.words(number)]
        output = self.folder / launch.output(number)
        printed = output.with_suffix(".out") if launch.tool is None else output
        errors = output.with_suffix(".err")
        try:
            return start(command, printed, errors, min(launch.limit_s, left), self.folder)
        except OSError as error:
            what = Path(error.filename or launch.executable).name
            reason = f"{what} can not be written or started ({error.strerror})"
            raise InvalidInputError(f"{output}: {reason}.") from None
        finally:
            for file in (printed, errors):
                if file != output and file.exists() and not file.stat().st_size:
                    file.unlink()

    def _require_good(self, launch: Launch, number: int, ended: Ended) -> None:
        if ended.code == 0:
            return
        output = self.folder / launch.output(number)
        if ended.code is None:
            raise _Failed(6, f"{output}: it did not end within {ended.seconds:.3g} s.")
        if launch.tool is None and output.exists():
            # Its document says why, in one sentence.
            try:
                OurOutput(output, launch.name)
            except FabricheckError as error:
                code = ended.code if ended.code in _SHARED else error.exit_code
                raise _Failed(code, str(error)) from None
        how = (
            f"was ended by signal {ended.code - 128}"
            if ended.code > 128
            else f"ended with exit code {ended.code}"
        )
        raise InvalidInputError(f"{output}: it {how}: {self._last_words(output)}.")

    def _last_words(self, output: Path) -> str:
        for file in (output.with_suffix(".err"), output.with_suffix(".out"), output):
            if file.exists() and file.suffix != ".json":
                text = file.read_text(encoding="utf-8", errors="replace")
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                if lines:
                    return lines[-1].rstrip(".")[:200]
        return "it said nothing"

    def _read(self, launch: Launch, number: int) -> None:
        output = self.folder / launch.output(number)
        if not output.exists():
            raise InvalidInputError(f"{output}: it ended well and left no result document.")
        if launch.tool is None:
            OurOutput(output, launch.name).check(self.manifest.devices)
            return
        found = ToolOutput(output, launch.tool, launch.name)
        found.check(output, self.count)
        if found.version is not None:
            versions = self.manifest.versions | {TOOLS[launch.tool]: found.version}
            self.manifest = self.manifest.model_copy(update={"versions": versions})

    def _keep(self, ran: Ran) -> None:
        launches = (*self.manifest.launches, ran)
        self.manifest = self.manifest.model_copy(update={"launches": launches})
        if ran.failure is not None:
            self._failed(ran.failure)
        self._save(f"{ran.name} of round {ran.round} is not in it")

    def _failed(self, failure: Failure) -> None:
        failures = (*self.manifest.failures, failure)
        self.manifest = self.manifest.model_copy(update={"failures": failures})

    def _save(self, what: str) -> None:
        try:
            manifests.save(self.folder, self.manifest)
        except FabricheckError as error:
            raise NotKept(error, what, self.manifest.failures) from None

    def finish(self, end: int | None) -> Manifest:
        """Write the end of the rounds: that signal `end` came between launches, or their date."""
        if end is not None:
            self._failed(Failure(code=128 + end, sentence=_ended_by(end)))
        if self.manifest.signal is None:
            self.manifest = self.manifest.model_copy(update={"finished": _now()})
        self._save("it does not say how the rounds ended")
        return self.manifest


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
