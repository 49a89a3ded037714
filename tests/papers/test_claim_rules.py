"""What rules share: noise, kinds of devices, published numbers, and what is no evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases_host import beside_pinned, copy, zero_copy
from cases_local import each, large_blocks, stream
from cases_ranks import launch, right
from observations import BY_ID, around, judged, of, partition, simulated
from test_claims import CASES

import check_rows
import factories
from fabricheck.papers.claims.groups import Group, measured
from fabricheck.papers.claims.kinds import Limits, equal, level
from fabricheck.papers.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED
from fabricheck.papers.claims.model import published as number


def series_of(built, value, spread):
    """Return a series with samples around a value, and so with an interval."""
    noise = factories.series(around(value, spread))
    return built | {name: noise[name] for name in ("samples", "median", "mad", "ci95")}


@pytest.mark.parametrize(("spread", "outcome"), [(0.001, REPRODUCED), (0.1, REFUTED)])
def test_faster_needs_intervals_that_do_not_meet(spread, outcome):
    pinned = series_of(copy("h2d", 28.3), 28.3, spread)
    managed = series_of(zero_copy(), 25.5, spread)
    assert judged("pinned-above-zero-copy", of(pinned, managed)).outcome == outcome


def point(value, spread):
    """Return a series with samples around a value as rules have it."""
    (found,) = of(factories.series(around(value, spread))).points
    return measured(found)


def group(*values, statistic="each"):
    return Group("copies", lambda observed: dict(enumerate(values)), "device", statistic)


@pytest.mark.parametrize(("spread", "outcome"), [(0.001, REFUTED), (0.1, REPRODUCED)])
def test_a_value_or_a_ratio_may_be_any_that_its_interval_allows(spread, outcome):
    one, other = group(point(115.0, spread)), group(point(100.0, spread))
    assert level((one, Limits(90.0, 110.0)))(partition()).outcome == outcome
    assert equal(one, other, Limits(1.0, part=0.1))(partition()).outcome == outcome


@pytest.mark.parametrize(("statistic", "value"), [("mean", 30.0), ("median", 20.0)])
def test_what_stands_for_a_group_has_no_interval(statistic, value):
    several = group(*(point(one, 0.5) for one in (10.0, 20.0, 60.0)), statistic=statistic)
    for away, outcome in ((0.01, REPRODUCED), (2.0, REFUTED)):
        rule = level((several, Limits(value + away, points=1.0)))
        assert rule(partition()).outcome == outcome


@pytest.mark.parametrize("name", BY_ID)
def test_no_claim_is_testable_on_virtual_devices_or_without_a_document(name):
    virtual = judged(name, of(stream(30.0), runtime="host", node=None))
    assert virtual.outcome == NOT_TESTABLE and "share the memory" in virtual.because
    assert judged(name, partition()).outcome == NOT_TESTABLE


def test_what_was_fitted_to_it_is_no_evidence_on_a_simulated_node_only():
    twin = judged("local-stream-87", partition(simulated(*each(1400.0))))
    real = judged("local-stream-87", of(*each(1400.0)))
    assert (twin.outcome, real.outcome) == (REPRODUCED, REPRODUCED)
    assert twin.fitted and twin.by_construction
    assert not real.fitted and not real.by_construction
    assert {one.kind for one in twin.numbers} == {"simulated"}


def test_published_numbers_are_those_of_the_records_with_their_places():
    verdict = judged("pinned-79-of-link", of(copy("h2d", 28.3)))
    stated = {one.record: one for one in verdict.published}
    assert set(stated) == set(BY_ID["pinned-79-of-link"].records)
    assert stated["paper-h2d-pinned"].value == 28.3
    assert {one.kind for one in stated.values()} == {"published"}
    assert number("jsc-copy").value == 1420.0 and number("jsc-copy").unit == "GB/s"
    assert number("epicure-lumi-single-full").value == pytest.approx(25.1895)


def test_without_the_data_set_claims_with_records_are_not_testable(tmp_path, monkeypatch):
    (tmp_path / "published_values.yaml").write_text("records: no list\n")
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path))
    verdict = judged("pinned-79-of-link", of(copy("h2d", 28.3)))
    assert verdict.outcome == NOT_TESTABLE
    assert "published_values.yaml" in verdict.because


def test_pinned_has_to_be_faster_at_every_size_above_32_mb():
    assert judged("zero-copy-follows-pinned", beside_pinned(0.98, 1.0)).outcome == REFUTED


@pytest.mark.parametrize("last", [17.6, 6.0])
def test_a_rank_that_gains_nothing_or_too_much_refutes_that_each_gains(last):
    wrong = launch("in_order", [12.0] * 7 + [last])
    assert judged("right-above-wrong-each", partition(right(), wrong)).outcome == REFUTED


@pytest.mark.parametrize("name", ["right-above-wrong-mean", "right-above-wrong-each"])
def test_placements_of_different_numbers_of_ranks_are_not_compared(name, wording):
    verdict = judged(name, partition(right(), launch("in_order", [12.0] * 4)))
    assert verdict.outcome == NOT_TESTABLE
    wording(verdict.because)


def test_a_claim_on_a_domain_for_each_package_is_not_of_nodes_where_several_share_one():
    pinned = [factories.host_copy("h2d", 0, domain) for domain in (0, 1)]
    verdict = judged("numa-of-single-transfer", of(*pinned, node="mi250-two-sockets"))
    assert verdict.outcome == NOT_TESTABLE and "several share one" in verdict.because


def test_blocks_of_fewer_threads_than_the_document_has_are_not_judged():
    among = large_blocks(1100.0, 1245.0, 1440.0, least=64)
    assert judged("blocks-76-to-88", of(*among)).outcome == REPRODUCED
    few = judged("blocks-76-to-88", of(*large_blocks(1100.0, 1440.0, least=64)))
    assert few.outcome == NOT_TESTABLE and "128 threads" in few.because


def test_a_noisy_series_is_told():
    assert judged("pinned-79-of-link", of(copy("h2d", 28.3, noisy=True))).noisy
    assert not judged("pinned-79-of-link", of(copy("h2d", 28.3))).noisy


def test_noise_of_any_series_behind_a_median_is_told():
    of_several = 0
    for name, cases in CASES.items():
        observed = cases.reproduced()
        quiet = judged(name, observed)
        if not any(one.computed for one in quiet.numbers):
            continue
        of_several += 1
        noisy = [
            one | {"series": [series | {"noisy": True} for series in one["series"]]}
            for one in observed.documents
        ]
        found = judged(name, replace(observed, checks=check_rows.checks(*noisy))).numbers
        assert not quiet.noisy, name
        assert all(one.noisy for one in found if one.unit in ("GB/s", "percent")), name
    assert of_several > 20


def test_noise_of_one_rank_of_eight_is_told():
    noisy = right()
    noisy["series"][5]["noisy"] = True
    wrong = launch("in_order", [12.0] * 8)
    assert judged("right-above-wrong-mean", partition(noisy, wrong)).noisy
    assert not judged("right-above-wrong-mean", partition(right(), wrong)).noisy
