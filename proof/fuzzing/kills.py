"""Kills of programs and of sessions at random moments: what had been kept is there, and is read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fabricheck.core.errors import FabricheckError
from fabricheck.results import reading
from fabricheck.results.document import load
from fabricheck.results.session import DOCUMENT_NAME, PARTIAL_NAME
from proof.faults.sessions import ROOT, Session

#: A program that takes some seconds and measures many series in each of them.
PROGRAM = ("stream", "--devices", "0", "--sizes", "1MiB,2MiB,3MiB,4MiB,6MiB,8MiB,12MiB,16MiB",
           "--batch-time", "0.001", "--noise-limit", "10", "--output", DOCUMENT_NAME)  # fmt: skip

#: A session of the simulated node, which need not wait until the machine is nobody else's.
SESSION = Session(["stream_local", "memcpy_near", "p2p_kernel", "p2p_engine"])

#: A session waits while others measure, so most kills are of programs.
SESSION_EVERY = 4

#: Seconds that a session or a program has before the kill at most, of which it needs fewer.
PATIENCE_S = 60.0

#: By the check and its series as JSON how often it is there.
Kept = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Killed:
    """What a kill left.

    after_s: when it came, after the first document was begun. kept: the series that were in a file
    right before. lost: those of them that are read no more. problems: sentences of what cannot be
    read. age_s: since the last file of the results was written; what was measured in that time
    was in none.
    """

    after_s: float
    kept: int
    lost: int
    age_s: float
    problems: tuple[str, ...] = ()


def run(count: int, seed: int, folder: Path) -> Iterator[Killed]:
    """Kill programs, and sessions among them, while they measure; yield what that left."""
    rng = Random(seed)
    lengths = [_length(kind, folder / f"whole-{kind}") for kind in (0, 1)]
    for number in range(count):
        kind, left = int(number % SESSION_EVERY == 0), None
        while left is None:  # it had ended before
            own = folder / str(number)
            shutil.rmtree(own, ignore_errors=True)
            left = _killed(kind, own, rng.uniform(0, lengths[kind]))
        yield left


def _start(kind: int, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    if kind:
        command = SESSION.command(folder)
    else:
        program, *arguments = PROGRAM
        command = {"args": [str(ROOT / "build" / "host" / "bin" / program), *arguments],
                   "cwd": folder}  # fmt: skip
    return subprocess.Popen(
        **command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _length(kind: int, folder: Path) -> float:
    """Return how long one measures that is not killed."""
    process = _start(kind, folder)
    _until_it_measures(process, folder)
    began = time.monotonic()
    process.wait(PATIENCE_S)
    assert _on_disk(folder), "nothing was measured"
    return time.monotonic() - began


def _until_it_measures(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for the first document: a session reads check files before, and may wait its turn."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        if next(folder.rglob(f"{DOCUMENT_NAME}*"), None) is not None:
            return
        time.sleep(0.01)


def _killed(kind: int, folder: Path, after_s: float) -> Killed | None:
    """Kill one; None where it finished before."""
    process = _start(kind, folder)
    _until_it_measures(process, folder)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    if process.poll() is not None:
        return None
    kept = _on_disk(folder)
    _kill(process)
    written = [path.stat().st_mtime for path in folder.rglob(f"{DOCUMENT_NAME}*")]
    age_s = time.time() - max(written, default=time.time())
    read, problems = _read(kind, folder)
    return Killed(after_s, kept.total(), (kept - read).total(), age_s, tuple(problems))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started: ReFrame's jobs are groups of their own."""
    below = [process.pid]
    for pid in below:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                below += map(int, task.read_text().split())
    for pid in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    for pid in below:  # those of others' parents vanish soon
        while Path(f"/proc/{pid}").exists() and not _is_over(pid):
            time.sleep(0.005)


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _on_disk(folder: Path) -> Kept:
    """Return the series in the files of a folder, by another parser than ours.

    A file that vanishes meanwhile has become another one.
    """
    for _ in range(5):
        found: Kept = Counter()
        try:
            for name in (PARTIAL_NAME, DOCUMENT_NAME):
                for path in folder.rglob(name):
                    # That of the output folder is a copy of the one in the stage folder.
                    found |= _series(path.parent.name if path.parent != folder else "",
                                     json.loads(path.read_bytes()))  # fmt: skip
            return found
        except FileNotFoundError:
            continue
        except ValueError:
            # ReFrame copies a document while we look; it is whole in the stage folder.
            continue
    raise AssertionError(f"{folder} does not come to rest")


def _series(check: str, document: Mapping[str, Any]) -> Kept:
    return Counter((check, json.dumps(one, sort_keys=True)) for one in document["series"])


def _read(kind: int, folder: Path) -> tuple[Kept, list[str]]:
    """Return what fabricheck reads of what was left, and the sentences of what it does not."""
    found: Kept = Counter()
    problems: list[str] = []
    if not kind:
        for name in (DOCUMENT_NAME, PARTIAL_NAME):
            path = folder / name
            try:
                if path.exists():
                    found |= _series("", load(path))
            except FabricheckError as error:
                problems.append(str(error))
        return found, problems
    try:
        sources = reading.read([str(folder / "results")]).sources
    except FabricheckError as error:
        # Nothing has begun yet.
        return found, [str(error)]
    for entry in (entry for source in sources for entry in source.entries):
        if entry.document is not None and entry.path is not None:
            found |= _series(entry.path.parent.name, entry.document)
        problems += map(str, entry.problems)
    return found, problems
