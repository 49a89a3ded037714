"""ReFrame as a subprocess with this repository's settings, and a stand-in for the program."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import reframe
from reframe.core import decorators, runtime
from reframe.core.logging import LoggerAdapter
from reframe.frontend import cli
from reframe.frontend.executors import policies
from reframe.utility import osext

from fabricheck.references.entries import formatted
from fabricheck.references.stated import References
from fabricheck.rfm import gitlab, node_lock
from fabricheck.site import partitions, sites

# What is imported while a test has another checkout.ROOT keeps that one.
assert gitlab and sites

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tests" / "rfm"
OWN_CHECKS = ROOT / "reframe_checks"
FAKES = {
    "stream": HERE / "fake_stream.py",
    "memcpy": HERE / "fake_copies.py",
    "managed": HERE / "fake_copies.py",
}

#: The checks of local:host without MPI, which is the partition of a suite unless it says otherwise.
TOPICS = ("build", "memcpy", "stream")


@dataclass(repr=False)
class Outcome:
    """How one call of reframe ended."""

    status: int
    text: str

    def __repr__(self) -> str:
        """Show the text as it was printed when an assertion fails."""
        return f"<status {self.status}>\n{self.text}"

    def __contains__(self, sentence: str) -> bool:
        """Look for a sentence whose line breaks do not matter."""
        return " ".join(sentence.split()) in " ".join(self.text.split())

    def lines_with(self, part: str) -> list[str]:
        """Return the lines that have this part, each once."""
        lines = [line.strip() for line in self.text.splitlines() if part in line]
        return list(dict.fromkeys(lines))

    @property
    def reasons(self) -> list[str]:
        """Return why checks failed or were left out; a dry run leaves no report that says it."""
        skipped = re.findall(r"^\[ +SKIP \].*? \[(.*)\]$", self.text, re.MULTILINE)
        failed = re.findall(r"^  \* Reason: (.*?)\n---", self.text, re.DOTALL | re.MULTILINE)
        return list(dict.fromkeys([*skipped, *failed]))


def _unsaid(*_: object, **__: object) -> None:
    """Log nothing."""


def _snooze(polling: Any, snooze: Any = policies._PollController.snooze) -> None:
    """Pause as ReFrame does, but for at most 20 ms: a stand-in ends sooner than a program."""
    polling._desired_poll_rate = max(50, polling._desired_poll_rate)
    snooze(polling)


def _end_drawing() -> None:
    """End the process that draws figures, if there is one: a session waits for all children."""
    figure = sys.modules.get("fabricheck.report.figure")
    if figure is not None and figure._pen.cache_info().currsize:
        figure._pen().shutdown()
        figure._pen.cache_clear()


def _asking_srun_once(run_command: Callable[..., Any]) -> Callable[..., Any]:
    """Return ReFrame's starter of commands, by which each launcher asks srun for its version.

    Nothing changes it within a session: what it said, or that it cannot be started, stays so.
    """
    answers: list[Any] = []

    def run(command: str, *arguments: Any, **options: Any) -> Any:
        if command != "srun --version":
            return run_command(command, *arguments, **options)
        if not answers:
            try:
                answers.append(run_command(command, *arguments, **options))
            except Exception as error:
                answers.append(error)
        (answer,) = answers
        if isinstance(answer, Exception):
            raise answer
        return answer

    return run


def _validate(content: Any, schema: Any) -> None:
    """Do as jsonschema.validate; that ReFrame's own schema is one need not be asked each time."""
    validator = jsonschema.validators.validator_for(schema)(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(content))
    if error is not None:
        raise error


def _noting(set_variables: Callable[..., Any], noted: list[Any]) -> Callable[..., Any]:
    """Return ReFrame's setter of variables of checks, by -S or for a dry run; it notes whose."""

    def noting(registry: Any, variables: Any) -> Any:
        if variables:
            noted.append(registry)
        return set_variables(registry, variables)

    return noting


def _forget(changed: bool) -> None:
    """Forget the settings and the check files that ReFrame imported.

    The repository's own checks stay unless their variables changed: they have nothing else that is
    of a session, and importing them anew takes a quarter of it.
    """
    for name in [name for name in sys.modules if "@" in name]:
        file = sys.modules[name].__file__
        if changed or file is None or not Path(file).is_relative_to(OWN_CHECKS):
            del sys.modules[name]


