"""What each kind of name stands for; that every command takes it, tests/snapshots has."""

import csv
import io
import sys
from pathlib import Path

import pytest

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


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FABRICHECK_RESULTS", raising=False)
    made.named()


def named(name):
    return read(["run-0"]).sessions[0].uuid[:8] if name == "UUID" else name


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_its_checks(results, name):
    found = read([named(name)])
    assert {(row.check, row.node) for row in found.checks} == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_exported_rows_are_those_of_the_name(command, results, name):
    written = command("results", "export", named(name), code=None).stdout
    rows = [one for one in csv.DictReader(io.StringIO(written)) if one["row_type"] != "node"]
    documents = {(row["check"], row["node"] or None) for row in rows}
    assert documents == NAMES[name]
