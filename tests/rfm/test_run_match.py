"""A document that is not of the run that a check requested, not whole, or made with less care."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

import factories
from fabricheck.rfm import acceptance

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
REQUESTED = acceptance.Requested(
    "stream", "rocm", ("--noise-limit", "0.1"), ("gfx90a", "gfx90a"), NOW.timestamp()
)
SIZE = 1 << 28
WHERE = "268435456 bytes by device 0 of node nid001"


def good(**changes):
    verification = {"bytes_checked": SIZE, "errors": 0, "first_mismatch": None}
    return factories.series([100.0] * 7, bytes=SIZE, verification=verification) | changes


def document(*series, **changes):
    return {
        "complete": True,
        "program": {"name": "stream", "runtime": "rocm"},
        "faults_injected": [],
        "clock": "measured",
        "started": NOW.isoformat(),
        "host": {"hostname": "nid001"},
        "devices": [factories.device(index, arch="gfx90a:sramecc+:xnack-") for index in range(2)],
        "arguments": ["stream", "--noise-limit", "0.1"],
        "options": {"samples": 7, "noise_limit": 0.1},
        "outcome": {"status": "good", "message": None},
        "series": list(series) or [good()],
    } | changes


def said(*series, **changes):
    content = document(*series, **changes)
    runtime = content["program"]["runtime"]
    return list(acceptance.faults(content, dataclasses.replace(REQUESTED, runtime=runtime)))


def clock(ratio):
    return {"host_clock": {"median": ratio * 100, "ratio": ratio, "agrees": False}}


def checked(number):
    return {"verification": {"bytes_checked": number, "errors": 0, "first_mismatch": None}}


def test_a_document_of_the_run_has_no_fault():
    assert said() == []
    # Clocks of two nodes differ by seconds; a sample more is no fault.
    assert said(started="2026-05-04T03:01:52Z") == []
    assert said(good(samples=[100.0] * 9)) == []


IN_HOST_MEMORY = factories.mismatched()["first_mismatch"] | {"device": None}


def mismatched(**changes):
    return good(verification=factories.mismatched() | {"bytes_checked": SIZE} | changes)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"complete": False}, "The result of stream on node nid001 is incomplete"),
        (
            {"outcome": {"status": "too-noisy", "message": "half width 40 %"}},
            "The outcome of stream on node nid001 is too-noisy: half width 40 %",
        ),
        (
            {"outcome": {"status": "running", "message": None}},
            "The outcome of stream on node nid001 is running.",
        ),
        (
            {"program": {"name": "memcpy", "runtime": "rocm"}},
            "The result on node nid001 is from memcpy, but the check ran stream.",
        ),
        (
            {"program": {"name": "stream", "runtime": "cuda"}},
            "stream on node nid001 ran with runtime cuda; the environment requires rocm.",
        ),
        ({"clock": "simulated"}, "The times of stream on node nid001 are simulated, which"),
        (
            {"faults_injected": ["flip-bit:0:3"]},
            "stream on node nid001 ran with injected faults: flip-bit:0:3.",
        ),
        (
            {"series": [mismatched()]},
            "Copy of 268435456 bytes by device 0 of node nid001 left 1 wrong word, "
            "first at offset 4096 of device 0: expected 0x3ff0000000000000, found ",
        ),
        (
            {"series": [mismatched(first_mismatch=IN_HOST_MEMORY)]},
            "Copy of 268435456 bytes by device 0 of node nid001 left 1 wrong word, "
            "first at offset 4096 of host memory: expected 0x3ff0000000000000, found ",
        ),
        (
            {"series": [mismatched(first_mismatch=None)]},
            "Copy of 268435456 bytes by device 0 of node nid001 left 1 wrong word.",
        ),
    ],
)
def test_reasons_not_to_believe_a_document(wrong, sentence):
    (fault,) = acceptance.faults(document() | wrong, REQUESTED)
    assert fault.startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"started": "2026-05-04T03:01:50Z"},
            "The result on node nid001 was started 11 s before stream was submitted: it belongs "
            "to another run, or the node's clock is wrong.",
        ),
        (
            {"arguments": ["stream", "--noise-limit", "0.1", "--devices", "0"]},
            "The result on node nid001 is from '--noise-limit 0.1 --devices 0', but the check "
            "ran stream with '--noise-limit 0.1'.",
        ),
        (
            {"devices": [factories.device(0, arch="gfx90a")]},
            "Node nid001 has 1 device gfx90a; the partition states 2 devices gfx90a.",
        ),
        (
            {"devices": []},
            "Node nid001 has no device; the partition states 2 devices gfx90a.",
        ),
        (
            {"devices": [factories.device(0, arch="gfx90a"), factories.device(1, arch="gfx942")]},
            "Node nid001 has 1 device gfx90a and 1 device gfx942; the partition states 2 "
            "devices gfx90a.",
        ),
    ],
)
def test_a_document_of_another_run(changes, sentence):
    assert said(**changes) == [sentence]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (checked(SIZE - 8), f"Of copy of {WHERE} only 268435448 bytes were verified; "
            "at least 268435456 are required."),
        ({"samples": [100.0] * 6}, f"Copy of {WHERE} has 6 samples; at least 7 are required."),
        ({"noisy": True}, f"Copy of {WHERE} is noisy, but the outcome is good."),
        (clock(0.9), f"Copy of {WHERE}: the host's clock gives 0.9 of the device's 100 GB/s, so "
         "one of them is wrong."),
        (clock(1.11), f"Copy of {WHERE}: the host's clock gives 1.11 of the device's 100 GB/s, so "
         "one of them is wrong."),
        (clock(0.0), f"Copy of {WHERE}: the host's clock gives 0 of the device's 100 GB/s, so "
         "one of them is wrong."),
    ],
)  # fmt: skip
def test_a_series_that_was_made_with_less_care(changes, sentence):
    assert said(good(**changes)) == [sentence]


def test_more_samples_can_be_asked_for_and_fewer_can_not(wording):
    nine = {"samples": 9, "noise_limit": 0.1}
    wording(said(options=nine))
    one = {"samples": 1, "noise_limit": 0.1}
    wording(said(good(samples=[100.0]), options=one))


def test_noise_is_no_fault_in_a_cache_or_where_the_outcome_says_it(wording):
    assert said(good(noisy=True, regime="cache")) == []
    # Of pairs of devices at once the sum is judged.
    share = {"noisy": True, "role": "share"}
    assert said(good(**share, experiment="E7")) == []
    wording(said(good(**share)))
    noisy = {"status": "too-noisy", "message": None}
    assert said(good(noisy=True), outcome=noisy) == said(good(), outcome=noisy)


def test_the_waiting_thread_of_the_host_runtime_may_be_late_and_never_early():
    host = {"program": {"name": "stream", "runtime": "host"}}
    assert said(good(**clock(0.6)), **host) == []
    assert said(good(**clock(1.8), unit="us"), **host) == []
    for late in (clock(0.49), clock(1.11), clock(0.6) | {"unit": "us"}):
        assert len(said(good(**late), **host)) == 1


def test_clocks_that_agree_or_do_not_matter():
    for ratio in (0.92, 1.0, 1.09):
        assert said(good(**clock(ratio))) == []
    assert said(good(**clock(0.5), regime="cache")) == []


def test_clocks_of_a_sum_are_said(wording):
    total = good(role="sum", device=None, device_set=[0, 1], **clock(0.8))
    (remark,) = acceptance.clock_remarks(document(total))
    wording(remark)
    assert list(acceptance.clock_remarks(document(total | clock(0.95), good(**clock(0.5))))) == []


BUSY = factories.state(others=factories.host_use(15.8, loops=5))


def test_host_that_is_late_because_others_keep_it_busy_is_no_fault():
    for late in (good(**clock(0.5)), good(**clock(1.8), unit="us")):
        assert said(late, state=BUSY, duration_s=10.0) == []
        (remark,) = acceptance.clock_remarks(document(late, state=BUSY, duration_s=10.0))
        assert remark.endswith(
            ": the host was late, as others kept 15.8 of 16 cores busy meanwhile, 5.0 of them "
            "bash of user root (5 processes)."
        )


def test_host_that_is_early_is_a_fault_however_busy_it_is():
    early = good(**clock(1.5))
    assert len(said(early, state=BUSY, duration_s=10.0)) == 1
    assert not list(acceptance.clock_remarks(document(early, state=BUSY, duration_s=10.0)))


def test_host_that_is_late_without_any_cause_is_a_fault():
    quiet = factories.state()
    assert len(said(good(**clock(0.5)), state=quiet, duration_s=10.0)) == 1
    assert not list(acceptance.clock_remarks(document(good(**clock(0.5)), state=quiet,
                                                     duration_s=10.0)))  # fmt: skip


def test_a_sum_verified_all_its_shares():
    shares = [good(role="share", device=index, device_set=[0, 1]) for index in (0, 1)]
    total = good(role="sum", device=None, device_set=[0, 1])
    assert said(*shares, total | checked(2 * SIZE)) == []
    (fault,) = said(*shares, total | checked(SIZE))
    assert "only 268435456 bytes were verified; at least 536870912 are required." in fault


def test_a_sum_has_only_the_shares_of_its_own_variant():
    for grid in (None, 1):
        shares = [good(role="share", device=i, device_set=[0, 1], grid=grid) for i in (0, 1)]
        total = good(role="sum", device=None, device_set=[0, 1], grid=grid) | checked(2 * SIZE)
        others = [one | {"grid": 4, "elements": 4} for one in (*shares, total)]
        assert said(*shares, total, *others) == []


def test_a_simulated_transfer_verifies_its_slice_and_has_one_sample():
    simulated = {
        "clock": "simulated",
        "program": {"name": "stream", "runtime": "sim"},
        "options": {"samples": 1, "noise_limit": 0.1},
    }
    assert said(good(samples=[100.0], **checked(1 << 20)), **simulated) == []
    assert len(said(good(samples=[100.0], **checked((1 << 20) - 8)), **simulated)) == 1
    assert said(good(samples=[100.0], bytes=1024, **checked(1024)), **simulated) == []
    assert len(said(good(samples=[], **checked(1 << 20)), **simulated)) == 1


NODE = {"name": "mi250x", "digest": "0123456789abcdef", "overlay": None}
HALVED = NODE | {"overlay": {"name": "half-width", "content": {}}}


@pytest.mark.parametrize(
    ("found", "wanted", "sentence"),
    [
        (NODE, HALVED, "The result is from the simulated node mi250x (digest 0123456789ab), but "
            "the check requested the simulated node mi250x with the overlay half-width (digest "
            "0123456789ab) of stream."),
        (NODE | {"digest": "f" * 64}, NODE, "The result is from the simulated node mi250x "
            "(digest ffffffffffff), but the check requested the simulated "
            "node mi250x (digest 0123456789ab) of stream."),
        (NODE, None, "The result is from the simulated node mi250x "
            "(digest 0123456789ab), but the check requested no simulated node of stream."),
    ],
)  # fmt: skip
def test_a_document_of_another_simulated_node(found, wanted, sentence):
    for_node = dataclasses.replace(REQUESTED, node=wanted)
    assert list(acceptance.faults(document(node=found), for_node)) == [sentence]
    assert list(acceptance.faults(document(node=wanted), for_node)) == []


def test_a_pointer_chase_compares_where_it_arrives():
    assert said(good(operation="chase", **checked(8))) == []
    assert len(said(good(operation="chase", **checked(0)))) == 1


def of(program, *arguments, series):
    wanted = dataclasses.replace(REQUESTED, program=program, runtime="sim", arguments=arguments)
    content = document(*series, arguments=[program, *arguments], clock="simulated",
                       program={"name": program, "runtime": "sim"},
                       options={"samples": 1})  # fmt: skip
    return list(acceptance.faults(content, wanted))


def test_a_sum_of_both_directions_verified_both():
    shares, total = factories.both_ways()[:2], factories.both_ways()[2]
    pageable = [one | {"source": factories.place("host-pageable", None, 0)} for one in shares]
    content = [*shares, *pageable, total]
    assert of("memcpy", series=content) == []
    (fault,) = of("memcpy", series=[*shares, total | checked(1 << 20)])
    assert "only 1048576 bytes were verified; at least 2097152 are required." in fault
