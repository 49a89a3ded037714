"""What a check says of a node that others use, or whose devices are throttled."""

from __future__ import annotations

import json
import platform
import re

import pytest

import factories
from fabricheck.judge.verdict import judging
from fabricheck.results import reading
from fabricheck.rfm import host
from reframe_suite import rules_of

pytestmark = pytest.mark.slow

NODE = platform.node()
QUIET = factories.state()
BUSY = factories.state(others=factories.host_use(15.8, loops=5))
WHO = "thers kept 15.8 of 16 cores busy meanwhile, 5.0 of them bash of user root (5 processes)."
HOT = factories.state(
    [factories.device_state(1)],
    [
        factories.device_state(
            1, throttle=["power"], throttled_s={"power": 4.0}, clock_mhz=1310, processes=[]
        )
    ],
)


def session(suite, state, fault):
    """Run one check on a node of that state; returns its outcome and the verdict on the node."""
    suite.variables["FAKE_STATE"] = json.dumps(state)
    outcome = suite("-r", "-n", "stream_local", fault=fault)
    (found,) = judging.judge(reading.read([str(suite.results)]))
    return outcome, found


def test_check_passes_where_a_busy_host_was_late(suite):
    outcome, found = session(suite, BUSY, "clocks-differ")
    assert outcome.status == 0
    assert f"In stream_local, o{WHO}" in found.caveats
    said = "".join(path.read_text() for path in suite.folder.glob("**/*.log"))
    assert re.search(
        f"device 1 .*: the host's clock gives 0.4 of the device's .*: the host was late, as o{WHO}"
        .replace("(", r"\(").replace(")", r"\)"), said
    )  # fmt: skip


def test_check_fails_where_a_quiet_host_was_late(suite, wording):
    outcome, found = session(suite, QUIET, "clocks-differ")
    assert outcome.status == 1
    (reason,) = outcome.reasons
    # Arrays are sized by the caches of the machine.
    steady = reason.replace(f"{host.array_bytes()} bytes", "SIZE bytes")
    wording(steady.replace(f"node {NODE}", "node NODE"))
    assert rules_of(found) == ["not-believed"]


def test_value_that_cannot_be_true_on_a_busy_host_is_to_be_measured_again(suite):
    outcome, found = session(suite, BUSY, "above-physics")
    assert outcome.status == 1
    assert f"O{WHO}" in outcome
    assert rules_of(found) == ["host-busy"]
    assert found.reasons[0].sentence.count(WHO) == 1


def test_result_of_another_run_is_not_excused(suite):
    outcome, found = session(suite, BUSY, "other-command")
    assert outcome.status == 1
    assert rules_of(found) == ["not-believed"]


def test_missed_reference_is_told_with_what_slowed_its_device(suite, wording):
    file = suite.own_references()
    text = file.read_text()
    old = "    triad_worst: [0, null, null, GB/s]"
    assert old in text
    file.write_text(text.replace(old, "    triad_worst: [100, -0.05, null, GB/s]", 1))
    outcome, found = session(suite, HOT, "")
    (reason,) = [one for one in found.reasons if one.rule == "reference"]
    assert reason.sentence.removeprefix("stream_local: ") in outcome
    wording(reason.sentence.replace(f"node {NODE}", "node NODE"))
