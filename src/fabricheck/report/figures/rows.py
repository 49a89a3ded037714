"""The data of a figure as uniform rows, series and published values, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median_low
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.core.text import capitalized, count
from fabricheck.node import NodeModel
from fabricheck.references.published import Record, folder, of_folder
from fabricheck.report.rendering import added_sections
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Metric, Series, curve

#: One row of a figure's data. Every row of a figure has the same keys.
Row = Mapping[str, Any]


def of_point(label: str, point: Series, **more: Any) -> dict[str, Any]:
    """Return a series of this session as a row.

    :param label: its name in the figure.
    :param more: further columns, after the label.
    """
    low, high = point.interval or (None, None)
    return {
        "series": label,
        **more,
        "kind": point.clock,
        "bytes": point.bytes,
        "value": point.value,
        "low": low,
        "high": high,
        "unit": point.unit,
        "n": len(point.measured["samples"]),
        "noisy": point.noisy,
        "devices": " ".join(map(str, point.devices)),
        "experiment": point.experiment,
        "operation": point.operation,
        "check": point.check,
        "record": "",
        "place": "",
    }


def of_value(label: str, value: Record, **more: Any) -> dict[str, Any]:
    """Return a published value as a row; ``bytes`` is None where its document states no size."""
    empty = dict.fromkeys(("low", "high", "n", "noisy"))
    return {
        "series": label,
        **more,
        "kind": "published",
        "bytes": value.size,
        "value": value.value,
        **empty,
        "unit": value.unit,
        "devices": "",
        "experiment": "",
        "operation": "",
        "check": "",
        "record": value.id,
        "place": value.place,
    }


def derived(row: Row, value: float) -> dict[str, Any]:
    """Return the row of a published value and what is derived of it in GB/s, without a size."""
    return {**row, "kind": "derived", "bytes": None, "value": value, "unit": "GB/s"}


def is_of_session(row: Row) -> bool:
    """Whether a row belongs to this session."""
    return row["kind"] in ("measured", "simulated")


def session_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of this session."""
    return list(filter(is_of_session, rows))


def beside(node: NodeModel | None, *patterns: str) -> Iterator[Record]:
    """Yield the records that match a pattern and are of a machine with this node model.

    Nothing is yielded if the node model is none, names no machines, or the data set cannot be read,
    because the page shows published values only as an addition.

    :param patterns: ids of records, with ``*`` and ``?`` as in file names.
    """
    if node is None:
        return
    try:
        data = of_folder(folder())
    except FabricheckError:
        return
    for record in data.matching(*patterns):
        if record.system in node.systems and record.comparable:
            yield record


def scan(points: Iterable[Series]) -> list[Series]:
    """Return the curve of the check with the most sizes; empty if none has two.

    One run is one curve: another run may differ at the same size by more than noise.
    """
    longest = max((curve(run) for run in by_check(points)), key=len, default=[])
    return longest if len(longest) > 1 else []


def by_check(points: Iterable[Series]) -> list[list[Series]]:
    """Return the points of each check, which are from one run."""
    return list(grouped((point.check, point) for point in points).values())


#: The fraction of its greatest value at which a curve counts as saturated.
SATURATED = 0.9

#: The smallest fall from one size to the next that is described, as a fraction of the value before.
_FALL = 0.2


def amount(value: float, unit: str = "GB/s") -> str:
    """Return a value with three figures and its unit; whole numbers from 100 on."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def of_curve(rows: Sequence[Row]) -> str:
    """Return the end of a curve, its saturation, and its deepest fall, as a sentence.

    :param rows: of one series of this session, by size.
    """
    label, last, best = rows[0]["series"], rows[-1], max(row["value"] for row in rows)
    full = next(row for row in rows if row["value"] >= SATURATED * best)
    text = f"{capitalized(label)}: {amount(last['value'], last['unit'])} at {about(last['bytes'])}"
    if best > 1.1 * last["value"]:
        at = next(row for row in rows if row["value"] == best)
        text += f", at most {amount(best)} at {about(at['bytes'])}"
    text += f", {SATURATED * 100:.0f} % of its greatest from {about(full['bytes'])} on"
    falls = [(b["value"] / a["value"], a, b) for a, b in pairwise(rows)]
    ratio, before, after = min(falls, key=lambda fall: fall[0], default=(1.0, last, last))
    if ratio < 1 - _FALL:
        text += (
            f"; it falls from {amount(before['value'])} at {about(before['bytes'])} "
            f"to {amount(after['value'])} at {about(after['bytes'])}"
        )
    return f"{text}."


def of_members(label: str, noun: str, values: Mapping[Any, float], odd: Mapping[Any, float]) -> str:
    """Return the median of devices or ranks, their range, and those unlike the others, in words."""
    low, high = min(values.values()), max(values.values())
    text = f"{capitalized(label)}: median {amount(median_low(values.values()))}"
    text += f" of {count(len(values), noun)}"
    text += f", {amount(low, '')} to {amount(high)}" if high > 1.005 * low else ""
    return text + "".join(
        f"; {noun} {name} is odd, {100 * part:+.0f} %" for name, part in odd.items()
    )


def of_noise(rows: Iterable[Row]) -> str:
    """Return the number of noisy values of this session; empty if there are none."""
    mine = session_rows(rows)
    noisy = sum(bool(row["noisy"]) for row in mine)
    return f" Noisy: {noisy} of {len(mine)} values." if noisy else ""


def expected_by(observed: Observed, point: Series) -> Metric | None:
    """Return the metric whose reference is the expected value of a series.

    If the worst of several series is judged, each of them has the limit. The result is None if
    nothing was expected: report only, a check that was not judged, or metrics of an older session
    whose series are unknown.
    """
    for metric in observed.metrics_of(point):
        each = metric.reduce == "worst" or len(metric.series or ()) == 1
        if each and metric.reference and (metric.least, metric.most) != (None, None):
            return metric
    return None


def is_behind_peers(observed: Observed, point: Series) -> bool:
    """Whether a series is a member that misses a limit among its peers.

    Recorded is the worst one, in percent of the others; another is at so much more as it is better.
    """
    for metric in observed.metrics_of(point):
        worst = metric.decisive_series
        if metric.reduce != "peers" or metric.value is None or len(worst) != 1:
            continue
        better = point.value / worst[0]["median"]
        if point.better == "lower":
            better = 1 / better
        if metric.is_beyond(metric.value * better):
            return True
    return False


def fitted(observed: Observed, rows: Iterable[Row]) -> str:
    """Return a sentence on published values that are no evidence for a simulation, or nothing.

    These are the values that it was fitted to, and what subpackages add of the others.
    """
    if observed.node is None or not observed.simulated:
        return ""
    facts = observed.node.facts
    shown = {row.get("record") for row in rows} - {None, ""}
    of_fit = {fact.record for fact in facts.values() if fact.kind == "fitted"} & shown
    sentence = ""
    if of_fit:
        sentence = (
            f" The simulation was fitted to {count(len(of_fit), 'published value')} here. "
            "Agreement with what the same parameters decide is not evidence."
        )
    others = frozenset(shown - of_fit)
    return sentence + "".join(each.fitted(observed, others) for each in added_sections())
