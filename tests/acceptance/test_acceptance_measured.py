"""A session that was recorded on two H200, under an agreement: what does not count of a machine."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from agreed_nodes import Machine, write_software

import factories
from fabricheck.judge.acceptance import criteria, sessions
from fabricheck.judge.acceptance.doubts import Judge
from fabricheck.judge.verdict.model import SimulatedNode
from fabricheck.references import agreement as agreements
from fabricheck.references.stated import references_in
from fabricheck.results.requested_nodes import now
from fabricheck.site.sites import OWN_FOLDER

RECORDED = Path(__file__).resolve().parents[1] / "outputs" / "h200" / "session-x2"

MEMORY = {"check": "stream_local", "metric": "copy_worst"}

#: The memory of an H200 has a peak of 4.8 TB/s, by its data sheet.
CRITERIA = [
    {"name": "peak", **MEMORY, "percent_of_peak": 85},
    {"name": "calibrated", **MEMORY, "limit": "calibrated"},
]


@pytest.fixture
def machine(tmp_path):
    """A job on node1 and node2, which both have the recorded session."""
    machine = Machine(tmp_path)
    folder = machine.results / "every-node" / "1"
    nodes = {}
    for node in ("node1", "node2"):
        shutil.copytree(RECORDED, folder / node)
        (outputs,) = (folder / node).glob("output/*")
        factories.recorded_checks(outputs, "h200:x2", stream_local="E1 smoke node full")
        nodes[node] = {"results": node}
    names = {"partition": None, "started": "2026-11-21T22:52:49Z", "job": "1", "nodes": nodes}
    factories.write(folder / "nodes.json", {"form": "fabricheck-nodes-1"} | names)
    return machine


def asked(command, machine, **changes):
    """Return by node the row of an agreement on the recorded partition."""
    agreed = {
        "system": "h200:x2", "simulated": False, "nodes": "node[1-2]", "commit": "deeb6d8",
        "sets": ["full"], "criteria": CRITERIA,
    }  # fmt: skip
    file = machine.agree(**agreed | changes)
    ended = command(
        "acceptance", "status", file, "--results", machine.results, code=None, json=True
    )
    assert ended.exit_code in (0, 12, 13), ended.output
    return {row["node"]: row for row in ended.json["nodes"]}


def kinds(row):
    """Return why the session of a node does not count."""
    return {doubt["kind"] for doubt in row["attempts"][0]["doubts"]}


def record_software(folder):
    """Record the digests of programs as a session does today."""
    (report,) = folder.glob("reports/run-*.json")
    start = json.loads(report.read_text())["session_info"]["time_start_unix"]
    (outputs,) = folder.glob("output/*")
    write_software(outputs.parent / "of-the-session", start, {"stream": "5" * 64}, "deeb6d8")
    made = outputs.parent / "of-the-session" / "output" / "software"
    record = json.loads((made / "software.json").read_text())
    record["environments"][0]["environment"] = "cuda"
    target = outputs / "software"
    target.mkdir()
    (target / "software.json").write_text(json.dumps(record))
    shutil.rmtree(outputs.parent / "of-the-session")


def test_one_machine_under_two_names_counts_for_neither(machine, command):
    rows = asked(command, machine)
    for node, other in (("node1", "node2"), ("node2", "node1")):
        assert {"same-machine", "copied", "programs"} <= kinds(rows[node])
        doubts = {doubt["kind"]: doubt["facts"] for doubt in rows[node]["attempts"][0]["doubts"]}
        assert doubts["copied"] == [other]
        assert ["vm", other] == doubts["same-machine"][:2]
        assert {cell["outcome"] for cell in rows[node]["cells"]} == {"open"}


def test_a_measured_session_counts_for_its_peak_and_for_no_later_limit(machine, command):
    shutil.rmtree(machine.results / "every-node" / "1" / "node2")
    record_software(machine.results / "every-node" / "1" / "node1")
    (row,) = asked(command, machine, nodes="node1").values()
    assert kinds(row) == set()
    of_set, peak, calibrated = row["cells"]
    assert (peak["outcome"], peak["least"]) == ("met", pytest.approx(0.85 * 4800))
    assert calibrated["value"] == peak["value"] == pytest.approx(4277, rel=0.01)
    # It was recorded before the partition was calibrated, and so judged by other limits.
    for cell in (of_set, calibrated):
        assert [doubt["kind"] for doubt in cell["doubts"]] == ["limits"]
    assert calibrated["doubts"][0]["facts"] == ["stream_local copy_worst"]
    assert len(row["hardware"]["devices"]) == 2
    assert row["hardware"]["devices"][0]["unique_id"].startswith("GPU-")


def test_a_provisional_verdict_and_one_without_gpus_count_for_no_set(machine, command):
    references = references_in(OWN_FOLDER)
    root = sessions.Root(0, machine.results)
    (session, _), problems = sessions.tried(root, "h200:x2", ["node1", "node2"], references)
    assert problems == []
    asked(command, machine)
    agreement = agreements.read(machine.file)
    (of_set, *_) = agreement.columns

    def doubts(**changes):
        verdict = session.verdict.model_copy(update={"status": "PASS", **changes})
        facts = replace(session.facts, limits=())
        answer = criteria.answer(
            replace(session, verdict=verdict, facts=facts), of_set, agreement, references
        )
        return answer.outcome, [doubt.kind for doubt in answer.doubts]

    assert doubts(accepted=True, provisional=[]) == ("met", [])
    assert doubts(accepted=True, provisional=["h200:x2"]) == ("met", ["provisional"])
    assert doubts(accepted=False, provisional=[]) == ("met", ["no-gpu"])


def test_a_simulated_session_counts_for_no_machine(machine, command):
    asked(command, machine)
    agreement = agreements.read(machine.file)
    references = references_in(OWN_FOLDER)
    root = sessions.Root(0, machine.results)
    (session, _), _ = sessions.tried(root, "h200:x2", ["node1", "node2"], references)
    simulated = SimulatedNode(partition="h200:x2", node_model="h200", overlay=None)
    verdict = session.verdict.model_copy(
        update={"simulated": simulated, "faults_injected": ["corrupt:0"]}
    )
    judge = Judge.of(agreement, [session], now(), None)
    kinds = [doubt.kind for doubt in judge.doubts(replace(session, verdict=verdict))]
    assert kinds[:2] == ["simulated", "faults-injected"]
