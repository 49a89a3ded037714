"""Each way in which ReFrame alone would pass without proof fails here, and says why."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import pytest
from text_edit import edit

from fabricheck.core.errors import InvalidInputError
from fabricheck.judge.verdict import judging
from fabricheck.results import reading
from fabricheck.rfm import host
from reframe_suite import rules_of

pytestmark = pytest.mark.slow

NODE = platform.node()
SIZE = host.array_bytes()
DEVICE = f"device 1 (0000:c1:00.0) of node {NODE}"

CONVENTION = (
    "bytes_counted read+write, engine kernel, source.memory device, destination.memory device"
)

#: What the program does wrong, and what the failure says.
FAULTS = {
    "above-physics": f"Metric copy_worst, copy_median: {DEVICE} reported 1e+09 GB/s, "
    "above the derived physical bound of",
    "zero": "$.series[1].samples[0]: 0 GB/s is not positive.",
    "nan": "result.json: contains NaN, which is not a finite number.",
    "nothing-verified": "verification.bytes_checked: is 0, so that no data was verified, but the "
    "outcome is good.",
    "half-verified": f"Of copy of {SIZE} bytes by {DEVICE} only {SIZE // 2} bytes were verified; "
    f"at least {SIZE} are required.",
    # By how many seconds depends on how long the program took to start.
    "stale": f"The result on node {NODE} was started ... s before stream was submitted: it "
    "belongs to another run, or the node's clock is wrong.",
    "other-command": f"The result on node {NODE} is from '--devices each",
    "other-arch": f"Node {NODE} has 2 devices gfx90a; the partition states 2 devices host.",
    "device-missing": f"Node {NODE} has 1 device host; the partition states 2 devices host.",
    "device-hidden": f"ROCR_VISIBLE_DEVICES is 0 on node {NODE}: unset it so that "
    "every process sees all devices.",
    "launches-block": f"HIP_LAUNCH_BLOCKING is 1 on node {NODE}, but the check does not set "
    "it: launches and copies then wait for the device. Unset it.",
    "caches-hidden": f"Node {NODE} has caches of {1 << 20} MiB by its processor, but "
    "/sys/devices/system/cpu shows ... MiB, by which the arrays were sized: no array is far larger",
    "counted-once": f"Metric copy_worst has no series for regime memory, {CONVENTION}, experiment "
    "E1, role single, operation copy, device 0",
    "few": f"Copy of {SIZE} bytes by {DEVICE} has 6 samples; at least 7 are required.",
    "clocks-differ": f"Copy of {SIZE} bytes by {DEVICE}: the host's clock gives 0.4 of the "
    "device's 9.8744 GB/s, so one of them is wrong.",
    "metric-lost": f"Metric triad_worst has no series for regime memory, {CONVENTION}, "
    "experiment E1, role single, operation triad, device 0 in the result of device 0 "
    f"(0000:c0:00.0) of node {NODE}.",
    "device-lost": f"Metric copy_worst has no series for regime memory, {CONVENTION}, "
    f"experiment E1, role single, operation copy, device 1 in the result of {DEVICE}.",
    "incomplete": f"The result of stream on node {NODE} is incomplete: the run did not finish.",
    "truncated": "result.json: is not JSON, or cut off",
    "no-document": "stream left no usable result: There is no result document",
    "other-runtime": f"stream on node {NODE} ran with runtime cuda; the environment requires host.",
    "fault-injected": f"stream on node {NODE} ran with injected faults: flip-bit.",
    "exit-5": "stream ended with exit code 5 (wrong data): device 1 has a wrong word at offset "
    "4096",
    "good-document-exit-4": "stream ended with exit code 4 (an error of the program, MPI, a file "
    "or the system).",
    "killed": "stream was ended by signal 9 (exit code 137).",
}

#: What these make of the node; all others prove nothing against it, nor for it.
STATUSES = {"other-arch": "HW-FAIL", "device-missing": "HW-FAIL", "exit-5": "DATA-FAIL"}

#: The rule of what is neither of the hardware nor unexplained.
RULES = {"device-hidden": {"setting"}, "launches-block": {"setting"}, "caches-hidden": {"setting"}}


@pytest.fixture(scope="module")
def wrong(shared_suite):
    """One session in which each start of the program does another thing wrong."""
    # Whatever caches this machine has.
    shared_suite.own_settings("local.py", "host.arrays_fit_caches()", "False")
    return shared_suite, shared_suite(
        "-r", "-n", "stream_local", f"--repeat={len(FAULTS)}", fault=",".join(FAULTS)
    )


def test_each_program_that_does_it_wrong_fails_its_check(wrong):
    _, outcome = wrong
    assert outcome.status == 1
    assert f"({len(FAULTS)} failure(s)" in outcome
    assert "Traceback" not in outcome


@pytest.mark.parametrize("fault", FAULTS)
def test_a_program_that_does_it_wrong_fails_the_check(wrong, tmp_path, fault):
    suite, _ = wrong
    report = suite.report()
    folders = {Path(one["stagedir"]): one for one in report["runs"][0]["testcases"]}
    made = {(suite.folder / folder.name).read_text(): folder for folder in folders}
    stage, case = made[fault], folders[made[fault]]
    assert case["result"] == "fail"
    said = " ".join(case["fail_reason"].split())
    assert all(part in said for part in FAULTS[fault].split("..."))
    # Missing series are no news where the run or its devices are wrong.
    assert ("has no series" in said) == ("has no series" in FAULTS[fault])
    # The document, where there is one, is not lost.
    assert (stage / "result.json").exists() == (fault != "no-document")
    # As if it were the only one.
    report["runs"][0]["testcases"] = [case]
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "run-0.json").write_text(json.dumps(report))
    (found,) = judging.judge(reading.read([str(tmp_path)]))
    assert (found.status, found.checks.failed) == (STATUSES.get(fault, "INCOMPLETE"), 1)
    rules = {*rules_of(found)}
    assert RULES.get(fault, rules - {"setting"}) == rules


def steady(sentences):
    """Return sentences without the name of the session, which is of the moment."""
    return [re.sub(r"/stage/[^/]+", "/stage/SESSION", one) for one in sentences]


def test_a_result_that_was_there_before_the_program(suite, wording):
    file = suite.own_checks() / "stream" / "stream.py"
    edit(file, '    descr = "STREAM over', LEFT_RESULT + '    descr = "STREAM over')
    outcome = suite("-r", "-n", "stream_scan")
    assert outcome.status == 1
    wording(steady(outcome.reasons))
    assert not suite.log.exists()


LEFT_RESULT = """
    @rfm.core.builtins.run_after("setup")
    def leave_result(self):
        open(self.stagedir + "/result.json", "w").close()

