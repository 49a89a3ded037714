"""`stream` on the simulated MI250X node: E1 and E5 against what was published."""

from __future__ import annotations

import pytest

from fabricheck.results.document import load

SETS = ("--devices", "0", "--devices", "0,1", "--devices", "0,4", "--devices", "0,2,4,6",
        "--devices", "all")  # fmt: skip


@pytest.fixture(scope="module")
def local(run):
    return run("stream", "--sizes", "8GiB")


@pytest.fixture(scope="module")
def from_host(run):
    """Total bandwidth of the STREAM copy between host arrays, by device set."""
    ran = run("stream", *SETS, "--kernels", "copy", "--sizes", "8GiB",
              "--source", "host", "--destination", "host")  # fmt: skip
    totals = {
        tuple(series["device_set"]): series["median"]
        for series in ran.series
        if series["role"] != "share"
    }
    assert len(totals) == 5
    return totals


def test_the_document_says_that_it_is_simulated_and_what(local):
    assert local.code == 0
    document = load(local.output)
    assert document["clock"] == "simulated"
    assert document["program"]["runtime"] == "sim"
    assert document["node"]["name"] == "mi250x"
    assert document["node"]["overlay"] is None
    assert document["host"]["hostname"] == "mi250x (simulated)"
    assert len(document["devices"]) == 8
    assert all(device["name"].endswith("(simulated)") for device in document["devices"])
    assert document["devices"][0]["arch"] == "gfx90a:sramecc+:xnack-"
    assert document["devices"][0]["pci_address"] == "0000:c1:00.0"
    assert [device["numa_domain"] for device in document["devices"]] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert "simulated" in local.err and "measured" not in local.err


def test_one_sample_of_a_verified_slice_is_a_series(local):
    assert len(local.series) == 8 * 4
    for series in local.series:
        assert len(series["samples"]) == 1 and series["batch"] == 1
        assert series["host_clock"] is None and series["ci95"] is None
        assert series["bytes"] == 8 << 30
        assert 0 < series["verification"]["bytes_checked"] < series["bytes"]
        assert series["regime"] == "memory"


def test_the_simulated_clock_has_every_operation_and_no_wall_time(local):
    timed = sum(one["bytes_moved"] / one["median"] / 1e9 for one in local.series)
    # Each is made once before it is timed; filling and comparing are of a slice.
    assert local.document["simulated_s"] == pytest.approx(2 * timed, rel=0.02)


def test_local_stream_reaches_what_was_published(local, published):
    for series in local.series:
        assert series["median"] == pytest.approx(published["paper-stream-local"], rel=0.01)
        assert 100 * series["median"] / 1600 == pytest.approx(
            published["paper-stream-local-pct"], abs=1
        )
    copies = [series["median"] for series in local.series if series["operation"] == "copy"]
    gib = published["lumi-train-hipstream"]  # not fitted
    assert copies == pytest.approx([gib * 2**30 / 1e9] * 8, rel=0.05)


def test_small_arrays_are_bound_by_the_launch(run):
    ran = run("stream", "--devices", "0", "--kernels", "copy", "--sizes", "1KiB:8GiB")
    rates = [series["median"] for series in ran.series]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(2 * 1024 / 1.77e-6 / 1e9, rel=0.01)
    assert ran.series[0]["verification"]["bytes_checked"] == 1024


def test_two_devices_of_a_package_gain_nothing_and_spread_ones_double(from_host, published):
    one = from_host[0,]
    assert from_host[0, 1] / one == pytest.approx(published["paper-cpugpu-stream-same-2"], rel=0.05)
    assert from_host[0, 4] / one == pytest.approx(
        published["paper-cpugpu-stream-spread-2"], rel=0.05
    )


def test_eight_devices_equal_four(from_host, published):
    four = from_host[0, 2, 4, 6]
    assert four / from_host[0,] == pytest.approx(published["paper-cpugpu-stream-4"], rel=0.05)
    every = from_host[0, 1, 2, 3, 4, 5, 6, 7]
    assert every / four == pytest.approx(published["paper-cpugpu-stream-8v4"], rel=0.05)


def test_a_domain_with_half_its_memory_slows_the_devices_near_it_alone(run, from_host):
    ran = run("stream", "--devices", "each", "--kernels", "copy", "--sizes", "8GiB",
              "--source", "host", "--destination", "host",
              overlay="domain-2-half-memory")  # fmt: skip
    assert len(ran.series) == 8
    for series in ran.series:
        slow = series["device"] in (6, 7)
        assert (series["source"]["numa_domain"] == 2) == slow
        expected = 51.2 / 2 if slow else from_host[0,]
        assert series["median"] == pytest.approx(expected, rel=0.001)


