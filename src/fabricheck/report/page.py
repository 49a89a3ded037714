"""The files of a report: its page, its summary, and each figure with its data."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jinja2
from markupsafe import Markup

import fabricheck
from fabricheck.core.amounts import number, size
from fabricheck.core.documents import documents
from fabricheck.core.text import printable
from fabricheck.judge import coverage_text
from fabricheck.report import environment, rests_on
from fabricheck.report.contents import Contents
from fabricheck.report.writing import FIGURES, PAGE, SUMMARY

#: What is told apart wherever a number stands: by a shape, a word and a colour. What a mark means
#: the page says at its end.
KINDS: Mapping[str, str] = {
    "measured": "timed by a clock while real hardware moved real data",
    "simulated": (
        "computed by SimGrid from a node model; no such hardware was there, so it says how the "
        "model behaves and nothing of a machine"
    ),
    "published": "taken from a document, of the machine and software of that document",
    "secondary": "taken from a document that cites another one, which nobody has checked",
    "theoretical": "a peak that follows from clocks and widths, not from a measurement",
    "derived": "computed from other values, such as a peak times an efficiency, or by definition",
    "fitted": (
        "a parameter of the simulated node that was set so that a published value comes out; "
        "agreement with that value is no evidence"
    ),
    "calibrated": "a reference made of repeated sessions of the same machine",
}

#: By the kind of a reference which mark it has.
REFERENCE_KINDS: Mapping[str, str] = {
    "published": "published",
    "published elsewhere": "published",
    "derived": "derived",
    "calibration": "calibrated",
    "simulated": "simulated",
}


def files(found: Contents) -> dict[str, str]:
    """Return the files of a report by their path in its folder."""
    page = render("page.html.j2", found)
    figures = [*found.overview, *(one for part in found.parts for one in part.shown)]
    return {
        PAGE: page,
        SUMMARY: render("summary.md.j2", found),
        **{f"{FIGURES}/{one.name}.svg": printable(one.figure.svg) for one in figures},
        **{f"{FIGURES}/{one.name}.csv": printable(one.csv) for one in figures},
    }


def render(template: str, found: Contents) -> str:
    """Return a template filled in; in HTML and Markdown every text is shown as it is."""
    says, kept = environment.software(found.results.sessions)
    return _environment(template.endswith(".html.j2")).get_template(template).render(
        page=found,
        results=found.results,
        session_facts=environment.of_sessions(found.results),
        software=says,
        kept=kept,
        devices=environment.devices,
        sources_of=rests_on.sources,
        documents=documents(),
        coverage_sentence=coverage_text.sentence,
        kinds=KINDS,
        reference_kinds=REFERENCE_KINDS,
        version=fabricheck.__version__,
    )  # fmt: skip


@functools.cache
def _environment(html: bool) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("fabricheck.report"),
        autoescape=html,
        undefined=jinja2.StrictUndefined,
        finalize=_printable if html else _markdown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": cell, "size": size, "cell": cell, "percent": _percent}
    return made


def cell(value: Any) -> str:
    """Return a value as a table shows it: a number with five digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return number(value) if isinstance(value, float) else str(value)
    return str(value)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} %"


def _printable(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


#: What Markdown, and the HTML that it lets through, would take for more than a letter.
_MARKS = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]<>|#~!@$"} | {"&": "&amp;", "\n": " "}
)


def _markdown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value).translate(_MARKS)
    return value
