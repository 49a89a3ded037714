"""Energy of series that two H200 were held for, cold and warm."""

from pathlib import Path

import pytest

from fabricheck.core.statistics import median
from fabricheck.results import energy
from fabricheck.results.document import load

RECORDED = Path(__file__).parents[1] / "outputs/h200-energy"


def held(name):
    document = load(RECORDED / f"{name}.json")
    return [(series, energy.of_series(series)) for series in document["series"]]


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
