"""Result documents of a node's topology by `inventory`, and how recordings end (E13)."""

from __future__ import annotations

from pathlib import Path

import pytest

import inventories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.node import load, node_directory
from fabricheck.node.platform import platform
from fabricheck.node.system import platform_json
from fabricheck.results import document
from fabricheck.results.settings import numa_balancing
from fabricheck.tools.topology.host import describe_host, driver_version
from fabricheck.tools.topology.recording import record
from factories import difference_sentences as differences_of

OVERLAYS = node_directory() / "overlays"
SIM = Path(__file__).parents[2] / "build" / "sim" / "bin"


def lost_of(document):
    return differences_of(document, lost=True)


def recorded(folder, told, model="mi250x", *, code=0, says="", **settings):
    """Record a node whose drivers tell this."""
    programs = inventories.programs(folder / "programs", told, code, says)
    runtime = told["program"]["runtime"] if told else "rocm"
    return record(model, runtime, programs, folder / "result.json", **settings)


@pytest.fixture
def simulated(command, tmp_path, monkeypatch):
    """Record the simulated mi250x, whose `inventory` is the real one."""

    def simulated(model="mi250x", overlay=None):
        node = load("mi250x", OVERLAYS / f"{overlay}.yaml" if overlay else None)
        (tmp_path / "node.json").write_text(platform_json(node))
        monkeypatch.setenv("FABRICHECK_SIMULATED_NODE", str(tmp_path / "node.json"))
        arguments = ("--runtime", "sim", "--programs", str(SIM))
        result = command("node", "record", model, *arguments, "--output", tmp_path / "result.json")
        return result.stdout.splitlines(), document.load(tmp_path / "result.json")

    return simulated


def test_a_healthy_simulated_node_has_no_difference(simulated, wording):
    printed, found = simulated()
    assert printed == differences_of(found) == [] and found["complete"]
    assert (found["clock"], found["program"]["runtime"]) == ("simulated", "sim")
    assert found["node"] == platform(load("mi250x"))["node"]
    assert found["host"]["hostname"] == "mi250x (simulated)"
    assert [device["numa_domain"] for device in found["devices"]] == [3, 3, 1, 1, 0, 0, 2, 2]
    wording(found["notes"][0])
    assert "not reported: NUMA balancing" in found["notes"]


@pytest.mark.parametrize(
    ("overlay", "count", "first"),
    [
        ("link-0-6-gone", 1, "Pair 0-6: 2 links in mi250x, no direct link in the simulated node "),
        ("numa-map-rotated", 8, "Device 0: NUMA domain 3 in mi250x, 0 in the simulated node "),
        ("cable-map-swapped", 4, "Pair 0-2: 1 link in mi250x, no direct link in the simulated "),
        # Drivers tell the number of links; a link's width and a memory's bandwidth are measured.
        ("link-0-1-half-width", 0, None),
        ("domain-2-half-memory", 0, None),
    ],
)
def test_an_overlay_is_found_where_drivers_would_tell_it(simulated, overlay, count, first):
    printed, found = simulated(overlay=overlay)
    assert differences_of(found) == printed
    assert len(differences_of(found)) == count and found["outcome"]["status"] == "good"
    assert not first or differences_of(found)[0].startswith(first)
    assert (
        found["node"]["overlay"]["name"]
        == load("mi250x", OVERLAYS / f"{overlay}.yaml").overlay.name
    )


def test_another_model_is_a_difference(simulated):
    _, found = simulated("mi250")
    assert any(
        one.startswith("Pair 0-4: 2 links in mi250, no dir") for one in differences_of(found)
    )


@pytest.mark.parametrize(
    ("tree", "model"),
    [("mi250x", "mi250x"), ("mi300x", "mi300x"), ("mi300a", "mi300a")],
)
def test_a_node_as_its_model(tmp_path, tree, model):
    told = inventories.kept(tree)
    found = recorded(tmp_path, told, model)
    assert (differences_of(found), lost_of(found)) == ([], []), found["notes"]
    assert found["outcome"]["message"] is None
    assert (found["clock"], found["node"]) == ("measured", None)
    assert found["devices"][0]["name"] == load(model).device_model
    assert found["versions"] == told["versions"]
    assert found["host"]["numa_domains"] == told["domains"]


