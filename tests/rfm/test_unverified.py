"""Which messages count as verified: each operation, type and size, on all ranks."""

from types import SimpleNamespace

import pytest

import factories
from fabricheck.rfm import acceptance
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import MetricError
from fabricheck.rfm.ranks import Unverified, cases

CASES = cases(["exchange", "reduce"], [1, 1009])
POPULATION = {"cases": CASES, "ranks": range(2)}
METRIC = Unverified("unverified", over=(), unit="count")


def document(skipped=()):
    series = [
        {
            "experiment": "E12",
            "operation": operation,
            "datatype": datatype,
            "bytes": size,
            "ranks": [0, 1],
            "verification": {"bytes_checked": size},
        }
        for operation, datatype, size in CASES
        if (operation, datatype, size) not in skipped
    ]
    return {"host": {"hostname": "nid1"}, "series": series}


def value(said):
    return METRIC.figure(said, POPULATION).value


def test_bytes_are_not_summed():
    assert ("exchange", "byte", 1009) in CASES
    assert not [case for case in CASES if case[:2] == ("reduce", "byte")]
    assert ("reduce", "double", 8072) in CASES
    assert len(CASES) == 2 * (4 + 3)


def test_all_verified():
    assert value(document()) == 0


def test_each_case_that_lacks_counts():
    assert value(document(skipped=CASES[:3])) == 3


def test_a_size_that_lacks_everywhere_counts_too():
    large = [case for case in CASES if case[2] >= 1009]
    assert value(document(skipped=large)) == len(large) == 7


@pytest.mark.parametrize(
    "changed", [{"ranks": [0]}, {"verification": {"bytes_checked": 0}}, {"experiment": "E10"}]
)
def test_what_was_not_verified_on_all_ranks_counts(changed):
    said = document()
    said["series"][0].update(changed)
    assert value(said) == 1


def test_nothing_verified_is_no_value():
    with pytest.raises(MetricError, match="nothing was verified on all ranks of node nid1"):
        value({"host": {"hostname": "nid1"}, "series": []})


@pytest.mark.parametrize("bound", [None, acceptance.Bound(100.0, "published", "a document")])
def test_a_node_with_an_unknown_peak_says_what_values_have_no_bound(bound):
    check = SimpleNamespace(
        node=SimpleNamespace(name="draft", unknown_peaks=["host_link.peak_gbs"]),
        physical_bound=lambda series, ranks: bound,
    )
    said = [*MeasuringCheck._not_bounded(check, factories.document())]
    whether = "not judged: whether values are possible; unknown of draft: host_link.peak_gbs."
    assert said == ([whether] if bound is None else [])
