"""The mark that a session leaves first: a verdict is on the session that was meant."""

import errno
import os
import re
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

import factories
from fabricheck.core.errors import InvalidInputError
from fabricheck.results import marking
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import read
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, write
from session_builder import SessionBuilder

START = factories.SESSION_START


def measured(results, number, start=START, **changes):
    """Write a session with its mark, its document and one check."""
    name = f"stream_local_{number}"
    case = factories.case() | {"unique_name": name}
    session = SessionBuilder(results, number, start=start, stamp=factories.stamp(number))
    session.add(case, factories.document()).write()
    factories.mark(results, number, start, **changes)
    return factories.case_folder(results, name) / "result.json"


@pytest.fixture
def after_a_pass(results_folder):
    """A results folder with a session that passed, and behind it the mark of another one."""
    measured(results_folder, 0)
    factories.mark(results_folder, 1, START + 600)
    return results_folder


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="no-check"),
        pytest.param({"outputs": factories.stamp(1)}, id="no-document"),
        pytest.param({"elsewhere": ["/x/output", "/x.json"]}, id="elsewhere"),
        pytest.param({"job": "17"}, id="job"),
        pytest.param({"form": "other"}, id="no-mark"),
    ],
)
def test_a_session_that_left_nothing_lets_no_earlier_pass_stand(
    command, after_a_pass, changes, wording
):
    factories.mark(after_a_pass, 1, START + 600, **changes)
    verdict = command("verdict", json=True, code=13)
    [node] = verdict.json["nodes"]
    assert node["status"] == "INCOMPLETE"
    [reason] = node["reasons"]
    # A session that could not write its mark began when the file of it was made.
    wording(re.sub(r"begun [\d-]+ [\d:]+", "begun THEN", reason["sentence"]))
    assert command("verdict", "run-0").exit_code != 13


def test_the_mark_may_be_all_that_a_full_disk_took(command, after_a_pass):
    (after_a_pass / "marks/000001.json").write_text("")
    assert "mark-1" in command("verdict", code=13).stdout
    command("verdict", "mark-1", code=13)


@pytest.mark.parametrize(
    "line",
    [
        "verdict",
        "summary",
        "report --output page",
        "diagnose",
        "results show",
        "results coverage",
        "results export",
    ],
)
def test_every_command_takes_the_session_that_began_last(
    command, after_a_pass, line, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ended = command(*line.split(), code=None)
    assert f"session {factories.stamp(1)}" in ended.words
    assert "Traceback" not in ended.output
    assert ended.exit_code or line == "diagnose"


def test_the_number_of_the_mark_decides_and_not_the_clock(command, results_folder):
    measured(results_folder, 1, START + 7200)
    measured(results_folder, 2, START)
    assert read([]).session.id == "run-2"
    assert [one.id for one in ResultsFolder(results_folder).sessions] == ["run-2", "run-1"]
    listed = command("results", "list", json=True).json["sessions"]
    assert [row["session"] for row in listed] == ["run-2", "run-1"]


def test_sessions_without_a_mark_are_ordered_by_their_start(results_folder):
    for number, start in enumerate((START, START + 7200, START + 3600)):
        SessionBuilder(results_folder, number, start=start).add(factories.case()).write()
    assert read([]).session.id == "run-1"
    factories.mark(results_folder, 1, START + 9000)
    assert read([]).session is None


def test_a_killed_session_keeps_what_it_measured(after_a_pass):
    left = after_a_pass / "stage" / factories.stamp(1) / "local/host/host/p2p/result.json"
    factories.write(left)
    found = read([])
    assert found.name == factories.stamp(1) and not found.problems
    assert [entry.path for entry in found.entries] == [left]


def test_a_session_is_found_by_the_name_that_it_was_given(command, results_folder):
    measured(results_folder, 0, name="nightly")
    measured(results_folder, 1, START + 600)
    assert read(["nightly"]).session.id == "run-0"
    assert "nightly" in command("results", "list").stdout
    # Of several with one name, the last: here it left nothing.
    factories.mark(results_folder, 2, START + 900, name="nightly")
    command("verdict", "nightly", code=13)
    command("verdict", "weekly", code=3)


def test_without_a_name_the_session_is_meant_that_the_variable_names(
    command, after_a_pass, monkeypatch, wording
):
    measured(after_a_pass, 2, START + 900, name="nightly")
    monkeypatch.setenv("FABRICHECK_SESSION", "nightly")
    measured(after_a_pass, 3, START + 1200)
    assert read([]).session.id == "run-2"
    # It was killed before it had a mark, or ReFrame refused its command line.
    for name in ("weekly", "run-0"):
        monkeypatch.setenv("FABRICHECK_SESSION", name)
        ended = command("verdict", code=3)
        wording(ended.stderr)


def test_a_job_over_many_nodes_has_a_mark_too(after_a_pass):
    requested = {"node1": RequestedNode(), "node2": RequestedNode()}
    began = datetime.fromtimestamp(START - 7200, UTC)
    job = after_a_pass / "every-node/17"
    job.mkdir(parents=True)
    write(job / "nodes.json", RequestedNodes(partition=None, started=began, nodes=requested))
    assert read([]).job is None
    factories.mark(after_a_pass, 2, START - 7200, job="17", name="weekly")
    assert read([]).job.name == read(["weekly"]).job.name == "17"


def test_what_left_nothing_has_no_part_in_all_sessions(after_a_pass):
    every = read([str(after_a_pass)], all_sessions=True)
    assert [source.name for source in every.sources] == ["run-0"]
    assert not every.problems


def test_a_list_says_what_a_mark_alone_is(command, after_a_pass):
    listed = command("results", "list")
    assert factories.stamp(1) in listed.stdout
    assert "could not start, were killed at once or wrote elsewhere" in listed.stdout


def test_an_archive_has_the_marks(command, after_a_pass, tmp_path):
    packed = tmp_path / "sent.tar.gz"
    command("results", "pack", "--output", packed)
    with tarfile.open(packed) as archive:
        assert any(name.endswith("marks/000001.json") for name in archive.getnames())
    command("verdict", packed, code=13)


@pytest.mark.parametrize(
    ("arguments", "measures"),
    [
        ("-r", True),
        ("--mode=smok --run", True),
        ("-vr -n x", True),
        ("-n -x --ru", True),
        ("-l", False),
        ("-L -n run", False),
        ("--dry-run", False),
        ("-n for -t node", False),
        ("--recursive --show-config", False),
        ("--restore-session=r --list-tags", False),
    ],
)
def test_only_a_session_leaves_a_mark(arguments, measures):
    assert marking.measures(arguments.split()) is measures


def leave(results, monkeypatch, name=None, number=1):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results))
    if name is not None:
        monkeypatch.setenv("FABRICHECK_SESSION", name)
    return marking.leave(factories.stamp(number), ["reframe", "-r"], results)


