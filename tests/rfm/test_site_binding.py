"""What the check of a site's own binding says of composed documents, right and wrong."""

from __future__ import annotations

import pytest
from stand_ins import findings_figure

from fabricheck.node import load
from fabricheck.rfm.findings import SiteAffinityCheck, misbound, options
from fabricheck.rfm.metrics import MetricError

MI250X = load("mi250x")
# As the Frontier user guide prints them ("Mapping 1 GPU per task", example 1): rank i has the seven
# cores from 1 + 8 i on, and these devices at these addresses.
DEVICES = [4, 5, 2, 3, 6, 7, 0, 1]
ADDRESSES = [f"0000:{bus}:00.0" for bus in ("d1", "d6", "c9", "ce", "d9", "de", "c1", "c6")]


@pytest.fixture
def document() -> dict:
    """Return as much of a document as the check reads, of ranks as that guide prints them."""
    ranks = [
        {
            "rank": rank,
            "host": "frontier00256",
            "cores": list(range(1 + 8 * rank, 8 + 8 * rank)),
            # Devices are numbered in the order in which the ranks saw them.
            "visible_devices": [rank],
            "device": rank,
        }
        for rank in range(8)
    ]
    devices = [{"index": i, "pci_address": address} for i, address in enumerate(ADDRESSES)]
    return {"host": {"hostname": "frontier00256"}, "devices": devices, "ranks": ranks}


def see(document: dict, rank: int, *devices: int) -> None:
    """Let a rank see the devices that ranks of these numbers had."""
    document["ranks"][rank]["visible_devices"] = list(devices)
    document["ranks"][rank]["device"] = devices[0] if devices else None


def test_the_options_of_lumi_and_of_frontier():
    lumi = ["--cpus-per-task={cpus}", "--gpu-bind=map:{devices}", "--gres-flags=allow-task-sharing"]
    assert options(lumi, MI250X) == [
        "--cpus-per-task=7",
        "--gpu-bind=map:4,5,2,3,6,7,0,1",
        "--gres-flags=allow-task-sharing",
    ]
    with pytest.raises(KeyError, match="gpus"):
        options(["--gpus={gpus}"], MI250X)


def test_four_devices_that_share_sixteen_cores_have_four_each():
    assert options(["-c{cpus}", "{devices}"], load("a100-booster")) == ["-c4", "0,1,2,3"]


def test_ranks_as_the_guide_prints_them_sit_right(document):
    assert list(misbound(document, MI250X)) == []
    assert findings_figure(SiteAffinityCheck, document, required_node=MI250X).value == 0


def test_two_ranks_that_have_each_others_device(document, wording):
    see(document, 0, 2)
    see(document, 2, 0)
    wording(list(misbound(document, MI250X)))


def test_devices_in_the_order_of_ranks_are_not_near(document):
    for index, address in enumerate(sorted(ADDRESSES)):
        document["devices"][index]["pci_address"] = address
    # 2 and 3 are near the third and the fourth group of cores by chance.
    assert len(list(misbound(document, MI250X))) == 6


def test_two_ranks_on_one_device(document, wording):
    see(document, 1, 0)
    # Device 5 is seen by nobody, so it is not in the document.
    document["devices"].pop(1)
    wording(list(misbound(document, MI250X)))


def test_a_device_whose_address_the_model_states_is_known_by_itself(document, wording):
    # 0000:c1:00.0 is device 0, whatever the others are.
    document["devices"].pop(1)
    see(document, 1, 6)
    see(document, 6, 0)
    wording(misbound(document, MI250X))


def test_a_rank_that_sees_all_devices(document, wording):
    see(document, 3, *range(8))
    wording(list(misbound(document, MI250X)))


def test_a_rank_that_sees_none(document, wording):
    see(document, 3)
    wording(list(misbound(document, MI250X)))


@pytest.mark.parametrize(
    "cores",
    [
        [],
        [24, 25],
        [23, 25],
        # The second thread of core 25, of which the node model knows nothing.
        [89],
    ],
)
def test_a_rank_with_other_cores(document, cores, wording):
    document["ranks"][3]["cores"] = cores
    wording(list(misbound(document, MI250X)))


def test_devices_without_addresses_are_not_taken_for_right(document, wording):
    for device in document["devices"]:
        device["pci_address"] = None
    found = list(misbound(document, MI250X))
    assert len(found) == 8
    wording(found[0])


def test_a_rank_that_is_missing_and_one_on_another_node(document, wording):
    document["ranks"].pop()
    document["ranks"][0]["host"] = "frontier00257"
    wording(list(misbound(document, MI250X)))


def test_a_document_without_ranks_is_no_proof(document):
    document["ranks"] = None
    with pytest.raises(MetricError, match=r"Metric misbound: the result of .* has no ranks"):
        findings_figure(SiteAffinityCheck, document, required_node=MI250X)
