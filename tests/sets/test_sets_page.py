"""The times in docs/evidence/h200.md are those of the recorded sessions, and limits leave room."""

from __future__ import annotations

import json
import math
import re
import statistics
from pathlib import Path

import pytest

from fabricheck.judge import set_times
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import read_report
from site_dry_runs import H200_TOOLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "h200.md"
H200 = ROOT / "tests" / "outputs" / "h200"


def measured(partition: str) -> dict[str, tuple[str, str]]:
    """Return by set the two last cells of its row in the page."""
    (rows,) = re.findall(rf"^\|[^|]*`{partition}` (.*\n(?:\| \|.*\n)*)", PAGE.read_text(), re.M)
    return {name: (took, of) for name, took, of in
            re.findall(r"\| (\w+) \| ([^|]+) \| ([^|]+) \|$", rows, re.M)}  # fmt: skip


def amount(values: list[float]) -> str:
    least, middle, most = (f"{one:.1f}" for one in
                           (min(values), statistics.median(values), max(values)))  # fmt: skip
    return middle if least == most else f"{middle} ({least} to {most})"


@pytest.mark.parametrize("devices", [2, 4])
def test_what_h200_took_is_of_the_recorded_sessions(devices):
    reports = [
        *sorted((H200 / f"reports-x{devices}").glob("*.json")),
        *sorted((H200 / "reports-later").glob(f"x{devices}-*.json")),
    ]
    sessions = [read_report(path, path.resolve().parent.parent) for path in reports]
    if devices == 2:
        sessions += ResultsFolder(H200 / "session-x2").sessions
    of_sets: dict[str, list[set_times.Took]] = {}
    for session in sessions:
        for one in set_times.took(session):
            if one.where == f"h200:x{devices}":
                of_sets.setdefault(one.name, []).append(one)
    page = measured(f"h200:x{devices}")
    assert page.keys() == of_sets.keys() == {"smoke", "node", "full"}
    for name, found in of_sets.items():
        ran = sorted({one.checks for one in found})
        said = f"{len(found)}, {' to '.join(dict.fromkeys(map(str, (ran[0], ran[-1]))))} ran"
        failed = sum(one.failed for one in found)
        expected = (amount([one.seconds for one in found]),
                    said + (f", {failed} failed" if failed else ""))  # fmt: skip
        assert page[name] == expected, name


@pytest.mark.slow
def test_limits_are_at_least_three_times_what_was_recorded_on_h200(site_dry_run):
    told = site_dry_run("h200", **H200_TOOLS).told
    limits = {(one.partition, one.check): one.limit_s for one in told}
    recorded = [
        (f"h200:{case['partition']}", case["name"], case["time_run"])
        for file in (*H200.glob("reports-*/*.json"), *H200.glob("session-x2/reports/*.json"))
        for case in json.loads(file.read_text())["runs"][-1]["testcases"]
        if case["result"] != "skip"
    ]
    assert len(recorded) > 250
    for partition, check, seconds in recorded:
        # Some checks were of an earlier version, under a name that none has today.
        assert limits.get((partition, check), math.inf) >= 3 * seconds, check


@pytest.mark.slow
def test_no_program_of_a_set_may_take_longer_than_the_set_says(site_dry_run):
    """However noisy a node is: the sum of these limits is the column "Their limits"."""
    run = site_dry_run("h200", **H200_TOOLS)
    told = run.of("h200:x2")
    assert len(told) > 40
    for one in told:
        script = (run.stage(one.partition, one.check) / "rfm_job.sh").read_text()
        assert re.findall(r" --time-limit (\d+) ", script) == [f"{one.limit_s:g}"], one.check
