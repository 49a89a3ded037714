"""What the commands say and write is what it was: `make snapshots` writes the texts anew.

Each file in expected/ tells what some commands did, one after the other, in a new folder. A commit
changes none of these files, or says which and why.
"""

from __future__ import annotations

import difflib
import itertools
import json
import os
import platform
import re
import shlex
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import snapshot_sessions as made
import typer
from snapshot_text import file_text, normalised, printed_text
from typer.main import get_command
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.papers import claims_command, section
from fabricheck.references import listing
from fabricheck.report import figure, figures
from fabricheck.run import site_check
from fabricheck.site import clusters

ROOT = Path(__file__).resolve().parents[2]

EXPECTED = Path(__file__).parent / "expected"

#: Whether the texts are written anew.
WRITE = "WRITE_SNAPSHOTS" in os.environ

#: The checks, claims, drawers and programs that there were when the texts were written: only these
#: are asked, so that who adds one changes no text.
KNOWN = Path(__file__).with_name("known.json")

#: Of a difference so many lines are shown; so many characters of a line where one is enough.
MOST, MOST_BRIEF = 20, 100

DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0"/></svg>'

#: What each kind of session is asked: one all commands, the others those that they are there for.
SESSIONS = {
    "h200": (
        made.h200,
        """
        results list
        results list --json
        results show latest
        results show latest --json
        results validate results
        results validate results --json
        results osu latest
        results osu latest --json
        verdict latest
        verdict latest --json
        results coverage latest
        results coverage latest --json
        papers claims latest
        papers claims latest --json
        report latest
        results export latest --output table.csv --openmetrics metrics.txt
        results export latest --output table.parquet
        """,
    ),
    "simulated": (
        made.simulated,
        """
        results show run-0
        verdict run-0
        results coverage run-0
        papers claims run-0
        report run-0
        """,
    ),
    "killed": (
        made.killed,
        f"""
        results list
        results show {made.KILLED}
        results validate results
        verdict {made.KILLED}
        report {made.KILLED}
        results export {made.KILLED} --output table.csv
        """,
    ),
    "acceptance": (made.acceptance, "acceptance status acceptance.yaml"),
    "distributed": (
        made.distributed,
        """
        results list
        results show run-0
        results coverage run-0
        verdict run-0
        verdict run-0 --json
        report run-0
        results export run-0 --output table.csv --openmetrics metrics.txt
        """,
    ),
    "job": (
        made.job,
        """
        results list
        results list --json
        results show 17
        results coverage 17
        papers claims 17
        verdict 17
        report 17
        results export 17 --output table.csv
        """,
    ),
    "failures": (
        made.failures,
        """
        results list
        results show 0
        results show 0 --json
        results coverage 0
        papers claims 0
        verdict 0
        verdict 0 --json
        report 0
        results export 0 --output table.csv --openmetrics metrics.txt
        """,
    ),
    "older": (
        made.older,
        """
        results show results/documents
        results validate results
        results osu results/documents
        verdict results/documents
        report results/documents
        results export results/documents --output table.csv
        """,
    ),
}

#: Names of sessions, documents and folders, and what is none.
NAMES = (
    "latest",
    "run-0",
    "0",
    "00000000",
    "run-9",
    "17",
    "99",
    made.KILLED,
    "results",
    "results/loose",
    "results/loose/one/result.json",
    "results/loose/two/result.json.partial",
    "results/reports/run-0.json",
    "results/every-node/17",
    "hour.tar.gz",
    "run-0@local:host",
    "run-0@lumi:gpu",
    "17@node1",
    "damaged",
    "nowhere",
    "nowhere.json",
    "nowhere.tar.gz",
    "broken.json",
    "empty",
)
#: Of each way to name something, one: every command takes it, and means the same by it.
WAYS = ("run-0", "run-9", "17", made.KILLED, "results/loose/one/result.json",
        "hour.tar.gz", "run-0@local:host", "run-0@lumi:gpu", "damaged", "broken.json")  # fmt: skip
