"""What A and B name, and which partitions and checks stand against each other."""

import pytest
from two_sessions import HEALTHY, document, flat

import factories
from session_builder import SessionBuilder

START = factories.SESSION_START


def folder_of(path, *cases):
    """Write a results folder with a document of each case, a partition and an environment."""
    session = SessionBuilder(path)
    for number, (where, environ) in enumerate(cases):
        system, _, partition = where.partition(":")
        own = f"stream_local-{number}"
        case = factories.case(
            system=system, partition=partition, environ=environ, unique_name=own,
            display_name="stream_local",
        )  # fmt: skip
        session.add(case, document(HEALTHY))
    return session.write()


@pytest.fixture
def two_partitions(tmp_path):
    """A results folder of one session in two partitions."""
    return folder_of(tmp_path / "two", ("local:host", "host"), ("local:sim", "sim"))


@pytest.fixture
def other(tmp_path):
    """A results folder of one session in a partition of another name."""
    return folder_of(tmp_path / "other", ("lumi:gpu", "gpu"))


def told(command, a, b):
    """Compare; return what is told, and by comparison both partitions and the checks."""
    content = command("compare", a, b, json=True, code=None).json
    return content, [
        (one["a"]["where"], one["b"]["where"], {each["check"] for each in one["unchanged"]})
        for one in map(flat, content["partitions"])
    ]


def pairs(command, a, b):
    return [each[:2] for each in told(command, a, b)[1]]


def said(command, a, b, code):
    ended = command("compare", a, b, code=code)
    return " ".join(ended.stderr.split())


def test_a_session_by_id_report_and_folder(command, one_session, wording):
    titles = set()
    for name in ("latest", "run-0", "0", "00000000", one_session,
                 one_session / "reports" / "run-0.json"):  # fmt: skip
        content, found = told(command, name, name)
        assert content["a"]["name"] == str(name)
        titles.add(content["a"]["title"])
        assert [each[:2] for each in found] == [("local:host", "local:host")]
    wording(titles)


def test_the_folder_of_another_place_is_its_latest_session(command, tmp_path):
    SessionBuilder(tmp_path, 4, start=START).add(factories.case()).write()
    SessionBuilder(tmp_path, 5, start=START + 100).add(factories.case()).write()
    content, _ = told(command, tmp_path, tmp_path / "reports" / "run-4.json")
    assert "session run-5" in content["a"]["title"]
    assert "session run-4" in content["b"]["title"]


def test_documents_and_folders_of_them(command, tmp_path):
    for name in ("one", "two"):
        factories.write(tmp_path / name / "result.json", document(HEALTHY))
    assert told(command, tmp_path, tmp_path)[1] == [("", "", {"one", "two"})]
    one = tmp_path / "one" / "result.json"
    assert told(command, one, tmp_path)[1] == [("", "", {"one"})]


def test_two_documents_that_are_named_are_for_each_other(command, tmp_path):
    before, after = (factories.write(tmp_path / name / "some.json", document(HEALTHY))
                     for name in ("before", "after"))  # fmt: skip
    assert told(command, before, after)[1] == [("", "", {"before"})]


def test_folders_of_the_same_name_keep_apart(command, tmp_path):
    for name in ("host", "sim"):
        factories.write(tmp_path / name / "stream_local" / "result.json", document(HEALTHY))
    assert told(command, tmp_path, tmp_path)[1] == [
        ("", "", {"host/stream_local", "sim/stream_local"})
    ]


def test_partitions_go_by_name_and_what_one_lacks_stands_against_nothing(
    command, two_partitions, tmp_path
):
    both = [("local:host", "local:host"), ("local:sim", "local:sim")]
    assert pairs(command, two_partitions, two_partitions) == both
    one = folder_of(tmp_path / "one", ("local:host", "host"))
    assert pairs(command, two_partitions, one) == pairs(command, one, two_partitions) == both
    host, sim = command("compare", two_partitions, one, json=True, code=11).json["partitions"]
    assert (host["checks_missing_in_b"], sim["checks_missing_in_b"]) == ([], ["stream_local"])


def test_one_partition_of_each_side(command, two_partitions, other):
    host, sim = f"{two_partitions}@local:host", f"{two_partitions}@local:sim"
    assert pairs(command, sim, other) == [("local:sim", "lumi:gpu")]
    assert pairs(command, sim, two_partitions) == [("local:sim", "local:sim")]
    assert pairs(command, two_partitions, sim) == [("local:sim", "local:sim")]
    assert pairs(command, host, sim) == [("local:host", "local:sim")]


def test_it_is_a_sentence_which_one_is_meant(command, two_partitions, other, wording):
    wording(said(command, two_partitions, other, 2))
    wording(said(command, two_partitions, f"{other}@lumi:gpu", 2))


def test_what_is_not_there(command, two_partitions, tmp_path, results_folder, wording):
    def of_a(name, code=3):
        return said(command, name, two_partitions, code)

    wording(of_a(f"{two_partitions}@local:gpu"))
    assert "no session 'run-7'" in of_a("run-7")
    missing = two_partitions / "reports" / "run-9.json"
    wording(of_a(missing))
    (tmp_path / "empty").mkdir()
    wording(of_a(tmp_path / "empty"))
    SessionBuilder(tmp_path / "nothing").write()
    wording(of_a(tmp_path / "nothing"))
    path = factories.write(tmp_path / "d" / "result.json")
    for name in ("", "@local:host"):
        wording(of_a(name, 2))
    wording(of_a(f"{path}@local:host", 2))
    path.write_text("{")
    assert f"{path}: is not JSON" in of_a(path, 4)


def test_environments_of_one_partition_keep_apart(command, tmp_path):
    folder = folder_of(tmp_path, ("local:host", "host"), ("local:host", "gnu"))
    checks = {"stream_local +host", "stream_local +gnu"}
    assert told(command, folder, folder)[1] == [("local:host", "local:host", checks)]


def test_of_a_killed_session_over_two_nodes_each_is_compared_by_itself(
    command, tmp_path, monkeypatch
):
    """It has the same check on both: the folders of ReFrame's cases tell them apart."""
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    name = "20261121T200000-7"
    for node, digest in (("node1", "12345678"), ("node2", "23456789")):
        folder = tmp_path / "output" / name / "local/host/host" / f"p2p_engine_{digest}"
        factories.write(folder / "result.json", document(HEALTHY))
        (folder / "rfm_job.sh").write_text(f"#SBATCH --nodelist={node}\n")
    found = command("compare", name, name, json=True).json["partitions"]
    assert [(one["a"]["node"], one["b"]["node"]) for one in found] == [
        ("node1",) * 2,
        ("node2",) * 2,
    ]
    assert {each["check"] for one in map(flat, found) for each in one["unchanged"]} == {
        "p2p_engine"
    }
