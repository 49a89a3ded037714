"""Figures of a device's own memory."""

from __future__ import annotations

from typing import Any

import factories
from fabricheck.report.figures import stream
from figure_runs import GIB, MIB, drawn, partition, values
from wording import Wording


def kernel(value: float, **changes: Any) -> dict[str, Any]:
    device = changes.get("device", 0)
    fields = {"bytes": GIB, "device_set": [device], "host_clock": None}
    return factories.series([value], **fields | changes)


def test_curves_are_of_one_block_size_and_the_heat_map_of_all(wording: Wording) -> None:
    scan = [
        kernel(size / MIB + block, bytes=size, block_size=block)
        for size in (MIB, GIB)
        for block in (64, 256, 1024)
    ]
    found = drawn(stream.figures, partition({"stream_scan": scan}))
    assert list(found) == ["stream-curves", "stream-blocks-copy"]
    assert values(found["stream-curves"]) == {"copy": [1 + 256, 1024 + 256]}
    assert values(found["stream-curves"], "published") == {"copy": [1400]}
    figure = found["stream-blocks-copy"]
    assert values(figure)["copy"] == [row["median"] for row in scan]
    wording(figure.says)
    assert [row["percent_of_best"] for row in figure.rows][-1] == 100


def test_the_odd_device_is_named(wording: Wording) -> None:
    runs = [kernel(1200.0 if device == 5 else 1398.0, device=device) for device in range(8)]
    found = drawn(stream.figures, partition({"stream_local": runs}))
    assert list(found) == ["stream-devices"]
    wording(found["stream-devices"].says)
    assert found["stream-devices"].svg.count(">odd<") == 1


def test_devices_are_compared_within_one_run() -> None:
    local = [kernel(1398.0, device=device) for device in range(3)]
    scan = [kernel(value, bytes=size) for size, value in ((MIB, 300.0), (8 * GIB, 900.0))]
    found = drawn(stream.figures, partition({"stream_local": local, "stream_scan": scan}))
    assert values(found["stream-devices"]) == {"copy": [1398.0] * 3}
    assert "odd" not in found["stream-devices"].says
    assert values(found["stream-curves"]) == {"copy": [300.0, 900.0]}