@pytest.mark.parametrize(
    ("tree", "model", "differences"),
    [
        ("mi250x-links-gone", "mi250x", 2),
        ("mi300x-link-2-5-gone", "mi300x", 1),
        ("mi250x-device-off-the-bus", "mi250x", 1),
        ("mi250x-device-off-the-driver", "mi250x", 2),
    ],
)
def test_what_is_gone_is_lost(tmp_path, tree, model, differences, wording):
    found = recorded(tmp_path, inventories.kept(tree), model)
    assert len(lost_of(found)) == differences
    assert differences_of(found) == lost_of(found)
    wording(lost_of(found))
    if model == "mi300x":
        # One link for each pair needs no model.
        found = recorded(tmp_path, inventories.kept(tree), None)
        assert differences_of(found) == lost_of(found)
        wording(differences_of(found))
        assert [(one["devices"], one["found"]) for one in found["differences"]] == [([2, 5], 0)]
    if "device" in tree:
        assert any("odd number" in note for note in found["notes"])


def test_maps_of_several_classes_are_left_to_their_models(tmp_path):
    for tree in ("mi250x", "mi250x-links-gone", "mi210-x2", "h100-x2"):
        found = recorded(tmp_path, inventories.kept(tree), None)
        assert differences_of(found) == [], tree
    # Pairs without a device in common, and as many pairs as others, are no single fault.
    for model, gone in (("mi300x", [(0, 1), (2, 3)]), ("a100-booster", [(0, 3), (1, 3), (2, 3)])):
        told = inventories.composed(load(model))
        for pair in gone:
            inventories.set_links(told, *pair, 0)
        assert differences_of(recorded(tmp_path, told, None)) == [], model


def test_a_device_with_fewer_links_to_the_switch(tmp_path, wording):
    told = inventories.composed(load("h200"))
    for way in told["links"]:
        way["links"] = 17 if way["from"] == 3 else 18
    found = recorded(tmp_path, told, None)
    (said,) = lost_of(found)
    wording(said)
    told["links"] = [
        way | ({"kind": "pcie", "links": 0} if 3 in (way["from"], way["to"]) else {})
        for way in told["links"]
    ]
    (said,) = lost_of(recorded(tmp_path, told, None))
    assert said.startswith("Device 3: 0 links to the switch")


def test_a_link_of_one_direction_alone(tmp_path, wording):
    told = inventories.composed(load("a100-booster"))
    next(way for way in told["links"] if (way["from"], way["to"]) == (2, 1))["links"] = 3
    (said, fewer) = differences_of(recorded(tmp_path, told, None))
    wording(said)
    assert fewer.startswith("Pair 1-2: 3 links, and 4 of each other pair")


def test_what_a_model_assumes_or_has_of_another_host_is_a_note(tmp_path, wording):
    """The links of mi210, and the one domain of the machine that h200 was measured on."""
    told = inventories.composed(load("h200"))
    for one in told["devices"][4:]:
        one["numa_domain"] = 1
    told["domains"] = [{"index": i, "cores": [*range(32 * i, 32 * i + 32)], "memory_bytes": 1}
                       for i in (0, 1)]  # fmt: skip
    found = recorded(tmp_path, told, "h200")
    assert (differences_of(found), found["outcome"]["status"]) == ([], "good")
    assert any(one.startswith("differs from another host: Device 4") for one in found["notes"])
    told = inventories.composed(load("mi210"))
    for way in told["links"]:
        way["links"], way["kind"] = 0, "pcie"
    found = recorded(tmp_path, told, "mi210")
    assert differences_of(found) == []
    assert any(one.startswith("differs from what is assumed: Pair 0-1") for one in found["notes"])
    # What holds on any machine is a finding all the same.
    told["links"][0]["links"] = 1
    (said,) = lost_of(recorded(tmp_path, told, "mi210"))
    wording(said)


