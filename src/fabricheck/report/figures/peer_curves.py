"""From device 0 to one neighbour of each link class, over size (the paper's figures 7 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fabricheck.node import NodeModel
from fabricheck.report.figure import Figure
from fabricheck.report.figures import words
from fabricheck.report.figures.lines import curves
from fabricheck.report.figures.rows import Row, derived, of_point, of_value, scan
from fabricheck.report.published import beside
from fabricheck.results.observed import Observed, Pair, Point

#: Names of direct link classes in order, so that each keeps its colour; others come behind.
_KNOWN = ("single link", "dual link", "quad link")


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the curves by copy engine and those by kernel."""
    engine = _by_class(observed, experiment="E7", operation="engine", engines=True, ganged=False)
    if engine:
        yield _figure(
            observed,
            "peer-curves-engine",
            "Copies to neighbours by engine, over size",
            "GB/s",
            engine,
            _matrix_of_paper,
        )
    kernel = _by_class(observed, experiment="E8", operation="copy")
    if kernel:
        yield _figure(
            observed,
            "peer-curves-kernel",
            "STREAM copy in a neighbour's memory, over size",
            "GB/s, read + written",
            kernel,
            _parts_of_peak,
        )


def _by_class(observed: Observed, **fields: object) -> Mapping[str, Sequence[Point]]:
    """Return by link class the curve of the first pair from the first device that has one.

    Without a node model nobody knows the classes: then each pair stands for itself.
    """
    found: dict[Pair, list[Point]] = {}
    for point in observed.select(role="single", **fields):
        if point.pair is not None:
            found.setdefault(point.pair, []).append(point)
    lines = {pair: line for pair, points in sorted(found.items()) if (line := scan(points))}
    first = min((pair[0] for pair in lines), default=None)
    chosen: dict[str, Sequence[Point]] = {}
    for pair, line in lines.items():
        if pair[0] == first:
            label = _label(observed.node, pair)
            if label is not None:
                chosen.setdefault(label, line)
    order = [*(name for name in _KNOWN if name in chosen), *chosen]
    return {name: chosen[name] for name in order}


def _label(node: NodeModel | None, pair: Pair) -> str | None:
    """Return the name of a direct pair's link class; None of an indirect pair."""
    if node is None or not _known(node, pair):
        return f"{pair[0]} to {pair[1]}"
    link_class = node.link_class(*pair)
    if not link_class.direct:
        return None
    return "switch" if link_class.switched else f"{link_class.name} link"


def _known(node: NodeModel, pair: Pair) -> bool:
    """Return whether the node model has both devices: a session may be of a larger node."""
    return max(pair) < len(node.devices)


def _matrix_of_paper(node: NodeModel | None, label: str, pair: Pair) -> Iterator[Row]:
    """Yield the paper's value of this pair by copy engine, GB/s counted once; of no stated size."""
    for value in beside(node, f"kth-bw-{pair[0]}{pair[1]}"):
        yield of_value(label, value)


def _parts_of_peak(node: NodeModel | None, label: str, pair: Pair) -> Iterator[Row]:
    """Yield what the paper's 43 to 44 % of the link's bidirectional peak are in GB/s."""
    for value in beside(node, "paper-stream-p2p-pct-*"):
        if node is not None and _known(node, pair):
            peak = 2 * node.peer_peak_gbs(*pair)
            yield derived(of_value(label, value), value.value / 100 * peak)


def _figure(
    observed: Observed,
    name: str,
    title: str,
    axis: str,
    found: Mapping[str, Sequence[Point]],
    published: Callable[[NodeModel | None, str, Pair], Iterator[Row]],
) -> Figure:
    rows: list[Row] = []
    told = []
    for label, points in found.items():
        line = [of_point(label, point) for point in points]
        rows += line
        pair = points[0].pair
        if pair is not None:
            rows += published(observed.node, label, pair)
        told.append(f"{words.of_curve(line)[:-1]} ({line[0]['devices'].replace(' ', ' to ')}).")
    if any(row["kind"] == "derived" for row in rows):
        told.append("Derived are the published percentages times the peak of both directions.")
    return Figure(
        id=name,
        title=title,
        kind=observed.kind,
        says=f"{' '.join(told)}{words.of_published(rows)}{words.of_noise(rows)}",
        rows=rows,
        drawing=curves(rows, title=axis, known=_KNOWN),
    )
