"""The drawing of the node: devices in packages, NUMA domains, the state of the links by the lowest
value of each as a fraction of its reference, and what the diagnosis calls degraded.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, permutations, product
from typing import Any, Literal, TypeAlias

from fabricheck.core.grouping import grouped
from fabricheck.core.show import cut, enumerated, listed
from fabricheck.judge.diagnosis.model import Component, ComponentKind, Diagnosis
from fabricheck.node import NodeModel
from fabricheck.node.cores import format_cores
from fabricheck.report.figure import PALETTE, WIDTH, Figure
from fabricheck.report.figures.drawing import FONT, LETTER, Curve, Drawing, Outline, Spot, Style
from fabricheck.report.figures.rows import amount, expected_by, of_point
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Metric, Pair, Series, largest

#: The states: within its limits; outside; with a peak only; without a value.
State = Literal["within", "outside", "peak", "missing"]

#: Transfers over the link between two devices, by bandwidth: experiment, operation, role. MPI is
#: left out because it has costs of its own.
_PEERS = (
    ("E8", "write", "single"),
    ("E8", "read", "single"),
    ("E8", "copy", "single"),
    ("E7", "engine", "single"),
    ("E7", "engine-both", "sum"),
)

#: Without a reference, the first of these that exists is compared with the peak of one direction.
_OF_PEAK = (("E8", "write"), ("E8", "read"), ("E7", "engine"))

STYLES: Mapping[State, Style] = {
    "within": Style(PALETTE[0], "", "% of the reference bandwidth, within its limits"),
    "outside": Style(PALETTE[1], "7 4", "% of the reference bandwidth, beyond its limits", "bold"),
    "peak": Style("#555555", "", "% of the peak bandwidth; there is no reference"),
    "missing": Style("#999999", "2 4", "not measured (? where it is short)"),
}

#: The states of links with a value that are not beyond a limit, in words.
_WITHOUT_A_MISS: Mapping[State, str] = {
    "within": "within the limits of their references",
    "peak": "without a reference, so of the peak",
}

#: The style of labels of marked parts, and the marks in the legend.
_MARKED = Style("white", "", "", "bold")
_OUTLINES = (
    (True, replace(_MARKED, words="outlined: degraded"), Outline(False, "degraded")),
    (
        False,
        replace(_MARKED, words="dashed outlines: one of them is degraded"),
        Outline(True, "degraded?"),
    ),
)

#: Sizes in pixels: of a device's box, a NUMA domain's box, a link to the host, the distance between
#: rows of devices, and a line of the legend.
_BOX_WIDTH, _BOX_HEIGHT, _DOMAIN, _HOST, _BETWEEN, _LINE = 34, 28, 34, 50, 176, 16

#: Widths in pixels: of the widest link, of a link to the host, and of the narrowest domain.
_WIDEST, _HOST_WIDTH, _NARROWEST = 8.0, 3.0, 84


#: The most orders of devices to try.
_MOST_ORDERS = 5000

#: The location of a mark: a pair's link, a device's link to the host by its number, a device, or a
#: NUMA domain.
Kind = Literal["link", "host", "device", "domain"]
Place: TypeAlias = "tuple[Kind, int | Pair]"

#: By kind of component where it is drawn, and the word for what of the place it is; those of no
#: place are software.
_DRAWN: Mapping[ComponentKind, tuple[Kind, str]] = {
    "device": ("device", "device"),
    "package": ("device", "package"),
    "pair": ("device", "pair"),
    "hbm": ("device", "HBM"),
    "compute_units": ("device", "compute units"),
    "kernel_accesses": ("device", "kernels"),
    "host_accesses": ("host", "kernels' host accesses"),
    "copy_engines": ("device", "copy engines"),
    "copies": ("device", "copy engine"),
    "host_link": ("host", ""),
    "pageable_copies": ("host", "pageable copies"),
    "page_migration": ("host", "page migration"),
    "messages": ("device", "messages"),
    "rank": ("device", "rank"),
    "link": ("link", ""),
    "latency_of_copies": ("device", "latency"),
    "latency_of_messages": ("device", "latency"),
    "latency_of_link": ("link", "latency"),
    "latency_of_host_copies": ("host", "latency"),
    "transfers_at_once": ("device", "transfers at once"),
    "ddr": ("domain", "DDR"),
    "numa_connection": ("domain", "connection"),
    "link_gone": ("link", "gone"),
    "link_turns": ("link", "turns"),
    "cables_exchanged": ("device", "cables"),
    "numa_rotated": ("domain", "NUMA domains rotated"),
}

#: The most letters in a line of a label, and the most lines that name components; a device has no
#: more space.
_WIDE, _MOST_LINES = 13, 3


def figures(observed: Observed, diagnosis: Diagnosis | None = None) -> Iterator[Figure]:
    """Yield the drawing, if there is a node model and a link was measured or is degraded."""
    node = observed.node
    if node is None:
        return
    pairs = node.links if node.switch is None else combinations(range(len(node.devices)), 2)
    peers, hosts = _peers(observed, pairs), _hosts(observed)
    all_health = [*peers.values(), *hosts.values()]
    marks = marks_of(diagnosis, node)
    if all(health.state == "missing" for health in all_health) and not marks:
        return
    svg = _Sketch(node, peers, hosts, marks).svg()
    rows = [row for health in all_health for row in health.rows()]
    first = f"{diagnosis.sentence} " if diagnosis is not None else ""
    says = f"{first}{_says(observed, peers, hosts)}"
    yield Figure("node", "The node and its links", observed.clock, says, rows, svg)


@dataclass
class _Sketch:
    """The drawing in progress."""

    node: NodeModel
    peers: Mapping[Pair, Health]
    hosts: Mapping[int, Health]
    marks: Mapping[Place, Mark]

    def svg(self) -> str:
        self.rows = rows_of(self.node)
        states = {health.state for health in (*self.peers.values(), *self.hosts.values())}
        legend: list[tuple[Style, Outline | None]] = [
            (style, None) for state, style in STYLES.items() if state in states
        ]
        certain = {mark.certain for mark in self.marks.values()}
        legend += [(style, outline) for is_so, style, outline in _OUTLINES if is_so in certain]
        spare = [domain for domain in self.node.domains if not domain.devices]
        above = _DOMAIN + _HOST + _BOX_HEIGHT
        self.end = 2 * above + _BETWEEN if len(self.rows) == 2 else above + 74
        self.drawing = Drawing(WIDTH, self.end + 8 + _LINE * (len(legend) + len(spare) + 1))
        self.spots: dict[int, Spot] = {}
        for number, row in enumerate(self.rows):
            edge = _DOMAIN + _HOST + _BOX_HEIGHT / 2
            y = edge if number == 0 else self.end - edge
            pitch = WIDTH / len(row)
            self.spots |= {device: (pitch * (i + 0.5), y) for i, device in enumerate(row)}
        self._packages()
        self._domains()
        self._links()
        self._devices()
        self._legend(legend)
        return self.drawing.svg()

    def _top(self, device: int) -> bool:
        return device in self.rows[0]

    def _packages(self) -> None:
        for number, package in enumerate(self.node.packages):
            rows = {self._top(device) for device in package}
            if len(package) < 2 or len(rows) > 1:
                continue
            xs = [self.spots[device][0] for device in package]
            y = self.spots[package[0]][1]
            left = min(xs) - _BOX_WIDTH / 2 - 6
            width = max(xs) - min(xs) + _BOX_WIDTH + 12
            self.drawing.box(left, y - 21, width, 42, "#f1f1f1", stroke="#777777")
            # On the side of the host, where no links between devices run.
            side = y - 11 if rows == {True} else y + 19
            self.drawing.text(sum(xs) / len(xs), side, f"package {number}", **{"font-size": "10"})

    def _domains(self) -> None:
        for domain in self.node.domains:
            parts = [[d for d in row if d in domain.devices] for row in self.rows]
            shown = [part for part in parts if part]
            for number, part in enumerate(shown):
                self._domain(domain.index, format_cores(domain.cores), part, again=number > 0)

    def _domain(self, index: int, cores: str, devices: Sequence[int], *, again: bool) -> None:
        top = self._top(devices[0])
        xs = [self.spots[device][0] for device in devices]
        y = 1 if top else self.end - _DOMAIN - 1
        half = max(_NARROWEST, max(xs) - min(xs) + _BOX_WIDTH + 12) / 2
        left, right = (min(xs) + max(xs)) / 2 - half, (min(xs) + max(xs)) / 2 + half
        mark = self.marks.get(("domain", index))
        outline = mark.outline if mark else None
        self.drawing.box(left, y, right - left, _DOMAIN, "#e3e3e3", outline, stroke="#555555")
        name = f"NUMA {index}" + (" (the same)" if again else "")
        wide = int((right - left) / LETTER)
        text = f"cores {cores}" if mark is None else " ".join((*mark.label[1:], mark.word))
        text = cut(text, wide)
        self.drawing.text((left + right) / 2, y + 14, name, **{"font-weight": "bold"})
        self.drawing.text((left + right) / 2, y + 28, text)
        for device in devices:
            x, middle = self.spots[device]
            ends = (y + _DOMAIN, middle - _BOX_HEIGHT / 2) if top else (middle + _BOX_HEIGHT / 2, y)
            curve = Curve((x, ends[0]), (x, ends[1]))
            self._link(curve, _HOST_WIDTH, self.hosts[device], self.marks.get(("host", device)))

    def _link(self, curve: Curve, width: float, health: Health, mark: Mark | None) -> None:
        style = STYLES[health.state]
        if mark is None:
            self.drawing.line(curve, width, style, *_label(health, short=curve.short))
            return
        label = (*mark.label, health.text) if health.text else mark.label
        style = replace(style, weight="bold")
        self.drawing.line(curve, width, style, *label, outline=mark.outline)

    def _links(self) -> None:
        if self.node.switch is not None:
            self._switch()
            return
        most = max(link.count for link in self.node.links.values()) if self.node.links else 1
        # Widest first, so that narrow ones are not hidden.
        for pair in sorted(self.peers, key=lambda peer: -self.node.links[peer].count):
            health = self.peers[pair]
            width = max(2.0, _WIDEST * self.node.links[pair].count / most)
            self._link(self._curve(*pair), width, health, self.marks.get(("link", pair)))

    def _curve(self, a: int, b: int) -> Curve:
        (xa, ya), (xb, yb) = self.spots[a], self.spots[b]
        if ya != yb:
            inner = _BOX_HEIGHT / 2 if ya < yb else -_BOX_HEIGHT / 2
            lean = max(-10.0, min(10.0, (xb - xa) / 10))
            return Curve((xa + lean, ya + inner), (xb - lean, yb - inner))
        row = self.rows[0] if self._top(a) else self.rows[1]
        span = abs(row.index(a) - row.index(b))
        if span == 1:
            sign = 1 if xb > xa else -1
            return Curve((xa + sign * _BOX_WIDTH / 2, ya), (xb - sign * _BOX_WIDTH / 2, yb))
        inwards = 1 if self._top(a) else -1
        edge = ya + inwards * _BOX_HEIGHT / 2
        return Curve((xa, edge), (xb, edge), ((xa + xb) / 2, edge + inwards * 28 * span))

    def _switch(self) -> None:
        switch = self.node.switch
        assert switch is not None
        y = self.end - 18 if len(self.rows) == 1 else self.end / 2
        for device, (x, middle) in self.spots.items():
            worst = _worst([health for pair, health in self.peers.items() if device in pair])
            inner = _BOX_HEIGHT / 2 if middle < y else -_BOX_HEIGHT / 2
            end = (x * 0.8 + WIDTH * 0.1, y - 14 if middle < y else y + 14)
            if worst is not None:
                line = Curve((x, middle + inner), end)
                self._link(line, _WIDEST / 2, worst, self.marks.get(("link", device)))
        self.drawing.box(12, y - 14, WIDTH - 24, 28, "#e3e3e3", stroke="#555555")
        text = f"switch, {switch.links_per_device} links to each device"
        self.drawing.text(WIDTH / 2, y + 4, text, **{"font-weight": "bold"})

    def _devices(self) -> None:
        for device, (x, y) in self.spots.items():
            left, top = x - _BOX_WIDTH / 2, y - _BOX_HEIGHT / 2
            mark = self.marks.get(("device", device))
            outline = mark.outline if mark else None
            self.drawing.box(left, top, _BOX_WIDTH, _BOX_HEIGHT, "white", outline, stroke="black")
            if mark is not None:
                # On the side of the links, where there is space.
                inwards = 1 if self._top(device) else -1
                curve = Curve((x, y + inwards * 38), (x, y + inwards * 52))
                self.drawing.label(curve, _MARKED, *mark.label)
            self.drawing.text(x, y + 5, str(device), **{"font-size": "15", "font-weight": "bold"})

    def _legend(self, styles: Sequence[tuple[Style, Outline | None]]) -> None:
        y = self.end + 8 + FONT
        start = {"text-anchor": "start"}
        text = "Numbers in boxes are devices; wider is more links."
        self.drawing.text(4, y, text, **start)
        for style, outline in styles:
            y += _LINE
            self.drawing.line(Curve((4, y - 4), (44, y - 4)), 4, style, outline=outline)
            self.drawing.text(52, y, style.words, **start)
        for domain in self.node.domains:
            if not domain.devices:
                y += _LINE
                text = f"NUMA {domain.index}: cores {format_cores(domain.cores)}, no device"
                if mark := self.marks.get(("domain", domain.index)):
                    text += f"; {' '.join((*mark.label[1:], mark.word))}"
                self.drawing.text(4, y, text, **start)


def _label(health: Health, short: bool = False) -> tuple[str, ...]:
    """Return the lines of a label; on a short link the legend explains its mark."""
    if health.state == "missing":
        return ("?",) if short else ("not", "measured")
    return (health.text,)


def _worst(several: Sequence[Health]) -> Health | None:
    """Return the worst series beyond its limits, else the lowest, else one without a value."""
    order: tuple[State, ...] = ("outside", "within", "peak", "missing")
    return min(several, key=lambda health: (order.index(health.state), health.part), default=None)


def _says(observed: Observed, peers: Mapping[Pair, Health], hosts: Mapping[int, Health]) -> str:
    node = observed.node
    assert node is not None
    packages = (
        "" if len(node.packages) == len(node.devices) else f" in {len(node.packages)} packages"
    )
    noun = "pair" if len(peers) == 1 else "pairs"
    what = f"linked {noun}" if node.switch is None else f"{noun} through a switch"
    changed = f" The simulated node was changed by {observed.overlay}." if observed.overlay else ""
    return (
        f"{node.name}, {observed.clock}: {len(node.devices)} devices{packages}, {len(peers)} "
        f"{what}. A percentage is the lowest of all bandwidths over the link, in both directions, "
        f"as a part of its reference in this session, else of the peak.{changed}"
        f"{_group('Links between devices', list(peers.values()))}"
        f"{_group('Links to the host, pinned copies', list(hosts.values()))}"
    )


def _group(what: str, several: Sequence[Health]) -> str:
    by_state = grouped((health.state, health) for health in several)
    parts = [
        f"{len(by_state[state])} {words}, {_ends(by_state[state])}"
        for state, words in _WITHOUT_A_MISS.items()
        if state in by_state
    ]
    missing = [health.name for health in by_state.get("missing", ())]
    if missing:
        named = enumerated(missing) if len(missing) <= 6 else f"{len(missing)} of them"
        parts.append(f"not measured: {named}")
    text = f" {what}:" if several else ""
    if outside := by_state.get("outside"):
        text += f" {len(outside)} outside of the limits: {listed(map(_decided, outside), 6, '; ')}."
    return f"{text} {'; '.join(parts)}." if parts else text


def _ends(all_health: Sequence[Health]) -> str:
    low, high = (end(all_health, key=lambda health: health.part) for end in (min, max))
    highest = "" if high.text == low.text else f", highest {high.text} at {high.name}"
    return f"lowest {_decided(low)}{highest}"


def _decided(health: Health) -> str:
    decides = health.decides
    assert decides is not None
    word = "reference" if decides.expected else "peak"
    return (
        f"{health.name} {health.text} ({decides.point.operation} "
        f"{amount(decides.point.value)}, {word} {amount(decides.wanted)})"
    )


def rows_of(node: NodeModel) -> tuple[tuple[int, ...], ...]:
    """Return the devices by row: those of a NUMA domain and of a package beside each other.

    It is the first of all such orders whose links are shortest.
    """
    if not node.links:
        return _split(range(len(node.devices)))
    orders = islice(_orders(node), _MOST_ORDERS)
    return min(map(_split, orders), key=lambda rows: _length(node, rows))


def _split(order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    if len(order) <= 2:
        return (tuple(order),)
    half = (len(order) + 1) // 2
    return (tuple(order[:half]), tuple(order[half:]))


def _orders(node: NodeModel) -> Iterator[tuple[int, ...]]:
    domains = grouped((node.devices[package[0]].domain, package) for package in node.packages)
    for order in permutations(domains):
        packages = [permutations(domains[domain]) for domain in order]
        for chosen in product(*packages):
            within = [permutations(package) for group in chosen for package in group]
            for devices in product(*within):
                yield tuple(chain.from_iterable(devices))


def _length(node: NodeModel, rows: Sequence[Sequence[int]]) -> float:
    """Return the sum of the squared lengths of the links, in positions of a row."""
    at = {device: (x, y) for y, row in enumerate(rows) for x, device in enumerate(row)}
    return sum((at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2 for a, b in node.links)


@dataclass(frozen=True)
class Measured:
    """A series over a link, and its expected value: a reference, else the peak."""

    point: Series
    expected: Metric | None
    peak: float

    @property
    def wanted(self) -> float:
        """The expected value."""
        return (self.expected and self.expected.reference) or self.peak

    @property
    def part(self) -> float:
        """Its value as a fraction of the expected one."""
        return self.point.value / self.wanted

    @property
    def state(self) -> State:
        """Whether it is within the limits of its reference."""
        if self.expected is None:
            return "peak"
        return "outside" if self.expected.is_beyond(self.point.value) else "within"


@dataclass(frozen=True)
class Health:
    """The state of one link: its series, and the series that decides."""

    name: str
    values: tuple[Measured, ...]

    @property
    def decides(self) -> Measured | None:
        """The lowest of the series beyond their limits, else of all."""
        outside = [value for value in self.values if value.state == "outside"]
        return min(outside or self.values, key=lambda health: health.part, default=None)

    @property
    def state(self) -> State:
        """Whether the link is within the limits of this session's references."""
        return self.decides.state if self.decides else "missing"

    @property
    def part(self) -> float:
        """The lowest fraction of the expected value; 0 for a link without a value."""
        return self.decides.part if self.decides else 0.0

    @property
    def text(self) -> str:
        """The percentage; empty without a value."""
        return f"{100 * self.part:.0f} %" if self.decides else ""

    def rows(self) -> list[dict[str, Any]]:
        """Return the data of the link."""
        return [
            of_point(
                self.name,
                value.point,
                expected=value.wanted,
                expected_is="reference" if value.expected else "peak",
                limit=value.expected.limit if value.expected else None,
                percent=100 * value.part,
                state=value.state,
            )
            for value in self.values
        ]


