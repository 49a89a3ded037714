"""The templates of pages: what values become in HTML, the kinds of numbers, and added sections.

Subpackages add sections where they are installed. Such a module has ``SECTIONS``, their titles by
id, and ``TEMPLATES``, the folder of their templates ``ID.html.j2``. The first one, with ``ID`` and
``TITLE``, has a content for each partition: ``judged_claims(observed)``, with ``says``, one line,
and ``defects``, sentences. ``fitted(observed, records)`` is what a figure says of published values
that are no evidence for a simulation.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import jinja2
from markupsafe import Markup

from fabricheck.core.amounts import number, short, size
from fabricheck.core.text import printable

#: The folder of pages in a results folder, with one folder for each session; and its page.
PAGES, PAGE = "reports-html", "index.html"

#: Kinds of numbers, each with a shape, a word and a colour, which the end of the page explains.
KINDS: Mapping[str, str] = {
    "measured": "timed by a clock while hardware moved the data",
    "simulated": (
        "computed by SimGrid from a node model, not measured on hardware: it shows how the "
        "model behaves"
    ),
    "published": "taken from a document, for its machine and software",
    "secondary": "taken from a document that cites another document, which was not checked",
    "theoretical": "a peak that follows from clocks and widths, not from a measurement",
    "derived": "computed from other values, such as a peak times an efficiency, or by definition",
    "fitted": (
        "a parameter of the simulated node, set to reproduce a published value; "
        "agreement with that value is no evidence"
    ),
    "rule": "a limit of any node: by comparison with its peers, or what no healthy node is beyond",
    "calibrated": "a reference computed from repeated sessions of the same machine",
}

#: The modules with added sections, in the order of the page.
ADDED = ("fabricheck.papers.section",)


@functools.cache
def added_sections() -> tuple[ModuleType, ...]:
    """Return the modules with added sections whose package is installed."""
    return tuple(
        importlib.import_module(name)
        for name in ADDED
        if importlib.util.find_spec(name.rpartition(".")[0]) is not None
    )


@functools.cache
def templates() -> jinja2.Environment:
    """Return the templates, which escape the markup of HTML in values."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(
            [
                Path(__file__).with_name("templates"),
                *(section.TEMPLATES for section in added_sections()),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: (
            printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["added"] = added_sections()
    made.filters |= {
        "number": lambda value: number(value) if isinstance(value, float) else str(value),
        "size": size,
        "percent": lambda value: "" if value is None else f"{value:.1f} %",
        "short": short,
    }
    return made