def test_what_the_operating_system_says_is_compared_too(tmp_path, wording):
    told = inventories.composed(load("mi250x"), numa_balancing=1)
    cores = {0: range(16), 1: range(16, 31), 3: range(48, 64), 5: range(64, 80), 6: ()}
    told["domains"] = [
        {"index": index, "cores": [*near], "memory_bytes": 1} for index, near in cores.items()
    ]
    found = recorded(tmp_path, told)
    wording(differences_of(found))
    # It is a setting and no matter of the hardware, of which something is wrong here.
    assert found["notes"][-1].startswith("Node node1 has NUMA balancing on (")


def test_numa_balancing_alone_is_a_setting(tmp_path, wording):
    found = recorded(tmp_path, inventories.composed(load("mi250x"), numa_balancing=1))
    outcome = found["outcome"]
    assert (outcome["exit_code"], outcome["status"]) == (8, "setting")
    wording(outcome["message"])
    assert differences_of(found) is None and not found["complete"]


def test_other_domains_alone_are_a_setting_of_the_firmware(tmp_path, wording):
    told = inventories.composed(load("mi250x"))
    told["domains"] = [{"index": 0, "cores": [*range(64)], "memory_bytes": 1}]
    found = recorded(tmp_path, told)
    assert found["outcome"]["status"] == "setting"
    wording(found["outcome"]["message"])


def devices(count):
    """Return the description of a mi250x of which the bus shows the first devices alone."""
    told = inventories.composed(load("mi250x"))
    for index in range(7, count - 1, -1):
        inventories.without_device(told, index)
    return told


@pytest.mark.parametrize(
    ("name", "value"),
    [("SLURM_STEP_GPUS", "4"), ("SLURM_JOB_GPUS", "4"), ("SLURM_GPUS_PER_NODE", "mi250x:1"),
     ("NVIDIA_VISIBLE_DEVICES", "4"), ("ROCR_VISIBLE_DEVICES", "4")],
)  # fmt: skip
def test_each_variable_that_grants_devices_explains_those_that_are_seen(
    tmp_path, monkeypatch, name, value
):
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    monkeypatch.setenv(name, value)
    found = recorded(tmp_path, devices(1))
    assert found["outcome"]["status"] == "setting"
    assert found["outcome"]["message"].startswith(f"{name} is {value} on node node1, but ")


def test_devices_that_the_scheduler_did_not_grant_are_a_setting(tmp_path, monkeypatch):
    for granted in ("", "2", "8"):
        monkeypatch.setenv("SLURM_GPUS_ON_NODE", granted)
        found = recorded(tmp_path, devices(4))
        assert found["outcome"]["status"] == "good", "the hardware lacks them"
        assert len(differences_of(found)) == 1
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "4")
    found = recorded(tmp_path, devices(4))
    assert found["outcome"]["message"].startswith("SLURM_GPUS_ON_NODE is 4 on node node1")
    assert found["environment"]["SLURM_GPUS_ON_NODE"] == "4"


def test_a_device_that_the_driver_has_and_the_runtime_does_not_show_is_hidden(tmp_path, wording):
    told = inventories.hide_device(inventories.kept("mi250x"), 5)
    found = recorded(tmp_path, told)
    wording(found["outcome"]["message"])


@pytest.mark.parametrize(
    "kept_by", [{"driver": "vfio-pci"}, {"accessible": False}, {"mode": "CPX"}, {"device": "0x66"}]
)
def test_a_device_that_something_keeps_from_the_driver_is_not_lost(tmp_path, kept_by, wording):
    told = inventories.composed(load("mi300x"))
    extra = {"address": "0000:f1:00.0", "indices": [], "in_driver": False}
    told["pci_functions"].append(told["pci_functions"][0] | extra | kept_by)
    assert differences_of(recorded(tmp_path, told, "mi300x")) == []
    told["pci_functions"][-1] |= told["pci_functions"][0] | extra
    (said,) = lost_of(recorded(tmp_path, told, "mi300x"))
    wording(said)


