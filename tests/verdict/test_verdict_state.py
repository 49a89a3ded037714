"""What the state of node and devices makes of a verdict: causes, errors, and caveats."""

import copy

import pytest
from reframe.utility import decamelize

import factories
from fabricheck.judge.diagnosis.model import Component, Degraded
from fabricheck.judge.verdict import diagnosing
from fabricheck.results import metric_records
from session_builder import (
    SessionBuilder,
    failed,
    good_case,
    judge,
    kept_on_gpus,
    missed,
    rules,
)

PROCESS = factories.process()
USED = "Process 4711 (copy_loop of user ada) used device {} (0000:4{}:00.0) before the measurement."
BUSY = "Others kept 15.8 of 16 cores busy meanwhile, 5.0 of them bash of user root (5 processes)."
SENTENCE = (
    "Metric copy_worst: device 0 (0000:41:00.0) of node node1 measured 7 GB/s; at least 9 GB/s is "
    "required (reference 10 GB/s)."
)
NOISY = factories.series(
    [9.0, 10.0, 20.0, 5.0, 9.0, 10.0],
    noisy=True,
    host_clock=None,
    device=1,
    device_set=[1],
    source=factories.place(device=1),
    destination=factories.place(device=1),
)


def state(first=(), last=None, others=None):
    """Build the state of two H200 by what differs of the first ones, before and after."""
    before = [factories.device_state(index) | change for index, change in enumerate(filled(first))]
    after = [one | change for one, change in zip(before, filled(last or [{}, {}]), strict=True)]
    return factories.state(before, after, others)


def filled(changes):
    """Return a change for each of two devices."""
    return [*changes, {}, {}][:2]


IN_USE = [state([{"processes": [PROCESS]}], [{"processes": []}]),
          state([{}, {"processes": [PROCESS]}], [{}, {"processes": []}])]  # fmt: skip
BUSY_HOST = state(others=factories.host_use(15.8, loops=5))
HOT = state(
    [{"throttled_s": {"power": 0.0}}],
    [{"throttled_s": {"power": 4.0}, "throttle": ["power"], "clock_mhz": 1310}],
)
SLOW = "device 0 was throttled by power meanwhile (4 of 10 s, 1,310 of 1,980 MHz)"


def document(state, **changes):
    """Build a document of two H200, with a series on each."""
    series = [
        factories.series(
            [value] * 9,
            device=index,
            device_set=[index],
            source=factories.place(device=index),
            destination=factories.place(device=index),
        )
        for index, value in enumerate((7.0, 12.0))
    ]
    return factories.on_h200(state=state, **{"series": series} | changes)


def slow_device():
    """Build what makes a case one of which device 0 missed its reference."""
    reason = f"performance error: failed to meet reference(s): copy_worst=7.0\n{SENTENCE}"
    return missed() | {"fail_reason": reason}


def only(tmp_path, case, document, **changes):
    """Return the verdict on a case whose metric is the worst of two series."""
    case = good_case() | case
    results = SessionBuilder(tmp_path, **changes).add(case, document).write()
    kind = "output" if case["result"] == "pass" else "stage"
    folder = factories.case_folder(results, case["unique_name"], kind)
    metric_records.write(
        folder, document, {"copy_worst": metric_records.MetricRecord(series=(0, 1), reduce="worst")}
    )
    (found,) = judge(results).values()
    return found


def test_miss_on_a_device_in_use_is_not_proven_against_the_node(tmp_path):
    found = only(tmp_path, slow_device(), document(IN_USE[0]))
    assert (found.status, rules(found)) == ("UNSTABLE", {"device-in-use"})
    (reason,) = found.reasons
    assert reason.sentence == f"stream_local: {USED.format(0, 1)} {SENTENCE}"
    assert (reason.check, reason.metric) == ("stream_local", "copy_worst")


def test_miss_of_devices_that_nobody_else_used_stays_one(tmp_path):
    found = only(tmp_path, slow_device(), document(IN_USE[1]))
    assert (found.status, rules(found)) == ("PERF-FAIL", {"reference"})
    assert f"In stream_local, p{USED.format(1, 2)[1:]}" in found.caveats


