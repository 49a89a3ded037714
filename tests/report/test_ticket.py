"""What a node is stands above its results, and the text for a ticket has that and what is wrong."""

from pathlib import Path

import pytest

from fabricheck.judge.diagnosis.model import Component, Degraded, Diagnosis
from fabricheck.judge.verdict.judging import judge
from fabricheck.report import findings
from fabricheck.report.identity import identity
from fabricheck.report.ticket import ticket
from fabricheck.results import reading
from session_builder import HOST, SessionBuilder

OUTPUTS = Path(__file__).parents[1] / "outputs"


def part_of(what="latest"):
    results = reading.read([str(what)])
    observed = results.observed[0]
    return findings.Partition(observed, findings.partition_verdict(judge(results), observed))


def facts_of(part):
    return [(fact.name, fact.value) for fact in identity(part.verdict, part.observed.node)]


@pytest.fixture
def slow(results_folder):
    """A session whose only check missed a limit, and whose node is no node of a GPU."""
    session = SessionBuilder(results_folder, where=HOST, command=None)
    return session.missed("copy_worst", 8.0, least=9.0).write()


def test_each_gpu_is_there_with_its_address_and_id():
    assert facts_of(part_of(OUTPUTS / "h200" / "session-x2")) == [
        ("node", "vm"),
        ("GPUs", "2 NVIDIA H200 (sm_90)"),
        ("driver", "580.159.04"),
        ("CUDA", "13.0"),
        ("kernel", "Linux 6.18.44-fc-v657-gpu"),
        ("device 0", "PCI 0000:00:06.0, GPU-2e87df46-e478-3c60-867e-6f67e03ac428"),
        ("device 1", "PCI 0000:00:07.0, GPU-65d87236-89f6-a00e-809b-d1bb67c1a29d"),
    ]


def test_a_simulated_node_has_its_own_gpus_alone_and_no_driver():
    part = part_of(OUTPUTS / "simulated-mi250x")
    # A check that simulates several nodes counts on.
    more = [part.verdict.devices[0].model_copy(update={"index": index}) for index in range(8, 16)]
    verdict = part.verdict.model_copy(update={"devices": [*part.verdict.devices, *more]})
    facts = {fact.name: fact.value for fact in identity(verdict, part.observed.node)}
    assert facts["GPUs"].startswith("8 ")
    assert not {"driver", "kernel", "CUDA", "HIP", "device 8"} & facts.keys()


def test_what_is_not_known_is_left_out(slow):
    assert all(value for _, value in facts_of(part_of()))
    assert not [name for name, _ in facts_of(part_of()) if name in ("GPUs", "driver", "device 0")]


def test_a_missed_limit_is_in_the_ticket_with_its_place_and_how_to_see_it_again(slow):
    lines = ticket(part_of()).splitlines()
    assert lines[0].endswith("PERF-FAIL: node1") and "node: node1" in lines
    missed = [line for line in lines if line.startswith("  stream_local copy_worst: 8 GB/s")]
    assert len(missed) == 1 and missed[0].endswith("at least 9 required; device 0 of node node1")
    command = "  reframe --system=local:host -c reframe_checks -r -n '^stream_local$'"
    assert lines[lines.index(command) + 1 :] == ["  fabricheck verdict run-0",
                                                "  fabricheck diagnose run-0"]  # fmt: skip


def test_a_degraded_component_is_in_the_ticket_with_its_equals(slow):
    part = part_of()
    link = Component(kind="link", ids=(0, 6))
    found = Degraded(
        component=link, equals=[Component(kind="device", ids=(6,))], loss_percent=50.0,
        devices=[0, 6], explains=2, odds=6.3,
    )  # fmt: skip
    diagnosis = Diagnosis(misses=4, explained=2, degraded=[found], unexplained=[])
    verdict = part.verdict.model_copy(update={"diagnosis": diagnosis})
    lines = ticket(findings.Partition(part.observed, verdict)).splitlines()
    assert lines[1] == diagnosis.sentence
    at = lines.index("Degraded:")
    assert lines[at + 1].startswith("  link 0-6, down by 50 %: explains 2 of 4")
    assert lines[at + 2].endswith("device 6")


def test_text_of_others_makes_no_line_in_the_ticket(slow):
    part = part_of()
    odd = part.verdict.model_copy(update={"node": "node1\nPASS: node1"})
    lines = ticket(findings.Partition(part.observed, odd)).splitlines()
    assert not [line for line in lines if line.startswith("PASS")]


def test_a_node_that_passed_has_none(two_partitions):
    part = part_of()
    assert part.verdict.status == "PASS" and ticket(part) == ""
