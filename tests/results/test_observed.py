"""What a session has of each partition."""

from pathlib import Path

import pytest

import check_rows
import factories
from fabricheck.core.checkout import ROOT
from fabricheck.results.entry import Entry, read_entry
from fabricheck.results.folder import ResultsFolder, find_documents
from fabricheck.results.observed import node_of, observe
from fabricheck.results.reading import of_session
from fabricheck.results.rows import curve, largest, select
from session_builder import SessionBuilder

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"


def observed(*documents):
    (found,) = observe(check_rows.checks(*documents))
    return found


def topology(node, devices=None):
    program = factories.document()["program"] | {"name": "topology"}
    options = {"node": node, "devices": devices}
    return factories.document(program=program, series=[], options=options)


def test_a_recorded_session_is_one_partition_with_its_part_of_the_node():
    folder = ResultsFolder(RECORDED)
    session = folder.latest()
    (found,) = of_session(folder, session).observed
    assert (found.where, found.clock, found.runtimes) == ("h200:x2", "measured", {"cuda"})
    assert found.node is not None
    assert (found.node.name, len(found.node.devices)) == ("h200 (2 of 8 devices)", 2)
    assert len(found.cases) == 27
    writes = found.select(check="p2p_kernel", operation="write")
    assert {point.pair for point in writes} == {(0, 1), (1, 0)}
    assert all(point.value > 300 and point.interval for point in writes)


def test_the_partitions_of_a_session_are_told_apart(results_folder):
    session = SessionBuilder(results_folder).add(factories.case(), factories.document())
    other = factories.case("other", partition="sim-mi250x")
    session.add(other, factories.simulated_document()).write()
    folder = ResultsFolder(results_folder)
    host, sim = of_session(folder, folder.latest()).observed
    assert host.apart == sim.apart == ""
    assert (host.where, host.clock, host.node) == ("local:host", "measured", None)
    assert (sim.where, sim.clock, len(sim.points)) == ("local:sim-mi250x", "simulated", 1)
    assert sim.node is not None and sim.node.name == "mi250x"


def test_a_case_without_a_document_stays_a_case(results_folder):
    SessionBuilder(results_folder).add(
        factories.case(result="fail", fail_reason="no program")
    ).write()
    folder = ResultsFolder(results_folder)
    (found,) = of_session(folder, folder.latest()).observed
    assert (len(found.cases), found.documents, found.points) == (1, (), ())
    assert found.entries[0].problem is not None


@pytest.mark.parametrize(
    "wrong",
    [
        factories.document(series=[factories.series(verification=factories.mismatched())]),
        factories.document(faults_injected=["flip-bit:4096:3"]),
    ],
)
def test_wrong_data_and_faults_made_on_purpose_are_no_points(wrong):
    assert observed(wrong).points == ()
    assert observed(wrong, factories.document()).points[0].value == 10.05


def test_the_host_end_of_a_copy_tells_memory_and_domain():
    series = [
        factories.host_copy("d2h", device=3, domain=2, memory="host-pageable"),
        *factories.pair_series()[:1],
    ]
    back, peer = observed(factories.document(series=series)).points
    assert (back.host_memory, back.host_domain) == ("host-pageable", 2)
    assert (back.device, back.pair) == (3, None)
    assert (peer.host_memory, peer.host_domain, peer.pair) == (None, None, (0, 1))


def test_engines_are_off_only_where_the_environment_says_so():
    on, off, unset = (
        observed(factories.document(environment=environment)).points[0].by_engines
        for environment in ({"HSA_ENABLE_SDMA": "1"}, {"HSA_ENABLE_SDMA": "0"}, {})
    )
    assert (on, off, unset) == (True, False, True)


def test_points_are_chosen_by_value_or_by_set_and_ordered_by_size():
    sizes = [4096, 1024, 4096, 2048]
    series = [
        factories.series([float(index)], bytes=size, block_size=64 * (1 + index % 2))
        for index, size in enumerate(sizes, 1)
    ]
    points = observed(factories.document(series=series)).points
    assert [point.bytes for point in curve(points)] == [1024, 2048, 4096]
    assert [point.value for point in select(points, bytes={4096}, block_size=64 * 2)] == [1.0, 3.0]
    assert {
        block: (point.bytes, point.value)
        for block, point in largest(points, lambda point: point.block_size).items()
    } == {128: (4096, 1.0), 64: (2048, 4.0)}


