"""Sessions and jobs of several nodes on the command line: each node stands for itself."""

import os
from types import SimpleNamespace

import pytest

import check_rows
import factories
from fabricheck.results import export, requested_nodes
from fabricheck.results.folder import ResultsFolder, documents_of
from fabricheck.results.observed import observe
from fabricheck.results.reading import of_session, read
from fabricheck.results.rows import by_place
from session_builder import PARTITION, SIMULATED, SessionBuilder, document_of, write_job

THREE = {"node1": 10.0, "node2": 7.0, "node3": 10.1}


@pytest.fixture
def three(results_folder):
    SessionBuilder(results_folder).copies(THREE).write()
    return results_folder


def test_each_node_of_a_partition_is_observed_by_itself(three):
    folder = ResultsFolder(three)
    found = of_session(folder, folder.latest()).observed
    assert [(one.where, one.on, one.apart) for one in found] == [
        ("cluster:gpu", node, node) for node in THREE
    ]
    assert [[point.value for point in one.points] for one in found] == [[10.0], [7.0], [10.1]]
    assert [[case.node for case in one.cases] for one in found] == [[node] for node in THREE]


def test_documents_outside_of_a_session_are_told_apart_by_their_node(three):
    folder = ResultsFolder(three)
    entries = list(documents_of(folder.latest()))
    loose = [type(one)(None, one.path, one.document, None) for one in entries]
    assert [(one.where, one.on, len(one.points)) for one in observe(check_rows.checks(*loose))] == [
        ("", node, 1) for node in THREE
    ]


def test_a_check_that_never_got_a_node_is_with_the_only_one(results_folder):
    """A job per check on one node: a skipped check, or one without a job, is no other node's."""
    on = {"scheduler": "squeue"}
    lost = factories.case("p2p", result="fail", job_nodelist=[], **on)
    good = factories.case(job_nodelist=["node1"], **on)
    SessionBuilder(results_folder).add(good, factories.document()).add(lost).write()
    folder = ResultsFolder(results_folder)
    (found,) = of_session(folder, folder.latest()).observed
    assert (found.on, found.apart, len(found.cases)) == ("node1", "", 2)


def test_by_place_checks_without_a_node_join_the_one_node_that_their_partition_has():
    of_nodes = {"a:gpu": ("node1", None), "b:gpu": ("node1", "node2", None), "c:gpu": (None,)}
    rows = [
        SimpleNamespace(where=where, scheduler_node=name)
        for where, names in of_nodes.items()
        for name in names
    ]
    assert {place: len(found) for place, found in by_place(rows).items()} == {
        ("a:gpu", "node1"): 2,
        ("b:gpu", "node1"): 1, ("b:gpu", "node2"): 1, ("b:gpu", None): 1,
        ("c:gpu", None): 1,
    }  # fmt: skip


def test_results_of_chosen_nodes(command, three, wording):
    shown = command("results", "show", "--node", "node[2-3]", json=True).json["checks"]
    assert [entry["node"] for entry in shown] == ["node2", "node3"]
    assert "stream_local @cluster:gpu on node2 (fail)" in command("results", "show").stdout
    wording(command("results", "show", "--node", "node[1,7-8]", code=3).stderr)
    odd = command("results", "show", "--node", "node[1-", code=2).stderr
    assert "is not a list of nodes" in odd


def test_the_list_names_the_nodes_and_the_jobs(command, three):
    write_job(three, THREE)
    listed = command("results", "list").stdout
    assert "node[1-3]" in listed and "fabricheck results show 17" in listed
    # Documents of a job have reports of their own.
    assert "unreported" not in listed
    assert command("results", "list", json=True).json["jobs"] == ["17"]


def test_claims_and_coverage_of_each_node(command, three):
    claims = command("papers", "claims", json=True).json["partitions"]
    assert {one["on"] for one in claims} == set(THREE)
    only = command("papers", "claims", "--node", "node2", json=True).json["partitions"]
    assert {one["on"] for one in only} == {"node2"}
    (first, *_) = command("results", "coverage", json=True).json["experiments"]
    ran = {one["node"]: (one["passed"], one["failed"], one["series"]) for one in first["ran"]}
    assert ran == {"node1": (1, 0, 1), "node2": (0, 1, 1), "node3": (1, 0, 1)}
    text = " ".join(command("results", "coverage").stdout.split())
    assert "cluster:gpu on node[1,3] by the host runtime: each 1 series" in text
    assert "cluster:gpu on node2 by the host runtime: 1 series" in text