def test_all_devices_count_where_those_of_the_metric_are_not_known(tmp_path):
    results = SessionBuilder(tmp_path).check(document=document(IN_USE[1]), **slow_device()).write()
    (file,) = results.rglob("metrics.json")
    file.unlink()
    (found,) = judge(results).values()
    assert (found.status, rules(found)) == ("UNSTABLE", {"device-in-use"})


def test_miss_on_a_busy_host_is_not_proven_against_the_node(tmp_path):
    found = only(tmp_path, slow_device(), document(BUSY_HOST))
    assert (found.status, rules(found)) == ("UNSTABLE", {"host-busy"})
    assert found.reasons[0].sentence == f"stream_local: {BUSY} {SENTENCE}"


def test_noise_beside_others_names_them(tmp_path):
    noisy = {"exit_code": 7, "status": "too-noisy", "message": "30 % wide"}
    case = failed("sanity", job_exitcode=7)
    for number, rule in ((1, "device-in-use"), (0, "too-noisy")):
        own = document(IN_USE[number], outcome=noisy, series=[NOISY])
        found = SessionBuilder(tmp_path / str(number)).check(document=own, **case).verdict()
        assert (found.status, rules(found)) == ("UNSTABLE", {rule})
        assert found.reasons[0].sentence.endswith("ended with too-noisy: 30 % wide")


@pytest.mark.parametrize(
    ("error", "status", "rule"),
    [
        ("DoubtedValueError", "UNSTABLE", "host-busy"),
        ("SanityError", "INCOMPLETE", "not-believed"),
        ("OtherDevicesError", "HW-FAIL", "devices"),
        ("SettingError", "INCOMPLETE", "setting"),
    ],
)
def test_only_what_was_measured_is_excused(tmp_path, error, status, rule):
    named = "" if error == "SanityError" else f"{decamelize(error, ' ')}: "
    case = failed("sanity", f"{named}{BUSY}\nit is odd", error)
    found = only(tmp_path, case, document(BUSY_HOST))
    assert (found.status, rules(found)) == (status, {rule})
    assert found.reasons[0].sentence == f"stream_local: {BUSY} it is odd"


def test_doubted_value_on_a_quiet_node_is_not_believed(tmp_path):
    case = failed("sanity", "one of them is wrong", "DoubtedValueError")
    found = only(tmp_path, case, document(state()))
    assert (found.status, rules(found)) == ("INCOMPLETE", {"not-believed"})


@pytest.mark.parametrize("status", ["wrong-data", "device-error"])
def test_wrong_data_and_errors_are_not_excused(tmp_path, status):
    code = {"wrong-data": 5, "device-error": 9}[status]
    series = [factories.series(verification=factories.mismatched())] if code == 5 else []
    outcome = {"exit_code": code, "status": status, "message": "it broke"}
    own = document(IN_USE[0], series=series, complete=code == 5, outcome=outcome)
    found = SessionBuilder(tmp_path).failed("sanity", document=own, job_exitcode=code).verdict()
    assert rules(found) == {status}


def test_pass_beside_others_is_a_pass_with_a_caveat(tmp_path):
    found = only(tmp_path, kept_on_gpus(), document(IN_USE[0]))
    assert (found.status, found.reasons) == ("PASS", [])
    assert f"In stream_local, p{USED.format(0, 1)[1:]}" in found.caveats


def test_pass_after_it_leaves_a_caveat(tmp_path, wording):
    first = (
        SessionBuilder(tmp_path / "a").check(document=document(BUSY_HOST), **slow_device()).write()
    )
    again = (
        SessionBuilder(tmp_path / "b", start=factories.SESSION_START + 3)
        .check(document=document(state()), **kept_on_gpus())
        .write()
    )
    found = judge(first, again)["node1"]
    assert found.status == "PASS"
    wording(one for one in found.caveats if SENTENCE in one)


