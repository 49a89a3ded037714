"""References from sessions of many nodes: what is refused, set aside, and kept.

The sessions are one recorded on two H200, copied with the values times what a test says.
"""

import json
import os
import shutil

import pytest
import yaml
from calibrate_command import entries, run, words
from nodes_of_sessions import NIGHT, nights, recorded, times, write
from test_references_written import REPOSITORY

import factories
from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.judge.calibration.gathering import gather
from fabricheck.references import calibrated
from fabricheck.references.stated import References
from fabricheck.results import requested_nodes
from plain_references import in_plain_form
from session_builder import PARTITION, SessionBuilder

H200 = "h200:x2"
CHECK = "p2p_engine"
METRIC = "engine_switch18_worst"


@pytest.fixture(scope="module")
def one():
    """The case and the document of the recorded check."""
    return recorded(CHECK)


@pytest.fixture
def folder(tmp_path):
    """What this repository says of peer copies on H200 by documents, and not by its sessions."""
    references = tmp_path / "references"
    references.mkdir()
    kept = in_plain_form(References(REPOSITORY), CHECK, "nvidia")
    (references / "p2p.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))
    return references


def of(one, *factors):
    """Return nodes n0, n1 ... of which each has the recorded values times its factor."""
    return {f"n{index}": times(*one, factor) for index, factor in enumerate(factors)}


def entry(folder, metric=METRIC, check=CHECK):
    return entries(folder, check, H200)[metric]


def test_nodes_that_are_alike(command, folder, one):
    """Their entry is that of the nodes' medians; the record tells nodes, and names none."""
    sessions = nights(folder.parent / "17", of(one, 1, 1.001, 0.999, 1.002, 0.998))
    said = run(command, folder, [sessions], "--write", system=H200)
    assert entry(folder) == [396.06, -0.02, None, "GB/s"]
    table = words(said.stdout)
    # Link class and engine, median, sessions, nodes, of the peak, of what was published.
    assert f"{METRIC} switch18 copy-engine 396.06 GB/s 10 5 88% 100%" in table
    assert "devices A (GPU-n0-0, GPU-n0-1), node n0" in table
    file = folder / "calibrations" / "h200-x2.yaml"
    found = calibrated.read(file)
    kept = found.checks[CHECK][METRIC]
    assert (kept.link_class, kept.engine, kept.peak) == ("switch18", "copy-engine", 450)
    assert (kept.published.value, kept.published.key) == (396.4, "nvidia")
    assert {name: group.n for name, group in kept.by_devices.items()} == dict.fromkeys("ABCDE", 2)
    assert found.device_sets["C"] == ["GPU-n2-0", "GPU-n2-1"]
    assert [(each.devices, each.campaign) for each in found.sessions[:6]] == [
        ("A", 1), ("B", 2), ("C", 3), ("D", 4), ("E", 5), ("A", 6)]  # fmt: skip
    assert len({each.uuid for each in found.sessions}) == 10
    assert [each["name"] for each in found.programs] == ["p2p"]
    assert found.versions == [{"driver": "580.159.04", "runtime": "13.0"}]
    text = file.read_text()
    assert all(name not in text.replace(f"GPU-{name}", "") for name in ("n0", "n1", "n4", "vm"))


def test_a_majority_of_slow_nodes(command, folder, one, wording):
    """Three of five have 9 % less: that is not made normal, and both groups are named."""
    sessions = nights(folder.parent / "17", of(one, 0.91, 1, 0.91, 0.911, 1.001))
    said = run(command, folder, [sessions], "--write", system=H200)
    wording(said.stderr)
    assert entry(folder) == [0, None, None, "GB/s"]
    kept = calibrated.read(folder / "calibrations" / "h200-x2.yaml").checks[CHECK][METRIC]
    assert {name: group.median for name, group in kept.by_devices.items()} == pytest.approx(
        {"A": 360.42, "B": 396.06, "C": 360.42, "D": 360.82, "E": 396.46}, rel=1e-4
    )
    # The fast ones alone are no calibration, but who wants the slow ones has to say it.
    left = run(command, folder, [sessions], "--without", "n[1,4]", system=H200)
    wording(left.stderr)
    assert "[360.42, -0.02" in left.stdout


def test_a_minority_of_slow_nodes_is_set_aside(command, folder, one, wording):
    sessions = nights(folder.parent / "17", of(one, 1, 1, 0.91, 1.001, 1))
    said = run(command, folder, [sessions], "--write", system=H200)
    wording(said.stderr)
    assert entry(folder) == [396.06, -0.02, None, "GB/s"]
    kept = calibrated.read(folder / "calibrations" / "h200-x2.yaml").checks[CHECK][METRIC]
    assert (kept.excluded, kept.n, kept.min) == (["C"], 10, pytest.approx(360.42, abs=0.01))


def test_all_nodes_slow(command, folder, one, wording):
    """Without another node or a present reference only documents show it."""
    sessions = nights(folder.parent / "17", of(one, *[0.8] * 5))
    wording(run(command, folder, [sessions], system=H200).stderr)
    wording(run(command, folder, [sessions], "--write", code=2, system=H200).stderr)
    assert not (folder / "calibrations").exists()
    # What is looser is another question.
    run(command, folder, [sessions], "--write", "--accept-looser", code=2, system=H200)
    run(command, folder, [sessions], "--write", "--accept-slow", system=H200)
    assert entry(folder)[0] == 316.85
    kept = calibrated.read(folder / "calibrations" / "h200-x2.yaml").checks[CHECK][METRIC]
    assert kept.published.value == 396.4


def test_all_nodes_slower_than_the_present_reference(command, folder, one, wording):
    run(
        command, folder, [nights(folder.parent / "17", of(one, *[1.0] * 5))], "--write", system=H200
    )
    slow = nights(folder.parent / "18", of(one, *[0.95] * 5))
    wording(run(command, folder, [slow], "--write", code=2, system=H200).stderr)
    assert entry(folder)[0] == 396.06
    assert "-5.0% looser" in words(run(command, folder, [slow], system=H200).stdout)


def test_one_impossible_value(command, folder, one, wording):
    """1.2 times the peak of the link, in the report of one of ten sessions."""
    job = folder.parent / "17"
    sessions = nights(job, of(one, *[1.0] * 5))
    report = job / "n3" / "reports" / "run-8.json"
    content = json.loads(report.read_text())
    content["runs"][0]["testcases"][0]["perfvalues"][f"{H200}:{METRIC}"][0] = 540.0
    report.write_text(json.dumps(content))
    (refused,) = {
        run(command, folder, [sessions], *options, code=4, system=H200).stderr
        for options in ((), ("--report-only", "--write"), ("--write", "--accept-looser"))
    }
    wording(refused)
    assert not (folder / "calibrations").exists()
    run(command, folder, [sessions], "--without", "n3", "--write", system=H200)
    found = calibrated.read(folder / "calibrations" / "h200-x2.yaml")
    assert found.checks[CHECK][METRIC].n == 8
    assert [(each.session, each.why) for each in found.unused] == [(4, "left out"), (9, "left out")]
    # Or the one session.
    reports = sorted(set(job.glob("n*/reports/*.json")) - {report})
    assert len(reports) == 9
    run(command, folder, reports, "--write", system=H200)
    assert calibrated.read(folder / "calibrations" / "h200-x2.yaml").checks[CHECK][METRIC].n == 9


def test_bytes_counted_twice_in_a_document(command, folder, one, wording):
    """Both directions have twice the peak: the sum of a pair may, one direction may not."""
    sessions = nights(folder.parent / "17", of(one, 1, 1, 1, 1, 2))
    # Both in both sessions, each as worst and median.
    wording(run(command, folder, [sessions], code=4, system=H200).stderr)


def test_three_sessions_only(command, folder, one, wording):
    """Of one node or of three."""
    for name, nodes, often in (("a", 1, 3), ("b", 3, 1)):
        sessions = nights(folder.parent / name, of(one, *[1.0] * nodes), often)
        wording(run(command, folder, [sessions], "--write", code=4, system=H200).stderr)
        assert not (folder / "calibrations").exists()
        wording(run(command, folder, [sessions], "--write", "--report-only", system=H200).stderr)
        assert entry(folder) == [0, None, None, "GB/s"]
        shutil.rmtree(folder / "calibrations")


def test_many_nodes_with_one_session_each(command, folder, one, wording):
    sessions = nights(folder.parent / "17", of(one, *[1.0] * 6), often=1)
    wording(run(command, folder, [sessions], "--write", code=4, system=H200).stderr)


def test_a_metric_with_two_modes(command, folder, one, wording):
    """A node whose sessions switch: by hand, since one job has one factor for a node."""
    results = [
        write(folder.parent / f"r{number}", *times(*one, factor), number, number * NIGHT, "n0",
              ("GPU-a", "GPU-b"))
        for number, factor in enumerate((1, 0.95, 1.0005, 0.9502, 1, 0.95))
    ]  # fmt: skip
    wording(run(command, folder, results, "--write", system=H200).stderr)
    assert entry(folder) == [0, None, None, "GB/s"]
    # What does not switch has its reference.
    assert entry(folder, "latency_switch18_median")[2] is not None


# Sessions of ReFrame that are distributed have one report for all nodes.


def distributed(folder, *nights, start=factories.SESSION_START):
    for number, values in enumerate(nights):
        SessionBuilder(folder, number=number, start=start + 60 * NIGHT * number).copies(
            values
        ).write()
    return folder


def test_a_distributed_session_is_a_session_on_each_node(tmp_path):
    """Also where a node failed, or never ran."""
    results = distributed(tmp_path, {"n1": 10.0, "n2": 10.1, "n3": None, "n4": 8.0})
    runs = gather([results], PARTITION).runs
    found = {run.node: (run.group, run.values and run.values["stream_local", "copy_worst"].value)
             for run in runs}  # fmt: skip
    # n3 never ran, and the report has no place for it; n4 missed its reference.
    assert {name: found[name] for name in ("n1", "n2", "n4")} == {
        "n1": ("A", 10.0), "n2": ("B", 10.1), "n4": (found["n4"][0], {})}  # fmt: skip
    said = [one.sentence for run in runs for one in run.unused]
    assert any("on n4 missed its reference" in one or "on n4 failed" in one for one in said)
    assert any("n3" in one and "max_pending_time" in one for one in said)


def test_leaving_out_a_node_that_is_not_there(tmp_path):
    results = distributed(tmp_path, {"n1": 10.0, "n2": 10.1})
    with pytest.raises(UsageError, match="No session has n7; the nodes are n1, n2"):
        gather([results], PARTITION, without={"n1", "n7"})


def test_a_list_of_nodes_that_is_none(command, folder, one):
    sessions = nights(folder.parent / "17", of(one, 1.0))
    refused = run(command, folder, [sessions], "--without", "n[1-", code=2, system=H200)
    assert "'n[1-' is not a list of nodes" in refused.stderr


def test_results_with_jobs_over_many_nodes_are_all_sessions(tmp_path, one):
    """The folder of the job, that of all results, and that of a node are told apart."""
    results = tmp_path / "results"
    job = nights(results / "every-node" / "17", of(one, 1, 1, 1))
    write(results, *one, 40, 90 * NIGHT, "login", ("GPU-x", "GPU-y"))
    count = {path: len(gather([path], H200).runs) for path in (job, results, job / "n1")}
    assert count == {job: 6, results: 7, job / "n1": 2}
    # Named twice, a session counts once.
    assert len(gather([results, job, job / "n1"], H200).runs) == 7


def test_a_node_that_left_nothing_is_said(command, folder, one):
    """A job that lost one before it began, and a distributed session of which one never ran."""
    job = nights(folder.parent / "17", of(one, *[1.0] * 5))
    down = requested_nodes.RequestedNode(results="n9", state="DOWN*", because="Not responding")
    requested = requested_nodes.read(job / "nodes.json")
    requested.nodes["n9"] = down
    requested_nodes.write(job / "nodes.json", requested)
    said = f"n9 is in {job / 'nodes.json'}, but no session has it (DOWN*, Not responding)."
    assert said in run(command, folder, [job], system=H200).stderr
    results = distributed(folder.parent / "r", {"n1": 10.0, "n2": 10.1})
    requested_nodes.write(results / "output" / "nodes.json", requested)
    said = gather([results], PARTITION).silent
    assert [one.split()[0] for one in said] == ["n0", "n3", "n4", "n9"]


def test_devices_tell_nodes_apart_before_names_do(tmp_path, one):
    """The same hostname on other devices is another node; the same devices are the same node."""
    results = [
        write(tmp_path / f"r{number}", *one, number, number * NIGHT, name, ids)
        for number, (name, ids) in enumerate(
            [("vm", ("a", "b")), ("vm", ("c", "d")), ("renamed", ("a", "b")), ("n9", ("c", "d"))]
        )
    ]
    assert [run.group for run in gather(results, H200).runs] == ["A", "B", "A", "B"]


def test_an_older_report_of_a_job_that_cannot_be_read(tmp_path, one):
    """Its session might be the one that differs, whichever began last."""
    job = nights(tmp_path / "17", of(one, 1, 1, 1))
    cut = job / "n1" / "reports" / "run-0.json"
    cut.write_text("{")
    os.utime(cut, (factories.SESSION_START, factories.SESSION_START))
    with pytest.raises(
        InvalidInputError, match=r"n1/reports/run-0\.json: this is not a complete run"
    ):
        gather([job], H200)
