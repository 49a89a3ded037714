"""A figure of the report: a drawing as SVG, for a page too, its description, and its data."""

from __future__ import annotations

import csv
import functools
import io
import multiprocessing
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.etree import ElementTree

import altair as alt
import vl_convert
from markupsafe import Markup

from fabricheck.core.text import printable

#: Greatest width of a figure in pixels. Two figures stand side by side on a desktop, and below each
#: other on a phone, without smaller text.
WIDTH = 350

#: Colours distinguishable with colour blindness (Okabe and Ito, 2008), always doubled by a shape, a
#: dash or a text.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: The kind of a value, by its mark: published points differ from those of this session.
SHAPES: Mapping[str, str] = {
    "measured": "circle",
    "simulated": "square",
    "published": "diamond",
    "derived": "cross",
}

#: An SVG whose drawing is in progress.
Drawing: TypeAlias = "Future[str]"


@functools.cache
def _pen() -> ProcessPoolExecutor:
    """Return the process that draws in parallel: drawing takes a third of a report's time.

    A thread would not help, because vl-convert holds Python's lock. Nothing in this process uses
    vl-convert before the fork, so the copy starts in a clean state.
    """
    return ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("fork"))


@dataclass(frozen=True)
class Figure:
    """One figure.

    id: its name in links and files. title: a short title. kind: what its numbers are: measured,
    simulated, published or derived. says: a description in sentences, for readers who do not see
    the drawing. rows: its data, one dictionary per row, all with the same keys. drawing: the SVG,
    or its drawing in progress.
    """

    id: str
    title: str
    kind: str
    says: str
    rows: Sequence[Mapping[str, Any]]
    drawing: Drawing | str

    @property
    def svg(self) -> str:
        """The drawing as SVG; waits until it is complete."""
        return self.drawing if isinstance(self.drawing, str) else self.drawing.result()

    @property
    def csv(self) -> str:
        """The data as CSV with a header, lines ended by a line feed."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]) if self.rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class Shown:
    """A figure on the page.

    name: its id on the page, and its file name. where: its partition. node_shown: the node model
    that it shows, or what is known without one. node: the name of that model; empty without one.
    measured: the experiments that it shows, or else those of which the partition has series or
    comparisons.
    """

    name: str
    figure: Figure
    drawing: Markup
    csv: str
    where: str = ""
    node_shown: str = ""
    node: str = ""
    measured: frozenset[str] = frozenset()


def defect(what: str, error: Exception) -> str:
    """Return the sentence about a part lost to a defect of this suite."""
    raised = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{what}, a defect of fabricheck ({raised})."


def drawn(chart: alt.TopLevelMixin) -> Drawing:
    """Start drawing a chart as SVG, in the style of the report."""
    # Altair validates each part when it is made; validating the whole again takes as long as
    # drawing.
    themed = chart.to_dict(validate=False) | {"config": CONFIG}
    return _pen().submit(vl_convert.vegalite_to_svg, plain(themed))


#: The style of all charts. Marks have no labels, because the figure's text describes them.
CONFIG: Mapping[str, Any] = {
    "font": "Liberation Sans, Arial, sans-serif",
    "aria": False,
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "gridColor": "#e5e5e5"},
    "legend": {"labelFontSize": 11, "titleFontSize": 11, "orient": "bottom", "columns": 2},
    "header": {"labelFontSize": 11, "titleFontSize": 11},
    "range": {"category": list(PALETTE)},
    "view": {"stroke": "#999999"},
}


#: The start of an attribute that refers to an id, as the charting library writes it.
_REFERENCE = re.compile(r"^url\(#")

ElementTree.register_namespace("", "http://www.w3.org/2000/svg")


def plain(value: Any) -> Any:
    """Return the specification of a chart with only printable text.

    The drawing library ends the whole process at a character that SVG cannot hold.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(key): plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, (list, tuple)) else value


def inline(svg: str, prefix: str, name: str) -> Markup:
    """Return a drawing that can be placed in a page beside others.

    Ids get a prefix, because two drawings may use the same ids (of clips) and the first's clip
    would cut the second. A screen reader sees one image; the page describes it in words.

    :param name: the name of the image.
    :raises ElementTree.ParseError: when the drawing is not XML.
    """
    root = ElementTree.fromstring(printable(svg))
    for element in root.iter():
        element.attrib = {
            key: f"{prefix}-{value}" if key == "id" else _REFERENCE.sub(f"url(#{prefix}-", value)
            for key, value in element.attrib.items()
            if key != "role" and not key.startswith("aria-")
        }
    root.attrib |= {"role": "img", "aria-label": printable(name), "class": "drawing"}
    if "viewBox" in root.attrib:
        root.attrib.pop("height", None)
    return Markup(ElementTree.tostring(root, encoding="unicode"))