"""


def test_a_result_among_the_sources_of_a_check_is_not_taken(suite, wording):
    sources = suite.own_checks() / "stream" / "src"
    sources.mkdir()
    (sources / "result.json").write_text("{}")
    outcome = suite("-r", "-n", "stream_local", fault="no-document")
    assert outcome.status == 1
    wording(steady(outcome.reasons))


def test_an_ignored_exit_code_does_not_hide_behind_the_other_checks(suite):
    outcome = suite("-r", fault="good-document-exit-4")
    assert outcome.status == 1
    assert "3 failure(s)" in outcome


def test_a_missing_program_is_named_with_the_command_that_builds_it(suite, wording):
    program = suite.programs / "stream"
    program.unlink()
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.reasons)
    # A dry run measures nothing and needs no program.
    assert suite("--dry-run", "-n", "stream_local").status == 0


def test_a_check_file_that_does_not_load(suite):
    file = suite.own_checks() / "stream" / "other.py"
    file.write_text("import reframe\nimport no_such_module\n")
    for action in ("-r", "--dry-run", "-L"):
        outcome = suite(action)
        assert outcome.status == 1
        assert "skipping test file" in outcome
        assert "No module named 'no_such_module'" in outcome


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"x = (\n", "'(' was never closed"),
        (b"x = '\xff'\n", "invalid start byte"),
    ],
)
def test_a_check_file_that_can_not_be_read(suite, content, sentence):
    file = suite.own_checks() / "stream" / "other.py"
    file.write_bytes(content)
    outcome = suite("-r")
    assert outcome.status == 1
    assert sentence in outcome


def reasons_of(suite):
    """Return the reasons of the last session's verdict, as sentences."""
    every = judging.judge(reading.read([str(suite.results)]))
    assert {one.status for one in every} == {"INCOMPLETE"}
    return {one.sentence for node in every for one in node.reasons}


