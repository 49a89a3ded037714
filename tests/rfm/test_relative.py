"""Members of a node against each other, by values that were computed by hand."""

from __future__ import annotations

from itertools import permutations

import pytest

import factories
from fabricheck.node import load
from fabricheck.rfm import relative
from fabricheck.rfm.metrics import Metric, MetricError
from fabricheck.rfm.pairs import one_each
from peer_percents import percents

COPY = {"operation": "copy"}


def of_devices(values, unit="GB/s"):
    """Return the metric that compares devices, a document with their values, and the devices."""
    better = "lower" if unit == "us" else "higher"
    series = [
        factories.series([value] * 7, device=index, device_set=[index], unit=unit, better=better)
        for index, value in enumerate(values)
    ]
    metric = relative.of_members(Metric("copy_worst", COPY, unit=unit), None)
    return metric, {"series": series}, {"device": range(len(values))}


def test_a_member_is_none_of_the_others(wording):
    metric, document, population = of_devices([100.0, 90.0])
    assert percents(metric, document, population) == pytest.approx([100 / 0.9, 90])
    figure = metric.figure(document, population)
    assert figure.value == pytest.approx(90)
    assert [one["device"] for one in figure.decisive] == [1]
    wording(figure.compared)


def test_of_times_it_is_said_which_is_slower_by_what(wording):
    metric, document, population = of_devices([10.0, 16.0], unit="us")
    figure = metric.figure(document, population)
    assert figure.value == pytest.approx(62.5)
    wording(figure.compared)


def test_a_later_value_is_in_percent_of_the_first_of_the_same_device(wording):
    metric, first, population = of_devices([100.0, 50.0])
    _, later, _ = of_devices([98.0, 40.0])
    figure = relative.of_first(metric.compared).since(first, later, population)
    assert figure.value == pytest.approx(80)
    assert [one["device"] for one in figure.decisive] == [1]
    wording(figure.compared)


def test_shares_of_a_device_are_added_up_and_compared_with_those_of_the_others():
    # Device 0 has 60 and 40 to its neighbours at once, and device 1 has 60 and 20.
    rates = {(0, 2): 60.0, (0, 3): 40.0, (1, 2): 60.0, (1, 3): 20.0}
    series = [
        factories.series(
            [value] * 7, device=ends[1], device_set=[ends[0], 2, 3], role="share",
            experiment="E8", source=factories.place("peer", ends[0]),
            destination=factories.place("device", ends[1]),
        )
        for ends, value in rates.items()
    ]  # fmt: skip
    shares = Metric(
        "read_worst", {"role": "share"}, ("device_set", "source.device", "destination.device"),
        among=tuple(([a, 2, 3], a, b) for a, b in rates),
    )  # fmt: skip
    compared = relative.of_members(shares, None, [0, 0, 1, 1])
    figure = compared.figure({"series": series}, {})
    assert figure.value == pytest.approx(80)
    assert [one["device_set"][0] for one in figure.decisive] == [1, 1]


def test_of_latencies_the_longest_is_behind():
    metric, document, population = of_devices([10.0, 10.0, 12.5], "us")
    figure = metric.figure(document, population)
    assert figure.value == pytest.approx(80)
    assert [one["device"] for one in figure.decisive] == [2]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Of each the two of the other cable: 98 of 90 and 90, and 90 of 100 and 96.
        ([90.0, 90.0, 100.0, 96.0], [90 / 0.98, 90 / 0.98, 100 / 0.9, 96 / 0.9]),
        # Where there is one cable, its two directions.
        ([90.0, 100.0], [90, 100 / 0.9]),
    ],
)
def test_the_other_direction_of_a_cable_is_none_of_the_others(values, expected):
    pairs = ([0, 1], [1, 0], [2, 3], [3, 2])[: len(values)]
    series = [
        factories.series([value] * 7, device=pair[0], device_set=pair)
        for pair, value in zip(pairs, values, strict=True)
    ]
    among = tuple((pair,) for pair in pairs)
    metric = relative.of_members(Metric("copy_worst", COPY, ("device_set",), among=among), None)
    assert percents(metric, {"series": series}, {}) == pytest.approx(expected)


COPIES = {"role": "single", "source.memory": "host-pageable", "destination.memory": "device"}


@pytest.mark.parametrize(
    ("where", "over", "kind"),
    [
        (COPIES, "device", "pageable"),
        (COPIES | {"source.memory": "host-pinned"}, "device", "host_link"),
        (
            COPIES | {"source.memory": "host-pinned", "role": "share"},
            "device",
            "host_links_at_once",
        ),
        (COPIES | {"source.memory": "managed", "movement": "prefetch"}, "device", "migration"),
        ({"engine": "mpi"}, "ranks", "message"),
    ],
)
def test_the_kind_of_transfer_is_what_the_metric_states(where, over, kind):
    metric = Metric("copy_worst", where, (over,), independent=True)
    assert relative.kind_of_metric(metric, load("mi250x")) == kind