def test_what_disturbed_the_first_attempt_of_a_retry_is_read_of_its_own_document(tmp_path, wording):
    """ReFrame gives a retry a folder of its own; the document of the failed attempt stays."""
    first = good_case() | slow_device()
    again = good_case(
        stagedir=str(factories.case_folder(tmp_path, "stream_local_retry1", "stage")),
        outputdir=str(factories.case_folder(tmp_path, "stream_local_retry1")),
        **kept_on_gpus(),
    )
    session = SessionBuilder(tmp_path).add(first, document(BUSY_HOST))
    found = session.rerun().add(again, document(state())).verdict()
    assert found.status == "PASS"
    wording(one for one in found.caveats if SENTENCE in one)


def test_a_limit_that_both_attempts_missed_has_one_reason(tmp_path):
    first = good_case() | slow_device()
    again = first | {
        "stagedir": str(factories.case_folder(tmp_path, "stream_local_retry1", "stage"))
    }
    session = SessionBuilder(tmp_path).add(first, document(HOT))
    found = session.rerun().add(again, document(state())).verdict()
    assert [reason.sentence for reason in found.reasons] == [f"stream_local: {SENTENCE}"]


def test_slow_device_is_told_with_what_slowed_it(tmp_path, wording):
    found = only(tmp_path, slow_device(), document(HOT))
    assert (found.status, rules(found)) == ("PERF-FAIL", {"reference"})
    wording(found.reasons[0].sentence)
    assert not any("throttled" in one for one in found.caveats)


def test_device_that_takes_no_part_is_a_caveat(tmp_path, wording):
    turned = document(copy.deepcopy(HOT))
    for one in (turned["state"]["before"], turned["state"]["after"]):
        one["devices"] = [each | {"index": 1 - each["index"]} for each in one["devices"]]
    found = only(tmp_path, slow_device(), turned)
    assert found.reasons[0].sentence == f"stream_local: {SENTENCE}"
    (slow,) = [each for each in found.caveats if "device 1 (0000:42:00.0)" in each]
    wording(slow)


def test_caveat_is_one_sentence_for_all_checks(tmp_path, wording):
    names = ["a", "b", "c", "d", "e"]
    cases = [(good_case(name), document(HOT if name != "e" else state())) for name in names]
    found = SessionBuilder(tmp_path).each(cases).verdict()
    (slow,) = [one for one in found.caveats if "throttled" in one]
    assert "4 of 5 checks" in slow and "16 of 40 s" in slow
    wording(slow)


def test_new_uncorrected_errors_are_of_the_hardware_however_the_check_ended(tmp_path, wording):
    broken = state(last=[{}, {"memory_errors": {"corrected": 0, "uncorrected": 2}}])
    passed = only(tmp_path / "a", {}, document(broken))
    assert (passed.status, rules(passed)) == ("HW-FAIL", {"memory-errors"})
    assert passed.reasons[0].component == "device 1 (0000:42:00.0)"
    wording(passed.reasons[0].sentence)
    slow = only(tmp_path / "b", slow_device(), document(broken))
    assert (slow.status, rules(slow)) == ("HW-FAIL", {"memory-errors", "reference"})
    again = (
        SessionBuilder(tmp_path / "c", start=factories.SESSION_START + 3)
        .passed(document=document(state()))
        .write()
    )
    assert judge(tmp_path / "a", again)["node1"].status == "HW-FAIL"


def linked(before, after, at=0):
    """Build a document of two H200 of which device 1 counts errors of links, from a second on."""
    built = document(state([{}, {"link_errors": before}], [{}, {"link_errors": after}]))
    moments = [f"2026-01-02T03:{minute:02}:05Z" for minute in (at, at + 1)]
    for moment, snapshot in zip(moments, ("before", "after"), strict=True):
        built["state"][snapshot]["at"] = moment
    return built


def replays(number):
    return {"nvlink-replay": {"4": number} if number else {}}


def xgmi(corrected, uncorrected):
    return {
        "xgmi-corrected": {"all": corrected} if corrected else {},
        "xgmi-uncorrected": {"all": uncorrected} if uncorrected else {},
    }


def programs(folder, *documents):
    """Judge a session of good checks."""
    cases = [(good_case(f"check_{n}") | kept_on_gpus(), it) for n, it in enumerate(documents)]
    found = SessionBuilder(folder).each(cases).verdict()
    return found


