"""Claims on a device's own memory (E1)."""

from __future__ import annotations

import statistics

from fabricheck.claims import needs
from fabricheck.claims.model import Claim, Finding, Number, number, verdict
from fabricheck.observed import Observed, Point
from fabricheck.observed.point import largest

#: The paper's 87 % is one of 1400 GB/s in 1.6 TB/s; 3 points are what its rounding and another
#: sample of the same GPU differ by (JSC has 87 % too, LUMI's training 1280 GiB/s, 84 %).
LOCAL_STREAM_PERCENT, LOCAL_STREAM_POINTS = 87.0, 3.0


def _stream_part_of_peak(observed: Observed) -> Finding:
    node = needs.packages_of_two(observed)
    found = observed.select(experiment="E1", operation="copy", role="single")
    points: dict[int | None, Point] = dict(
        largest(needs.some(found, "STREAM copy on the memory of a device", "E1"), _device)
    )
    parts = {
        device: 100 * point.median / node.device(device).memory_peak_gbs
        for device, point in points.items()
        if device is not None
    }
    middle = statistics.median(parts.values())
    return verdict(
        abs(middle - LOCAL_STREAM_PERCENT) <= LOCAL_STREAM_POINTS,
        f"STREAM copy reaches {middle:.1f} % of the memory's peak, the median of {len(parts)} "
        f"devices; published are {LOCAL_STREAM_PERCENT:.0f} %.",
        Number("of the memory's peak, median", middle, "percent", points[0].clock, None, True),
        *(number(f"copy on device {device}", point) for device, point in points.items()),
    )


def _device(point: Point) -> int | None:
    return point.device


CLAIMS = (
    Claim(
        id="local-stream-87",
        statement="STREAM copy on a device's own memory reaches 87 % of the peak.",
        document="paper",
        where="V.B",
        rule="the median over the devices is 87 % of the node model's peak, 3 points either way",
        judge=_stream_part_of_peak,
        experiments=("E1",),
        records=("paper-stream-local",),
        rests_on=("simulation.memory_efficiency",),
    ),
)
