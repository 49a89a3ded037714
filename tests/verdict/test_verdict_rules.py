"""Each row of the table of rules is reached by a session, and leads to its status."""

import typing

import pytest

import factories
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.rules import OF_A_SOAK, RULES
from fabricheck.results import metric_records
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, now, write
from fabricheck.site import partitions
from fabricheck.site.deviations import DeviationName
from session_builder import (
    PARTITION,
    SessionBuilder,
    ended,
    failed,
    good_case,
    judge,
    kept_on_gpus,
    missed,
    of_mi250x,
    rules,
)

NOISY = factories.series([9.0, 10.0, 20.0, 5.0, 9.0, 10.0], noisy=True, host_clock=None)
WRONG = factories.series(verification=factories.mismatched())
TOPOLOGY = factories.document()["program"] | {"name": "topology"}
NICS = factories.document()["program"] | {"name": "nics"}
OSU = factories.document()["program"] | {"name": "osu", "commit": "unknown"}
FEWER = failed("sanity", "Node node1 has 7 devices gfx90a", "OtherDevicesError")
GOOD = factories.document()
#: Of which one sample in ten reaches what `missed` requires.
AT_TIMES = factories.series([9.8, *[7.0] * 9])

USED = factories.device_state(processes=[factories.process()])
BROKEN = factories.device_state(memory_errors={"corrected": 0, "uncorrected": 2})
LINKED = factories.device_state(link_errors={"nvlink-recovery-failed": {}})
RECOVERY_FAILED = LINKED | {"link_errors": {"nvlink-recovery-failed": {"3": 1}}}

LANES = {"width": 8, "width_max": 16, "width_max_port": 16}
NARROW = factories.device_state(pcie=LANES | {"gt_per_s": 16.0, "gt_per_s_max": 16.0, "replays": 0})

#: By rule: what changes the good case, its document, and words of the sentence.
OF_A_CHECK = {
    "wrong-data": (
        failed("sanity", job_exitcode=5),
        ended("wrong-data", 5, series=[WRONG]),
    ),
    "wrong-data-twice": (
        failed("sanity", job_exitcode=5),
        ended("wrong-data", 5, series=[WRONG, WRONG | {"operation": "scale"}]),
    ),
    "lost": (
        missed("differences", unit="count", tags=["E13", "smoke"]),
        factories.document(
            series=[], program=TOPOLOGY, differences=["link 0-6 is gone"], lost=["link 0-6 is gone"]
        ),
    ),
    "pcie-lanes": (
        {},
        factories.on_h200(state=factories.state([NARROW], [NARROW])),
    ),
    "device-error": (
        failed("sanity", job_exitcode=9),
        ended("device-error", 9, "device 3: uncorrectable ECC error", series=[]),
    ),
    "software": (
        failed("sanity", job_exitcode=4),
        ended("software", 4, "MPI_Init failed: no provider", series=[]),
    ),
    "refused": (
        failed("sanity", job_exitcode=11),
        ended("refused", 11, "hipMemcpy on device 0 failed", series=[]),
    ),
    "memory-errors": (
        {},
        factories.on_h200(state=factories.state([factories.device_state()], [BROKEN])),
    ),
    "link-errors": (
        {},
        factories.on_h200(state=factories.state([LINKED], [RECOVERY_FAILED])),
    ),
    "device-in-use": (
        missed(),
        factories.on_h200(state=factories.state([USED])),
    ),
    "host-busy": (
        missed(),
        factories.on_h200(state=factories.state(others=factories.host_use(15.8))),
    ),
    "devices": (FEWER, GOOD),
    "topology": (
        missed("differences", unit="count", tags=["E13", "smoke"]),
        factories.document(series=[], program=TOPOLOGY, differences=["link 0-6 is not there"]),
    ),
    "nics": (
        missed("differences", unit="count", tags=["E16", "smoke"]),
        factories.document(series=[], program=NICS, differences=["node1:cxi2 is down."]),
    ),
    "network": (
        missed("named", unit="count", tags=["E17", "network"]),
        factories.document(series=[]),
    ),
    "reference": (missed(), GOOD),
    "too-noisy": (
        failed("sanity", job_exitcode=7),
        ended("too-noisy", 7, "30 % wide", series=[NOISY]),
    ),
    "setting": (
        failed("sanity", job_exitcode=8),
        ended("setting", 8, "NUMA balancing is on", series=[]),
    ),
    "time-limit": (
        failed("sanity", job_exitcode=6),
        ended("time-limit", 6, "120 s were over"),
    ),
    "ended": (
        failed("sanity", "stream was ended from outside: its node failed.", job_exitcode=0),
        factories.killed_document(),
    ),
    "log-line": (
        {},
        factories.on_h200(
            aftermath=factories.aftermath(
                kernel_log=[
                    {"kind": "unclear", "pci_address": None, "text": "Xid 94", "row": "xid-94"}
                ]
            )
        ),
    ),
    "cancelled": (
        failed("sanity", "its job was cancelled", "EndedBySchedulerError"),
        factories.killed_document(),
    ),
    "not-started": (failed("setup", "There is no program"), None),
    "usage": (
        failed("sanity", job_exitcode=2),
        ended("usage", 2, "no such option", series=[]),
    ),
    "tool": (
        failed("sanity", job_exitcode=10),
        ended("tool", 10, "cut output", program=OSU, options={"tool": "osu"}, series=[]),
    ),
    "not-believed": (
        failed("sanity", "device 0 reported 9000 GB/s, above the derived physical bound"),
        GOOD,
    ),
    "placement": (
        missed("misplaced", unit="count", tags=["E15"]),
        GOOD,
    ),
    "unverified": (missed("unverified", unit="count", tags=["E12"]), GOOD),
    "no-value": (
        failed("performance", "No value for the declared metric(s) a.", "PerformanceError"),
        GOOD,
    ),
    "no-document": ({}, None),
    "failed": (failed("sanity", "no library", tags=["build"]), None),
}