@pytest.mark.parametrize(
    ("where", "over", "missing"),
    [
        (COPY, "device", "role, source.memory, destination.memory"),
        ({"role": "single", "destination.memory": "device"}, "device", "source.memory"),
        (COPIES | {"source.memory": "managed"}, "device", "movement"),
        (COPY, "ranks", "source.memory, destination.memory"),
    ],
)
def test_a_metric_that_leaves_out_what_tells_its_kind_has_no_limit_of_peers(where, over, missing):
    """Taken for kernels, pageable copies of a healthy node would be too far behind each other."""
    metric = Metric("copy_worst", where, (over,), independent=True)
    with pytest.raises(MetricError, match=rf"copy_worst is .*: state {missing} in its `where`"):
        relative.alike([metric], {over: range(8)}, load("mi250x"))


@pytest.mark.parametrize(("ways", "joint"), [(1, []), (2, ["pageable_alike"])])
def test_all_ways_together_are_compared_where_there_are_several(ways, joint):
    metrics = [
        Metric(f"{way}_worst", COPIES | {"operation": way}, ("device",), independent=True)
        for way in ("h2d", "d2h")[:ways]
    ]
    compared = relative.alike(metrics, {"device": range(8)}, load("mi250x"))
    assert [one.name for one in compared if one.name == "pageable_alike"] == joint


@pytest.mark.parametrize(
    ("unit", "alone", "beside", "percent"), [("GB/s", 50.0, 40.0, 80), ("us", 100.0, 125.0, 80)]
)
def test_what_works_beside_something_else_is_in_percent_of_itself_alone(
    unit, alone, beside, percent
):
    better = "lower" if unit == "us" else "higher"
    series = [
        factories.series(
            [value] * 7, device=device, device_set=[device], role=role, unit=unit, better=better
        )
        for device, found in enumerate((alone, beside))
        for role, value in (("single", alone), ("beside", found))
    ]
    metrics = (
        Metric("copy_beside", {**COPY, "role": role}, unit=unit) for role in ("beside", "single")
    )
    figure = relative.beside(*metrics).figure({"series": series}, {"device": range(2)})
    assert figure.value == pytest.approx(percent)
    assert [one["device"] for one in figure.decisive] == [1]
    assert figure.metric.unit == "%"


@pytest.mark.parametrize(
    ("others", "shared_by"),
    [([], 1), ([0, 6], 2), ([6, 0], 1)],
    ids=["alone", "a link with another pair", "a link the other way"],
)
def test_pairs_at_once_share_the_busiest_link_of_their_way(others, shared_by):
    """On mi250x data from 1 to 7 go by 0 and 6; of the three links another pair uses one."""
    node = load("mi250x")
    series = [
        factories.series(
            [value] * 7, device=None, device_set=devices, role=role, ranks=[0, 1], engine="mpi",
            source=factories.place(device=1), destination=factories.place(device=7),
        )
        for role, devices, value in [("single", [1, 7], 60.0), ("share", [1, 7, *others], 15.0)]
    ]  # fmt: skip
    at_once, alone = (
        Metric(role, COPY | {"role": role}, ("ranks",), among=one_each([(0, 1)]))
        for role in ("share", "single")
    )
    figure = relative.of_single(at_once, alone, node=node).figure({"series": series}, {})
    assert figure.value == pytest.approx(100 * 15 * shared_by / 60)


def all_at_once(model, total, alone):
    """Return the metric of kernels between all devices of a model, and a document of them.

    alone: what a pair reaches by itself, by the links between its devices; total: of all at once.
    """
    node = load(model)
    pairs = list(permutations(range(len(node.devices)), 2))
    where = {"operation": "write", "role": "single"}
    every = list(range(len(node.devices)))
    series = [
        factories.series(
            [alone[node.link_class(*pair).links]] * 7,
            device=pair[0], device_set=[*pair], operation="write",
        )
        for pair in pairs
    ]  # fmt: skip
    series.append(
        factories.series([total] * 7, device=None, device_set=every, operation="write", role="sum")
    )
    single = Metric("write", where, ("device_set",), among=one_each(pairs))
    of = Metric("write_sum", where | {"role": "sum"}, ("device_set",), among=one_each([every]))
    return relative.of_links("write_of_links", of, single, node), {"series": series}


def test_behind_a_switch_each_pair_has_its_part_of_its_device(wording):
    metric, document = all_at_once("h200", 8 * 400, {18: 400.0})
    figure = metric.figure(document, {})
    assert metric.name == "write_of_links"
    assert figure.value == pytest.approx(100)
    wording(figure.compared)


def test_the_narrowest_link_between_all_devices_decides():
    """The single link from 0 to 2 of mi250x has the data of 0-2, 0-4, 1-2 and 6-2: a fourth each.

    Of the links of two and four no one has more than five and six pairs.
    """
    rates = {4: 160.0, 2: 80.0, 1: 40.0}
    metric, document = all_at_once("mi250x", 560, rates)
    figure = metric.figure(document, {})
    assert figure.value == pytest.approx(100)
    total, narrow = figure.decisive
    assert total["role"] == "sum" and load("mi250x").link_class(*narrow["device_set"]).links == 1
    metric, document = all_at_once("mi250x", 420, rates)
    assert metric.figure(document, {}).value == pytest.approx(75)
