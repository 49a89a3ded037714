"""The drawing of the node: devices in packages, NUMA domains, and the state of the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, permutations, product

from fabricheck.core.grouping import grouped
from fabricheck.core.show import cut, enumerated, listed
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.node import NodeModel
from fabricheck.node.cores import format_cores
from fabricheck.report.figure import PALETTE, WIDTH, Figure
from fabricheck.report.figures import degraded, links
from fabricheck.report.figures.degraded import Mark, Place
from fabricheck.report.figures.drawing import FONT, LETTER, Curve, Drawing, Outline, Spot, Style
from fabricheck.report.figures.links import Health, State
from fabricheck.report.figures.rows import amount
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair

STYLES: Mapping[State, Style] = {
    "within": Style(PALETTE[0], "", "within the limits of its reference"),
    "outside": Style(PALETTE[1], "7 4", "outside of the limits", "bold"),
    "peak": Style("#555555", "", "no reference: percent of the theoretical peak"),
    "missing": Style("#999999", "2 4", "not measured (? where it is short)"),
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


#: The most orders of devices to try; a node with more orders is drawn in numerical order.
_MOST_ORDERS = 5000


def figures(observed: Observed, diagnosis: Diagnosis | None = None) -> Iterator[Figure]:
    """Yield the drawing, if there is a node model and a link was measured or is degraded."""
    node = observed.node
    if node is None:
        return
    pairs = node.links if node.switch is None else combinations(range(len(node.devices)), 2)
    peers, hosts = links.peers(observed, pairs), links.hosts(observed)
    every = [*peers.values(), *hosts.values()]
    marks = degraded.marks(diagnosis, node)
    if all(health.state == "missing" for health in every) and not marks:
        return
    svg = _Sketch(node, peers, hosts, marks).svg()
    rows = [row for health in every for row in health.rows()]
    says = _says(observed, peers, hosts)
    if diagnosis is not None:
        says = f"{diagnosis.sentence} {says}"
    yield Figure("node", "The node and its links", observed.kind, says, rows, svg)


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
        f"{node.name}, {observed.kind}: {len(node.devices)} devices{packages}, {len(peers)} {what}."
        " A percentage is the lowest of all bandwidths over the link, in both directions, as a "
        f"part of its reference in this session, else of the peak.{changed}"
        f"{_group('Links between devices', list(peers.values()))}"
        f"{_group('Links to the host, pinned copies', list(hosts.values()))}"
    )


def _group(what: str, several: Sequence[Health]) -> str:
    if not several:
        return ""
    text = f" {what}:"
    outside = [health for health in several if health.state == "outside"]
    if outside:
        text += f" {len(outside)} outside of the limits: {listed(map(_decided, outside), 6, '; ')}."
    parts: list[str] = []
    for state, words_of_it in (
        ("within", "within the limits of their references"),
        ("peak", "without a reference, so of the peak"),
    ):
        found = [health for health in several if health.state == state]
        if found:
            low, high = (end(found, key=lambda health: health.part) for end in (min, max))
            ends = "" if high.text == low.text else f", highest {high.text} at {high.name}"
            ends = f"lowest {_decided(low)}{ends}"
            parts.append(f"{len(found)} {words_of_it}, {ends}")
    missing = [health.name for health in several if health.state == "missing"]
    if missing:
        named = enumerated(missing[:6]) if len(missing) <= 6 else f"{len(missing)} of them"
        parts.append(f"not measured: {named}")
    return f"{text} {'; '.join(parts)}." if parts else text


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

    Of all such orders it is the first one with the shortest links.
    """
    count = len(node.devices)
    if not node.links:
        return _split(range(count))
    orders = list(islice(_orders(node), _MOST_ORDERS + 1))
    if len(orders) > _MOST_ORDERS:
        return _split(range(count))
    return min((_split(order) for order in orders), key=lambda rows: _length(node, rows))


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
