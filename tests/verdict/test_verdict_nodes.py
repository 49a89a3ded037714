"""Which results are whose: nodes, simulated nodes, folders taken together, recorded sessions."""

import json
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import factories
from fabricheck.core.errors import NotFoundError
from fabricheck.judge.verdict import evidence, judging, model
from fabricheck.judge.verdict.outcomes import choice_of
from fabricheck.results import reading
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, now, write
from fabricheck.site.sets import Choice
from session_builder import (
    HOST,
    PARTITION,
    SessionBuilder,
    good_case,
    judge,
    missed,
    rules,
    write_job,
)

H200 = Path(__file__).parents[1] / "outputs" / "h200"
SIM = "local:sim-mi250x"
NAMED = "reframe -r -n stream_local"


def test_a_simulated_node_never_decides_about_its_machine(tmp_path):
    found = (
        SessionBuilder(tmp_path, command=NAMED)
        .passed(where=HOST)
        .missed(node=None, document=factories.simulated_document(), where=SIM, unique_name="sim")
        .verdicts()
    )
    assert {name: one.status for name, one in found.items()} == {
        "node1": "PASS",
        "node1*": "PERF-FAIL",
    }
    assert found["node1*"].simulated.label == "local:sim-mi250x (mi250x)"
    assert found["node1*"].clock == "simulated" and found["node1"].clock == "measured"
    total = evidence.session_verdict("run-0", list(found.values()))
    assert total.exit_code == 12
    assert {row.file for row in total.nodes} == {
        "node1.json",
        "node1.simulated.local-sim-mi250x.json",
    }


def test_a_simulated_clock_is_no_result_of_a_machine(tmp_path):
    found = (
        SessionBuilder(tmp_path, command=NAMED)
        .failed("sanity", node=None, document=factories.simulated_document(), where=HOST)
        .passed("other", where=HOST)
        .verdicts()
    )
    assert (found["node1"].status, found["node1"].checks.missing) == (
        "INCOMPLETE",
        ["stream_local"],
    )
    assert rules(found["node1*"]) == {"not-believed", "missing"}


def test_a_check_that_left_nothing_is_of_the_simulated_node_where_its_partition_simulates(tmp_path):
    found = (
        SessionBuilder(tmp_path, command=NAMED)
        .failed("setup", "no program", where=SIM)
        .passed("a", where=HOST)
        .verdicts()
    )
    assert {name: one.status for name, one in found.items()} == {
        "node1": "PASS",
        "node1*": "INCOMPLETE",
    }


def test_a_check_that_left_nothing_is_of_the_node_of_its_partition(tmp_path):
    host = factories.document()["host"] | {"hostname": "mi250x (simulated)"}
    found = (
        SessionBuilder(tmp_path, command=NAMED)
        .passed("a", where=HOST)
        .passed("b", document=factories.simulated_document(host=host), where=SIM)
        .failed("setup", "no program", check="c", where=SIM)
        .verdicts()
    )
    assert {name: (one.status, one.checks.failed) for name, one in found.items()} == {
        "node1": ("PASS", 0),
        "mi250x (simulated)*": ("INCOMPLETE", 1),
    }


def test_folders_are_taken_together_by_node(tmp_path):
    for number, (check, node) in enumerate([("a", "node1"), ("b", "node1"), ("a", "node2")]):
        SessionBuilder(tmp_path / str(number), command=f"reframe -r -n /{number}").passed(
            check, node
        ).write()
    found = judge(*sorted(tmp_path.iterdir()))
    assert {name: one.status for name, one in found.items()} == {
        "node1": "PASS",
        "node2": "INCOMPLETE",
    }
    assert [one.results for one in found["node1"].sessions] == [
        str(tmp_path / "0"),
        str(tmp_path / "1"),
    ]


