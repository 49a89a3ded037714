"""The documents of a verdict: their schema, and how they are written."""

import csv
import json
import re
import shlex
from pathlib import Path

import jsonschema_rs
import pytest

import factories
from fabricheck.core import nodelists
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.judge.verdict import caveats, draining, evidence, judging, model
from fabricheck.report import scheduler
from fabricheck.results import reading
from fabricheck.schedulers import table
from full_disk import files_of_at_most
from session_builder import (
    SessionBuilder,
)

SIMULATED = model.SimulatedNode(partition="a:b", node_model=None, overlay=None)


def test_documents_are_valid_and_name_each_other(tmp_path):
    verdicts = list(two_nodes(tmp_path).values())
    total = evidence.session_verdict("run-0", verdicts)
    path = model.write(tmp_path / "verdicts", verdicts, total)
    validate(json.loads(path.read_text()))
    assert total.exit_code == 12 and total.counts["PERF-FAIL"] == total.counts["PASS"] == 1
    for row in total.nodes:
        own = json.loads(path.with_name(row.file).read_text())
        assert own in [model.as_json(one) for one in verdicts]
        assert (own["node"], own["status"]) == (row.node, row.status)
        validate(own)


def test_the_versions_of_hip_and_of_rocm_are_two_values(command, results_folder):
    versions = {"runtime": "7.16.26401", "rocm": "10.1.0", "driver": "6.16.13"}
    document = factories.document(versions=versions)
    SessionBuilder(results_folder).add(factories.case(), document).write()
    found = reading.read([str(results_folder)])
    (verdict,) = judging.judge(found)
    assert (verdict.versions.runtime, verdict.versions.rocm) == (["7.16.26401"], ["10.1.0"])
    validate(model.as_json(verdict))
    written = command("results", "export", results_folder)
    (row, *_) = csv.DictReader(written.stdout.splitlines())
    assert (row["runtime_version"], row["rocm_version"]) == ("7.16.26401", "10.1.0")


def test_the_version_of_a_tool_is_none_of_ours(tmp_path):
    program = factories.document()["program"]
    ours = factories.document(program=program | {"version": "1.2", "commit": "0123abc"})
    osu = program | {"name": "osu", "version": "7.4", "commit": "unknown"}
    tool = factories.document(program=osu, options={"tool": "osu"})
    session = SessionBuilder(tmp_path).passed(document=ours).passed("osu", document=tool)
    assert session.verdict().versions.fabricheck == ["1.2"]


@pytest.mark.parametrize(
    "change",
    [
        {"status": "FINE"},
        {"duration_s": -1.0},
        {"more": 1},
        {"node": 3},
        {"form": "fabricheck-verdict-9"},
    ],
)
def test_the_schema_refuses_what_breaks_it(tmp_path, change):
    verdicts = list(two_nodes(tmp_path).values())
    path = model.write(tmp_path / "v", verdicts, evidence.session_verdict("run-0", verdicts))
    own = path.with_name("node1.json")
    content = json.loads(own.read_text()) | change
    with pytest.raises(jsonschema_rs.ValidationError):
        validate(content)


def test_a_full_disk_leaves_the_verdict_of_before(tmp_path):
    verdicts = list(two_nodes(tmp_path).values())
    path = model.write(tmp_path / "v", verdicts, evidence.session_verdict("run-0", verdicts))
    before = {one.name: one.read_text() for one in path.parent.iterdir()}
    with files_of_at_most(1000), pytest.raises(NotFoundError, match="cannot be written"):
        model.write(path.parent, verdicts, evidence.session_verdict("run-1", verdicts))
    assert {one.name: one.read_text() for one in path.parent.iterdir()} == before


@pytest.mark.parametrize("form", [f"fabricheck-verdict-{number}" for number in (1, 2, 3, 4)])
def test_a_node_of_an_earlier_verdict_does_not_stay(tmp_path, form):
    verdicts = list(two_nodes(tmp_path).values())
    folder = tmp_path / "v"
    written = model.write(folder, verdicts, evidence.session_verdict("run-0", verdicts))
    earlier = json.loads(written.read_text()) | {"form": form}
    if form.endswith("1"):  # caveats had another name
        for row in earlier["nodes"]:
            row["reservations"] = row.pop("caveats")
    written.write_text(json.dumps(earlier))
    (folder / "mine.txt").write_text("kept")
    model.write(folder, verdicts[:1], evidence.session_verdict("run-0", verdicts[:1]))
    assert {one.name for one in folder.iterdir()} == {"verdict.json", "node1.json", "mine.txt"}


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"nodes": 3},
        {"nodes": [None, "a", {}, {"file": None}, {"file": ["b"]}, {"file": ".."}, {"file": ""}]},
        {"nodes": [], "networks": None},
        {"nodes": [{"file": "folder"}, {"file": "a\0b"}, {"file": "../mine.txt"}]},
    ],
)
def test_a_verdict_that_was_changed_by_hand_is_replaced(tmp_path, rest):
    verdicts = list(two_nodes(tmp_path).values())
    folder = tmp_path / "v"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "mine.txt").write_text("kept")
    (folder / "verdict.json").write_text(json.dumps({"form": "fabricheck-verdict-4"} | rest))
    written = model.write(folder, verdicts, evidence.session_verdict("run-0", verdicts))
    validate(json.loads(written.read_text()))
    assert (folder / "folder").is_dir() and (tmp_path / "mine.txt").exists()


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "verdict", ".hidden", "a b", "n" * 300, "(no node)", "ü"]
)
def test_names_of_nodes_are_safe_for_files(tmp_path, name):
    (plain,) = SessionBuilder(tmp_path / "r").passed().verdicts().values()
    odd = plain.model_copy(update={"node": name})
    first, second = model.file_names([odd, plain.model_copy(update={"node": f"{name}!"})])
    assert first != second and "verdict.json" not in (first, second)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.json", first)
    written = model.write(tmp_path / "v", [odd], evidence.session_verdict("x", [odd]))
    assert {one.name for one in written.parent.iterdir()} == {"verdict.json", first}


