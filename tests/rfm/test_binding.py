"""What the check of binding says of ranks that do not sit where they should."""

from __future__ import annotations

import copy

import pytest
from stand_ins import findings_figure

from fabricheck.node import load
from fabricheck.node.placement import placements
from fabricheck.results.model import describe_ranks
from fabricheck.rfm.findings import AffinityCheck, misplaced
from fabricheck.rfm.metrics import MetricError

MI250X = load("mi250x")
RIGHT = placements(MI250X)["right"]
WANTED = (8, RIGHT, MI250X)


def rank_of(rank: int) -> dict:
    core, device = RIGHT.cores[rank], RIGHT.devices[rank]
    domain = MI250X.device(device).domain
    return {
        "rank": rank,
        "host": "nid1",
        "cores": [core],
        "numa_domain": domain,
        "memory_domain": domain,
        "visible_devices": list(range(8)),
        "device": device,
    }


@pytest.fixture
def document() -> dict:
    """Return as much of a document as the check reads, of ranks that sit right."""
    addresses = {0: "0000:c1:00.0"}
    return {
        "host": {"hostname": "nid1"},
        "devices": [{"index": i, "pci_address": addresses.get(i)} for i in range(8)],
        "ranks": [rank_of(rank) for rank in range(8)],
    }


def figure(document):
    return findings_figure(AffinityCheck, document, num_tasks=8, placed=RIGHT, node=MI250X)


def test_ranks_that_sit_right(document):
    assert list(misplaced(document, *WANTED)) == []
    assert figure(document).value == 0


@pytest.mark.parametrize(
    ("rank", "changed"),
    [
        (3, {"cores": []}),
        (3, {"cores": [24]}),
        (
            3,
            {"cores": [25, 26]},
        ),
        (
            3,
            {"numa_domain": 0},
        ),
        (
            3,
            {"memory_domain": None},
        ),
        (3, {"device": None}),
        (3, {"host": "nid2"}),
    ],
)
def test_a_rank_that_sits_elsewhere(document, rank, changed, wording):
    document["ranks"][rank].update(changed)
    (fault,) = misplaced(document, *WANTED)
    wording(fault)


def test_a_rank_on_the_device_of_another(document, wording):
    document["ranks"][3]["device"] = 2
    wording(list(misplaced(document, *WANTED)))


def test_a_rank_on_the_core_of_another(document, wording):
    document["ranks"][3]["cores"] = [17]
    wording(list(misplaced(document, *WANTED)))


def test_two_ranks_on_a_device_where_that_was_asked_for(document):
    shared = placements(MI250X)["shared_device"]
    ranks = [copy.deepcopy(document["ranks"][0]) for _ in range(2)]
    ranks[1] |= {"rank": 1, "cores": [shared.cores[1]]}
    document["ranks"] = ranks
    assert list(misplaced(document, 2, shared, MI250X)) == []


@pytest.mark.parametrize("number", [0, 7])
def test_a_rank_that_is_missing(document, number, wording):
    document["ranks"] = document["ranks"][:number]
    wording(misplaced(document, *WANTED))


def test_without_a_placement_each_rank_needs_a_core_and_a_device_of_its_own(document, wording):
    document["ranks"] = document["ranks"][:2]
    document["ranks"][1] |= {"cores": list(range(64)), "numa_domain": None}
    assert list(misplaced(document, 2)) == []
    document["ranks"][1]["device"] = 0
    wording(list(misplaced(document, 2)))


def test_a_document_without_ranks_is_no_proof(document):
    document["ranks"] = None
    sentence = "Metric misplaced: the result of node nid1 has no ranks"
    with pytest.raises(MetricError, match=sentence):
        figure(document)


def test_the_map(document, wording):
    wording(describe_ranks(document))
