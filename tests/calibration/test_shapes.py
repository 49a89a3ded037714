"""The shape of kernels that sessions propose, of what an H100 and an H200 recorded."""

import json
from pathlib import Path

import pytest
from calibrate_command import run

from fabricheck.judge.calibration.shapes import Shape, proposed, rates
from fabricheck.node import products
from session_builder import several

OUTPUTS = Path(__file__).parents[1] / "outputs"
PLAIN_256 = Shape(256, 1, "plain")
STEADY = [100.0, 100.5, 99.5, 100.0, 100.2, 99.9]


def recorded(device):
    return json.loads((OUTPUTS / device / "kernel_shapes.json").read_text())


@pytest.mark.parametrize(
    "device, best", [("h100", Shape(1024, 1, "plain")), ("h200", Shape(256, 1, "plain"))]
)
def test_the_table_has_the_best_shape_that_was_recorded(device, best):
    document = recorded(device)
    rate_of = rates([document])
    assert max(rate_of, key=rate_of.__getitem__) == best
    (name,) = {one["name"] for one in document["devices"]}
    assert Shape.stated(products.kernel_shape(name)) == best
    assert proposed([rate_of], best) is None


def test_what_is_faster_in_every_session_is_proposed():
    rate_of = rates([recorded("h100")])
    shape, gain, sessions = proposed([rate_of, rate_of], PLAIN_256)
    assert (shape, sessions) == (Shape(1024, 1, "plain"), 2)
    assert gain == pytest.approx(0.0074, abs=0.0002)


@pytest.mark.parametrize(
    "others",
    [
        {PLAIN_256: 100.0, Shape(1024, 1, "plain"): 100.1},  # once it was hardly faster
        {PLAIN_256: 100.0, Shape(1024, 1, "plain"): 95.0},  # once it was slower
        {PLAIN_256: 100.0},  # once it was not tried
    ],
)
def test_what_is_not_faster_in_every_session_is_not_proposed(others):
    rate_of = {PLAIN_256: 100.0, Shape(1024, 1, "plain"): 101.0}
    assert proposed([rate_of], PLAIN_256) is not None
    assert proposed([rate_of, others], PLAIN_256) is None


def test_sessions_without_the_present_shape_propose_nothing():
    assert proposed([{Shape(128, 1, "plain"): 100.0}, {}], PLAIN_256) is None


def test_a_shape_that_lacks_a_kernel_has_no_rate():
    document = recorded("h100")
    slow = Shape(64, 1, "plain")
    document["series"] = [
        series
        for series in document["series"]
        if (series["block_size"], series["operation"]) != (64, "triad")
    ]
    assert slow in rates([recorded("h100")])
    assert slow not in rates([document])


def test_calibrate_proposes_a_shape(command, tmp_path):
    document = recorded("h100")
    names = {"MI250X": [{**document["devices"][0], "name": "AMD Instinct MI250X", "pci_id": None}]}
    parts = {"devices": names["MI250X"], "series": document["series"]}
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(
        "stream_local:\n  local:host:\n    copy_worst: [98, -0.05, null, GB/s]\n"
    )
    sessions = several(tmp_path, STEADY, document=parts)
    shown = run(command, references, sessions).stderr
    assert "block_size: 1024, elements: 1, loads: plain" in " ".join(shown.split())
