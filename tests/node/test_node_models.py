"""The committed node models, against what the documents state about these nodes."""

from __future__ import annotations

import functools
import operator
from itertools import combinations
from pathlib import Path

import pytest

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.yaml_files import read
from fabricheck.node import LinkClass, NodeModel, available, load, node_directory
from fabricheck.node.placement import domain_of_core, near_masks, placements
from fabricheck.node.schema import Quantity

NODES = (
    "a100-booster", "a100-jureca", "b200", "h200", "mi210", "mi250", "mi250-two-sockets", "mi250x",
    "mi300a", "mi300x", "mi325x", "mi355x",
)  # fmt: skip

# Maps A and B of the published data set: pairs with two links, and with one.
MAP_A = ({"0-6", "2-4"}, {"0-2", "1-3", "1-5", "3-7", "4-6", "5-7"})
MAP_B = ({"0-4", "2-6"}, {"0-6", "1-3", "1-7", "2-4", "3-5", "5-7"})
QUADS = {"0-1", "2-3", "4-5", "6-7"}


def published_file() -> Path:
    return node_directory().parents[1] / "reference_values" / "published_values.yaml"


@pytest.fixture(scope="module")
def mi250x() -> NodeModel:
    return load("mi250x")


def named(pairs) -> set[str]:
    return {f"{a}-{b}" for a, b in pairs}


def classes(node: NodeModel) -> dict[str, set[str]]:
    return {c.name: named(pairs) for c, pairs in node.link_classes.items()}


def test_the_models_that_exist():
    assert available() == NODES


@pytest.mark.parametrize("name", NODES)
def test_every_model_loads_and_every_number_says_where_it_comes_from(name):
    node = load(name)
    assert node.name == name
    quantities = {key: fact for key, fact in node.facts.items() if isinstance(fact, Quantity)}
    assert {"devices.memory_bytes", "devices.memory_peak_gbs", "host_link.peak_gbs"} <= set(
        quantities
    )
    for key, fact in node.facts.items():
        assert fact.source or fact.note, key
        assert fact.source is None or node.sources[fact.source].title, key


def test_records_named_in_the_models_exist_in_the_published_data_set():
    data = read(published_file())
    known = {entry["id"] for section in ("records", "topology") for entry in data[section]}
    named_records = {
        fact.record for name in NODES for fact in load(name).facts.values() if fact.record
    }
    assert named_records <= known


def test_hops_of_the_papers_figure_6a(mi250x):
    direct = QUADS | MAP_A[0] | MAP_A[1]
    for a, b in combinations(range(8), 2):
        expected = 1 if f"{a}-{b}" in direct else 2
        assert mi250x.hop_matrix[a][b] == mi250x.hop_matrix[b][a] == expected
    assert all(mi250x.hop_matrix[a][a] == 0 for a in range(8))


def test_only_1_7_and_3_5_have_a_widest_path_that_is_not_the_shortest(mi250x):
    assert named(mi250x.detour_pairs) == {"1-7", "3-5"}
    assert mi250x.hop_matrix[1][7] == 2
    assert mi250x.widest_path(1, 7) == (1, 0, 6, 7)
    assert mi250x.widest_path(7, 1) == (7, 6, 0, 1)
    assert mi250x.widest_path(3, 5) == (3, 2, 4, 5)


def test_link_classes_of_map_a(mi250x):
    found = classes(mi250x)
    assert found["links4"] == QUADS
    assert (found["links2"], found["links1"]) == MAP_A
    assert found["links2_2hops"] == {"0-7", "1-6", "2-5", "3-4"}
    assert found["links2_3hops"] == {"1-7", "3-5"}
    assert sum(map(len, found.values())) == 28
    assert mi250x.link_class(1, 7) == LinkClass(links=2, hops=3)
    assert not mi250x.link_class(1, 7).direct


def test_link_classes_of_map_b():
    found = classes(load("mi250"))
    assert found["links4"] == QUADS
    assert (found["links2"], found["links1"]) == MAP_B
    assert sum(map(len, found.values())) == 28


def test_theoretical_peaks_of_mi250x(mi250x):
    assert mi250x.device(0).host_link_gbs == 36
    assert mi250x.peer_peak_gbs(0, 2) == 50
    assert mi250x.peer_peak_gbs(0, 6) == 100
    assert mi250x.peer_peak_gbs(0, 1) == 200
    assert mi250x.peer_peak_gbs(0, 1, "copy-engine") == 50
    assert mi250x.peer_peak_gbs(1, 7) == 100


