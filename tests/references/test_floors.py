"""The floors of any machine: what is published of healthy nodes, or demanded of them, is above."""

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
    "amd-mi100-generic": ("gfx908", "AMD Instinct MI100"),
    "azure-nd96amsr_a100_v4": ("sm_80", "NVIDIA A100-SXM4-80GB"),
    "azure-nd96isr_h100_v5": ("sm_90", "NVIDIA H100 80GB HBM3"),
    "azure-nd96isr_h200_v5": ("sm_90", "NVIDIA H200"),
    "nvidia-b200-generic": ("sm_100", "NVIDIA B200"),
    "amd-mi355x-generic": ("gfx950", "AMD Instinct MI355X"),
    "amd-mi250-generic": ("gfx90a", "AMD Instinct MI250"),
    "amd-mi300a-generic": ("gfx942", "AMD Instinct MI300A"),
}

#: Of a device without a record of copy: the kernel that stands for it.
INSTEAD_OF_COPY = {"cccl-b200-add": "add"}

#: One way over a switch, by system: links of a device times the peak of one.
SWITCHED_GBS = {
    "nvidia-a100-hgx8": 12 * 25,
    "nvidia-h100-hgx8": 18 * 25,
    "nvidia-h200-hgx8": 18 * 25,
    "azure-nd96asr_v4": 12 * 25,
    "azure-nd96amsr_a100_v4": 12 * 25,
    "azure-nd96isr_h100_v5": 18 * 25,
    "azure-nd96isr_h200_v5": 18 * 25,
    "azure-nd128isr_gb200_v6": 18 * 50,
}

#: One way over what joins two devices, by system, where all pairs that a demand is of are alike.
#: That of MI250 is the mean of all link classes, and so of none.
ALIKE_GBS = {
    "amd-mi100-generic": 23 * 16 / 8,
    "amd-mi210-generic": 50,
    "amd-mi300a-generic": 128,
    "amd-mi300x-generic": 64,
    "amd-mi325x-generic": 64,
    "amd-mi355x-generic": 76.8,
    "azure-nd96isr_mi300x_v5": 64,
}

#: A link of MI200, by a record's number of links.
MI200_LINK_GBS = 50

#: A host link that is not its node model's, or without one (rocmdocs-mi200-h2d-00: as eight lanes).
HOST_LINK_GBS = {
    "amd-mi250-rocmdocs": 16 * 8 * 128 / 130 / 8,
    "azure-nd96asr_mi200_v4": 16 * 8 * 128 / 130 / 8,
    "azure-nd96asr_v4": 16 * 16 * 128 / 130 / 8,
    "azure-nd96amsr_a100_v4": 16 * 16 * 128 / 130 / 8,
}


def bandwidths(*experiments):
    """Return the records in GB/s of some experiments that are measured, or demanded at least."""
    found = (one for one in RECORDS.values() if one.experiment in experiments)
    return [
        one
        for one in found
        if one.unit == "GB/s" and (one.kind == "measured" or one.role == published.THRESHOLD)
    ]


def device(text):
    """Return the number of the device in a record's condition, such as GCD0 (device 8)."""
    return int(re.match(r"(?:GCD|GPU|APU)(\d)", text)[1])


