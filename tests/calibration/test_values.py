"""What a session says of a metric, for its calibration."""

import math

import pytest

import factories
from fabricheck.judge.calibration.gathering import Value, value_of
from fabricheck.results.rows import Metric


@pytest.mark.parametrize(
    ("devices", "memory", "floor"),
    [([0, 1], "host-pinned", 0.12), ([0], "host-pinned", 0), ([0, 1], "peer", 0)],
)
def test_several_devices_at_once_on_host_memory_have_a_higher_floor(devices, memory, floor):
    source = factories.place(memory=memory)
    one = factories.series(device_set=devices, role="share", source=source)
    metric = Metric(
        check_row=None, recorded=None, metric="share_worst", value=100.0, unit="GB/s", series=(0,)
    )
    document = factories.document(series=[one])
    assert value_of(metric, 100.0, document, None).floor == floor


@pytest.mark.parametrize(
    ("value", "unit", "is_measured"),
    [
        (0.1, "GB/s", True),
        (0.0, "GB/s", False),
        (-0.1, "GB/s", False),
        (-0.1, "us", False),
        (math.nan, "GB/s", False),
        (math.inf, "GB/s", False),
        (0.0, "count", True),
    ],
)
def test_only_a_count_may_be_no_more_than_zero(value, unit, is_measured):
    assert (Value(value, unit).impossible is None) == is_measured