def test_theoretical_peaks_on_nvidia():
    h200, a100 = load("h200"), load("a100-booster")
    assert h200.peer_peak_gbs(0, 7) == 450
    assert h200.peer_peak_gbs(0, 7, "copy-engine") == 450
    assert load("b200").peer_peak_gbs(0, 7) == 900
    assert h200.link_class(0, 7).name == "switch18"
    assert h200.domains[0].memory_peak_gbs is None
    assert (h200.copy_engine.peak_gbs, h200.copy_engine.count) == (None, None)
    assert a100.peer_peak_gbs(0, 3) == 100
    assert classes(a100) == {"links4": {"0-1", "0-2", "0-3", "1-2", "1-3", "2-3"}}


def test_mi300_nodes_have_all_pairs_joined_and_no_published_copy_is_beyond_its_peak():
    records = {one["id"]: one for one in read(published_file())["records"]}
    mi300x, mi300a = load("mi300x"), load("mi300a")
    assert {name: len(pairs) for name, pairs in classes(mi300x).items()} == {"links1": 28}
    assert {name: len(pairs) for name, pairs in classes(mi300a).items()} == {"links2": 6}
    assert mi300x.peer_peak_gbs(0, 7) == records["stas-mi300x-link"]["value"]
    for node, names in ((mi300x, "rocmdocs-mi300x-uni-0"), (mi300a, "rocmdocs-mi300a-uni-0")):
        between = [records[f"{names}{n}"]["value"] for n in range(1, len(node.devices))]
        assert all(0.7 < value / node.peer_peak_gbs(0, 1) < 1 for value in between)
    assert records["rocmdocs-mi300x-h2d"]["value"] < mi300x.device(0).host_link_gbs
    # KFD's engines for the host and for links, two and fourteen or ten.
    assert (mi300x.copy_engine.count, mi300a.copy_engine.count) == (16, 12)
    for node in (mi300x, mi300a):
        assert node.facts["domains"].kind == "derived"
        assert all(device.near_cores for device in node.devices)


def test_the_peaks_that_jsc_states_parts_of():
    node = load("a100-jureca")
    assert classes(node) == {"links4": {"0-1", "0-2", "0-3", "1-2", "1-3", "2-3"}}
    # 87 GiB/s are 93 % of a pair's peak, 1.35 TB/s 87 % of the memory's (records jsc-a100-*).
    assert 87 * 1.073741824 / node.peer_peak_gbs(0, 3) == pytest.approx(0.93, abs=0.005)
    assert 1350 / node.devices[0].memory_peak_gbs == pytest.approx(0.87, abs=0.005)


def test_devices_of_jureca_hang_on_every_other_of_eight_numa_domains():
    node = load("a100-jureca")
    assert [device.domain for device in node.devices] == [3, 1, 7, 5]
    found = placements(node)
    assert set(found) == {"right", "in_order", "far", "spread", "shared_domain", "shared_device"}
    assert found["right"].map_cpu == "48,16,112,80"
    assert not any(found["far"].local)


def test_mi210_has_links_within_pairs_only():
    node = load("mi210")
    assert classes(node)["links1"] == QUADS
    assert set(classes(node)) == {"links1", "pcie"}
    assert node.peer_peak_gbs(2, 3) == 50
    assert node.best_subsets(2) == ((0, 1), (2, 3), (4, 5), (6, 7))
    # The page measured 1.7 times PCIe: near the ratio of the peaks of one link, not of two.
    assert 1.5 < node.peer_peak_gbs(0, 1) / node.device(0).host_link_gbs < 1.7
    # Between the pairs the data takes the host links.
    assert node.peer_peak_gbs(1, 2) == node.device(1).host_link_gbs


def test_only_mi300a_has_one_memory_for_its_cores_and_devices():
    assert {name for name in NODES if load(name).shares_memory} == {"mi300a"}


def test_cores_near_the_devices_of_lumi_g(mi250x):
    """Those of the masks of LUMI's user guide: 0xfe000000000000, 0xfe00000000000000 and so on."""
    first = (49, 57, 17, 25, 1, 9, 33, 41)
    assert [one.near_cores for one in mi250x.devices] == [tuple(range(a, a + 7)) for a in first]


@pytest.mark.parametrize("name", NODES)
def test_each_device_has_cores_of_its_own_near_it(name):
    node = load(name)
    masks = [int(mask, 16) for mask in near_masks(node)]
    assert len(masks) == len(node.devices)
    for device, mask in zip(node.devices, masks, strict=True):
        assert mask and not mask & ~sum(1 << core for core in device.near_cores)
    assert sum(masks) == functools.reduce(operator.or_, masks)


