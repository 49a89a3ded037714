"""Sessions older than a check, which measured it under another one's name: memcpy_near had both."""

import json
import shutil
from dataclasses import replace

import pytest
from calibrate_command import run
from nodes_of_sessions import NIGHT, recorded, times, write
from test_references_written import REPOSITORY
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.judge.calibration import record
from fabricheck.judge.calibration.gathering import gather
from fabricheck.report import rests_on
from fabricheck.results import split_checks
from fabricheck.results.observed import Observed
from fabricheck.results.run_report import Judged
from fabricheck.results.session import read_report

H200 = "h200:x2"
BOTH, PAGEABLE = "memcpy_near", "memcpy_near_pageable"
METRIC = "h2d_pageable_near_worst"


@pytest.fixture(scope="module")
def older():
    return recorded(BOTH)


def of_today(older, factor=1.0):
    """Return the cases and documents of today's two checks, pageable memory times a factor."""
    case, document = older
    parts = []
    for check, memory in ((BOTH, "host-pinned"), (PAGEABLE, "host-pageable")):
        kind = memory.removeprefix("host-")
        own = {key: one for key, one in case["perfvalues"].items() if f"_{kind}_" in key}
        series = [one for one in document["series"]
                  if memory in (one["source"]["memory"], one["destination"]["memory"])]  # fmt: skip
        assert own and series
        parts.append(({**case, "name": check, "perfvalues": own}, {**document, "series": series}))
    assert sum(len(one["series"]) for _, one in parts) == len(document["series"])
    pinned, pageable = parts
    return pinned, times(*pageable, factor)


def session_of_today(folder, older, number, minutes, factor=1.0):
    """Write one session of both checks, which `write` makes of one each."""
    (pinned, _), second = of_today(older, factor)
    results = write(folder, *second, number, minutes, "n0", ("GPU-a", "GPU-b"))
    report = results / "reports" / f"run-{number}.json"
    content = json.loads(report.read_text())
    cases = content["runs"][0]["testcases"]
    write(results, pinned, of_today(older)[0][1], number, minutes, "n0", ("GPU-a", "GPU-b"))
    cases += json.loads(report.read_text())["runs"][0]["testcases"]
    report.write_text(json.dumps(content))
    return results


@pytest.mark.parametrize(
    ("check", "metric", "today"),
    [
        (BOTH, METRIC, PAGEABLE),
        (BOTH, "h2d_pinned_near_worst", BOTH),
        (f"{BOTH} +cuda", METRIC, f"{PAGEABLE} +cuda"),
        (f"a/{BOTH}", METRIC, f"a/{PAGEABLE}"),
        (PAGEABLE, METRIC, PAGEABLE),
        ("memcpy_scan", "h2d_pageable_near", "memcpy_scan"),
    ],
)
def test_the_check_of_today(check, metric, today):
    assert split_checks.of_metric(check, metric) == today


def test_every_reference_is_under_the_check_that_has_it_today():
    """Else a session of today would be taken for an older one."""
    from fabricheck.references.stated import References

    for check, _, metric, _ in References(REPOSITORY).all_entries():
        assert split_checks.of_metric(check, metric) == check


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("documents", [False, True])
def test_older_and_newer_sessions_are_compared(tmp_path, older, order, documents):
    """All values, either way, of whole sessions and of documents alone."""
    sides = [
        write(tmp_path / "a", *older, 0, 0, "n0", ("GPU-a", "GPU-b")),
        session_of_today(tmp_path / "b", older, 1, NIGHT),
    ]
    if documents:
        sides = [next(one.rglob(BOTH + "*")).parent for one in sides]
        for folder in sides:
            for one in list(folder.iterdir()):
                one.rename(one.with_name(one.name.rsplit("-", 1)[0]))
    (result,) = json.loads(compared(sides[::order], 0))["partitions"]
    lacks = [key for key in result if "missing" in key] + ["not_comparable", "unread", "outcomes"]
    assert {key: result[key] for key in lacks} == {key: [] for key in lacks}
    series = {one["check"] for one in result["unchanged"]}
    assert series == {BOTH, PAGEABLE} and len(result["unchanged"]) >= 20


def compared(sides, code):
    asked = ["compare", *map(str, sides), "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == code, result.output
    return result.stdout


def test_pageable_memory_that_became_slow_is_of_the_check_of_today(tmp_path, older):
    a = write(tmp_path / "a", *older, 0, 0, "n0", ("GPU-a", "GPU-b"))
    b = session_of_today(tmp_path / "b", older, 1, NIGHT, 0.3)
    (result,) = json.loads(compared([a, b], 10))["partitions"]
    assert {one["check"] for one in result["worse"]} == {PAGEABLE}


def test_older_and_newer_sessions_make_one_record(tmp_path, older):
    """It says under which names the values were measured; references are of the check of today."""
    references = shutil.copytree(REPOSITORY, tmp_path / "references")
    (references / "calibrations" / "h200-x2.yaml").unlink()
    sessions = [
        write(tmp_path / f"r{number}", *older, number, number * NIGHT, "n0", ("GPU-a", "GPU-b"))
        for number in range(3)
    ] + [
        session_of_today(tmp_path / f"r{number}", older, number, number * NIGHT)
        for number in range(3, 6)
    ]
    found = record.build(gather(sessions, H200), H200).checks
    assert found.keys() == {BOTH, PAGEABLE}
    assert {name.split("_")[1] for name in found[BOTH]} == {"pinned"}
    one = found[PAGEABLE][METRIC]
    assert (one.n, one.measured_by, one.engine) == (6, [BOTH, PAGEABLE], "copy-engine")
    assert found[BOTH]["h2d_pinned_near_worst"].measured_by == []
    said = run(references, sessions, "--write", "--accept-looser", system=H200)
    assert f"{PAGEABLE} {METRIC}" in " ".join(said.stdout.split())
    text = (references / "calibrations" / "h200-x2.yaml").read_text()
    assert text.count(f"measured_by: [{BOTH}, {PAGEABLE}]") == 6


def test_the_report_finds_the_origin_under_the_check_of_today(tmp_path, older):
    results = write(tmp_path / "a", *older, 0, 0, "n0")
    (case,) = read_report(results / "reports" / "run-0.json", results).cases
    free = Judged(reference=0, lower=None, upper=None, result="pass")
    case = replace(case, values={METRIC: (1.0, "GB/s")}, judged={METRIC: free})
    (one,) = rests_on.of(Observed(H200, (case,), (), None))
    assert one.kind != rests_on.CHANGED
