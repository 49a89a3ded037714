"""The worst findings of a partition: missed limits, least margins, slow and wrong series."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from fabricheck.core.amounts import number, size
from fabricheck.core.grouping import grouped
from fabricheck.judge.peers import LEAST, away
from fabricheck.results.observed import Observed
from fabricheck.results.series import is_too_noisy, transfer
from fabricheck.results.table import Metric, Series, largest
from fabricheck.rfm.metrics import where_measured

#: The most rows of a table; the sections on references and figures have all rows.
MOST = 10


@dataclass(frozen=True)
class Slow:
    """A pair, device or rank behind the median of its class; percent: the distance."""

    what: str
    operation: str
    value: float
    median: float
    unit: str
    percent: float
    members: int
    among: str

    @property
    def sentence(self) -> str:
        """How far it is behind, as a sentence without its full stop."""
        return (
            f"{self.what}, {self.operation}: {number(self.value)} {self.unit}, "
            f"{self.percent:.1f} % behind the median of {self.members} {self.among}"
        )


@dataclass(frozen=True)
class Worst:
    """The worst findings of a partition, each list the worst first."""

    failed: tuple[Metric, ...]
    within_limits: tuple[Metric, ...]
    slow: tuple[Slow, ...]
    noisy: tuple[str, ...]

    @property
    def failed_by_check(self) -> list[Metric]:
        """The metric of each check that missed its limit by most, the worst first."""
        return _of_each_check(self.failed)

    @property
    def nearest_by_check(self) -> list[Metric]:
        """The metric of each check that is nearest to its limit, of those within limits."""
        return _of_each_check(self.within_limits)


def worst_findings(observed: Observed) -> Worst:
    """Return the worst findings of one partition."""
    limited = sorted((m for m in observed.metrics if m.recorded.nearest_limit), key=_margin)
    failed = [metric for metric in limited if metric.recorded.missed]
    within = (m for m in limited if not m.recorded.missed and m.margin is not None)
    return Worst(
        failed=tuple(failed),
        within_limits=tuple(within),
        slow=tuple(_slow(observed)[:MOST]),
        noisy=tuple(_noisy(observed)),
    )


def _of_each_check(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the first metric of each check; GB/s and us come before comparisons of such values."""
    ordered = sorted(metrics, key=lambda one: one.unit not in ("GB/s", "us"))
    of_checks = grouped((metric.check_row.title, metric) for metric in ordered)
    return sorted((first for first, *_ in of_checks.values()), key=_margin)


def _margin(metric: Metric) -> float:
    return 0.0 if metric.margin is None else metric.margin


def missed_at(metric: Metric) -> str:
    """Return the place at which a metric missed its limit; empty if it did not."""
    document = metric.check_row.document
    if not metric.recorded.missed or document is None or metric.record is None:
        return ""
    return "" if metric.value is None else where_measured(document, metric.decisive_series)


def _slow(observed: Observed) -> list[Slow]:
    points = filter(_is_one, observed.points)
    classes = grouped(
        ((_series_of(point), _class(observed, point)), point)
        for point in largest(points, lambda series: (_series_of(series), series.place)).values()
    )
    found = []
    for (_, among), alike in classes.items():
        members = {point.place: point for point in alike}
        middle = statistics.median(point.value for point in members.values())
        for who, part in away({who: point.value for who, point in members.items()}).items():
            point = members[who]
            percent = 100 * (-part if point.better == "higher" else part)
            if percent >= 100 * LEAST:
                what = f"{point.operation}, {size(point.bytes)}"
                name = f"{point.check}: {what}" if point.check else what
                found.append(
                    Slow(who, name, point.value, middle, point.unit, percent, len(members), among)
                )
    return sorted(found, key=lambda one: -one.percent)


def _is_one(point: Series) -> bool:
    """Whether a series belongs to one pair, device or rank: sets of devices differ by design."""
    if len(point.ranks or ()) == 1:
        return point.device is not None
    return point.role == "single" and len(point.devices) in (1, 2)


def _series_of(point: Series) -> tuple[Hashable, ...]:
    """Return the key of comparable values."""
    return point.check, point.program, point.by_engines, point.block_size, transfer(point.measured)


def _class(observed: Observed, point: Series) -> str:
    """Return the class whose values are compared: paths of the same link class."""
    node = observed.node
    if point.pair is not None:
        a, b = point.pair
        if node is None or a == b or not {a, b} <= {device.index for device in node.devices}:
            return "pairs"
        return f"pairs of the class {node.link_class(a, b).name}"
    if point.host_domain is not None and point.device is not None:
        domain_of = {device["index"]: device["numa_domain"] for device in point.document["devices"]}
        home = domain_of.get(point.device)
        if home is None:
            return f"devices with NUMA domain {point.host_domain}"
        return f"devices with {'their own' if home == point.host_domain else 'another'} NUMA domain"
    return "ranks" if point.ranks else "devices"


def _noisy(observed: Observed) -> Iterator[str]:
    """Yield for each check its noisy series, and the widest interval, as a sentence."""
    noisy = (series for series in observed.series if series.noisy)
    for name, points in grouped((series.check_row.title, series) for series in noisy).items():
        widths = [point.measured["relative_half_width"] for point in points]
        known = [100 * width for width in widths if width is not None]
        harmless = sum(not is_too_noisy(point.measured) for point in points)
        of_them = (
            f", {harmless} of them of sizes that fit the caches or shares whose sum is the result, "
            "where noise fails nothing"
        )
        widest = f"; the widest interval is the median ± {max(known):.1f} %" if known else ""
        yield f"{name}: {len(points)} series{of_them if harmless else ''}{widest}"