def test_placements_of_the_epicure_case_study_on_lumi_g(mi250x):
    found = placements(mi250x)
    assert found["right"].map_cpu == "49,57,17,25,1,9,33,41"
    assert all(found["right"].local)
    assert found["in_order"].map_cpu == "1,9,17,25,33,41,49,57"
    assert found["half_right"].devices == (0, 2, 4, 6)
    assert found["half_right"].map_cpu == "49,17,1,33"
    assert found["half_rotated"].map_cpu == "1,33,49,17"
    assert not any(found["half_rotated"].local)
    assert set(found["shared_domain"].cores) <= set(range(48, 64))
    assert "far" not in found
    assert found["shared_device"].devices == (0, 0)
    assert found["shared_device"].map_cpu == "49,50"


def test_placements_on_leonardo_have_a_domain_without_devices():
    found = placements(load("a100-booster"))
    assert set(found) == {"right", "far", "spread", "shared_device"}
    assert found["far"].map_cpu == "16,17,18,19"
    assert found["spread"].local == (True, True, False, False)


def test_a_core_that_no_domain_has(mi250x):
    with pytest.raises(UsageError, match="mi250x has no core 64"):
        domain_of_core(mi250x, 64)


def test_one_numa_domain_leaves_no_wrong_placement():
    assert set(placements(load("h200"))) == {"right", "shared_device"}


def test_best_subsets_are_those_of_the_hugging_face_page(mi250x):
    assert named(mi250x.best_subsets(2)) == QUADS
    assert mi250x.best_subsets(3)[0] == (0, 1, 6)
    assert mi250x.best_subsets(4) == ((0, 1, 6, 7), (2, 3, 4, 5))
    assert mi250x.best_subsets(8) == (tuple(range(8)),)
    assert load("mi250").best_subsets(3)[0] == (0, 1, 4)


def test_sets_for_collectives_grow_by_one_device_and_are_the_papers(mi250x):
    sets = mi250x.growing_subsets
    # As osu_collectives.sh lists them, in its order of devices; its list of eight is faulty.
    papers = ("01", "016", "0167", "01672", "016723", "0167234", "01234567")
    assert [set(one) for one in sets] == [set(map(int, text)) for text in papers]
    assert all(one in mi250x.best_subsets(len(one)) for one in sets)
    assert load("a100-booster").growing_subsets == ((0, 1), (0, 1, 2), (0, 1, 2, 3))


def test_device_sets_of_e5(mi250x):
    assert mi250x.device_sets() == {
        "one": (0,),
        "two_one_package": (0, 1),
        "two_spread": (0, 4),
        "four_spread": (0, 2, 4, 6),
        "all": tuple(range(8)),
    }
    assert load("a100-booster").device_sets() == {
        "one": (0,),
        "two_spread": (0, 2),
        "four_spread": (0, 1, 2, 3),
    }


def test_the_domain_map_of_lumi_g(mi250x):
    assert [device.domain for device in mi250x.devices] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert mi250x.packages == ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize("k", [0, 9])
def test_impossible_subset_sizes_are_refused(mi250x, k):
    with pytest.raises(UsageError, match=f"mi250x has 8 devices; {k} cannot be chosen"):
        mi250x.best_subsets(k)


def test_unknown_devices_and_models_are_named(mi250x, tmp_path):
    with pytest.raises(UsageError, match="mi250x has no device 8"):
        mi250x.link_class(0, 8)
    with pytest.raises(UsageError, match="3-3 is not a pair"):
        mi250x.widest_path(3, 3)
    with pytest.raises(NotFoundError, match=r"no node model 'mi400'.*mi250x"):
        load("mi400")
    with pytest.raises(NotFoundError, match=r"gone\.yaml: there is no such file"):
        load(str(tmp_path / "gone.yaml"))


def test_models_are_found_outside_the_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load("mi250x").name == "mi250x"
    (tmp_path / "config" / "nodes").mkdir(parents=True)
    assert node_directory() == Path.cwd() / "config" / "nodes"
    with pytest.raises(NotFoundError, match="which has: none"):
        load("mi250x")


def test_no_folder_of_node_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fabricheck.core.checkout.ROOT", tmp_path / "a")
    with pytest.raises(NotFoundError, match="no folder config/nodes"):
        node_directory()