def test_devices_in_partitions_are_a_setting(tmp_path, wording):
    found = recorded(tmp_path, inventories.kept("mi300x-cpx"), "mi300x")
    assert found["outcome"]["status"] == "setting"
    wording(found["outcome"]["message"])
    mig = inventories.composed(load("h200"))
    mig["devices"][2]["compute_partition"] = "MIG"
    wording(recorded(tmp_path, mig, "h200")["outcome"]["message"])


def test_links_that_the_driver_does_not_tell_are_no_silent_pass(tmp_path, wording):
    told = inventories.composed(load("mi250x"))
    why = "KFD of this kernel tells no bandwidth of the link"
    told["absent"] = [{"item": "links.links", "why": why}]
    inventories.set_links(told, 0, 1, None)
    found = recorded(tmp_path, told)
    assert (found["outcome"]["exit_code"], found["outcome"]["status"]) == (10, "tool")
    said = found["outcome"]["message"]
    wording(said)
    assert differences_of(found) is None and not found["complete"]
    # What differs counts, whatever is missing beside it.
    told["domains"][3]["cores"] = [*range(48, 63)]
    found = recorded(tmp_path, told)
    (difference,) = differences_of(found)
    assert difference.startswith("NUMA domain 3: ") and said in found["notes"]


def test_kinds_tell_enough_where_a_pair_has_one_link(tmp_path, wording):
    """As drivers of MI300X that tell no bandwidth: pairs are known to be joined, or not."""
    told = inventories.kept("mi300x")
    for way in told["links"]:
        way["links"] = None
    found = recorded(tmp_path, told, "mi300x")
    assert (found["outcome"]["message"], differences_of(found)) == (None, [])
    inventories.set_links(told, 2, 5, 0)
    (difference,) = lost_of(recorded(tmp_path, told, "mi300x"))
    wording(difference)


def test_domains_that_the_driver_does_not_tell_are_no_silent_pass(tmp_path):
    told = inventories.composed(load("mi250x"))
    for one in told["devices"]:
        one["numa_domain"] = one["cores"] = None
    found = recorded(tmp_path, told)
    assert found["outcome"]["status"] == "tool"
    assert found["outcome"]["message"].startswith("The NUMA domains of node node1 are not known")


def test_another_vendor_is_one_difference(tmp_path):
    found = recorded(tmp_path, inventories.kept("mi250x") | {"domains": []}, "a100-booster")
    assert [sentence.split(" in ")[0] for sentence in differences_of(found)] == [
        "The node has 4 nvidia devices"
    ]


@pytest.mark.parametrize(
    ("code", "says", "status", "said"),
    [
        (3, "inventory: no device: system has unsupported display driver / cuda driver combination",
         "tool", "inventory shows no device: no device: system has unsupported display driver"),
        (4, "inventory: out of memory", "tool", "failed: out of memory."),
        (6, "inventory: a driver does not answer", "time-limit", "did not answer within 120 s."),
        (8, "inventory: ROCR_VISIBLE_DEVICES is -1", "setting", "ROCR_VISIBLE_DEVICES is -1."),
        (9, "inventory: device 1: an illegal state", "device-error", "device 1: an illegal state."),
        (139, "", "tool", "was ended by signal 11"),
    ],
)  # fmt: skip
def test_drivers_that_do_not_answer_accuse_no_hardware(tmp_path, code, says, status, said):
    none = inventories.composed(load("mi250x"), devices=[], links=[], pci_functions=[])
    found = recorded(tmp_path, none, code=code, says=says)
    assert (found["outcome"]["status"], found["devices"]) == (status, [])
    assert said in found["outcome"]["message"]


def test_all_devices_off_the_driver_are_lost(tmp_path):
    told = inventories.composed(load("mi300x"), devices=[], links=[])
    for one in told["pci_functions"]:
        one |= {"indices": [], "in_driver": False}
    found = recorded(tmp_path, told, "mi300x", code=3, says="inventory: no device")
    assert len(lost_of(found)) == 9 and found["outcome"]["status"] == "good"