def _peers(observed: Observed, pairs: Iterable[Pair]) -> dict[Pair, Health]:
    """Return the state of these pairs (a < b), in both directions."""
    node = observed.node
    assert node is not None
    by_pair: dict[Pair, list[Series]] = {}
    for experiment, operation, role in _PEERS:
        for point in observed.select(experiment=experiment, operation=operation, role=role):
            if point.pair is not None and point.pair[0] != point.pair[1]:
                by_pair.setdefault((min(point.pair), max(point.pair)), []).append(point)
    health_of = {}
    for pair in pairs:
        path = node.widest_path(*pair)
        peak = node.path_peak_gbs(path) if path else 0.0
        name = f"{pair[0]}-{pair[1]}"
        health_of[pair] = Health(
            name, tuple(_of_pair(_measured(observed, by_pair.get(pair, ()), peak)))
        )
    return health_of


def _of_pair(values: list[Measured]) -> list[Measured]:
    """Return the series with a reference; without any, the first kind that has a peak."""
    judged = [health for health in values if health.expected]
    of_peak = grouped(
        ((value.point.experiment, value.point.operation), value)
        for value in values
        if value.point.by_engines and value.peak
    )
    return judged or next((of_peak[kind] for kind in _OF_PEAK if kind in of_peak), [])


