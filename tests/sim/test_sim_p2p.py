"""`p2p` on the simulated MI250X node: E7 and E8 against what was published."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fabricheck.node import load
from fabricheck.node.schema import Quantity
from fabricheck.node.system import platform_json
from fabricheck.results import document

#: Bytes of the arrays of the benchmark that the published matrices are from, 40 M integers.
BYTES = "160000000"
#: Relative deviations that count as reproduced.
BANDWIDTH, LATENCY = 0.05, 0.15
#: Part of the predicted values that has to be reproduced.
MOST = 0.95

DIRECT = {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 6): 2, (2, 4): 2,
          (0, 2): 1, (1, 3): 1, (1, 5): 1, (3, 7): 1, (4, 6): 1, (5, 7): 1}  # fmt: skip


def matrix(ran, operation):
    """Return the medians of an operation by (source, destination)."""
    return {
        (series["source"]["device"], series["destination"]["device"]): series["median"]
        for series in ran.series
        if series["operation"] == operation
    }


@pytest.fixture(scope="module")
def fitted():
    parameters = load("mi250x").simulation
    quantities = [value for _, value in parameters if isinstance(value, Quantity)]
    return {value.record for value in quantities if value.kind == "fitted"}


@pytest.fixture(scope="module")
def peers(run):
    ran = run("p2p", "--sizes", BYTES, "--operations", "engine,read,write,latency")
    assert ran.code == 0, ran.err
    return ran


def compared(simulated, published, fitted, prefix):
    """Return the relative deviations of the predicted records from what was published."""
    records = {f"{prefix}-{a}{b}": value for (a, b), value in simulated.items()}
    assert len(records) == 56
    return {
        record: value / published[record] - 1
        for record, value in records.items()
        if record not in fitted
    }


def test_the_published_bandwidths_of_copies_are_reproduced(peers, published, fitted):
    deviations = compared(matrix(peers, "engine"), published, fitted, "kth-bw")
    assert max(map(abs, deviations.values())) < BANDWIDTH


def test_copies_have_two_levels(peers):
    levels = matrix(peers, "engine").values()
    assert all(37 < level < 38 or 49 < level < 50.5 for level in levels)
    assert min(levels) < 38 < 49 < max(levels)


def test_most_published_latencies_of_copies_are_reproduced(peers, published, fitted):
    deviations = compared(matrix(peers, "latency"), published, fitted, "kth-lat")
    good = [record for record, deviation in deviations.items() if abs(deviation) < LATENCY]
    assert len(good) >= MOST * len(deviations), sorted(set(deviations) - set(good))


def test_the_detours_are_the_slowest(peers, published):
    latencies = matrix(peers, "latency")
    slowest = sorted(latencies, key=latencies.__getitem__)[-4:]
    assert sorted(slowest) == [(1, 7), (3, 5), (5, 3), (7, 1)]
    low, high = published["paper-p2p-lat-outlier-low"], published["paper-p2p-lat-outlier-high"]
    assert all(0.99 * low < latencies[pair] < 1.01 * high for pair in slowest)
    single = [latencies[pair] for pair, links in DIRECT.items() if links == 1]
    assert max(single) < published["paper-p2p-lat-single"]


@pytest.mark.parametrize("operation", ["read", "write"])
def test_kernels_reach_three_tiers_that_engines_do_not(peers, published, operation):
    rates = matrix(peers, operation)
    record = {4: "quad", 2: "dual", 1: "single"}
    for pair, links in DIRECT.items():
        expected = published[f"lumirfm-commscope-{record[links]}"]
        assert rates[pair] == pytest.approx(expected, rel=BANDWIDTH)


def test_the_mean_of_both_directions_is_that_of_one(run):
    ran = run("p2p", "--sizes", "1GiB", "--pairs", "0-1,0-2", "--operations", "engine-both")
    totals = {tuple(sorted(s["device_set"])): s["median"] for s in ran.series if s["role"] == "sum"}
    assert totals[0, 1] == pytest.approx(100, rel=0.01)
    assert totals[0, 2] == pytest.approx(2 * 37.61, rel=0.01)


def test_pairs_that_share_a_link_share_its_bandwidth(run):
    node = load("mi250x")
    assert node.widest_path(0, 5) == (0, 1, 5) and node.widest_path(1, 4) == (1, 5, 4)
    ran = run("p2p", "--sizes", "1GiB", "--operations", "engine",
              "--together", "0-5,1-4", "--together", "0-2,1-5")  # fmt: skip
    shares = [series["median"] for series in ran.series if series["role"] == "share"]
    assert shares == pytest.approx([37.61 / 2] * 2 + [37.61] * 2, rel=0.01)


@pytest.mark.parametrize("variable", ["HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA"])
def test_without_engines_a_copy_reaches_what_a_kernel_does(run, peers, variable):
    ran = run("p2p", "--sizes", BYTES, "--pairs", "0-1,0-6,0-2", "--operations", "engine",
              **{variable: "0"})  # fmt: skip
    by_kernel = matrix(peers, "write")
    for pair, rate in matrix(ran, "engine").items():
        assert rate == pytest.approx(by_kernel[pair], rel=0.01)


def test_a_link_at_half_width_shows_where_the_engine_does_not_hide_it(run, peers):
    ran = run("p2p", "--sizes", BYTES, "--pairs", "0-1,2-3", "--operations", "engine,read",
              overlay="link-0-1-half-width")  # fmt: skip
    healthy, changed = matrix(peers, "read"), matrix(ran, "read")
    assert changed[0, 1] == pytest.approx(healthy[0, 1] / 2, rel=0.01)
    assert changed[2, 3] == pytest.approx(healthy[2, 3], rel=0.01)
    assert matrix(ran, "engine")[0, 1] == pytest.approx(matrix(peers, "engine")[0, 1], rel=0.01)


def test_a_link_that_is_gone_makes_a_longer_and_narrower_way(run, peers):
    ran = run("p2p", "--sizes", BYTES, "--pairs", "0-6", "--operations", "read,latency",
              overlay="link-0-6-gone")  # fmt: skip
    assert matrix(ran, "read")[0, 6] < 0.6 * matrix(peers, "read")[0, 6]
    assert matrix(ran, "latency")[0, 6] > matrix(peers, "latency")[0, 6] + 1


def test_of_one_to_all_the_sum_is_judged_and_noisy_shares_are_shown(run):
    to_all = ",".join(f"0-{other}" for other in range(1, 8))
    measured = ("--together", to_all, "--operations", "engine", "--max-samples", "15")
    ran = run("p2p", *measured, "--noise-limit", "0.08", FABRICHECK_SIM_NOISE="0.1")
    *shares, total = ran.series
    assert total["role"] == "sum" and not total["noisy"]
    assert len(shares) == 7 and any(share["noisy"] for share in shares)
    assert (ran.code, ran.document["outcome"]["status"]) == (0, "good")


@pytest.mark.slow
def test_the_node_with_a_percent_of_noise_is_not_noisy(run):
    for seed in range(3):
        ran = run("p2p", "--sizes", "64MiB", "--operations", "engine,latency",
                  FABRICHECK_SIM_NOISE="0.01", FABRICHECK_SIM_SEED=str(seed))  # fmt: skip
        assert ran.code == 0, ran.sentence
        assert not any(series["noisy"] for series in ran.series)


GANG_OFF = {"HSA_ENABLE_SDMA_GANG": "0", "ROC_P2P_SDMA_SIZE": "0"}
SMALL = 1 << 20


def moved_by(ran):
    """Return of each pair, operation and size what moved the data, and the rate or time."""
    return {
        (tuple(one["device_set"]), one["operation"], one["bytes"]): (
            one["engine"],
            one["engines"],
            one["median"],
        )
        for one in ran.series
    }


@pytest.fixture(scope="module")
def by_version(run):
    """Run the same copies as ROCm 5.7, the default, as 6.3, and as 6.3 with one engine each."""
    what = ("--sizes", "1MiB,1GiB", "--pairs", "0-1,0-6,0-2,0-3", "--operations", "engine,latency")
    return {
        "5.7": run("p2p", *what),
        "6.3": run("p2p", *what, overlay="rocm-6-3"),
        "6.3, one engine": run("p2p", *what, overlay="rocm-6-3", **GANG_OFF),
    }


def test_the_node_gangs_engines_as_rocm_6_3_does_when_an_overlay_says_so(by_version):
    found = moved_by(by_version["6.3"])
    for other, engines, rate in ((1, 3, 150), (6, 2, 75.2), (2, 1, 37.6), (3, 1, 37.6)):
        label = found[(0, other), "engine", 1 << 30]
        assert label[:2] == ("copy-engine", engines)
        assert label[2] == pytest.approx(rate, rel=0.01)
        assert found[(0, other), "engine", SMALL][:2] == ("kernel", None)
        assert found[(0, other), "latency", 16] == (
            "kernel",
            None,
            pytest.approx(1.77, rel=0.01),
        )
    assert by_version["6.3"].document["versions"]["runtime"] == "6.3.0"
    assert any("several copy engines share" in note for note in by_version["6.3"].document["notes"])


def test_by_default_each_copy_is_by_one_engine_as_in_the_values_it_is_fitted_to(by_version):
    found = moved_by(by_version["5.7"])
    assert {label[:2] for label in found.values()} == {("copy-engine", 1)}
    assert found[(0, 1), "engine", 1 << 30][2] == pytest.approx(50, rel=0.01)
    assert by_version["5.7"].document["notes"] == []


def test_the_variables_of_the_checks_make_6_3_what_5_7_is(by_version):
    assert moved_by(by_version["6.3, one engine"]) == moved_by(by_version["5.7"])


def test_the_engines_between_devices_are_not_off_where_they_are_ganged(run):
    ran = run("p2p", "--sizes", BYTES, "--pairs", "0-1,0-2", "--operations", "engine",
              overlay="rocm-6-3", HSA_ENABLE_PEER_SDMA="0")  # fmt: skip
    labels = {pair: label[:2] for (pair, _, _), label in moved_by(ran).items()}
    assert labels == {(0, 1): ("copy-engine", 3), (0, 2): ("kernel", None)}
    assert any("several together still do" in note for note in ran.document["notes"])


def test_a_note_on_several_jobs_is_said_once(run):
    ran = run("p2p", "--sizes", "1MiB,2MiB", "--together", "all",
              "--operations", "engine")  # fmt: skip
    (note,) = ran.document["notes"]
    assert note.startswith("more than 3 copies leave a device at once")
    assert ran.err.count(note) == 1


def test_a_variable_set_twice_is_told_and_the_first_value_holds(programs, tmp_path):
    node = tmp_path / "node.json"
    node.write_text(platform_json(load("mi250x")))
    output = tmp_path / "result.json"
    # A shell sets a name once: the second entry is made by hand.
    script = (
        "import ctypes, sys; names = [n.encode() for n in sys.argv[2:sys.argv.index('--')]]; "
        "args = [a.encode() for a in sys.argv[sys.argv.index('--') + 1:]]; "
        "array = lambda t: (ctypes.c_char_p * (len(t) + 1))(*t, None); "
        "ctypes.CDLL(None).execve(sys.argv[1].encode(), array(args), array(names))"
    )
    path = str(programs / "p2p")
    subprocess.run(
        [sys.executable, "-c", script, path, "HSA_ENABLE_SDMA=0", "HSA_ENABLE_SDMA=1",
         f"FABRICHECK_SIMULATED_NODE={node}",
         f"LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH', '')}",
         "--", path, "--sizes", "64MiB", "--pairs", "0-1", "--operations", "engine",
         "--output", str(output)],
        check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    ran = document.load(output)
    assert ran["environment"]["HSA_ENABLE_SDMA"] == "0"
    assert ran["series"][0]["engine"] == "kernel"
    assert "HSA_ENABLE_SDMA is set twice, to '0' and to '1': the first is in effect" in ran["notes"]


def test_more_copies_of_a_device_than_queues_ask_for_queues_before_the_runtime_starts(run):
    many = "0-1,0-2,0-3,0-4,0-5"
    ran = run("p2p", "--sizes", BYTES, "--together", many, "--operations", "engine")
    assert ran.document["environment"]["GPU_MAX_HW_QUEUES"] == "7"
    assert any("more than 3 copies leave a device at once" in n for n in ran.document["notes"])
    ran = run("p2p", "--sizes", BYTES, "--together", many, "--operations", "engine",
              GPU_MAX_HW_QUEUES="4")  # fmt: skip
    assert ran.document["environment"]["GPU_MAX_HW_QUEUES"] == "4"
    ran = run("p2p", "--sizes", BYTES, "--pairs", "0-1", "--operations", "engine")
    assert "GPU_MAX_HW_QUEUES" not in ran.document["environment"]