def test_the_node_is_that_of_the_documents_before_that_of_the_site():
    assert node_of("local:host", []) is None
    assert node_of("h200:x4", []) is not None and len(node_of("h200:x4", []).devices) == 4
    stated = node_of("h200:x4", [topology("h200", 2)])
    assert stated is not None and len(stated.devices) == 2
    overlaid = factories.simulated_document()
    assert node_of("h200:x4", [overlaid]).name == "mi250x"


def test_a_node_model_that_is_not_there_any_more_is_none():
    assert node_of("", [topology("a-node-of-another-version")]) is None
    assert node_of("", [topology("h200", 9)]) is None


def test_the_documents_of_a_folder_need_no_session():
    documents = find_documents(RECORDED)[:2]
    (found,) = observe(check_rows.checks(*map(read_entry, documents)))
    assert found.where == "" and len(found.documents) == 2


def test_documents_outside_of_a_session_stand_together_only_where_they_are_alike():
    node = {"name": "mi250x", "digest": "0" * 64, "overlay": {"name": "slow", "content": {}}}
    real, twin = factories.document(), factories.simulated_document()
    slow = factories.simulated_document(node=node)
    cuda = factories.document(program=real["program"] | {"runtime": "cuda"})
    broken = Entry(None, None, None, None)
    found = observe(check_rows.checks(broken, real, twin, slow, cuda, real))
    assert [[one.document for one in part.entries] for part in found] == [
        [None, real, real],
        [twin],
        [slow],
        [cuda],
    ]
    assert [part.clock for part in found] == ["measured", "simulated", "simulated", "measured"]
    assert [part.overlay for part in found] == [None, None, "slow", None]
    assert [part.apart for part in found] == [
        f"measured, {real['program']['runtime']}",
        "simulated, sim, mi250x",
        "simulated, sim, mi250x, slow",
        "measured, cuda",
    ]


def test_a_partition_with_both_measured_and_simulated_documents_is_two(results_folder):
    session = SessionBuilder(results_folder)
    session.add(factories.case("measured"), factories.document())
    session.add(factories.case("twin"), factories.simulated_document())
    session.add(factories.case("lost")).write()
    folder = ResultsFolder(results_folder)
    found = of_session(folder, folder.latest()).observed
    assert [(part.where, part.clock) for part in found] == [
        ("local:host", "measured"),
        ("local:host", "simulated"),
    ]
    assert [part.apart for part in found] == ["measured", "simulated"]
    assert [[case.name for case in part.cases] for part in found] == [
        ["measured", "lost"],
        ["twin"],
    ]


def test_nothing_but_a_document_that_can_not_be_read_is_a_partition_without_points():
    (found,) = observe(check_rows.checks(Entry(None, None, None, None)))
    assert (found.documents, found.points, len(found.entries)) == ((), (), 1)


def test_points_of_one_or_of_several_experiments_are_in_the_order_of_the_series():
    series = [
        factories.series([float(index)], experiment=f"E{1 + index % 3}") for index in range(1, 7)
    ]
    found = observed(factories.document(series=series))
    assert [point.value for point in found.select(experiment="E2")] == [1.0, 4.0]
    assert [point.value for point in found.select(experiment={"E2", "E3"})] == [1.0, 2.0, 4.0, 5.0]
    assert found.select(experiment="E9") == [] and len(found.select(role="single")) == 6


def test_moved_results_bring_the_model_of_their_node(results_folder):
    """A draft of local:gpu is in the results folder; documents have its path when it was made."""
    environment = {"FABRICHECK_NODE": "/elsewhere/results/nodes/vm.yaml"}
    document = factories.document(environment=environment)
    SessionBuilder(results_folder).add(factories.case(partition="gpu"), document).write()

    def node():
        folder = ResultsFolder(results_folder)
        (found,) = of_session(folder, folder.latest()).observed
        return found.node

    assert node() is None
    model = (ROOT / "config" / "nodes" / "mi210.yaml").read_text()
    (results_folder / "nodes").mkdir()
    (results_folder / "nodes" / "vm.yaml").write_text(model.replace("name: mi210", "name: vm"))
    assert node().name == "vm"