def test_lines_for_slurm_are_read_by_a_shell_as_one_reason(tmp_path):
    bad = "a \"b\" 'c' $(touch x) `d` \\ \x1b[31m\n! ; ü" + "e" * 300
    found = (
        SessionBuilder(tmp_path)
        .failed("sanity", bad, "OtherDevicesError", document=factories.document())
        .verdict()
    )
    live = found.model_copy(update={"drain": model.Drain(live=True, doubts=[])})
    (line,) = scheduler.drain_lines(evidence.session_verdict("x", [live]).nodes)
    words = shlex.split(line)
    assert words[:4] == ["scontrol", "update", "NodeName=node1", "State=DRAIN"]
    assert len(words) == 5 and words[4].startswith("Reason=fabricheck HW-FAIL: stream_local: a b c")
    assert len(words[4]) <= draining.LONGEST_REASON + len("Reason=")
    assert not set(line) & set("$`\\!\x1b\n'") and line.count('"') == 2
    assert draining.command(live) == words


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("slurm", ["scontrol", "update", "NodeName=node2", "State=DRAIN"]),
        ("flux", ["flux", "resource", "drain", "node2"]),
        ("pbs", ["pbsnodes", "-o", "-C"]),
    ],
)
def test_a_node_is_drained_in_the_words_of_its_scheduler(tmp_path, row, words):
    verdict = two_nodes(tmp_path)["node2"]
    drain = model.Drain(live=True, doubts=[])
    live = verdict.model_copy(update={"drain": drain, "reached_by": row})
    (line,) = scheduler.drain_lines(evidence.session_verdict("x", [live]).nodes)
    typed = shlex.split(line)
    assert typed[: len(words)] == words
    assert draining.command(live) == typed
    assert "node2" in typed or "NodeName=node2" in typed


def test_where_no_command_drains_a_host_a_comment_says_what_to_do(tmp_path):
    verdict = two_nodes(tmp_path)["node2"]
    drain = model.Drain(live=True, doubts=[])
    live = verdict.model_copy(update={"drain": drain, "reached_by": "ssh"})
    (line,) = scheduler.drain_lines(evidence.session_verdict("x", [live]).nodes)
    assert line.startswith(f"# {table.SSH.no_drain.format(node='node2')} (fabricheck ")
    assert scheduler.live_commands([live]) == []


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"clock": "simulated", "simulated": SIMULATED}, "# it is simulated; "),
        ({"clock": None}, "# no document shows what was measured; "),
        ({"scheduled": False}, "# no scheduler named this node; "),
        ({"faults_injected": ["flip-bit"]}, "# faults were injected; "),
        ({"node": "a b;c"}, "# no name of a node of Slurm: a b;c"),
    ],
)
def test_a_node_that_must_not_be_drained_has_a_comment(tmp_path, change, doubt):
    changed = two_nodes(tmp_path)["node2"].model_copy(update=change)
    (verdict,) = evidence.decided([evidence.Judged(changed, [])], {})
    (line,) = scheduler.drain_lines(evidence.session_verdict("x", [verdict]).nodes)
    assert line.startswith(doubt)


def test_host_lists():
    odd = ["node10", "node2", "node3", "(no node)"]
    assert nodelists.folded(odd) == "node[2-3,10],(no node)"
    assert nodelists.unfolded("node[1-3],login") == ["login", "node1", "node2", "node3"]
    long = "node[1-" + 5000 * "9" + "]"
    for text in (
        "node[1-",
        "",
        "node[3-1]",
        "node[1-99999999]",
        "a\nb",
        "n\0",
        "node[- -1-3]",
        long,
    ):
        with pytest.raises(UsageError) as refused:
            nodelists.unfolded(text)
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def two_nodes(tmp_path):
    return SessionBuilder(tmp_path / "results").passed().missed(node="node2").verdicts()


def validate(content):
    schema = Path(model.__file__).with_name("verdict-4.schema.json").read_text()
    jsonschema_rs.Draft202012Validator(json.loads(schema)).validate(content)


@pytest.mark.parametrize(
    ("name", "told"), [("3f2a9c0de1b2", 1), ("nid005012", 0), ("0123456789abc", 0)]
)
def test_a_node_with_the_name_of_a_container_has_a_caveat(name, told):
    """Docker and Podman name a container by twelve digits of its id, another one each time."""
    document = factories.document()
    document["host"]["hostname"] = name
    found = [each for each in caveats.result_caveats([], [document], 1, 0) if "container" in each]
    assert len(found) == told
    document["host"]["scheduler_node"] = "node7"
    assert not any("container" in each for each in caveats.result_caveats([], [document], 1, 0))