def test_a_folder_without_a_session_costs_the_others_no_verdict(tmp_path):
    there = SessionBuilder(tmp_path / "there").passed().write()
    early, cut = tmp_path / "early", tmp_path / "cut"
    (early / "logs").mkdir(parents=True)
    (cut / "reports").mkdir(parents=True)
    (cut / "reports/run-0.json").write_text("{")
    found = judge(there, early, cut)
    assert set(found) == {"node1", "(no node)"}
    lost = found["(no node)"]
    assert (lost.status, lost.clock, lost.scheduled) == ("INCOMPLETE", None, False)
    assert {one.rule for one in lost.reasons} == {"report"}
    assert all(any(str(path) in one.sentence for one in lost.reasons) for path in (early, cut))
    with pytest.raises(NotFoundError, match="early"):
        judge(early, cut)


def test_one_node_of_a_job_alone_is_not_told_of_the_others(tmp_path, monkeypatch):
    write_job(tmp_path, {"node1": 10.0, "node2": 10.0, "node3": None})
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    (found,) = judging.judge(reading.read(["17@node2"]))
    assert (found.node, found.status) == ("node2", "PASS")


def test_a_node_that_one_of_several_jobs_has_nothing_of_is_incomplete(tmp_path, wording):
    first = write_job(tmp_path / "a", {"node1": 10.0, "node2": 10.0})
    second = write_job(tmp_path / "b", {"node1": 10.0, "node2": None})
    found = judge(first, second)
    assert {name: one.status for name, one in found.items()} == {
        "node1": "PASS",
        "node2": "INCOMPLETE",
    }
    (reason,) = found["node2"].reasons
    assert reason.rule == "silent" and str(second) in reason.sentence
    wording(reason.sentence)


def test_of_several_choices_no_set_is_the_whole():
    node, names = Choice(("--mode=node",), "node"), Choice(("-n", "stream_local"), None)
    assert choice_of([node, node]) == node
    for both in ([node, names], [names, node]):
        found = choice_of(both)
        assert found.set is None and set(found.words) == {*node.words, *names.words}


def test_a_folder_that_is_named_twice_counts_once(tmp_path):
    job = write_job(tmp_path, {"node1": 10.0})
    (found,) = judge(job, job).values()
    assert (found.status, found.checks.passed, len(found.sessions)) == ("PASS", 1, 1)


def test_the_last_by_its_start_counts(tmp_path, wording):
    first = SessionBuilder(tmp_path / "a").missed().write()
    later = SessionBuilder(tmp_path / "b", start=factories.SESSION_START + 3).passed().write()
    (reason,) = judge(later, first)["node1"].reasons
    assert reason.rule == "varies"
    wording(reason.sentence)


def test_nodes_that_must_be_there(tmp_path):
    results = SessionBuilder(tmp_path).passed().write()
    found = judge(results, nodes=("node1", "node2"))
    assert (found["node1"].status, found["node2"].status) == ("PASS", "INCOMPLETE")
    assert found["node2"].clock is None and rules(found["node2"]) == {"silent"}


def test_the_nodes_of_a_distributed_session_are_never_absent(tmp_path, wording):
    results = SessionBuilder(tmp_path).passed().write()
    requested = {"node1": RequestedNode(), "node2": RequestedNode(state="IDLE")}
    (results / "output").mkdir(exist_ok=True)
    write(
        results / "output" / "nodes.json",
        RequestedNodes(partition=PARTITION, started=now(), nodes=requested),
    )
    found = judge(results)
    assert found["node2"].status == "INCOMPLETE"
    wording(found["node2"].reasons[0].sentence)


def asked_of(results, partition="h200:x2", **node1):
    """Let a session have been asked for two nodes."""
    requested = {"node1": RequestedNode(**node1), "node2": RequestedNode()}
    chosen = ("-t", "smoke")
    (results / "output").mkdir(exist_ok=True)
    write(
        results / "output" / "nodes.json",
        RequestedNodes(partition=partition, chosen=chosen, started=now(), nodes=requested),
    )
    return results


def test_a_session_that_failed_without_a_check_that_did_is_no_pass(tmp_path):
    for number, (changes, status, expected) in enumerate(
        [({}, 0, set()), ({}, 1, {"session"}), (missed(), 1, {"reference"})]
    ):
        results = SessionBuilder(tmp_path / str(number)).check(**changes).write()
        found = judge(asked_of(results, status=status))["node1"]
        assert rules(found) == expected
    slow = RequestedNode(how_ended="node1 did not end within 9 minutes and was stopped.")
    found = judge(asked_of(results, how_ended=slow.how_ended))["node1"]
    assert [one.sentence for one in found.reasons if one.rule == "session"] == [slow.how_ended]


