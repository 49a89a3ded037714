"""The figures of the recorded session of two H200, all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fabricheck import report
from fabricheck.report.figure import WIDTH, Figure
from fabricheck.report.figures import (
    collectives,
    host,
    matrices,
    node,
    peers,
    placement,
    sections,
    stream,
)
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.observed import Observed
from fabricheck.results.reading import of_session

FOLDER = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"
TEMPLATES = Path(report.__file__).with_name("templates")

#: A colour without hue.
GREY = re.compile(r"#([0-9a-fA-F])\1\1|#([0-9a-fA-F]{2})\2\2")

DRAWERS = (
    host.figures, peers.curves, placement.figures, stream.figures,
    collectives.bandwidths,
)  # fmt: skip


@pytest.fixture(scope="module")
def observed() -> Observed:
    folder = ResultsFolder(FOLDER)
    session = folder.latest()
    (found,) = of_session(folder, session).observed
    return found


@pytest.fixture(scope="module")
def figures(observed: Observed) -> list[Figure]:
    return [figure for drawer in DRAWERS for figure in drawer(observed)]


def test_each_kind_of_figure_is_there(figures: list[Figure]) -> None:
    assert {figure.id for figure in figures} >= {
        "host-best-h2d",
        "host-curves-d2h",
        "host-scaling",
        "placement-pageable",
        "placement-curves",
        "collectives-bus-bandwidth",
        "stream-curves",
        "stream-blocks-triad",
        "stream-devices",
    }


def test_data_are_the_documents_medians(observed: Observed, figures: list[Figure]) -> None:
    known = {
        (point.check, point.operation, point.bytes, point.value, point.interval)
        for point in observed.points
    }
    for figure in figures:
        for row in figure.rows:
            interval = None if row["low"] is None else (row["low"], row["high"])
            value = (row["check"], row["operation"], row["bytes"], row["value"], interval)
            assert value in known, figure.id
        assert figure.csv.count("\n") == len(figure.rows) + 1
        assert len({tuple(row) for row in figure.rows}) == 1, "the same columns in every row"


def test_names_are_those_of_files_and_of_one_figure(figures: list[Figure]) -> None:
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*", figure.id) for figure in figures)
    assert len({figure.id for figure in figures}) == len(figures)
    assert len({figure.title for figure in figures}) == len(figures)


def test_drawings_fit_a_phone(figures: list[Figure]) -> None:
    for figure in figures:
        width = re.search(r'<svg[^>]* width="([\d.]+)"', figure.svg)
        assert width and float(width[1]) <= WIDTH, figure.id
        assert len(figure.svg) < 60_000, figure.id
        letters = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', figure.svg)]
        assert letters and min(letters) >= 10, figure.id


def test_every_black_white_and_grey_of_a_drawing_has_a_colour_in_the_dark(observed, figures):
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    dark = style[style.index("prefers-color-scheme: dark") : style.index("box-sizing")]
    of_node = node.figures(observed)
    drawn = "".join(figure.svg for figure in [*figures, *of_node, *matrices.figures(observed)])
    used = set(re.findall(r'(?:fill|stroke)="(black|white|#[0-9a-fA-F]+)"', drawn))
    greys = {one for one in used if one in ("black", "white") or GREY.fullmatch(one)}
    assert {"black", "white", "#000", "#e5e5e5", "#e3e3e3"} <= greys
    # In the middle of the scale one is seen on white and on black.
    assert {one for one in greys if f'="{one}"]' not in dark} <= {"#888", "#999999"}


def test_the_numbers_in_cells_have_the_name_that_the_style_knows(observed) -> None:
    figure = next(matrices.figures(observed))
    assert "cells_marks" in figure.svg
    assert "cells_marks" in (TEMPLATES / "style.css").read_text(encoding="utf-8")


def test_nothing_gives_no_figure() -> None:
    empty = Observed("h200:x2", (), None)
    assert [figure for drawer in DRAWERS for figure in drawer(empty)] == []


def test_captions_have_no_ids_of_records_and_do_not_repeat_their_title() -> None:
    folder = ResultsFolder(FOLDER.parents[1] / "simulated-mi250x")
    (simulated,) = of_session(folder, folder.latest()).observed
    found, _ = sections(simulated)
    shown = [figure for of_title in found.values() for figure in of_title]
    records = {row.get("record") for figure in shown for row in figure.rows} - {None, ""}
    assert "kth-bw-02" in records
    for figure in shown:
        assert not [record for record in records if record in figure.says], figure.id
        assert not figure.says.startswith(figure.title), figure.id
