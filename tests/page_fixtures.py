"""Fixtures of the tests of a page: a session of two partitions, a drawing that takes no time."""

import pytest

import factories
from fabricheck.report import figures
from fabricheck.report.figure import Figure
from factories import judged
from session_builder import HOST, SessionBuilder, without_limits

DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40" viewBox="0 0 90 40">'
    '<defs><clipPath id="clip"><rect width="90" height="40"/></clipPath></defs>'
    '<g clip-path="url(#clip)" role="graphics-object" aria-label="bars"><text>{}</text></g></svg>'
)


def drawer(observed):
    """Yield one figure with a title that HTML would take for more than text."""
    title = "Copies & <b>kernels</b>"
    rows = [{"device": 0, "kind": observed.clock, "value": 1.23456789, "note": "a<b"}]
    yield Figure("stream-curves", title, observed.clock, "One device: 1.2 GB/s.", rows, DRAWING)


@pytest.fixture
def one_figure(monkeypatch):
    """Let each partition have one figure, in one section."""
    monkeypatch.setattr(figures, "SECTIONS", {"Between host and device": (drawer,)})


@pytest.fixture
def two_partitions(results_folder, one_figure):
    """A session of a measured partition and a simulated one; both passed."""
    name = "local:sim-mi250x"
    session = SessionBuilder(results_folder, where=HOST, command=None)
    session.passed(perfvalues=without_limits({"copy_worst": 10.0}))
    session.passed(
        "stream_scan",
        document=factories.simulated_document(),
        where=name,
        environ="sim",
        perfvalues={f"{name}:triad_worst": judged(9.5), f"{name}:triad_median": judged(9.6)},
    )
    return session.write()
