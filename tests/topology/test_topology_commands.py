"""The commands: what they print, their exit codes, and that failures are one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import factories
import inventories
import topology_texts as texts
from fabricheck.core.vocabulary import EXIT_DIFFERENT
from fabricheck.node import load, node_directory
from fabricheck.rfm import acceptance
from fabricheck.site import this_machine

PUBLISHED = Path(__file__).parents[1] / "outputs" / "rocm-smi"
BANDWIDTH = str(PUBLISHED / "published-hugging-face-shownodesbw.txt")
NUMA = str(PUBLISHED / "published-hugging-face-showtoponuma.txt")
NODES = ("a100-booster", "h200", "mi250", "mi250-two-sockets", "mi250x")


def failed(result) -> str:
    """Check that a command failed with one sentence, and return it."""
    sentences = [line for line in result.stderr.splitlines() if line.startswith("fabricheck: ")]
    assert len(sentences) == 1 and sentences[0].endswith(".")
    return sentences[0].removeprefix("fabricheck: ")


@pytest.fixture
def drivers(tmp_path):
    """Return the options that name a folder of programs, whose `inventory` tells this."""

    def drivers(told, **ends):
        return ("--programs", str(inventories.programs(tmp_path / "programs", told, **ends)))

    return drivers


@pytest.mark.parametrize("name", NODES)
def test_show_says_everything_a_model_knows(command, name):
    result = command("node", "show", name)
    node = load(name)
    assert result.exit_code == 0
    for key in node.facts:
        assert f"  {key}" in result.stdout
    for source in node.sources.values():
        assert source.title in result.stdout
    for link_class in node.link_classes:
        assert f"  {link_class.name} (" in result.stdout


def test_show_of_mi250x(command):
    text = command("node", "show", "mi250x").stdout
    assert "\n  6 2 . . . 1 . - 4" in text
    assert "links2_3hops (100): 1-7 3-5" in text
    assert "cores 49,57,17,25,1,9,33,41" in text
    assert "links.peak_gbs = 50.0: published, paper, II.A, paper-if-link-uni" in text


def test_show_with_an_overlay_says_so(command):
    overlay = str(node_directory() / "overlays" / "link-0-6-gone.yaml")
    assert (
        "changed by the overlay 'link 0-6 gone'"
        in command("node", "show", "mi250x", "--overlay", overlay).stdout
    )


def test_show_as_json(command):
    content = command("node", "show", "mi250x", json=True).json
    assert content["identity"] == load("mi250x").identity
    pair = next(p for p in content["pairs"] if (p["source"], p["destination"]) == (1, 7))
    assert pair["class"] == "links2_3hops" and pair["widest_path"] == [1, 0, 6, 7]
    assert len(content["pairs"]) == 56
    assert command("node", "show", "h200", json=True).json["links"] == []


def test_parse(command):
    text = command("node", "show", "--from", BANDWIDTH, "--from", NUMA).stdout
    assert "50 GB/s each" in text and "NUMA domain of each device" in text
    assert "  7: 1" in text


def test_parse_of_types_only(command, tmp_path):
    path = tmp_path / "topo"
    path.write_text(texts.showtopo(load("mi250x")))
    assert "XGMI" in command("node", "show", "--from", path).stdout


def test_compare_with_map_a_and_map_b(command, wording):
    result = command("node", "compare", "mi250x", "--from", BANDWIDTH)
    wording(result.stdout)
    result = command("node", "compare", "mi250", "--from", BANDWIDTH, code=EXIT_DIFFERENT)
    wording(result.stdout)
    result = command(
        "node", "compare", "mi250x", "--from", BANDWIDTH, "--from", NUMA, code=EXIT_DIFFERENT
    )
    wording(result.stdout)


@pytest.mark.parametrize(
    ("k", "expected"), [("1", "0"), ("2", "0,1"), ("3", "0,1,6"), ("4", "0,1,6,7")]
)
def test_best_gpus_gives_the_answers_of_the_hugging_face_page(command, k, expected):
    assert command("node", "best-gpus", "-k", k, "--from", BANDWIDTH).stdout == f"{expected}\n"
    assert command("node", "best-gpus", "-k", k, "mi250x").stdout == f"{expected}\n"


def test_best_gpus_of_this_machine(command, drivers):
    result = command("node", "best-gpus", "-k", "3", *drivers(inventories.composed(load("mi250"))))
    assert (result.stdout, result.stderr) == ("0,1,4\n", "")


def test_best_gpus_failures(command, tmp_path, wording):
    assert "8 devices; 9 cannot" in failed(
        command("node", "best-gpus", "-k", "9", "mi250x", code=2)
    )
    both = command("node", "best-gpus", "-k", "2", "mi250x", "--from", BANDWIDTH, code=2)
    assert "cannot be combined" in failed(both)
    path = tmp_path / "topo"
    path.write_text(texts.showtopo(load("mi250x")))
    told = command("node", "best-gpus", "-k", "2", "--from", path, code=2)
    wording(failed(told))


def test_compare_and_parse_of_this_machine(command, tmp_path, drivers, monkeypatch, wording):
    result = command("node", "compare", "mi250x", *drivers(inventories.kept("mi250x")))
    wording(result.stdout)
    result = command(
        "node",
        "compare",
        "mi250x",
        *drivers(inventories.kept("mi250x-links-gone")),
        code=EXIT_DIFFERENT,
    )
    wording(result.stdout)
    told = inventories.kept("h100-x2")
    result = command("node", "compare", "h200", "--devices", "2", *drivers(told))
    # What somebody sends is read as well.
    file = tmp_path / "programs" / "node.json"
    said = command("node", "show", "--from", file).stdout
    assert "2 nvidia devices" in said and "26.562 GB/s each" in said
    monkeypatch.chdir(tmp_path)
    wording(failed(command("node", "compare", "mi250x", code=3)))
    wording(failed(command("node", "show", code=3)))
    # A bundle's programs, or Spack's, are elsewhere.
    monkeypatch.setenv("FABRICHECK_CUDA_PROGRAMS", drivers(inventories.kept("h100-x2"))[-1])
    assert "model: NVIDIA H100 80GB HBM3" in command("node", "draft", "x").stdout
    bad = drivers(
        told | {"devices": [], "links": [], "pci_functions": []}, code=3, says="no driver"
    )
    wording(failed(command("node", "draft", "x", *bad, code=4)))


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        ("mi250x", "mi250x"),
        ("mi210-x2", "mi210"),
        ("mi300x", "mi300x"),
        ("mi300a", "mi300a"),
        ("h100-x2", "h200"),
    ],
)
def test_a_draft_beside_the_model_of_such_a_node(command, tmp_path, drivers, tree, name):
    """The drivers and the device's data sheet state what the model does."""
    model = load(name)
    told = inventories.kept(tree)
    text = command("node", "draft", name, *drivers(told)).stdout
    draft = yaml.safe_load(text)
    count = len(told["devices"])
    assert draft["devices"]["count"] == count
    assert draft["devices"]["architecture"] in (model.architecture, "sm_90")
    if name != "h200":
        assert draft["devices"]["model"] == model.device_model
    if model.switch:
        assert draft["switch"]["links_per_device"] == model.switch.links_per_device
        peak, modelled = draft["switch"]["peak_gbs"], model.switch.peak_gbs
    else:
        matrix = [list(row[:count]) for row in model.link_matrix[:count]]
        assert draft["links"]["matrix"] == matrix
        peak = draft["links"]["peak_gbs"]
        modelled = max(link.peak_gbs for link in model.links.values())
    assert (peak["kind"], peak["value"]) == ("published", modelled)
    assert peak["source"] in draft["sources"]
    if name not in ("h200", "mi210"):
        domains = {one["index"]: {*one["devices"]} for one in draft["domains"]["list"]}
        assert domains == {one.index: {*one.devices} for one in model.domains}
    peak = draft["devices"]["memory_peak_gbs"]
    assert peak["kind"] == "published" and peak["source"] in draft["sources"]
    assert peak["value"] == (3350 if name == "h200" else model.device(0).memory_peak_gbs)
    if model.shares_memory:
        assert draft["host_link"]["type"] == "shared memory"
    # It is valid, and never compared with the driver that it is of.
    assert draft["packages"]["devices"] == [list(one) for one in model.packages][:count]
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(draft))
    for way in told["links"]:
        way["links"] = 1 if way["links"] == 0 else 0
    told["domains"] = []
    result = command("node", "compare", path, *drivers(told))
    fact = "switch" if model.switch else "links"
    for one in (fact, "domains", "devices.pci"):
        assert f"note: not judged: {one}, which {name} has from the driver" in result.stderr