@pytest.mark.parametrize("rule", OF_A_CHECK)
def test_each_rule_of_a_check_leads_to_its_word(tmp_path, rule, wording):
    changes, document = OF_A_CHECK[rule]
    check = {"topology": "node_topology", "lost": "node_topology", "nics": "nic_inventory"}.get(
        rule, "stream_local"
    )
    found = SessionBuilder(tmp_path).check(check, document=document, **changes).verdict()
    assert rules(found) == {rule}
    assert found.status == RULES[rule].status
    assert found.reasons[0].check == check
    wording(found.reasons[0].sentence)
    assert found.checks.failed == 1 and found.checks.passed == 0


@pytest.mark.parametrize(
    ("status", "code", "rule"),
    [("setting", 8, "setting"), ("unsupported", 3, "usage"), ("tool", 10, "tool")],
)
def test_what_is_no_fault_of_a_nic(tmp_path, monkeypatch, status, code, rule):
    """A provider that is missing, a model without NICs, a file that cannot be read."""
    # A document of nics has no devices, and the partition states some.
    stated = {"devices": [{"type": "gpu", "num_devices": 8}]}
    monkeypatch.setattr(partitions, "known", lambda where: stated)
    document = ended(status, code, "why", program=NICS, series=[], devices=[])
    found = (
        SessionBuilder(tmp_path)
        .failed("sanity", check="nic_inventory", document=document, job_exitcode=code, tags=["E16"])
        .verdict()
    )
    assert (rules(found), found.status) == ({rule}, "INCOMPLETE")


@pytest.mark.parametrize("rule", OF_A_CHECK)
def test_a_pass_beside_it_leads_where_the_rule_says(tmp_path, rule, wording):
    changes, document = OF_A_CHECK[rule]
    first = SessionBuilder(tmp_path / "a").check(document=document, **changes).write()
    again = (
        SessionBuilder(tmp_path / "b", start=factories.SESSION_START + 3)
        .check(document=GOOD, **kept_on_gpus())
        .write()
    )
    found = judge(again, first)["node1"]
    assert found.status == (RULES[rule].beside_a_pass or "PASS")
    assert bool(found.caveats) or RULES[rule].beside_a_pass
    if found.status == "UNSTABLE":
        assert rules(found) == {"varies"}
        wording(found.reasons[0].sentence)


def test_what_was_not_tried_again_is_incomplete(tmp_path):
    changes, document = OF_A_CHECK["cancelled"]
    first = SessionBuilder(tmp_path / "a").passed(document=GOOD).write()
    again = (
        SessionBuilder(tmp_path / "b", start=factories.SESSION_START + 3)
        .check(document=document, **changes)
        .write()
    )
    assert judge(first, again)["node1"].status == "INCOMPLETE"


@pytest.mark.parametrize(
    ("code", "rule"), [(5, "wrong-data"), (7, "too-noisy"), (8, "setting"), (4, "ended")]
)
def test_an_exit_code_speaks_where_there_is_no_document(tmp_path, code, rule):
    assert rule in rules(
        SessionBuilder(tmp_path).failed("sanity", "it ended badly", job_exitcode=code).verdict()
    )