def earlier(folder: Path, told, session, *, where="output", model="mi300x", **settings):
    """Record a node as an earlier session of the results folder did."""
    stage = folder / where / session / "local" / "gpu" / "rocm" / "node_topology"
    return recorded(stage, told, model, **settings)


def test_devices_that_an_earlier_session_of_the_host_had_are_missing(tmp_path):
    results = tmp_path / "results"
    whole = inventories.kept("mi300x")
    seven = inventories.without_device(inventories.kept("mi300x"), 5)
    another = inventories.kept("mi300x")
    another["host"]["hostname"] = "node2"
    earlier(results, whole, "20261124T080000-1")
    earlier(results, another, "20261124T090000-1")
    found = recorded(tmp_path, seven, None, results=results)
    said = (
        "The node has 7 devices in the driver, and had 8 in session 20261124T080000-1: without "
        "0000:60:00.0."
    )
    assert said in differences_of(found) and said in lost_of(found)
    # A session that found the loss is no new normal, wherever its document is.
    lost = earlier(results, seven, "20261125T080000-1", where="stage", model=None, results=results)
    assert lost_of(lost)
    assert said in lost_of(recorded(tmp_path, seven, None, results=results))
    # Others are no earlier sessions of this host with these devices.
    other = tmp_path / "other"
    earlier(other, another, "20261124T080000-1")
    earlier(other, whole, "20261124T090000-1", code=6)
    assert differences_of(recorded(tmp_path, seven, None, results=other)) == []
    assert differences_of(recorded(tmp_path, whole, "mi300x", results=results)) == []


def test_a_job_that_was_granted_fewer_devices_misses_none(tmp_path, monkeypatch):
    earlier(tmp_path / "results", inventories.kept("mi250x"), "20261124T080000-1", model=None)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "4")
    found = recorded(tmp_path, devices(4), None, results=tmp_path / "results")
    assert differences_of(found) == []
    monkeypatch.delenv("SLURM_GPUS_ON_NODE")
    told = inventories.hide_device(inventories.kept("mi250x"), 5)
    assert differences_of(recorded(tmp_path, told, None, results=tmp_path / "results")) == []


def test_partitions_that_were_of_the_same_cards_are_not_missing(tmp_path):
    divided = inventories.composed(load("mi300x"))
    for one in divided["devices"]:
        one["pci_address"] = f"0000:{0x41 + one['index'] // 2:02x}:00.{one['index'] % 2}"
    divided["pci_functions"] = []
    earlier(tmp_path / "results", divided, "20261124T080000-1", model=None)
    for index in (7, 5, 3, 1):
        inventories.without_device(divided, index)
    found = recorded(tmp_path, divided, None, results=tmp_path / "results")
    assert (len(found["devices"]), differences_of(found)) == (4, [])


def test_this_machine_describes_itself():
    host = describe_host()
    assert host["hostname"] and host["cores_allowed"] and host["page_size_bytes"] >= 4096


def test_a_described_machine(tmp_path):
    root = system(tmp_path, {0: "0-1"}, None)
    pages = root / "sys/kernel/mm/transparent_hugepage"
    pages.mkdir(parents=True)
    (pages / "enabled").write_text("always [madvise] never\n")
    (root / "proc/cpuinfo").write_text("processor : 0\nmodel name\t: A Processor\n")
    for number, (level, size) in enumerate((("1", "32K"), ("3", "4096K"), ("2", "512K"))):
        cache = root / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        cache.mkdir(parents=True)
        (cache / "level").write_text(level)
        (cache / "size").write_text(size)
        (cache / "shared_cpu_list").write_text("0-1")
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.7.0\n")
    host = describe_host(root)
    assert (host["cpu_model"], host["transparent_hugepage"]) == ("A Processor", "madvise")
    assert (host["last_level_cache_bytes"], host["numa_balancing"]) == (4 << 20, None)
    assert driver_version(root) == "amdgpu 6.7.0"