def _measured(observed: Observed, points: Iterable[Series], peak: float) -> list[Measured]:
    """Return the series of the largest size of each check, direction and operation."""
    judged = largest(points, lambda p: (p.check, p.pair, p.device, p.operation, p.by_engines))
    peak = 0.0 if math.isinf(peak) else peak
    return [Measured(point, expected_by(observed, point), peak) for point in judged.values()]


def _hosts(observed: Observed) -> dict[int, Health]:
    """Return the state of each device's link to its host memory: pinned copies, both ways."""
    node = observed.node
    assert node is not None
    copies = observed.select(
        experiment="E2", role="single", host_memory="host-pinned", operation={"h2d", "d2h"}
    )
    health = {}
    for device in (each.index for each in node.devices):
        of_device = (point for point in copies if point.device == device)
        values = _measured(observed, of_device, node.device(device).host_link_gbs)
        judged = [health for health in values if health.expected] or [
            health for health in values if health.peak
        ]
        health[device] = Health(f"host-{device}", tuple(judged))
    return health


@dataclass(frozen=True)
class Mark:
    """The components that are marked at a place.

    certain: whether one of them is certainly degraded, not only one of several equal explanations.
    """

    components: tuple[Component, ...]
    certain: bool

    @property
    def word(self) -> str:
        """The text of the mark: degraded, or possibly degraded."""
        return "degraded" if self.certain else "degraded?"

    @property
    def outline(self) -> Outline:
        """The style: dashed where another component may be the cause."""
        why = "" if self.certain else ", or another component that explains as much"
        labels = enumerated((component.label for component in self.components), last="or")
        return Outline(not self.certain, f"{self.word}: {labels}{why}")

    @property
    def label(self) -> tuple[str, ...]:
        """The lines of its label: the text of the mark, and the part of the place."""
        words = filter(None, map(_short, self.components))
        lines = [line for word in dict.fromkeys(words) for line in textwrap.wrap(word, _WIDE)]
        more = ["..."] if len(lines) > _MOST_LINES else []
        return (self.word, *lines[:_MOST_LINES], *more)