def test_what_ended_all_of_a_node_is_told_before_each_check(tmp_path):
    cut = {"result": "abort", "fail_reason": "aborted due to ForceExitError"}
    results = SessionBuilder(tmp_path).check(document=None, **cut).write()
    found = judge(asked_of(results, how_ended="node1 was stopped."))["node1"]
    assert [one.rule for one in found.reasons] == ["session", "cancelled"]
    assert found.reasons[1].sentence.endswith("a signal ended it.")


def test_a_killed_session_is_of_the_set_that_its_nodes_were_asked_for(tmp_path):
    folder = tmp_path / "output" / "20260102T030405-17"
    within = "stage/20260102T030405-17/h200/x2/cuda/stream_local"
    factories.write(tmp_path / within / "result.json", factories.document())
    (tmp_path / "output").mkdir()
    shutil.move(asked_of(tmp_path) / "output" / "nodes.json", tmp_path)
    folder.mkdir()
    shutil.move(tmp_path / "nodes.json", folder)
    factories.recorded_checks(folder, "h200:x2", stream_local="smoke", p2p_engine="smoke")
    found = judge(tmp_path)["node1"]
    assert (found.set, found.checks.missing) == ("smoke", ["p2p_engine"])


def test_a_node_that_one_of_several_has_no_result_of_did_not_pass(tmp_path, wording):
    before = SessionBuilder(tmp_path / "before").passed().passed(node="node2").write()
    later = asked_of(SessionBuilder(tmp_path / "later").passed(node="node2").write())
    found = judge(before, later)
    assert (found["node1"].status, found["node2"].status) == ("INCOMPLETE", "PASS")
    (reason,) = found["node1"].reasons
    assert reason.rule == "silent" and str(later) in reason.sentence
    wording(reason.sentence)
    assert judge(before)["node1"].status == "PASS"


def test_a_node_that_one_of_several_simulated_is_not_silent_in_it(tmp_path):
    before = SessionBuilder(tmp_path / "before").passed().write()
    simulated = factories.simulated_document()
    later = SessionBuilder(tmp_path / "later").passed(node="node1", where=SIM, document=simulated)
    asked_of(later.write())
    assert judge(before, later.results)["node1"].status == "PASS"


def test_a_job_that_was_never_placed_is_not_lost(tmp_path):
    found = (
        SessionBuilder(tmp_path)
        .passed("a")
        .passed("a", "node2")
        .failed("run", "refused", check="b", node=None, scheduler="squeue", job_nodelist=[])
        .verdicts()
    )
    assert found["(no node)"].status == "INCOMPLETE" and not found["(no node)"].scheduled


@pytest.mark.parametrize("text", ["", "{", '{"schema": "fabricheck-result"}', "\0"])
def test_a_damaged_document_is_incomplete_and_named(tmp_path, text):
    results = SessionBuilder(tmp_path).passed().write()
    path = factories.case_folder(results, "stream_local_node1") / "result.json"
    path.write_text(text)
    found = judge(results)["node1"]
    assert rules(found) == {"no-document"} and str(path) in found.reasons[0].sentence


def test_a_failed_check_with_a_damaged_document_names_the_file(tmp_path):
    results = SessionBuilder(tmp_path).failed("sanity", document=factories.document()).write()
    path = factories.case_folder(results, "stream_local_node1", "stage") / "result.json"
    path.write_text("{")
    assert str(path) in judge(results)["node1"].reasons[0].sentence