def memory():
    """Yield STREAM copy on a device's own memory: record, architecture, percent of the peak."""
    for one in bandwidths("stream_local"):
        kernel = one.conditions.get("kernel", one.conditions.get("benchmark", "copy"))
        # node-burn measures copies; its records name no kernel.
        wanted = INSTEAD_OF_COPY.get(one.id, "copy")
        if wanted not in kernel and one.conditions.get("tool") != "node-burn, 10 GiB arrays":
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
    for one in bandwidths("p2p_rocm_bandwidth_test_uni", "p2p_bandwidth_p2pBandwidthLatencyTest",
                          "p2p_rocm_bandwidth_test_least", "p2p_transferbench",
                          "p2p_nvbandwidth_read_ce"):  # fmt: skip
        if one.system in SWITCHED_GBS:
            yield one, "", 100 * one.value / SWITCHED_GBS[one.system]
            continue
        if one.system in ALIKE_GBS:
            yield one, "", 100 * one.value / ALIKE_GBS[one.system]
            continue
        if "links" in one.conditions and one.system == "azure-nd96asr_mi200_v4":
            yield one, "", 100 * one.value / (one.conditions["links"] * MI200_LINK_GBS)
            continue
        model = MODELS.get(one.system)
        ends = [one.conditions.get(end, "") for end in ("src", "dst")]
        if model is None or not all(re.match(r"(GCD|GPU|APU)\d", end) for end in ends):
            continue
        pair = [device(end) for end in ends]
        if pair[0] != pair[1] and model.link_class(*pair).direct:
            yield one, "", 100 * one.value / model.peer_peak_gbs(*pair)
    # Kernels on MI250X that write to a peer, by the number of links, and that read from it.
    for one in bandwidths("p2p_implicit_managed_gpuwrgpu_fine", "p2p_kernel_remote_read"):
        links = one.conditions.get("links", 4)
        yield one, "", 100 * one.value / (links * load("mi250x").links[0, 1].peak_gbs)


def host_links():
    """Yield copies of pinned memory one way between a device and its host."""
    for one in bandwidths("cpu_gpu_rocm_bandwidth_test_uni", "h2d_pinned_hipmemcpy",
                          "h2d_nvbandwidth_ce", "d2h_nvbandwidth_ce",
                          "h2d_and_d2h_nvbandwidth_ce",
                          "h2d_and_d2h_rocm_bandwidth_test"):  # fmt: skip
        model = MODELS.get(one.system) or load("h200")
        if not model.shares_memory:
            link_gbs = HOST_LINK_GBS.get(one.system, model.device(0).host_link_gbs)
            yield one, "", 100 * one.value / link_gbs


KINDS = {"memory": memory, "direct_link": links, "host_link": host_links}
FLOORS = {
    "memory": lambda architecture: rules.memory_floor(architecture, 1000),
    "direct_link": lambda _: rules.direct_link_floor(100),
    "host_link": lambda _: rules.host_link_floor(60),
}


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
        is_demand = RECORDS[name].role == published.THRESHOLD
        assert stated.get("demanded", False) == is_demand
        rule = FLOORS[kind](architecture)
        assert rule.why.startswith("no health check" if is_demand else "no healthy node")
    assert lowest


def test_an_architecture_without_a_record_has_no_floor():
    """The memory of V100 is not judged, since no STREAM copy of it is published."""
    assert rules.memory_floor("sm_70", 900) is None
    assert rules.memory_floor("gfx90a", 1638.4).entry == (1638.4, -0.3, None, "GB/s")


#: Demands of devices that are of no floor, each with why.
OF_NO_FLOOR = {
    "amdguide-mi250-p2p": "a mean of all link classes",
    "amdguide-mi300x-p2p": "also the least of means with processors",
    "amdguide-mi325x-p2p": "also the least of means with processors",
    "amdguide-mi300x-engine": "by an engine",
    "amdguide-mi325x-engine": "by an engine",
    "safe-mi300x-engine": "by an engine",
    "safe-mi355x-engine": "by an engine",
    "cvs-mi300-a2a": "the sum of a device, with all others at once",
    "dcgm-a100-80g-memory": "three quarters of what a kernel of its own reached",
    "dcgm-h100-memory": "three quarters of what a kernel of its own reached",
    "dcgm-b200-memory": "three quarters of what a kernel of its own reached",
    "dcgm-gb200-memory": "three quarters of what a kernel of its own reached",
    "dcgm-b300-memory": "three quarters of what a kernel of its own reached",
    "dcgm-gb300-memory": "three quarters of what a kernel of its own reached",
}


def test_every_demand_of_a_device_is_compared_with_a_floor_or_has_a_reason():
    """Of a health check nothing is left out silently; STREAM's other kernels have no floor."""
    compared = {record.id for kind in KINDS.values() for record, _, _ in kind()}
    demanded = {
        one.id
        for one in RECORDS.values()
        if one.role == published.THRESHOLD
        and one.experiment.startswith(("stream_", "p2p_", "h2d_", "device_memory"))
        and one.conditions.get("kernel", "copy") == "copy"
    }
    assert demanded - compared == set(OF_NO_FLOOR)
