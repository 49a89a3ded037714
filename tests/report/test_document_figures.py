"""Every figure of the five documents has its counterpart, or the reason why there is none."""

import pytest

from fabricheck import coverage
from fabricheck.report import contents, document_figures, gather
from fabricheck.report.document_figures import Ours


def test_every_figure_of_the_documents_is_there_once():
    found = document_figures.figures()
    names = [(one.document, one.figure) for one in found]
    assert len(set(names)) == len(names)
    assert {one.document for one in found} == set(document_figures.documents())
    paper = {figure.rstrip("abc") for document, figure in names if document == "paper"}
    assert paper == {str(number) for number in range(1, 13)}


@pytest.mark.parametrize("one", document_figures.figures(), ids=lambda one: one.figure)
def test_a_figure_names_what_it_needs_or_says_why_it_never_comes(one):
    known = {row.id for row in coverage.experiments()}
    assert set(one.experiments) <= known
    assert bool(one.never) != bool(one.experiments and one.ours)


def test_a_counterpart_is_linked_and_what_lacks_has_a_reason(two_partitions):
    page = contents.of(gather.gather("latest"))
    rows = {(row.theirs.document, row.theirs.figure): row for row in page.counterparts}
    five = rows["paper", "5"]
    assert [one.where for one in five.ours] == ["local:host", "local:sim-mi250x"]
    assert [one.kind for one in five.ours] == ["measured", "simulated"] and not five.why_not
    assert rows["paper", "12"].why_not.startswith("E11: ") and not rows["paper", "12"].ours
    assert all(bool(row.ours) != bool(row.why_not) for row in rows.values())
    assert "application" in rows["hugging-face", "latency of text generation"].why_not


def test_what_was_measured_and_is_not_drawn_is_told(two_partitions):
    rows = contents.of(gather.gather("latest")).counterparts
    stream = next(row for row in rows if row.theirs.figure == "STREAM over size")
    assert stream.why_not.startswith("E1: measured") and "no figure shows it" in stream.why_not


def test_a_drawing_of_published_values_alone_is_no_counterpart():
    def shown(kind):
        ours = [Ours("a", "hops", "Paths", "local:host", kind)]
        rows = coverage.coverage(None, [], frozenset(), {}, {})
        return [row for row in document_figures.counterparts(ours, rows) if row.ours]

    assert len(shown("derived")) == 1 and not shown("published")
