"""Parts of a drawing as SVG: boxes, lines, texts, and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

Spot = tuple[float, float]

#: Height of a text in pixels, and the width of one of its letters.
FONT, LETTER = 11, 6.2

#: The colour of failures, as in the page's style.
FAILURE = "#a11414"

#: The positions of a label along its line, as fractions of the line, best first.
_PLACES = (0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75, 0.18, 0.82)


@dataclass(frozen=True)
class Style:
    """The style of a link: a colour, with a dash and a legend entry of the same meaning."""

    colour: str
    dash: str
    words: str
    weight: str = "normal"


@dataclass(frozen=True)
class Outline:
    """The outline of a part: dashed or solid, with a title that a pointer shows."""

    dashed: bool
    title: str

    @property
    def stroke(self) -> dict[str, str]:
        """Colour and dash."""
        return {"stroke": FAILURE} | ({"stroke-dasharray": "6 4"} if self.dashed else {})


@dataclass(frozen=True)
class Curve:
    """A line between two points, bent towards a third one if it has one."""

    start: Spot
    end: Spot
    bend: Spot | None = None

    def at(self, part: float) -> Spot:
        """Return the point at a fraction of the curve."""
        (x0, y0), (x2, y2) = self.start, self.end
        x1, y1 = self.bend or ((x0 + x2) / 2, (y0 + y2) / 2)
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
        return a * x0 + b * x1 + c * x2, a * y0 + b * y1 + c * y2

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Close points along the curve, from start to end."""
        return tuple(self.at(step / 40) for step in range(41))

    @property
    def short(self) -> bool:
        """Whether a label of more than five letters would hide the curve."""
        return math.dist(self.start, self.end) < 60 and self.start[1] == self.end[1]

    @property
    def path(self) -> str:
        """The data of an SVG path."""
        (x0, y0), (x2, y2) = self.start, self.end
        via = f"Q{self.bend[0]:.1f} {self.bend[1]:.1f} " if self.bend else "L"
        return f"M{x0:.1f} {y0:.1f}{via}{x2:.1f} {y2:.1f}"


@dataclass
class Drawing:
    """A drawing of a width and height in pixels, made part by part."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)
    _curves: list[tuple[Curve, Sequence[str], Style]] = field(default_factory=list)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        /,
        outline: Outline | None = None,
        **more: str,
    ) -> None:
        """Add a box with round corners."""
        if outline is not None:
            more |= outline.stroke | {"stroke-width": "3"}
        rect = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
            f'fill="{fill}"{_attributes(more)}/>'
        )
        self.parts.append(_titled(rect, outline))

    def text(self, x: float, y: float, words: str, **more: str) -> None:
        """Add a text around x, its base line at y."""
        attributes = {"text-anchor": "middle", "font-size": str(FONT)} | more
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}"{_attributes(attributes)}>{escape(words)}</text>'
        )

    def line(
        self, curve: Curve, width: float, style: Style, *label: str, outline: Outline | None = None
    ) -> None:
        """Add a line. Its label, of a few lines of text, is placed after all parts are added.

        :param outline: two lines along it.
        """
        dash = {"stroke-dasharray": style.dash} if style.dash else {}
        path = _path(curve, width, {"stroke": style.colour} | dash)
        if outline is not None:
            edges = _path(curve, width + 8, outline.stroke)
            path = f"{edges}{_path(curve, width + 3, {'stroke': 'white'})}{path}"
        self.parts.append(_titled(path, outline))
        self.label(curve, style, *label)

    def label(self, curve: Curve, style: Style, *label: str) -> None:
        """Add a label to be placed on a curve that is not drawn."""
        self._curves.append((curve, label, style))

    def svg(self) -> str:
        """Return the drawing, labels on top."""
        # Prominent labels first, then those of short lines: long lines have more places for a
        # label.
        order = sorted(
            self._curves,
            key=lambda line: (line[2].weight == "normal", math.dist(line[0].start, line[0].end)),
        )
        taken: list[tuple[float, float, float, float]] = []
        for curve, label, style in order:
            if label:
                self._place(curve, label, style, taken)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" '
            'font-family="Liberation Sans, Arial, sans-serif">'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>'
            f"{''.join(self.parts)}</svg>"
        )

    def _place(
        self,
        curve: Curve,
        label: Sequence[str],
        style: Style,
        taken: list[tuple[float, float, float, float]],
    ) -> None:
        wide = max(map(len, label)) * LETTER + 4
        high = len(label) * (FONT + 1) + 2

        def around(part: float) -> tuple[float, float, float, float]:
            x, y = curve.at(part)
            x = min(max(x, wide / 2), self.width - wide / 2)
            return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2

        def crowded(part: float) -> int:
            box = around(part)
            crossed = sum(
                any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in other.spots)
                for other, _, _ in self._curves
                if other is not curve
            )
            return crossed + 100 * sum(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
                for other in taken
            )

        box = around(min(_PLACES, key=crowded))
        taken.append(box)
        self.box(box[0], box[1], wide, high, "white", None, **{"fill-opacity": "0.88"})
        for number, line in enumerate(label):
            self.text(
                (box[0] + box[2]) / 2,
                box[1] + (number + 1) * (FONT + 1) - 1,
                line,
                **{"font-weight": style.weight},
            )


def _path(curve: Curve, width: float, stroke: Mapping[str, str]) -> str:
    return f'<path d="{curve.path}" fill="none" stroke-width="{width:.1f}"{_attributes(stroke)}/>'


def _titled(parts: str, outline: Outline | None) -> str:
    return parts if outline is None else f"<g><title>{escape(outline.title)}</title>{parts}</g>"


def _attributes(given: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in given.items())
