"""The validator: every fault of a node model is one sentence that names the file and the key."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fabricheck.core import yaml_files
from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.node import (
    format_cores,
    load,
    node_directory,
    parse_cores,
)

GOOD = yaml_files.read(node_directory() / "mi250x.yaml")
#: That of libyaml where PyYAML was built with it.
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def keys(content, place=()):
    for key, value in content.items():
        yield (*place, key)
        if isinstance(value, dict):
            yield from keys(value, (*place, key))


def inside(content, place):
    for key in place:
        content = content[key]
    return content


def needed(place) -> bool:
    """Whether a model lacks something without this key: a derived number needs no source."""
    spared = ("systems", "where", "url", "pci", "nics", "pcie_gbs", "simulation")
    if place[-1] in spared or "pci" in place:
        return False
    kind = inside(GOOD, place[:-1]).get("kind")
    if place[-1] == "record":
        return kind == "fitted"
    if place[-1] == "note":
        return kind in ("derived", "assumed", "unknown")
    return place[-1] != "source" or kind in ("published", "measured")


def written(folder: Path, content) -> Path:
    path = folder / "mi250x.yaml"
    path.write_text(content if isinstance(content, str) else yaml.dump(content, Dumper=DUMPER))
    return path


def sentence(path: Path) -> str:
    with pytest.raises(InvalidFile) as caught:
        load(str(path))
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith(".")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_a_copy_of_a_good_file_loads(tmp_path):
    assert load(str(written(tmp_path, GOOD))).devices[0].near_cores[0] == 49


def test_who_changes_what_was_read_changes_no_later_reading(tmp_path):
    path = written(tmp_path, GOOD)
    yaml_files.read(path)["links"].clear()
    assert yaml_files.read(path) == GOOD


REQUIRED = [place for place in keys(GOOD) if needed(place)]


@pytest.mark.slow
@pytest.mark.parametrize("place", REQUIRED, ids=lambda place: ".".join(map(str, place)))
def test_a_missing_key_is_named(tmp_path, place):
    content = copy.deepcopy(GOOD)
    del inside(content, place[:-1])[place[-1]]
    said = sentence(written(tmp_path, content))
    assert str(place[-1]) in said
    assert place[0] in said or "not among sources" in said


FAULTS = {
    "one-sided link": (
        lambda c: c["links"]["matrix"][6].__setitem__(0, 1),
        "links.matrix: the link 0-6 is one-sided: 2 from 0 to 6, 1 back.",
    ),
    "device in two packages": (
        lambda c: c["packages"]["devices"].append([3]),
        "packages.devices[4]: device 3 is in two packages (1 and 4).",
    ),
    "device in no package": (
        lambda c: c["packages"]["devices"].pop(),
        "packages.devices: device 6 is in no package.",
    ),
    "unknown device in a package": (
        lambda c: c["packages"]["devices"][0].append(8),
        "packages.devices[0]: there is no device 8; the node has devices 0 to 7.",
    ),
    "negative peak": (
        lambda c: c["links"]["peak_gbs"].update(value=-50.0),
        "links.peak_gbs: -50.0 is impossible: it must be positive and finite.",
    ),
    "peak of zero": (
        lambda c: c["host_link"]["peak_gbs"].update(value=0),
        "host_link.peak_gbs: 0 is impossible: it must be positive and finite.",
    ),
    "infinite peak": (
        lambda c: c["devices"]["memory_peak_gbs"].update(value=float("inf")),
        "devices.memory_peak_gbs: inf is impossible: it must be positive and finite.",
    ),
    "peak is not a number": (
        lambda c: c["devices"]["memory_peak_gbs"].update(value=float("nan")),
        "devices.memory_peak_gbs: nan is impossible: it must be positive and finite.",
    ),
    "link faster than memory": (
        lambda c: c["links"]["peak_gbs"].update(value=500.0),
        "links.peak_gbs: the link 0-1 has 2000 GB/s, but its devices' memory has 1638.4.",
    ),
    "host link faster than host memory": (
        lambda c: c["host_link"]["peak_gbs"].update(value=60.0),
        "host_link.peak_gbs: a host link has 60 GB/s, but the memory of a NUMA domain has 51.2.",
    ),
    "NIC without a place": (
        lambda c: c["nics"]["list"][1].pop("device"),
        "nics.list[cxi1]: NIC cxi1 needs exactly one of device and domain.",
    ),
    "NIC on an unknown device": (
        lambda c: c["nics"]["list"][1].update(device=8),
        "nics.list[1].device: there is no device 8; the node has devices 0 to 7.",
    ),
    "NIC twice": (
        lambda c: c["nics"]["list"][1].update(name="cxi0"),
        "nics.list[1]: NIC cxi0 occurs twice.",
    ),
    "ninth device in a row": (
        lambda c: c["links"]["matrix"][2].append(1),
        "links.matrix[2]: it names 9 devices, but the node has 8.",
    ),
    "ninth row": (
        lambda c: c["links"]["matrix"].append([0] * 8),
        "links.matrix: it has 9 rows for 8 devices.",
    ),
    "link to itself": (
        lambda c: c["links"]["matrix"][5].__setitem__(5, 1),
        "links.matrix[5]: device 5 has a link to itself.",
    ),
    "negative number of links": (
        lambda c: c["links"]["matrix"][0].__setitem__(1, -4),
        "links.matrix[0][1]: input should be greater than or equal to 0, not -4.",
    ),
    "core in two domains": (
        lambda c: c["domains"]["list"][1].update(cores="15-31"),
        "domains.list[1]: core 15 is in two NUMA domains (0 and 1).",
    ),
    "near core of another domain": (
        lambda c: c["domains"]["list"][0]["devices"].update({4: "0-7,16"}),
        "domains.list[0]: core 16 (device 4) is not one of domain 0's cores.",
    ),
    "reserved core of another domain": (
        lambda c: c["domains"]["list"][0].update(reserved="63"),
        "domains.list[0]: core 63 (reserved) is not one of domain 0's cores.",
    ),
    "domain without cores": (
        lambda c: c["domains"]["list"].append({"index": 4, "cores": ""}),
        "domains.list[4]: domain 4 has no core.",
    ),
    "domain twice": (
        lambda c: c["domains"]["list"][1].update(index=0),
        "domains.list[1]: NUMA domain 0 occurs twice.",
    ),
    "device on two domains": (
        lambda c: c["domains"]["list"][1]["devices"].update({4: "16-23"}),
        "domains.list[1].devices: device 4 is in two NUMA domains (0 and 1).",
    ),
    "device on no domain": (
        lambda c: c["domains"]["list"][0]["devices"].pop(5),
        "domains.list: device 5 is in no NUMA domain.",
    ),
    "unknown device on a domain": (
        lambda c: c["domains"]["list"][0]["devices"].update({11: "0"}),
        "domains.list[0].devices: there is no device 11; the node has devices 0 to 7.",
    ),
    "malformed cores": (
        lambda c: c["domains"]["list"][0].update(cores="0-x"),
        "domains.list[0].cores: '0-x' is neither a core nor a range of cores such as 0-7.",
    ),
    "malformed PCI address": (
        lambda c: c["devices"]["pci"]["addresses"].update({0: "c1:00"}),
        "devices.pci.addresses[0]: 'c1:00' is not a PCI address such as 0000:c1:00.0.",
    ),
    "PCI address twice": (
        lambda c: c["devices"]["pci"]["addresses"].update({1: "0000:c1:00.0"}),
        "devices.pci.addresses: two devices have the same PCI address.",
    ),
    "PCI address of an unknown device": (
        lambda c: c["devices"]["pci"]["addresses"].update({9: "0000:c2:00.0"}),
        "devices.pci.addresses: there is no device 9; the node has devices 0 to 7.",
    ),
    "unknown source": (
        lambda c: c["links"].update(source="hearsay"),
        "links.source: 'hearsay' is not among the sources.",
    ),
    "published without a source": (
        lambda c: c["host_link"]["peak_gbs"].pop("source"),
        "host_link.peak_gbs: a published fact needs a source.",
    ),
    "assumed without a reason": (
        lambda c: c["host_link"].update(peak_gbs={"value": 36.0, "kind": "assumed"}),
        "host_link.peak_gbs: kind assumed needs a note that says why.",
    ),
    "no value, yet published": (
        lambda c: c["copy_engine"]["peak_gbs"].update(value=None),
        "copy_engine.peak_gbs: a value must be null exactly where its kind is unknown.",
    ),
    "unknown where it must be known": (
        lambda c: c["devices"].update(memory_bytes={"value": None, "kind": "unknown", "note": "x"}),
        "devices.memory_bytes.value",
    ),
    "key that does not exist": (
        lambda c: c.update(nozzles=[]),
        "nozzles: this key is unknown.",
    ),
    "name of another file": (
        lambda c: c.update(name="mi250"),
        "name: 'mi250' differs from the file's name.",
    ),
    "links and a switch": (
        lambda c: c.update(
            switch={"kind": "assumed", "note": "x", "links_per_device": 1}
            | {"peak_gbs": c["links"]["peak_gbs"]}
        ),
        "switch: a node has either links or a switch.",
    ),
    "neither links nor a switch": (
        lambda c: c.pop("links"),
        "links: this key is missing, and there is no switch either.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_sentence(tmp_path, fault):
    change, expected = FAULTS[fault]
    content = copy.deepcopy(GOOD)
    change(content)
    assert sentence(written(tmp_path, content)).startswith(expected)


def test_a_switch_faster_than_the_memory_is_impossible(tmp_path, wording):
    content = yaml.safe_load((node_directory() / "h200.yaml").read_text())
    content["switch"]["peak_gbs"]["value"] = 300.0
    path = tmp_path / "h200.yaml"
    path.write_text(yaml.safe_dump(content))
    wording(sentence(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [mi250x", "line 2: it is not valid YAML"),
        ("name: a\nname: b\n", "line 2: it is not valid YAML (the key 'name' occurs twice)."),
        ("? [a, b]\n: 1\n", "line 1: it is not valid YAML (found unhashable key)."),
        ("- 1\n", "it must contain a mapping of keys to values."),
        ("", "it must contain a mapping of keys to values."),
        ("name: \x00", "it is not valid YAML"),
        ("{}", "format: this key is missing."),
        # libyaml ends the process where it is nested some thousands deep.
        ("name: " + "[" * 100_000, "its lists or mappings are nested more than 100 deep."),
        ("name:\n" + "- " * 100_000, "its lists or mappings are nested more than 100 deep."),
        ("name: " + "9" * 5000, "it is not valid YAML (Exceeds the limit"),
        ("1: a\n0x1: b\n", "line 2: it is not valid YAML (the key '0x1' occurs twice)."),
        ("name: &a [*a]", "a part of it contains itself, by an alias."),
        ("name: &a {<<: *a, b: 1}", "a part of it contains itself, by an alias."),
        ("name: 2026-13-41", "it is not valid YAML (month must be"),
    ],
)
def test_broken_yaml_is_one_sentence(tmp_path, text, expected):
    assert sentence(written(tmp_path, text)).startswith(expected)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "mi250x.yaml").mkdir()
    assert "cannot be read" in sentence(tmp_path / "mi250x.yaml")


@given(st.integers(min_value=0, max_value=len((node_directory() / "mi250x.yaml").read_bytes())))
def test_a_cut_file_never_is_another_node(tmp_path_factory, end):
    path = tmp_path_factory.mktemp("cut") / "mi250x.yaml"
    path.write_bytes((node_directory() / "mi250x.yaml").read_bytes()[:end])
    try:
        node = load(str(path))
    except (InvalidFile, NotFoundError) as error:
        assert str(path) in str(error)
    else:
        whole = load("mi250x")
        assert (node.links, node.devices, node.domains) == (
            whole.links,
            whole.devices,
            whole.domains,
        )


@given(st.sets(st.integers(min_value=0, max_value=300)))
def test_lists_of_cores_survive_writing_and_reading(cores):
    assert set(parse_cores(format_cores(cores))) == cores


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("7-3", "descends"),
        ("1,1", "core 1 is named twice"),
        ("0-2,2", "core 2"),
        ("-1", "'-1'"),
        ("0-99999999999", "the core 99999999999 exceeds any machine"),
        ("0-\u0663", "is neither a core nor a range"),
    ],
)
def test_malformed_lists_of_cores(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_cores(text)
