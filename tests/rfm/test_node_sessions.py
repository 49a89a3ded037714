"""Sessions on the simulated node: its topology (E13) and its best devices (E14)."""

from __future__ import annotations

from itertools import permutations

import pytest
from stand_ins import findings_figure

import factories
import inventories
from fabricheck.node import load, node_directory
from fabricheck.results.document import load as load_document
from fabricheck.rfm.findings import TopologyCheck
from fabricheck.rfm.metrics import MetricError, where_measured
from fabricheck.rfm.pairs import BestSet

SELECTED = ("-r", "-n", "node_topology", "-n", "best_devices")
PARTITION = "local:sim-mi250x"
NODE = load("mi250x")
ON_NODE = "of node mi250x (simulated)"


def pairs(slow=()):
    """Build a series of each ordered pair: 3/4 of its peak, some of them at half of that."""
    found = []
    for a, b in permutations(range(8), 2):
        value = NODE.peer_peak_gbs(a, b) * (0.375 if {a, b} in map(set, slow) else 0.75)
        ends = {"source": factories.place(device=a), "destination": factories.place("peer", b)}
        series = factories.series([value], operation="write", device=a, device_set=[a, b], **ends)
        found.append(series)
    return factories.simulated_document(series=found)


def best(k):
    among = tuple((list(pair),) for pair in permutations(range(8), 2))
    where = {"operation": "write"}
    return BestSet("best", where, ("device_set",), unit="%", among=among, node=NODE, k=k)


def test_the_predicted_set_is_the_best_measured():
    for k in (2, 3, 4):
        figure = best(k).figure(pairs(), {})
        assert figure.value == 100.0
        # All of them are compared with physics.
        assert len(figure.series) == 56


def test_a_slow_pair_decides():
    document = pairs(slow=[(0, 1)])
    figure = best(2).figure(document, {})
    assert figure.value == pytest.approx(50)
    assert where_measured(document, figure.decisive) == "pair 0-1, devices 0 and 1 of node node1"
    assert figure.compared == (
        "75.0 of 200 GB/s, the lowest share of its peak among devices 0,1, predicted as the best "
        "2; with 75.0 GB/s on average between two they have 50.0 % of devices 2,3"
    )


def test_a_pair_that_is_missing_or_in_another_unit_is_no_metric():
    document = pairs()
    document["series"][9]["unit"] = "us"
    with pytest.raises(MetricError, match=r"declared in GB/s, but pair 1-3, .* reported us"):
        best(3).figure(document, {})
    del document["series"][9]
    with pytest.raises(MetricError, match=r"no series for operation write, device_set \[1, 3\]"):
        best(3).figure(document, {})


def test_differences_are_counted():
    document = factories.simulated_document(series=[], differences=["one.", "two."])
    figure = findings_figure(TopologyCheck, document)
    assert (figure.value, figure.series) == (2, ())
    assert where_measured(document, figure.decisive) == "node node1"
    for nothing in ({}, {"differences": None}):
        with pytest.raises(MetricError, match="node node1 was not compared with a node model"):
            findings_figure(TopologyCheck, factories.simulated_document(**nothing))


@pytest.fixture
def simulated(suite, root):
    """The suite on the simulated node, whose programs are the real ones."""
    if not (root / "build" / "sim" / "bin" / "p2p").is_file():
        pytest.fail("There is no build/sim/bin/p2p: build it with 'make build'.")
    suite.topics = ("best_devices", "topology")
    suite.variables["RFM_SYSTEM"] = PARTITION
    return suite


@pytest.fixture
def root():
    return node_directory().parents[1]


def values(suite) -> dict[str, float]:
    cases = suite.report()["runs"][0]["testcases"]
    found = {key: value[0] for case in cases for key, value in case["perfvalues"].items()}
    return {key.removeprefix(f"{PARTITION}:"): value for key, value in found.items()}


