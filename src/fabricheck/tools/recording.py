"""Running the launches of a plan, and the result document of what they gave."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from fabricheck.core.errors import (
    FabricheckError,
    InvalidInputError,
    NoDeviceSupport,
    WrongDataError,
)
from fabricheck.core.vocabulary import EXIT_CODE, STATUS_OF_EXIT, UNKNOWN, Status
from fabricheck.results import document
from fabricheck.results.model import ResultDocument, Series
from fabricheck.tools import series
from fabricheck.tools.mpi_version import mpi_version
from fabricheck.tools.plan import FACTS, Launch, Plan
from fabricheck.tools.starting import Ended, Interrupted, signals, start
from fabricheck.tools.topology.host import describe_host

#: Of several failures the first of these decides how the run ended.
_WEIGHT: tuple[Status, ...] = (
    *("wrong-data", "time-limit", "unsupported", "runtime-error", "usage"),
)

#: Sentences of failed launches in the outcome; a broken node fails all of them.
MOST_SENTENCES = 6

#: What a tool says that was built without what it is asked for; OSU takes -d only where it has any.
_NOT_BUILT_FOR = ("Invalid option [-d]", "Support Not Enabled")


class TimeLimit(FabricheckError):
    """A launch did not end within its time."""

    exit_code = EXIT_CODE["time-limit"]


@dataclass
class Gathered:
    """What the launches of a plan gave until now."""

    series: list[Series] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    failures: list[FabricheckError] = field(default_factory=list)
    ran: list[dict[str, Any]] = field(default_factory=list)


def record(
    plan: Plan, output: Path, limit_s: float, say: Callable[[str], None] = lambda sentence: None
) -> ResultDocument:
    """Run what a plan says in the folder of the output, and write the document, also of a failure.

    The launches go on after one that failed, so that a document says all that is wrong with a node.
    While they run the document has the name ``OUTPUT.partial``.

    :param limit_s: for all of it, in s.
    :param say: is told of each launch.
    :raises NotFoundError: when the document can not be written.
    """
    run = _Run(plan, output, limit_s, say)
    with signals():
        try:
            run.all()
        except FabricheckError as error:
            run.gathered.failures.append(error)
        except Interrupted as end:
            return run.write(128 + end.number)
    return run.write()


class _Run:
    def __init__(
        self, plan: Plan, output: Path, limit_s: float, say: Callable[[str], None]
    ) -> None:
        self.plan, self.output, self.limit_s, self.say = plan, output, limit_s, say
        self.folder = output.resolve().parent
        self.began = time.monotonic()
        self.started = _now()
        self.facts: ResultDocument | None = None
        self.mpi: str | None = None
        self.gathered = Gathered()

    def all(self) -> None:
        self.facts = self._facts()
        if self.plan.mpi_program is not None:
            self.mpi = mpi_version(Path(self.plan.mpi_program))
        for number, launch in enumerate(self.plan.launches, 1):
            said = f"[{number}/{len(self.plan.launches)}] {launch.what}"
            if self._left() <= 0:
                raise TimeLimit(
                    f"The time limit of {self.limit_s:g} s was over before {launch.what}."
                )
            try:
                self.say(f"{said}: {_values(self._launch(launch))}")
            except FabricheckError as error:
                self.gathered.failures.append(error)
                self.say(f"{said}: {error}")
            self._partial()

    def _left(self) -> float:
        return self.limit_s - (time.monotonic() - self.began)

    def _facts(self) -> ResultDocument:
        path = self.folder / FACTS
        path.unlink(missing_ok=True)
        ended = self._start(self.plan.facts, "facts", min(60.0, self._left()))
        why = _last_line(self.folder / "facts.err", self.folder / "facts.out")
        program = "The program that tells what the node is"
        if ended.code is None:
            raise TimeLimit(f"{program} did not end: {self.plan.facts}")
        if ended.code != 0:
            raise InvalidInputError(f"{program} ended with exit code {ended.code}: {why}")
        return document.load(path)

    def _launch(self, launch: Launch) -> tuple[Series, ...]:
        assert self.facts is not None
        limit = min(launch.limit_s, self._left())
        ended = self._start(launch.command, launch.name, limit)
        self.gathered.ran.append(
            {
                "name": launch.name,
                "command": launch.command,
                "exit_code": ended.code,
                "seconds": round(ended.seconds, 3),
            }
        )
        if ended.code is None:
            raise TimeLimit(f"{launch.origin}: it did not end within {limit:.3g} s.")
        out, err = (self.folder / f"{launch.name}.{kind}" for kind in ("out", "err"))
        text = out.read_text(encoding="utf-8", errors="replace")
        if ended.code != 0:
            raise self._failed(launch, ended.code, text, _last_line(err, out))
        if self.plan.accelerator is not None and _no_local_rank(err):
            reason = f"{launch.program} found no local rank, so that all ranks took one device"
            raise NoDeviceSupport(launch.origin, None, reason)
        found = series.read(self.plan, launch, text, self.facts, launch.origin)
        self._same_versions(found.versions, launch.origin)
        self.gathered.series += found.series
        return found.series

    def _failed(self, launch: Launch, code: int, text: str, why: str) -> FabricheckError:
        assert self.facts is not None
        origin = launch.origin
        try:
            # A tool that found wrong data says so and ends badly: that outweighs its exit code.
            series.read(self.plan, launch, text, self.facts, origin)
        except WrongDataError as error:
            return error
        except FabricheckError:
            pass
        if any(words in text or words in why for words in _NOT_BUILT_FOR):
            reason = f"{launch.program} was built without support for {self.plan.accelerator}"
            return NoDeviceSupport(origin, None, reason)
        signalled = f"was ended by signal {code - 128}"
        ended = signalled if code > 128 else f"ended with exit code {code}"
        return InvalidInputError(f"{origin}: it {ended}: {why}")

    def _same_versions(self, found: Any, origin: str) -> None:
        for name, version in found.items():
            known = self.gathered.versions.setdefault(name, version)
            if known != version:
                raise InvalidInputError(
                    f"{origin}: {name} is of version {version}, and of {known} in other launches."
                )

    def _start(self, command: str, name: str, limit_s: float) -> Ended:
        out, err = (self.folder / f"{name}.{kind}" for kind in ("out", "err"))
        return start(["/bin/sh", "-c", command], out, err, limit_s)

    def _partial(self) -> None:
        content = self._content()
        content |= {"complete": False, "finished": None}
        content["outcome"] = {"exit_code": None, "status": "running", "message": None}
        self._path().write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def _path(self) -> Path:
        return self.output.with_name(f"{self.output.name}.partial")

    def write(self, signalled: int | None = None) -> ResultDocument:
        content = self._content()
        node = content["host"]["hostname"]
        content["outcome"] = outcome = _outcome(self.gathered.failures, signalled, node)
        content["complete"] = outcome["status"] in ("good", "wrong-data")
        text = json.dumps(content, indent=1) + "\n"
        checked = document.parse(text, self.output)
        partial = self._path()
        partial.write_text(text, encoding="utf-8")
        partial.replace(self.output)
        return checked

    def _content(self) -> dict[str, Any]:
        facts: dict[str, Any] = cast(dict[str, Any], self.facts) or _without_facts()
        told = self.gathered.versions
        versions = dict(facts["versions"])
        versions |= {"mpi": self.mpi} if self.mpi is not None else {}
        versions |= {"rccl": told["rccl"]} if "rccl" in told else {}
        program = facts["program"]
        return {
            "schema": document.SCHEMA_NAME,
            "schema_version": document.SCHEMA_VERSION,
            "complete": True,
            "program": {
                "name": self.plan.tool,
                "version": told.get("osu") or told.get("tests", UNKNOWN).split(" ")[-1],
                "commit": UNKNOWN,
                "runtime": program["runtime"],
                "compiler": UNKNOWN,
            },
            "clock": facts["clock"],
            "node": facts.get("node"),
            "started": self.started,
            "finished": _now(),
            "duration_s": time.monotonic() - self.began,
            "host": facts["host"],
            "devices": facts["devices"],
            "versions": versions,
            "environment": facts["environment"],
            "settings": facts.get("settings", []),
            "arguments": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "options": {
                "tool": self.plan.tool,
                "buffers": self.plan.buffers,
                "time_limit_s": self.limit_s,
                "launches": self.gathered.ran,
            },
            "faults_injected": [],
            "outcome": {"exit_code": 0, "status": "good", "message": None},
            "series": self.gathered.series,
            "notes": list(self._notes()),
        }

    def _notes(self) -> Iterator[str]:
        if self.facts is None:
            yield "no program told what the node is: the host is the one that started the launches"
        else:
            name = self.facts["program"]["name"]
            yield f"host, devices, environment and versions are as {name} tells them (facts.json)"
        yield "a sample is the mean that the tool reports; it tells no interval"
        if self.plan.buffers == "host":
            yield "the messages lie in host memory, and no device has a part in them"
        if self.facts is not None and self.facts["clock"] == "simulated":
            yield "the messages are simulated as between the devices whose hosts the ranks are on"
        if self.plan.tool == "osu":
            yield "the data were compared in runs of their own (-c), not in those that are timed"


def _without_facts() -> dict[str, Any]:
    return {
        "program": {"runtime": "host"},
        "clock": "measured",
        "host": describe_host(),
        "devices": [],
        "versions": {"runtime": UNKNOWN, "driver": UNKNOWN},
        "environment": {},
    }


def _outcome(failures: list[FabricheckError], signalled: int | None, node: str) -> dict[str, Any]:
    if signalled is not None:
        message = f"The run was ended by signal {signalled - 128}."
        return {"exit_code": signalled, "status": "interrupted", "message": message}
    if not failures:
        return {"exit_code": 0, "status": "good", "message": None}
    status = min((STATUS_OF_EXIT[one.exit_code] for one in failures), key=_WEIGHT.index)
    code = EXIT_CODE[status]
    ordered = sorted(failures, key=lambda one: one.exit_code != code)
    said = [" ".join(str(one).split()) for one in ordered[:MOST_SENTENCES]]
    more = len(failures) - len(said)
    said += [f"And {more} more."] if more else []
    message = f"Node {node}: {' '.join(said)}"
    return {"exit_code": code, "status": status, "message": message}


def _values(found: tuple[Series, ...]) -> str:
    if not found:
        return "verified"
    shown = [found[0], found[-1]] if len(found) > 1 else [found[0]]
    return ", ".join(f"{one['bytes']} B {one['median']:g} {one['unit']}" for one in shown)


def _last_line(*files: Path) -> str:
    """Return the last words of a program, from the first file that has any.

    Open MPI frames what it says last by lines of hyphens: then all that stands between them.
    """
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        framed = bool(lines) and not lines[-1].strip("-")
        while lines and not lines[-1].strip("-"):
            lines.pop()
        if not lines:
            continue
        above = [i for i, line in enumerate(lines) if not line.strip("-")] if framed else []
        first = above[-1] + 1 if above else len(lines) - 1
        return " ".join(lines[first:])[:200]
    return "it said nothing."


def _no_local_rank(err: Path) -> bool:
    text = err.read_text(encoding="utf-8", errors="replace")
    return "could not identify the local rank" in text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
