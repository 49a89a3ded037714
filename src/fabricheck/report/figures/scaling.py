"""Host bandwidth of several devices at once (the paper's figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fabricheck.node import NodeModel
from fabricheck.report.figure import Figure
from fabricheck.report.figures import words
from fabricheck.report.figures.charts import bars
from fabricheck.report.figures.rows import Row, beside, derived, of_point, of_value, own
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series, largest

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
_FIGURES = (
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
    """Yield the figure of two devices, where packages have two, and that of 1 to all devices."""
    found = observed.select(experiment="E5", operation="copy", role={"single", "sum"})
    sums = largest(found, lambda point: point.devices)
    names = _names(observed.node, sums)
    for name, title, sets in _FIGURES:
        here = {one: sums[names[one]] for one in sets if names.get(one) in sums}
        if len(here) > 1 and (name == "host-scaling" or "two_one_package" in here):
            yield _figure(observed, name, title, here)


def _names(
    node: NodeModel | None, sums: Iterable[tuple[int, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """Return the device sets by name; without a node model, one device and the largest set."""
    if node is not None:
        return node.device_sets()
    known = sorted(sums, key=len)
    return {"one": known[0], "all": known[-1]} if known else {}


def _figure(observed: Observed, name: str, title: str, found: Mapping[str, Series]) -> Figure:
    rows: list[Row] = []
    for one, point in found.items():
        label, record = _SETS[one]
        peak = _peak(observed.node, point.devices)
        percent = None if peak is None else 100 * point.value / peak
        text = words.amount(point.value, "")
        if percent is not None:
            text += f", {percent:.0f} %"
        rows.append(of_point(label, point, peak=peak, percent_of_peak=percent, text=text))
        rows += _expected(observed, label, record, found)
    mine = own(rows)
    first = mine[0]["value"]
    parts = [
        f"{row['series']} ({row['devices'].replace(' ', ', ')}) {words.amount(row['value'])}"
        + (f", {row['value'] / first:.2f} times the first" if row is not mine[0] else "")
        + (
            ""
            if row["percent_of_peak"] is None
            else f", {row['percent_of_peak']:.0f} % of {words.amount(row['peak'])}"
        )
        for row in mine
    ]
    says = (
        "Sum of what the devices copy within memory of the host by kernel, read and written bytes "
        f"counted; percentages are of the theoretical peak of all their links. {'; '.join(parts)}."
    )
    if len(rows) > len(mine):
        says += (
            " Derived are the published ratios times what this session has for one device, for all "
            "devices times what it has for four."
        )
    return Figure(
        id=name,
        title=title,
        kind=observed.kind,
        says=f"{says}{words.of_published(rows)}{words.of_noise(rows)}",
        rows=[{key: row[key] for key in row if key != "text"} for row in rows],
        drawing=bars([{**row, "peak": None} for row in rows], unit="GB/s, read + written"),
    )


def _peak(node: NodeModel | None, devices: tuple[int, ...]) -> float | None:
    """Return the peak of their links to the host, both directions, in GB/s."""
    if node is None:
        return None
    return sum(2 * node.host_peak_gbs(device) for device in devices)


def _expected(
    observed: Observed, label: str, record: str, found: Mapping[str, Series]
) -> Iterator[Row]:
    """Yield the published ratio times what this session has for its base."""
    base = found.get("four_spread" if record == "paper-cpugpu-stream-8v4" else "one")
    if base is None:
        return
    for value in beside(observed.node, record):
        row = of_value(label, value, peak=None, percent_of_peak=None, text="")
        yield derived(row, value.value * base.value)
