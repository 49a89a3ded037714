"""Messages of ranks on the simulated MI250X node take what its model says: ways and costs."""

from __future__ import annotations

import os
import subprocess

import pytest

from fabricheck.node import load
from fabricheck.node.platform import platform
from fabricheck.node.system import platform_json
from fabricheck.results.document import load as load_document

NOTHING_ELSE = ("--together", "none", "--collectives", "none", "--types", "none")


@pytest.fixture(scope="module")
def medians(programs, tmp_path_factory):
    """Run `mpi` on two simulated hosts; return GB/s or us of rank 0 to 1 by operation and bytes."""

    def medians(hosts, *arguments, **variables):
        folder = tmp_path_factory.mktemp("messages")
        (folder / "node.json").write_text(platform_json(load("mi250x")))
        (folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
        launcher = ["smpirun", "-np", "2", "-platform", str(programs / "libfabricheck_node.so")]
        settings = ["-hostfile", "hosts", "--log=root.thresh:error"]
        program = [str(programs / "mpi"), "--pairs", "0-1", *NOTHING_ELSE, *arguments]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FABRICHECK_", "HSA_"))}
        done = subprocess.run(
            [*launcher, *settings, *program, "--output", "result.json"],
            cwd=folder,
            env=kept | {"FABRICHECK_SIMULATED_NODE": "node.json"} | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        series = load_document(folder / "result.json")["series"]
        return {(one["operation"], one["bytes"]): one["median"] for one in series}

    return medians


@pytest.fixture(scope="module")
def content():
    return platform(load("mi250x"))


def gbs(content, name):
    return next(link["gbs"] for link in content["links"] if link["name"] == name)


@pytest.mark.parametrize(
    ("sdma", "to", "link"),
    [
        ("0", 1, "link 0-1"),
        ("0", 6, "link 0-6"),
        ("1", 6, "copy engine of messages device0-device6"),
        ("1", 2, "link 0-2"),
    ],
)
def test_each_message_of_a_window_costs_as_much(medians, content, sdma, to, link):
    sizes = [64 << 10, 16 << 20]
    found = medians(
        ["device0", f"device{to}"],
        *("--operations", "bandwidth", "--sizes", "64KiB,16MiB", "--window", "16"),
        HSA_ENABLE_SDMA=sdma,
    )
    cost = content["message_cost"]["us"]
    for size in sizes:
        alone = size / gbs(content, link) / 1e3
        # A window's acknowledgement is one small message for sixteen.
        ack = content["message_cost"]["small_us"] / 16
        assert size / found["bandwidth", size] / 1e3 == pytest.approx(
            alone + cost + ack, abs=0.1 * cost
        )


@pytest.mark.parametrize(("size", "key"), [(16, "small_us"), (1023, "small_us"), (1024, "us")])
def test_a_latency_is_the_cost_of_one_message(medians, content, size, key):
    found = medians(["device0", "device1"], "--operations", "latency", "--latency-size", str(size))
    cost = content["message_cost"][key]
    assert found["latency", size] == pytest.approx(cost + size / 50e3, rel=0.02)


@pytest.mark.parametrize(("other", "accesses"), [("domain0", 4), ("domain2", 3)])
def test_messages_of_host_memory_pass_it_several_times(medians, content, other, accesses):
    found = medians(
        ["domain0", other],
        *("--operations", "bandwidth,latency", "--sizes", "16MiB"),
        HSA_ENABLE_SDMA="0",
    )
    rate = gbs(content, "memory of domain0") / accesses
    assert found["bandwidth", 16 << 20] == pytest.approx(rate, rel=0.01)
    assert found["latency", 16] == pytest.approx(content["message_cost"]["small_us"], rel=0.02)


def test_two_ranks_on_a_device_share_its_memory(medians, content):
    found = medians(["device3", "device3"], "--operations", "bandwidth", "--sizes", "256MiB")
    rate = gbs(content, "memory of device3") / 2
    assert found["bandwidth", 256 << 20] == pytest.approx(rate, rel=0.05)
