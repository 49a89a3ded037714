"""Comparing reports with models, and drafting models from reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

import inventories
import topology_texts as texts
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import EXIT_CODE
from fabricheck.node import load, node_directory
from fabricheck.node.loading import available
from fabricheck.tools.runner import TimeLimit
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.drafting import drafted
from fabricheck.tools.topology.reported import Reported, merge
from fabricheck.tools.topology.texts import parse_text

MAP_A, MAP_B, H200, A100 = (load(n) for n in ("mi250x", "mi250", "h200", "a100-booster"))


def report(*parts: str):
    return merge([parse_text(text, "the tools", part=True) for text in parts])


def addressed(node, addresses):
    devices = zip(node.devices, addresses, strict=True)
    return replace(node, devices=tuple(replace(d, pci_address=a) for d, a in devices))


def sentences(outcome):
    return tuple(one.sentence for one in outcome.differences)


@pytest.mark.parametrize(
    ("node", "seen"),
    [
        (MAP_A, report(texts.shownodesbw(MAP_A), texts.showtoponuma(MAP_A))),
        (MAP_A, report(texts.showtopo(MAP_A))),
        (MAP_B, report(texts.shownodesbw(MAP_B))),
        (MAP_A, report(texts.amd_smi(MAP_A, texts.PCI))),
        (H200, report(texts.topo_m(H200))),
        (A100, report(texts.topo_m(A100), texts.query([d.pci_address for d in A100.devices]))),
    ],
)
def test_a_node_agrees_with_its_own_model(node, seen):
    assert compare(node, seen).differences == ()


def test_tools_that_name_a_device_to_itself_otherwise_agree():
    by_one, by_other = texts.showtopo(MAP_A), texts.amd_smi(MAP_A, texts.PCI)
    types = [report(text).link_types[0][0] for text in (by_one, by_other)]
    assert types == ["0", "SELF"]
    assert compare(MAP_A, report(by_one, by_other)).differences == ()


def test_map_a_differs_from_map_b_in_these_pairs(wording):
    outcome = compare(MAP_B, report(texts.shownodesbw(MAP_A)))
    assert len(outcome.differences) == 10
    wording(sentences(outcome))


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        ("link-0-6-gone", ["Pair 0-6: 2 links in mi250x, no direct link in the tools."]),
        ("device-3-memory-slow", []),
        ("domain-2-half-memory", []),
    ],
)
def test_a_broken_node_is_told_by_its_pair(overlay, expected):
    broken = load("mi250x", node_directory() / "overlays" / f"{overlay}.yaml")
    outcome = compare(MAP_A, report(texts.shownodesbw(broken)))
    assert list(sentences(outcome)) == expected


def test_a_rotated_numa_map_is_told_by_its_devices(wording):
    rotated = load("mi250x", node_directory() / "overlays" / "numa-map-rotated.yaml")
    outcome = compare(MAP_A, report(texts.shownodesbw(rotated), texts.showtoponuma(rotated)))
    assert len(sentences(outcome)) == 8
    wording(sentences(outcome)[0])


def test_a_device_without_a_domain_or_near_other_cores(wording):
    text = texts.showtoponuma(MAP_A).replace(
        "GPU[5]\t\t: (Topology) Numa Node: 0", "GPU[5]\t\t: (Topology) Numa Node: -1"
    )
    outcome = compare(MAP_A, report(texts.shownodesbw(MAP_A), text))
    wording(sentences(outcome))
    # All others, and some of its own.
    for cores in ("16-31", "8-23"):
        text = texts.topo_m(A100).replace("0-15", cores, 1)
        outcome = compare(A100, report(text))
        wording(sentences(outcome))


@pytest.mark.parametrize("cores", ["3", "3,67", "0-7"])
def test_a_tool_in_a_job_lists_some_of_the_near_cores(cores):
    """Hardware threads, as 67, are in no node model."""
    assert not sentences(compare(A100, report(texts.topo_m(A100).replace("0-15", cores, 1))))


def test_a_pcie_connection_where_links_should_be(wording):
    text = texts.showtopo(MAP_A).replace("XGMI", "PCIE")
    outcome = compare(MAP_A, report(text))
    assert len(outcome.differences) == 12
    wording(sentences(outcome))


def test_another_number_of_devices_or_vendor(wording):
    outcome = compare(MAP_A, report(texts.topo_m(A100)))
    wording(sentences(outcome))


def test_another_peak_of_a_link_is_a_constant_of_the_driver_and_a_note():
    text = texts.shownodesbw(MAP_A).replace("50000-", "64000-")
    text = text.replace("-50000", "-64000").replace("-100000", "-128000")
    text = text.replace("-200000", "-256000")
    found = compare(MAP_A, report(text))
    assert sentences(found) == () and "peak of a link" not in found.compared
    assert "one link has 50 GB/s in mi250x, and 64 by the driver in the tools" in found.notes


def without(a, b, links):
    """Return a report of map A with other links of one pair."""
    matrix = [[*row] for row in MAP_A.link_matrix]
    matrix[a][b] = matrix[b][a] = links
    return Reported("the tools", "amd", 8, links=tuple(map(tuple, matrix)))


def test_a_link_that_is_gone_is_lost_and_other_cables_are_not():
    gone = compare(MAP_A, without(0, 6, 0))
    (difference,) = gone.differences
    assert (difference.devices, difference.found, difference.lost) == ((0, 6), 0, True)
    more = compare(MAP_A, without(0, 2, 2))
    (difference,) = more.differences
    assert (difference.devices, difference.found, difference.lost) == ((0, 2), 2, False)


def test_fewer_devices_are_lost_and_more_are_not():
    for count in (7, 64):
        (difference,) = compare(MAP_A, Reported("the tools", "amd", count)).differences
        assert difference.lost == (count < 8)


def test_links_that_are_assumed_and_domains_of_another_host_are_notes():
    """What mi210 assumes, and the one domain of the machine that h200 was measured on."""
    of_links = compare(load("mi210"), Reported("the tools", "amd", 8, links=8 * ((0,) * 8,)))
    assert of_links.differences == ()
    assert any(note.startswith("differs from what is assumed: Pair 0-1") for note in of_links.notes)
    two_sockets = Reported("the tools", "nvidia", 8, numa=(0, 0, 0, 0, 1, 1, 1, 1))
    of_domains = compare(load("h200"), two_sockets)
    assert of_domains.differences == ()
    assert any(note.startswith("differs from another host: Device 4") for note in of_domains.notes)


def test_devices_are_matched_by_pci_address(wording):
    """Numbered otherwise, the same node agrees; by number alone it would not."""
    seen = report(texts.amd_smi(MAP_A, texts.PCI, order=(2, 0, 4, 6, 1, 3, 5, 7)))
    outcome = compare(addressed(MAP_A, texts.PCI), seen)
    assert sentences(outcome) == ()
    wording(outcome.notes)
    outcome = compare(MAP_A, seen)
    assert sentences(outcome)
    wording(outcome.notes[0])
    moved = addressed(MAP_A, ("0000:01:00.0", *texts.PCI[1:]))
    outcome = compare(moved, report(texts.amd_smi(MAP_A, texts.PCI)))
    wording(sentences(outcome))


def test_what_is_not_told_is_said(wording):
    outcome = compare(MAP_A, report(texts.showtoponuma(MAP_A)))
    assert "links are not reported" in outcome.notes
    wording(compare(MAP_A, report(texts.shownodesbw(MAP_A))).notes)


def draft_of(told):
    return yaml.safe_load(drafted(inventory.reported(told), "mine"))


@pytest.mark.parametrize("name", available())
def test_each_node_is_drafted_from_what_its_driver_tells(tmp_path, name):
    model = load(name)
    content = draft_of(inventories.composed(model))
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    draft = load(str(path))
    assert draft.link_matrix == model.link_matrix
    assert (draft.switch is None) == (model.switch is None)
    assert [one.domain for one in draft.devices] == [one.domain for one in model.devices]
    assert [one.cores for one in draft.domains] == [one.cores for one in model.domains]
    assert draft.packages == model.packages or "MI250" not in model.device_model


@pytest.mark.parametrize(("rates", "peak"), [((50, 50), 50), ((50, 36), None)])
def test_links_of_one_rate_have_a_peak_and_those_of_several_none(rates, peak):
    told = inventories.composed(MAP_A)
    for number, link in enumerate(told["links"]):
        link["gb_per_s"] = rates[number % 2]
    assert inventory.reported(told).link_peak_gbs == peak


def test_a_list_of_plain_values_is_a_line_of_a_draft():
    lines = drafted(inventory.reported(inventories.kept("mi250x")), "mine").splitlines()
    rows = [f"  - {list(row)}" for row in MAP_A.link_matrix]
    assert [line for line in lines if line in rows] == rows


def test_this_machine_has_a_minute_to_describe_itself(tmp_path):
    folder = inventories.programs(tmp_path, None, code=EXIT_CODE["time-limit"])
    with pytest.raises(TimeLimit, match=" within 60 s"):
        inventory.this_machine(folder)


def test_a_switch_has_the_links_of_the_device_with_most():
    told = inventories.set_links(inventories.kept("h100-x2"), 0, 1, 17)
    told["links"][0]["links"] = 18
    assert draft_of(told)["switch"]["links_per_device"] == 17  # both directions have them
    assert "links" not in draft_of(told)


def test_a_draft_needs_links():
    told = inventories.set_links(inventories.kept("mi250x"), 0, 1, None)
    with pytest.raises(InvalidInputError, match="The number of links is not reported in the driv"):
        draft_of(told)


@pytest.mark.parametrize(("kind", "gone"), [("XGMI", True), ("PCIE", True), ("UNKNOWN", False)])
def test_a_connection_without_a_type_proves_no_link_gone(kind, gone, wording):
    model = load("mi300x")
    links = [list(row) for row in model.link_matrix]
    links[2][5] = links[5][2] = 0
    types = [["SELF" if a == b else "XGMI" for b in range(8)] for a in range(8)]
    types[2][5] = types[5][2] = kind
    found = compare(
        model,
        Reported("tool", "amd", 8, links=tuple(map(tuple, links)),
                 link_types=tuple(map(tuple, types))),
    )  # fmt: skip
    (difference,) = found.differences
    wording(difference.sentence)
    assert difference.lost == gone
