"""Running the launches of a plan, and writing the result document."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from fabricheck.core.errors import (
    FabricheckError,
    InvalidInputError,
    NoDeviceSupport,
    RanksApartError,
    WrongDataError,
)
from fabricheck.core.show import first_of, listed
from fabricheck.core.vocabulary import STATUS_OF_EXIT, UNKNOWN
from fabricheck.core.whole_files import write_whole
from fabricheck.results import document
from fabricheck.results.model import ResultDocument, Series, Snapshot, State
from fabricheck.results.state import changes
from fabricheck.schedulers import table
from fabricheck.tools import benchmarks
from fabricheck.tools.benchmarks import FACTS, FACTS_AFTER, LIBRARY_LOG, Launch, Plan
from fabricheck.tools.runner import (
    Ended,
    Interrupted,
    ProgramFailed,
    TimeLimit,
    last_words,
    output_of,
    recorded_code,
    signals,
    start,
    text_of,
    worst,
)
from fabricheck.tools.topology.recording import empty, now

#: Libraries that contain an MPI: MPICH and its derivatives, Open MPI, and SimGrid's SMPI.
#: Cray MPICH's library for devices (mpi_gtl) contains none.
MPI_LIBRARY = re.compile(
    r"^\s*lib(?:mpi|mpich|mpi_(?!gtl)\w+|simgrid)\.so\S* => (/\S+|not found)", re.MULTILINE
)

#: The suffix of a source that counts from the first snapshot of its run, as `state.cpp` writes it.
FROM_THE_FIRST = "from the snapshot before on"

# MPI allows this one call without MPI_Init. It runs in a process of its own, because a library may
# exit.
_ASK_LIBRARY = """
import ctypes, sys
text, length = ctypes.create_string_buffer(65536), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace").splitlines()[0].strip())
"""

#: Seconds that a question about a library may take.
_ASK_S = 30

#: The most sentences of failed launches in the outcome; on a broken node all launches fail.
MOST_SENTENCES = 6

#: The output of a tool built without a requested feature; OSU accepts -d only with an accelerator.
_NOT_BUILT_FOR = ("Invalid option [-d]", "Support Not Enabled")


def record(
    plan: Plan, output: Path, limit_s: float, say: Callable[[str], None] = lambda sentence: None
) -> ResultDocument:
    """Run the launches of a plan in the folder of the output, and write the document.

    The document is also written after a failed launch, and the other launches still run, so that it
    names everything wrong with a node. While they run, the document is named ``OUTPUT.partial``. If
    the disk is full, the document of the launches before stays.

    :param limit_s: for all launches, in s.
    :param say: receives a line about each launch.
    :raises NotFoundError: when the document cannot be written.
    """
    recording = _Recording(plan, output, limit_s, say)
    with signals():
        try:
            recording.all()
        except FabricheckError as error:
            recording.failures.append(error)
        except Interrupted as end:
            return recording.write(128 + end.number)
    return recording.write()


class _Recording:
    def __init__(
        self, plan: Plan, output: Path, limit_s: float, say: Callable[[str], None]
    ) -> None:
        self.plan, self.output, self.limit_s, self.say = plan, output, limit_s, say
        self.folder = output.resolve().parent
        self.began = time.monotonic()
        self.started = now()
        self.facts: ResultDocument | None = None
        self.after: Snapshot | None = None
        self.lost: str | None = None  # why there is none
        self.mpi: str | None = None
        self.series: list[Series] = []
        self.versions: dict[str, str] = {}
        self.notes: list[str] = []
        self.failures: list[FabricheckError] = []
        self.ran: list[dict[str, Any]] = []

    def all(self) -> None:
        self.facts = self._facts()
        if self.plan.mpi_program is not None:
            self.mpi = mpi_version(Path(self.plan.mpi_program))
        for number, launch in enumerate(self.plan.launches, 1):
            progress = f"[{number}/{len(self.plan.launches)}] {launch.what}"
            if self._left() <= 0:
                raise TimeLimit(
                    f"The time limit of {self.limit_s:g} s had passed before {launch.what}."
                )
            try:
                self.say(f"{progress}: {_values(self._launch(launch))}")
            except FabricheckError as error:
                self.failures.append(error)
                self.say(f"{progress}: {error}")
            self._partial()
        self._look_again()

    def _left(self) -> float:
        return self.limit_s - (time.monotonic() - self.began)

    def _facts(self) -> ResultDocument:
        path = self.folder / FACTS
        path.unlink(missing_ok=True)
        limit = min(60.0, self._left())
        ended, out, err = self._start(self.plan.facts, "facts", limit)
        ended.require_good("The program that describes the node", limit, err, out)
        return document.load(path)

    def _look_again(self) -> None:
        """Record the state after the launches; a failure to do so does not affect the values."""
        assert self.facts is not None
        if "state" not in self.facts:
            return
        path = self.folder / FACTS
        first = path.rename(path.with_name(f"{FACTS}.first"))
        try:
            self.after = _comparable(self._facts()["state"])
            path.rename(path.with_name(FACTS_AFTER))
        except (FabricheckError, KeyError) as error:
            self.lost = str(error)
        finally:
            first.rename(path)

    def _launch(self, launch: Launch) -> tuple[Series, ...]:
        assert self.facts is not None
        limit = min(launch.limit_s, self._left())
        self._library_logs(launch)  # of a run before in the same folder
        ended, out, err = self._start(launch.command, launch.name, limit)
        if logs := self._library_logs(launch):
            write_whole(self.folder / f"{launch.name}{LIBRARY_LOG}", logs)
            # Not behind the output of a good end that is cut off, which would then not be seen.
            if ended.code != 0 or out.endswith("\n"):
                out = f"{out}\n{logs}"
        self.ran.append(
            {
                "name": launch.name,
                "command": launch.command,
                **({"threads": launch.threads} if launch.threads > 1 else {}),
                "exit_code": ended.code,
                "seconds": round(ended.seconds, 3),
            }
        )
        try:
            ended.require_good(f"{launch.origin}: it", limit, err, out)
        except TimeLimit as error:
            raise benchmarks.too_slow(self.plan, launch, out) or error from None
        except ProgramFailed as error:
            raise self._failed(launch, out, last_words(err, out), error) from None
        if self.plan.accelerator is not None and "could not identify the local rank" in err:
            reason = f"{launch.program} found no local rank, so all ranks used one device"
            raise NoDeviceSupport(launch.origin, None, reason)
        output = self.plan.benchmark.read(self.plan, launch, out, self.facts)
        self._same_versions(output.versions, launch.origin)
        self.series += output.series
        self.notes += [note for note in output.notes if note not in self.notes]
        return output.series

    def _library_logs(self, launch: Launch) -> str:
        """Return what the libraries of all ranks wrote, and remove their files."""
        files = sorted(self.folder.glob(f"{launch.name}.*{LIBRARY_LOG}"))
        lines = [line for file in files for line in text_of(file).splitlines()]
        for file in files:
            file.unlink()
        return "".join(f"{line}\n" for line in lines)

    def _failed(
        self, launch: Launch, out: str, why: str, error: FabricheckError
    ) -> FabricheckError:
        """Return why a launch failed, if its output says more than its exit code."""
        assert self.facts is not None
        try:
            # A tool that found wrong data fails; this reason takes precedence over its exit code.
            self.plan.benchmark.read(self.plan, launch, out, self.facts)
        except (WrongDataError, RanksApartError) as failure:
            return failure
        except FabricheckError:
            pass
        if any(words in out or words in why for words in _NOT_BUILT_FOR):
            reason = f"{launch.program} was built without support for {self.plan.accelerator}"
            return NoDeviceSupport(launch.origin, None, reason)
        return error

    def _same_versions(self, versions: Any, origin: str) -> None:
        for name, version in versions.items():
            known = self.versions.setdefault(name, version)
            if known != version:
                raise InvalidInputError(
                    f"{origin}: the version of {name} is {version}, but {known} in other launches."
                )

    def _start(self, command: str, name: str, limit_s: float) -> tuple[Ended, str, str]:
        """Return the end of a command, and its standard output and error."""
        out, err = (self.folder / f"{name}.{kind}" for kind in ("out", "err"))
        environment = table.with_standard_formats()
        ended = start(["/bin/sh", "-c", command], out, err, limit_s, environment=environment)
        return ended, text_of(out), text_of(err)

    def _partial(self) -> None:
        content = self._content()
        content |= {"complete": False, "finished": None}
        content["outcome"] = {"exit_code": None, "status": "running", "message": None}
        write_whole(self._path(), json.dumps(content, indent=1) + "\n")

    def _path(self) -> Path:
        return self.output.with_name(f"{self.output.name}.partial")

    def write(self, signalled: int | None = None) -> ResultDocument:
        content = self._content()
        node = content["host"]["hostname"]
        content["outcome"] = outcome = _outcome(self.failures, signalled, node)
        content["complete"] = outcome["status"] in ("good", "wrong-data")
        text = json.dumps(content, indent=1) + "\n"
        checked = document.parse(text, self.output)
        # On a full disk, the document of the last launch stays.
        write_whole(self._path(), text)
        self._path().replace(self.output)
        return checked

    def _content(self) -> dict[str, Any]:
        facts: dict[str, Any] = cast(dict[str, Any], self.facts) or empty(
            self.plan.tool, "host", False, Path("/"), {}
        )
        versions = dict(facts["versions"])
        versions |= {"mpi": self.mpi} if self.mpi is not None else {}
        versions |= {"rccl": self.versions["rccl"]} if "rccl" in self.versions else {}
        program = facts["program"]
        return {
            "schema": document.SCHEMA_NAME,
            "schema_version": document.SCHEMA_VERSION,
            "complete": True,
            "program": {
                "name": self.plan.tool,
                "version": self.versions.get(self.plan.tool, UNKNOWN),
                "commit": UNKNOWN,
                "runtime": program["runtime"],
                "compiler": UNKNOWN,
            },
            "clock": facts["clock"],
            "node": facts.get("node"),
            "started": self.started,
            "finished": now(),
            "duration_s": time.monotonic() - self.began,
            "host": facts["host"],
            "devices": facts["devices"],
            # A launch on several nodes has the rank of each, which names it.
            **({"ranks": facts["ranks"]} if facts.get("ranks") else {}),
            "versions": versions,
            "environment": facts["environment"],
            "settings": facts.get("settings", []),
            "arguments": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "options": {
                "tool": self.plan.tool,
                "buffers": self.plan.buffers,
                "time_limit_s": self.limit_s,
                "launches": self.ran,
            },
            "faults_injected": [],
            **self._state(facts),
            "outcome": {"exit_code": 0, "status": "good", "message": None},
            "series": self.series,
            "notes": list(self._notes()),
        }

    def _state(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        state = facts.get("state")
        if state is None:
            return {}
        after = changes(state["before"], self.after) if self.after is not None else None
        return {"state": {**state, "after": after}}

    def _notes(self) -> Iterator[str]:
        if self.lost is not None:
            yield f"the state after the launches is unknown: {self.lost}"
        if self.facts is None:
            yield "no program described the node: the host is the one that started the launches"
        else:
            name = self.facts["program"]["name"]
            yield (
                f"host, devices, environment and versions are those that {name} reports "
                "(facts.json)"
            )
        yield from self.notes
        yield "a sample is the mean that the tool reports; it reports no interval"
        if self.plan.buffers == "host":
            yield "the messages are in host memory, and no device takes part"
        if self.facts is not None and self.facts["clock"] == "simulated":
            yield "the messages are simulated as between the devices whose hosts the ranks are on"
        if self.plan.benchmark.verifies_apart:
            yield "the data were compared in separate runs (-c), not in the timed ones"


def _comparable(state: State) -> Snapshot:
    """Return the first snapshot of another run, without values counted from that run on."""
    snapshot = state["before"]
    for item, source in state["sources"].items():
        if item.startswith("devices.throttled_s") and source.endswith(FROM_THE_FIRST):
            for device in snapshot["devices"]:
                device["throttled_s"] = None
    return snapshot


def mpi_version(program: Path) -> str | None:
    """Return the first line of MPI_Get_library_version of a program's MPI.

    :returns: ``None`` where the program has no MPI library of its own, or that does not answer.
    """
    match = MPI_LIBRARY.search(output_of("ldd", str(program), limit_s=_ASK_S))
    if match is None:
        return None
    version = output_of(sys.executable, "-c", _ASK_LIBRARY, match[1], limit_s=_ASK_S)
    return " ".join(version.split()) or None


def _outcome(failures: list[FabricheckError], signalled: int | None, node: str) -> dict[str, Any]:
    if signalled is not None:
        message = f"The run was ended by signal {signalled - 128}."
        return {"exit_code": signalled, "status": "interrupted", "message": message}
    if not failures:
        return {"exit_code": 0, "status": "good", "message": None}
    code = worst(map(recorded_code, failures))
    ordered = sorted(failures, key=lambda failure: recorded_code(failure) != code)
    sentences = [" ".join(str(error).split()) for error in ordered]
    message = f"Node {node}: {' '.join(first_of(sentences, MOST_SENTENCES))}"
    return {"exit_code": code, "status": STATUS_OF_EXIT[code], "message": message}


def _values(measured: tuple[Series, ...]) -> str:
    if not measured:
        return "verified"
    shown = [measured[0], measured[-1]] if len(measured) > 1 else [measured[0]]
    return listed(f"{series['bytes']} B {series['median']:g} {series['unit']}" for series in shown)
