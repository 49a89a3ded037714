"""Sessions of several results folders as one, as the jobs of a pipeline leave them."""

import json
import shutil

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.verdict import judging
from fabricheck.report import contents
from fabricheck.results import joined, reading
from fabricheck.results.folder import ResultsFolder, documents_of
from fabricheck.results.session_checks import checks_of
from fabricheck.site import software
from session_builder import SessionBuilder

START = factories.SESSION_START


def results_of(tmp_path, name, number=0, start=START, result="pass"):
    """Return the results folder of a job that ran one check."""
    results = tmp_path / "jobs" / name
    command = f"reframe -n {name} -r"
    session = SessionBuilder(results, number, command=command, start=start)
    return session.add(factories.case(name, result=result), factories.document()).write()


@pytest.fixture
def parts(tmp_path):
    return [
        results_of(tmp_path, "stream_local"),
        results_of(tmp_path, "stream_scan", number=1, start=START + 40, result="fail"),
    ]


def test_one_session_has_the_cases_and_documents_of_all(parts, tmp_path):
    _, lacking = joined.join(parts, tmp_path / "all")
    assert lacking == []
    # As artifacts: what they were made of is not there any more.
    shutil.rmtree(tmp_path / "jobs")
    folder = ResultsFolder(tmp_path / "all")
    (session,) = folder.sessions
    assert (session.passed, session.failed) == (1, 1)
    assert (session.start, session.end) == (START, START + 100)
    entries = list(documents_of(session))
    assert [entry.case.name for entry in entries] == ["stream_local", "stream_scan"]
    assert all(entry.problem is None for entry in entries)
    assert folder.unreported_paths() == []


def test_the_latest_session_of_each_is_taken(parts, tmp_path):
    results_of(tmp_path, "stream_scan", number=2, start=START + 90)
    joined.join(parts, tmp_path / "all")
    assert [case.result for case in ResultsFolder(tmp_path / "all").latest().cases] == ["pass"] * 2


def test_a_killed_session_is_not_replaced_by_an_earlier_one(parts, tmp_path, wording):
    name = "20270102T030405-7"
    case = parts[1] / "stage" / name / "local" / "host" / "host" / "stream_scan"
    factories.write(case / "result.json.partial", factories.killed_document())
    _, lacking = joined.join(parts, tmp_path / "all")
    wording(lacking)
    (case,) = ResultsFolder(tmp_path / "all").latest().cases
    assert case.name == "stream_local"


