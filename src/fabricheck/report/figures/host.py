"""Host to device and back: the best of each interface, and its curve (the paper's figures 2, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core.amounts import about
from fabricheck.report.figure import Figure
from fabricheck.report.figures import words
from fabricheck.report.figures.charts import bars
from fabricheck.report.figures.curves import curve_figure
from fabricheck.report.figures.rows import Row, beside, of_point, of_value, own, scan
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The directions, and their names.
WAYS = {"h2d": "from host to device", "d2h": "from device to host"}


@dataclass(frozen=True, eq=False)
class Interface:
    """One interface for transfers between host and device.

    select: the properties of its series, by direction. published: its records, by direction; each
    is of one direction and counts bytes once, as the series do.
    """

    label: str
    select: Mapping[str, Mapping[str, str]]
    published: Mapping[str, str]


def _copy(memory: str) -> Mapping[str, Mapping[str, str]]:
    return {way: {"experiment": "E2", "operation": way, "host_memory": memory} for way in WAYS}


def _managed(to_device: str, to_host: str, movement: str) -> Mapping[str, Mapping[str, str]]:
    one = {"experiment": "E3", "movement": movement}
    return {"h2d": {**one, "operation": to_device}, "d2h": {**one, "operation": to_host}}


#: Pages migrate to the host when it reads them; a kernel that writes moves them to the device.
INTERFACES = (
    Interface("pinned copy", _copy("host-pinned"), {"h2d": "paper-h2d-pinned"}),
    Interface(
        "pageable copy",
        _copy("host-pageable"),
        {"h2d": "epicure-lumi-single-h2d", "d2h": "epicure-lumi-single-d2h"},
    ),
    Interface(
        "zero-copy",
        _managed("read", "write", "zero-copy"),
        {"h2d": "paper-h2d-managed-zerocopy"},
    ),
    Interface(
        "page migration",
        _managed("read", "host-read", "page-migration"),
        {"h2d": "paper-h2d-managed-migration"},
    ),
    Interface("prefetch", _managed("prefetch-h2d", "prefetch-d2h", "prefetch"), {}),
)

_LABELS = tuple(interface.label for interface in INTERFACES)


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield bars and curves for both directions."""
    for way, title in WAYS.items():
        found = {
            interface: points
            for interface in INTERFACES
            if (points := _of_first_device(observed, interface, way))
        }
        if found:
            yield _best(observed, way, title, found)
        rows: list[Row] = []
        for interface, points in found.items():
            if line := scan(points):
                rows += [of_point(interface.label, point) for point in line]
                rows += _published(observed, interface, way)
        if rows:
            name = f"host-curves-{way}"
            title = f"Interfaces over size, {title}"
            yield curve_figure(name, title, observed.kind, rows, known=_LABELS)


def _of_first_device(observed: Observed, interface: Interface, way: str) -> list[Series]:
    found = observed.select(role="single", **interface.select[way])
    devices = [point.device for point in found if point.device is not None]
    return [point for point in found if point.device == min(devices, default=None)]


def _published(observed: Observed, interface: Interface, way: str) -> Iterator[Row]:
    for value in beside(observed.node, interface.published.get(way, "")):
        yield of_value(interface.label, value)


def _best(
    observed: Observed, way: str, title: str, found: Mapping[Interface, list[Series]]
) -> Figure:
    rows: list[Row] = []
    for interface, points in found.items():
        # Data that fits the caches may never cross the link.
        large = [point for point in points if point.regime != "cache"] or points
        best = max(large, key=lambda point: point.value)
        rows.append(of_point(interface.label, best, regime=best.regime))
        rows += [{**row, "regime": None} for row in _published(observed, interface, way)]
    mine = own(rows)
    top = max(mine, key=lambda row: row["value"])
    parts = [
        f"{row['series']} {words.amount(row['value'])} at {about(row['bytes'])}"
        + (", which fits the caches" if row["regime"] == "cache" else "")
        + ("" if row is top else f" ({100 * row['value'] / top['value']:.0f} % of the best)")
        for row in mine
    ]
    drawing = [{**row, "text": words.amount(row["value"], "")} for row in rows]
    return Figure(
        id=f"host-best-{way}",
        title=f"Best of each interface, {title}",
        kind=observed.kind,
        says=(
            f"The best of each interface past the caches, {title}, on device {mine[0]['devices']}: "
            f"{words.listed(parts)}.{words.of_published(rows)}{words.of_noise(rows)}"
        ),
        rows=rows,
        drawing=bars(drawing, known=_LABELS),
    )
