"""`pingpong` by SMPI on simulated nodes: every placement of a node model, and where memory is."""

from __future__ import annotations

import pytest

from fabricheck.node import load
from fabricheck.node.placement import placements

NODES = ("mi250x", "mi250-two-sockets")
PLACEMENTS = [
    pytest.param(node, name, marks=[] if node == "mi250x" else pytest.mark.full)
    for node in NODES
    for name in placements(load(node))
]
#: Peak of the memory of one NUMA domain of mi250x, GB/s: two channels of DDR4-3200 (config/nodes).
DOMAIN_PEAK = 51.2
SIZE = "128MiB"
ONE = ("--memory", "pageable", "--operations", "there-and-back", "--sizes", SIZE)


def numbers(values):
    return ",".join(map(str, values))


@pytest.fixture
def pingpong(ranks):
    """Run pingpong with a rank on each of these devices, bound to these cores."""

    def pingpong(devices, cores, *arguments, **variables):
        # Options give device and core: any host of the simulation will do to live on.
        return ranks("pingpong", ["domain0"] * len(devices), "--map", numbers(devices),
                     "--bind", numbers(cores), *arguments, **variables)  # fmt: skip

    return pingpong


def host_of(series):
    return series["destination" if series["operation"] == "d2h" else "source"]


@pytest.mark.slow
@pytest.mark.parametrize(("node", "name"), PLACEMENTS)
def test_every_placement_of_a_node_has_memory_and_devices_where_it_says(pingpong, node, name):
    placement = placements(load(node))[name]
    ran = pingpong(placement.devices, placement.cores, "--placement", name, "--sizes", "4,1MiB",
                   node=node)  # fmt: skip
    assert ran.code == 0, ran.err
    document = ran.document
    domains = {core: one["index"] for one in document["host"]["numa_domains"]
               for core in one["cores"]}  # fmt: skip
    wanted = [domains[core] for core in placement.cores]
    assert [rank["device"] for rank in document["ranks"]] == list(placement.devices)
    assert [rank["cores"] for rank in document["ranks"]] == [[core] for core in placement.cores]
    assert [rank["memory_domain"] for rank in document["ranks"]] == wanted
    assert len(document["series"]) == 2 * 3 * 2 * len(wanted)
    for series in document["series"]:
        assert series["placement"] == name
        assert series["role"] == "share"
        assert host_of(series)["numa_domain"] == wanted[series["ranks"][0]]
        assert series["verification"]["bytes_checked"] >= series["bytes"]
    local = [domain == document["devices"][device]["numa_domain"]
             for domain, device in zip(wanted, placement.devices, strict=True)]  # fmt: skip
    assert local == list(placement.local)


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_one_rank_has_the_link_as_memcpy_has(run, pingpong, memory):
    alone = ("--memory", memory, "--sizes", SIZE)
    ran = pingpong([0], [49], *alone)
    assert ran.code == 0, ran.err
    reference = run("memcpy", "--devices", "0", "--operations", "h2d-sync,d2h-sync", *alone)
    to_device, to_host, both = (one["median"] for one in ran.series)
    assert [to_device, to_host] == pytest.approx([one["median"] for one in reference.series])
    # One after the other: twice the bytes in the time of both.
    assert both == pytest.approx(2 / (1 / to_device + 1 / to_host))
    assert {one["role"] for one in ran.series} == {"single"}


def test_ranks_of_one_device_share_its_link(pingpong):
    alone = pingpong([0], [49], *ONE).series[0]["median"]
    shared = [one["median"] for one in pingpong([0, 0], [49, 57], *ONE).series]
    assert shared[0] == pytest.approx(shared[1])
    assert alone / 2 < sum(shared) <= 1.01 * alone


def test_ranks_of_one_domain_share_its_memory(pingpong):
    crowded = placements(load("mi250x"))["shared_domain"]
    found = [one["median"] for one in pingpong(crowded.devices, crowded.cores, *ONE).series]
    assert found == pytest.approx([found[0]] * 8, rel=1e-3)
    assert sum(found) <= 1.001 * DOMAIN_PEAK  # they do not start at quite the same time


def test_half_filled_and_right_is_as_fast_as_alone(pingpong):
    right = placements(load("mi250x"))["half_right"]
    alone = pingpong([0], [49], *ONE).series[0]["median"]
    found = [one["median"] for one in pingpong(right.devices, right.cores, *ONE).series]
    assert found == pytest.approx([alone] * 4, rel=0.02)


def test_ranks_on_devices_need_no_map(ranks):
    ran = ranks("pingpong", ["device3", "device1"], *ONE)
    assert ran.code == 0, ran.err
    assert [one["device"] for one in ran.series] == [3, 1]


def test_a_rank_without_a_device_is_told_how_to_get_one(ranks):
    ran = ranks("pingpong", ["device3", "domain1"], *ONE)
    assert ran.code == 2
    assert ran.sentence == "pingpong: rank 1: there is no device for it: name one by --map"


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_pages_that_one_rank_has_elsewhere_are_found(pingpong, memory):
    ran = pingpong([0, 4], [49, 1], "--memory", memory, "--inject-fault", "rank:1:pages-on:2")
    assert ran.code == 8
    assert ran.sentence.startswith(
        "pingpong: rank 1: host memory was asked for on NUMA domain 0, "
        "but its pages are on domain 2, "
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--bind", "49,64"], 3, "rank 1: the node has no core 64"),
        (["--bind", "49"], 2, "rank 1: --bind names the cores of 1 rank(s), and there are more"),
        (["--map", "0,8"], 3, "rank 1: device 8 does not exist: the rank sees 8, 0 to 7"),
        (["--map", "0"], 2, "rank 1: --map names the devices of 1 rank(s), and there are more"),
        (["--map", "0,1", "--inject-fault", "rank:1:pages-on:7"], 8, "NUMA domain 7 is not open"),
        (["--placement", "left"], 2, "--placement: left not in {given,right,in_order"),
    ],
)
def test_bad_places_get_one_sentence_and_their_exit_code(ranks, arguments, code, said):
    ran = ranks("pingpong", ["domain0", "domain0"], *arguments)
    assert ran.code == code
    assert said in ran.sentence
    assert ran.err.count("pingpong: ") == 1


def test_one_wrong_bit_on_one_rank_is_found(pingpong):
    ran = pingpong([0, 4], [49, 1], "--memory", "pageable", "--sizes", SIZE, "--inject-fault",
                   "rank:1:flip-bit:4096:7")  # fmt: skip
    assert ran.code == 5
    assert "h2d of 128 MiB on rank 1: 1 of" in ran.sentence
    assert "words are wrong, the first at byte 4096: expected 0x" in ran.sentence
    assert [one["verification"]["errors"] for one in ran.series] == [0, 1] * 3
