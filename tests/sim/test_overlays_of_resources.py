"""Overlays of resources: a transfer takes what the changed resource leaves it, others do not."""

from __future__ import annotations

import pytest
import yaml

from fabricheck.node import load
from fabricheck.node.system import platform_json

#: GB/s of a dual link in one direction, and of one engine.
DUAL, ENGINE = 100 * 0.7522, 50
SIZES = [1 << 19, 1 << 22, 1 << 28]


@pytest.fixture
def changed(tmp_path):
    """Write the platform of mi250x with some resources changed."""

    def changed(**change):
        overlay = tmp_path / "overlay.yaml"
        content = {"name": "x", "description": "y", "resources": [change]}
        overlay.write_text(yaml.safe_dump(content))
        node = tmp_path / "node.json"
        node.write_text(platform_json(load("mi250x", overlay)))
        return node

    return changed


@pytest.fixture
def copies(run):
    def copies(node, pairs, *operations, sizes=SIZES, **variables):
        chosen = ("--sizes", ",".join(map(str, sizes)), "--operations", ",".join(operations))
        ran = run("p2p", "--pairs", pairs, *chosen, node=node, **variables)
        assert ran.code == 0, ran.err
        return {
            (tuple(one["device_set"]), one["operation"], one["bytes"]): one["median"]
            for one in ran.series
            if one["role"] == "single"
        }

    return copies


def test_a_link_is_slow_one_way(changed, copies):
    node = changed(names=["link 0-6"], bandwidth_factor=0.5)
    found = copies(node, "0-6,6-0", "write,read", sizes=SIZES[-1:])
    slow = pytest.approx(DUAL / 2, rel=0.01)
    fast = pytest.approx(DUAL, rel=0.01)
    assert [found[(0, 6), way, SIZES[-1]] for way in ("write", "read")] == [slow, slow]
    assert [found[(6, 0), way, SIZES[-1]] for way in ("write", "read")] == [fast, fast]


def test_a_link_is_slow_for_some_sizes_only(changed, copies):
    node = changed(names=["link 0-6"], bandwidth_factor=0.1, bytes=[1 << 20, 16 << 20])
    found, healthy = (copies(one, "0-6", "write,engine") for one in (node, "mi250x"))
    for operation in ("write", "engine"):
        ratios = [
            found[(0, 6), operation, size] / healthy[(0, 6), operation, size] for size in SIZES
        ]
        part = 0.1 * DUAL / (DUAL if operation == "write" else ENGINE)
        assert ratios == [1, pytest.approx(part, rel=0.15), 1]


def test_engines_that_share_a_copy_have_its_size(changed, copies, tmp_path):
    names = ["copy engine of copies device0-device1"]
    overlay = {
        "rocm": "6.3",
        "resources": [{"names": names, "delay_us": 1e4, "bytes": [2048, 9000]}],
    }
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump({"name": "x", "description": "y", **overlay}))
    node = tmp_path / "node.json"
    node.write_text(platform_json(load("mi250x", file)))
    copy = copies(node, "0-1", "engine", sizes=[16384], ROC_P2P_SDMA_SIZE="0")
    assert copy[(0, 1), "engine", 16384] > 1  # each of three engines has 5,461 bytes


def test_a_delay_is_each_transfers_or_the_first_ones(changed, copies):
    engine = ["copy engine of copies device0-device6"]
    healthy = copies("mi250x", "0-6", "latency")
    ((key, latency),) = healthy.items()
    slow = copies(changed(names=engine, delay_us=10), "0-6", "latency")
    assert slow[key] == pytest.approx(latency + 10)
    first = copies(changed(names=engine, delay_us=1e6, first=1), "0-6", "latency")
    assert first[key] == pytest.approx(latency)


def test_a_memory_is_slow_for_some_sizes_whoever_shares_it(changed, run):
    node = changed(names=["memory of device3"], bandwidth_factor=0.5, bytes=[1 << 28, 1 << 40])
    chosen = ("--devices", "3", "--sizes", "64MiB,1GiB", "--kernels", "triad")
    found, healthy = (
        [one["median"] for one in run("stream", *chosen, node=one).series]
        for one in (node, "mi250x")
    )
    assert found[0] == healthy[0]
    assert found[1] == pytest.approx(healthy[1] / 2, rel=0.01)


def test_messages_have_the_faults_of_their_way(changed, ranks):
    def bandwidth(node):
        ran = ranks("mpi", ["device0", "device6"], "--pairs", "0-1", "--sizes", "4MiB,64MiB",
                    *("--operations", "bandwidth,latency", "--together", "none"),
                    *("--collectives", "none", "--types", "none"), node=node)  # fmt: skip
        assert ran.code == 0, ran.err
        return {(one["operation"], one["bytes"]): one["median"] for one in ran.series}

    healthy = bandwidth("mi250x")
    names = ["copy engine of messages device0-device6"]
    slow = bandwidth(changed(names=names, bandwidth_factor=0.1, bytes=[1 << 20, 8 << 20]))
    ratios = {key: slow[key] / value for key, value in healthy.items()}
    assert ratios.pop(("bandwidth", 4 << 20)) == pytest.approx(0.1, rel=0.1)
    assert [*ratios.values()] == [pytest.approx(1)] * len(ratios)
    late = bandwidth(changed(names=names, delay_us=50))
    ((latency, size),) = ((key, key[1]) for key in healthy if key[0] == "latency")
    assert late[latency] == pytest.approx(healthy[latency] + 50)
    assert size < 1 << 20


def test_a_transfer_that_hangs_ends_at_the_time_limit_and_is_named(changed, run):
    node = changed(names=["copy engine of copies device0-device6"], hangs=True)
    good = run("p2p", "--pairs", "0-1", "--operations", "engine", "--sizes", "1MiB", node=node)
    assert good.code == 0
    arguments = ("--pairs", "0-1,0-6", "--operations", "engine", "--sizes", "1MiB")
    ran = run("p2p", *arguments, "--time-limit", "2", node=node)
    assert ran.code == 6
    assert ran.sentence == (
        "p2p: not finished within the time limit of 2.0 s; the last that began was engine of 1 MiB "
        "from device 0 to 6"
    )
