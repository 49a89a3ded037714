"""Host to device and back: the best of each interface, its curve (the paper's figures 2 and 3), and
several devices at once (4 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core.amounts import about
from fabricheck.core.show import enumerated
from fabricheck.node import NodeModel
from fabricheck.report.figure import Figure
from fabricheck.report.figures.bars import bars
from fabricheck.report.figures.curves import curve_figure
from fabricheck.report.figures.rows import (
    Row,
    amount,
    beside,
    derived,
    of_noise,
    of_point,
    of_value,
    scan,
    session_rows,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series, largest

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
    common = {"experiment": "E3", "movement": movement}
    return {"h2d": {**common, "operation": to_device}, "d2h": {**common, "operation": to_host}}


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

#: The sets of E5 by their name in a node model: the name of the bar, and the published ratio.
#: Ratios are relative to the bandwidth of one device; that of all devices is relative to four.
_SETS: Mapping[str, tuple[str, str]] = {
    "one": ("1 device", ""),
    "two_one_package": ("2, one package", "paper-cpugpu-stream-same-2"),
    "two_spread": ("2, spread", "paper-cpugpu-stream-spread-2"),
    "four_spread": ("4, spread", "paper-cpugpu-stream-4"),
    "all": ("all devices", "paper-cpugpu-stream-8v4"),
}

#: The two figures: their ids, titles and sets.
_OF_SEVERAL = (
    (
        "host-two-devices",
        "Two devices of one package, and spread",
        ("one", "two_one_package", "two_spread"),
    ),
    (
        "host-scaling",
        "Host bandwidth of 1 to all devices at once",
        ("one", "two_spread", "four_spread", "all"),
    ),
)


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield bars and curves for both directions, then those of several devices at once."""
    for way, title in WAYS.items():
        by_interface = {
            interface: points
            for interface in INTERFACES
            if (points := _of_first_device(observed, interface, way))
        }
        if by_interface:
            yield _best(observed, way, title, by_interface)
        rows: list[Row] = []
        for interface, points in by_interface.items():
            if line := scan(points):
                rows += [of_point(interface.label, point) for point in line]
                rows += _published(observed, interface, way)
        if rows:
            yield curve_figure(
                f"host-curves-{way}", f"Interfaces over size, {title}", observed.clock, rows,
                known=_LABELS,
            )  # fmt: skip
    yield from _of_several(observed)


def _of_first_device(observed: Observed, interface: Interface, way: str) -> list[Series]:
    points = observed.select(role="single", **interface.select[way])
    devices = [point.device for point in points if point.device is not None]
    return [point for point in points if point.device == min(devices, default=None)]


def _published(observed: Observed, interface: Interface, way: str) -> Iterator[Row]:
    for value in beside(observed.node, interface.published.get(way, "")):
        yield of_value(interface.label, value)


def _best(
    observed: Observed, way: str, title: str, by_interface: Mapping[Interface, list[Series]]
) -> Figure:
    rows: list[Row] = []
    for interface, points in by_interface.items():
        # Data that fits the caches may never cross the link.
        large = [point for point in points if point.regime != "cache"] or points
        best = max(large, key=lambda point: point.value)
        rows.append(of_point(interface.label, best, regime=best.regime))
        rows += [{**row, "regime": None} for row in _published(observed, interface, way)]
    mine = session_rows(rows)
    top = max(mine, key=lambda row: row["value"])
    cached = [row["series"] for row in mine if row["regime"] == "cache"]
    fits = f" Only of sizes that fit the caches: {enumerated(cached)}." if cached else ""
    drawing = [{**row, "text": amount(row["value"], "")} for row in rows]
    return Figure(
        id=f"host-best-{way}",
        title=f"Best of each interface, {title}",
        kind=observed.clock,
        says=(
            f"The best on device {top['devices']} is the {top['series']}, at "
            f"{about(top['bytes'])}.{fits}{of_noise(rows)}"
        ),
        rows=rows,
        drawing=bars(drawing, known=_LABELS),
    )


def _of_several(observed: Observed) -> Iterator[Figure]:
    """Yield the figure of two devices, where packages have two, and that of 1 to all devices."""
    copies = observed.select(experiment="E5", operation="copy", role={"single", "sum"})
    sums = largest(copies, lambda point: point.devices)
    names = _sets_of(observed.node, sums)
    for name, title, sets in _OF_SEVERAL:
        here = {members: sums[names[members]] for members in sets if names.get(members) in sums}
        if len(here) > 1 and (name == "host-scaling" or "two_one_package" in here):
            yield _at_once(observed, name, title, here)


def _sets_of(
    node: NodeModel | None, sums: Iterable[tuple[int, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """Return the device sets by name; without a node model, one device and the largest set."""
    if node is not None:
        return node.device_sets()
    known = sorted(sums, key=len)
    return {"one": known[0], "all": known[-1]} if known else {}


def _at_once(observed: Observed, name: str, title: str, sums: Mapping[str, Series]) -> Figure:
    rows: list[Row] = []
    for members, point in sums.items():
        label, record = _SETS[members]
        peak = _peak_of(observed.node, point.devices)
        percent = None if peak is None else 100 * point.value / peak
        text = amount(point.value, "") + ("" if percent is None else f", {percent:.0f} %")
        rows.append(of_point(label, point, peak=peak, percent_of_peak=percent, text=text))
        rows += _published_ratio(observed, label, record, sums)
    mine = session_rows(rows)
    first, *others = mine
    parts = [
        f"{row['series']} {row['value'] / first['value']:.2f} times {first['series']}"
        for row in others
    ]
    says = (
        "Sum of what the devices copy within memory of the host by kernel, read and written bytes "
        "counted; percentages are of the theoretical peak of all their links. "
        f"{'; '.join(parts)}."
    )
    if len(rows) > len(mine):
        says += (
            " Derived are the published ratios times what this session has for one device, for all "
            "devices times what it has for four."
        )
    return Figure(
        id=name,
        title=title,
        kind=observed.clock,
        says=f"{says}{of_noise(rows)}",
        rows=[{key: row[key] for key in row if key != "text"} for row in rows],
        drawing=bars([{**row, "peak": None} for row in rows], unit="GB/s, read + written"),
    )


def _peak_of(node: NodeModel | None, devices: tuple[int, ...]) -> float | None:
    """Return the peak of their links to the host, both directions, in GB/s."""
    peak = (
        math.inf
        if node is None
        else sum(2 * node.device(device).host_link_gbs for device in devices)
    )
    return None if math.isinf(peak) else peak


def _published_ratio(
    observed: Observed, label: str, record: str, sums: Mapping[str, Series]
) -> Iterator[Row]:
    """Yield the published ratio times what this session has for its base."""
    base = sums.get("four_spread" if record == "paper-cpugpu-stream-8v4" else "one")
    if base is None:
        return
    for value in beside(observed.node, record):
        row = of_value(label, value, peak=None, percent_of_peak=None, text="")
        yield derived(row, value.value * base.value)
