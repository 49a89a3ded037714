"""What an acceptance rests on: judged values of the GPUs that a node has or should have."""

import pytest

import factories
from fabricheck.report import contents
from fabricheck.results import reading
from session_builder import (
    PARTITION,
    SessionBuilder,
    good_case,
    judge,
    kept_on_gpus,
    missed,
    rules,
)

MEMORY, HOST_LINKS, PAIRS = "memory of its GPUs", "their host links", "the pairs of GPUs"


def gpus(number=2, **changes):
    """Build a document of some H200 whose series are of no experiment of the cases."""
    return factories.on_h200(number, series=[factories.series() | {"experiment": "E5"}], **changes)


def session(folder, *cases, number=2):
    """Judge a node with GPUs by its cases."""
    every = [(good_case(f"check_{place}") | case, gpus(number)) for place, case in enumerate(cases)]
    found = SessionBuilder(folder).each(every).verdict()
    return found


@pytest.mark.parametrize(
    ("experiments", "lacking"),
    [
        (("E15",), [MEMORY, HOST_LINKS, PAIRS]),
        (("E1",), [HOST_LINKS, PAIRS]),
        (("E1", "E2"), [PAIRS]),
        (("E2", "E7"), [MEMORY]),
        (("E1", "E2", "E8"), []),
    ],
)
def test_a_part_of_the_gpus_that_nothing_judged_is_named(tmp_path, experiments, lacking):
    found = session(tmp_path, kept_on_gpus(*experiments))
    if not lacking:
        assert (found.status, found.accepted, found.gpus) == ("PASS", True, "measured")
        return
    assert (found.status, rules(found)) == ("INCOMPLETE", {"nothing-judged"})
    assert not found.accepted
    sentence = found.reasons[0].sentence
    named = [part for part in (MEMORY, HOST_LINKS, PAIRS) if part in sentence]
    assert named == lacking


def test_a_node_that_missed_a_limit_is_not_accepted_though_all_was_judged(tmp_path):
    found = session(tmp_path, kept_on_gpus("E1", "E2", "E8"), missed())
    assert (found.status, found.accepted, found.gpus) == ("PERF-FAIL", False, "measured")


def test_a_value_without_a_limit_judges_nothing(tmp_path):
    values = {f"{PARTITION}:copy_worst": factories.judged(10.0, 0, None, None)}
    found = session(tmp_path, kept_on_gpus() | {"perfvalues": values})
    assert rules(found) == {"nothing-judged"}


def test_one_device_has_no_pairs(tmp_path):
    assert session(tmp_path, kept_on_gpus("E1", "E2"), number=1).accepted


def test_pairs_whose_checks_skip_themselves_are_none(tmp_path):
    skipped = kept_on_gpus("E7") | {"result": "skip"}
    assert session(tmp_path, kept_on_gpus("E1", "E2"), skipped).accepted


def test_a_set_that_lacks_them_by_definition_needs_none(tmp_path):
    results = (
        SessionBuilder(tmp_path, command="reframe -r --mode=network")
        .check("network_bandwidth", document=gpus(), **kept_on_gpus("E17"))
        .write()
    )
    factories.recorded_checks(results / "output", PARTITION, network_bandwidth="E17 network")
    assert judge(results)["node1"].status == "PASS"


def test_a_failed_node_has_the_reasons_of_its_failure_alone(tmp_path):
    found = session(tmp_path, missed())
    assert rules(found) == {"reference"}


ALLOCATED = {"environment": {"SLURM_GPUS_PER_NODE": "h100:8"}}
SHOWN = {"state": factories.state() | {"before": factories.snapshot(
    pci_functions=[factories.pci_function(0x41)])}}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [ALLOCATED, {"environment": {"SLURM_GPUS_ON_NODE": "1"}}, SHOWN],
    ids=["allocated", "one allocated", "shown by PCI"],
)
def test_gpus_that_should_be_there_and_were_not_measured(tmp_path, changes, wording):
    found = SessionBuilder(tmp_path).check(document=factories.document(**changes)).verdict()
    assert (found.status, rules(found)) == ("INCOMPLETE", {"nothing-judged"})
    assert (found.gpus, found.accepted) == ("not-measured", False)
    wording(found.reasons[0].sentence)


@pytest.mark.parametrize("granted", ["0", "", "none"])
def test_a_host_without_gpus_passes_and_is_not_accepted(tmp_path, granted, wording):
    document = factories.document(environment={"SLURM_GPUS_ON_NODE": granted})
    found = SessionBuilder(tmp_path).passed(document=document).verdict()
    assert (found.status, found.gpus, found.accepted) == ("PASS", "none", False)
    wording(found.caveats)


def test_a_demonstration_says_first_that_it_accepts_nothing(command, results_folder, wording):
    """The memory of this machine and a simulated node, as `make run` measures without GPUs."""
    SessionBuilder(results_folder).passed(
        node=None, document=factories.simulated_document(), system="local", partition="sim-mi250x"
    ).passed("stream_host", None, system="local", partition="host").write()
    for line in ("summary", "verdict"):
        done = command(line)
        lines = done.output.splitlines()
        wording(lines[0])
        assert "Accept" not in done.output
        assert done.output.index("measured") < done.output.index("simulated")


@pytest.mark.parametrize(
    ("document", "badge"), [(factories.document(), "demonstration"), (gpus(), "pass")]
)
def test_the_badge_is_green_only_where_a_node_is_accepted(results_folder, document, badge):
    SessionBuilder(results_folder).check(document=document, **kept_on_gpus()).write()
    assert contents.page_contents(reading.read()).badge == badge


def test_a_machine_stands_above_a_simulated_node_that_failed(command, results_folder):
    model = {"system": "a", "partition": "model"}
    SessionBuilder(results_folder).missed(
        check="slow", node=None, document=factories.simulated_document(), **model
    ).check(document=gpus(), **kept_on_gpus()).write()
    for line in ("summary", "verdict"):
        text = command(line, code=None).output
        assert text.index(" measured") < text.index(" simulated"), text
    lines = command("verdict", code=None).output.splitlines()
    assert lines[0].endswith(": 1 PASS, 1 PERF-FAIL (simulated)")
    assert lines.index("PASS (1): node1") < lines.index("PERF-FAIL, simulated (1): node1")
    found = contents.page_contents(reading.read())
    assert [part.observed.simulated for part in found.parts] == [False, True]


def test_where_nothing_is_to_explain_the_machine_stands_above_a_simulated_node(
    command, results_folder
):
    SessionBuilder(results_folder).passed(
        node=None, document=factories.simulated_document(), system="local", partition="sim-mi250x"
    ).passed("stream_host", None, system="local", partition="host").write()
    named = [line for line in command("diagnose").output.splitlines() if line.endswith("PASS")]
    assert [line.partition(":")[2] for line in named] == [" provisional PASS", " PASS"]


def test_one_node_with_gpus_is_no_demonstration(command, results_folder):
    SessionBuilder(results_folder).check(document=gpus(), **kept_on_gpus()).write()
    done = command("summary")
    assert done.output.startswith("Summary of ")
    assert "Accept node1: nothing failed." in done.output