def test_a_retry_that_passed_is_unstable_and_wrong_data_stays(tmp_path):
    for name, change, status in (
        ("slow", missed(), "UNSTABLE"),
        ("wrong", failed("sanity", job_exitcode=5), "DATA-FAIL"),
    ):
        case = good_case()
        session = SessionBuilder(tmp_path / name).add(case | change).rerun()
        found = session.add(case, GOOD).verdict()
        assert found.status == status


def test_repetitions_are_attempts_of_one_check(tmp_path):
    cases = [
        (good_case(display_name=f"stream_local %.repeat_no={number}", unique_name=f"s_{number}",
                   **change), GOOD)
        for number, change in enumerate([{}, missed()])
    ]  # fmt: skip
    found = SessionBuilder(tmp_path).each(cases).verdicts()["node1"]
    assert (found.status, found.checks.failed) == ("UNSTABLE", 1)
    all_slow = [(case | missed(), GOOD) for case, _ in cases]
    assert SessionBuilder(tmp_path / "b").each(all_slow).verdicts()["node1"].status == "PERF-FAIL"


def test_fewer_devices_than_the_site_states(tmp_path):
    one, both = [factories.device(0)], [factories.device(0), factories.device(1)]
    # A runtime that lists no device at all is refused by its driver as a rule.
    for devices, rule in (([], "refused"), (one, "devices"), (both, "usage")):
        document = ended("unsupported", 3, "no device", devices=devices, series=[])
        found = (
            SessionBuilder(tmp_path / rule, command="reframe -n stream_local")
            .failed(
                "sanity",
                node=None,
                document=document,
                system="h200",
                partition="x2",
                perfvalues={},
                job_exitcode=3,
            )
            .verdict()
        )
        assert rules(found) == {rule}


def test_a_simulated_node_whose_file_can_not_be_read_lacks_no_device(tmp_path):
    here = {"system": "local", "partition": "sim-mi250x", "perfvalues": {}}
    outcome = {"exit_code": 3, "status": "unsupported", "message": "platform.json is no JSON"}
    document = factories.simulated_document(devices=[], series=[], outcome=outcome, complete=False)
    assert rules(
        SessionBuilder(tmp_path, command="reframe -n a")
        .failed("sanity", node=None, document=document, **here, job_exitcode=3)
        .verdict()
    ) == {"usage"}