def test_what_was_killed_after_the_last_report_is_the_latest(tmp_path, monkeypatch):
    results = SessionBuilder(tmp_path).passed().write()
    requested = RequestedNodes(partition=PARTITION, started=now(), nodes={"node1": RequestedNode()})
    folder = results / "output" / "20260301T000000-7"
    folder.mkdir(parents=True)
    write(folder / "nodes.json", requested)
    found = reading.read([str(results)])
    assert found.name == folder.name and list(found.requested) == ["node1"]
    job = results / "every-node" / "18"
    job.mkdir(parents=True)
    write(job / "nodes.json", requested)
    assert model.folder(reading.read([str(results)])) == job / "verdicts"
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results))
    assert reading.read(["18"]).name == "18" and reading.read(["run-0"]).name == "run-0"
    assert reading.read([folder.name]).name == folder.name
    with pytest.raises(NotFoundError, match="no session 'run-9'"):
        reading.read(["run-9"])
    (job / "nodes.json").write_text("{")
    found = reading.read(["latest"])
    (problem,) = found.problems
    assert found.name == folder.name and "nodes.json" in problem.sentence


def test_the_recorded_session_has_its_node_devices_and_versions(tmp_path):
    results = shutil.copytree(H200 / "session-x2", tmp_path / "results")
    (found,) = judging.judge(reading.read([str(results)]))
    assert (found.node, found.set, found.clock, found.scheduled) == (
        "vm",
        "full",
        "measured",
        False,
    )
    # It is of a version that recorded no checks, and had no limits of speed.
    assert (found.status, rules(found)) == ("INCOMPLETE", {"nothing-judged"})
    assert found.checks.missing == []
    assert any("no session recorded them" in one for one in found.caveats)
    assert (found.checks.passed, found.checks.failed, len(found.checks.skipped)) == (21, 0, 6)
    assert all("report does not say" not in one.why for one in found.checks.skipped)
    assert [one.pci_address for one in found.devices] == ["0000:00:06.0", "0000:00:07.0"]
    assert found.devices[0].unique_id and found.versions.driver and found.versions.mpi
    assert found.versions.reframe == ["4.10.4"]
    assert 200 < found.duration_s < 223


def test_the_misses_of_a_report_without_documents_are_told_without_places(tmp_path):
    reports = tmp_path / "reports"
    reports.mkdir()
    shutil.copy(H200 / "reports-x2" / "tightened.json", reports / "run-0.json")
    (found,) = judging.judge(reading.read([str(tmp_path)]))
    slow = [one for one in found.reasons if one.rule == "reference"]
    assert (found.status, found.clock) == ("PERF-FAIL", "measured")
    assert [one.metric for one in slow] == [
        "write_switch18_worst",
        "write_switch18_median",
        "copy_worst",
    ]
    assert "the check measured 373.185 GB/s; at least 402.378 GB/s is" in slow[0].sentence


@pytest.mark.parametrize("name", ["stream_unwritten", "p2p_flip", "bcast_flip"])
def test_a_recorded_fault_is_wrong_data_and_named_as_faults_injected(tmp_path, name):
    target = tmp_path / "stage" / "20261121T000000-1" / "h200" / "x2" / "cuda" / "check"
    target.mkdir(parents=True)
    shutil.copy(H200 / "faults-x2" / f"{name}.json", target / "result.json")
    (found,) = judging.judge(reading.read([str(tmp_path)]))
    assert found.status == "DATA-FAIL" and found.faults_injected
    rule = "wrong-data-twice" if name == "p2p_flip" else "wrong-data"
    assert found.reasons[0].rule == rule and "(0000:" in found.reasons[0].sentence


@pytest.mark.full
def test_five_hundred_nodes_are_judged_in_seconds(tmp_path):
    cases = [(good_case(node=f"node{number}"), factories.document()) for number in range(500)]
    cases[7] = (cases[7][0] | missed(), factories.document())
    results = SessionBuilder(tmp_path).each(cases).write()
    began = time.monotonic()
    found = judging.judge(reading.read([str(results)]), [f"node{number}" for number in range(501)])
    total = evidence.session_verdict("run-0", found)
    model.write(tmp_path / "verdicts", found, total)
    assert time.monotonic() - began < 20
    assert (total.counts["PASS"], total.counts["PERF-FAIL"], total.counts["INCOMPLETE"]) == (
        499,
        1,
        1,
    )
    assert len(list((tmp_path / "verdicts").iterdir())) == 502


