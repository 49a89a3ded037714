"""`mpi` under SMPI on the simulated MI250X node: E9, E10 and E12 follow its links."""

from __future__ import annotations

import pytest

from fabricheck.node import load

ALL = {(a, b) for a in range(8) for b in range(8) if a != b}
DIRECT = {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 6): 2, (2, 4): 2,
          (0, 2): 1, (1, 3): 1, (1, 5): 1, (3, 7): 1, (4, 6): 1, (5, 7): 1}  # fmt: skip
ONLY_PAIRS = ("--collectives", "none", "--types", "none")


@pytest.fixture(scope="module")
def launch(ranks):
    """Run `mpi` with a rank on each of the simulated hosts named, by default all devices."""

    def launch(*arguments, hosts=None, **more):
        names = hosts or [f"device{device}" for device in range(8)]
        return ranks("mpi", names, *arguments, **more)

    return launch


def chosen(ran, **wanted):
    """Return the series of a run that have these values."""
    return [one for one in ran.series if all(one[k] == value for k, value in wanted.items())]


def pairs(ran, operation, role="single"):
    """Return the medians of an operation by (source, destination)."""
    found = chosen(ran, operation=operation, role=role)
    return {tuple(one["ranks"]): one["median"] for one in found}


@pytest.fixture(scope="module")
def by_kernel(launch):
    ran = launch("--together", "none", *ONLY_PAIRS, HSA_ENABLE_SDMA="0")
    assert ran.code == 0, ran.err
    return ran


@pytest.fixture(scope="module")
def by_engine(launch):
    ran = launch("--together", "none", "--operations", "bandwidth", *ONLY_PAIRS)
    assert ran.code == 0, ran.err
    return ran


def copies(ran, operation):
    """Return the medians of `p2p` by (source, destination)."""
    return {
        (one["source"]["device"], one["destination"]["device"]): one["median"]
        for one in ran.series
        if one["operation"] == operation
    }


@pytest.mark.full
def test_messages_without_the_engine_reach_three_tiers(by_kernel, run):
    rates = pairs(by_kernel, "bandwidth")
    assert set(rates) == ALL
    single = rates[0, 2]
    for (a, b), links in DIRECT.items():
        for pair in ((a, b), (b, a)):
            assert rates[pair] == pytest.approx(links * single, rel=0.02)
    kernels = copies(run("p2p", "--sizes", "1GiB", "--operations", "write"), "write")
    for pair, rate in rates.items():
        assert rate == pytest.approx(kernels[pair], rel=0.03)


@pytest.mark.full
def test_messages_by_the_engine_stay_below_its_peak(by_engine, run):
    rates = pairs(by_engine, "bandwidth")
    assert set(rates) == ALL
    assert 45 < max(rates.values()) < 50
    engines = copies(run("p2p", "--sizes", "1GiB", "--operations", "engine"), "engine")
    for pair, rate in rates.items():
        assert rate == pytest.approx(engines[pair], rel=0.03)


@pytest.mark.full
def test_two_ranks_on_a_device_take_its_memory_twice(launch):
    hosts = [f"device{device}" for device in range(8) for _ in range(2)]
    pairs_ = ",".join(f"{rank}-{rank + 1}" for rank in range(0, 16, 2))
    for engines in ("1", "0"):
        ran = launch("--pairs", pairs_, "--together", "none", "--operations", "bandwidth",
                     *ONLY_PAIRS, hosts=hosts, HSA_ENABLE_SDMA=engines)  # fmt: skip
        assert ran.code == 0, ran.err
        found = {tuple(one["device_set"]): one["median"] for one in ran.series}
        assert found.keys() == {(device,) for device in range(8)}
        # Each byte is read and written: half of the 1400 GB/s of STREAM, and each message begins.
        assert all(600 < rate < 700 for rate in found.values())


@pytest.mark.slow
def test_a_large_message_is_verified_by_a_slice_and_a_small_one_whole(by_kernel):
    for one in chosen(by_kernel, operation="bandwidth"):
        assert one["bytes"] == 256 << 20
        assert one["verification"]["bytes_checked"] == 1 << 20
    for one in chosen(by_kernel, operation="latency"):
        assert one["verification"]["bytes_checked"] == 2 * 16


@pytest.mark.slow
def test_one_launch_of_eight_ranks_has_everything(launch):
    ran = launch("--sizes", "64KiB", "--collective-sizes", "64KiB", "--counts", "1009,16411")
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["complete"]
    assert document["clock"] == "simulated"
    # SMPI's clock, which all ranks have in common: they take their turns in it.
    timed = sum(one["median"] for one in document["series"] if one["unit"] == "us") / 1e6
    assert timed < document["simulated_s"] < 1
    assert set(pairs(ran, "bandwidth")) == set(pairs(ran, "bandwidth", "share")) == ALL
    assert set(pairs(ran, "latency")) == ALL
    assert len(chosen(ran, role="sum")) == 14
    for operation in ("bcast", "allgather", "reduce", "allreduce", "reduce_scatter"):
        times = {len(one["ranks"]): one["median"]
                 for one in chosen(ran, operation=operation, experiment="E10")}  # fmt: skip
        assert set(times) == set(range(2, 9))
        assert times[8] > times[2] > 0
    # A broadcast to one other rank is a message to it.
    message_us = (64 << 10) / pairs(ran, "bandwidth")[0, 1] / 1e3
    to_one = [one for one in chosen(ran, operation="bcast") if one["ranks"] == [0, 1]]
    assert message_us < to_one[0]["median"] < 1.1 * message_us
    checked = {}
    for one in chosen(ran, experiment="E12", datatype="double"):
        checked[one["operation"], one["bytes"]] = one["verification"]["bytes_checked"]
    # Two primes: no number of ranks divides them.
    for count in (1009, 16411):
        assert checked["reduce_scatter", 8 * count] == 8 * count
        assert checked["allgather", 8 * count] == 64 * 8 * count
        assert checked["exchange", 8 * count] == 56 * 8 * count