READING = ("results show {}", "results export {}")
ASKED = ("results validate {}", "results osu {}", "results coverage {}", "papers claims {}",
         "verdict {}", "report {}", "compare {} run-0",
         "limits calibrate {} --system local:host --report-only")  # fmt: skip

NODES = ("node2", "node[1-2]", "node3", "node4", "node[1", "''")
OF_NODES = ("results show 17 --node {}", "results osu 17 --node {}", "papers claims 17 --node {}",
            "report 17 --node {}", "verdict 17 --nodes {}")  # fmt: skip

OTHERS = {
    "names": (
        made.named,
        [
            one.format(name)
            for name in NAMES
            for one in (READING + ASKED if name in WAYS else READING)
        ],
    ),
    "names-of-nodes": (made.job, [one.format(name) for name in NODES for one in OF_NODES]),
    "no-results": (
        made.nothing,
        [one.format("latest") for one in READING + ASKED] + ["results list"],
    ),
    "usage": (
        made.nothing,
        """
        bogus
        results
        results bogus
        results list --limti
        results list --limit 3
        results show a b
        results join somewhere
        results coverage a b
        verdict --set none
        results export --output table.txt
        results export --output nowhere/table.csv
        compare only-one
        compare run-0 latest --floor -1
        compare run-0 latest --floor many
        compare run-0 latest --json --markdown
        limits show
        limits show --system nowhere
        limits calibrate
        limits calibrate results --system nowhere
        limits calibrate --system local:host
        limits calibrate --system local:host --page page.md
        limits transfer h200:x2
        limits transfer h200:x2 h200
        site check
        site check nowhere
        site check local:nowhere
        every-node
        papers fidelity nowhere
        papers fidelity h200
        node show nowhere
        node show --from nowhere.txt
        node compare mi250x --from nowhere.txt
        node record mi250x --output result.json
        node best-gpus
        node best-gpus h200 -k 99
        node best-gpus mi250x -k 0
        node best-gpus mi250x -k 2 -- true
        beside table nowhere
        results record nowhere.json --output result.json
        beside rounds rounds --programs nowhere
        """,
    ),
    "options": (
        made.older,
        """
        results show results/documents --all
        papers claims results/documents --all
        papers claims --rules
        results export results/documents
        results export results/documents --samples
        results export results/documents/cut results/documents/faults-x2
        results export results --all
        """,
    ),
    "compare": (
        made.pairs,
        """
        compare before before
        compare before after
        compare before after --all
        compare before after --json
        compare before after --markdown
        compare before after --floor 30
        compare before fewer
        compare before fewer --markdown
        compare before model
        compare before model --json
        compare before none
        compare before@nowhere after
        compare node-1 node-5-independent
        compare node-1 node-5-independent --markdown
        compare later/full later/node
        compare later/node later/full --all
        """,
    ),
    "calibrate": (
        made.repeated,
        """
        limits calibrate steady/session-0 --system local:host --output references
        limits calibrate steady/session-0 --system local:host --output references --report-only
        limits calibrate steady/* --system local:host --output references
        limits calibrate steady/* --system local:host --output references --write
        limits noise --system local:host --output references
        limits calibrate slower/* --system local:host --output references
        limits calibrate slower/* --system local:host --output references --write
        limits calibrate slower/* --system local:host --output references --write --accept-looser
        limits transfer local:host local:other --output references
        limits calibrate h200 --system h200:x2 --report-only
        """,
    ),
    "join": (
        made.parts,
        """
        results join stream_local stream_scan --output joined --set node
        verdict joined
        results join stream_local nothing --output other
        results join stream_local --output joined
        """,
    ),
    "nodes": (
        made.outputs,
        """
        node show mi250x
        node show mi250x --json
        node show mi250x --overlay link-0-6-gone.yaml
        node show h200 --devices 2
        node show mi250
        node show --from rocm-smi/published-hugging-face-shownodesbw.txt
        node show --from four-devices/nvidia-smi-topo-m.txt
        node compare mi250x --from rocm-smi/published-hugging-face-shownodesbw.txt
        node compare mi250 --from rocm-smi/published-hugging-face-showtoponuma.txt
        node compare h200 --devices 4 --from four-devices/nvidia-smi-topo-m.txt
        node draft new --from rocm-smi/published-hugging-face-shownodesbw.txt --output .
        node platform h200
        node best-gpus mi250x -k 2
        node best-gpus -k 4 --from rocm-smi/published-hugging-face-shownodesbw.txt
        beside table beside
        """,
    ),
    "site-check": (
        made.site,
        """
        site check local:host --login
        site check local:host --login --json
        site check local:sim-mi250x --compute
        """,
    ),
    "references": (
        made.h200,
        """
        limits show --system lumi:gpu
        limits show --system h200:x2
        limits show --system h200:x2 --json
        site sets --system h200:x2
        site sets --system h200:x2 --json
        """,
    ),
}

