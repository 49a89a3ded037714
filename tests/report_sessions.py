"""What sessions that a page is made of consist of, and a drawing that takes no time."""

import json

import pytest

import factories
from fabricheck.report import figures
from fabricheck.report.figure import Figure
from factories import judged

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


def write(results, name, document):
    """Write the document of a check that passed, and what its metrics are made of."""
    path = factories.write(factories.case_folder(results, name) / "result.json", document)
    for report in results.glob("reports/run-*.json"):
        for case in json.loads(report.read_text())["runs"][-1]["testcases"]:
            if case["unique_name"] == name:
                factories.write_metrics(path, case.get("perfvalues") or {})
    return path


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