def test_a_job_has_each_node_and_names_the_one_without_results(command, results_folder, wording):
    write_job(results_folder, THREE | {"node4": None})
    shown = command("results", "show", "17", json=True, code=3)
    assert [entry["node"] for entry in shown.json["checks"]] == [*THREE, None]
    wording(shown.stderr)
    # The results folder of a node knows whose it is.
    folder = ResultsFolder(results_folder / "every-node" / "17" / "node2")
    assert (folder.node, [case.node for case in folder.latest().cases]) == ("node2", ["node2"])
    assert not ResultsFolder(results_folder).unreported_paths()


def test_a_document_of_another_node_in_a_job_is_a_problem(command, results_folder, wording):
    job = write_job(results_folder, THREE)
    path = factories.case_folder(job / "node1", "stream_local") / "result.json"
    factories.write(path, document_of("node3"))
    said = command("results", "show", job, "--node", "node1", code=4).stderr
    wording(" ".join(said.split()))


def pairs(command, a, b, code=0):
    found = command("compare", a, b, json=True, code=code).json["partitions"]
    return [
        (
            one["a"]["node"],
            one["b"]["node"],
            [outcome["after"] for outcome in one["outcomes"]],
            one["checks_missing_in_b"],
        )
        for one in found
    ]


def test_the_same_nodes_are_compared_and_one_that_is_gone_is_missing(command, three, tmp_path):
    SessionBuilder(tmp_path / "b").copies({"node3": 7.0, "node1": 10.0}).write()
    assert pairs(command, three, tmp_path / "b", code=10) == [
        ("node1", "node1", [], []),
        ("node3", "node3", ["fail"], []),
        ("node2", "node2", [], ["stream_local"]),
    ]


def test_one_node_against_another_of_the_same_session(command, three, wording):
    assert pairs(command, "latest@node1", "latest@node2", code=10) == [
        ("node1", "node2", ["fail"], [])
    ]
    wording(command("compare", "latest@node1", "latest@node9", code=3).stderr)


def test_jobs_are_compared_node_by_node(command, results_folder):
    write_job(results_folder, THREE)
    write_job(results_folder, THREE | {"node2": 10.0}, name="18")
    assert pairs(command, "17", "18") == [
        (node, node, ["pass"] if node == "node2" else [], []) for node in THREE
    ]
    assert pairs(command, "17@node2", "18@node3") == [("node2", "node3", ["pass"], [])]


def test_of_many_nodes_those_without_a_change_are_one_line(command, results_folder, tmp_path):
    values = {f"node{number}": 10.0 for number in range(1, 8)}
    SessionBuilder(results_folder).copies(values).write()
    del values["node6"]
    SessionBuilder(tmp_path / "b").copies(values | {"node5": 7.0}).write()
    shown = " ".join(command("compare", "latest", tmp_path / "b", code=10).stdout.split())
    assert "Unchanged, shown with --all: node[1-4,7]." in shown
    assert "cluster:gpu on node5" in shown and "cluster:gpu on node4" not in shown
    assert "cluster:gpu on node6" in shown and "Checks missing in B: stream_local" in shown


def test_coverage_of_a_job_is_that_of_its_nodes(command, results_folder):
    write_job(results_folder, THREE)
    for name in ("17", "latest"):
        found = command("results", "coverage", name, json=True).json
        assert found["session"] == "17"
        assert {one["node"] for one in found["experiments"][0]["ran"]} == set(THREE)


def test_a_job_whose_file_is_cut_costs_the_others_nothing(command, three):
    """Of a disk that was full once: what was written later is as good as before."""
    cut = write_job(three, {"node1": 10.0}, name="16") / "nodes.json"
    cut.write_text('{"form":')
    write_job(three, THREE)
    os.utime(cut, (factories.SESSION_START - 60,) * 2)
    assert command("results", "show").stdout.startswith("Job 17 over 3 nodes")
    listed = command("results", "list", code=4)
    assert "fabricheck results show 17" in listed.stdout and f"{cut}: " in listed.stderr
    listed = command("results", "list", json=True, code=4).json
    assert (listed["jobs"], len(listed["problems"])) == (["17"], 1)
    # The last thing that was begun is never passed over.
    os.utime(cut)
    assert f"{cut}: " in command("results", "show", code=4).stderr


def test_the_last_jobs_are_listed_first(command, results_folder):
    """Their numbers are no text: 9 is before 10."""
    for name, hour in (("9", "03"), ("10", "05"), ("100", "04")):
        path = write_job(results_folder, THREE, name=name) / "nodes.json"
        path.write_text(path.read_text().replace("T03:", f"T{hour}:"))
    assert command("results", "list", json=True).json["jobs"] == ["10", "100", "9"]


