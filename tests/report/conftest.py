"""A session that a page is made of, and figures that take no time."""

import pytest
from report_sessions import drawer, judged, write

import factories
from fabricheck.report import figures


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