def system(root: Path, domains: dict[int, str], balancing: str | None = "0") -> Path:
    """Build the files of an operating system."""
    for index, cores in domains.items():
        folder = root / f"sys/devices/system/node/node{index}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cores}\n")
        (folder / "meminfo").write_text(f"Node {index} MemTotal:       1024 kB\n")
    (root / "proc/sys/kernel").mkdir(parents=True)
    if balancing is not None:
        (root / "proc/sys/kernel/numa_balancing").write_text(f"{balancing}\n")
    return root


@pytest.mark.parametrize("cores", ["0-15,0-15", "all", "0-4000000000"])
def test_cores_that_cannot_be_read_are_a_sentence(tmp_path, cores):
    root = system(tmp_path, {0: cores})
    with pytest.raises(InvalidInputError, match="node0/cpulist: "):
        describe_host(root)


def test_no_balancing_is_no_setting_to_speak_of():
    host = describe_host(Path("/nowhere")) | {"numa_balancing": 0}
    assert numa_balancing(host) is None
    assert "numa_balancing is 2" in (numa_balancing(host | {"numa_balancing": 2}) or "")


def test_a_failed_run_leaves_a_document(command, tmp_path):
    output = tmp_path / "result.json"
    asked = ("--runtime", "rocm", "--programs", str(tmp_path), "--output", str(output))
    result = command("node", "record", "mi250x", *asked, code=10)
    said = f"{tmp_path}/inventory cannot be run (No such file or directory)."
    assert result.exit_code == 10 and result.stderr == f"fabricheck: {said}\n"
    found = document.load(output)
    assert found["outcome"] == {"exit_code": 10, "status": "tool", "message": said}
    assert differences_of(found) is None
    command("node", "record", "nothing", *asked, code=3)


def test_a_run_that_fails_on_a_simulated_node_says_nothing_of_this_machine(command, tmp_path):
    output = tmp_path / "result.json"
    asked = ("--runtime", "sim", "--programs", str(tmp_path), "--output", str(output))
    command("node", "record", "mi250x", *asked, code=10)
    host = document.load(output)["host"]
    assert (host["cores_allowed"], host["numa_domains"]) == ([], [])
    assert (host["last_level_cache_bytes"], host["numa_balancing"]) == (0, None)


def test_drivers_that_hang_end_at_the_time_limit(command, tmp_path, monkeypatch, wording):
    monkeypatch.setattr("fabricheck.tools.topology.asking._GRACE_S", 0)
    (tmp_path / "inventory").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    (tmp_path / "inventory").chmod(0o755)
    output = tmp_path / "result.json"
    asked = ("--runtime", "rocm", "--programs", str(tmp_path), "--output", str(output))
    result = command("node", "record", "mi250x", *asked, "--time-limit", "0.1", code=6)
    wording(result.stderr)
    assert document.load(output)["outcome"]["status"] == "time-limit"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "other"}, "this is no description by inventory."),
        ({"schema_version": 2}, "schema_version: it is not 1."),
        ({"links": []}, "this description by inventory is damaged."),
        ({"devices": []}, "this description by inventory is damaged."),
        ({"devices": [{}]}, "this description by inventory is damaged."),
    ],
)
def test_a_description_that_cannot_be_used_is_a_sentence(tmp_path, change, said):
    found = recorded(tmp_path, inventories.kept("mi250x") | change)
    assert found["outcome"]["exit_code"] == 4 and found["outcome"]["message"].endswith(said)


def test_a_document_that_can_not_be_written(tmp_path):
    with pytest.raises(NotFoundError, match=r"result\.json cannot be written"):
        record("mi250x", "rocm", tmp_path, tmp_path / "no" / "result.json")


@pytest.mark.parametrize(("told", "said"), [("node3", "node3"), ("", None), (None, None)])
def test_the_scheduler_s_name_of_the_node_is_recorded(simulated, monkeypatch, told, said):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    if told is not None:
        monkeypatch.setenv("SLURMD_NODENAME", told)
    host = simulated()[1]["host"]
    assert (host["hostname"], host["scheduler_node"]) == ("mi250x (simulated)", said)
    assert describe_host()["scheduler_node"] == said
