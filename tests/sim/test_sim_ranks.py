"""Ranks under SMPI on a simulated node: where they are, and what happens when one fails."""

import json

import pytest

DEVICES = [f"device{index}" for index in range(8)]


def sentences(ran):
    """Return the lines of standard error that the program said."""
    return [line for line in ran.err.splitlines() if line.startswith(("affinity:", "fabricheck:"))]


def test_ranks_on_devices_have_these(ranks):
    ran = ranks("affinity", DEVICES)
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["clock"] == "simulated" and document["node"]["name"] == "mi250x"
    assert document["versions"]["mpi"].startswith("SMPI")
    assert [rank["device"] for rank in document["ranks"]] == list(range(8))
    assert len(document["devices"]) == 8
    first = document["ranks"][0]
    assert first["numa_domain"] is None and len(first["cores"]) == 64
    assert sentences(ran) == []


def test_ranks_share_a_device_or_choose_another(ranks):
    ran = ranks("affinity", ["device3", "device3"])
    assert [rank["device"] for rank in ran.document["ranks"]] == [3, 3]
    ran = ranks("affinity", ["device3", "domain0"], "--map", "5,2")
    assert [rank["device"] for rank in ran.document["ranks"]] == [5, 2]


def test_ranks_on_domains_have_their_cores_and_no_device(ranks):
    ran = ranks("affinity", ["domain1", "domain3"])
    for rank, domain in zip(ran.document["ranks"], (1, 3), strict=True):
        assert rank["numa_domain"] == domain and rank["memory_domain"] == domain
        cores = next(
            d["cores"] for d in ran.document["host"]["numa_domains"] if d["index"] == domain
        )
        assert rank["cores"] == cores and rank["device"] is None


def test_a_core_gives_a_rank_its_domain(ranks):
    ran = ranks("affinity", ["device0", "device1"], "--bind", "49,1")
    found = [(r["cores"], r["numa_domain"], r["memory_domain"]) for r in ran.document["ranks"]]
    assert found == [([49], 3, 3), ([1], 0, 0)]


@pytest.mark.parametrize(
    ("hosts", "arguments", "variables", "code", "said"),
    [
        (DEVICES[:2], ["--bind", "1,640"], {}, 3, "rank 1: the node has no core 640"),
        (DEVICES[:2], ["--map", "0"], {}, 2, "rank 1: --map names the devices of 1 rank(s)"),
        (
            DEVICES[:2],
            [],
            {"HIP_VISIBLE_DEVICES": "0"},
            8,
            "rank 1: device1 is not visible; HIP_VISIBLE_DEVICES is 0",
        ),
        (["home"], [], {}, 3, "start it by smpirun -platform libfabricheck_node.so"),
    ],
)
def test_a_bad_place_is_one_sentence(ranks, hosts, arguments, variables, code, said):
    ran = ranks("affinity", hosts, *arguments, **variables)
    assert ran.code == code, ran.err
    (sentence,) = sentences(ran)
    assert said in sentence and said in ran.document["outcome"]["message"]


def test_without_a_node_nothing_starts(ranks, tmp_path):
    for node in (tmp_path / "nowhere.json", tmp_path / "empty.json"):
        (tmp_path / "empty.json").write_text("{}")
        ran = ranks("affinity", DEVICES[:2], node=node)
        assert ran.code == 3 and not ran.output.exists()
        (sentence,) = sentences(ran)
        assert node.name in sentence


def test_without_the_plug_in_there_is_no_node(ranks, tmp_path):
    ran = ranks("affinity", DEVICES[:2], FABRICHECK_SIMULATED_NODE="")
    assert ran.code == 3
    assert "name its file in FABRICHECK_SIMULATED_NODE" in sentences(ran)[0]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("throw", "rank 1: injected failure"),
        ("hang", "came to a halt: every rank waits; rank 1 has not come to: tell where each rank"),
    ],
)
def test_a_rank_that_goes_no_further_is_named(ranks, fault, said):
    ran = ranks("affinity", DEVICES[:3], "--inject-fault", f"rank:1:{fault}", "--time-limit", "30")
    assert ran.code == 4
    outcome = ran.document["outcome"]
    assert outcome["status"] == "software" and said in outcome["message"]


def test_a_simulation_that_dies_leaves_a_partial_document(ranks):
    ran = ranks("affinity", DEVICES[:3], "--inject-fault", "rank:1:die")
    assert ran.code != 0 and not ran.output.exists()
    partial = json.loads((ran.output.parent / "result.json.partial").read_text())
    assert not partial["complete"]