def test_pairs_at_once_share_the_link_between_them(launch):
    node = load("mi250x")
    assert node.widest_path(0, 5) == (0, 1, 5) and node.widest_path(1, 4) == (1, 5, 4)
    ran = launch("--pairs", "0-5,0-2", "--together", "0-5,1-4", "--operations", "bandwidth",
                 *ONLY_PAIRS, HSA_ENABLE_SDMA="0")  # fmt: skip
    alone, shares = pairs(ran, "bandwidth"), pairs(ran, "bandwidth", "share")
    assert list(shares.values()) == pytest.approx([alone[0, 5] / 2] * 2, rel=0.02)
    (total,) = chosen(ran, role="sum")
    assert total["median"] == pytest.approx(alone[0, 5], rel=0.02)
    assert total["ranks"] == [0, 5, 1, 4]


def test_both_ways_at_once_move_twice_as_much(launch):
    ran = launch("--pairs", "0-1", "--operations", "bandwidth,bandwidth-both", *ONLY_PAIRS,
                 hosts=["device0", "device1"], HSA_ENABLE_SDMA="0")  # fmt: skip
    one_way, both = pairs(ran, "bandwidth")[0, 1], pairs(ran, "bandwidth-both")[0, 1]
    assert both == pytest.approx(2 * one_way, rel=0.02)


def test_a_link_at_half_width_halves_its_messages(launch, by_kernel):
    ran = launch("--pairs", "0-1,2-3", "--operations", "bandwidth", *ONLY_PAIRS,
                 overlay="link-0-1-half-width", HSA_ENABLE_SDMA="0")  # fmt: skip
    changed, healthy = pairs(ran, "bandwidth"), pairs(by_kernel, "bandwidth")
    assert changed[0, 1] == pytest.approx(healthy[0, 1] / 2, rel=0.02)
    assert changed[2, 3] == pytest.approx(healthy[2, 3], rel=0.01)


def test_ranks_may_be_on_other_devices_than_their_number(launch, by_kernel):
    ran = launch("--pairs", "0-1,1-2", "--operations", "bandwidth", *ONLY_PAIRS,
                 hosts=["device6", "device0", "device2"], HSA_ENABLE_SDMA="0")  # fmt: skip
    rates, healthy = pairs(ran, "bandwidth"), pairs(by_kernel, "bandwidth")
    assert rates[0, 1] == pytest.approx(healthy[6, 0], rel=0.001)
    assert rates[1, 2] == pytest.approx(healthy[0, 2], rel=0.001)
    assert ran.series[0]["device_set"] == [6, 0]


def test_ranks_on_domains_use_memory_of_the_host(launch):
    ran = launch("--counts", "1009", "--sizes", "16MiB", hosts=["domain0", "domain3"])
    assert ran.code == 0, ran.err
    for one in ran.series:
        assert one["source"]["memory"] == "host-pageable"
        assert one["device_set"] == []
    assert [one["source"]["numa_domain"] for one in chosen(ran, operation="latency")] == [0, 3]


def test_wrong_data_of_one_rank_is_found_among_eight(launch):
    ran = launch("--pairs", "none", "--collectives", "allreduce", "--types", "float",
                 "--counts", "250", "--trial", "--inject-fault", "rank:3:flip-bit:8:3")  # fmt: skip
    assert ran.code == 5
    assert (
        "mpi: allreduce of 1000 B of float among ranks 0 to 7: 1 of 2000 elements are wrong, the "
        "first on rank 3 at byte 8: expected "
    ) in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--pairs", "0-9"], 3, "rank 9 of the pair 0-9 does not exist: the launch has 2, 0 to 1"),
        (["--types", "half"], 2, "'half' is not a type"),
        (["--sizes", "3GiB"], 2, "more elements than MPI counts"),
    ],
)
def test_bad_input_ends_a_simulation_with_its_exit_code(launch, arguments, code, part):
    ran = launch(*arguments, hosts=["device0", "device1"])
    assert ran.code == code
    assert part in ran.err
    assert not ran.document["complete"]


@pytest.mark.slow
def test_messages_of_rocm_6_3_are_by_as_many_engines_as_copies_are(launch):
    hosts = ["device0", "device1", "device6", "device2"]
    ran = launch("--together", "none", *ONLY_PAIRS, hosts=hosts, overlay="rocm-6-3")
    alone = launch("--together", "none", *ONLY_PAIRS, hosts=hosts, overlay="rocm-6-3",
                   HSA_ENABLE_SDMA_GANG="0")  # fmt: skip
    shared, single = pairs(ran, "bandwidth"), pairs(alone, "bandwidth")
    assert shared[0, 1] > 2.5 * single[0, 1] and shared[0, 1] < 3 * single[0, 1]
    assert 1.4 * single[0, 2] < shared[0, 2] < 1.6 * single[0, 2]
    assert shared[0, 3] == pytest.approx(single[0, 3])
    assert any("an MPI's copies too" in note for note in ran.document["notes"])


def test_the_simulated_clock_counts_messages_and_not_how_ranks_wait_for_commands(launch):
    options = ("--operations", "bandwidth", "--pairs", "0-1", "--sizes", "1MiB")
    ran = launch(*options, *ONLY_PAIRS, hosts=["device0", "device1"])
    (one,) = ran.series
    moved = one["batch"] * one["bytes"] / (one["median"] * 1e9)
    # One sample, and the messages that warm up; each look at MPI would cost 0.1 ms.
    assert ran.document["simulated_s"] == pytest.approx(2 * moved, abs=2e-4)
