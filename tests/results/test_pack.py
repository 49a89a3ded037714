"""`fabricheck results pack`: what may be sent, nothing else, and it is read like the folder."""

import json
import tarfile

import pytest
from typer.testing import CliRunner

import distributed_sessions
import factories
from fabricheck.cli import app


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture
def results(one_session, results_folder):
    """The results folder of one session, with what a user may have in it besides."""
    folder = results_folder
    for name in ("notes.txt", "logs/reframe.log", "stage/local/host/host/a/rfm_job.sh"):
        factories.write(folder / name, "planted")
    (folder / "reports" / "link.json").symlink_to(folder / "notes.txt")
    factories.write(folder / "nodes" / "vm.yaml", "name: vm\n")
    return folder


def test_an_archive_has_what_is_listed_and_is_judged_like_the_folder(results, tmp_path):
    archive = tmp_path / "mine.tar.gz"
    ended = run("results", "pack", "--output", archive)
    assert ended.exit_code == 0, ended.output
    with tarfile.open(archive) as packed:
        texts = {one.name: packed.extractfile(one).read() for one in packed}
    assert "mine/results/nodes/vm.yaml" in texts
    assert not [name for name, text in texts.items() if b"planted" in text or "link" in name]
    of_folder, of_archive = (run("verdict", "--json", where) for where in (results, archive))
    assert of_archive.exit_code == of_folder.exit_code
    first, second = (json.loads(one.stdout)["nodes"] for one in (of_folder, of_archive))
    assert [one["status"] for one in first] == [one["status"] for one in second] != []


def test_a_job_over_many_nodes_is_judged_from_an_archive_like_from_its_folder(
    tmp_path, monkeypatch
):
    distributed_sessions.job(tmp_path / "results", {"node1": 10.0, "node2": 1.0})
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "results"))
    archive = tmp_path / "job.tar.gz"
    assert run("results", "pack", "--output", archive).exit_code == 0
    of_folder, of_archive = (run("verdict", "--json", *where) for where in ((), (archive,)))
    first, second = (json.loads(ended.stdout)["nodes"] for ended in (of_folder, of_archive))
    assert {row["node"]: row["status"] for row in first} == {"node1": "PASS", "node2": "PERF-FAIL"}
    assert [row["status"] for row in second] == [row["status"] for row in first]


def test_what_cannot_be_packed_is_one_sentence(results, tmp_path, monkeypatch):
    assert run("results", "pack", "--output", tmp_path / "mine.zip").exit_code == 2
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    ended = run("results", "pack")
    assert ended.exit_code == 3 and "no session" in ended.stderr.lower()
