"""`managed` on the simulated MI250X node: zero-copy and page migration by HSA_XNACK."""

from __future__ import annotations

import json

import pytest

from fabricheck.node import load
from fabricheck.node.platform import platform

OPERATIONS = ["read", "write", "host-read", "host-write", "prefetch-h2d", "prefetch-d2h"]
#: Bytes that a simulated node really moves, and verifies.
SLICE = 1 << 20
#: GB/s at which pages migrate on the node of these tests.
MIGRATION = 2.0
SIZE = 256 << 20


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    content = platform(load("mi250x"))
    for link in content["links"]:
        if link["name"].startswith("page migration"):
            link["gbs"] = MIGRATION
    path = tmp_path_factory.mktemp("node") / "node.json"
    path.write_text(json.dumps(content))
    return path


def over_the_link(node):
    """Return the GB/s of host reads of device 0's kernels, by the links of their route."""
    content = json.loads(node.read_text())
    links = {link["name"]: link["gbs"] for link in content["links"]}
    home = content["devices"][0]["domain"]
    (route,) = (
        route
        for route in content["kernel"]
        if route["device"] == 0 and route["memory"] == f"domain{home}"
    )
    return min(links[name] for name in route["read"])


def by_operation(ran):
    return {series["operation"]: series for series in ran.series}


def test_without_xnack_kernels_use_managed_memory_over_the_link(run, node):
    ran = run("managed", "--devices", "0", "--expect", "zero-copy", node=node)
    assert ran.code == 0, ran.err
    found = by_operation(ran)
    assert list(found) == ["read", "write"]
    for series in found.values():
        assert series["movement"] == "zero-copy"
        assert series["bytes"] == SIZE
        assert series["median"] == pytest.approx(over_the_link(node), rel=0.01)
    assert ran.document["notes"] == [
        "not measured of managed memory, whose pages stay on the host: "
        "host-read, host-write, prefetch-h2d, prefetch-d2h"
    ]


def test_with_xnack_pages_migrate_and_a_prefetch_goes_by_the_copy_engine(run, node):
    ran = run("managed", "--devices", "0", "--expect", "page-migration", node=node, HSA_XNACK="1")
    assert ran.code == 0, ran.err
    assert ran.document["notes"] == []
    found = by_operation(ran)
    assert list(found) == OPERATIONS
    for operation in OPERATIONS[:4]:
        assert found[operation]["movement"] == "page-migration"
        assert found[operation]["median"] == pytest.approx(MIGRATION, rel=0.01)
    for operation in OPERATIONS[4:]:
        assert found[operation]["movement"] == "prefetch"
        assert found[operation]["median"] > over_the_link(node)


def test_where_the_data_are_and_who_moves_them(run, node):
    ran = run("managed", "--devices", "2", "--sizes", "1MiB", node=node, HSA_XNACK="1")
    assert ran.code == 0, ran.err
    domain = ran.document["devices"][2]["numa_domain"]
    device = {"memory": "device", "device": 2, "numa_domain": None}
    on_device = {"memory": "managed", "device": 2, "numa_domain": None}
    on_host = {"memory": "managed", "device": None, "numa_domain": domain}
    found = by_operation(ran)
    for operation, engine, source, destination in (
        ("read", "kernel", on_host, device),
        ("write", "kernel", device, on_host),
        ("prefetch-h2d", "copy-engine", on_host, on_device),
        ("prefetch-d2h", "copy-engine", on_device, on_host),
    ):
        series = found[operation]
        assert series["engine"] == engine
        assert {key: series["source"][key] for key in source} == source
        assert {key: series["destination"][key] for key in destination} == destination
    for operation, shared, own in (
        ("host-read", "source", "destination"),
        ("host-write", "destination", "source"),
    ):
        series = found[operation]
        assert series["engine"] == "cpu"
        assert series["block_size"] is series["stores"] is None
        assert series[shared]["memory"] == "managed"
        assert series[shared]["device"] == 2
        assert series[own]["memory"] == "host-pageable"
        assert series[own]["device"] is None
        assert series[own]["numa_domain"] == domain
    for series in found.values():
        assert series["experiment"] == "E3"
        assert series["device_set"] == [2]
        assert series["direction"] == "one-way"
        assert series["bytes_counted"] == "once"
        assert series["batch"] == 1
        assert series["verification"]["bytes_checked"] == SLICE


def test_pages_that_stay_on_the_device_are_read_over_the_link_and_labelled_so(run, node):
    ran = run("managed", "--devices", "0", node=node, HSA_XNACK="1",
              FABRICHECK_SIM_MANAGED="coherent-devices")  # fmt: skip
    assert ran.code == 0, ran.err
    found = by_operation(ran)
    assert list(found) == OPERATIONS
    moved = {name: series["movement"] for name, series in found.items()}
    assert moved == dict.fromkeys(["read", "write"], "page-migration") | dict.fromkeys(
        ["host-read", "host-write"], "zero-copy"
    ) | dict.fromkeys(["prefetch-h2d", "prefetch-d2h"], "prefetch")
    assert found["host-read"]["median"] > 4 * MIGRATION
    stayed = "its pages stayed on the device and were used over the link: zero-copy"
    assert ran.document["notes"] == [
        f"{name} on device 0: {stayed}" for name in ("host-read", "host-write")
    ]


