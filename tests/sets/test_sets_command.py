"""`fabricheck site sets`: the checks of each set, what they may take, how long sessions took."""

from __future__ import annotations

import json

import pytest

import factories
from fabricheck.references import listing
from session_builder import SessionBuilder

HERE = "local:sim-mi250x"
SIZES = {"a": "1GiB", "b": "64KiB,256KiB,1MiB", "c": "4:1GiB"}
CHECKS = {"a": ["smoke", "node", "full"], "b": ["node", "full"], "c": ["full"]}


@pytest.fixture(autouse=True)
def three_checks(monkeypatch):
    """Let the dry run tell of three checks, one more in each set."""
    monkeypatch.setattr(
        listing,
        "ask",
        lambda system, folders: [
            listing.CheckMetrics(
                name, HERE, "sim", {}, ["E1", *tags], 120, "", "stream", SIZES[name]
            )
            for name, tags in CHECKS.items()
        ],
    )


def case(name: str, began: float, ended: float | None, **changes):
    return (
        factories.case(
            name,
            partition="sim-mi250x",
            environ="sim",
            tags=["E1", *CHECKS[name]],
            job_submit_time=began,
            job_completion_time_unix=ended,
        )
        | changes
    )


def session(folder, cases, *arguments: str, number: int = 0):
    """Write the session of a command; its documents say that the node was busy for 0.75 s each."""
    command = " ".join(["reframe", "-r", *arguments])
    start = factories.SESSION_START + 100 * number
    document = factories.simulated_document(simulated_s=0.75)
    session = SessionBuilder(folder, number, command=command, start=start)
    session.each((case, document) for case in cases).write()
    return folder / "reports" / f"run-{number}.json"


def took(command, *arguments: str) -> dict[str, list]:
    found = command("site", "sets", *arguments, json=True).json
    return {one["set"]: one["took"] for one in found["sets"] if one["took"]}


def test_before_the_first_session_the_checks_are_there(command, monkeypatch, tmp_path):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    said = command("site", "sets", "--system", HERE).words
    assert "smoke 1 120 s 60 s - - node 2 240 s 180 s - - full 3 360 s - - -" in said
    assert "a E1 stream 1 GiB smoke - b" in said
    assert "b E1 stream 64 KiB to 1 MiB (3) node - c" in said
    assert "c E1 stream 4 B to 1 GiB full -" in said
    assert "A simulated node with four AMD MI250X (eight devices); simulated" in said


def test_the_checks_and_limits_of_each_set_are_told(command, monkeypatch, tmp_path):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    found = command("site", "sets", json=True).json
    assert [one["checks"] for one in found["sets"]] == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert [one["limits_s"] for one in found["sets"]] == [120, 240, 360]


def test_the_name_of_a_set_leaves_the_others_out(command, monkeypatch, tmp_path):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    found = command("site", "sets", "node", json=True).json
    assert [one["set"] for one in found["sets"]] == ["node"]
    assert [one["check"] for one in found["checks"]] == ["a", "b"]


def test_a_name_that_is_no_set_is_refused_with_the_one_that_is_meant(command, wording):
    wording(command("site", "sets", "smoek", code=3).stderr)


def test_a_set_that_is_also_a_check_is_told(command, monkeypatch, tmp_path):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    monkeypatch.setitem(CHECKS, "smoke", ["smoke"])
    monkeypatch.setitem(SIZES, "smoke", "")
    assert "smoke is also a check" in command("site", "sets", "smoke").words
    assert "is also a check" not in command("site", "sets", "node").words


def test_a_session_of_a_set_tells_what_it_took_here_and_on_the_simulated_clock(
    command, results_folder
):
    # Jobs one after the other; what ReFrame did between them is not theirs.
    session(results_folder, [case("a", 10, 14.5), case("b", 20, 22)], "--mode=node")
    assert (
        "node 2 240 s 180 s 6.5 s, 1.5 s simulated run-0, 2026-01-02, 2 ran"
        in command("site", "sets", "--system", HERE).words
    )


def test_a_session_that_took_longer_than_its_set_may_is_named(command, results_folder):
    session(results_folder, [case("a", 10, 70.5)], "-t", "smoke")
    sentence = f"The set smoke took 60.5 s on {HERE}; its limit is 60 s on a node."
    assert f"{sentence} (run-0)" in command("site", "sets", "--system", HERE).words
    command("verdict")
    verdict = json.loads((results_folder / "verdicts/run-0/verdict.json").read_text())
    assert sentence in json.dumps(verdict)
    ((one,),) = took(command).values()
    assert one["over"] and one["seconds"] == 60.5


def test_checks_with_the_same_parameter_are_two_of_a_set(command, results_folder):
    cases = [case(name, 1, 3, display_name=f"{name} %domain=0") for name in ("a", "b")]
    session(results_folder, cases, "-t", "node")
    (one,) = took(command)["node"]
    assert (one["seconds"], one["checks"]) == (4, 2)


SKIPPED = {"result": "skip", "job_submit_time": None, "job_completion_time_unix": None}


@pytest.mark.parametrize(
    ("cases", "arguments"),
    [
        ([case("a", 1, 2)], ["-n", "a"]),
        ([case("a", 1, 2, job_nodelist=["node1"], scheduler="slurm")], ["-t", "smoke"]),
        ([case("a", 1, None, result="fail")], ["-t", "smoke"]),
        ([case("a", 1, 2, result="abort")], ["-t", "smoke"]),
        ([case("a", 1, 2), case("a", 3, 4, unique_name="again")], ["-t", "smoke"]),
        ([case("a", 0, 0, **SKIPPED)], ["-t", "smoke"]),
    ],
    ids=["a part", "a queue", "no end", "stopped", "repeated", "all skipped"],
)
def test_what_is_no_whole_set_on_one_node_tells_no_time(command, results_folder, cases, arguments):
    session(results_folder, cases, *arguments)
    assert took(command) == {}


def test_a_skipped_check_takes_no_time_and_a_failed_one_does(command, results_folder):
    failed = case("a", 1, 3, result="fail", fail_reason="slow", fail_phase="performance")
    session(results_folder, [failed, case("b", 0, 0, **SKIPPED)], "-t", "node")
    (one,) = took(command)["node"]
    assert (one["seconds"], one["checks"], one["failed"]) == (2, 1, 1)


def test_what_can_not_be_read_is_said(command, tmp_path):
    assert (
        "there is no such file"
        in command("site", "sets", "--system", HERE, tmp_path / "run-9.json", code=4).words
    )
