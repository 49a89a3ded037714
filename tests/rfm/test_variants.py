"""Metrics of the variants of kernels, from what an H200 gave."""

from __future__ import annotations

import importlib.util
import sys
from functools import partial

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.results.document import load
from fabricheck.rfm.metrics import Metric, MetricError

OUTPUTS = ROOT / "tests/outputs/h200/one-device"


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location(
        "variants", ROOT / "reframe_checks/variants/variants.py"
    )
    module = importlib.util.module_from_spec(spec)
    # ReFrame asks for the source of its classes.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def values(metrics, document):
    return {str(one): round(one.figure(document, {}).value) for one in metrics}


@pytest.fixture
def of_256(checks):
    """Metrics of variants with 256 threads, which are those that this document has."""
    return partial(checks.of_variants, blocks=(256,), usual=(256, 1, "plain"))


def test_the_default_and_the_best_variant(checks, of_256):
    document = load(OUTPUTS / "stream_variants.json")
    where = checks.StreamVariantCheck.where
    assert values(of_256("copy", where("copy")), document) == {
        "copy_default": 4283, "copy_best": 4283,
    }  # fmt: skip
    assert values(of_256("read_only", where("read-only")), document) == {
        "read_only_default": 4411, "read_only_best": 4528,
    }  # fmt: skip
    written = of_256("write_only", where("write-only"), (None,))
    assert values(written, document) == {"write_only_default": 4716, "write_only_best": 4716}


def test_a_variant_that_was_not_measured_is_missed(checks, of_256):
    document = load(OUTPUTS / "stream_variants.json")
    document["series"] = [one for one in document["series"] if one["elements"] != 8]
    (_, best) = of_256("copy", checks.StreamVariantCheck.where("copy"))
    with pytest.raises(MetricError, match=r"has no series for .*elements 8"):
        best.figure(document, {})


@pytest.mark.parametrize("name", ["p2p_variants", "p2p_blocks"])
def test_kernels_to_a_peer_are_looked_for_with_the_threads_that_they_are_given(checks, name):
    check = getattr(checks, name)
    given = int(check.arguments[check.arguments.index("--block-size") + 1])
    metrics = check.metrics_of("write", {})
    # The program takes one number of threads: a sweep over blocks need not name it again.
    looked_for = {metric.where.get("block_size", given) for metric in metrics} | {
        values[metric.over.index("block_size")]
        for metric in metrics
        if "block_size" in metric.over
        for values in metric.among
    }
    assert looked_for == {given}


def test_the_fewest_blocks_with_the_best_rate(checks):
    document = load(OUTPUTS / "stream_grid_1024.json")
    where = {**checks.StreamVariantCheck.where("copy"), "bytes": 2 << 30}
    grids = tuple((n,) for n in (1, 2, 4, 8, 16, 33, 66, 132, 264))
    best = Metric("copy_best", where, ("grid",), "best", among=grids)
    units = checks.Units("copy_blocks", where, ("grid",), unit="count", among=grids, compared=best)
    figure = units.figure(document, {})
    # 66 blocks have 3427 of 3917 GB/s: 87 %.
    assert (figure.value, len(figure.series)) == (132, 9)
    assert figure.decisive[0]["grid"] == 132
