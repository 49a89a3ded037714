"""`fabricheck results pack`: what may be sent, nothing else, and it is read like the folder."""

import json
import tarfile

import pytest

import factories
from session_builder import write_job


@pytest.fixture
def results(one_session, results_folder):
    """The results folder of one session, with what a user may have in it besides."""
    folder = results_folder
    for name in ("notes.txt", "logs/reframe.log", "stage/local/host/host/a/rfm_job.sh"):
        factories.write(folder / name, "planted")
    (folder / "reports" / "link.json").symlink_to(folder / "notes.txt")
    factories.write(folder / "nodes" / "vm.yaml", "name: vm\n")
    return folder


def test_an_archive_has_what_is_listed_and_is_judged_like_the_folder(command, results, tmp_path):
    archive = tmp_path / "mine.tar.gz"
    command("results", "pack", "--output", archive)
    with tarfile.open(archive) as packed:
        texts = {one.name: packed.extractfile(one).read() for one in packed}
    assert "mine/results/nodes/vm.yaml" in texts
    assert not [name for name, text in texts.items() if b"planted" in text or "link" in name]
    of_folder, of_archive = (command("verdict", where, json=True) for where in (results, archive))
    assert of_archive.exit_code == of_folder.exit_code
    first, second = (json.loads(one.stdout)["nodes"] for one in (of_folder, of_archive))
    assert [one["status"] for one in first] == [one["status"] for one in second] != []


def test_a_job_over_many_nodes_is_judged_from_an_archive_like_from_its_folder(
    command, tmp_path, monkeypatch
):
    write_job(tmp_path / "results", {"node1": 10.0, "node2": 1.0})
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "results"))
    archive = tmp_path / "job.tar.gz"
    command("results", "pack", "--output", archive)
    of_folder, of_archive = (
        command("verdict", *where, json=True, code=12) for where in ((), (archive,))
    )
    first, second = (json.loads(ended.stdout)["nodes"] for ended in (of_folder, of_archive))
    assert {row["node"]: row["status"] for row in first} == {"node1": "PASS", "node2": "PERF-FAIL"}
    assert [row["status"] for row in second] == [row["status"] for row in first]


def test_what_cannot_be_packed_is_one_sentence(command, results, tmp_path, monkeypatch):
    command("results", "pack", "--output", tmp_path / "mine.zip", code=2)
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    ended = command("results", "pack", code=3)
    assert "no session" in ended.stderr.lower()