@pytest.mark.slow
def test_a_healthy_node_passes(simulated):
    outcome = simulated(*SELECTED)
    assert outcome.status == 0
    assert values(simulated) == {
        "differences": 0.0,
        "best_2_of_measured": 100.0,
        "best_3_of_measured": 100.0,
        "best_4_of_measured": 100.0,
    }
    folder = simulated.results / "output"
    (document,) = map(load_document, folder.glob("*/local/*/*/node_topology/result.json"))
    assert document["differences"] == [] and document["clock"] == "simulated"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overlay", "checks", "differences", "sentences"),
    [
        (
            "link-0-6-gone",
            SELECTED,
            1,
            (
                "Node mi250x (simulated) differs from its node model mi250x (differences: 1).",
                "Node mi250x (simulated): Pair 0-6: 2 links in mi250x, no direct link in the "
                "simulated node with the overlay 'link 0-6 gone'.",
                "among devices 0,1,6, predicted as the best 3; with",
                f"pair 0-6, devices 0 (0000:c1:00.0) and 6 {ON_NODE} measured",
                "% of devices 2,3,4; at least 95 % is required.",
            ),
        ),
        (
            "numa-map-rotated",
            SELECTED[:3],
            8,
            ("Node mi250x (simulated): Device 7: NUMA domain 2 in mi250x, 3 in the simulated",),
        ),
        (
            "cable-map-swapped",
            SELECTED[:3],
            4,
            ("Node mi250x (simulated): Pair 0-4: no direct link in mi250x, 1 link in the",),
        ),
        (
            "link-0-1-half-width",
            SELECTED,
            0,
            (
                "among devices 0,1, predicted as the best 2; with",
                f"pair 0-1, devices 0 (0000:c1:00.0) and 1 {ON_NODE}",
            ),
        ),
    ],
)
def test_a_broken_node_fails_by_name(simulated, overlay, checks, differences, sentences):
    file = node_directory() / "overlays" / f"{overlay}.yaml"
    outcome = simulated(*checks, "-S", f"overlay={file.resolve()}")
    assert outcome.status == 1
    for sentence in sentences:
        assert sentence in outcome
    # What was found reaches the report also where it fails the check.
    assert values(simulated)["differences"] == differences


@pytest.mark.slow
def test_more_differences_than_fit_are_counted(simulated, tmp_path):
    overlay = tmp_path / "worse.yaml"
    overlay.write_text(
        "name: worse\ndescription: Much is wrong.\nrotate_numa: 1\n"
        "links:\n  - {pair: [0, 6], gone: true}\n"
    )
    outcome = simulated("-r", "-n", "node_topology", "-S", f"overlay={overlay}")
    assert outcome.status == 1
    assert "(differences: 9)." in outcome and "And 1 more." in outcome


@pytest.mark.slow
def test_the_drivers_of_a_real_node_are_asked(simulated, tmp_path):
    """The simulated partition, made a real one, whose drivers tell of a node of Frontier."""
    simulated.own_settings("local.py", '"sim", "local",', '"rocm", "local",')
    programs = tmp_path / "programs"
    simulated.variables["FABRICHECK_ROCM_PROGRAMS"] = str(programs)

    def ended(told, status, **ends):
        inventories.programs(programs, told, **ends)
        outcome = simulated("-r", "-n", "node_topology")
        assert outcome.status == status, outcome
        place = "output" if status == 0 else "stage"
        found = sorted(simulated.results.glob(f"{place}/*/local/*/*/node_topology/result.json"))
        return outcome, load_document(found[-1])

    whole = inventories.kept("mi250x")
    _, document = ended(whole, 0)
    assert (document["clock"], document["program"]["runtime"]) == ("measured", "rocm")
    outcome, document = ended(inventories.kept("mi250x-device-off-the-bus"), 1)
    first, second = factories.difference_sentences(document, lost=True)
    for sentence in (first, second):
        assert f"Node node1: {sentence}" in outcome
    assert ", and had 8 in session 2" in second
    outcome, _ = ended(whole, 1, code=4, says="inventory: no memory")
    assert "topology ended with exit code 10 (another program that it ran failed)" in outcome
    assert "failed: no memory." in outcome
    (programs / "inventory").unlink()
    outcome = simulated("-r", "-n", "node_topology")
    missing = f"There is no program {programs}/inventory for environment sim: build it with "
    assert outcome.status == 1 and missing in outcome
