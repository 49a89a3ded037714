"""What `latest` and names stand for: the same in every command."""

import json
import os
import shutil
from datetime import UTC, datetime

import pytest

import factories
from fabricheck.core.errors import InvalidInputError
from fabricheck.results.reading import read
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, write
from session_builder import SessionBuilder

START = factories.SESSION_START


@pytest.fixture
def folder(tmp_path):
    """A results folder with a session, and after it a job over two nodes of which one is lost."""
    results = tmp_path / "results"
    SessionBuilder(results, start=START).add(factories.case(), factories.document()).write()
    job = results / "every-node/42"
    SessionBuilder(job / "node1", 0, start=START + 3600).add(
        factories.case(), factories.document()
    ).write()
    requested = {"node1": RequestedNode(results="node1"), "node2": RequestedNode()}
    began = datetime.fromtimestamp(START + 3000, UTC)
    write(job / "nodes.json", RequestedNodes(partition=None, started=began, nodes=requested))
    return results


def test_what_began_last_may_be_a_job(folder):
    found = read([str(folder)])
    assert (found.name, found.job.folder) == ("42", folder / "every-node/42")
    SessionBuilder(folder, 1, start=START + 7200).add(factories.case()).write()
    assert read([str(folder)]).session.id == "run-1"


def test_every_command_takes_the_job_that_began_last(command, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(folder))
    page = tmp_path / "page"
    said = {}
    for line in ("report --output", "verdict --output", "results export", "results show"):
        words = [*line.split(), *([str(page)] if "--" in line else [])]
        said[line] = command(*words, code=None).output
        if page.is_dir():
            said[line] += "".join(one.read_text() for one in sorted(page.glob("*.*")))
            shutil.rmtree(page)
    assert [line for line, text in said.items() if "node2" not in text] == []
    compared = command("compare", "latest", folder, code=4).stdout
    assert " ".join(compared.split()).count("job 42 over 2 nodes") == 2


def test_a_report_that_cannot_be_read_hides_behind_no_job(folder):
    broken = folder / "reports/run-1.json"
    broken.write_text("{")
    os.utime(folder / "reports/run-0.json", (START, START))
    os.utime(broken, (START + 2000, START + 2000))
    assert read([str(folder)]).job is not None
    os.utime(broken, (START + 4000, START + 4000))
    with pytest.raises(InvalidInputError, match=r"run-1\.json"):
        read([str(folder)])


def test_what_has_no_report_is_the_last_too(folder, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(folder))
    name = "20990101T000000-7"
    (folder / "output" / name).mkdir(parents=True)
    (folder / "output" / name / "nodes.json").write_text(
        json.dumps({"partition": None, "started": "2099-01-01T00:00:00Z", "nodes": {"node9": {}}})
    )
    for word in ("latest", name):
        found = read([word])
        assert (found.name, found.session, found.silent) == (name, None, ("node9",))