def described(folder, content):
    file = folder / "told.json"
    file.write_text(json.dumps(content))
    return str(file)


def test_write_a_draft(command, tmp_path):
    told = described(tmp_path, inventories.kept("mi300x"))
    result = command("node", "draft", "mine", "--from", told)
    assert yaml.safe_load(result.stdout)["name"] == "mine"
    arguments = ("node", "draft", "mine", "--from", told, "--output", str(tmp_path))
    command(*arguments)
    assert (tmp_path / "mine.yaml").read_text() == result.stdout
    assert "mine.yaml already exists" in failed(command(*arguments, code=2))
    nowhere = command(*arguments[:-1], tmp_path / "nowhere", code=3)
    assert "cannot be written" in failed(nowhere)


def test_the_draft_of_this_machine_lies_beside_those_of_others(command, tmp_path, results_folder):
    (results_folder / "nodes").mkdir()
    told = described(tmp_path, inventories.kept("mi300x"))
    command("node", "draft", "--from", told)
    assert yaml.safe_load(this_machine.draft().read_text())["name"] == this_machine.draft().stem


def test_texts_of_tools_do_not_tell_enough_for_a_draft(command, wording):
    said = failed(command("node", "draft", "mine", "--from", BANDWIDTH, code=4))
    wording(said)