def test_attempts_stay_attempts(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    failed = factories.case(result="fail")
    SessionBuilder(one).add(failed).rerun().add(factories.case()).write()
    SessionBuilder(two, 1).add(factories.case("stream_scan")).write()
    joined.join([one, two], tmp_path / "all")
    cases = ResultsFolder(tmp_path / "all").latest().cases
    assert {case.name: case.failed_attempts for case in cases} == {
        "stream_local": 1,
        "stream_scan": 0,
    }


def test_it_is_the_whole_of_the_set_that_was_meant(parts, tmp_path, wording):
    joined.join(parts, tmp_path / "unknown")
    joined.join([*parts, tmp_path / "lost"], tmp_path / "known", "smoke")
    # Its parts each chose one check: of which set, they do not know.
    assert ResultsFolder(tmp_path / "unknown").latest().choice.set is None
    session = ResultsFolder(tmp_path / "known").latest()
    assert session.choice.set == "smoke"
    (sentence,) = session.lacking
    wording(sentence)
    # The page and the verdict of it say so, too.
    assert sentence in contents.page_contents(reading.read([str(tmp_path / "known")])).problems
    words = {one.node: one for one in judging.judge(reading.read([str(tmp_path / "known")]))}
    assert [one.sentence for one in words["(no node)"].reasons] == [sentence]


def test_its_verdict_is_that_of_its_folders(parts, tmp_path):
    early = tmp_path / "jobs" / "early"
    early.mkdir()
    joined.join([*parts, early], tmp_path / "all", "smoke")

    def verdicts(*folders, whole=None):
        found = judging.judge(reading.read([str(one) for one in folders]), set_tag=whole)
        return {
            (one.node, one.simulated): (one.status, one.checks, len(one.reasons), one.set)
            for one in found
        }

    apart = verdicts(*parts, early, whole="smoke")
    assert verdicts(tmp_path / "all") == apart
    assert {node for node, _ in apart} > {"(no node)"}
    assert all(status == "INCOMPLETE" for status, *_ in apart.values())


def test_a_deviation_of_any_part_is_one_of_the_whole(tmp_path):
    folders = []
    for number, deviations in enumerate(({}, {"without-mpi": ["FABRICHECK_MPI=OFF"]})):
        folder = tmp_path / str(number)
        SessionBuilder(folder, number).add(factories.case(f"check_{number}")).write()
        checks = {"check_0": "smoke", "check_1": "smoke"}
        factories.recorded_checks(folder / "output", "local:host", deviations, **checks)
        folders.append(folder)
    joined.join(folders, tmp_path / "all", "smoke")
    recorded = checks_of([tmp_path / "all" / "output"])["local:host"]
    assert [each.name for each in recorded.deviations] == ["without-mpi"]


def test_what_else_lies_in_a_folder_is_not_taken(tmp_path):
    results = tmp_path / "results"
    for number, stamp in enumerate(("20260101T000000-7", "20260101T000100-8")):
        made = (
            SessionBuilder(results, number, start=START + 60 * number)
            .add(factories.case())
            .write_report()
        )
        report = json.loads(made.read_text())
        for part in ("output", "stage"):
            report["session_info"][f"prefix_{part}"] = f"{results}/{part}/{stamp}"
            own = report["runs"][0]["testcases"][0]
            own[f"{part}dir"] = f"{results}/{part}/{stamp}/local/host/host/stream_local"
        made.write_text(json.dumps(report))
        folder = results / "output" / stamp / "local/host/host/stream_local"
        factories.write(folder / "result.json")
    joined.join([results], tmp_path / "all")
    assert [path.name for path in (tmp_path / "all" / "output").iterdir()] == [stamp]


def test_what_is_not_there_is_told_and_ends_with_4(command, parts, tmp_path, wording):
    lost = tmp_path / "jobs" / "p2p_engine"
    target = tmp_path / "all"
    ended = command(
        "results", "join", *parts, lost, "--output", target, code=InvalidInputError.exit_code
    )
    wording(ended.stderr)
    assert len(ResultsFolder(target).latest().cases) == 2


def test_nothing_to_join_and_a_folder_that_is_taken(parts, tmp_path):
    with pytest.raises(NotFoundError, match="There is no session to join"):
        joined.join([tmp_path / "nothing"], tmp_path / "all")
    before = (parts[0] / "reports" / "run-0.json").read_text()
    with pytest.raises(InvalidInputError, match="already exists"):
        joined.join(parts, parts[0])
    assert (parts[0] / "reports" / "run-0.json").read_text() == before


def record_software(outputs, says):
    record = {"written": START + 50, "environments": [{"says": [says]}]}
    factories.write(outputs / "software" / "software.json", record)


@pytest.mark.parametrize("stamp", ["20260101T000000-7", ""])
def test_jobs_with_the_same_programs_leave_one_record_of_them(parts, tmp_path, stamp):
    """Also where ReFrame was told to write all sessions into one folder."""
    for part in parts:
        (path,) = part.glob("reports/*.json")
        report = json.loads(path.read_text())
        report["session_info"]["prefix_output"] += f"/{stamp}"
        factories.write(path, report)
        record_software(part / "output" / stamp, "built from A")
    joined.join(parts, tmp_path / "all")
    session = ResultsFolder(tmp_path / "all").latest()
    assert software.sentences(session.outputs, session.start, session.end) == ["built from A"]


def test_jobs_with_different_programs_are_no_one_session(parts, tmp_path):
    for part, says in zip(parts, ("built from A", "built from B"), strict=True):
        record_software(part / "output", says)
    with pytest.raises(
        InvalidInputError, match=r"different software.*built from A \| built from B"
    ):
        joined.join(parts, tmp_path / "all")
    assert not (tmp_path / "all").exists()
