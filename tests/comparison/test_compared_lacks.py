"""What one of two sessions lacks, or nobody can read: told, and never called worse."""

import json

import pytest
from two_sessions import HEALTHY, document, judged, numbers, pair, results, spread

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.comparison.compare import side
from session_builder import SessionBuilder, write_job


def test_what_is_missing_ends_with_11_and_what_is_new_does_not(command, before, tmp_path):
    after = results(tmp_path / "b", document(HEALTHY[:2]))
    code, only = judged(command, before, after)
    assert code == 11
    assert numbers(only) == {"unchanged": 2, "missing_in_b": 1}
    assert only["missing_in_b"][0]["operation"] == "latency"
    code, only = judged(command, after, before)
    assert code == 0
    assert numbers(only) == {"unchanged": 2, "missing_in_a": 1}


def test_worse_outweighs_missing_and_a_corrupt_document(command, before, tmp_path):
    after = results(tmp_path / "b", document([pair(0, 1, spread(30))]))
    assert judged(command, before, after)[0] == 10
    lost = factories.case("p2p_kernel", tags=["E8"])
    session = SessionBuilder(after).add(factories.case("p2p_engine"))
    session.add(lost, document(HEALTHY)).write()
    path = factories.case_folder(after, "p2p_kernel") / "result.json"
    path.write_text("{")
    ended = command("compare", before, after, code=10)
    assert f"B: {path}: " in ended.stderr


def test_a_corrupt_document_is_named_and_ends_with_4(command, before, tmp_path):
    after = tmp_path / "b"
    session = SessionBuilder(after).add(factories.case("p2p_engine"), document(HEALTHY))
    session.add(factories.case("p2p_kernel"), document(HEALTHY)).write()
    path = factories.case_folder(after, "p2p_kernel") / "result.json"
    path.write_text("{")
    for sides, letter in (((before, after), "B"), ((after, before), "A")):
        ended = command("compare", *sides, code=4)
        assert f"{letter}: {path}: " in ended.stderr


def test_an_incomplete_document_is_named_and_ends_with_4(command, before, tmp_path):
    killed = {"exit_code": 130, "status": "interrupted", "message": "p2p: ended by signal 2"}
    part = document(HEALTHY[:2], complete=False, outcome=killed)
    code, only = judged(command, before, results(tmp_path / "b", part))
    assert code == 4
    assert "is incomplete (interrupted)" in only["unread"][0]
    assert numbers(only) == {"unchanged": 2, "missing_in_b": 1}


def test_a_skipped_check_is_missing_and_not_worse(command, before, tmp_path):
    session = SessionBuilder(tmp_path / "b").add(factories.case("p2p_engine", result="skip"))
    skipped = session.add(factories.case("other"), document(HEALTHY)).write()
    code, only = judged(command, before, skipped)
    assert only["checks_missing_in_b"] == ["p2p_engine"] and only["outcomes"] == []
    assert code == 3, "nothing is left to judge"
    code, only = judged(command, skipped, before)
    assert only["checks_missing_in_a"] == ["p2p_engine"]
    assert only["checks_missing_in_b"] == ["other"]


def test_a_killed_session_is_read_as_far_as_it_came(command, before, tmp_path, monkeypatch):
    killed = tmp_path / "b"
    monkeypatch.setenv("FABRICHECK_RESULTS", str(killed))
    (killed / "reports").mkdir(parents=True)
    where = "20261121T200000-7/local/host/host"
    factories.write(killed / "output" / where / "p2p_engine" / "result.json", document(HEALTHY))
    code, only = judged(command, before, "20261121T200000-7@local:host")
    assert code == 0
    assert numbers(only) == {"unchanged": 3}
    part = killed / "stage" / where / "p2p_kernel" / "result.json.partial"
    factories.write(part, factories.killed_document())
    shown = command("compare", "20261121T200000-7", before, code=4)
    assert f"A: {part}: it is incomplete (running)" in shown.stderr
    assert "it was killed, or is still running" in " ".join(shown.stdout.split())


def test_what_a_session_left_is_compared_where_its_report_is_cut(
    command, before, tmp_path, wording
):
    """As after a full disk: the report is named, and what was measured before it is compared."""
    cut = factories.write(tmp_path / "b" / "reports" / "run-0.json")
    cut.write_text("{")
    where = tmp_path / "b" / "output" / "20261121T200000-7" / "local" / "host" / "host"
    factories.write(where / "p2p_engine" / "result.json", document(HEALTHY))
    code, only = judged(command, tmp_path / "b", before)
    assert (code, numbers(only)) == (4, {"unchanged": 3})
    wording(command("compare", tmp_path / "b", before, code=4).stderr)


@pytest.mark.parametrize("text", ["{", json.dumps(factories.killed_document())])
def test_a_document_of_a_folder_that_ended_early_is_unread_and_not_worse(command, tmp_path, text):
    for name in ("a", "b"):
        for check in ("p2p_engine", "p2p_kernel"):
            factories.write(tmp_path / name / check / "result.json", document(HEALTHY))
    (tmp_path / "b" / "p2p_kernel" / "result.json").write_text(text)
    code, only = judged(command, tmp_path / "a", tmp_path / "b")
    assert (code, only["outcomes"], len(only["unread"])) == (4, [], 1)


def test_a_job_without_any_session_is_not_there_and_a_node_of_it_is_unread(tmp_path):
    job = write_job(tmp_path, {"node1": 10.0, "node2": 10.0})
    for report in job.glob("*/reports/*.json"):
        report.write_text("{")
    with pytest.raises(NotFoundError, match="no session of any node"):
        side(str(job))
    with pytest.raises(InvalidInputError, match=r"node2.*this is not a complete run report"):
        side(f"{job}@node2")


def test_a_partition_that_b_lacks_is_missing(command, before, tmp_path):
    more = results(tmp_path / "b", document(HEALTHY))
    cases = [factories.case("p2p_engine"), factories.case("build", partition="gpu", tags=[])]
    SessionBuilder(more).bare(cases).write()
    ended = command("compare", more, before, code=11)
    assert "Checks missing in B: build" in ended.stdout
    command("compare", before, more)
