"""`memcpy` on the simulated MI250X node: its documents, whatever the model makes of the values."""

from __future__ import annotations

import pytest

#: Peak of the memory of one NUMA domain, GB/s: two channels of DDR4-3200 (config/nodes).
DOMAIN_PEAK = 51.2


@pytest.fixture(scope="module")
def near(run):
    ran = run("memcpy", "--operations", "h2d,d2h,both,h2d-sync,d2h-sync")
    assert ran.code == 0, ran.err
    return ran


def host_of(series):
    """Return the place of a series that is on the host."""
    return series["destination" if series["source"]["memory"] == "device" else "source"]


def medians(ran, operation, role="single"):
    """Return the medians of an operation by kind of host memory, NUMA domain and device."""
    return {
        (host_of(one)["memory"], host_of(one)["numa_domain"], one["device_set"][0]): one["median"]
        for one in ran.series
        if one["operation"] == operation and one["role"] == role
    }


def test_every_device_copies_from_and_to_its_own_domain(near):
    attached = {device["index"]: device["numa_domain"] for device in near.document["devices"]}
    wanted = {
        (memory, domain, device)
        for memory in ("host-pinned", "host-pageable")
        for device, domain in attached.items()
    }
    for operation in ("h2d", "d2h", "h2d-sync", "d2h-sync"):
        assert set(medians(near, operation)) == wanted
    assert set(medians(near, "both", "sum")) == wanted
    assert {one["experiment"] for one in near.series} == {"E2"}
    assert all(one["verification"]["bytes_checked"] for one in near.series)


def test_devices_are_measured_in_their_order(near):
    devices = [one["device_set"][0] for one in near.series if host_of(one)["memory"][5] == "i"]
    assert devices == sorted(devices)


def test_both_directions_share_the_memory_of_the_domain(near):
    one_way = medians(near, "h2d")
    for key, total in medians(near, "both", "sum").items():
        assert one_way[key] < total <= DOMAIN_PEAK


def test_the_start_of_a_copy_is_that_of_the_node_model(run):
    ran = run("memcpy", "--memory", "pinned", "--operations", "h2d-latency,d2h-latency",
              "--devices", "0")  # fmt: skip
    assert ran.code == 0, ran.err
    assert {one["unit"] for one in ran.series} == {"us"}
    # 5.39 us to start a copy, and 3.52 us for one hop (config/nodes/mi250x.yaml).
    assert [one["median"] for one in ran.series] == pytest.approx([8.91, 8.91], rel=1e-3)


def test_pageable_memory_is_slower(near):
    for operation, role in (("h2d", "single"), ("d2h", "single"), ("both", "sum")):
        found = medians(near, operation, role)
        pairs = [(found["host-pageable", *key], value)
                 for (memory, *key), value in found.items() if memory == "host-pinned"]  # fmt: skip
        assert len(pairs) == 8
        assert all(pageable < pinned for pageable, pinned in pairs)


def test_every_domain_and_device_is_measured(run):
    ran = run("memcpy", "--domains", "each", "--memory", "pinned", "--operations", "h2d")
    assert ran.code == 0, ran.err
    found = medians(ran, "h2d")
    assert set(found) == {("host-pinned", domain, device) for domain in range(4)
                          for device in range(8)}  # fmt: skip
    assert {one["experiment"] for one in ran.series} == {"E4"}
    assert len(ran.err.splitlines()) == 2 + len(ran.series)


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_pages_put_on_another_domain_are_found(run, memory):
    ran = run("memcpy", "--domains", "3,1", "--memory", memory, "--devices", "0",
              "--inject-fault", "pages-on:3")  # fmt: skip
    assert ran.code == 8
    assert ran.sentence.endswith(
        "host memory was asked for on NUMA domain 1, but its pages are on domain 3, "
        "and the system does not tell what is free there"
    )
    assert ran.document["faults_injected"] == ["pages-on:3"]
    assert {host_of(one)["numa_domain"] for one in ran.series} == {3}


def test_pages_on_a_domain_that_does_not_exist_are_refused(run):
    ran = run("memcpy", "--inject-fault", "pages-on:7")
    assert ran.code == 8
    assert "NUMA domain 7 is not open to this process" in ran.sentence


def test_the_machine_that_simulates_is_not_recorded_as_the_state_of_the_node(near):
    assert "state" not in near.document
