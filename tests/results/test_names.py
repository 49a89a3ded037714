"""Every command takes every kind of name, and means the same by it."""

import csv
import io
import shlex
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.results.reading import read

sys.path.append(str(Path(__file__).resolve().parents[1] / "snapshots"))
import snapshot_sessions as made

#: By name the checks that it stands for, and their nodes.
HERE, KILLED = ("stream_local", "node1"), made.KILLED
OF_KILLED = {
    ("stream_scan", "node1"),
    ("p2p", "node1"),
    ("stream_local", "node1"),
    ("mpi", "node1"),
}
NAMES = {
    "latest": OF_KILLED,
    "run-0": {HERE},
    "0": {HERE},
    "UUID": {HERE},
    KILLED: OF_KILLED,
    "17": {HERE},
    "every-node/17": {HERE},
    "unreported": OF_KILLED | {("one", "node1"), ("two", "node1")},
    "results": OF_KILLED,
    "results/every-node/17": {HERE},
    "results/reports/run-0.json": {HERE},
    "results/loose/one/result.json": {("one", "node1")},
    "results/loose/two/result.json.partial": {("two", "node1")},
    "results/loose": {("one", "node1"), ("two", "node1")},
    "hour.tar.gz": {HERE},
    "run-0@local:host": {HERE},
    "17@node1": {HERE},
}
COMMANDS = (
    "results show {}",
    "results validate {}",
    "results beside {}",
    "coverage {}",
    "claims {}",
    "verdict {}",
    "compare {0} {0}",
    "export {}",
    "report {} --output page",
    "calibrate {} --system local:host",
)
#: Names of nothing: what every command says, and ends with.
NOTHING = {
    "run-9": (3, "There is no session 'run-9' in results"),
    "nowhere.json": (3, "There is no result document nowhere.json."),
    "nowhere.tar.gz": (3, "There is no archive nowhere.tar.gz."),
    "empty": (3, "There is no result document under empty."),
    "damaged": (4, "damaged/reports/run-0.json: this is not a complete run report of ReFrame."),
    "run-0@lumi:gpu": (3, "run-0 has no partition 'lumi:gpu'; it has local:host"),
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FABRICHECK_RESULTS", raising=False)
    made.named()
    one = Path("hour/results")
    for name in ("reports", "output"):
        (one / name).mkdir(parents=True)
    (one / "reports/run-0.json").write_bytes(Path("results/reports/run-0.json").read_bytes())
    kept = "output/local/host/host/stream_local/result.json"
    (one / kept).parent.mkdir(parents=True)
    (one / kept).write_bytes(Path("results", kept).read_bytes())
    with tarfile.open("hour.tar.gz", "w:gz") as archive:
        archive.add("hour")


def named(name):
    return read(["run-0"]).sessions[0].uuid[:8] if name == "UUID" else name


def run(command, name):
    return CliRunner().invoke(app, shlex.split(command.format(name)))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_its_checks(results, name):
    found = read([named(name)])
    assert {(row.check, row.node) for row in found.checks} == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_exported_rows_are_those_of_the_name(results, name):
    written = run("export {}", named(name)).stdout
    rows = [one for one in csv.DictReader(io.StringIO(written)) if one["kind"] != "node"]
    documents = {(row["check"], row["node"] or None) for row in rows}
    assert documents == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_every_name(results, command, name):
    ended = run(command, named(name))
    said = ended.stdout + ended.stderr
    # 1 is a defect in fabricheck, 2 a name that cannot be meant.
    assert ended.exit_code not in (1, 2), said
    assert "Traceback" not in said
    assert "There is no session" not in said or "There is no session of" in said


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_the_same_of_what_is_not_there(results, command, name):
    ended = run(command, name)
    code, sentence = NOTHING[name]
    assert sentence in ended.stdout + ended.stderr
    assert ended.exit_code == code
