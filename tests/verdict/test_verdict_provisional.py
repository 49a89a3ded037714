"""A partition without a calibration of its own has a provisional verdict, and no live line."""

import json

import pytest

import factories
from fabricheck.judge.verdict import evidence
from fabricheck.references import calibrated
from fabricheck.references.published import OWN_FOLDER, PREFIX_VARIABLE
from fabricheck.report import scheduler
from fabricheck.results import observed
from session_builder import PARTITION, SessionBuilder, ended, failed, good_case, judge, missed

OTHER = "cluster:more"
MISSED = good_case() | missed()
WRONG = good_case() | failed("sanity", "wrong", job_exitcode=5)
NO_DEVICE = good_case() | failed("sanity", "one is missing", "OtherDevicesError")


@pytest.fixture
def uncalibrated(references):
    """The folder of references, without the record of the partition."""
    calibrated.file_of(references, PARTITION).unlink()
    return references


def elsewhere(case: dict) -> dict:
    """Move a case to another partition of the same node."""
    values = {name.replace(PARTITION, OTHER): one for name, one in case["perfvalues"].items()}
    shown = case["display_name"].replace(PARTITION, OTHER)
    own = {"partition": "more", "unique_name": "more", "perfvalues": values}
    return case | own | {"display_name": shown}


def lines(verdict) -> list[str]:
    return scheduler.drain_lines(evidence.session_verdict("x", [verdict]).nodes)


@pytest.mark.parametrize(
    ("case", "outcome", "status"),
    [
        (good_case(), ("good", 0), "provisional PASS"),
        (MISSED, ("good", 0), "provisional PERF-FAIL"),
        (good_case() | failed("setup"), ("good", 0), "INCOMPLETE"),
        (NO_DEVICE, ("good", 0), "HW-FAIL"),
        (WRONG, ("wrong-data", 5), "DATA-FAIL"),
    ],
)
def test_what_rests_on_limits_is_provisional(uncalibrated, tmp_path, case, outcome, status):
    document = ended(*outcome, None if outcome[1] == 0 else "it says so")
    verdict = SessionBuilder(tmp_path / "results").add(case, document).verdict()
    assert verdict.label == status
    assert ("provisional" in (verdict.drain.doubts if verdict.drain else ())) == (case is MISSED)
    assert verdict.provisional == ([PARTITION] if "provisional" in status else [])
    # With a record of its own it is as ever.
    factories.calibration(uncalibrated, PARTITION)
    proven = SessionBuilder(tmp_path / "results").add(case, document).verdict()
    assert (proven.label, proven.provisional) == (verdict.status, [])
    assert proven.drain is None or "provisional" not in proven.drain.doubts


def test_what_is_simulated_is_not_provisional(uncalibrated, tmp_path):
    verdict = (
        SessionBuilder(tmp_path / "results").add(MISSED, factories.simulated_document()).verdict()
    )
    assert (verdict.label, verdict.provisional) == ("PERF-FAIL", [])
    assert lines(verdict)[0].startswith("# it is simulated; ")


def test_a_pass_in_one_partition_without_a_calibration_is_provisional(references, tmp_path):
    verdict = (
        SessionBuilder(tmp_path / "both")
        .passed()
        .add(elsewhere(good_case()), factories.document())
        .verdict()
    )
    assert (verdict.status, verdict.provisional) == ("PASS", [OTHER])


def test_one_missed_limit_of_a_calibrated_partition_is_enough(references, tmp_path):
    verdict = (
        SessionBuilder(tmp_path / "both")
        .add(MISSED, factories.document())
        .add(elsewhere(MISSED), factories.document())
        .verdict()
    )
    assert (verdict.status, verdict.provisional) == ("PERF-FAIL", [])
    assert "provisional" not in verdict.drain.doubts
    verdict = (
        SessionBuilder(tmp_path / "other")
        .passed()
        .add(elsewhere(MISSED), factories.document())
        .verdict()
    )
    assert (verdict.label, verdict.provisional) == ("provisional PERF-FAIL", [OTHER])
    assert verdict.drain.doubts[0] == "provisional"


def test_the_sentence_stands_once_and_exit_codes_stay(command, uncalibrated, tmp_path, wording):
    nodes = [good_case(node=f"node{number}") for number in (1, 2)] + [
        good_case(node="node3") | missed()
    ]
    SessionBuilder(tmp_path / "results").each(
        [(case, factories.document()) for case in nodes]
    ).write()
    result = command("verdict", tmp_path / "results", code=12)
    said = result.stdout
    assert result.exit_code == 12
    assert said.startswith("Verdict on run-0: 1 provisional PERF-FAIL, 2 provisional PASS\n")
    assert "\nprovisional PASS (2): node[1-2]\n" in said
    assert "\n# its limits have no calibration; " in said and "\nscontrol" not in said
    wording(line for line in said.splitlines() if "calibrat" in line)
    whole = json.loads((tmp_path / "results" / "verdicts" / "run-0" / "verdict.json").read_text())
    assert [one["provisional"] for one in whole["nodes"]] == 3 * [[PARTITION]]
    assert whole["counts"]["PASS"] == 2


@pytest.mark.parametrize(
    ("partition", "expected"),
    [("h200:x2", True), ("h200:x8", False), ("lumi:gpu", False), ("local:host", False)],
)
def test_what_another_partition_gives_is_no_calibration_of_its_own(partition, expected):
    """Entries of h200:x8 are those of the record of h200:x2."""
    assert calibrated.has_own(OWN_FOLDER, partition) is expected


def test_a_record_that_cannot_be_read_and_a_simulated_one_are_none(references):
    path = factories.calibration(references, PARTITION, clock="simulated")
    assert not calibrated.has_own(references, PARTITION)
    path.write_text("{")
    assert not calibrated.has_own(references, PARTITION)


def test_the_page_says_it_once(command, uncalibrated, tmp_path, monkeypatch):
    monkeypatch.setenv(PREFIX_VARIABLE, str(uncalibrated))
    SessionBuilder(tmp_path / "results").passed().write()
    where = tmp_path / "page"
    command("report", tmp_path / "results", "--output", where)
    text = (where / "index.html").read_text()
    assert text.count("has no calibration of its own") == 1
    assert "provisional PASS" in text


def test_a_moved_session_is_firm_by_the_record_of_its_own_node_and_not_of_this_one(
    command, tmp_path, monkeypatch
):
    """Its node model is in the results folder; documents have the path where it was made."""
    monkeypatch.setenv(PREFIX_VARIABLE, str(OWN_FOLDER))
    monkeypatch.delenv("FABRICHECK_NODE", raising=False)
    environment = {"FABRICHECK_NODE": "/elsewhere/results/nodes/vm.yaml"}
    document = factories.document(environment=environment)
    root, model = OWN_FOLDER.parent, tmp_path / "nodes" / "vm.yaml"
    results = (
        SessionBuilder(tmp_path)
        .passed(node=None, document=document, system="local", partition="gpu")
        .write()
    )
    facts = root / "tests" / "outputs" / "inventory" / "h100-x2.json"
    words = ["node", "draft", "vm", "--from", facts, "--output", model.parent]
    model.parent.mkdir()
    command(*words)
    (verdict,) = judge(results).values()
    assert verdict.status == "PASS" and verdict.provisional == []
    text = (root / "config" / "nodes" / "mi210.yaml").read_text()
    model.write_text(text.replace("name: mi210", "name: vm"))
    observed._node.cache_clear()
    (verdict,) = judge(results).values()
    assert verdict.provisional == ["local:gpu"]
