"""The platform of a simulated node, as the sim runtime reads it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fabricheck.core.errors import InvalidFile
from fabricheck.node import load
from fabricheck.node.platform import platform, routes
from fabricheck.node.schema import Quantity
from fabricheck.node.system import platform_json

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "config" / "nodes" / "overlays"
MODEL = ROOT / "config" / "nodes" / "mi250x.yaml"


@pytest.fixture(scope="module")
def mi250x():
    return platform(load("mi250x"))


def gbs(content, name):
    [link] = [link for link in content["links"] if link["name"] == name]
    return link["gbs"]


def copy_route(content, source, destination):
    [route] = [
        route
        for route in content["copy"]
        if (route["source"], route["destination"]) == (source, destination)
    ]
    return route


def kernel_route(content, device, memory):
    [route] = [
        route
        for route in content["kernel"]
        if (route["device"], route["memory"]) == (device, memory)
    ]
    return route


def test_every_pair_of_places_with_a_device_has_its_routes(mi250x):
    assert len(mi250x["kernel"]) == 8 * (8 + 4)
    assert len(mi250x["copy"]) == 12 * 11 - 4 * 3
    names = {link["name"] for link in mi250x["links"]}
    assert len(names) == len(mi250x["links"])
    used = {
        link
        for route in mi250x["copy"]
        for kind in ("links", "pageable")
        for link in route.get(kind, [])
    }
    assert len(mi250x["messages"]) == 12 * 12
    used |= {
        link
        for route in mi250x["messages"]
        for kind in ("by_engine", "by_kernel")
        for link in route[kind]
    }
    used |= {link for route in mi250x["kernel"] for link in route["read"] + route["write"]}
    used |= {f"page migration of device{device}" for device in range(8)}  # of no route of its own
    assert used == names


def test_copies_take_the_widest_path_with_an_engine(mi250x):
    route = copy_route(mi250x, "device1", "device7")
    assert [link for link in route["links"] if link.startswith("link")] == [
        "link 1-0",
        "link 0-6",
        "link 6-7",
    ]
    assert "copy engine of copies device1-device7" in route["links"]
    assert route["start_us"] == pytest.approx(5.39 + 3 * 3.52 + 1.83)
    single = copy_route(mi250x, "device0", "device2")
    assert single["start_us"] == pytest.approx(5.39 + 3.52)


def test_a_link_has_a_direction_and_a_memory_has_none(mi250x):
    there, back = copy_route(mi250x, "device0", "device1"), copy_route(mi250x, "device1", "device0")
    assert "link 0-1" in there["links"] and "link 0-1" not in back["links"]
    assert "memory of device0" in there["links"] and "memory of device0" in back["links"]
    route = kernel_route(mi250x, 0, "device1")
    assert "link 1-0" in route["read"] and "link 0-1" in route["write"]
    assert set(route["read"]) & set(route["write"]) == {
        "memory of device1",
        "accesses of kernels of device0 to device1",
    }


def test_bandwidths_are_peaks_times_efficiencies(mi250x):
    assert gbs(mi250x, "memory of device0") == pytest.approx(1638.4 * 0.8545)
    assert gbs(mi250x, "memory of domain2") == pytest.approx(51.2)
    assert gbs(mi250x, "link 0-1") == pytest.approx(4 * 50 * 0.7522)
    assert gbs(mi250x, "host link to device5") == pytest.approx(36 * 0.7861)
    assert gbs(mi250x, "copy engine of copies device0-device1") == 50
    assert gbs(mi250x, "copy engine of messages device0-device1") == 50
    each = {link["name"] for link in mi250x["links"] if link["each"]}
    assert each == {
        link["name"] for link in mi250x["links"] if link["name"].startswith("copy engine of copies")
    }


def test_host_memory_of_any_domain_is_reached_by_the_devices_own_link(mi250x):
    for domain in range(4):
        route = copy_route(mi250x, f"domain{domain}", "device0")
        engine = f"copy engine of copies domain{domain}-device0"
        assert route["links"][-2:] == ["host link to device0", engine]
        assert route["links"][0] == f"memory of domain{domain}"


def test_copies_of_pageable_memory_have_a_limit_of_their_own(mi250x):
    for domain, device in ((3, 0), (0, 7)):
        there = copy_route(mi250x, f"domain{domain}", f"device{device}")
        back = copy_route(mi250x, f"device{device}", f"domain{domain}")
        for route, way in ((there, "to"), (back, "from")):
            limit = f"pageable copies {way} device{device}"
            assert route["pageable"][: len(route["links"]) + 1] == [*route["links"], limit]
            assert gbs(mi250x, limit) == pytest.approx(36 * 0.7064)
    assert mi250x["pageable"] == {"pin_us": 21.48, "staged_bytes": 65536}
    assert gbs(mi250x, "page migration of device7") == 2.8
    assert "pageable" not in copy_route(mi250x, "device0", "device1")


ALL = "pageable copies of all devices"


def test_all_pageable_copies_share_a_limit_and_far_ones_take_more_of_it(mi250x):
    assert gbs(mi250x, ALL) == pytest.approx(3 * 147.1)
    for device in range(8):
        home = mi250x["devices"][device]["domain"]
        for domain in range(4):
            ends = (f"domain{domain}", f"device{device}")
            for route in (copy_route(mi250x, *ends), copy_route(mi250x, *ends[::-1])):
                assert route["pageable"].count(ALL) == (3 if domain == home else 5)
                assert ALL not in route["links"]


def test_a_node_without_that_limit_has_none(tmp_path):
    assert ALL not in platform_json(load("mi250-two-sockets"))

    def half(content):
        del content["simulation"]["pageable_far_cost"]

    with pytest.raises(
        InvalidFile, match="pageable_host_gbs and pageable_far_cost require each other"
    ):
        load(str(written(tmp_path, half)))

    def cheap(content):
        content["simulation"]["pageable_far_cost"]["value"] = 0.9

    with pytest.raises(InvalidFile, match="pageable_far_cost is below 1"):
        load(str(written(tmp_path, cheap)))


@pytest.mark.parametrize(("cost", "near", "far"), [(1, 1, 1), (2, 1, 2), (1.5, 2, 3), (1.67, 3, 5)])
def test_a_far_copy_takes_its_cost_in_whole_numbers(tmp_path, cost, near, far):
    def change(content):
        content["simulation"]["pageable_far_cost"]["value"] = cost

    content = platform(load(str(written(tmp_path, change))))
    assert gbs(content, ALL) == pytest.approx(near * 147.1)
    assert copy_route(content, "domain3", "device0")["pageable"].count(ALL) == near
    assert copy_route(content, "domain0", "device0")["pageable"].count(ALL) == far


def message(content, source, destination):
    [route] = [
        route
        for route in content["messages"]
        if (route["source"], route["destination"]) == (source, destination)
    ]
    return route


def test_messages_between_devices_take_the_links_of_copies_or_of_kernels(mi250x):
    route = message(mi250x, "device1", "device7")
    copy = copy_route(mi250x, "device1", "device7")["links"]
    assert route["by_engine"] == [*copy[:-1], "copy engine of messages device1-device7"]
    read = kernel_route(mi250x, 7, "device1")["read"]
    assert route["by_kernel"] == [*read, "memory of device7"]
    same = message(mi250x, "device2", "device2")
    assert same["by_engine"] == same["by_kernel"] == 2 * ["memory of device2"]


def test_messages_between_host_buffers_are_copied_twice(mi250x):
    route = message(mi250x, "domain1", "domain2")
    assert sorted(route["by_engine"]) == 3 * ["memory of domain1"] + ["memory of domain2"]
    assert route["by_kernel"] == route["by_engine"]
    assert message(mi250x, "domain3", "domain3")["by_engine"] == 4 * ["memory of domain3"]
    sockets = platform(load("mi250-two-sockets"))
    assert "interconnect domain0-domain1" in message(sockets, "domain0", "domain1")["by_engine"]


def test_messages_between_a_device_and_the_host_go_as_copies_do(mi250x):
    for ends in (("device3", "domain0"), ("domain0", "device3")):
        copy = copy_route(mi250x, *ends)["links"]
        queue = "copy engine of messages " + "-".join(ends)
        assert message(mi250x, *ends)["by_engine"] == [*copy[:-1], queue]
    route = kernel_route(mi250x, 3, "domain0")
    there, back = (
        message(mi250x, *ends) for ends in (("device3", "domain0"), ("domain0", "device3"))
    )
    assert there["by_kernel"] == [*route["write"], "memory of device3"]
    assert back["by_kernel"] == [*route["read"], "memory of device3"]
    assert mi250x["message_cost"] == {"us": 6.4, "small_us": 0.42, "small_bytes": 1024}


def test_memory_of_the_other_socket_is_reached_over_the_interconnect(mi250x):
    sockets = platform(load("mi250-two-sockets"))
    there = copy_route(sockets, "domain1", "device0")
    back = copy_route(sockets, "device0", "domain1")
    assert "interconnect domain1-domain0" in there["links"]
    assert (
        "interconnect domain0-domain1" in back["links"] and back["pageable"][:-1] == back["links"]
    )
    assert "interconnect domain1-domain0" in kernel_route(sockets, 3, "domain1")["read"]
    assert "interconnect domain0-domain1" in kernel_route(sockets, 3, "domain1")["write"]
    assert gbs(sockets, "interconnect domain1-domain0") == pytest.approx(36.705 / 2, rel=1e-3)
    near = copy_route(sockets, "domain1", "device4")
    assert not any("interconnect" in link for link in near["links"])
    assert not any("interconnect" in link["name"] for link in mi250x["links"])


@pytest.mark.parametrize(
    ("overlay", "name", "value"),
    [
        ("link-0-1-half-width", "link 0-1", 2 * 50 * 0.7522),
        ("device-3-memory-slow", "memory of device3", 0.92 * 1638.4 * 0.8545),
        ("domain-2-half-memory", "memory of domain2", 51.2 / 2),
    ],
)
def test_an_overlay_changes_the_platform_and_is_named_in_it(overlay, name, value):
    path = OVERLAYS / f"{overlay}.yaml"
    content = platform(load("mi250x", path))
    assert gbs(content, name) == pytest.approx(value)
    assert content["node"]["overlay"] == {
        "name": yaml.safe_load(path.read_text())["name"],
        "content": yaml.safe_load(path.read_text()),
    }
    assert content["node"]["digest"] == platform(load("mi250x"))["node"]["digest"]


def overlaid(tmp_path, *resources):
    path = tmp_path / "overlay.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "description": "y", "resources": [*resources]}))
    return platform(load("mi250x", path))


def test_what_holds_of_some_transfers_is_a_fault_of_the_link(tmp_path):
    content = overlaid(
        tmp_path,
        {"names": ["link 4-*"], "bandwidth_factor": 0.5},
        {"names": ["link 4-5"], "bandwidth_factor": 0.5},
        {"names": ["link 0-6"], "bandwidth_factor": 0.1, "bytes": [1 << 20, 16 << 20]},
        {"names": ["link 0-6"], "delay_us": 9, "first": 2},
        {"names": ["copy engine of copies device0-device6"], "hangs": True},
    )
    assert gbs(content, "link 4-5") == pytest.approx(200 * 0.7522 / 4)
    assert gbs(content, "link 4-2") == pytest.approx(100 * 0.7522 / 2)
    assert gbs(content, "link 0-6") == pytest.approx(100 * 0.7522)
    faults = {link["name"]: link["faults"] for link in content["links"] if "faults" in link}
    assert faults == {
        "link 0-6": [
            {"bandwidth_factor": 0.1, "bytes": [1 << 20, 16 << 20]},
            {"delay_us": 9, "first": 2},
        ],
        "copy engine of copies device0-device6": [{"hangs": True}],
    }


def test_resources_that_take_turns_are_one_link_of_all_routes(tmp_path):
    content = overlaid(tmp_path, {"names": ["link 0-6", "link 6-0"], "take_turns": True})
    assert "link 6-0" not in {link["name"] for link in content["links"]}
    for ends in (("device0", "device6"), ("device6", "device0"), ("device7", "device1")):
        assert "link 0-6" in copy_route(content, *ends)["links"]
        assert "link 0-6" in message(content, *ends)["by_kernel"]
    route = kernel_route(content, 0, "device6")
    assert "link 0-6" in route["read"] and "link 0-6" in route["write"]


def test_without_a_link_copies_go_round():
    content = platform(load("mi250x", OVERLAYS / "link-0-6-gone.yaml"))
    route = copy_route(content, "device0", "device6")
    path = [link for link in route["links"] if link.startswith("link")]
    assert path == ["link 0-2", "link 2-4", "link 4-6"]
    assert "link 0-6" not in {link["name"] for link in content["links"]}


def test_a_rotated_numa_map_moves_the_devices():
    healthy = [device["domain"] for device in platform(load("mi250x"))["devices"]]
    rotated = platform(load("mi250x", OVERLAYS / "numa-map-rotated.yaml"))
    assert [device["domain"] for device in rotated["devices"]] == [(d + 1) % 4 for d in healthy]


def written(folder: Path, change) -> Path:
    content = yaml.safe_load(MODEL.read_text())
    change(content)
    path = folder / "mi250x.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_known_engines_share_their_number(tmp_path):
    def two_engines(content):
        content["copy_engine"]["count"] = {"value": 2, "kind": "assumed", "note": "a test"}

    content = platform(load(str(written(tmp_path, two_engines))))
    assert message(content, "device3", "device2")["by_engine"][-2:] == [
        "copy engine of messages device3-device2",
        "copy engines of device3",
    ]
    assert gbs(content, "copy engines of device3") == 100
    assert "copy engines of device3" in copy_route(content, "device3", "device2")["links"]
    assert "copy engines of device3" in copy_route(content, "domain0", "device3")["links"]


def test_an_unknown_engine_limits_nothing(tmp_path):
    def unknown(content):
        content["copy_engine"]["peak_gbs"] = {"value": None, "kind": "unknown", "note": "a test"}

    content = platform(load(str(written(tmp_path, unknown))))
    assert not any("engine" in link["name"] for link in content["links"])


def test_separated_devices_copy_over_their_host_links(tmp_path):
    def cut(content):
        for other in range(8):
            content["links"]["matrix"][3][other] = content["links"]["matrix"][other][3] = 0

    content = platform(load(str(written(tmp_path, cut))))
    there = ["host link from device3", "host link to device2"]
    copy = copy_route(content, "device3", "device2")
    assert [one for one in copy["links"] if "link" in one] == there
    # Two hops, as over a device between.
    near = copy_route(content, "device2", "domain1")["start_us"]
    hop = copy_route(content, "device2", "device1")["start_us"] - near
    assert copy["start_us"] == pytest.approx(near + hop)
    writes = kernel_route(content, 3, "device2")["write"]
    assert [one for one in writes if "link" in one] == there
    assert copy_route(content, "device3", "domain1")
    # Messages of ranks go through the host: device 3 is on domain 1, device 2 too.
    route = message(content, "device3", "device2")
    for way in ("by_engine", "by_kernel"):
        assert route[way].count("memory of domain1") == 2
        assert "host link from device3" in route[way] and "host link to device2" in route[way]
    assert message(content, "device2", "device0")["by_engine"][2:-1] == ["link 2-0"]


def refused(node) -> str:
    with pytest.raises(InvalidFile) as caught:
        platform(node)
    return str(caught.value)


def test_what_can_not_be_simulated_is_refused_in_a_sentence(tmp_path, wording):
    def unknown(content):
        peak = {"value": None, "kind": "unknown", "note": "a test"}
        content["domains"]["memory_peak_gbs"] = peak

    wording(refused(load("mi250")))
    wording(refused(load(str(written(tmp_path, unknown)))))

    def switched(content):
        peak = content["links"]["peak_gbs"]
        del content["links"]
        content["switch"] = {
            "kind": "assumed",
            "note": "a test",
            "peak_gbs": peak,
            "links_per_device": 4,
        }

    wording(refused(load(str(written(tmp_path, switched)))))


def test_parameters_are_few_and_each_fitted_one_names_its_own_record():
    parameters = load("mi250x").simulation
    quantities = [value for _, value in parameters if isinstance(value, Quantity)]
    fitted = [value.record for value in quantities if value.kind == "fitted"]
    assert len(fitted) <= 15
    assert len(set(fitted)) == len(fitted) and None not in fitted


def test_a_fitted_number_without_its_record_is_refused(tmp_path):
    def no_record(content):
        del content["simulation"]["launch_us"]["record"]

    with pytest.raises(InvalidFile, match=r"launch_us.*the record that it was fitted to"):
        load(str(written(tmp_path, no_record)))


def test_the_command_prints_the_platform(command):
    path = OVERLAYS / "link-0-6-gone.yaml"
    done = command("node", "platform", "mi250x", "--overlay", path)
    assert done.json == platform(load("mi250x", path))
    assert done.stdout == platform_json(load("mi250x", path))
    command("node", "platform", "mi250", code=4)


@pytest.mark.parametrize("section", ["links", "host_link"])
def test_an_unknown_peak_of_links_is_not_simulated(tmp_path, section, wording):
    unknown = {"value": None, "kind": "unknown", "note": "not told by the driver"}
    node = load(str(written(tmp_path, lambda c: c[section].update(peak_gbs=unknown))))
    wording(refused(node))
    # The diagnosis knows its ways all the same.
    links = {one["name"]: one["gbs"] for one in routes(replace(node, simulation=None))["links"]}
    assert math.isinf(links["link 0-1" if section == "links" else "host link to device0"])