def test_marks_of_sessions_that_begin_together_have_numbers_of_their_own(tmp_path, monkeypatch):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda number: leave(tmp_path, monkeypatch, number=number), range(8)))
    assert sorted(path.name for path in paths) == [f"{number:06}.json" for number in range(1, 9)]
    assert {mark.stamp for mark in ResultsFolder(tmp_path).marks} == {
        *map(factories.stamp, range(8))
    }


def test_the_mark_is_in_the_folder_that_was_meant(tmp_path, monkeypatch):
    """The session will refuse such a folder; an earlier result in it must not stand."""
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir("/")
    (tmp_path / "my results").mkdir()
    assert leave("my results", monkeypatch).parent == tmp_path / "my results/marks"
    # One that is not there yet is made, where its place is told as a whole.
    assert leave(tmp_path / "new/results", monkeypatch).parent == tmp_path / "new/results/marks"
    # What the session refuses itself, in a sentence of its own.
    (tmp_path / "file").write_text("")
    assert leave("not there", monkeypatch) is None
    assert leave(tmp_path / "file/results", monkeypatch) is None


@pytest.mark.parametrize("name", ["run-3", "latest", "17", "a b", "-r", "a/b", "mark-1", "a.json"])
def test_a_name_that_means_something_else_is_refused_and_the_session_marked(
    tmp_path, monkeypatch, name
):
    with pytest.raises(InvalidInputError, match="does not name a session"):
        leave(tmp_path, monkeypatch, name)
    [mark] = ResultsFolder(tmp_path).marks
    assert mark.name is None


def test_a_folder_that_takes_no_mark_is_named(tmp_path, monkeypatch):
    (tmp_path / "marks").write_text("")
    with pytest.raises(InvalidInputError, match=f"cannot leave its mark in {tmp_path}/marks: "):
        leave(tmp_path, monkeypatch)


def test_where_no_session_can_leave_a_mark_no_verdict_goes_without_a_name(
    command, results_folder, monkeypatch, wording
):
    """As in a folder that is read-only or full, where an equal verdict is there already."""
    measured(results_folder, 0)
    judged = command("verdict").exit_code
    assert judged != 3

    def refuse(dir):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    refused = command("verdict", code=3)
    wording(refused.stderr)
    command("verdict", "run-0", code=judged)