def test_a_check_that_the_last_session_had_is_missed_once(suite):
    file = suite.own_checks() / "stream" / "stream.py"
    assert suite("-r", "-n", "stream_local").status == 0
    edit(file, "@rfm.simple_test\nclass stream_concurrent", "class stream_concurrent")
    for action in ("--dry-run", "-r"):
        outcome = suite(action, "-t", "smoke")
        assert outcome.status == 1
        said = "local:host lost 1 check: stream_concurrent, which its session of "
        assert said in outcome and f"The checks are those of {file.parent.parent}" in outcome
    assert any(one.startswith(said) for one in reasons_of(suite))


def test_a_damaged_record_of_the_last_session_ends_no_session(suite, wording):
    assert suite("-r", "-n", "stream_local").status == 0
    (record,) = suite.results.glob("output/*/checks.json")
    record.write_text(record.read_text()[:99])
    outcome = suite("-r", "-t", "smoke")
    assert outcome.status == 0
    (told,) = outcome.lines_with(str(record))
    # In parentheses is what the reader of JSON says.
    wording(told.replace(record.parent.name, "SESSION").partition(" (")[0])


def test_an_experiment_that_the_features_imply_is_missed(suite, wording):
    file = suite.own_checks() / "stream" / "stream.py"
    edit(file, '"E5"', '"E1"')
    outcome = suite("--dry-run", "-t", "smoke")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_a_lost_file(suite, wording):
    suite.topics = ()
    checks = suite.own_checks()
    for name in ("stream", "memcpy"):
        (checks / name / f"{name}.py").unlink()
    outcome = suite("-r")
    assert outcome.status == 1
    # Those that are left have to be asked for.
    wording(outcome.lines_with("only if requested"))
    wording(outcome.lines_with("ERROR"))
    for name in ("build", "soak"):
        (checks / name / f"{name}.py").unlink()
    outcome = suite("-r")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


@pytest.mark.parametrize("action", ["-r", "--dry-run"])
def test_a_name_that_does_not_exist(suite, action, wording):
    outcome = suite(action, "-n", "stream_lokal")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_an_environment_that_does_not_exist(suite, wording):
    """ReFrame would leave the partition without one, and its checks out."""
    outcome = suite("-r", "-p", "nosuch", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))
    assert "[ RUN" not in outcome


def test_a_search_path_that_does_not_exist(suite):
    outcome = suite("-r", checks=suite.folder / "nowhere")
    assert outcome.status == 1
    assert "nowhere' does not exist" in outcome


def test_a_search_path_without_checks(suite, wording):
    checks = suite.programs
    outcome = suite("-r", checks=checks)
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_no_check_for_this_system(suite, wording):
    checks = suite.own_checks()
    for name in ("stream", "memcpy"):
        edit(checks / name / f"{name}.py", '"+devices', '"+no_such_feature')
    (checks / "build" / "build.py").unlink()
    outcome = suite("-r")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


