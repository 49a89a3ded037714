"""What a device is: by its id the same under any name, and by its name without an id."""

from __future__ import annotations

import csv
import json

import pytest

import factories
import inventories
from fabricheck.core.errors import InvalidFile, InvalidInputError
from fabricheck.judge.comparison import circumstances
from fabricheck.node import available, load, products
from fabricheck.results import other_devices
from fabricheck.site import clusters, this_machine
from fabricheck.tools.topology import drafting, inventory
from session_builder import SessionBuilder

#: Products by a recorded or composed description, and the id of each that PCI has.
PRODUCTS = {
    "mi300x": ("AMD Instinct MI300X", "1002:74a1", "1002:74b5"),
    "mi210-x2": ("AMD Instinct MI210", "1002:740f", "1002:7410"),
    "mi250x": ("AMD Instinct MI250X", "1002:7408", None),
    "mi300a": ("AMD Instinct MI300A", "1002:74a0", None),
    "h100-x2": ("NVIDIA H100 80GB HBM3", "10de:2330", None),
}


def told(description: str, **members: object) -> dict:
    """Return a description in which each device has these members."""
    content = inventories.kept(description)
    for device in content["devices"]:
        device |= members
    return content


def draft(content: dict) -> str:
    return drafting.drafted(inventory.reported(content), "drafted")


def variants(name: str):
    """Yield what containers, virtual machines and documents of earlier versions make of devices."""
    product, pci_id, function = PRODUCTS[name]
    for label in ("", None, "AMD Radeon Graphics", f"{product} VF", product):
        yield {"name": label, "pci_id": pci_id}
        if function is not None:
            yield {"name": label, "pci_id": function}
    yield {"name": product, "pci_id": None}
    yield {"name": f"{product} VF", "pci_id": None}
    yield {"name": product, "pci_id": "1002:ffff"}


CASES = [(name, members) for name in PRODUCTS for members in variants(name)]


@pytest.mark.parametrize(("name", "members"), CASES)
def test_the_draft_and_the_limits_are_those_of_the_product(tmp_path, name, members):
    product, pci_id, _ = PRODUCTS[name]
    expected = draft(told(name, name=product, pci_id=pci_id))
    content = told(name, **members)
    assert draft(content) == expected
    assert not [*drafting.notes(inventory.reported(content))]
    file = tmp_path / "drafted.yaml"
    file.write_text(expected)
    model = load(str(file))
    assert model.device_model == product
    assert model.devices[0].memory_peak_gbs == products.table()[product].memory_peak_gbs
    assert clusters.references_of(model) == (products.table()[product].references or model.vendor)
    # What a session of it has is judged and recorded as that of any other such device.
    document = document_of(content)
    assert other_devices.explained(document, len(model.devices), model) is None
    assert {products.label(device) for device in document["devices"]} == {product}
    healthy = document_of(told(name, name=product, pci_id=pci_id))
    assert not circumstances.differences([healthy], [document])


def document_of(content: dict) -> dict:
    """Return the document of a program on the devices of a description."""
    document = factories.document()
    document["program"]["runtime"] = content["program"]["runtime"]
    return document | {"devices": inventory.devices_of(content)}


def test_a_calibration_names_the_product_and_is_that_of_its_devices(tmp_path):
    model = tmp_path / "drafted.yaml"
    model.write_text(draft(told("mi300x", name="", pci_id="1002:74b5")))
    assert this_machine.name_for_files(load(str(model))) == "8x-amd-instinct-mi300x-links1"


def test_a_device_that_neither_has_a_known_id_nor_a_known_name_lacks_limits_in_a_sentence(
    command, tmp_path
):
    content = told("mi300x", name="AMD Radeon Graphics", pci_id="1002:74ff")
    report = inventory.reported(content)
    sentence = (
        "The device (AMD Radeon Graphics, PCI id 1002:74ff) is in no row of config/devices.yaml, "
        "so limits are missing: that on its memory, whose peak is unknown, and those of the same "
        "product."
    )
    assert [*drafting.notes(report)] == [sentence]
    file = tmp_path / "told.json"
    file.write_text(json.dumps(content))
    words = ("node", "draft", "new", "--from", str(file), "--output", str(tmp_path))
    ended = command(*words)
    assert sentence in " ".join(ended.stderr.split())
    model = load(str(tmp_path / "new.yaml"))
    assert (model.device_model, model.devices[0].memory_peak_gbs) == ("device 1002:74ff", None)
    assert clusters.references_of(model) == "amd"
    # A model with a peak of its own lacks less.
    document = document_of(content)
    assert sentence.replace("that on its memory, whose peak is unknown, and ", "") == (
        products.missing_limits(document["devices"][0], has_peak=True)
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_verdict_says_which_limits_an_unknown_device_lacks(command, results_folder, known):
    document = factories.on_h200(8, environment={this_machine.NODE: "h200"})
    for device in document["devices"]:
        device |= {"name": "", "pci_id": "10de:2335" if known else "10de:ffff"}
    case = factories.case(system="local", partition="gpu")
    verdict = SessionBuilder(results_folder).add(case, document).verdict()
    sentence = (
        "The device (without a name, PCI id 10de:ffff) is in no row of config/devices.yaml, so "
        "limits are missing: those of the same product."
    )
    assert (sentence in verdict.caveats) == (not known)
    called = "NVIDIA H200" if known else "device 10de:ffff"
    assert {device.name for device in verdict.devices} == {called}
    written = command("results", "export", results_folder)
    rows = csv.DictReader(written.stdout.splitlines())
    assert {row["device_name"] for row in rows if row["device"]} == {called}


def test_a_device_of_another_product_is_another_machine():
    node = load("h200")
    for pci_id, other in [("10de:2335", False), ("10de:2331", True)]:
        document = factories.on_h200(8)
        for device in document["devices"]:
            device |= {"name": "", "pci_id": pci_id}
        found = other_devices.explained(document, 8, node)
        assert (found is not None and "NVIDIA H100 PCIe" in found.sentence) == other


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("NVIDIA H100 80GB HBM3", True),
        ("NVIDIA H100 PCIe", False),  # of as much memory, and another peak
        ("NVIDIA A100-SXM4-80GB", False),
        ("device 10de:ffff", True),  # it can be anything
    ],
)
def test_products_of_one_name_and_other_memory_are_not_the_same(name, same):
    assert other_devices.same_product("NVIDIA H100 80GB HBM3", name) == same


