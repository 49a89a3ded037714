"""Energy of series that two H200 were held for, cold and warm."""

from pathlib import Path

import pytest

from fabricheck.core.statistics import median
from fabricheck.results import energy
from fabricheck.results.document import load

RECORDED = Path(__file__).parents[1] / "outputs/h200-energy"


def held(name):
    document = load(RECORDED / f"{name}.json")
    return [(one, energy.of_series(one)) for one in document["series"] if "energy" in one]


@pytest.mark.parametrize("name", ["x1-{}-stream", "x1-{}-stream-small", "x2-{}-p2p"])
def test_cold_and_warm_differ_by_less_than_a_hundredth(name):
    for (_, cold), (_, warm) in zip(
        held(name.format("cold")), held(name.format("warm")), strict=True
    ):
        assert warm.gross.value == pytest.approx(cold.gross.value, rel=0.01)
        assert cold.same_clock
        assert warm.same_clock
        assert cold.gross.low <= warm.gross.high
        assert warm.gross.low <= cold.gross.high
        assert cold.net.low <= warm.net.high
        assert warm.net.low <= cold.net.high


def test_watts_are_those_that_nvidia_smi_integrates():
    # power.draw.instant every 20 ms, integrated over the load, of the same machine at the time.
    ((copy, _), (read, _)) = held("x1-cold-stream")
    for series, watts in ((copy, 551.3), (read, 585.2)):
        counter = next(one for one in series["energy"]["counters"] if one["works"])
        assert median(counter["watts"]) == pytest.approx(watts, rel=0.002)
        assert counter["step_s"] == pytest.approx(0.1, rel=0.01)


def test_both_devices_of_a_link_are_at_work_and_an_idle_one_is_not():
    ((link, per_bit),) = held("x2-cold-p2p")
    assert [one["works"] for one in link["energy"]["counters"]] == [True, True]
    assert per_bit.gross.value == pytest.approx(128.8, rel=0.001)
    ((memory, _),) = held("x2-warm-stream1")
    assert [one["works"] for one in memory["energy"]["counters"]] == [False, True]


@pytest.mark.parametrize(
    ("name", "size", "watts", "within"),
    [
        ("peers", 256 << 10, (154.0, 152.4), 0.002),
        ("peers", 1 << 30, (207.9, 193.7), 0.002),
        ("collectives", 256 << 10, (149.8, 149.7), 0.004),
        # Its power varies within a second; the watts are a median, and nvidia-smi's are a mean.
        ("collectives", 64 << 20, (169.5, 172.6), 0.02),
    ],
)
def test_the_checks_of_links_and_collectives_agree_with_nvidia_smi(name, size, watts, within):
    (series,) = [one for one, _ in held(f"x2-check-{name}") if one["bytes"] == size]
    counted = [median(one["watts"]) for one in series["energy"]["counters"]]
    assert counted == [pytest.approx(beside, rel=within) for beside in watts]
    assert all(one["works"] for one in series["energy"]["counters"])


def test_a_link_takes_the_same_by_the_check_hours_later_within_two_hundredths():
    ((_, before),) = held("x2-warm-p2p")
    for name in ("x2-check-peers", "x2-third-peers"):
        (checked,) = [per_bit for one, per_bit in held(name) if one["bytes"] == 1 << 30]
        assert checked.gross.value == pytest.approx(before.gross.value, rel=0.02)
        assert checked.net.low <= before.net.high and before.net.low <= checked.net.high


def test_memory_of_two_more_devices_takes_the_same_within_a_hundredth():
    before = {one["operation"]: per_bit for one, per_bit in held("x1-warm-stream")}
    checked = [it for it in held("x2-third-memory") if it[0]["bytes"] == 1 << 30]
    assert [one["device"] for one, _ in checked] == [0, 0, 1, 1]
    for series, per_bit in checked:
        assert per_bit.gross.value == pytest.approx(
            before[series["operation"]].gross.value, rel=0.01
        )
        assert per_bit.net.value == pytest.approx(before[series["operation"]].net.value, rel=0.02)
        # The device beside it rests: without a context at first, with one later.
        rests = per_bit.idle_joules / series["energy"]["seconds"]
        assert rests == pytest.approx(79 if series["device"] == 0 else 121, rel=0.02)
