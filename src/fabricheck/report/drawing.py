"""Embed the SVG of a figure in a page: with unique ids, and as one image with a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from fabricheck.core.text import printable

SVG = "http://www.w3.org/2000/svg"

#: The elements allowed in a drawing. The charting library writes no others.
ELEMENTS = frozenset(
    {"svg", "g", "defs", "clipPath", "path", "rect", "circle", "ellipse", "line", "polyline",
     "polygon", "text", "tspan", "title", "desc", "linearGradient", "radialGradient", "stop",
     "pattern", "marker", "use", "symbol"}
)  # fmt: skip

_REFERENCE = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")

ElementTree.register_namespace("", SVG)


def plain(value: Any) -> Any:
    """Return the specification of a chart with only printable text.

    The drawing library ends the whole process at a character that SVG cannot hold.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def inline(svg: str, prefix: str, name: str) -> Markup:
    """Return a drawing that can be placed in a page beside others.

    Ids get a prefix, because two drawings may use the same ids (of clips) and the first's clip
    would cut the second. A screen reader sees one image; the page describes it in words.

    :param name: the name of the image.
    :raises ElementTree.ParseError: when the drawing is not XML.
    """
    root = ElementTree.fromstring(printable(svg))
    for parent in root.iter():
        for child in list(parent):
            if _name(child.tag) not in ELEMENTS:
                parent.remove(child)
    for element in root.iter():
        element.attrib = dict(_attributes(element.attrib, prefix))
    root.attrib |= {"role": "img", "aria-label": printable(name), "class": "drawing"}
    if "viewBox" in root.attrib:
        root.attrib.pop("height", None)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _name(tag: object) -> str:
    return str(tag).rsplit("}", 1)[-1]


def _attributes(found: dict[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        plain = _name(key)
        if plain == "role" or plain.startswith(("aria-", "on")):
            continue
        if plain == "href":
            if value.startswith("#"):
                yield "href", f"#{prefix}-{value[1:]}"
            continue
        if plain == "id":
            yield key, f"{prefix}-{value}"
            continue
        yield key, _REFERENCE.sub(lambda one: f"url(#{prefix}-{one[1]})", value)
