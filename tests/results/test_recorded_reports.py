"""The recorded run reports of two H200 say what docs/evidence/h200.md says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabricheck.results.session import read_report

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "outputs" / "h200" / "reports-x2"
NODE = sorted(FOLDER.glob("node-*.json"))


def report(path: Path):
    return read_report(path, FOLDER)


def seconds(path: Path) -> float:
    session = report(path)
    return session.end - session.start


@pytest.mark.parametrize("path", NODE, ids=lambda path: path.stem)
def test_a_node_session_passed(path):
    cases = report(path).cases
    assert sum(case.passed for case in cases) == 12
    assert sum(case.skipped for case in cases) == 5
    assert len(cases) == 17


def test_four_devices_passed_within_the_references_of_two():
    path = FOLDER.with_name("reports-x4") / "node-1.json"
    cases = report(path).cases
    assert {case.where for case in cases} == {"h200:x4"}
    assert (sum(case.passed for case in cases), sum(case.skipped for case in cases)) == (12, 4)
    judged = [one for case in cases for one in case.metrics.values()]
    limited = [one for one in judged if (one.least, one.most) != (None, None)]
    assert len(limited) == 32 and {one.result for one in limited} == {"pass"}
    told = f"passed in {seconds(path):.0f} s (`reports-x4`)"
    assert told in " ".join((ROOT / "docs" / "evidence" / "h200.md").read_text().split())


def test_the_page_tells_how_long_they_took():
    page = (ROOT / "docs" / "evidence" / "h200.md").read_text()
    (least, most, number) = re.search(
        r"(\d+) to (\d+) s in (\w+) sessions, all passed", page
    ).groups()
    assert number == {5: "five"}[len(NODE)]
    assert int(least) == round(min(map(seconds, NODE)))
    assert int(most) == round(max(map(seconds, NODE)))


def test_the_page_quotes_the_failures_of_tightened_references():
    page = (ROOT / "docs" / "evidence" / "h200.md").read_text()
    session = report(FOLDER / "tightened.json")
    assert [case.passed for case in session.cases] == [False, False]
    said = "\n".join(case.reason or "" for case in session.cases)
    quoted = re.findall(r"^Metric \w+: .* is required .*$", page, re.MULTILINE)
    assert len(quoted) == 2
    for sentence in quoted:
        assert sentence in said
