"""A session that a page is made of, and figures that take no time."""

import functools
from types import SimpleNamespace

import pytest
from report_sessions import drawer, judged, write

import factories
from fabricheck.report import figure, figures


class OnDemand:
    """Draws a figure when its drawing is asked for: most tests look at its rows alone."""

    def __init__(self, pen):
        self.pen = pen

    def submit(self, *drawing):
        return SimpleNamespace(result=functools.cache(lambda: self.pen().submit(*drawing).result()))


@pytest.fixture(autouse=True)
def _draws_on_demand(monkeypatch):
    monkeypatch.setattr(figure, "_pen", functools.partial(OnDemand, figure._pen))


@pytest.fixture
def one_figure(monkeypatch):
    """Let each partition have one figure, in one section."""
    monkeypatch.setattr(figures, "SECTIONS", {"Between host and device": (drawer,)})


@pytest.fixture
def two_partitions(results_folder, one_figure):
    """A session of a measured partition and a simulated one; both passed."""
    name = "local:sim-mi250x"
    simulated = factories.case(
        "stream_scan",
        partition="sim-mi250x",
        environ="sim",
        perfvalues={f"{name}:triad_worst": judged(9.5), f"{name}:triad_median": judged(9.6)},
    )
    host = factories.case(perfvalues={"local:host:copy_worst": judged(10.0, 0, None, None)})
    factories.session(results_folder, [host, simulated])
    write(results_folder, "stream_local", factories.document())
    write(results_folder, "stream_scan", factories.simulated_document())
    return results_folder
