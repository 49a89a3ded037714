"""Simulated systems: messages between nodes have the NICs that the model and the overlay say."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricheck.core.errors import InvalidFile, UsageError
from fabricheck.node import load
from fabricheck.node.fabric import distance, slingshot_place
from fabricheck.node.platform import platform
from fabricheck.node.system import platform_json, system

OVERLAYS = Path(__file__).resolve().parents[2] / "config" / "nodes" / "overlays"
#: GB/s of a NIC in one direction, and us of a message by distance.
NIC = 25 * 0.9528
LATENCY = {"same-switch": 2.2, "same-group": 2.5, "other-group": 2.8}
MESSAGE = 64 << 20
#: The ranks of each node: one beside each NIC, one on a device without a NIC, one on the host.
PLACES = ("device1", "device3", "device5", "device7", "device0", "domain3")
EXACT = {"rel": 1e-3}


@pytest.fixture
def overlaid(tmp_path):
    """Return the model with what some of the committed overlays change, and with these keys."""

    def overlaid(*names: str, **keys: Any):
        content: dict[str, Any] = {"name": "x", "description": "y", **keys}
        for name in names:
            file = yaml.safe_load((OVERLAYS / f"{name}.yaml").read_text())
            for key in ("nodes", "resources"):
                content[key] = content.get(key, []) + file.get(key, [])
        path = tmp_path / "overlay.yaml"
        path.write_text(yaml.safe_dump(content))
        return load("mi250x", path)

    return overlaid


@pytest.fixture
def messages(ranks, tmp_path):
    """Return the medians of `mpi` between two nodes by operation, role and ranks."""

    def messages(*arguments: str, model: Any = None, places=PLACES, nodes=(0, 1), count=2):
        file = tmp_path / "system.json"
        file.write_text(platform_json(model or load("mi250x"), count))
        hosts = [f"node{node}/{place}" for node in nodes for place in places]
        sizes = () if "--sizes" in arguments else ("--sizes", "64MiB")
        only = ("--collectives", "none", "--types", "none", *sizes)
        ran = ranks("mpi", hosts, *arguments, *only, node=file)
        assert ran.code == 0, ran.err
        return {
            (one["operation"], one["role"], tuple(one["ranks"])): one["median"]
            for one in ran.series
        }

    return messages


def rate(gbs: float, latency_us: float = 2.2) -> Any:
    """Return the GB/s of a window of four messages and its acknowledgement."""
    return pytest.approx(4e-9 * MESSAGE / (4e-9 * MESSAGE / gbs + 2e-6 * latency_us), rel=1e-4)


def of(found, operation, role):
    return {ranks: value for (*what, ranks), value in found.items() if what == [operation, role]}


@pytest.mark.slow
def test_the_published_values_of_lumi_follow(messages, published):
    devices = tuple(f"device{device}" for device in range(8))
    together = ",".join(f"{device}-{device + 8}" for device in range(8))
    found = messages("--pairs", "1-9", "--together", together, "--sizes", "4MiB", "--window", "64",
                     "--latency-size", "8", "--operations", "bandwidth,latency",
                     places=devices, nodes=(0, 2), count=3)  # fmt: skip
    rates, latencies = (of(found, what, "single") for what in ("bandwidth", "latency"))
    # The first two are what nic_efficiency and network_us are derived from.
    assert 1e3 * rates[1, 9] == pytest.approx(published["lumirfm-osubw-internode"], **EXACT)
    assert latencies[1, 9] == pytest.approx(published["lumirfm-oslat-internode"], rel=5e-3)
    (node,) = of(found, "bandwidth", "sum").values()
    assert 1e3 * node == pytest.approx(published["lumirfm-mbwmr-internode"], rel=0.01)


@pytest.mark.slow
def test_a_message_between_counterparts_has_its_nic_alone_and_together(messages):
    found = messages("--pairs", "0-6,6-0,4-10", "--together", "0-6,1-7,2-8,3-9",
                     "--operations", "bandwidth,bandwidth-both,latency")  # fmt: skip
    assert of(found, "bandwidth", "single") == dict.fromkeys([(0, 6), (6, 0), (4, 10)], rate(NIC))
    assert found["bandwidth-both", "single", (0, 6)] == pytest.approx(2 * NIC, **EXACT)
    assert found["latency", "single", (0, 6)] == pytest.approx(2.2, rel=5e-3)
    (together,) = of(found, "bandwidth", "sum").values()
    assert together == pytest.approx(4 * NIC, **EXACT)
    assert list(of(found, "bandwidth", "share").values()) == [rate(NIC)] * 4


def test_what_stays_on_a_node_is_as_on_a_single_one(messages, ranks):
    chosen = ("--pairs", "0-1,1-2", "--together", "none", "--sizes", "64MiB")
    there = messages(*chosen, places=("device3", "device2", "domain1"), nodes=(1,))
    only = ("--collectives", "none", "--types", "none")
    ran = ranks("mpi", ["device3", "device2", "domain1"], *chosen, *only)
    assert ran.code == 0, ran.err
    one = {(o["operation"], o["role"], tuple(o["ranks"])): o["median"] for o in ran.series}
    assert there == {key: pytest.approx(value, rel=1e-9) for key, value in one.items()}


def test_latency_goes_by_distance(messages):
    found = messages("--pairs", "0-1,0-2,0-3", "--operations", "latency", "--together", "none",
                     places=PLACES[:1], nodes=(0, 1, 2, 4), count=5)  # fmt: skip
    expected = [pytest.approx(one, rel=5e-3) for one in LATENCY.values()]
    assert list(of(found, "latency", "single").values()) == expected


def test_devices_of_a_package_share_its_nic(messages):
    found = messages("--pairs", "5-11", "--operations", "bandwidth",
                     "--together", "0-6,4-10,5-11,1-7")  # fmt: skip
    shares = list(of(found, "bandwidth", "share").values())
    # The host's memory goes by the NIC of its domain, which device 1 has.
    assert shares == [pytest.approx(NIC / 3, **EXACT)] * 3 + [pytest.approx(NIC, **EXACT)]


def test_resources_that_are_slow_slow_the_messages_over_them(messages, overlaid):
    # The way of device 0 to the NIC of device 1, out of the node.
    package = {"names": ["link 0-1 of node0"], "bandwidth_factor": 0.1}
    pairs = "0-6,4-10,10-4,1-7,7-1,2-8,3-9"
    found = messages(
        "--pairs",
        pairs,
        "--operations",
        "bandwidth",
        "--together",
        "none",
        model=overlaid("nic-half-rate", "switch-slow", resources=[package]),
    )
    assert of(found, "bandwidth", "single") == {
        **{(0, 6): rate(NIC), (4, 10): rate(20 * 0.7522), (10, 4): rate(NIC)},
        **{(1, 7): rate(NIC / 2), (7, 1): rate(NIC / 2), (2, 8): rate(NIC)},
        (3, 9): rate(0.8 * NIC),
    }  # fmt: skip


def test_messages_by_tcp_are_slow_and_late(messages, overlaid):
    found = messages("--pairs", "0-6,10-4", "--operations", "bandwidth,latency",
                     "--together", "none", model=overlaid("network-tcp"))  # fmt: skip
    assert of(found, "bandwidth", "single") == dict.fromkeys([(0, 6), (10, 4)], rate(2.5, 12.2))
    assert found["latency", "single", (0, 6)] == pytest.approx(12.2, rel=5e-3)


@pytest.mark.parametrize(
    ("overlay", "together"),
    [
        ("nic-shared", "0-6,1-7"),  # devices 1 and 3 of node 1 have NIC 0 together
        ("nic-gone", "1-7,2-8"),  # device 5 of node 1 has the widest path to the NIC of device 3
    ],
)
@pytest.mark.full
def test_ranks_that_share_a_nic_have_its_rate_together(messages, overlaid, overlay, together):
    found = messages("--pairs", "1-7,2-8", "--operations", "bandwidth",
                     "--together", f"{together},3-9", model=overlaid(overlay))  # fmt: skip
    assert of(found, "bandwidth", "single") == dict.fromkeys([(1, 7), (2, 8)], rate(NIC))
    shares = list(of(found, "bandwidth", "share").values())
    assert shares == [pytest.approx(NIC / 2, **EXACT)] * 2 + [pytest.approx(NIC, **EXACT)]


def test_staged_messages_take_the_host_and_the_copies(messages, overlaid):
    found = messages("--pairs", "0-6", "--operations", "bandwidth,bandwidth-both,latency",
                     "--together", "none", model=overlaid("messages-staged"))  # fmt: skip
    latency = 2.2 + 2 * (5.39 + 3.52)  # two copies begin
    # Each byte is written to and read from memory of the domain, in both directions.
    assert found["bandwidth", "single", (0, 6)] == rate(NIC, latency)
    assert found["bandwidth-both", "single", (0, 6)] == pytest.approx(51.2 / 2, rel=3e-3)
    assert found["latency", "single", (0, 6)] == pytest.approx(latency, rel=5e-3)


def test_pairs_of_groups_share_their_links(messages, overlaid):
    found = messages("--pairs", "0-2,2-0", "--operations", "bandwidth", "--together", "0-2,1-3",
                     places=PLACES[:2], nodes=(0, 4), count=5,
                     model=overlaid("groups-slow"))  # fmt: skip
    links = 0.05 * 4 * 4 * NIC
    expected = dict.fromkeys([(0, 2), (2, 0)], rate(links, 2.8))
    assert of(found, "bandwidth", "single") == expected
    shares = list(of(found, "bandwidth", "share").values())
    assert shares == [pytest.approx(links / 2, **EXACT)] * 2


def test_fabric_measures_the_latency_of_one_way(ranks, tmp_path):
    file = tmp_path / "system.json"
    file.write_text(platform_json(load("mi250x"), 2))
    few = ("--size", "1MiB", "--window", "2", "--round-trips", "2", "--again", "0")
    ran = ranks("fabric", ["node0/device1", "node1/device1"], *few, node=file)
    assert ran.code == 0, ran.err
    (measured,) = ran.document["rounds"]["rounds"]
    # That of `mpi` between the same two.
    assert measured["latency"] == [[pytest.approx(LATENCY["same-switch"], rel=5e-3)]]


def test_documents_name_the_nodes(ranks, tmp_path):
    file = tmp_path / "system.json"
    file.write_text(platform_json(load("mi250x"), 2))
    ran = ranks("affinity", ["node1/device3", "node0/device3"], node=file)
    assert ran.code == 0, ran.err
    assert ran.document["host"]["scheduler_node"] == "node1"
    assert ran.document["host"]["hostname"] == "mi250x (simulated)"


def test_a_node_that_cannot_be_simulated_is_named(ranks, tmp_path):
    content = system(load("mi250x"), 2)
    content["system"]["nodes"][1]["places"]["device0"]["nic"] = "cxi9"
    file = tmp_path / "system.json"
    file.write_text(json.dumps(content))
    ran = ranks("affinity", ["node0/device0"], node=file)
    assert ran.code == 3
    assert "node1 has no NIC for messages of device0" in ran.err


def test_every_node_has_four_nics_with_addresses_by_place():
    nodes = system(load("mi250x"), 16)["system"]["nodes"]
    assert [one["name"] for one in nodes] == [f"node{number}" for number in range(16)]
    addresses = [[nic["address"] for nic in node["nics"]] for node in nodes]
    assert len({one for node in addresses for one in node}) == 64
    places = [[slingshot_place(one) for one in node] for node in addresses]
    assert all(len({place.switch for place in node}) == 4 for node in places)
    found = {
        (i, j): {distance(a, b) for a, b in zip(places[i], places[j], strict=True)}
        for i, j in combinations(range(16), 2)
    }
    assert [found[0, 1], found[0, 2], found[0, 4]] == [{one} for one in LATENCY]
    assert all(len(classes) == 1 for classes in found.values())


def test_the_links_of_a_node_are_those_of_a_single_one():
    alone, two = platform(load("mi250x")), system(load("mi250x"), 2)
    for node in ("node0", "node1"):
        own = [one | {"name": one["name"].removesuffix(f" of {node}")} for one in two["links"]
               if one["name"].endswith(f" of {node}")]  # fmt: skip
        assert own == alone["links"]
    assert {key: two[key] for key in ("kernel", "copy", "messages")} == {
        key: alone[key] for key in ("kernel", "copy", "messages")
    }


def test_a_resource_without_a_node_is_that_of_every_node(overlaid):
    def links(model):
        return {one["name"]: one["gbs"] for one in system(model, 2)["links"]}

    healthy = links(load("mi250x"))
    for names, count in (("memory of device3", 2), ("nic cxi1 out", 2), ("nic cxi1 of node0 *", 2),
                         ("PCIe of nic * of node1 in", 4)):  # fmt: skip
        found = links(overlaid(resources=[{"names": [names], "bandwidth_factor": 0.5}]))
        changed = [name for name, gbs in found.items() if gbs == healthy[name] / 2]
        assert len(changed) == count, changed
        assert sum(found[name] != gbs for name, gbs in healthy.items()) == count


def test_the_command_prints_a_system(command):
    def export(*arguments):
        return command("node", "platform", "mi250x", *arguments)

    overlay = OVERLAYS / "nic-gone.yaml"
    done = export("--nodes", "3", "--overlay", str(overlay))
    assert done.exit_code == 0
    assert json.loads(done.stdout) == system(load("mi250x", overlay), 3)
    nodes = json.loads(done.stdout)["system"]["nodes"]
    assert [len(node["nics"]) for node in nodes] == [4, 3, 4]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"nodes": [{"name": "node1", "gone": ["cxi4"]}]}, r"nodes\[0\]: there is no NIC cxi4"),
        ({"nodes": [{"name": "*", "nic_of": {8: "cxi0"}}]}, "mi250x has no device 8"),
        (
            {"nodes": [{"name": "*", "gone": ["cxi1"], "nic_of": {2: "cxi1"}}]},
            "device 2 cannot use cxi1, which is gone",
        ),
        ({"nodes": [{"name": "*", "gone": [f"cxi{i}" for i in range(4)]}]}, "no NIC of the node"),
        ({"nodes": [{"name": "node1"}]}, "it changes nothing"),
        ({"resources": [{"names": ["nic cxi9 of node1 out"], "bandwidth_factor": 0.5}]},
         "no resource 'nic cxi9 of node1 out'; similar names: 'nic cxi"),
        ({"resources": [{"names": ["nic * of node1 out"], "take_turns": True}]}, "use nic_of"),
    ],
)  # fmt: skip
def test_what_no_system_has_is_refused(overlaid, keys, sentence):
    with pytest.raises(InvalidFile, match=sentence):
        overlaid(**keys)


def test_a_system_needs_nics_and_its_nodes(overlaid):
    with pytest.raises(UsageError, match="2 to 16 nodes, not 17"):
        system(load("mi250x"), 17)
    with pytest.raises(InvalidFile, match="nics: a simulated system needs this key"):
        system(load("mi250-two-sockets"), 2)
    changed = overlaid(nodes=[{"name": "node5", "staged": True}])
    with pytest.raises(InvalidFile, match="no node of a system of 2 is named 'node5'"):
        system(changed, 2)
    with pytest.raises(InvalidFile, match=r"overlay.yaml: nodes: .*export it with --nodes"):
        platform(changed)
