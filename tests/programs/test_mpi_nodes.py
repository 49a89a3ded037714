"""`mpi` between nodes: two nodes of a scheduler that are this machine, and its loopback."""

from __future__ import annotations

import pytest

BETWEEN = (
    "--pairs",
    "counterparts",
    "--together",
    "nodes",
    "--collectives",
    "none",
    "--types",
    "none",
)
QUICK = (
    "--sizes",
    "64KiB",
    "--batch-time",
    "0.0001",
    "--warm-up",
    "0",
    "--series-time",
    "0",
    "--noise-limit",
    "10",
)

#: Messages of ranks on one machine go over its loopback.
LOOPBACK = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}


@pytest.fixture
def launch(on_nodes):
    """Run `mpi` with so many ranks on each of some nodes; return its document."""

    def launch(*arguments, nodes=("n0", "n1"), ranks=2, **more):
        return on_nodes("mpi", *BETWEEN, *QUICK, *arguments, nodes=nodes, ranks=(ranks,), **more)

    return launch


@pytest.mark.slow
def test_counterparts_alone_and_at_once_are_messages_between_nodes(launch):
    document = launch(
        "--operations", "latency,bandwidth,bandwidth-both", "--single-messages", "200"
    )
    assert {one["experiment"] for one in document["series"]} == {"E17"}
    assert [one["host"] for one in document["ranks"]] == ["n0", "n0", "n1", "n1"]

    def ranks(**wanted):
        return [
            one["ranks"]
            for one in document["series"]
            if all(one[key] == value for key, value in wanted.items())
        ]

    alone = [[0, 2], [2, 0], [1, 3], [3, 1]]
    assert ranks(operation="bandwidth", role="single") == alone
    assert ranks(operation="bandwidth", role="sum") == [[0, 2, 1, 3], [2, 0, 3, 1]]
    assert ranks(operation="bandwidth-both", role="single") == [[0, 2], [1, 3]]
    latencies = [one for one in document["series"] if one["operation"] == "latency"]
    assert [one["ranks"] for one in latencies] == alone
    for one in latencies:
        assert one["p99"] > 0
    # Devices of two nodes are not taken for each other.
    assert [one["device"] for one in document["ranks"]] == [0, 1, 2, 3]
    assert {one["name"] for one in document["nics"] if one["node"] == "n1"}


def test_messages_through_shared_memory_are_seen_not_to_leave_the_node(launch):
    document = launch("--operations", "latency", ranks=1)
    for rank in document["ranks"]:
        assert rank["network"] == {
            "nics": [],
            "transport": "within-node",
            "provider": None,
            "place": None,
        }


def test_messages_over_the_loopback_are_seen_to_be_the_kernels(launch, tmp_path):
    places = tmp_path / "places"
    places.write_text("n0 a leaf1\nn1 a leaf2\n")
    document = launch(
        *("--operations", "bandwidth", "--places", str(places), "--map", "0,0"),
        ranks=1,
        **LOOPBACK,
    )
    for rank in document["ranks"]:
        network = rank["network"]
        assert network["transport"] == "kernel"
        assert network["provider"] == "tcp"
        assert network["nics"][0]["name"] == "lo"
        assert network["nics"][0]["part"] >= 1
        assert network["place"]["group"] == "a"
    for one in document["series"]:
        if one["role"] != "sum":
            assert one["distance"] == "same-group"


@pytest.mark.parametrize(
    ("nodes", "arguments", "code", "said"),
    [
        (("n0", "n0"), (), 3, "counterparts are ranks of two nodes, and the launch has one: n0"),
        (("n0", "n1"), ("--places", "/nowhere"), 2, "'/nowhere' cannot be read"),
    ],
)
def test_a_launch_that_cannot_be_is_refused(launch, nodes, arguments, code, said):
    document = launch(*arguments, nodes=nodes, ranks=1, code=code)
    assert said in document["outcome"]["message"]