@contextlib.contextmanager
def _working_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Suite:
    """This repository's suite with its own folders for programs, checks, references and results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.programs = folder / "bin"
        self.config = ROOT / "config"
        self.checks: Path | None = OWN_CHECKS
        #: The folders of checks that are loaded, which takes half of a session; all if empty.
        self.topics: Sequence[str] = TOPICS
        self.log = folder / "fake.log"
        # The stand-ins are of programs of one process; who has those of ranks says so.
        # Each virtual device is measured where their number is asked for (config/sites/local.py).
        self.variables: dict[str, str] = {"FABRICHECK_MPI": "OFF", "FABRICHECK_HOST_DEVICES": "2"}
        self.programs.mkdir()
        for name, fake in FAKES.items():
            program = self.programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{fake}" "$@"\n')
            program.chmod(0o755)

    def own_checks(self) -> Path:
        """Let the suite use a copy of the checks, to be changed by the test."""
        self.checks = self.folder / "reframe_checks"
        shutil.copytree(OWN_CHECKS, self.checks, ignore=shutil.ignore_patterns("__pycache__"))
        return self.checks

    def own_settings(self, site: str, old: str, new: str) -> None:
        """Let the suite use a copy of the configuration, with one text in one site replaced."""
        self.config = self.folder / "config"
        shutil.copytree(ROOT / "config", self.config, ignore=shutil.ignore_patterns("__pycache__"))
        file = self.config / "sites" / site
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        self.variables["RFM_REFERENCE_PREFIX"] = str(ROOT / "reference_values")

    def own_site(self, site: Path) -> None:
        """Let the suite use a copy of the configuration with one more site file."""
        self.config = self.folder / "config"
        shutil.copytree(ROOT / "config", self.config, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(site, self.config / "sites")

    def own_references(self) -> Path:
        """Let the suite use a copy of the references; return that of stream, a line a metric."""
        folder = self.folder / "references"
        shutil.copytree(ROOT / "reference_values", folder)
        self.variables["RFM_REFERENCE_PREFIX"] = str(folder)
        file, found = folder / "stream.yaml", References(folder)
        lines = []
        for check in [one for one, name in found.file_of.items() if name == file.name]:
            lines.append(f"{check}:\n")
            for key, entries in found.tables[check].items():
                lines.append(f"  {key}:\n")
                lines += [
                    f"    {metric}: {formatted(entry)}\n" for metric, entry in entries.items()
                ]
        file.write_text("".join(lines))
        return file

    def __call__(self, *arguments: str, fault: str = "", checks: Path | None = None) -> Outcome:
        """Call reframe in this process, as its own unit tests do: quicker, and coverage sees it."""
        kept = dict(os.environ)
        signals = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
        environment = self.environment(fault)
        out = io.StringIO()
        status: object = None
        changed: list[Any] = []
        with (
            mock.patch.object(sys, "argv", self._command(checks, arguments)),
            mock.patch.object(runtime, "_runtime_context", None),
            # The stand-in measures nothing, so a session elsewhere on this machine may.
            mock.patch.multiple(
                node_lock,
                LOCK_FOLDERS=(self.programs,),
                open_of_the_machine=lambda: os.open(self.programs, os.O_RDONLY),
            ),
            mock.patch.object(policies._PollController, "snooze", _snooze),
            # Of the log nobody reads these lines, and they take a third of a dry run.
            mock.patch.multiple(LoggerAdapter, debug=_unsaid, debug2=_unsaid),
            mock.patch.object(jsonschema, "validate", _validate),
            mock.patch.object(decorators, "_setvars", _noting(decorators._setvars, changed)),
            mock.patch.object(osext, "run_command", _asking_srun_once(osext.run_command)),
            _working_folder(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            _end_drawing()
            try:
                os.environ.clear()
                os.environ.update(environment)
                cli.main()
            except SystemExit as end:
                status = end.code
            finally:
                os.environ.clear()
                os.environ.update(kept)
                for number, handler in signals.items():
                    signal.signal(number, handler)
                # Sites depend on the environment.
                partitions.known_sites.cache_clear()
                partitions.read_site.cache_clear()
                _forget(bool(changed))
        assert isinstance(status, int)
        return Outcome(status, out.getvalue())

    def shell(self, *arguments: str, fault: str = "", checks: Path | None = None) -> Outcome:
        """Call the command reframe, as a person does."""
        return self.ended(self.start(*arguments, fault=fault, checks=checks))

    def start(
        self,
        *arguments: str,
        fault: str = "",
        checks: Path | None = None,
        inside: Sequence[str] = (),
    ) -> subprocess.Popen[str]:
        """Start the command reframe, inside another command (salloc) where one is given."""
        return subprocess.Popen(
            [*inside, *self._command(checks, arguments)],
            env=self.environment(fault),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @staticmethod
    def ended(run: subprocess.Popen[str]) -> Outcome:
        """Return how a session that was started ended."""
        try:
            text, _ = run.communicate(timeout=600)
        finally:
            run.kill()
        return Outcome(run.returncode, text)

    def _command(self, checks: Path | None, arguments: tuple[str, ...]) -> list[str]:
        reframe = str(Path(sys.executable).with_name("reframe"))
        searched: list[Path] = []
        if checks:
            searched = [checks]
        elif self.checks:
            searched = [self.checks / topic for topic in self.topics] or [self.checks]
        path = [word for one in searched for word in ("-c", str(one))]
        return [reframe, "--nocolor", *path, *arguments]

    def environment(self, fault: str = "") -> dict[str, str]:
        """Return the environment of a session."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RFM_", "FABRICHECK_"))
        }
        return {
            **inherited,
            "RFM_CONFIG_FILES": str(self.config / "settings.py"),
            "RFM_INSTALL_PREFIX": reframe.INSTALL_PREFIX,
            # The partition beside it is simulated by programs that the stand-in does not replace.
            "RFM_SYSTEM": "local:host",
            "FABRICHECK_RESULTS": str(self.results),
            "FABRICHECK_HOST_PROGRAMS": str(self.programs),
            "FAKE_STREAM": fault,
            "FAKE_STREAM_LOG": str(self.log),
            **self.variables,
        }

    def report(self) -> dict:
        """Return the report of the only session."""
        (file,) = (self.results / "reports").glob("run-*.json")
        return json.loads(file.read_text())


def rules_of(verdict: Any) -> list[str]:
    """Return the rules of a verdict's reasons, but for the variable that every suite here sets."""
    return [reason.rule for reason in verdict.reasons if reason.rule != "without-mpi"]