def test_a_prefetch_that_moves_nothing_has_no_rate(run, node):
    ran = run("managed", "--devices", "0", "--sizes", "1MiB", node=node, HSA_XNACK="1",
              FABRICHECK_SIM_MANAGED="idle-prefetch")  # fmt: skip
    assert ran.code == 0, ran.err
    assert list(by_operation(ran)) == OPERATIONS[:4]
    said = [
        f"{name} of 1 MiB on device 0 is not measured: hipMemPrefetchAsync moved nothing, its "
        f"pages stayed on the {where}"
        for name, where in (("prefetch-h2d", "host"), ("prefetch-d2h", "device"))
    ]
    assert ran.document["notes"] == said
    assert ran.document["skipped"] == [
        {"operation": name, "reason": reason}
        for name, reason in zip(OPERATIONS[4:], said, strict=True)
    ]
    ran = run("managed", "--devices", "0", "--operations", "prefetch-h2d", "--sizes", "1MiB",
              node=node, HSA_XNACK="1", FABRICHECK_SIM_MANAGED="idle-prefetch")  # fmt: skip
    assert ran.code == 3
    assert ran.sentence == f"managed: {said[0]}"


def test_a_driver_that_is_not_known_is_named(run, node):
    ran = run("managed", node=node, FABRICHECK_SIM_MANAGED="idle-prefetch,lazy")
    assert ran.code == 3
    assert ran.sentence == (
        "managed: FABRICHECK_SIM_MANAGED names 'lazy': choose from idle-prefetch, coherent-devices"
    )


def test_pinned_memory_is_zero_copy_whatever_xnack_is(run, node):
    for xnack in ("0", "1"):
        ran = run("managed", "--devices", "0,7", "--memory", "pinned", "--operations", "read,write",
                  node=node, HSA_XNACK=xnack)  # fmt: skip
        assert ran.code == 0, ran.err
        assert [series["device"] for series in ran.series] == [0, 0, 7, 7]
        for series in ran.series:
            assert series["movement"] == "zero-copy"
            assert "host-pinned" in (series["source"]["memory"], series["destination"]["memory"])
            assert series["median"] == pytest.approx(over_the_link(node), rel=0.01)


def test_each_sample_finds_the_pages_where_they_have_to_be(run, node):
    # With the noise of the first sample only, a second one that found its pages moved would stand
    # out by an order of magnitude.
    ran = run("managed", "--devices", "0", node=node, HSA_XNACK="1", FABRICHECK_SIM_NOISE="0.001")
    assert ran.code == 0, ran.err
    for series in ran.series:
        assert len(series["samples"]) >= 7
        assert max(series["samples"]) < 1.05 * min(series["samples"])


def test_devices_tell_how_they_use_managed_memory(run, node):
    for xnack, mode in (("0", "-"), ("1", "+")):
        ran = run("managed", "--devices", "0", "--sizes", "1MiB", node=node, HSA_XNACK=xnack)
        for device in ran.document["devices"]:
            assert device["arch"] == f"gfx90a:sramecc+:xnack{mode}"
            assert device["managed_memory"]["managed"]
            assert device["managed_memory"]["xnack"] is (xnack == "1")
        assert ran.document["environment"]["HSA_XNACK"] == xnack


@pytest.mark.parametrize(
    ("xnack", "arguments", "sentence"),
    [
        ("0", ["--expect", "page-migration"],
         "device 0 (gfx90a:sramecc+:xnack-) does not migrate pages: HSA_XNACK=1 is needed"),
        ("1", ["--expect", "zero-copy"],
         "device 0 (gfx90a:sramecc+:xnack+) migrates pages: HSA_XNACK=0 is needed"),
        ("1", ["--expect", "page-migration", "--memory", "pinned"],
         "pinned memory does not migrate: page-migration is of --memory managed"),
        ("0", ["--operations", "prefetch-h2d,host-read"],
         "not measured of managed memory, whose pages stay on the host: prefetch-h2d, host-read"),
        ("1", ["--sizes", "65GiB"],
         "device 0 has 64 GiB of memory free, but 65 GiB more are needed"),
    ],
)  # fmt: skip
def test_what_a_device_does_not_do_ends_the_run_with_3(run, node, xnack, arguments, sentence):
    ran = run("managed", *arguments, node=node, HSA_XNACK=xnack)
    assert ran.code == 3
    assert ran.document["outcome"]["status"] == "unsupported"
    assert not ran.series
    assert ran.err == f"managed: {sentence}\n"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("fault", "errors", "offset"), [("flip-bit:4100:3", 1, 4096), ("unwritten", SLICE // 8, 0)]
)
def test_wrong_data_is_found_by_every_operation(run, node, operation, fault, errors, offset):
    ran = run("managed", "--devices", "1", "--sizes", "1MiB", "--operations", operation,
              "--inject-fault", fault, node=node, HSA_XNACK="1")  # fmt: skip
    assert ran.code == 5
    (series,) = ran.series
    assert series["verification"]["errors"] == errors
    first = series["verification"]["first_mismatch"]
    assert first["offset_bytes"] == offset
    assert first["device"] == (None if operation == "host-read" else 1)
    assert f"{operation} of 1 MiB on device 1" in ran.sentence
    assert f"the first at byte {offset}" in ran.sentence
