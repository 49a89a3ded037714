"""The catalogue of faults is whole, its page is of its last run, and quick faults are caught."""

from __future__ import annotations

import pytest

from proof.faults import matrix
from proof.faults.catalogue import ROWS
from proof.faults.rows import PERF, Made, Must, Row, make, outcome
from proof.faults.sessions import Said, Session

#: How many faults the catalogue has.
FAULTS = 76
QUICK = [row for row in ROWS if row.quick]


def key(row):
    return f"{row.number}, {row.fault}, {row.by}"


def test_every_fault_has_a_row_and_every_row_a_name_of_its_own():
    assert {row.number for row in ROWS} == set(range(1, FAULTS + 1))
    assert len({key(row) for row in ROWS}) == len(ROWS)


def test_the_page_is_what_the_last_run_of_these_rows_wrote():
    text = matrix.PAGE.read_text()
    found = list(matrix.cells(text))
    assert [cells[:4] for cells in found] == [matrix.fixed(row) for row in ROWS], "make faults"
    for cells, row in zip(found, ROWS, strict=True):
        assert cells[4].endswith("**not yet**" if row.not_yet else "caught"), "make faults"
        assert not row.not_yet or f"- {row.number}, {row.fault}: {row.not_yet}." in text


@pytest.mark.full
@pytest.mark.parametrize("row", QUICK, ids=map(key, QUICK))
def test_a_quick_fault_is_caught_as_the_page_says(row, tmp_path):
    found = outcome(row, make(row, tmp_path / "session"))
    assert found.unexpected is None
    assert matrix.line(found) in matrix.PAGE.read_text().splitlines()


def judged(said, not_yet=None):
    """Run a row that must name pair 0-1 in a PERF-FAIL."""
    row = Row(
        1, "a link", "S", Made("not at all", lambda folder: said), Must(PERF, ["0-1"]), not_yet
    )
    return outcome(row, said)


@pytest.mark.parametrize(
    ("status", "sentences"),
    [
        ("PASS", []),
        ("HW-FAIL", [("PERF-FAIL", "pair 0-1 is slow")]),
        ("PERF-FAIL", [("INCOMPLETE", "pair 0-1 is gone"), ("PERF-FAIL", "pair 10-1 is slow")]),
        ("PERF-FAIL", [("PERF-FAIL", "pair 0-11 is slow")]),
    ],
)
def test_another_status_or_name_catches_nothing(status, sentences):
    missed = Said(status, sentences)
    assert not judged(missed).caught
    assert "is not caught" in judged(missed).unexpected
    assert judged(missed, "a reason").unexpected is None
    assert "**not yet**" in matrix.line(judged(missed))


def test_a_fault_that_is_caught_needs_no_reason():
    said = Said("PERF-FAIL", [("PERF-FAIL", "x: pair 0-2"), ("PERF-FAIL", "x: pairs 0-1, 1-0")])
    assert judged(said).caught and judged(said).sentence == "x: pairs 0-1, 1-0"
    assert judged(said).unexpected is None
    assert "take its reason out" in judged(said, "a reason").unexpected


def test_a_check_that_the_fault_does_not_concern_must_pass():
    said = Said("PERF-FAIL", [("PERF-FAIL", "pair 0-1")], passed=["stream_local"])
    for others, caught in ((["stream_local"], True), (["p2p_kernel"], False)):
        row = Row(1, "a link", "S", Session(["p2p_engine"], others), Must(PERF, ["0-1"]))
        assert outcome(row, said).caught == caught
