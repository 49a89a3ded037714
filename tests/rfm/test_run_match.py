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
    "wrong",
    [
        {"complete": False},
        {"outcome": {"status": "too-noisy", "message": "half width 40 %"}},
        {"outcome": {"status": "running", "message": None}},
        {"program": {"name": "memcpy", "runtime": "rocm"}},
        {"program": {"name": "stream", "runtime": "cuda"}},
        {"clock": "simulated"},
        {"faults_injected": ["flip-bit:0:3"]},
        {"series": [mismatched()]},
        {"series": [mismatched(first_mismatch=IN_HOST_MEMORY)]},
        {"series": [mismatched(first_mismatch=None)]},
    ],
)
def test_reasons_not_to_believe_a_document(wrong, wording):
    (fault,) = acceptance.faults(document() | wrong, REQUESTED)
    wording(fault)


@pytest.mark.parametrize(
    "changes",
    [
        {"started": "2026-05-04T03:01:50Z"},
        {"arguments": ["stream", "--noise-limit", "0.1", "--devices", "0"]},
        {"devices": [factories.device(0, arch="gfx90a")]},
        {"devices": []},
        {"devices": [factories.device(0, arch="gfx90a"), factories.device(1, arch="gfx942")]},
    ],
)
def test_a_document_of_another_run(changes, wording):
    (fault,) = said(**changes)
    wording(fault)


@pytest.mark.parametrize(
    "changes",
    [
        checked(SIZE - 8),
        {"samples": [100.0] * 6},
        {"noisy": True},
        clock(0.9),
        clock(1.11),
        clock(0.0),
    ],
)  # fmt: skip
def test_a_series_that_was_made_with_less_care(changes, wording):
    (fault,) = said(good(**changes))
    wording(fault)


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


def test_host_that_is_late_because_others_keep_it_busy_is_no_fault(wording):
    for late in (good(**clock(0.5)), good(**clock(1.8), unit="us")):
        assert said(late, state=BUSY, duration_s=10.0) == []
        wording(acceptance.clock_remarks(document(late, state=BUSY, duration_s=10.0)))


def test_host_that_is_early_is_a_fault_however_busy_it_is():
    early = good(**clock(1.5))
    assert len(said(early, state=BUSY, duration_s=10.0)) == 1
    assert not list(acceptance.clock_remarks(document(early, state=BUSY, duration_s=10.0)))


def test_host_that_is_late_without_any_cause_is_a_fault():
    quiet = factories.state()
    assert len(said(good(**clock(0.5)), state=quiet, duration_s=10.0)) == 1
    assert not list(acceptance.clock_remarks(document(good(**clock(0.5)), state=quiet,
                                                     duration_s=10.0)))  # fmt: skip


def test_a_sum_verified_all_its_shares(wording):
    shares = [good(role="share", device=index, device_set=[0, 1]) for index in (0, 1)]
    total = good(role="sum", device=None, device_set=[0, 1])
    assert said(*shares, total | checked(2 * SIZE)) == []
    wording(said(*shares, total | checked(SIZE)))


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
    ("found", "wanted"),
    [
        (NODE, HALVED),
        (NODE | {"digest": "f" * 64}, NODE),
        (NODE, None),
    ],
)  # fmt: skip
def test_a_document_of_another_simulated_node(found, wanted, wording):
    for_node = dataclasses.replace(REQUESTED, node=wanted)
    (fault,) = acceptance.faults(document(node=found), for_node)
    wording(fault)
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


def test_a_sum_of_both_directions_verified_both(wording):
    shares, total = factories.both_ways()[:2], factories.both_ways()[2]
    pageable = [one | {"source": factories.place("host-pageable", None, 0)} for one in shares]
    content = [*shares, *pageable, total]
    assert of("memcpy", series=content) == []
    wording(of("memcpy", series=[*shares, total | checked(1 << 20)]))
