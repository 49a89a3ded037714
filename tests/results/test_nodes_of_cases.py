"""The node of a case: what the scheduler gave it, and never part of its name."""

import pytest

import factories
from fabricheck.results.folder import ResultsFolder, documents_of
from session_builder import SessionBuilder, document_of, good_case


def cases_of(session):
    return ResultsFolder(session.write()).latest().cases


def test_a_distributed_case_has_its_name_and_its_node(results_folder, wording):
    SessionBuilder(results_folder).copies({"node3": 10.0, "gpu-04": None}).write()
    folder = ResultsFolder(results_folder)
    found = [(case.name, case.where, case.node) for case in folder.latest().cases]
    name, where = "stream_local", "cluster:gpu"
    assert found == [(name, where, "node3"), (name, where, "gpu-04")]
    [_, lost] = documents_of(folder.latest())
    wording(str(lost.problem))


@pytest.mark.parametrize(
    ("changes", "node"),
    [
        ({"scheduler": "squeue", "job_nodelist": ["node3"]}, "node3"),
        ({"scheduler": "squeue", "job_nodelist": ["node3", "node4"]}, "node[3-4]"),
        # Of a step of several nodes.
        ({"scheduler": "local", "job_nodelist": ["node3", "node4"]}, "node[3-4]"),
        ({"scheduler": "squeue", "job_nodelist": []}, None),
        ({"scheduler": "squeue", "job_nodelist": "<undefined>"}, None),
        ({"scheduler": "local", "job_nodelist": ["laptop"]}, None),
        ({}, None),
    ],
)
def test_without_distribution_the_node_is_that_of_the_job(results_folder, changes, node):
    [case] = cases_of(SessionBuilder(results_folder).add(factories.case(**changes)))
    assert (case.name, case.node) == ("stream_local", node)


def test_on_the_local_scheduler_a_distributed_case_has_no_node(results_folder):
    [case] = cases_of(
        SessionBuilder(results_folder).add(good_case(node="localhost", scheduler="local"))
    )
    assert (case.name, case.node) == ("stream_local", None)


def test_the_number_of_a_repetition_stays_in_the_name(results_folder):
    shown = "stream_local %.repeat_no=1 %.part=cluster:gpu %.nid=node3"
    [case] = cases_of(
        SessionBuilder(results_folder).add(good_case(node="node3", display_name=shown))
    )
    assert (case.name, case.node) == ("stream_local %.repeat_no=1", "node3")


def test_a_retry_on_another_node_does_not_excuse_the_first(results_folder):
    """ReFrame's retries are jobs of their own: without --distribute they go to any node."""
    on = {"scheduler": "squeue"}
    first = factories.case(result="fail", job_nodelist=["node3"], **on)
    second = factories.case(result="fail", job_nodelist=[], **on)
    last = factories.case(job_nodelist=["node4"], **on)
    session = SessionBuilder(results_folder).add(first).rerun().add(second).rerun().add(last)
    cases = cases_of(session)
    assert [(case.node, case.outcome) for case in cases] == [
        ("node3", "fail"),
        ("node4", "pass at attempt 2"),
    ]


def test_of_a_killed_session_the_node_is_in_the_script_of_the_job(results_folder):
    name = "20260102T030405-17"
    for node, digest in (("node3", "3aa82cd4"), ("node4", "dc5167c6")):
        folder = results_folder / f"stage/{name}/cluster/queue/sim/stream_local_{digest}"
        factories.write(folder / "result.json", document_of(node))
        (folder / "rfm_job.sh").write_text(f"#!/bin/bash\n#SBATCH --nodelist={node}\nsrun x\n")
    alone = results_folder / f"stage/{name}/cluster/queue/sim/p2p_deadbeef"
    factories.write(alone / "result.json")
    (alone / "rfm_job.sh").write_text("#!/bin/bash\n#SBATCH --nodelist=node[1-4]\n")
    [killed], _ = ResultsFolder(results_folder).unreported()
    assert [(entry.case.name, entry.case.node) for entry in documents_of(killed)] == [
        ("p2p_deadbeef", None),
        ("stream_local", "node3"),
        ("stream_local", "node4"),
    ]


def test_a_document_that_says_another_node_is_a_problem_that_names_both(results_folder, wording):
    SessionBuilder(results_folder).copies({"node3": 10.0, "node4": 10.0}).write()
    path = factories.case_folder(results_folder, "stream_local_node4") / "result.json"
    factories.write(path, document_of("node3"))
    folder = ResultsFolder(results_folder)
    [own, other] = documents_of(folder.latest())
    assert (own.problem, own.node, other.document, other.node) == (None, "node3", None, "node4")
    wording(str(other.problem))


def test_an_older_document_says_no_node_and_is_of_its_case(results_folder):
    SessionBuilder(results_folder).copies({"node3": 10.0}).write()
    path = factories.case_folder(results_folder, "stream_local_node3") / "result.json"
    factories.write(path)
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.latest())
    assert (entry.problem, entry.node) == (None, "node3")


def test_outside_of_a_scheduler_s_job_the_document_tells_the_node(one_session):
    """As inside an allocation, where checks are steps of ReFrame's local scheduler."""
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    factories.write(path, document_of("node3"))
    folder = ResultsFolder(one_session)
    [entry] = documents_of(folder.latest())
    assert (entry.case.node, entry.node) == (None, "node3")
