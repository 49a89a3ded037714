"""What `fabricheck drift` makes of rounds: each kind of change, and none of noise."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fabricheck.core.statistics import slope
from fabricheck.judge.drift import judging
from fabricheck.judge.drift.counters import ERROR_LIMITS
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.results import soaks
from fabricheck.results.soaks import DeviceRound, Member, Plan, Round, Soak, Value, WrongData

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
ROUND_H = 0.5
MEMBERS = {
    f"copy {device}": Member(
        phase="load",
        group="copy",
        devices=(device,),
        unit="GB/s",
        better="higher",
        noise="devices",
    )
    for device in range(4)
}


def soak_of(rate=lambda device, at_h: 1000.0, noise=0.003, rounds=20, seed=1, **round_fields):
    """Return a soak of four devices; `rate` is that of a device at an hour."""
    drawn = random.Random(seed)
    made = []
    plan = Plan(hours=rounds * ROUND_H, round_minutes=30, quiet_every=0, quiet_set=None)
    for number in range(rounds):
        at_h = number * ROUND_H
        values = {}
        for device in range(4):
            samples = [rate(device, at_h) * drawn.gauss(1, noise) for _ in range(30)]
            values[f"copy {device}"] = soaks._value(samples)
        given = {name: field(number) for name, field in round_fields.items()}
        made.append(
            Round(
                soak="soak",
                plan=plan,
                phase="load",
                session=f"soak-{number + 1:04}",
                node="node1",
                members=MEMBERS,
                began=BEGAN,
                began_h=at_h,
                took_s=3600 * ROUND_H,
                load_s=3600 * ROUND_H,
                clock="measured",
                values=values,
                **given,
            )
        )
    return Soak("soak", plan, tuple(made))


def changed(soak, **fields):
    """Return a soak with other fields of each of its rounds."""
    rounds = tuple(each.model_copy(update=fields) for each in soak.rounds)
    return replace(soak, rounds=rounds)


def found(soak):
    return [(each.rule, each.member) for each in judging.judge(soak).findings]


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_node_has_no_finding(seed):
    judged = judging.judge(soak_of(seed=seed))
    assert judged.findings == ()
    assert judged.status == "PASS"
    assert {trend.rounds for trend in judged.trends} == {20}
    assert max(abs(trend.change) for trend in judged.trends) < 0.01


def test_a_loss_of_5_percent_in_ten_hours_is_a_drift_with_its_interval():
    judged = judging.judge(
        soak_of(lambda device, at_h: 1000 * (1 - (0.005 * at_h if device == 2 else 0)))
    )
    (finding,) = judged.findings
    assert (finding.rule, finding.member, finding.devices) == ("drift", "copy 2", (2,))
    assert finding.low < finding.change < finding.high < 0
    assert finding.change == pytest.approx(-0.0475, abs=0.003)
    assert (finding.status, finding.live) == ("PERF-FAIL", False)
    assert finding.next_step == NEXT_STEPS["drift"]
    assert judged.worst_change.member == "copy 2"


def test_a_gain_is_no_finding():
    assert found(soak_of(lambda device, at_h: 1000 * (1 + 0.005 * at_h))) == []


def test_a_loss_below_the_floor_of_its_noise_is_none():
    soak = soak_of(lambda device, at_h: 1000 * (1 - (0.005 * at_h if device == 2 else 0)))
    pinned = {
        name: member.model_copy(update={"noise": "pinned at once"})
        for name, member in MEMBERS.items()
    }
    assert found(changed(soak, members=pinned)) == []
    host = {name: member.model_copy(update={"noise": "host"}) for name, member in MEMBERS.items()}
    assert found(changed(soak, members=host)) == []


def test_a_sudden_loss_is_a_step_between_two_rounds():
    soak = soak_of(lambda device, at_h: 1000 * (0.9 if device == 1 and at_h >= 6 else 1))
    (finding,) = judging.judge(soak).findings
    assert (finding.rule, finding.member) == ("step", "copy 1")
    assert finding.from_h < 6.25 <= finding.to_h
    assert finding.change == pytest.approx(-0.1, abs=0.01)


def test_a_device_behind_its_peers_from_the_start_is_a_straggler():
    assert found(soak_of(lambda device, _: 900 if device == 3 else 1000)) == [
        ("straggler", "copy 3")
    ]


def test_what_comes_and_goes_is_told_from_what_is_noisy():
    def halved(number):
        return number in (4, 11, 17)

    soak = soak_of()
    rounds = []
    for number, each in enumerate(soak.rounds):
        value = each.values["copy 0"]
        low = 500.0 if halved(number) else value.low
        values = {**each.values, "copy 0": value.model_copy(update={"low": low})}
        rounds.append(each.model_copy(update={"values": values}))
    (finding,) = judging.judge(replace(soak, rounds=tuple(rounds))).findings
    assert (finding.rule, finding.member, finding.value) == ("comes-and-goes", "copy 0", 3.0)
    assert finding.status == "UNSTABLE"
    assert found(soak_of(noise=0.2)) == []


def replays(per_round):
    def devices(number):
        before, after = per_round * number, per_round * (number + 1)
        return {
            0: DeviceRound(
                pci_address=None,
                unique_id=None,
                before={"PCIe replay": before, "corrected memory error": before},
                after={"PCIe replay": after, "corrected memory error": after},
                moved_tb=100.0,
            )
        }

    return devices


def test_counters_grow_by_hour_and_by_what_was_moved():
    judged = judging.judge(soak_of(devices=replays(300)))
    replay, corrected = judged.counters
    assert (replay.what, replay.grew, replay.per_hour, replay.per_tb) == (
        "PCIe replay", 6000, 600.0, 3.0,
    )  # fmt: skip
    # A source has a limit for replays, and none for corrected errors.
    assert ERROR_LIMITS["PCIe replay"].per_hour == 480
    assert [(each.member, each.status) for each in judged.findings] == [
        ("PCIe replay", "UNSTABLE"),
        ("corrected memory error", None),
    ]
    assert corrected.grew == 6000
    fewer = judging.judge(soak_of(devices=replays(200)))
    assert fewer.status == "PASS"


def test_a_counter_that_began_anew_is_no_negative_growth():
    def devices(number):
        start = 0 if number >= 10 else 1000
        return {
            0: DeviceRound(
                pci_address=None,
                unique_id=None,
                before={"PCIe replay": start},
                after={"PCIe replay": start},
            )
        }

    assert judging.judge(soak_of(devices=devices)).counters == ()


def test_heat_is_a_finding_and_the_power_cap_is_told():
    def devices(kind):
        def of_round(number):
            seconds = {kind: 60.0} if number > 0 else {}
            return {1: DeviceRound(pci_address=None, unique_id=None, throttled_s=seconds)}

        return of_round

    (hot,) = judging.judge(soak_of(devices=devices("thermal"))).findings
    assert (hot.rule, hot.member, hot.devices, hot.status) == (
        "throttled", "thermal", (1,), "UNSTABLE",
    )  # fmt: skip
    assert hot.value == 19 * 60
    (capped,) = judging.judge(soak_of(devices=devices("power"))).findings
    assert (capped.status, capped.next_step) == (None, "")


def test_wrong_data_has_device_address_bits_and_hour():
    def wrong(number):
        if number != 7:
            return []
        return [
            WrongData(
                at_h=3.6, work="copy 2", device=2, offset_bytes=4096, bits=[7], errors=1,
                at_rest=True,
            )
        ]  # fmt: skip

    judged = judging.judge(soak_of(wrong=wrong))
    (finding,) = judged.findings
    assert (finding.rule, finding.status, finding.devices) == ("wrong-data", "DATA-FAIL", (2,))
    assert finding.from_h == 3.6
    assert (finding.offset_bytes, finding.bits) == (4096, (7,))
    assert not judged.live


def test_a_pair_that_is_gone_and_missing_hours_are_told():
    soak = soak_of()
    rounds = [
        each
        if number < 15
        else each.model_copy(
            update={"values": {k: v for k, v in each.values.items() if k != "copy 3"}}
        )
        for number, each in enumerate(soak.rounds)
    ]
    assert found(replace(soak, rounds=tuple(rounds))) == [("lost", "copy 3")]
    short = replace(soak, rounds=soak.rounds[:10], ended="the disk is full")
    judged = judging.judge(short)
    assert judged.status == "INCOMPLETE"
    assert [(each.rule, each.note) for each in judged.findings] == [
        ("unfinished", "the disk is full")
    ]


def test_a_node_behind_others_is_named_among_nodes():
    nodes = [changed(soak_of(seed=seed), node=f"node{seed}") for seed in range(4)]
    slow = changed(soak_of(lambda device, at_h: 900.0, seed=9), node="node9")
    result = judging.judge_all([*nodes, slow])
    assert [(each.node, each.member, each.nodes) for each in result.behind] == [
        ("node9", "copy", 5)
    ]
    assert result.exit_code == 13
    assert judging.judge_all(nodes).exit_code == 0


def test_a_slope_is_robust_and_needs_six_points():
    xs = [float(x) for x in range(20)]
    ys = [10 - 0.5 * x for x in xs]
    ys[3] = ys[11] = 1000.0
    line = slope(xs, ys)
    assert line.value == pytest.approx(-0.5)
    assert line.low <= -0.5 <= line.high
    assert line.start == pytest.approx(10)
    assert slope(xs[:5], ys[:5]) is None
    many = [float(x) for x in range(1000)]
    assert slope(many, [3 * x for x in many]).value == pytest.approx(3)


def test_a_value_has_its_deciles():
    value = soaks._value([1.0, 2.0, 3.0, 4.0, 5.0])
    assert value == Value(middle=3.0, low=1.4, high=4.6, n=5)