#: Of these only the first line of what is printed is kept, and the names of the files.
BRIEF = ("names", "names-of-nodes", "no-results", "usage")

#: These ask ReFrame, in dry runs.
OF_DRY_RUNS = ("references",)


def helps(command: Any, path: str = "") -> Iterator[str]:
    """Yield how the help of a command and of all below it is asked for."""
    yield f"{path} --help".strip()
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from helps(command.get_command(context, name), f"{path} {name}")


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


#: By file: what makes the results, and the commands, or what tells them.
SNAPSHOTS = SESSIONS | OTHERS | {"help": (made.nothing, lambda: list(helps(get_command(app))))}

#: What is kept of the environment, so that programs start.
KEPT = ("HOME", "PATH", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")


class Undrawn:
    """Draws a dot, in no time."""

    def submit(self, *_: object) -> Future[str]:
        drawing: Future[str] = Future()
        drawing.set_result(DRAWING)
        return drawing


@pytest.fixture
def alike(tmp_path, monkeypatch):
    """The same surroundings everywhere: a new folder, no settings, one time zone, and a pipe."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    fixed = {"TZ": "UTC", "FABRICHECK_RESULTS": str(made.RESULTS)}
    with patch.dict(os.environ, kept | fixed, clear=True):
        time.tzset()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(platform, "node", lambda: "this-node")
        monkeypatch.setattr(socket, "gethostname", lambda: "this-node")
        monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=4))
        monkeypatch.setattr(figure, "_pen", Undrawn)
        yield datetime.now(UTC).replace(microsecond=0)
    time.tzset()


def named(drawer: Any) -> str:
    return f"{drawer.__module__.rpartition('.')[2]}.{drawer.__name__}"


@pytest.fixture(scope="session")
def known() -> dict[str, list[str]]:
    """Return the names in KNOWN, or write them anew."""
    if WRITE:
        names = {
            "checks": sorted(
                name
                for path in (ROOT / "reframe_checks").glob("*/*.py")
                for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
            ),
            "claims": [one.id for one in section.CLAIMS],
            "drawers": [named(one) for drawers in figures.SECTIONS.values() for one in drawers],
            "programs": list(clusters.PROGRAMS),
        }
        KNOWN.write_text(json.dumps(names, indent=1) + "\n")
    found: dict[str, list[str]] = json.loads(KNOWN.read_text())
    return found


@pytest.fixture
def without_additions(known, monkeypatch):
    claims = tuple(one for one in section.CLAIMS if one.id in known["claims"])
    for module in (section, claims_command):
        monkeypatch.setattr(module, "CLAIMS", claims)
    drawn = {
        title: tuple(one for one in drawers if named(one) in known["drawers"])
        for title, drawers in figures.SECTIONS.items()
    }
    monkeypatch.setattr(figures, "SECTIONS", drawn)
    found = tuple(one for one in clusters.PROGRAMS if one in known["programs"])
    for module in (clusters, site_check):
        monkeypatch.setattr(module, "PROGRAMS", found)


def files() -> dict[Path, tuple[int, int]]:
    """Return the files of the working folder, and what tells when one was written again."""
    found = sorted(path for path in Path().rglob("*") if path.is_file())
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def told(commands: Sequence[str], brief: bool, began: datetime) -> Iterator[str]:
    """Call the commands and yield what they did; what was told before is named, not repeated."""
    before, known = files(), {}
    for command in commands:
        words = [word for one in shlex.split(command) for word in expanded(one)]
        result = CliRunner().invoke(app, words)
        if not isinstance(result.exception, SystemExit | None):
            raise result.exception
        line = f"$ fabricheck {command}".rstrip()
        yield line
        yield shown(printed_text(normalised(result.stdout, began)), line, known, brief)
        yield from (f"! {said}" for said in normalised(result.stderr, began).splitlines())
        after = files()
        for path in (path for path in after if after[path] != before.get(path)):
            yield f"[wrote {path}]"
            yield "" if brief else shown(file_text(path, began), str(path), known)
        yield f"[exit code {result.exit_code}]\n"
        before = after


def shown(text: str, origin: str, known: dict[str, str], brief: bool = False) -> str:
    """Return a text, its first line if brief, or of one that was shown before where that was."""
    first, *others = text.splitlines() or [""]
    if brief and others:
        return f"{first[:MOST_BRIEF]} [and {len(others)} more lines]"
    if len(others) > 1 and text in known:
        return f"[as {known[text]}]"
    known[text] = origin
    return text


def expanded(word: str) -> list[str]:
    return [str(path) for path in sorted(Path().glob(word))] if "*" in word else [word]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in SNAPSHOTS if one not in OF_DRY_RUNS])
def test_what_commands_say_and_write(name, alike, without_additions):
    compare(name, alike)


@pytest.fixture
def dry_runs(site_dry_run, known):
    """What ReFrame tells of the partitions of the snapshots, asked before all is made alike."""
    return {
        partition: [
            one for one in site_dry_run(system).of(partition) if one.check in known["checks"]
        ]
        for system, partition in (("lumi", "lumi:gpu"), ("h200:x2", "h200:x2"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_DRY_RUNS)
def test_what_commands_say_of_dry_runs(name, dry_runs, alike, monkeypatch):
    monkeypatch.setattr(listing, "ask", lambda system, checks, names=(): dry_runs[system])
    compare(name, alike)


def compare(name: str, began: datetime) -> None:
    """Compare what the commands of a snapshot do with its text, or write that anew."""
    make, commands = SNAPSHOTS[name]
    commands = commands() if callable(commands) else commands
    commands = lines(commands) if isinstance(commands, str) else commands
    make()
    text = "\n".join(filter(None, told(commands, name in BRIEF, began)))
    expected = EXPECTED / f"{name}.txt"
    if WRITE:
        expected.write_text(text, encoding="utf-8")
    known = expected.read_text(encoding="utf-8")
    if text != known:
        pytest.fail("\n".join(differences(expected, known, text)), pytrace=False)


def differences(path: Path, known: str, text: str) -> Iterator[str]:
    """Yield where a text first differs, of which command, and some lines of it from there."""
    before, after = known.splitlines(), text.splitlines()
    same = list(
        itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    )
    commands = ["the start", *(line for line, _ in same if line.startswith("$ "))]
    yield f"{path}, line {len(same) + 1}, of {commands[-1]}"
    few = slice(len(same), len(same) + MOST)
    yield from list(difflib.unified_diff(before[few], after[few], lineterm="", n=1))[2:]
    yield "If this is meant: make snapshots, then read git diff tests/snapshots."


def test_every_text_is_of_commands_and_there_are_few():
    assert {path.stem for path in EXPECTED.iterdir()} == SNAPSHOTS.keys()
    assert len(SNAPSHOTS) <= 24
