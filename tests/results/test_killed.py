"""Killed sessions: what they left is told, shown one by one, and never passed off as a session."""

import pytest

import factories
from fabricheck.core.errors import NotFoundError
from fabricheck.core.text import moment
from fabricheck.judge.verdict.judging import began
from fabricheck.results import requested_nodes
from fabricheck.results.folder import ResultsFolder, documents_of
from fabricheck.results.reading import read
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, now
from session_builder import SessionBuilder

FIRST, SECOND = "20260102T030405-17", "20260103T030405-18"


def left(folder, within, name="result.json", content=None):
    return factories.write(folder / within / name, content)


@pytest.fixture
def two_killed(results_folder):
    """The first was killed in p2p, before `mpi` had written anything; the second at once."""
    left(results_folder, f"output/{FIRST}/local/host/host/stream_local")
    stage = f"stage/{FIRST}/local/sim-mi250x/sim"
    left(results_folder, f"{stage}/p2p", "result.json.partial", factories.killed_document())
    (results_folder / stage / "mpi").mkdir()
    left(results_folder, f"stage/{SECOND}/local/host/host/stream_local").write_text("{")
    return results_folder


def test_each_is_by_itself_the_last_first(two_killed):
    killed = ResultsFolder(two_killed).unreported()[0]
    assert [(one.id, len(one.paths)) for one in killed] == [(SECOND, 1), (FIRST, 2)]


def test_what_a_check_was_its_folders_say(two_killed):
    _, first = ResultsFolder(two_killed).unreported()[0]
    cases = {entry.case.name: entry for entry in documents_of(first)}
    assert {name: entry.case.where for name, entry in cases.items()} == {
        "stream_local": "local:host",
        "p2p": "local:sim-mi250x",
        "mpi": "local:sim-mi250x",
    }
    assert cases["p2p"].case.environ == "sim"
    assert cases["p2p"].document["complete"] is False
    # Nobody said whether it passed.
    for entry in cases.values():
        assert entry.case.result == "unknown"
        assert not entry.case.passed and not entry.case.skipped


def test_a_check_that_had_started_is_told(two_killed, wording):
    _, first = ResultsFolder(two_killed).unreported()[0]
    [problem] = [entry.problem for entry in documents_of(first) if entry.problem]
    wording(str(problem))


def test_the_start_of_a_killed_session_is_that_of_a_document_in_s_since_1970_and_0_where_unknown(
    two_killed,
):
    starts = {name: source.start for name in (FIRST, SECOND) for source in read([name]).sources}
    at = moment(factories.document()["started"])
    assert starts == {FIRST: at.timestamp(), SECOND: 0}


def test_when_a_session_without_a_document_began_is_unknown(two_killed):
    assert began(read([str(two_killed)])) == []


def test_what_was_never_submitted_of_a_distributed_session_is_of_no_node(two_killed):
    requested = RequestedNodes(
        partition="local:gpu", started=now(), nodes={"node1": RequestedNode()}
    )
    requested_nodes.write(two_killed / "output" / FIRST / requested_nodes.NAME, requested)
    stage = two_killed / "stage" / FIRST / "local/gpu/sim"
    for check in ("waits_0a1b2c3d", "runs_0a1b2c3e"):
        (stage / check).mkdir(parents=True)
    (stage / "runs_0a1b2c3e/rfm_job.sh").write_text("#!/bin/bash\n#SBATCH --nodelist=node1\n")
    _, first = ResultsFolder(two_killed).unreported()[0]
    left = [(entry.case.name, entry.case.node) for entry in documents_of(first) if entry.problem]
    assert left == [("runs", "node1")]


def test_a_node_that_was_asked_for_and_left_nothing_is_told(command, two_killed, wording):
    both = {"node1": RequestedNode(), "node2": RequestedNode(state="DOWN")}
    requested = RequestedNodes(partition="local:gpu", started=now(), nodes=both)
    requested_nodes.write(two_killed / "output" / FIRST / requested_nodes.NAME, requested)
    folder = f"stage/{FIRST}/local/gpu/sim/runs_0a1b2c3e"
    left(two_killed, folder)
    script = "#!/bin/bash\n#SBATCH --nodelist=node1\n"
    (two_killed / folder / "rfm_job.sh").write_text(script)
    wording(command("results", "show", FIRST, code=3).stderr)


def test_a_corrupt_document_keeps_its_case(two_killed):
    second, _ = ResultsFolder(two_killed).unreported()[0]
    [entry] = documents_of(second)
    assert entry.document is None and "is not JSON, or cut off" in str(entry.problem)
    assert entry.case.name == "stream_local"


def test_documents_in_no_folder_of_a_session_are_named_by_their_path(results_folder):
    first = left(results_folder, "elsewhere")
    left(results_folder, "output/local/host/host/stream_local")
    left(results_folder, "stage/a/folder/by/hand/of/some/body")
    killed, outside = ResultsFolder(results_folder).unreported()
    assert (killed, len(outside)) == ([], 3)
    with pytest.raises(
        NotFoundError, match=f"a document of none: `fabricheck results show {first}`"
    ):
        read([str(results_folder)])


def test_a_session_with_a_report_is_not_among_them(two_killed):
    SessionBuilder(two_killed).add(factories.case()).write()
    left(two_killed, "output/local/host/host/stream_local")
    folder = ResultsFolder(two_killed)
    assert [one.id for one in folder.unreported()[0]] == [SECOND, FIRST]
    assert folder.latest().id == "run-0"


def test_no_session_names_what_was_left(two_killed, wording):
    with pytest.raises(NotFoundError) as caught:
        ResultsFolder(two_killed).latest()
    wording(str(caught.value))


def test_one_is_shown_alone(command, two_killed, wording):
    result = command("results", "show", FIRST, code=NotFoundError.exit_code)
    heading = f"Session {FIRST}, without a readable run report: it was killed, or is still running"
    assert result.stdout.startswith(heading)
    assert "p2p @local:sim-mi250x (unknown): " in result.stdout
    assert "incomplete: the series are only those finished" in result.stdout
    wording(result.stderr)
    assert SECOND not in result.output


def test_all_are_listed(command, two_killed):
    found = command("results", "list", json=True).json["sessions"]
    assert [(row["session"], row["documents"]) for row in found] == [(SECOND, 0), (FIRST, 2)]
    found = command("results", "show", FIRST, json=True, code=3).json["checks"]
    assert [row["case"] for row in found] == ["stream_local", "p2p", "mpi"]
    assert {row["result"] for row in found} == {"unknown"}


def test_another_name_is_no_killed_session(command, two_killed, wording):
    result = command("results", "show", "20260101T000000-1", code=NotFoundError.exit_code)
    wording(result.stderr)


def test_it_may_be_its_report_that_can_not_be_read(command, two_killed, wording):
    (two_killed / "reports").mkdir()
    (two_killed / "reports" / "run-0.json").write_text("{")
    wording(command("results", "show", FIRST, code=3).stderr)