@pytest.mark.parametrize(
    "changes",
    [
        {"host_link": {"kind": "pcie", "gb_per_s": None}, "pcie": None},
        {"host_link": None, "numa_domain": None, "cores": None, "name": None},
    ],
)
def test_what_the_driver_does_not_tell_is_unknown_and_not_judged(command, tmp_path, changes):
    """As on a virtual machine that shows no PCIe, or whose kernel tells no rate of a link."""
    told = inventories.kept("mi250x")
    for device in told["devices"]:
        device |= {"architecture": "gfx999", **changes}
    for way in told["links"]:
        way["gb_per_s"] = None
    arguments = ("--from", described(tmp_path, told), "--output", str(tmp_path))
    command("node", "draft", "mine", *arguments)
    node = load(str(tmp_path / "mine.yaml"))
    assert {"host_link.peak_gbs", "links.peak_gbs"} <= {*node.unknown_peaks}
    assert node.link_matrix == load("mi250x").link_matrix
    assert node.best_subsets(2) == load("mi250x").best_subsets(2)
    copy = factories.series(operation="h2d", device=0, source=factories.place("host-pinned"),
                            destination=factories.place("device", 0))  # fmt: skip
    write = factories.series(device=0, device_set=[0, 1], destination=factories.place("peer", 1))
    assert [acceptance.node_bound(node, one) for one in (copy, write)] == [None, None]
    shown = command("node", "show", tmp_path / "mine.yaml").stdout
    assert "unknown GB/s per direction" in shown and "links4 (unknown): 0-1" in shown
    assert "host_link.peak_gbs = None: unknown (not told by the driver)" in shown


@pytest.mark.parametrize(
    ("architecture", "by_driver", "drafted"),
    [
        ("gfx942", 50.0, ("published", 64)),
        ("gfx942", None, ("published", 64)),
        ("gfx950", 64.0, ("published", 76.8)),
        ("gfx999", 50.0, ("assumed", 50)),
        ("gfx999", None, ("unknown", None)),
    ],
)
def test_the_peak_of_a_link_is_a_document_s_before_a_constant_of_the_driver(
    command, tmp_path, architecture, by_driver, drafted
):
    """Versions of amdgpu print other constants, which a healthy link may exceed."""
    told = inventories.kept("mi300x")
    for device in told["devices"]:
        device["architecture"] = architecture
    for way in told["links"]:
        way["gb_per_s"] = by_driver
    text = command("node", "draft", "mine", "--from", described(tmp_path, told)).stdout
    peak = yaml.safe_load(text)["links"]["peak_gbs"]
    assert (peak["kind"], peak["value"]) == drafted


def test_a_node_in_parts_is_not_drafted(command, tmp_path, wording):
    told = described(tmp_path, inventories.kept("mi300x-cpx"))
    said = failed(command("node", "draft", "mine", "--from", told, code=4))
    wording(said)


def test_failures_are_one_sentence(command, tmp_path, wording):
    assert "no node model 'nope'" in failed(command("node", "show", "nope", code=3))
    wording(failed(command("node", "show", "--from", tmp_path / "gone", code=3)))
    cut = tmp_path / "cut.txt"
    cut.write_text("\n".join(Path(BANDWIDTH).read_text().splitlines()[:8]))
    wording(failed(command("node", "compare", "mi250x", "--from", cut, code=4)))


def test_no_draft_has_devices_of_two_kinds(command, drivers, wording):
    """A model has one, and would judge the other by it."""
    told = inventories.kept("h100-x2")
    first, second = told["devices"]
    told = told | {"devices": [first, second | {"name": "NVIDIA L40S"}]}
    said = failed(command("node", "draft", "x", *drivers(told), code=4))
    wording(said)