def marks_of(diagnosis: Diagnosis | None, node: NodeModel) -> dict[Place, Mark]:
    """Return the degraded or possibly degraded components by their place in the drawing."""
    marks: dict[Place, Mark] = {}
    if diagnosis is None:
        return marks
    for degraded in diagnosis.degraded:
        for component in (degraded.component, *degraded.equals):
            for place in places(component, node):
                before = marks.get(place, Mark((), False))
                certain = before.certain or not (degraded.equals or diagnosis.unsure)
                marks[place] = Mark((*before.components, component), certain)
    return marks


def places(component: Component, node: NodeModel) -> Iterator[Place]:
    """Yield the places of a component; none for one without a place, such as a library."""
    if component.kind not in _DRAWN:
        return
    kind, _ = _DRAWN[component.kind]
    is_any = not component.ids
    if kind == "link" and node.switch is None:
        for pair in node.links:
            if set(component.ids) <= set(pair):
                yield "link", pair
    else:
        for part in node.domains if kind == "domain" else node.devices:
            if is_any or part.index in component.ids:
                yield kind, part.index


def _short(component: Component) -> str:
    """Return the part of its place that a component is; empty for a whole link."""
    if component.kind == "link" and component.direction == "one-way":
        return "{} to {}".format(*component.ids)
    return _DRAWN[component.kind][1]