def test_both_ways_are_bounded_by_the_memory_of_the_domain(run, from_host):
    def rate(source: str, destination: str, devices: str) -> float:
        ran = run("stream", "--devices", devices, "--kernels", "copy", "--sizes", "8GiB",
                  "--source", source, "--destination", destination)  # fmt: skip
        [total] = [series["median"] for series in ran.series if series["role"] != "share"]
        return total / 2  # the host's part of what is read and written

    down, up = rate("host", "device", "0"), rate("device", "host", "0")
    assert down == pytest.approx(25.5, rel=0.001) and up == pytest.approx(down)
    assert from_host[0,] == pytest.approx(min(51.2, down + up), rel=0.001)
    assert rate("host", "device", "0,1") == pytest.approx(min(51.2, 2 * down), rel=0.001)
    assert rate("host", "device", "0,4") == pytest.approx(2 * down, rel=0.001)


def test_kernels_on_peers_show_three_tiers(run, published):
    low, high = published["paper-stream-p2p-pct-low"], published["paper-stream-p2p-pct-high"]
    for peer, links in ((1, 4), (6, 2), (2, 1)):
        place = f"peer:{peer}"
        ran = run("stream", "--devices", "0", "--kernels", "copy", "--sizes", "8GiB",
                  "--source", place, "--destination", place)  # fmt: skip
        [series] = ran.series
        assert series["experiment"] == "E8" and series["direction"] == "both-ways"
        assert low <= 100 * series["median"] / (100 * links) <= high


def test_a_slow_memory_is_slow_on_its_device_alone(run):
    ran = run("stream", "--kernels", "copy", "--sizes", "8GiB", overlay="device-3-memory-slow")
    rates = {series["device"]: series["median"] for series in ran.series}
    assert rates.pop(3) == pytest.approx(0.92 * 1400, rel=0.01)
    assert list(rates.values()) == pytest.approx([1400] * 7, rel=0.01)
    assert load(ran.output)["node"]["overlay"]["name"] == "device 3 memory 8 % slow"


def test_noise_is_seeded_and_takes_the_usual_samples(run):
    def rates(seed: str) -> list[float]:
        ran = run("stream", "--devices", "0", "--kernels", "copy",
                  FABRICHECK_SIM_NOISE="0.01", FABRICHECK_SIM_SEED=seed)  # fmt: skip
        assert ran.code == 0
        [series] = ran.series
        assert series["ci95"] is not None
        return series["samples"]

    first = rates("1")
    assert len(first) >= 7 and len(set(first)) == len(first)
    assert first == pytest.approx([1400] * len(first), rel=0.06)
    assert rates("1") == first
    assert rates("2") != first


def test_faults_are_found_in_the_slice(run):
    ran = run("stream", "--devices", "0", "--kernels", "copy", "--inject-fault", "flip-bit:800:7")
    assert ran.code == 5
    assert "1 of 131072 words are wrong, the first at byte 800" in ran.sentence


def test_only_the_host_runtime_drops_single_launches(run):
    ran = run("stream", "--devices", "0", "--inject-fault", "drop:1")
    assert ran.code == 2
    assert ran.sentence.startswith("stream: 'drop:1' is not a fault")


def test_an_error_that_names_hardware_is_one_of_the_device(run):
    ran = run("stream", "--devices", "0", "--kernels", "copy", "--inject-fault", "device-error")
    assert (ran.code, load(ran.output)["outcome"]["status"]) == (9, "device-error")


def test_visible_devices_are_those_that_the_variables_name(run):
    ran = run("stream", "--kernels", "copy", HIP_VISIBLE_DEVICES="3,0",
              overlay="device-3-memory-slow")  # fmt: skip
    slow, fast = (series["median"] for series in ran.series)
    assert slow < 0.95 * fast
    assert [device["index"] for device in load(ran.output)["devices"]] == [0, 1]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"FABRICHECK_SIMULATED_NODE": ""},
            "there is no node to simulate: name its file in FABRICHECK_SIMULATED_NODE",
        ),
        (
            {"FABRICHECK_SIMULATED_NODE": "nowhere.json"},
            "FABRICHECK_SIMULATED_NODE names 'nowhere.json', which can",
        ),
        ({"HIP_VISIBLE_DEVICES": "0,8"}, "HIP_VISIBLE_DEVICES names '8', which is none of the 8"),
        ({"FABRICHECK_SIM_NOISE": "much"}, "FABRICHECK_SIM_NOISE is 'much', not a number"),
    ],
)
def test_without_a_usable_node_there_is_a_sentence_and_a_document(run, variables, said):
    ran = run("stream", **variables)
    assert ran.code == 3
    assert said in ran.sentence
    document = load(ran.output)
    assert not document["complete"]
    assert said in document["outcome"]["message"]
    assert document["clock"] == "simulated"


def test_a_program_is_no_node(run, programs):
    ran = run("stream", node=programs / "stream")
    assert ran.code == 3
    assert "does not describe a node to simulate (it is no JSON)" in ran.sentence


def test_more_memory_than_the_node_has_is_refused(run):
    ran = run("stream", "--devices", "0", "--sizes", "32GiB")
    assert ran.code == 3
    assert ran.sentence.startswith("stream: device 0 has 0 B of memory free, but 32 GiB more")
