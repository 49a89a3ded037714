"""What A and B name, and which partitions stand against each other."""

import pytest

import factories
from fabricheck.core.errors import InvalidDocument, NotFoundError, UsageError
from fabricheck.judge.comparison.sides import find, pair_up

START = factories.SESSION_START


@pytest.fixture
def two_partitions(tmp_path):
    """A results folder of one session in two partitions."""
    cases = [
        factories.case(),
        factories.case(partition="sim", environ="sim", stagedir=None, outputdir=None),
    ]
    factories.session(tmp_path / "two", cases)
    factories.write(factories.case_folder(tmp_path / "two", "stream_local") / "result.json")
    return tmp_path / "two"


def one_partition(folder, partition="host", name="local"):
    factories.session(folder, [factories.case(system=name, partition=partition)])
    factories.write(factories.case_folder(folder, "stream_local") / "result.json")
    return folder


def named(a, b):
    return [(one.where, two.where) for one, two in pair_up(find(str(a)), find(str(b)))]


def test_a_session_by_id_report_and_folder(one_session):
    for name in ("latest", "run-0", "0", "00000000", one_session,
                 one_session / "reports" / "run-0.json"):  # fmt: skip
        side = find(str(name))
        assert side.title.startswith(f"session run-0 of {one_session}")
        assert [part.where for part in side.parts] == ["local:host"]
        assert len(side.parts[0].documents) == 1


def test_the_folder_of_another_place_is_its_latest_session(tmp_path):
    factories.session(tmp_path, [factories.case()], number=4, start=START)
    factories.session(tmp_path, [factories.case()], number=5, start=START + 100)
    assert "session run-5" in find(str(tmp_path)).title
    assert "session run-4" in find(str(tmp_path / "reports" / "run-4.json")).title


def test_documents_and_folders_of_them(tmp_path):
    for name in ("one", "two"):
        factories.write(tmp_path / name / "result.json")
    assert [check.name for check in find(str(tmp_path)).parts[0].checks] == ["one", "two"]
    side = find(str(tmp_path / "one" / "result.json"))
    assert [check.name for check in side.parts[0].checks] == ["one"]


def test_two_documents_that_are_named_are_for_each_other(tmp_path):
    paths = [factories.write(tmp_path / name / "some.json") for name in ("before", "after")]
    [(one, two)] = pair_up(*map(find, map(str, paths)))
    assert one.checks[0].name == two.checks[0].name


def test_folders_of_the_same_name_keep_apart(tmp_path):
    for name in ("host", "sim"):
        factories.write(tmp_path / name / "stream_local" / "result.json")
    names = [check.name for check in find(str(tmp_path)).parts[0].checks]
    assert names == ["host/stream_local", "sim/stream_local"]


def test_partitions_go_by_name_and_what_one_lacks_stands_against_nothing(two_partitions, tmp_path):
    other = one_partition(tmp_path / "b")
    assert named(two_partitions, two_partitions) == [
        ("local:host", "local:host"),
        ("local:sim", "local:sim"),
    ]
    pairs = pair_up(find(str(two_partitions)), find(str(other)))
    assert [(one.where, bool(two.checks)) for one, two in pairs] == [
        ("local:host", True),
        ("local:sim", False),
    ]


def test_one_partition_of_each_side(two_partitions, tmp_path):
    other = one_partition(tmp_path / "b", "gpu", "lumi")
    assert named(f"{two_partitions}@local:sim", other) == [("local:sim", "lumi:gpu")]
    assert named(f"{two_partitions}@local:sim", two_partitions) == [("local:sim", "local:sim")]
    assert named(f"{two_partitions}@local:host", f"{two_partitions}@local:sim") == [
        ("local:host", "local:sim")
    ]


def test_it_is_a_sentence_which_one_is_meant(two_partitions, tmp_path):
    other = one_partition(tmp_path / "b", "gpu", "lumi")
    with pytest.raises(UsageError, match=r"name one of each to compare, as .*two@local:host\."):
        named(two_partitions, other)
    third = one_partition(tmp_path / "c", "gpu", "frontier")
    with pytest.raises(UsageError, match="has no partition frontier:gpu but local:host, local:sim"):
        named(two_partitions, f"{third}@frontier:gpu")


def test_what_is_not_there(two_partitions, tmp_path, results_folder):
    with pytest.raises(NotFoundError, match="no partition 'local:gpu'; it has local:host, local"):
        find(f"{two_partitions}@local:gpu")
    with pytest.raises(NotFoundError, match="no session 'run-7'"):
        find("run-7")
    with pytest.raises(NotFoundError, match=r"There is no report .*run-9\.json"):
        find(str(two_partitions / "reports" / "run-9.json"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no result document in"):
        find(str(tmp_path / "empty"))
    document = factories.write(tmp_path / "d" / "result.json")
    for name in ("", "@local:host"):
        with pytest.raises(UsageError, match="names no session"):
            find(name)
    with pytest.raises(UsageError, match="has no partitions, so 'local:host'"):
        find(f"{document}@local:host")
    document.write_text("{")
    with pytest.raises(InvalidDocument):
        find(str(document))


def test_environments_of_one_partition_keep_apart(tmp_path):
    cases = [factories.case(), factories.case(environ="gnu")]
    factories.session(tmp_path, cases)
    names = [check.name for check in find(str(tmp_path)).parts[0].checks]
    assert names == ["stream_local +host", "stream_local +gnu"]
