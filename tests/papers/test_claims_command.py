"""`fabricheck papers claims`: partitions apart, reasons together, exit codes that inputs decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cases_local import stream
from observations import document, simulated

import factories
from fabricheck.papers import claims_command
from fabricheck.papers.claims import CLAIMS
from session_builder import SessionBuilder

H200 = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"


def rows(command, *arguments):
    ended = command("papers", "claims", *arguments, json=True)
    found = ended.json["partitions"]
    return {(part["clock"], row["claim"]["id"]): row for part in found for row in part["verdicts"]}


@pytest.mark.parametrize("options", [(), ("--json",), ("--rules",), ("--rules", "--json")])
def test_a_claim_of_an_unknown_document_is_named(command, monkeypatch, options):
    unknown = replace(CLAIMS[0], document="acceptance")
    monkeypatch.setattr(claims_command, "CLAIMS", [*CLAIMS, unknown])
    ended = command("papers", "claims", H200, *options, code=None)
    said = f"Claim {unknown.id} is of the document 'acceptance', which documents.yaml does not have"
    assert ended.exit_code == 4 and said in " ".join(ended.stderr.split())


def on_both(value, **changes):
    """Build STREAM on the two devices of a document."""
    return [stream(value, device, host_clock=None, **changes) for device in (0, 1)]


@pytest.fixture
def documents(tmp_path):
    """A folder with a document of the simulated node, and one of a real device."""
    twin = simulated(*on_both(1400.0), *on_both(1400.0, operation="triad"))
    factories.write(tmp_path / "a" / "result.json", twin)
    real = document(*on_both(1400.0), runtime="cuda")
    factories.write(tmp_path / "b" / "result.json", real)
    return tmp_path


def test_a_recorded_session_of_h200_tests_what_is_not_of_mi250x(command, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(H200))
    found = rows(command)
    assert {kind for kind, _ in found} == {"measured"}
    assert found["measured", "local-stream-87"]["outcome"] == "not testable here"
    assert "packages" in found["measured", "local-stream-87"]["because"]
    block = found["measured", "blocks-of-256"]
    assert block["outcome"] == "reproduced" and not block["by_construction"]
    assert {one["kind"] for one in block["numbers"]} == {"measured"}
    assert len(found) == len(CLAIMS)


def test_on_a_recorded_h200_engines_leave_the_kernel_alone_and_kernels_do_not(command):
    found = rows(command, H200.parent / "one-device" / "overlap_host.json")
    claim = found["measured", "engines-leave-compute-free"]
    assert claim["outcome"] == "reproduced" and not claim["by_construction"]


def test_copies_within_a_device_are_none_between_devices(command):
    """One device has no pair: what needs one says so, and nothing is computed of none."""
    found = rows(command, H200.parent / "one-device" / "p2p_local.json")
    assert {row["outcome"] for row in found.values()} == {"not testable here"}
    assert "copy-engine transfers (E7)" in found["measured", "collectives-bound"]["because"]


def test_measured_and_simulated_stand_apart_and_construction_is_told(command, documents):
    found = rows(command, documents)
    twin = found["simulated", "local-stream-87"]
    assert twin["outcome"] == "reproduced" and twin["by_construction"]
    assert twin["fitted"] == ["simulation.memory_efficiency"]
    assert twin["published"][0]["record"] == "paper-stream-local-pct"
    # The real one has no node model.
    assert found["measured", "local-stream-87"]["outcome"] == "not testable here"
    assert found["simulated", "local-triad-82"]["outcome"] == "not reproduced"


def test_the_table_counts_what_is_no_evidence_apart(command, documents):
    ended = command("papers", "claims", documents)
    lines = ended.stdout.splitlines()
    assert "documents outside any session (sim), simulated, node mi250x" in lines
    assert "documents outside any session (cuda), measured" in lines
    text = " ".join(ended.stdout.split())
    simulated = [row for (kind, _), row in rows(command, documents).items() if kind == "simulated"]
    held = [row for row in simulated if row["outcome"] == "reproduced"]
    assert held and all(row["by_construction"] for row in held)
    assert f"Simulated: 0 reproduced, {len(held)} agree by construction" in text
    assert f"of {len(CLAIMS)} claims" in text
    # The real one has no node model, and only one kind of series.
    assert "Measured: 0 reproduced, 0 not reproduced" in text


def test_claims_that_are_not_testable_stand_by_their_reason_or_each_alone(command, documents):
    grouped, alone = (
        command("papers", "claims", documents / "b"),
        command("papers", "claims", documents / "b", "--all"),
    )
    text = " ".join(grouped.stdout.split())
    assert text.count("it has no node model, so the links of") == 1
    assert "Claim " not in grouped.stdout
    assert all(claim.id in text for claim in CLAIMS if claim.experiments[0] in ("E1", "E6"))
    assert "Claim " in alone.stdout and "Not testable here, because" not in alone.stdout


def test_an_unreadable_document_ends_with_4_beside_the_others(command, documents):
    (documents / "c").mkdir()
    (documents / "c" / "result.json").write_text("{")
    ended = command("papers", "claims", documents, code=4)
    assert "local-stream-87" in ended.stdout and "Simulated: " in ended.stdout
    assert "result.json" in ended.stderr


def test_rules_need_no_session(command, tmp_path, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    ended = command("papers", "claims", "--rules")
    assert "local-stream-87" in ended.stdout and "3 points either way" in ended.stdout
    listed = command("papers", "claims", "--rules", json=True).json["claims"]
    assert [one["id"] for one in listed] == [claim.id for claim in CLAIMS]


def test_nothing_there_ends_with_3(command, tmp_path):
    command("papers", "claims", tmp_path, code=3)
    command("papers", "claims", "no-such-session", code=3)


def test_a_fault_of_the_simulated_node_is_named(command, tmp_path):
    node = {"name": "mi250x", "digest": "0" * 64, "overlay": {"name": "slow", "content": {}}}
    factories.write(tmp_path / "result.json", simulated(*on_both(1000.0), node=node))
    ended = command("papers", "claims", tmp_path)
    assert "simulated, node mi250x with the fault slow" in ended.stdout


def test_unreadable_documents_alone_judge_nothing(command, tmp_path):
    (tmp_path / "result.json").write_text("{")
    ended = command("papers", "claims", tmp_path, code=4)
    assert "claims" not in ended.stdout.splitlines()[-1]


def test_a_partition_without_a_result_is_not_called_measured(command, results_folder, monkeypatch):
    SessionBuilder(results_folder).add(
        factories.case(result="fail", fail_reason="no program")
    ).write()
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results_folder))
    text = " ".join(command("papers", "claims", code=3).stdout.split())
    assert "local:host, no results" in text and "No results: 0 reproduced" in text


def test_documents_of_two_runtimes_stand_apart(command, documents):
    real = document(*on_both(1400.0), runtime="rocm")
    factories.write(documents / "c" / "result.json", real)
    lines = command("papers", "claims", documents).stdout.splitlines()
    for runtime in ("cuda", "rocm"):
        assert f"documents outside any session ({runtime}), measured" in lines
