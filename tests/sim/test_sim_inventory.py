"""The description of the simulated node by `inventory`: that of its node model."""

from __future__ import annotations

import json

import pytest

from fabricheck.node import load


@pytest.mark.parametrize("node", ["mi250x", "mi250-two-sockets"])
def test_a_simulated_node_has_the_links_and_domains_of_its_model(run, node):
    ran = run("inventory", node=node)
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.output.read_text())
    model = load(node)
    assert (found["node"]["name"], found["node"]["digest"]) == (node, model.sha256)
    assert found["host"]["hostname"] == f"{node} (simulated)"
    assert {
        (link["from"], link["to"]): link["links"] for link in found["links"] if link["links"]
    } == {pair: link.count for (a, b), link in model.links.items() for pair in ((a, b), (b, a))}
    assert {link["kind"] for link in found["links"]} == {"xgmi"}
    for device, expected in zip(found["devices"], model.devices, strict=True):
        assert device["numa_domain"] == expected.domain
        assert device["pci_address"] == expected.pci_address
        assert device["memory_bytes"] == expected.memory_bytes
    assert [domain["index"] for domain in found["domains"]] == [one.index for one in model.domains]
    assert found["sources"]["links.links"] == "node model"


def test_devices_are_in_the_order_of_the_runtime(run):
    found = json.loads(run("inventory", HIP_VISIBLE_DEVICES="7,6,0").output.read_text())
    assert {(link["from"], link["to"]): link["links"] for link in found["links"]} == {
        (0, 1): 4, (1, 0): 4, (1, 2): 2, (2, 1): 2, (0, 2): 0, (2, 0): 0,
    }  # fmt: skip


def test_without_a_device_the_description_says_why(run):
    ran = run("inventory", HIP_VISIBLE_DEVICES="-1")
    assert ran.code == 3
    found = json.loads(ran.output.read_text())
    assert (found["devices"], found["links"]) == ([], [])
    unknown = {entry["item"]: entry["why"] for entry in found["absent"]}
    assert "HIP_VISIBLE_DEVICES names '-1'" in unknown["devices"]
