"""What NICs allow messages between nodes, and NICs of a node against each other."""

from __future__ import annotations

import pytest

import factories
from fabricheck.node import load
from fabricheck.references.published import FILE, OWN_FOLDER, at
from fabricheck.rfm import acceptance, relative
from fabricheck.rfm.metrics import Metric
from peer_percents import percents

DATA = at(OWN_FOLDER / FILE)
MI250X = load("mi250x")
PAIRS = [[0, 4], [1, 5], [2, 6], [3, 7], [4, 0], [5, 1], [6, 2], [7, 3]]
DEVICES = (1, 3, 5, 7)


def message(ranks, value=23.8, **changes):
    """Build messages between the counterparts of two nodes that have a rank beside each NIC."""
    on = DEVICES[ranks[0] % 4]
    own = {
        "experiment": "E17",
        "operation": "bandwidth",
        "device": None,
        "device_set": [on],
        "ranks": list(ranks),
        "source": factories.place(device=on),
        "destination": factories.place(device=on),
        "engine": "mpi",
        "direction": "one-way",
        "bytes_counted": "once",
    }
    return factories.series([value] * 7, **own | changes)


def rank(number, *nics):
    """Build a rank whose counters showed these NICs; none where they cannot be read."""
    used = [{"name": name, "part": 1 / len(nics)} for name in nics]
    network = {"nics": used, "transport": "nic", "provider": "cxi", "place": None}
    return {"rank": number, "host": f"node{number // 4}", "network": network if nics else None}


BOTH = {"operation": "bandwidth-both", "direction": "both-ways"}


@pytest.mark.parametrize(
    ("series", "ranks", "value", "how"),
    [
        # The NIC that the counters show; UCX and MPICH may use several for one rank.
        (message([0, 4]), [rank(0, "cxi0")], 25, "1 x 25 GB/s of NIC cxi0"),
        (message([0, 4]), [rank(0, "cxi0", "cxi1")], 50, "1 x 50 GB/s of NIC cxi0, cxi1"),
        (message([0, 4], **BOTH), [rank(0, "cxi0")], 50, "2 x 25 GB/s of NIC cxi0"),
        (message([0, 4], role="share"), [rank(0, "cxi0")], 25, "1 x 25 GB/s of NIC cxi0"),
        # Where none can be read, or another one is, all of the node.
        (message([0, 4]), [], 100, "all NICs of a node"),
        (message([0, 4]), [rank(0)], 100, "all NICs of a node"),
        (message([0, 4]), [rank(0, "eth0")], 100, "all NICs of a node"),
        # A sum is that of a node's NICs, or of several nodes that send at once.
        (message([0, 4, 1, 5], role="sum"), [rank(0, "cxi0"), rank(1, "cxi1")], 100, "of a node"),
        (message([0, 4, 4, 0], role="sum"), [rank(0, "cxi0"), rank(4, "cxi0")], 200, "of 2 nodes"),
        (message([0, 4, 1, 5], role="sum", **BOTH), [], 200, "2 x 100 GB/s"),
    ],
)
def test_messages_are_bounded_by_the_nics(series, ranks, value, how):
    bound = acceptance.node_bound(MI250X, series, ranks)
    assert (bound.value, bound.origin) == (value, "derived")
    assert how in bound.how


def test_a_node_without_nics_has_no_bound_and_a_latency_is_positive():
    assert acceptance.node_bound(load("h200"), message([0, 4])) is None
    latency = message([0, 4], unit="us", better="lower", operation="latency")
    assert acceptance.node_bound(MI250X, latency).value == 0


@pytest.mark.parametrize(
    ("operation", "ranks", "value"),
    [("allreduce", 16, 187.5), ("allgather", 16, 187.5), ("reduce_scatter", 8, 175.0),
     ("bcast", 16, 100.0), ("exchange", 16, 100.0)],
)  # fmt: skip
def test_the_bus_of_a_collective_may_exceed_the_nics_and_its_bytes_may_not(operation, ranks, value):
    series = message(range(ranks), operation=operation, direction="collective",
                     bytes_counted="bus", engine="rccl")  # fmt: skip
    assert acceptance.node_bound(MI250X, series).value == value


@pytest.mark.parametrize("record", ["lumirfm-rccl-2n", "cscs-mi200-allreduce"])
def test_published_collectives_of_two_nodes_are_within_the_bound(record):
    series = message(range(16), operation="allreduce", direction="collective",
                     bytes_counted="bus", engine="rccl")  # fmt: skip
    assert DATA.record(record).value <= acceptance.node_bound(MI250X, series).value


def test_a_rate_above_its_nic_is_impossible():
    figure = relative.Figure(Metric("bandwidth_worst"), 26.0, (message([0, 4], 26.0),), ())
    ranks = [rank(0, "cxi0")]
    faults = acceptance.figure_faults(
        factories.document(), [figure], lambda one: acceptance.node_bound(MI250X, one, ranks)
    )
    (fault,) = faults
    assert "reported 26 GB/s, above the derived physical bound of 25 GB/s" in fault


def of_nics(values, operation="bandwidth"):
    """Return the metric that compares the NICs of two nodes, and a document with their rates."""
    where = {"experiment": "E17", "operation": operation, "engine": "mpi"}
    among = tuple((pair,) for pair in PAIRS)
    metric = Metric(f"{operation}_worst", where, ("ranks",), among=among, alike=True)
    series = [message(pair, value, operation=operation)
              for pair, value in zip(PAIRS, values, strict=True)]  # fmt: skip
    (made,) = relative.alike([metric], {}, MI250X)
    return made, {"series": series}


@pytest.mark.parametrize(("operation", "least"), [("bandwidth", -0.06), ("bandwidth-both", -0.12)])
def test_nics_of_a_launch_are_alike(operation, least):
    # Both directions of the third NIC of a node are slow, and none of the others is blamed.
    metric, document = of_nics([24.0, 24.0, 22.0, 24.0, 24.0, 24.0, 21.0, 24.0], operation)
    assert metric.rule.entry == (100, least, None, "%")
    figure = metric.figure(document, {})
    assert figure.value == pytest.approx(100 * 21 / 24)
    assert [one["ranks"] for one in figure.decisive] == [[6, 2]]
    assert min(one for one in percents(metric, document, {}) if one > 95) == pytest.approx(100)


def test_the_published_spread_of_lumi_passes():
    rates = [DATA.record(f"thesis-lumi-bw-gcd{device}").value for device in DEVICES]
    metric, document = of_nics([*rates, *rates])
    assert metric.figure(document, {}).value >= 100 * (1 + metric.rule.entry[1])