def test_the_id_that_mi250_and_mi250x_share_is_of_either():
    either = products.label({"name": "", "pci_id": "1002:740c"})
    assert other_devices.same_product("AMD Instinct MI250", either)
    assert other_devices.same_product("AMD Instinct MI250X", either)


def test_the_parts_of_a_device_have_no_peak_of_the_whole(wording):
    content = told("mi300x", memory_bytes=24 << 30, pci_id="1002:74b5", name="")
    assert "note: less memory than AMD Instinct MI300X has" in draft(content)
    (sentence,) = drafting.notes(inventory.reported(content))
    wording(sentence)


def test_parts_are_refused_also_where_the_driver_does_not_tell_the_mode():
    content = told("mi300x-cpx", compute_partition=None)
    with pytest.raises(InvalidInputError, match="mode CPX, as 16 devices: set SPX"):
        draft(content)


@pytest.mark.parametrize(
    ("shown", "mode"), [(8, None), (16, "DPX"), (32, "QPX"), (64, "CPX"), (12, None)]
)
def test_a_mode_is_known_by_the_devices_that_it_makes_of_each(shown, mode):
    assert other_devices.mode_of_parts(shown, stated=8) == mode


@pytest.mark.parametrize("name", [None, "NVIDIA B200", "NVIDIA Graphics Device"])
def test_a_b200_with_less_memory_is_no_part_and_has_the_links_of_b200(tmp_path, name, wording):
    """By the values of an H200 its links would pass with half of their bandwidth."""
    content = told("h100-x2", name=name, pci_id="10de:2909", memory_bytes=168 * 10**9)
    wording(drafting.notes(inventory.reported(content)))
    file = tmp_path / "drafted.yaml"
    file.write_text(draft(content))
    assert clusters.references_of(load(str(file))) == "nvidia-b200"


def test_a_product_without_a_published_peak_says_so(wording):
    wording(drafting.notes(inventory.reported(told("mi300x", pci_id="1002:74a9"))))


def test_the_board_tells_two_products_with_one_id_apart():
    device = {"name": "", "pci_id": "10de:2342", "pci_subsystem": "10de:1809"}
    assert products.label(device) == "NVIDIA GH200 480GB"
    assert products.label(device | {"pci_subsystem": "10de:16eb"}) == "NVIDIA GH200 120GB"
    assert products.label(device | {"pci_subsystem": None}) == "device 10de:2342"


def test_a_simulated_device_is_called_one():
    device = {"name": "AMD Instinct MI250X (simulated)", "pci_id": None}
    assert products.label(device) == device["name"]


def test_no_id_is_of_two_products_and_each_peak_has_a_source():
    rows = products.table().values()
    ids = [pci_id for row in rows for pci_id in row.ids]
    assert len(ids) == len(set(ids))
    assert all((row.memory_peak_gbs is None) == (row.source is None) for row in rows)
    assert all(products.by_name(row.name) == row for row in rows)


@pytest.mark.parametrize("name", available())
def test_each_shipped_node_model_is_of_a_product_of_the_table(name):
    """Their peaks are stated in both places, by their own sources."""
    model = load(name)
    row = products.by_name(model.device_model)
    assert row is not None and row.name == model.device_model
    if row.memory_peak_gbs is not None:
        assert model.devices[0].memory_peak_gbs == pytest.approx(row.memory_peak_gbs, rel=0.01)
        assert not row.has_part(model.devices[0].memory_bytes)


def test_an_id_that_is_none_is_refused_by_name(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "devices.yaml").write_text('Device One: {ids: ["0x74a1"]}\n')
    monkeypatch.setattr(products.checkout, "ROOT", tmp_path)
    with pytest.raises(InvalidFile, match="Device One"):
        products.table()
