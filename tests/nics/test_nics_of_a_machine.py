"""NICs as the kernel shows them, and how they are compared with a node model and a fabric."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from fabricheck.cli import nics
from fabricheck.core.errors import NotFoundError
from fabricheck.node import load
from fabricheck.node.fabric import load_fabric
from fabricheck.tools.nic_comparison import compare, new_errors
from fabricheck.tools.nic_matching import match
from fabricheck.tools.nics import LAST_RESTART, counters, device_file
from fabricheck.tools.nics import read_nics as read_nics_of
from nic_trees import (
    ADDRESSES,
    frontier,
    infiniband,
    interface,
    leonardo,
    link,
    nic,
    pcie,
    put,
    remove,
    rename,
    virtual,
)

MI250X, BOOSTER = load("mi250x"), load("a100-booster")
SLINGSHOT, INFINIBAND = load_fabric("slingshot-11"), load_fabric("infiniband")
NOW = 1764000000.0


@pytest.fixture
def node(tmp_path):
    return frontier(tmp_path)


def read_nics(root, fabric=None):
    return read_nics_of("nid001005", fabric, root)


def why(one) -> dict[str, str]:
    return {absent["item"]: absent["why"] for absent in one["absent"]}


def found(root, model=MI250X, fabric="own"):
    if fabric == "own":
        fabric = INFINIBAND if model is BOOSTER else SLINGSHOT
    found = compare("nid001005", model, read_nics(root, fabric), fabric, root, NOW)
    # Of the machine that runs the test.
    notes = [note for note in found.notes if not note.startswith("no version of ")]
    return replace(found, notes=tuple(notes))


def sentences(outcome) -> list[str]:
    return [one.sentence for one in outcome.differences]


def only(root, **arguments) -> str:
    outcome = found(root, **arguments)
    assert len(outcome.differences) == 1, outcome
    return outcome.differences[0].sentence


def test_a_healthy_node_of_slingshot(node):
    outcome = found(node)
    assert (outcome.differences, outcome.unread, outcome.notes) == ((), (), ())
    first, *_ = nics = read_nics(node)
    assert [one["name"] for one in nics] == ["cxi0", "cxi1", "cxi2", "cxi3"]
    assert (first["kind"], first["interface"], first["address"]) == ("cxi", "hsn0", ADDRESSES[0])
    assert (first["state"], first["gbit_per_s"], first["mtu_bytes"]) == ("up", 200.0, 2112)
    assert (first["pci_address"], first["numa_domain"]) == ("0000:d5:00.0", 3)
    assert first["near_devices"] == ["0000:d1:00.0"]
    # The speed of the extended mode, which the kernel's own file does not know.
    assert list(first["pcie"].values())[:3] == [25.0, 16, 16.0]
    assert (first["firmware"], first["driver"]) == ("1.5.61", "cxi_ss1 9ce667e")
    assert first["absent"] == []
    assert read_nics(node, SLINGSHOT)[0]["place"] == {"group": "3", "switch": "0", "port": "4"}


def test_a_healthy_node_of_infiniband(tmp_path):
    root = leonardo(tmp_path)
    outcome = found(root, BOOSTER, INFINIBAND)
    assert (outcome.differences, outcome.unread) == ((), ())
    first, *_ = read_nics(root)
    assert (first["kind"], first["gbit_per_s"], first["state"]) == ("infiniband", 100.0, "up")
    assert (first["address"], first["driver"]) == ("b83f:d203:009a:0000", "mlx5_core 5.8-1.1.2")
    assert str(device_file(first, root)) == "dev/infiniband/uverbs0"
    assert counters(first, root) == {"counters/symbol_error": 0, "counters/link_downed": 1}
    put(root / "sys/class/infiniband/mlx5_2/ports/1/state", "2: INIT")
    assert only(root, model=BOOSTER) == "nid001005:mlx5_2 is down."


def test_a_nic_that_is_gone(node, wording):
    (node / "sys/class/cxi/cxi3/device").unlink()
    (node / "sys/class/cxi/cxi3").rmdir()
    (gone,) = found(node).differences
    assert gone.lost
    wording(gone.sentence)


def test_a_nic_that_is_down_has_no_other_rate(node):
    put(nic(node, "cxi1") / "properties/link", 0)
    put(nic(node, "cxi1") / "properties/speed", -1)
    put(node / "sys/class/net/hsn1/speed", -1)
    outcome = found(node)
    assert sentences(outcome) == ["nid001005:cxi1 is down."] and not outcome.unread


def test_an_interface_that_is_down(node):
    for state in ("down", "lowerlayerdown", "dormant"):
        put(node / "sys/class/net/hsn1/operstate", state)
        assert only(node) == "nid001005:cxi1 is down."


def test_a_rate_of_zero_is_one_that_cannot_be_read(tmp_path):
    root = leonardo(tmp_path)
    rate = root / "sys/class/infiniband/mlx5_2/ports/1/rate"
    put(rate, "0 Gb/sec")
    nics = {one["name"]: one for one in read_nics(root)}
    assert nics["mlx5_2"]["gbit_per_s"] is None
    assert why(nics["mlx5_2"])["speed"] == f"{rate} has '0 Gb/sec'"


def test_half_the_rate(node, wording):
    put(nic(node, "cxi2") / "properties/speed", 100000)
    wording(only(node))


def test_the_interface_tells_a_speed_that_the_driver_does_not(node, wording):
    put(nic(node, "cxi2") / "properties/speed", -1)
    assert found(node).differences == ()
    put(node / "sys/class/net/hsn2/speed", 100000)
    assert read_nics(node)[2]["gbit_per_s"] == 100
    wording(only(node))


def test_a_narrow_and_a_slow_pcie_link(node, wording):
    put(nic(node, "cxi1") / "current_link_width", 8)
    narrow = only(node)
    put(nic(node, "cxi1") / "current_link_width", 16)
    put(nic(node, "cxi1") / "properties/current_esm_link_speed", "Disabled")
    wording([narrow, only(node)])


def test_a_pcie_link_below_what_nic_and_slot_can(tmp_path, wording):
    root = leonardo(tmp_path)
    put(nic(root, "mlx5_1") / "current_link_width", 8)
    wording(only(root, model=BOOSTER))
    # A slot that has no more is no fault of the NIC.
    put(nic(root, "mlx5_1").parent / "max_link_width", 8)
    assert found(root, BOOSTER).differences == ()
    pcie(nic(root, "mlx5_1"), speed="16.0", width=8, most="32.0")
    assert found(root, BOOSTER).differences == ()


def test_another_numa_domain_and_another_device(tmp_path, wording):
    root = leonardo(tmp_path)
    put(nic(root, "mlx5_3") / "numa_node", 1)
    wording(only(root, model=BOOSTER))
    put(nic(root, "mlx5_3") / "numa_node", -1)  # none stated: nothing to compare
    assert found(root, BOOSTER).differences == ()


PREDICTABLE = {"mlx5_0": "ibp26s0", "mlx5_1": "ibp82s0", "mlx5_2": "ibp139s0", "mlx5_3": "ibp197s0"}


@pytest.mark.parametrize(
    "names", [PREDICTABLE, {"mlx5_0": "mlx5_3", "mlx5_3": "mlx5_0"}, {"mlx5_2": "ibp139s0"}]
)
def test_other_names_at_the_same_places_are_a_note(tmp_path, names, wording):
    root = leonardo(tmp_path)
    rename(root, **names)
    outcome = found(root, BOOSTER)
    assert (outcome.differences, outcome.unread, outcome.settings) == ((), (), ())
    now = {pair.expected.name: pair.nic["name"] for pair in outcome.pairs}
    assert now == {nic.name: names.get(nic.name, nic.name) for nic in BOOSTER.nics}
    wording(outcome.notes)


def test_a_fault_of_a_nic_under_another_name_is_told_with_its_present_name(tmp_path, wording):
    root = leonardo(tmp_path)
    rename(root, **PREDICTABLE)
    put(root / "sys/class/infiniband/ibp139s0/ports/1/state", "1: DOWN")
    put(root / "sys/class/infiniband/ibp26s0/ports/1/rate", "50 Gb/sec (2X EDR)")
    wording(sentences(found(root, BOOSTER)))


@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("storage", [True, False])
def test_of_others_names_the_one_that_is_gone_is_told_by_its_place(
    tmp_path, renamed, storage, wording
):
    root = leonardo(tmp_path)
    if storage:
        add_storage(root, "mlx5_4")
    remove(root, "mlx5_1")
    # The kernel numbers what is left.
    rename(root, mlx5_2="mlx5_1", mlx5_3="mlx5_2")
    if renamed:
        rename(root, mlx5_0="ibp26s0", mlx5_1="ibp139s0", mlx5_2="ibp197s0")
    outcome = found(root, BOOSTER)
    (gone,) = outcome.differences
    assert gone.lost
    wording([gone.sentence, *outcome.notes])


def add_storage(root, name, slot="sys/devices/pci0000:90"):
    """Put a NIC of Ethernet into a slot, of which the first one is beside no device."""
    device = root / slot / "0000:91:00.0"
    put(device / "numa_node", 0)
    folder = root / "sys/class/infiniband" / name
    link(folder / "device", device)
    for file, text in (
        ("ports/1/state", "4: ACTIVE"), ("ports/1/rate", "25 Gb/sec (1X EDR)"),
        ("ports/1/link_layer", "Ethernet"),
    ):  # fmt: skip
        put(folder / file, text)


@pytest.mark.parametrize("name", ["mlx5_4", "mlx5_bond_0", "rocep145s0"])
def test_more_nics_of_ethernet_are_a_note(command, tmp_path, monkeypatch, name, wording):
    root = leonardo(tmp_path)
    add_storage(root, name)
    outcome = found(root, BOOSTER)
    assert (outcome.differences, outcome.settings) == ((), ())
    wording(outcome.notes)
    assert read_nics(root)[-1]["link_layer"] == "Ethernet"
    monkeypatch.setattr(nics, "SYSTEM", root)
    monkeypatch.setenv("SLURMD_NODENAME", "nid001005")
    ended = command("network", "nics", "a100-booster", code=None)
    assert ended.stdout.splitlines()[1:] == [f"Note: {outcome.notes[0]}."]
    # By numbers that went to others, the name of storage may be that of a NIC of the model.
    rename(root, mlx5_0=name, **{name: "mlx5_0"})
    outcome = found(root, BOOSTER)
    assert (outcome.differences, outcome.settings) == ((), ())
    wording(outcome.notes)


def test_a_virtual_machine_tells_no_places_so_names_and_then_addresses_count(tmp_path, wording):
    root = leonardo(tmp_path)
    virtual(root)
    assert found(root, BOOSTER).notes == ()
    rename(root, **PREDICTABLE)
    outcome = found(root, BOOSTER)
    assert outcome.differences == ()
    wording(outcome.notes)
    remove(root, "ibp82s0")
    wording(sentences(found(root, BOOSTER)))


def test_in_a_virtual_machine_a_nic_that_is_gone_is_known_by_its_name(tmp_path):
    root = leonardo(tmp_path)
    virtual(root)
    remove(root, "mlx5_2")
    assert "mlx5_2 in a100-booster, is not there" in only(root, model=BOOSTER)


def test_by_numa_domains_where_the_model_states_no_addresses(node, wording):
    (node / "sys/class/cxi/cxi0").rename(node / "sys/class/cxi/x")
    (node / "sys/class/cxi/cxi1").rename(node / "sys/class/cxi/cxi0")
    (node / "sys/class/cxi/x").rename(node / "sys/class/cxi/cxi1")
    outcome = found(node)
    assert outcome.differences == ()
    wording(outcome.notes)
    # A firmware setting that joins the domains is told for each NIC, and none is gone.
    for number in range(4):
        put(nic(node, f"cxi{number}") / "numa_node", 0)
    wording(sentences(found(node)))


def test_which_of_several_under_other_names_is_meant_may_not_be_known(tmp_path, wording):
    root = leonardo(tmp_path)
    add_storage(root, "mlx5_4")
    put(root / "sys/class/infiniband/mlx5_4/ports/1/link_layer", "InfiniBand")
    virtual(root)
    rename(root, **PREDICTABLE, mlx5_4="ibp16s0")
    outcome = found(root, BOOSTER)
    # The NIC of storage has a quarter of the rate, and no fault is in that.
    assert outcome.differences == ()
    assert len(outcome.unread) == 4
    wording(outcome.unread)
    # As good as the others it may be any.
    put(root / "sys/class/infiniband/ibp16s0/ports/1/rate", "100 Gb/sec (2X HDR)")
    outcome = found(root, BOOSTER)
    assert (outcome.differences, outcome.unread) == ((), ())
    # Names that the model has need no place.
    rename(root, **{new: old for old, new in PREDICTABLE.items()})
    put(root / "sys/class/infiniband/ibp16s0/ports/1/rate", "25 Gb/sec (1X EDR)")
    assert (found(root, BOOSTER).differences, found(root, BOOSTER).unread) == ((), ())


def test_of_two_nics_at_a_device_neither_is_known_whatever_their_domain(tmp_path, wording):
    root = leonardo(tmp_path)
    add_storage(root, "mlx5_4", slot="sys/devices/pci0000:00/0000:00:02.0")
    put(root / "sys/class/infiniband/mlx5_4/ports/1/link_layer", "InfiniBand")
    rename(root, **PREDICTABLE, mlx5_4="ibp16s0")
    # The number of a domain is the kernel's; a device tells the place.
    for name in ("ibp16s0", "ibp26s0"):
        put(nic(root, name) / "numa_node", 7)
    outcome = found(root, BOOSTER)
    assert outcome.differences == ()
    assert len(outcome.unread) == 1
    wording(outcome.unread)


def test_fewer_nics_of_a_domain_are_of_the_model_though_they_differ(tmp_path):
    root = leonardo(tmp_path)
    shutil.rmtree(root / "sys/bus/pci/drivers/nvidia")
    rename(root, **PREDICTABLE)
    remove(root, "ibp197s0")
    put(root / "sys/class/infiniband/ibp26s0/ports/1/rate", "25 Gb/sec (1X EDR)")
    outcome = found(root, BOOSTER)
    assert [one.lost for one in outcome.differences].count(True) == 1
    assert outcome.unread == ()
    assert [pair.nic["name"] for pair in outcome.pairs] == ["ibp26s0", "ibp82s0", "ibp139s0"]


def test_as_many_under_other_names_in_other_domains_are_not_gone(tmp_path, wording):
    root = leonardo(tmp_path)
    virtual(root)
    rename(root, **PREDICTABLE)
    for number, name in enumerate(PREDICTABLE.values()):
        put(nic(root, name) / "numa_node", number // 2)
    outcome = found(root, BOOSTER)
    assert (outcome.differences, outcome.settings) == ((), ())
    wording(outcome.unread)
    # Three are fewer than the model has.
    remove(root, "ibp197s0")
    assert found(root, BOOSTER).differences


def test_in_a_virtual_machine_too_a_nic_of_storage_does_not_hide_that_one_is_gone(
    tmp_path, wording
):
    root = leonardo(tmp_path)
    add_storage(root, "mlx5_4")
    virtual(root)
    remove(root, "mlx5_1")
    outcome = found(root, BOOSTER)
    assert (outcome.settings, len(outcome.differences)) == ((), 1)
    assert outcome.differences[0].lost
    wording(outcome.notes)


def test_a_node_with_nics_of_another_fabric_in_other_domains_has_lost_none(node):
    outcome = found(node, BOOSTER, INFINIBAND)
    assert (outcome.differences, len(outcome.settings)) == ((), 4)


def test_a_port_of_the_wrong_link_layer_is_a_setting(tmp_path, wording):
    root = leonardo(tmp_path)
    put(root / "sys/class/infiniband/mlx5_2/ports/1/link_layer", "Ethernet")
    outcome = found(root, BOOSTER)
    assert outcome.differences == ()
    wording(outcome.settings)
    # No fabric is named, so either may be right.
    assert found(root, BOOSTER, None).settings == ()
    # Of all ports, whatever their names and places.
    for name, folder in infiniband(root).items():
        put(folder / "ports/1/link_layer", "Ethernet")
        rename(root, **{name: f"rocep{name[-1]}s0"})
    virtual(root)
    outcome = found(root, BOOSTER)
    assert (outcome.differences, len(outcome.settings)) == ((), 4)
    # One that is gone is no setting, though the NIC of storage is there.
    remove(root, "rocep1s0")
    assert len(found(root, BOOSTER).differences) == 1


def test_its_name_tells_a_port_of_the_wrong_link_layer_where_devices_have_other_addresses(tmp_path):
    root = leonardo(tmp_path)
    port = root / "sys/class/infiniband/mlx5_2/ports/1"
    put(port / "link_layer", "Ethernet")
    put(port / "rate", "25 Gb/sec (1X EDR)")
    shown = read_nics(root, INFINIBAND)
    for one in shown:
        one["near_devices"] = ["0000:99:00.0"]
    matching = match(BOOSTER, shown, INFINIBAND)
    assert [pair.expected.name for pair in matching.other_kind] == ["mlx5_2"]
    assert not matching.missing


@pytest.mark.parametrize("names", [PREDICTABLE, {"mlx5_2": "rocep143s0"}])
def test_in_a_virtual_machine_its_rate_tells_a_port_of_the_wrong_link_layer(
    tmp_path, names, wording
):
    root = leonardo(tmp_path)
    port = root / "sys/class/infiniband/mlx5_2/ports/1"
    put(port / "link_layer", "Ethernet")
    virtual(root)
    rename(root, **names)
    outcome = found(root, BOOSTER)
    assert (outcome.differences, len(outcome.settings)) == ((), 1)
    wording(outcome.settings)


def test_nics_of_another_fabric_are_a_setting(tmp_path, wording):
    root = leonardo(tmp_path)
    outcome = found(root, BOOSTER, SLINGSHOT)
    assert outcome.differences == ()
    assert len(outcome.settings) == 4
    wording(outcome.settings)
    wording(found(root, MI250X, None).settings)
    # With the fabric that these nodes have they are its NICs, though by other names.
    assert found(root, MI250X, INFINIBAND).settings == ()


def test_another_mtu_than_the_others(node, wording):
    put(nic(node, "cxi3") / "properties/hpc_mtu", 1536)
    wording(only(node))


def test_places(node, wording):
    told = []
    for interface_name, address in (
        ("hsn1", ADDRESSES[0]),
        ("hsn1", "5c:ba:2c:af:cb:e3"),
        ("hsn1", "02:00:00:00:38:05"),
        ("hsn2", "02:00:00:00:38:44"),
    ):
        put(node / "sys/class/net" / interface_name / "address", address)
        told.append(only(node))
    wording(told)
    put(node / "sys/class/net/hsn2/address", "")
    wording(found(node).notes)
    wording(found(node, fabric=None).notes)


def test_a_link_that_restarts_too_often(node, wording):
    folder = nic(node, "cxi0") / "link_restarts"
    for index in range(4):
        put(folder / f"time_{index}", int(NOW) - 60 * index - 60)
    assert found(node).differences == ()
    put(folder / "time_4", int(NOW) - 3500)
    # A clock that was set back.
    put(folder / "time_5", int(NOW) + 500)
    within_an_hour = only(node)
    for index in range(10):
        put(folder / f"time_{index}", int(NOW) - 3601 - 1800 * index)
    wording([within_an_hour, only(node)])
    put(folder / "time_0", int(NOW) - 36001)
    assert found(node).differences == ()


def test_what_cannot_be_read_is_null_with_its_reason(node):
    speed = nic(node, "cxi2") / "properties/speed"
    speed.unlink()
    speed.mkdir()  # also a superuser cannot read it
    (node / "sys/class/net/hsn2/speed").unlink()
    (nic(node, "cxi2") / "uc/version").unlink()
    third = read_nics(node)[2]
    assert (third["gbit_per_s"], third["firmware"]) == (None, None)
    assert why(third)["firmware"].endswith("uc/version: No such file or directory")
    outcome = found(node)
    assert not outcome.differences
    assert [one.split(" (")[0] for one in outcome.unread] == [
        "The speed of nid001005:cxi2 cannot be read"
    ]
    assert third["place"] is None and why(third).keys() == {"speed", "firmware"}


@pytest.mark.parametrize("text", ["", "fast", "2e5", "٢٠٠٠٠٠", "9" * 30, "200000 200000", "\0"])
def test_damaged_numbers_are_no_numbers(node, text):
    put(nic(node, "cxi2") / "properties/speed", text)
    put(node / "sys/class/net/hsn2/speed", text)
    put(nic(node, "cxi2") / "numa_node", text)
    put(nic(node, "cxi2") / "current_link_width", text)
    third = read_nics(node)[2]
    assert (third["gbit_per_s"], third["numa_domain"], third["pcie"]["width"]) == (None, None, None)
    assert {"speed", "numa_domain", "pcie_width"} <= why(third).keys()
    assert len(found(node).unread) == 1


def test_more_nics_than_the_model_has_are_noted(node, wording):
    put(nic(node, "cxi0") / "uc/version", "1.5.60")
    link(node / "sys/class/cxi/cxi4/device", nic(node, "cxi3"))
    wording(found(node, fabric=None).notes[:2])


def test_virtual_functions_are_parts_of_a_nic(tmp_path):
    root = leonardo(tmp_path)
    virtual = tmp_path / "sys/devices/pci0000:00/0000:01:00.1"
    link(virtual / "physfn", nic(root, "mlx5_0"))
    link(root / "sys/class/infiniband/mlx5_4/device", virtual)
    assert len(read_nics(root)) == 4


def test_ethernet_is_listed_where_there_is_nothing_else(tmp_path, wording):
    device = tmp_path / "sys/devices/pci0000:00/0000:01:00.0"
    pcie(device)
    put(device / "numa_node", 0)
    interface(tmp_path, "eth0", device, "b8:3f:d2:9a:00:01", 25000, 1500)
    (tmp_path / "sys/class/net/lo").mkdir()
    interface(tmp_path, "ib0", tmp_path / "sys/devices/ib", "00:00:00:00:00:02", 100000, 2044)
    put(tmp_path / "sys/class/net/ib0/type", 32)
    (one,) = read_nics(tmp_path)
    assert (one["name"], one["kind"], one["gbit_per_s"], one["mtu_bytes"]) == (
        "eth0",
        "net",
        25.0,
        1500,
    )
    assert counters(one, tmp_path) == {"statistics/tx_errors": 0, "statistics/rx_errors": 0}
    for state, known in (("up", "up"), ("lowerlayerdown", "down"), ("unknown", None)):
        put(tmp_path / "sys/class/net/eth0/operstate", state)
        assert read_nics(tmp_path)[0]["state"] == known
    put(tmp_path / "sys/class/net/eth0/operstate", "up")
    wording(sentences(found(tmp_path)))
    leonardo(tmp_path)
    assert {one["kind"] for one in read_nics(tmp_path)} == {"infiniband"}


def test_a_machine_without_any_network(tmp_path):
    with pytest.raises(NotFoundError, match=r"sys/class/net is not there, so no NIC is known"):
        read_nics(tmp_path)
    (tmp_path / "sys/class/net/lo").mkdir(parents=True)
    assert read_nics(tmp_path) == ()
    assert len(found(tmp_path).differences) == 4


def test_counters_and_new_errors(node, wording):
    first = read_nics(node)[0]
    before = counters(first, node)
    assert before == {
        "device/telemetry/hni_pcs_uncorrected_cw": 7,
        "device/properties/pcie_corr_err": 2,
        "device/properties/pcie_uncorr_err": 0,
        "rh:nacks": 11,
        LAST_RESTART: 0,
    }
    put(nic(node, "cxi0") / "properties/pcie_uncorr_err", 3)
    put(nic(node, "cxi0") / "properties/pcie_corr_err", 5)
    put(nic(node, "cxi0") / "link_restarts/time_0", int(NOW))
    after = counters(first, node)
    first["errors"] = {key: [before[key], after[key]] for key in before}
    failures, others = new_errors([first])
    assert (len(failures), len(others)) == (1, 2)
    wording([*failures, *sorted(others)])


def test_few_files_are_read(node, monkeypatch):
    """A prolog's check reads some tens of files of a node with four NICs."""
    opened = []
    original = type(node).open

    def counting(path, *arguments, **options):
        opened.append(path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(type(node), "open", counting)
    read_nics(node)
    assert len(opened) <= 4 * 35
    assert not [path for path in opened if os.path.isdir(path)]  # noqa: PTH112
    shutil.rmtree(node / "sys/class/cxi")
    assert read_nics(node)[0]["kind"] == "net"
