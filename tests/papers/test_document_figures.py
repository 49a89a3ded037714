"""Every figure of the five documents has its counterpart, or the reason why there is none."""

import pytest

from fabricheck.core.documents import documents
from fabricheck.judge import coverage
from fabricheck.papers import document_figures, section
from fabricheck.report import contents
from fabricheck.report.figure import Figure, Shown
from fabricheck.results import reading


def test_every_figure_of_the_documents_is_there_once():
    found = document_figures.figures()
    names = [(one.document, one.figure) for one in found]
    assert len(set(names)) == len(names)
    assert {one.document for one in found} == set(list(documents())[:5])
    paper = {figure.rstrip("abc") for document, figure in names if document == "paper"}
    assert paper == {str(number) for number in range(1, 13)}


@pytest.mark.parametrize("one", document_figures.figures(), ids=lambda one: one.figure)
def test_a_figure_names_what_it_needs_or_says_why_it_never_comes(one):
    known = {row.id for row in coverage.experiments()}
    assert set(one.experiments) <= known
    assert bool(one.never) != bool(one.experiments and one.ours)


def test_a_counterpart_is_linked_and_what_lacks_has_a_reason(two_partitions):
    found = section.counterparts(contents.page_contents(reading.read()))
    rows = {(row.theirs.document, row.theirs.figure): row for row in found}
    stream = rows["jsc", "STREAM over size"]
    assert [one.where for one in stream.ours] == ["local:host", "local:sim-mi250x"]
    assert [one.figure.kind for one in stream.ours] == [
        "measured",
        "simulated",
    ] and not stream.why_not
    assert rows["paper", "12"].why_not.startswith("E11: ") and not rows["paper", "12"].ours
    assert all(bool(row.ours) != bool(row.why_not) for row in rows.values())
    assert "application" in rows["hugging-face", "latency of text generation"].why_not


def test_what_was_measured_and_is_not_drawn_is_told(two_partitions):
    rows = section.counterparts(contents.page_contents(reading.read()))
    blocks = next(row for row in rows if row.theirs.figure == "threads and sizes, MI250")
    assert (
        blocks.why_not.startswith("E1: measured")
        and "No figure shows it: that needs" in blocks.why_not
    )


def ours(name, measured, kind="measured", node=""):
    figure = Figure(name, name, kind, "", [], "")
    return Shown("a", figure, "", "", "a:b", node=node, measured=frozenset({measured}))


def test_a_drawing_of_published_values_alone_is_no_counterpart():
    def shown(kind):
        rows = coverage.coverage(None, {})
        found = document_figures.counterparts([ours("hops", "E7", kind)], rows)
        return [row for row in found if row.ours]

    assert len(shown("derived")) == 1 and not shown("published")


@pytest.mark.parametrize(("measured", "figures"), [("E10", {"11"}), ("E11", {"11", "12"})])
def test_a_figure_without_the_experiment_of_the_document_is_no_counterpart(measured, figures):
    rows = coverage.coverage(None, {})
    found = document_figures.counterparts([ours("collectives", measured)], rows)
    assert {row.theirs.figure for row in found if row.ours} == figures


@pytest.mark.parametrize(
    ("node", "figures"),
    [
        ("mi250x", set()),
        ("", set()),
        ("a100-booster", {"4 (Leonardo)"}),
        ("a100-x (2 of 4)", {"4 (Leonardo)"}),
    ],
)
def test_a_figure_of_another_kind_of_node_is_no_counterpart(node, figures):
    curve = ours("placement-curves", "E6", node=node)
    rows = document_figures.counterparts([curve], coverage.coverage(None, {}))
    leonardo = [row for row in rows if row.theirs.nodes and row.ours]
    assert {row.theirs.figure for row in leonardo} == figures
    why = next(row.why_not for row in rows if row.theirs.figure == "4 (Leonardo)")
    assert bool(why) != bool(figures) and (not why or "a node with A100" in why)


def test_what_a_counterpart_is_of_is_told(two_partitions):
    found = section.counterparts(contents.page_contents(reading.read()))
    assert all(ours.node_shown for row in found for ours in row.ours)
    text = {ours.where: ours.node_shown for row in found for ours in row.ours}
    assert text == {"local:host": "a CPU, no GPU", "local:sim-mi250x": "mi250x"}
