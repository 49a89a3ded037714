"""The floors of any machine: each published value of a healthy node is above its own."""

import re

import pytest
import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.node import load, products
from fabricheck.references import published, rules

RECORDS = published.of_folder(ROOT / "reference_values").records
STATED = yaml.safe_load((ROOT / "reference_values" / "rules.yaml").read_text())["floors"]
MODELS = {
    system: load(file.stem)
    for file in sorted((ROOT / "config" / "nodes").glob("*.yaml"))
    for system in load(file.stem).systems
}

#: Systems of STREAM records without a node model: the architecture and the driver's name.
OTHERS = {
    "jureca-mi250": ("gfx90a", "AMD Instinct MI250"),
    "cscs-alps-gh200": ("sm_90", "NVIDIA GH200 480GB"),
    "cscs-a100": ("sm_80", "NVIDIA A100-SXM4-80GB"),
}

#: One way over a switch, by system: links of a device times the peak of one.
SWITCHED_GBS = {
    "nvidia-a100-hgx8": 12 * 25,
    "nvidia-h100-hgx8": 18 * 25,
    "nvidia-h200-hgx8": 18 * 25,
}

#: A host link that is narrower than its node model's (rocmdocs-mi200-h2d-00: as eight lanes).
NARROW = {"amd-mi250-rocmdocs": 16 * 8 * 128 / 130 / 8}


def bandwidths(*experiments):
    """Return the measured records in GB/s of some experiments."""
    found = (one for one in RECORDS.values() if one.experiment in experiments)
    return [one for one in found if one.unit == "GB/s" and one.kind == "measured"]


def device(text):
    """Return the number of the device in a record's condition, such as GCD0 (device 8)."""
    return int(re.match(r"(?:GCD|GPU|APU)(\d)", text)[1])


def memory():
    """Yield STREAM copy on a device's own memory: record, architecture, percent of the peak."""
    for one in bandwidths("stream_local"):
        kernel = one.conditions.get("kernel", one.conditions.get("benchmark", "copy"))
        # node-burn measures copies; its records name no kernel.
        if "copy" not in kernel and one.conditions.get("tool") != "node-burn, 10 GiB arrays":
            continue
        if one.conditions.get("per") == "GCD" and "kernel" not in one.conditions:
            continue
        model = MODELS.get(one.system)
        if model is not None:
            yield one, model.architecture, 100 * one.value / model.device(0).memory_peak_gbs
        else:
            architecture, name = OTHERS[one.system]
            yield one, architecture, 100 * one.value / products.table()[name].memory_peak_gbs


def links():
    """Yield copies one way over direct links or a switch, not by an engine of MI250X."""
    for one in bandwidths("p2p_rocm_bandwidth_test_uni", "p2p_bandwidth_p2pBandwidthLatencyTest"):
        if one.system in SWITCHED_GBS:
            yield one, "", 100 * one.value / SWITCHED_GBS[one.system]
            continue
        model = MODELS.get(one.system)
        ends = [one.conditions.get(end, "") for end in ("src", "dst")]
        if model is None or not all(re.match(r"(GCD|GPU|APU)\d", end) for end in ends):
            continue
        pair = [device(end) for end in ends]
        if pair[0] != pair[1] and model.link_class(*pair).direct:
            yield one, "", 100 * one.value / model.peer_peak_gbs(*pair)


def host_links():
    """Yield copies of pinned memory one way between a device and its host."""
    for one in bandwidths("cpu_gpu_rocm_bandwidth_test_uni", "h2d_pinned_hipmemcpy",
                          "h2d_nvbandwidth_ce", "d2h_nvbandwidth_ce"):  # fmt: skip
        model = MODELS.get(one.system) or load("h200")
        if not model.shares_memory:
            yield one, "", 100 * one.value / NARROW.get(one.system, model.device(0).host_link_gbs)


KINDS = {"memory": memory, "direct_link": links, "host_link": host_links}


@pytest.mark.parametrize("kind", KINDS)
def test_no_published_healthy_node_is_below_its_floor(kind):
    """The lowest record is the one that rules.yaml names, and every record is above the floor."""
    lowest = {}
    for record, architecture, percent in KINDS[kind]():
        stated = STATED[kind].get(architecture) if architecture else STATED[kind]
        assert percent > stated["least_percent"], record.id
        lowest.setdefault(architecture, []).append((percent, record.id))
    for architecture, found in lowest.items():
        stated = STATED[kind][architecture] if architecture else STATED[kind]
        percent, name = min(found)
        assert stated["lowest"] == f"{name}, {percent:.0f} %"
    assert lowest


def test_an_architecture_without_a_record_has_no_floor():
    """MI300X's memory is not judged, since no STREAM copy of it is published."""
    assert rules.memory_floor("gfx942", 5300) is None
    assert rules.memory_floor("gfx90a", 1638.4).entry == (1638.4, -0.3, None, "GB/s")