def wherever(results, places):
    """Write a session of a job a check, each where the scheduler had a node, or had none."""
    session = SessionBuilder(results)
    for check, node in places.items():
        if node is None:
            lost = factories.case(check, result="fail", scheduler="squeue", job_nodelist=[])
            session.add(lost)
        else:
            case = factories.case(check, scheduler="squeue", job_nodelist=[node])
            session.add(case, document_of(node))
    return session.write()


def test_a_check_without_a_node_is_of_no_node_that_is_chosen(command, results_folder):
    """The job that never began could have been either of the two."""
    wherever(results_folder, {"stream_local": "node1", "stream_scan": "node2", "p2p": None})
    said = command("compare", "latest@node1", "latest@node2", json=True, code=3)
    (found,) = said.json["partitions"]
    assert found["checks_missing_in_b"] == ["stream_local"]
    assert found["checks_missing_in_a"] == ["stream_scan"]
    assert "p2p" not in said.output


def test_checks_that_ran_on_other_nodes_are_named(command, results_folder, tmp_path, wording):
    here = wherever(results_folder, {"stream_local": "node1", "stream_scan": "node2"})
    other = wherever(tmp_path / "b", {"stream_local": "node2", "stream_scan": "node1"})
    said = command("compare", here, other, code=3).stderr
    wording(said)
    # One that is gone is no such thing, nor what stood in one node's place.
    SessionBuilder(tmp_path / "c").copies({"node1": 10.0, "node2": 10.0}).write()
    SessionBuilder(tmp_path / "d").copies({"node2": 10.0, "node3": 10.0}).write()
    assert "other nodes" not in command("compare", tmp_path / "c", tmp_path / "d", code=11).stderr


def test_a_node_whose_report_is_cut_is_told_and_not_called_missing(command, results_folder):
    write_job(results_folder, THREE)
    job = write_job(results_folder, THREE, name="18")
    cut = job / "node2/reports/run-0.json"
    cut.write_text("{")
    said = command("compare", "17", "18", code=4).stderr
    assert f"fabricheck: B: {cut}: " in said
    assert f"{cut}: " in command("compare", "17@node2", "18@node2", code=4).stderr
    # It costs the others nothing.
    assert pairs(command, "17@node3", "18@node3") == [("node3", "node3", [], [])]


def test_a_node_whose_session_was_killed_is_told_and_not_called_missing(command, results_folder):
    for name in ("17", "18"):
        job = write_job(results_folder, THREE, name=name)
    (job / "node2/reports/run-0.json").unlink()
    left = job / "node2/output/20261121T200000-7/cluster/gpu/host/stream_local/result.json"
    factories.write(left, document_of("node2"))
    killed = "The session on node2 has no report: it was killed."
    assert f"B: {killed}" in command("compare", "17", "18", code=4).stderr
    assert killed in command("compare", "17@node2", "18@node2", code=4).stderr
    assert killed not in command("compare", "17@node3", "18@node3").stderr


def test_one_partition_of_one_node_is_compared_with_another(command, results_folder, wording):
    """Of each node the machine against what is simulated there, and of any two."""
    values = {"node1": 10.0, "node2": 10.0}
    write_job(results_folder, values, simulated=values)
    measured, simulated = PARTITION, SIMULATED
    assert [pair[:2] for pair in pairs(command, f"17@{measured}", f"17@{simulated}", code=3)] == [
        ("node1", "node1"), ("node2", "node2"),
    ]  # fmt: skip
    one = pairs(command, f"17@{measured}@node1", f"17@{measured}@node2")
    assert [pair[:2] for pair in one] == [("node1", "node2")]
    said = command("compare", f"17@{measured}@node9", "17", code=3).stderr
    wording(said)
    # What is said to be named can be.
    said = command("compare", f"17@{measured}", "17@node1", code=0).stdout
    assert f"{measured} on node1, measured" in said
    assert said.count("job 17 over 2 nodes") == 2, "the whole job"


def test_the_nodes_of_jobs_in_several_results_folders_are_rows(tmp_path):
    for name in ("a", "b"):
        job = tmp_path / name / "every-node" / "17"
        requested = {f"{name}{index}": requested_nodes.RequestedNode() for index in (1, 2)}
        job.mkdir(parents=True)
        requested_nodes.write(
            job / "nodes.json",
            requested_nodes.RequestedNodes(
                partition=None, started=requested_nodes.now(), nodes=requested
            ),
        )
    found = read([str(tmp_path / "a"), str(tmp_path / "b")], all_sessions=True)
    names = ["a1", "a2", "b1", "b2"]
    assert list(found.requested) == names
    assert found.reached_by == dict.fromkeys(names, "slurm")
    exported = [(row["node"], row["result"]) for row in export.stream(found, export.ExportLog())]
    assert exported == [(name, "lost") for name in names]