def test_corrected_errors_of_links_are_a_caveat_and_no_failure(tmp_path, wording):
    found = programs(tmp_path, linked(replays(12), replays(15)))
    assert found.status == "PASS"
    (errors,) = [each for each in found.caveats if "device 1 (0000:42:00.0)" in each]
    wording(errors)


def test_counter_of_a_link_that_stands_is_neither_judged_nor_a_caveat(tmp_path):
    found = programs(
        tmp_path,
        linked(replays(12) | xgmi(3, 2), replays(12) | xgmi(3, 2), at=0),
        linked(replays(12) | xgmi(3, 2), replays(12) | xgmi(3, 2), at=2),
    )
    assert found.status == "PASS"
    assert not [each for each in found.caveats if "42:00.0" in each]


def test_uncorrected_errors_of_links_are_of_the_hardware_and_name_the_link(tmp_path, wording):
    found = programs(tmp_path, linked(xgmi(3, 0), xgmi(4, 2)))
    assert (found.status, rules(found)) == ("HW-FAIL", {"link-errors"})
    assert found.reasons[0].component == "device 1 (0000:42:00.0)"
    (corrected,) = [each for each in found.caveats if "xGMI" in each]
    assert "uncorrected" not in corrected
    wording([found.reasons[0].sentence, corrected])


def test_errors_between_the_programs_of_a_session_count(tmp_path, wording):
    found = programs(
        tmp_path / "corrected",
        linked(replays(0), replays(0), at=0),
        linked(replays(5), replays(5), at=2),
        linked(replays(6), replays(6), at=4),
    )
    assert found.status == "PASS"
    (replayed,) = [each for each in found.caveats if "between programs" in each]
    assert "6 new" in replayed
    wording(replayed)
    broken = programs(
        tmp_path / "uncorrected",
        linked(xgmi(3, 0), xgmi(3, 0), at=0),
        linked(xgmi(3, 1), xgmi(3, 1), at=2),
    )
    assert (broken.status, rules(broken)) == ("HW-FAIL", {"link-errors"})
    assert broken.reasons[0].component == "device 1 (0000:42:00.0)"
    wording(broken.reasons[0].sentence)


def test_errors_of_programs_that_overlap_count_once(tmp_path):
    first, second = linked(replays(0), replays(7), at=0), linked(replays(7), replays(7), at=2)
    first["state"]["after"]["at"] = "2026-01-02T03:09:05Z"
    found = programs(tmp_path, first, second)
    assert not [each for each in found.caveats if "between programs" in each]


def test_errors_between_two_sessions_are_of_neither(tmp_path):
    first = (
        SessionBuilder(tmp_path / "a")
        .check(document=linked(xgmi(3, 0), xgmi(3, 0)), **kept_on_gpus())
        .write()
    )
    later = (
        SessionBuilder(tmp_path / "b", start=factories.SESSION_START + 3)
        .check(document=linked(xgmi(3, 4), xgmi(3, 4), at=30), **kept_on_gpus())
        .write()
    )
    assert judge(first, later)["node1"].status == "PASS"


def test_counters_that_went_back_are_a_caveat(tmp_path, wording):
    found = programs(tmp_path, linked(xgmi(3, 2), xgmi(0, 0)))
    assert found.status == "PASS"
    (said,) = [each for each in found.caveats if "42:00.0" in each]
    wording(said)


@pytest.mark.parametrize(("kind", "first"), [("link", "replay"), ("hbm", "throttled")])
def test_a_component_cites_the_link_errors_of_its_devices_and_a_link_cites_them_first(
    kind, first, wording
):
    slow = document(HOT)
    passed = linked(replays(12), replays(15))
    elsewhere = document(state([{}, {}], [{"link_errors": replays(9)}, {}]))
    degraded = Degraded(
        component=Component(kind=kind, ids=(0, 1) if kind == "link" else (0,)),
        loss_percent=50.0,
        devices=[0, 1] if kind == "link" else [0],
        explains=1,
        odds=9.0,
    )
    causes = diagnosing._causes(degraded, [slow], [passed, elsewhere])
    assert first in causes[0]
    wording(each for each in causes if "replay" in each)