PLAIN = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class plain(rfm.RunOnlyRegressionTest):
    tags = {"full"}
    valid_systems = ["local:host"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["rate 5.5"]
    reference = {"*": {"rate": (5, -0.1, None, "GB/s")}}

    @sanity_function
    def ended(self):
        return sn.assert_found("rate", self.stdout)

    @performance_function("GB/s")
    def rate(self):
        return sn.extractsingle(r"rate ([\\d.]+)", self.stdout, 1, float)
"""


def test_a_plain_test_is_judged_and_one_without_its_value_does_not_pass(suite, wording):
    file = suite.own_checks() / "stream" / "plain.py"
    errors = []
    for text, status, rules in (
        (PLAIN, 0, []),
        # Of another length: Python tells a changed file of the same second by its size alone.
        (PLAIN.replace("rate 5.5", "rate 3.125"), 1, ["reference"]),
        (PLAIN.replace('"GB/s")}}', '"MB/s")}}  # per rank'), 1, ["no-value"]),
        (PLAIN.replace('r"rate (', 'r"speed ('), 1, ["no-value"]),
    ):
        file.write_text(text)
        outcome = suite("-r", "-n", "plain", "-n", "stream_local")
        assert outcome.status == status, outcome.text
        (node,) = judging.judge(reading.read([str(suite.results)]))
        assert rules_of(node) == rules
        errors += outcome.lines_with("ERROR")
    wording(errors)
    (reason,) = [one for one in node.reasons if one.rule == "no-value"]
    wording(reason.sentence)
    # A later session may lack it: it is no check of the suite.
    file.unlink()
    assert suite("--dry-run").status == 0


def test_a_plain_test_runs_on_no_simulated_node(suite, wording):
    """It would measure this machine, and be called simulated."""
    file = suite.own_checks() / "stream" / "plain.py"
    file.write_text(PLAIN.replace('"local:host"', '"*"'))
    suite.variables["RFM_SYSTEM"] = "local:sim-mi250x"
    outcome = suite("--dry-run", "-n", "plain")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))
    suite.variables["RFM_SYSTEM"] = "local"
    outcome = suite("-r", "-n", "plain", "-p", "host|sim")
    assert outcome.status == 0 and "Ran 1/1 test case(s)" in outcome


def test_plain_tests_alone_are_not_a_whole_session(suite, wording):
    file = suite.folder / "own" / "plain.py"
    file.parent.mkdir()
    file.write_text(PLAIN)
    outcome = suite("-r", checks=file.parent)
    assert outcome.status == 1 and "[ RUN" not in outcome
    wording(outcome.lines_with("ERROR"))
    assert suite("-r", "-n", "plain", checks=file.parent).status == 0


def test_every_test_case_skipped(suite):
    file = suite.own_checks() / "stream" / "stream.py"
    edit(file, '    program = "stream"\n', '    program = "stream"\n' + SKIP)
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    assert "all test cases were skipped" in outcome


def test_a_check_that_skips_itself_and_ran_before_is_missed(suite, wording):
    file = suite.own_checks() / "stream" / "stream.py"
    assert suite("-r", "-t", "full").status == 0
    edit(file, '    descr = "STREAM over', SKIP + '    descr = "STREAM over')
    outcome = suite("-r", "-t", "full")
    assert outcome.status == 1
    (lost,) = [one for one in reasons_of(suite) if "lost 1 check" in one]
    assert lost in outcome
    wording(lost)


SKIP = """
    @rfm.core.builtins.run_after("setup")
    def skip_here(self):
        self.skip("not here")

"""


def test_a_pipeline_for_ci_without_jobs(suite, wording):
    outcome = suite("--ci-generate=child.yaml", "-n", "typo")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_a_session_without_judgement_is_refused(suite, wording):
    outcome = suite("-r", "-n", "stream_local", "--skip-sanity-check")
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))
    assert not suite.log.exists()


def test_a_declared_metric_without_a_value(suite, wording):
    # As where warnings are let pass, which the settings file does not do.
    suite.variables["RFM_WARN_AS_ERROR"] = "no"
    file = suite.own_checks() / "stream" / "stream.py"
    edit(file, '    descr = "STREAM over', LOSE_VALUE + '    descr = "STREAM over')
    outcome = suite("-r", "-n", "stream_scan")
    assert outcome.status == 1
    wording(outcome.reasons)


LOSE_VALUE = """
    @rfm.core.builtins.run_before("performance")
    def lose(self):
        del self._figures["triad_worst_block"]

"""


def test_a_check_without_metrics(suite, wording):
    file = suite.own_checks() / "stream" / "stream.py"
    edit(file, '    descr = "STREAM on', NO_METRICS + '    descr = "STREAM on')
    outcome = suite("--dry-run", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.reasons)


NO_METRICS = """
    def expected_metrics(self):
        return ()

"""


def test_a_partition_that_does_not_state_what_a_check_needs(suite, wording):
    suite.own_settings("local.py", '"noise_limit": 0.75,', "")
    outcome = suite("--dry-run")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_a_results_folder_that_can_not_be_is_named(suite, wording):
    suite.results = suite.programs / "stream" / "results"
    outcome = suite("-r")
    assert outcome.status == InvalidInputError.exit_code
    wording(outcome.text)


def test_a_number_of_devices_that_is_none(suite, wording):
    suite.variables["FABRICHECK_HOST_DEVICES"] = "two"
    outcome = suite("-L")
    assert outcome.status == InvalidInputError.exit_code
    wording(outcome.text)