@pytest.fixture
def job(tmp_path):
    """A job of ten nodes: one left nothing, one a broken document, one ran a check more."""
    values = {f"node{n}": 10.0 for n in range(9)} | {"node9": None}
    job = write_job(tmp_path, values, simulated=values)
    (path,) = (job / "node7").glob("output/**/stream_local/result.json")
    content = json.loads(path.read_text())
    content["series"][0]["median"] += 1
    path.write_text(json.dumps(content))
    report = job / "node8/reports/run-0.json"
    content = json.loads(report.read_text())
    cases = content["runs"][0]["testcases"]
    cases.append(cases[0] | {"display_name": "other", "unique_name": "other", "tags": []})
    report.write_text(json.dumps(content))
    return job


def test_a_node_that_left_nothing_where_all_others_are_simulated_is_a_simulated_one(tmp_path):
    simulated = factories.simulated_document()
    session = SessionBuilder(tmp_path, command=NAMED)
    session.passed(where=SIM, document=simulated)
    found = session.verdicts(nodes=("node2",))
    assert found["node2*"].simulated.label == "local:sim-mi250x"
    found = session.passed("other", where=HOST).verdicts(nodes=("node2",))
    assert found["node2"].simulated is None


def test_nodes_of_a_simulated_partition_that_never_answered_are_simulated_ones(tmp_path):
    results = SessionBuilder(tmp_path, command=NAMED).passed(where=HOST).write()
    found = judge(asked_of(results, partition=SIM), nodes=("node3",))
    assert {name: one.status for name, one in found.items()} == {
        "node1": "PASS",
        "node2*": "INCOMPLETE",
        "node3*": "INCOMPLETE",
    }


def on_cores(monkeypatch, cores, job):
    """Return the verdicts by as many processes, and whether a document was read in this one."""
    monkeypatch.setattr(judging, "_FEWEST", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    results = reading.read([str(job)])
    found = judging.judge(results, ["node10"])
    return found, any("entries" in vars(source) for source in results.sources)


def test_processes_that_share_the_nodes_of_a_job_give_the_verdicts_of_one(job, monkeypatch):
    alone, read_here = on_cores(monkeypatch, 1, job)
    assert read_here
    found = {f"{one.node}{'*' if one.simulated else ''}": one for one in alone}
    assert rules(found["node7"]) == {"no-document", "missing"}
    assert all(rules(found[f"node{n}"]) == {"missing"} for n in range(7))
    assert {name for name, one in found.items() if one.status == "PASS"} == {
        "node8",
        *(f"node{n}*" for n in range(9)),
    }
    assert rules(found["node9"]) == rules(found["node10"]) == {"silent"}
    for cores in (2, 3, 64):
        assert on_cores(monkeypatch, cores, job) == (alone, False)


def test_what_a_killed_process_was_to_judge_is_judged_here(job, monkeypatch):
    alone, _ = on_cores(monkeypatch, 1, job)
    own, group = os.getpid(), judging.group

    def killed(sources):
        if os.getpid() != own:
            os._exit(9)
        return group(sources)

    monkeypatch.setattr(judging, "group", killed)
    assert on_cores(monkeypatch, 2, job) == (alone, True)


def test_a_node_that_two_folders_of_a_job_have_results_of_is_judged_once(job, monkeypatch):
    report = job / "node0/reports/run-0.json"
    content = json.loads(report.read_text())
    for one in content["runs"][0]["testcases"]:
        one |= {"scheduler": "slurm", "job_nodelist": ["node6"]}
    report.write_text(json.dumps(content))
    alone, _ = on_cores(monkeypatch, 1, job)
    assert sum(one.node == "node6" for one in alone) == 2  # it, and what it simulates
    assert on_cores(monkeypatch, 4, job) == (alone, True)


def test_a_job_whose_sessions_did_not_begin_has_the_time_of_its_first_list():
    starts = [datetime(2026, 5, day, tzinfo=UTC) for day in (3, 1, 2)]
    results = SimpleNamespace(sources=(), lists=[SimpleNamespace(started=one) for one in starts])
    assert [one.astimezone(UTC) for one in judging.began(results)] == [starts[1]]
