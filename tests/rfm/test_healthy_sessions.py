"""A healthy session passes, and each way to call ReFrame does what it says."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import statistics
import time
from types import SimpleNamespace

import pytest
import yaml
from reframe.frontend import executors
from reframe.frontend.executors import policies

from fabricheck.core.errors import UsageError
from fabricheck.results import requested_nodes
from fabricheck.results.document import load
from fabricheck.results.reading import read

pytestmark = pytest.mark.slow

COPIES = ["memcpy_near", "memcpy_near_pageable"]
CHECKS = [*COPIES, "memcpy_scan", "stream_concurrent", "stream_local", "stream_scan"]


def ran(outcome) -> list[str]:
    """Name the checks that passed, in the order of their names."""
    return sorted(re.findall(r"\[       OK \] \(\s*\d+/\d+\) (\S+)", outcome.text))


@pytest.fixture(scope="module")
def whole(shared_suite):
    """The session that a person types, which the tests after it read."""
    temporary = shared_suite.folder / "temporary"
    temporary.mkdir()
    shared_suite.variables["TMPDIR"] = str(temporary)
    return shared_suite, shared_suite.shell("-r")


def test_the_command_a_person_types(whole, wording):
    _, outcome = whole
    assert outcome.status == 0
    assert "[ PASSED ] Ran 6/6 test case(s) from 6 check(s) (0 failure(s)" in outcome
    assert outcome.text.splitlines()[-1] == "now: fabricheck verdict"
    assert ran(outcome) == CHECKS
    wording(outcome.lines_with("only if requested"))
    wording(outcome.lines_with("report only"))
    assert "P: triad_worst: 6.8744 GB/s" in outcome
    # Virtual devices are one memory at two times.
    assert "_alike" not in outcome


def test_everything_lies_in_the_results_folder_arguments_of_check_and_partition_too(whole):
    suite, _ = whole
    assert not list((suite.folder / "temporary").iterdir())
    documents = sorted((suite.results / "output").glob("*/local/host/host/*/result.json"))
    assert [file.parent.name for file in documents] == CHECKS
    assert all(load(file)["outcome"]["status"] == "good" for file in documents)
    (case,) = [
        case
        for case in suite.report()["runs"][0]["testcases"]
        if case["name"] == "stream_concurrent"
    ]
    values = {key: value[0] for key, value in case["perfvalues"].items()}
    assert values == {
        "local:host:copy_one": 9.9744,
        "local:host:copy_all_sum": 19.9744,
        "local:host:copy_all_share": 9.8744,
    }
    assert len(list((suite.results / "logs").iterdir())) == 1
    assert len(list((suite.results / "perflogs").rglob("*.log"))) == 6
    with sqlite3.connect(suite.results / "results.db") as database:
        assert database.execute("SELECT COUNT(*) FROM sessions").fetchone() == (1,)
    # Nothing beside it.
    assert {entry.name for entry in suite.folder.iterdir()} == {
        "bin", "results", "fake.log", "temporary",
    }  # fmt: skip
    # What each program got.
    arguments = {
        file.parent.name: " ".join(load(file)["arguments"][1:])
        for file in (suite.results / "output").glob("*/local/host/host/*/result.json")
    }
    local = arguments["stream_local"]
    assert re.match(r"--devices each --sizes \d+ ", local)
    assert int(local.split()[3]) >= 128 << 20
    # A series that has its samples takes no more time on a machine without GPUs.
    assert " --series-time 0.25 " in local
    assert " --series-time 0.25 " in arguments["memcpy_near"]
    assert local.endswith("--block-sizes 256 --time-limit 120 --output result.json")
    scan = re.search(r"--sizes 1KiB:(\d+) --block-sizes 64,128,256", arguments["stream_scan"])
    assert int(scan[1]) >= 256 << 20
    assert "--source host --destination host" in arguments["stream_concurrent"]
    assert "--devices 0 --devices 0,1" in arguments["stream_concurrent"]


def test_metrics_have_the_series_that_they_are_made_of(whole):
    suite, _ = whole
    found = {}
    for row in read([str(suite.results)]).metrics:
        medians = [
            one["median"] for one in (row.check_row.document["series"][i] for i in row.series)
        ]
        found[row.metric] = (row.value, row.reduce, len(medians))
        if row.reduce is None:
            continue  # computed, as of alike members
        reduced = {"worst": min, "best": max, "median": statistics.median}[row.reduce]
        assert row.value == reduced(medians)
    assert found["triad_worst"] == (6.8744, "worst", 2)
    # By its name nobody could tell that it is of shares.
    assert found["copy_all_share"][1:] == ("worst", 2)


def test_the_first_of_virtual_devices_stands_for_their_one_memory(suite):
    del suite.variables["FABRICHECK_HOST_DEVICES"]
    assert suite("-r", "-n", "stream_local", "-n", "memcpy_near$").status == 0
    files = list((suite.results / "output").glob("*/local/host/host/*/result.json"))
    assert len(files) == 2
    for file in files:
        document = load(file)
        assert document["arguments"][1:3] == ["--devices", "0"]
        assert len(document["devices"]) == 2
        assert {series["device"] for series in document["series"]} <= {0, None}
    found = {row.metric: len(row.series) for row in read([str(suite.results)]).metrics}
    assert found["triad_worst"] == found["h2d_pinned_near_worst"] == 1


def test_more_devices_by_the_variable(suite):
    suite.variables["FABRICHECK_HOST_DEVICES"] = "3"
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 0
    # Device 2 is the slowest of the stand-in's.
    assert "P: copy_worst: 9.7744 GB/s" in outcome


def test_list(suite):
    outcome = suite("-L")
    assert outcome.status == 0
    assert "Found 7 check(s)" in outcome
    assert "STREAM on the memory of each device alone (E1)" in outcome
    assert not suite.log.exists()


def test_dry_run(suite):
    outcome = suite("--dry-run")
    assert outcome.status == 0
    assert "Ran 6/6 test case(s)" in outcome
    assert not suite.log.exists()
    # No report and no log says later that something passed.
    assert list((suite.results / "reports").iterdir()) == []
    assert not (suite.results / "perflogs").exists()
    assert not (suite.results / "results.db").exists()


def test_a_dry_run_pauses_after_no_check(suite, monkeypatch):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(policies, "time", SimpleNamespace(time=time.time, sleep=sleep))
    suite.topics = ()
    assert suite("--system=frontier", "--dry-run").status == 0
    assert len(pauses) > 15 and max(pauses) <= 0.0011


def test_describe_names_the_metrics(suite):
    outcome = suite("--describe", "-n", "stream_scan")
    assert outcome.status == 0
    (check,) = json.loads(outcome.text)
    assert check["name"] == "stream_scan"
    assert check["perf_variables"] == ["triad_best_block", "triad_worst_block"]


@pytest.mark.parametrize(
    ("selection", "checks"),
    [
        (["-n", "stream_local"], ["stream_local"]),
        (["-n", "stream_local", "-n", "stream_s"], ["stream_local", "stream_scan"]),
        (["-t", "smoke"], ["memcpy_near", "stream_local"]),
        (["--mode=node"], [*COPIES, "stream_concurrent", "stream_local"]),
        (["-t", "full"], CHECKS),
        (["--mode=full", "-t", "E5"], ["stream_concurrent"]),
        (["-x", "scan"], [*COPIES, "stream_concurrent", "stream_local"]),
        (["-T", "E1"], [*COPIES, "memcpy_scan", "stream_concurrent"]),
        (["-E", "'E5' in tags"], ["stream_concurrent"]),
        (["--system=local:host"], CHECKS),
    ],
    ids=lambda value: " ".join(value),
)
def test_selections(suite, selection, checks):
    outcome = suite("--dry-run", *selection)
    assert outcome.status == 0
    assert ran(outcome) == checks


def test_a_mode_that_is_none_is_refused(suite, wording):
    outcome = suite("-r", "--mode=nightly")
    assert outcome.status == UsageError.exit_code
    wording(outcome.text)


def test_the_selection_that_a_failure_report_names(suite):
    failed = suite("-r", "-n", "stream_local", fault="exit-7")
    assert failed.status == 1
    (again,) = re.findall(r"Rerun with '(.+) -r'", failed.text)
    outcome = suite("-r", *again.split())
    assert outcome.status == 0
    assert ran(outcome) == ["stream_local"]
    # Sessions do not overwrite each other.
    assert len(list((suite.results / "reports").iterdir())) == 2
    with sqlite3.connect(suite.results / "results.db") as database:
        assert database.execute("SELECT COUNT(*) FROM sessions").fetchone() == (2,)


def test_repeat(suite):
    outcome = suite("-r", "--repeat=2")
    assert outcome.status == 0
    assert ran(outcome) == sorted(CHECKS * 2)


def test_checks_of_one_node_never_overlap(suite):
    """Nor do those that last for longer than it takes to start another one."""
    log, program = suite.folder / "log", suite.programs / "stream"
    noted = f"echo start >> {log}\ntrap 'echo end >> {log}' EXIT\nsleep 0.3\n"
    program.write_text(program.read_text().replace("exec ", noted))
    assert suite("-r", "-n", "stream_local", "--repeat=3").status == 0
    assert log.read_text().split() == ["start", "end"] * 3


def test_repeat_of_a_part(suite):
    outcome = suite("-r", "--repeat=3", "-n", "stream_local")
    assert outcome.status == 0
    assert ran(outcome) == ["stream_local"] * 3


def test_distribute(suite):
    outcome = suite("-r", "--distribute=all", "-t", "smoke")
    assert outcome.status == 0
    assert ran(outcome) == ["memcpy_near", "stream_local"]
    # Of the local scheduler: this machine, whose state is not told.
    (file,) = suite.results.glob(f"output/*/{requested_nodes.NAME}")
    requested = requested_nodes.read(file)
    assert (requested.partition, requested.chosen) == ("local:host", ("-t", "smoke"))
    assert requested.nodes == {socket.gethostname(): requested_nodes.RequestedNode()}


def test_a_session_of_every_node_is_of_one_partition(suite, wording):
    outcome = suite("--system=local", "-r", "--distribute=all", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))
    assert not list(suite.results.glob("output/*"))


def test_a_parameter_sweep(suite):
    outcome = suite("-r", "-n", "stream_local", "-P", "num_tasks_per_node=1,2")
    assert outcome.status == 0
    assert ran(outcome) == ["stream_local"] * 2


class Clock:
    """Time that leaps by a day when the program was started for the second time."""

    def __init__(self, log):
        self.log = log

    def time(self):
        starts = self.log.read_text().count("start") if self.log.exists() else 0
        return time.time() + (86400 if starts > 1 else 0)


def test_duration(suite, monkeypatch):
    monkeypatch.setattr(executors, "time", Clock(suite.log))
    outcome = suite("-r", "-n", "stream_local", "--duration=1h")
    assert outcome.status == 0
    # The second round is stopped; the first one is the result.
    assert ran(outcome) == ["stream_local"]
    assert "maximum session duration exceeded" in outcome


def test_a_duration_in_which_no_check_ends(suite):
    (suite.programs / "stream").write_text("#!/bin/sh\nexec sleep 600\n")
    outcome = suite("-r", "-n", "stream_local", "--duration=1s")
    assert outcome.status == 1
    assert "Nothing was run: all test cases were skipped or" in outcome


def test_the_pipeline_for_ci_runs_each_check(suite):
    file = suite.folder / "child.yaml"
    assert suite(f"--ci-generate={file}").status == 0
    # The last job takes them together.
    jobs = {
        name.removesuffix(" local:host"): job
        for name, job in yaml.safe_load(file.read_text()).items()
        if "_" in name
    }
    assert sorted(jobs) == CHECKS
    # What the job's command selects is what it is named after.
    (name,) = re.findall(r"-n (/\w+)", jobs["stream_scan"]["script"][0])
    outcome = suite("-r", "-n", name)
    assert outcome.status == 0
    assert ran(outcome) == ["stream_scan"]


def test_restore_of_a_failed_session(suite):
    assert suite("-r", "-x", "memcpy", fault="metric-lost").status == 1
    report = next((suite.results / "reports").iterdir())
    # Without -c: the report knows its files, and ReFrame warns of a second search path.
    suite.checks = None
    outcome = suite("-r", f"--restore-session={report}", "--failed")
    assert outcome.status == 0
    assert ran(outcome) == ["stream_local", "stream_scan"]


def test_the_suite_s_own_checks_are_the_default(suite):
    suite.checks = None
    outcome = suite("-L")
    assert outcome.status == 0
    assert "Found 8 check(s)" in outcome


def test_series_of_metrics_that_cannot_be_kept_fail_nothing(suite, wording):
    program = suite.programs / "stream"
    program.write_text(program.read_text().replace("exec", "mkdir metrics.json\nexec", 1))
    outcome = suite("-r", "-n", "stream_local", "-v")
    assert outcome.status == 0 and ran(outcome) == ["stream_local"]
    (told,) = outcome.lines_with("metrics.json")
    wording(re.sub(r"/stage/[^/]+", "/stage/SESSION", told))
    assert {row.value is not None for row in read([str(suite.results)]).metrics} == {True}
