"""The rule of docs/limits.md, by examples that were computed by hand."""

import pytest

from fabricheck.judge.calibration import rule
from fabricheck.references import entries

TWO = (1, 1, 1, 2, 2, 2)


def judge(values, unit="GB/s", campaigns=TWO):
    return rule.judge(values, [*campaigns, *[2] * len(values)][: len(values)], unit)


@pytest.mark.parametrize(
    ("values", "unit", "entry"),
    [
        # PeerRatio: the floor.
        ((100, 100, 100, 100.2, 99.9), "GB/s", (100.0, -0.02, None, "GB/s")),
        ((10, 10, 10, 10, 10), "us", (10.0, None, 0.1, "us")),
        ((99.5, 99.5, 99.6, 99.4, 99.5), "%", (99.5, -0.02, None, "%")),
        # MAD 1, 5 * 1.4826 * 1 / 100 = 7.413 %, up to 7.5 %; the worst is 1.5 * 2 % = 3 %.
        ((98, 100, 100, 101, 102), "GB/s", (100.0, -0.075, None, "GB/s")),
        # MAD 0; the worst is 1.5 * 4 % = 6 %, which is a multiple already.
        ((100, 100, 100, 100, 96), "GB/s", (100.0, -0.06, None, "GB/s")),
        # 1.5 * 2.01 % = 3.015 %, up to 3.5 %.
        ((100, 100, 100, 100, 97.99), "GB/s", (100.0, -0.035, None, "GB/s")),
        # A session on the better side widens nothing, in either unit.
        ((100, 100, 100, 100, 130), "GB/s", (100.0, -0.02, None, "GB/s")),
        ((10, 10, 10, 10, 8), "us", (10.0, None, 0.1, "us")),
        # 1.5 * 20 % = 30 % of a latency.
        ((10, 10, 10, 10, 12), "us", (10.0, None, 0.3, "us")),
        # Five significant digits; the median of six is between two.
        ((123.4567, 123.4569, 123.4567, 123.4569, 123.4567, 123.4569), "GB/s",
         (123.46, -0.02, None, "GB/s")),
    ],
)  # fmt: skip
def test_entries(values, unit, entry):
    found = judge(values, unit)
    assert (found.entry, found.reason) == (entry, "rule")
    assert list(entries.faults("m", unit, found.entry)) == []


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        ((100, 100, 100, 100), "GB/s", "4 of at least 5 sessions"),
        # 1.5 * 10.01 % = 15.015 %, up to 15.5 %.
        ((100, 100, 100, 100, 89.99), "GB/s", "noisy: 89.99 to 100 GB/s"),
        ((10, 10, 10, 10, 13.4), "us", "noisy: 10 to 13.4 us"),
        ((100, 100, 101, 90, 90, 90.5), "GB/s",
         "two modes: 3 sessions about 90 and 3 sessions about 100 GB/s"),
    ],
)  # fmt: skip
def test_what_requires_nothing(values, unit, said):
    found = judge(values, unit)
    assert found.reason.startswith(said)
    assert found.entry == (0, None, None, unit)
    assert list(entries.faults("m", unit, found.entry)) == []


def test_the_ceilings_themselves_are_allowed():
    assert judge((100, 100, 100, 100, 90)).entry == (100.0, -0.15, None, "GB/s")
    assert rule.judge((12, 12, 12, 12, 16), (1, 1, 1, 2, 2), "us").entry == (12.0, None, 0.5, "us")


def test_one_campaign():
    assert judge((100,) * 6, campaigns=(1,) * 6).reason == "1 of at least 2 campaigns"


def test_a_count_requires_what_it_always_does():
    assert judge((0, 0), "count", (1, 1)).entry == (0, 0, 0, "count")
    assert judge((3, 3), "count", (1, 1)).entry == (0, 0, 0, "count")


@pytest.mark.parametrize(
    ("values", "floor", "part"),
    [([100] * 5, 0.12, 0.12), ([100, 100, 100, 100, 91], 0.12, 0.135), ([100] * 5, 0.01, 0.02)],
)
def test_a_metric_may_have_a_higher_floor(values, floor, part):
    found = rule.judge(values, TWO[: len(values)], "GB/s", floor=floor)
    assert found.entry == (100.0, -part, None, "GB/s")
