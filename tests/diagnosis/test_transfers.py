"""Which resources a measured transfer shows, and by how much each could be slower unseen."""

from __future__ import annotations

import math

import pytest

import factories
from fabricheck.judge.diagnosis.transfers import Routes, by_level, transfers
from fabricheck.node import load
from fabricheck.node.platform import End, Resource


def copy(source, destination, median=100.0, devices=None):
    """Build a copy from device to device; of several devices it is one of those at once."""
    return factories.series(
        [median] * 7, experiment="E7", operation="engine", engine="copy-engine",
        direction="one-way", block_size=None, bytes_moved=1 << 28, bytes_counted="once",
        role="share" if devices else "single", device=source,
        device_set=devices or [source, destination],
        source=factories.place(device=source), destination=factories.place("peer", destination),
    )  # fmt: skip


def passed(model, *series):
    """Return the transfers of a document on a node of a model, in their order."""
    routes = Routes(load(model))
    by_key = transfers({"p2p_engine": factories.document(series=list(series))}, routes)
    return routes, by_key


FROM_0 = Resource("transfers at once from {0}", End("device", 0))
TO_0 = Resource("transfers at once to {1}", None, End("device", 0))


@pytest.mark.parametrize(
    ("pairs", "together"),
    [
        ([(0, 1), (0, 2)], {FROM_0}),
        ([(1, 0), (2, 0)], {TO_0}),
        ([(0, 1), (2, 3)], set()),
    ],
)
def test_what_limits_transfers_at_once_together_is_of_the_device_that_all_have(pairs, together):
    devices = sorted({device for pair in pairs for device in pair})
    _, by_key = passed("mi250x", *(copy(*pair, devices=devices) for pair in pairs))
    assert len(by_key) == len(pairs)
    for transfer in by_key.values():
        at_once = {name for name in transfer.slack if name.kind.startswith("transfers at once")}
        assert at_once == together


def test_of_transfers_at_once_the_slower_has_so_much_more_slack_as_it_is_slower():
    routes, by_key = passed("mi250x", *(copy(0, other, devices=[0, 2, 6]) for other in (2, 6)))
    slower, faster = by_key.values()
    narrow = min(
        gbs for name, gbs in routes.gbs.items() if name.kind == "link {0.number}-{1.number}"
    )
    assert slower.gbs == pytest.approx(narrow) and narrow < faster.gbs
    more = slower.slack[FROM_0] - faster.slack[FROM_0]
    assert more == pytest.approx(math.log(faster.gbs / slower.gbs))


@pytest.mark.parametrize(("part", "is_far"), [(0.5, True), (0.9, False)])
def test_a_rate_far_below_its_narrowest_peak_is_limited_by_what_has_no_peak(part, is_far):
    """A model without a simulation states peaks alone: how fast its engines are is unknown."""
    peak = load("h200").peer_peak_gbs(0, 1)
    routes, by_key = passed("h200", copy(0, 1, part * peak))
    (before,) = by_key.values()
    (after,) = by_level(by_key, routes, {}).values()
    narrowest = {
        name for name, slack in before.slack.items() if slack == 0 and routes.gbs[name] == peak
    }
    engines = {name for name in before.slack if math.isinf(routes.gbs[name])}
    assert narrowest and engines
    beyond = pytest.approx(-math.log(part))
    assert {name: after.loose[name] for name in narrowest} == dict.fromkeys(narrowest, beyond)
    assert {name: after.loose[name] for name in engines} == dict.fromkeys(engines, 0.0)
    assert after.slack == (after.loose if is_far else before.slack)
