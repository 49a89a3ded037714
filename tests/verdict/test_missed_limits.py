"""How many limits were missed is one number in verdict, diagnosis, summary and page."""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "snapshots"))
import snapshot_sessions

#: The checks of the recorded session whose metrics are all made to miss their limits.
MADE_SLOW = ("mpi_pairs", "p2p_engine", "stream_local")

COUNTED = re.compile(r"(?:it|this|together they)(?: would)? explains? ([\w ]*?missed limits?)\b")


def made_slow() -> None:
    """The recorded simulated session in which every rate of some checks is missed."""
    snapshot_sessions.simulated()
    (report,) = Path("results/reports").glob("*.json")
    content = json.loads(report.read_text())
    for case in content["runs"][0]["testcases"]:
        if case["name"] not in MADE_SLOW:
            continue
        for metric in case["perfvalues"].values():
            if metric[4] == "GB/s":
                metric[:] = [metric[0], 2 * metric[0], -0.1, None, "GB/s", "fail"]
        case |= {"result": "fail", "fail_phase": "performance", "fail_reason": "slow",
                 "fail_info": {"exc_type": "PerformanceError"}}  # fmt: skip
    report.write_text(json.dumps(content))


#: Those of which few limits were missed are run in full alone: a report of each takes seconds.
SESSIONS = [
    snapshot_sessions.distributed,
    snapshot_sessions.failures,
    *(
        pytest.param(one, marks=pytest.mark.full)
        for one in (
            made_slow,
            snapshot_sessions.h200,
            snapshot_sessions.simulated,
            snapshot_sessions.killed,
        )
    ),
]


@pytest.fixture(scope="module", params=SESSIONS, ids=lambda one: one.__name__)
def session(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp(request.param.__name__))
        request.param()
        yield request.param


@pytest.fixture(scope="module")
def said(session, command):
    """Return a function that gives what a command says of the session, which changes nothing."""

    @functools.cache
    def said(*words: str) -> str:
        # Broken lines and escapes of Markdown take nothing from a sentence.
        return re.sub(r"\s+", " ", command(*words, code=None).stdout)

    return said


@pytest.fixture(scope="module")
def page(said) -> str:
    """The pages that `report` writes of the session."""
    said("report", "results")
    pages = list(Path("results/reports-html").rglob("index.html"))
    assert pages
    return "".join(map(Path.read_text, pages))


@pytest.fixture(scope="module")
def judged(said):
    """The nodes of the verdict."""
    return json.loads(said("verdict", "results", "--json"))["nodes"]


def counted(text: str) -> set[str]:
    return set(COUNTED.findall(re.sub(r"\s+", " ", text)))


def in_words(diagnosis) -> str:
    explained, misses = diagnosis["explained"], diagnosis["misses"]
    if explained < misses:
        return f"{explained} of the {misses} missed limits"
    return {1: "the missed limit", 2: "both missed limits"}.get(
        misses, f"all {misses} missed limits"
    )


def test_every_text_of_a_session_counts_its_missed_limits_alike(session, said, page, judged):
    told = [one["diagnosis"] for one in judged if one["diagnosis"] and one["diagnosis"]["degraded"]]
    expected = set(map(in_words, told))
    assert expected or session is not made_slow
    of_verdict = {in_words(one) for one in told if one["node_model"]}
    assert counted(said("verdict", "results")) == of_verdict
    assert counted(said("diagnose", "results")) == expected
    assert counted(said("summary", "results")) == expected
    assert counted(page) == expected


@pytest.mark.full
@pytest.mark.parametrize("session", [made_slow], indirect=True)
def test_all_missed_metrics_of_a_check_are_counted(session, said, page, judged):
    """A verdict lists few of many reasons, and says how many more there are."""
    (node,) = judged
    kept, limited = re.search(r"(\d+) of (\d+) metrics within", said("summary", "results")).groups()
    missed = int(limited) - int(kept)
    assert node["diagnosis"]["misses"] == missed > 40
    reasons = [one for one in node["reasons"] if one["check"]]
    assert len(reasons) < sum(one["stands_for"] for one in reasons) == missed
    found = re.findall(r"[Aa]nd (\d+) more(?: of this check|</a>)", page)
    assert sum(map(int, found)) == missed - len(MADE_SLOW)