def test_a_check_that_the_session_could_select_is_missing(tmp_path):
    here = {"system": "h200", "partition": "x2", "perfvalues": {}}
    results = (
        SessionBuilder(tmp_path)
        .check(node=None, document=GOOD, **here)
        .check("p2p_kernel", None, document=None, **here, result="skip")
        .write()
    )
    factories.recorded_checks(
        results / "output", "h200:x2", stream_local="smoke full", p2p_kernel="smoke full",
        p2p_engine="smoke full", stream_scan="full",
    )  # fmt: skip
    found = judge(results)["node1"]
    assert rules(found) == {"missing"} and found.status == "INCOMPLETE"
    assert found.checks.missing == ["p2p_engine"] and found.set == "smoke"
    # A check skips itself where the node has not what it measures.
    assert [one.check for one in found.checks.skipped] == ["p2p_kernel"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_pass_where_nothing_says_what_is_expected_says_so(tmp_path, monkeypatch, broken, wording):
    monkeypatch.setenv("FABRICHECK_SITES", str(tmp_path))
    if broken:
        (tmp_path / "away.py").write_text("import os\nos.environ['NOT_HERE']")
    partitions.read_site.cache_clear()
    found = (
        SessionBuilder(tmp_path)
        .passed(node=None, document=GOOD, system="away", partition="x2")
        .verdict()
    )
    partitions.read_site.cache_clear()
    checks, devices = [one for one in found.caveats if "are unknown" in one]
    assert found.status == "PASS"
    wording([checks, devices])


def test_a_metric_without_a_value_has_no_limit_to_speak_of(tmp_path):
    nothing = {
        "perfvalues": {f"{PARTITION}:copy_worst": factories.judged(None, None, None, result=None)}
    }
    found = SessionBuilder(tmp_path).failed("sanity", document=GOOD, **nothing).verdict()
    assert not [one for one in found.caveats if "have a limit" in one or "None of" in one]


def test_names_on_purpose_miss_nothing_and_say_so(tmp_path):
    found = (
        SessionBuilder(tmp_path, command="reframe -r -n stream_local")
        .passed(node=None, document=GOOD)
        .verdict()
    )
    assert (found.status, found.set) == ("PASS", "-n stream_local")
    assert any("missing checks go unnoticed" in one for one in found.caveats)
    factories.recorded_checks(tmp_path / "output", PARTITION, p2p_engine="smoke full")
    assert judge(tmp_path, set_tag="smoke")["node1"].status == "INCOMPLETE"


def test_what_another_node_ran_is_missing(tmp_path):
    cases = [(good_case(name, node), factories.document())
             for name, node in (("a", "node1"), ("b", "node1"), ("a", "node2"))]  # fmt: skip
    found = SessionBuilder(tmp_path).each(cases).verdicts()
    assert found["node1"].status == "PASS"
    assert (found["node2"].status, found["node2"].checks.missing) == ("INCOMPLETE", ["b"])
    assert found["node2"].reasons[0].rule == "missing"


def test_what_another_node_skipped_is_not_missing(tmp_path):
    found = (
        SessionBuilder(tmp_path)
        .passed("a")
        .check("b", document=None, result="skip")
        .passed("a", "node2")
        .verdicts()
    )
    assert (found["node2"].status, found["node2"].checks.missing) == ("PASS", [])


def test_a_check_of_the_network_that_ran_on_one_node_is_missing_on_no_other(tmp_path):
    tags = ["E17", "network"]
    session = SessionBuilder(tmp_path).passed("a").passed("a", "node2")
    found = session.passed("network_bandwidth", tags=tags).verdicts()
    assert (found["node2"].status, found["node2"].checks.missing) == ("PASS", [])


def test_nothing_passed(tmp_path):
    found = SessionBuilder(tmp_path).check(document=None, result="skip").verdict()
    assert rules(found) == {"nothing-passed"}


def test_nodes_that_are_silent_ended_or_filed_wrongly(tmp_path, wording):
    job = tmp_path / "every-node" / "17"
    requested = {
        "node1": RequestedNode(results="node1"),
        "node2": RequestedNode(results="node2", how_ended="node2 was stopped after 600 s."),
        "node3": RequestedNode(state="DOWN", because="no power"),
        "node4": RequestedNode(results="node4"),
    }
    elsewhere = factories.document(host=factories.document()["host"] | {"scheduler_node": "node9"})
    for node, document in (("node1", elsewhere), ("node2", GOOD)):
        SessionBuilder(job / node).passed(node=None, document=document).write()
    factories.write(job / "node4" / "reports" / "run-0.json", {})
    write(job / "nodes.json", RequestedNodes(partition=None, started=now(), nodes=requested))
    found = judge(job)
    assert {name: rules(one) for name, one in found.items()} == {
        "node1": {"no-document"},
        "node2": {"session"},
        "node3": {"silent"},
        "node4": {"silent", "report"},
    }
    wording(found[node].reasons[0].sentence for node in ("node1", "node3"))
    assert all(one.scheduled for one in found.values())


def slow_at_times(tmp_path, document, metric="copy_worst", judged=None, **record):
    """Return the verdict on a metric that missed its reference, and what it is made of."""
    unit = "GB/s" if judged is None else "%"
    case = good_case() | missed(metric, unit=unit)
    if judged is not None:
        case["perfvalues"] = {f"{PARTITION}:{metric}": judged}
    results = SessionBuilder(tmp_path).add(case, document).write()
    folder = factories.case_folder(results, case["unique_name"], "stage")
    metric_records.write(folder, document, {metric: MetricRecord(**record)})
    (found,) = judge(results).values()
    return found


def test_of_what_is_slow_at_times_nothing_is_proven(tmp_path, wording):
    found = slow_at_times(
        tmp_path, factories.document(series=[AT_TIMES]), series=(0,), reduce="worst"
    )
    assert (found.status, rules(found)) == ("UNSTABLE", {"at-times"})
    wording(found.reasons[0].sentence)


def test_the_screen_of_a_session_names_what_is_slow_at_times_once(command, tmp_path):
    slow_at_times(tmp_path, factories.document(series=[AT_TIMES]), series=(0,), reduce="worst")
    ended = command("summary", tmp_path)
    assert ended.stdout.count("copy_worst") == 1, ended.output


def test_what_is_slow_nearly_always_missed_its_reference(tmp_path):
    seldom = factories.series([9.5, *[7.0] * 10])
    found = slow_at_times(
        tmp_path, factories.document(series=[seldom]), series=(0,), reduce="worst"
    )
    assert (found.status, rules(found)) == ("PERF-FAIL", {"reference"})


def test_a_device_that_says_that_it_was_slowed_down_is_not_slow_at_times(tmp_path):
    throttled = factories.state([factories.device_state(throttle=["power"], clock_mhz=1310)])
    document = factories.on_h200(series=[AT_TIMES], state=throttled)
    found = slow_at_times(tmp_path, document, series=(0,), reduce="worst")
    assert (found.status, rules(found)) == ("PERF-FAIL", {"reference"})


def test_samples_of_the_member_that_is_behind_count(tmp_path):
    """As percent of the others: 70 % of them, and at times 95 %."""
    others = factories.series([10.0] * 10)
    judged = factories.judged(70.0, 100, -0.03, unit="%", result="fail")
    for first, status in ((AT_TIMES, "UNSTABLE"), (factories.series([7.0] * 10), "PERF-FAIL")):
        found = slow_at_times(
            tmp_path / status,
            factories.document(series=[first, others]),
            "copy_alike",
            judged,
            series=(0, 1),
            reduce=None,
            decided=(0,),
        )
        assert found.status == status


def test_a_killed_session_is_judged_by_nobody(tmp_path):
    stage = tmp_path / "stage" / "20260102T030400-1" / "cluster" / "gpu" / "cuda"
    factories.write(stage / "stream_local" / "result.json")
    (stage / "p2p_kernel").mkdir()
    found = judge(tmp_path)["node1"]
    assert rules(found) == {"session", "not-judged"} and found.status == "INCOMPLETE"
    assert found.sessions[0].uuid is None


#: Those that need more than a case and its document, each reached by a test of its own here.
OF_A_NODE = {
    "at-times",
    "varies",
    "not-judged",
    "missing",
    "silent",
    "session",
    "report",
    "diagnosis",
}


def test_the_diagnosis_stands_before_the_misses_that_it_explains(tmp_path):
    found = slow_at_times(tmp_path, of_mi250x(slow=3), series=tuple(range(8)), reduce="worst")
    first, second = found.reasons
    assert (first.rule, first.status, second.rule) == ("diagnosis", "PERF-FAIL", "reference")
    assert "HBM of device 3" in first.sentence
    assert found.diagnosis.misses == found.diagnosis.explained == 1


def test_without_a_node_model_the_misses_stand_alone(tmp_path):
    document = factories.document(series=[factories.series([7.0] * 5)])
    found = slow_at_times(tmp_path, document, series=(0,), reduce="worst")
    assert rules(found) == {"reference"} and found.diagnosis.node_model is None


def test_every_rule_is_reached_in_this_file():
    elsewhere = {"isolated", "peers"}  # test_verdict_evidence.py
    elsewhere |= {"nothing-judged"}  # test_grounds.py
    elsewhere |= set(typing.get_args(DeviationName))  # test_deviations.py
    elsewhere |= set(OF_A_SOAK)  # tests/drift
    assert set(RULES) == {*OF_A_CHECK, *OF_A_NODE, "nothing-passed", *elsewhere}


def test_a_failed_metric_whose_limits_are_not_recorded_is_said_without_them(tmp_path):
    unlimited = {f"{PARTITION}:copy_worst": [7.0, None, None, None, "GB/s", "fail"]}
    found = SessionBuilder(tmp_path).missed(document=GOOD, perfvalues=unlimited).verdict()
    said = "stream_local: Metric copy_worst: device 0 of node node1 measured 7 GB/s; its limit is "
    assert found.reasons[0].sentence == f"{said}not recorded."


@pytest.mark.parametrize(("value", "result"), [("nan", "fail"), ("inf", "pass"), ("-inf", "fail")])
def test_a_value_that_is_no_number_makes_its_check_alone_incomplete(
    command, results_folder, tmp_path, value, result
):
    recorded = {f"{PARTITION}:rate": factories.judged(float(value), result=result)}
    cases = [good_case("plain", tags=["node"], perfvalues=recorded), good_case()]
    cases[0] |= failed("performance") if result == "fail" else {}
    found = SessionBuilder(results_folder).add(cases[0], None).add(cases[1], GOOD).verdict()
    assert (found.status, found.checks.passed, found.checks.failed) == ("INCOMPLETE", 1, 1)
    (reason,) = found.reasons
    assert (reason.rule, reason.check, reason.metric) == ("no-value", "plain", "rate")
    assert reason.sentence == f"plain: its value rate = {value} is not a number"
    assert f"rate: {value} GB/s" in command("results", "show").output
    command("report", "--output", tmp_path / "page")


def test_each_rule_has_its_next_step_in_the_one_table():
    assert list(NEXT_STEPS) == list(RULES)


def test_a_reason_has_its_component_and_its_next_step(tmp_path):
    document = factories.on_h200(state=factories.state([factories.device_state()], [BROKEN]))
    verdict = SessionBuilder(tmp_path).check("stream_local", document=document).verdict()
    (reason,) = verdict.reasons
    assert reason.component == "device 0 (0000:41:00.0)"
    assert reason.next_step == NEXT_STEPS["memory-errors"]
