"""How long a check will take, beside the seconds of every check that was recorded on H200.

Sessions: all of reports-*, and session-x2, whose plans of other tools' launches stand for those of
the same checks in reports-x2. A prediction is made from the command line that ran, so older
versions of a check count as what they were.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from fabricheck.node import load
from fabricheck.rfm import predictions
from fabricheck.tools.benchmarks import Launch

H200 = Path(__file__).resolve().parents[1] / "outputs" / "h200"
NODE = load("h200")
MI250X = load("mi250x")

#: Predicted over recorded, and the other way round. Where recorded sessions of one check differ by
#: more among themselves, their median counts.
FACTOR = 1.5

PLANS = {
    file.parent.name: [Launch(**one) for one in json.loads(file.read_text())["launches"]]
    for file in (H200 / "session-x2" / "output").rglob("plan.json")
}


def recorded() -> dict[tuple[str, str, str], list[float]]:
    """Return the seconds of each check, partition and command line."""
    found = defaultdict(list)
    for file in (*H200.glob("reports-*/*.json"), H200 / "session-x2" / "reports" / "run-0.json"):
        for case in json.loads(file.read_text())["runs"][-1]["testcases"]:
            if case["result"] != "skip":
                command = " ".join([Path(case["executable"]).name, *case["executable_opts"]])
                found[case["name"], case["partition"], command].append(case["time_run"])
    return found


RECORDED = recorded()


def predicted(check: str, partition: str, command: str) -> float:
    node = NODE.part(int(partition.removeprefix("x")))
    program, *arguments = command.split()
    if arguments[:2] == ["tools", "run"]:
        return predictions.of_launches(PLANS[check], node)
    return predictions.of_program(
        arguments[0] if program == "fabricheck" else program, arguments, node
    )


def test_the_recorded_sessions_have_all_checks():
    assert {partition for _, partition, _ in RECORDED} == {"x1", "x2", "x4"}
    assert len({check for check, _, _ in RECORDED}) == 29
    assert sum(map(len, RECORDED.values())) > 250


@pytest.mark.parametrize("key", RECORDED, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_prediction_is_near_what_was_recorded(key):
    seconds = RECORDED[key]
    if max(seconds) > FACTOR * min(seconds):
        seconds = [statistics.median(seconds)]
    assert max(seconds) / FACTOR <= predicted(*key) <= min(seconds) * FACTOR


def test_a_start_of_mpi_is_stated_for_a_launch_and_for_each_rank():
    timing = NODE.timing
    start = timing.mpi_s.value + 3 * timing.rank_s.value
    assert predictions.of_program("affinity", ["--map", "0,1,2"], NODE) == pytest.approx(start)


def test_bytes_are_moved_poisoned_and_compared_and_memory_is_pinned():
    timing = MI250X.timing
    arguments = "--devices 0 --memory pinned --operations d2h --sizes 1GiB --series-time 0.5"
    took = predictions.of_program("memcpy", arguments.split(), MI250X)
    starts = timing.launch_s.value + 8 * timing.device_s.value + predictions.WARM_UP_S
    pinned = 2 * (1 << 30) / (1e9 * timing.pin_gbs.value)
    # One to find the batch and seven samples, each poisoned before, and the last compared.
    once = (1 << 30) / (1e9 * timing.part_of_peak.value * MI250X.host_peak_gbs(0))
    assert took == pytest.approx(starts + pinned + 17 * once, rel=0.001)


def test_memory_that_is_not_coherent_is_copied_as_pinned_memory_and_compared_by_the_processor():
    def of(memory: str) -> float:
        arguments = f"--devices 0 --memory {memory} --operations d2h --sizes 1GiB --series-time 0.5"
        return predictions.of_program("memcpy", arguments.split(), MI250X)

    timing = MI250X.timing
    linked = timing.part_of_peak.value * MI250X.host_peak_gbs(0)
    by_cpu = 9 * (1 << 30) / 1e9 * (1 / timing.cpu_gbs.value - 1 / linked)
    assert of("noncoherent") - of("pinned") == pytest.approx(by_cpu, rel=0.001)


def test_named_pairs_of_ranks_and_their_window_are_counted():
    def of(window: int, pairs: str) -> float:
        arguments = f"--map 0,0,1,1 --pairs {pairs} --operations bandwidth --sizes 1GiB"
        arguments += f" --together none --collectives none --window {window}"
        return predictions.of_program("mpi", arguments.split(), MI250X)

    within = (1 << 30) / 1e9 / (MI250X.timing.part_of_peak.value * 1638.4 / 2)
    one = (of(8, "0-1") - of(4, "0-1")) / (4 * within)
    # A sample to find the batch, a repetition, and those of the series.
    assert one == pytest.approx(round(one), rel=0.01) and one >= 2
    none = of(8, "none")
    assert of(8, "0-1,2-3") - none == pytest.approx(2 * (of(8, "0-1") - none), rel=0.001)


def test_a_message_within_a_device_takes_its_memory_twice():
    def of(*devices: int) -> float:
        one = {"name": "osu", "program": "osu_bw", "command": "osu_bw", "ranks": 2, "batch": 64}
        return predictions.of_launches([Launch(devices=[*devices], sizes=[1 << 30], **one)], MI250X)

    reached = MI250X.timing.part_of_peak.value * 1638.4 / 2
    moved = predictions.OSU_WARMED * 64 * (1 << 30) / 1e9
    across = moved / (MI250X.timing.part_of_peak.value * 50)
    assert of(0, 1) - of(0, 0) == pytest.approx(across - moved / reached, rel=0.001)


def test_of_ranks_only_the_operations_asked_for_take_time():
    def of(*options: str) -> float:
        arguments = ["--memory", "pageable", "--sizes", "1GiB", "--map", "0", *options]
        return predictions.of_program("pingpong", arguments, MI250X)

    both, all_three = of("--operations", "both"), of()
    assert of("--operations", "h2d,d2h,both") == pytest.approx(all_three)
    assert both < 0.75 * all_three


def test_overlap_takes_four_batches_a_sample_two_of_them_twice_as_long():
    def of(*options: str) -> float:
        arguments = ["--pairs", "next", "--devices", "none", "--size", "256MiB", *options]
        return predictions.of_program("overlap", arguments, MI250X)

    # Eight pairs, two ways: seven samples of six batches, and four before.
    longer = of("--batch-time", "0.12") - of("--batch-time", "0.02")
    assert longer == pytest.approx(16 * 46 * 1.1 * 0.1)
    assert of("--by", "engine") < 0.6 * of()


def test_pages_that_migrate_go_back_before_each_sample():
    def of(*options: str) -> float:
        arguments = ["--devices", "0", "--operations", "read", "--sizes", "1GiB", *options]
        return predictions.of_program("managed", arguments, MI250X)

    # 1 GiB at 2.8 GB/s there and back, some eight times; over the link at 27.
    assert of("--expect", "page-migration") - of("--expect", "zero-copy") > 5


@pytest.mark.parametrize(
    ("program", "arguments", "says"),
    [
        ("fio", "--sizes 1GiB", "The time of 'fio --sizes 1GiB' cannot be predicted"),
        (
            "stream",
            "--sizes 1Gigabyte",
            "The time of 'stream --sizes 1Gigabyte' cannot be predicted",
        ),
        ("stream", "--devices each", "cannot be predicted"),
        ("p2p", "--operations read --pairs 0-9 --sizes 1GiB", "cannot be predicted"),
        ("memcpy", "--devices 12 --sizes 1GiB", "cannot be predicted"),
    ],
)
def test_what_is_not_understood_is_not_predicted(program, arguments, says):
    with pytest.raises(predictions.Unpredicted, match=says):
        predictions.of_program(program, arguments.split(), NODE)


def test_without_the_costs_of_its_node_nothing_is_predicted():
    node = dataclasses.replace(NODE, timing=None)
    for ask in (
        lambda: predictions.of_program("affinity", [], node),
        lambda: predictions.of_launches(PLANS["rccl_scan"], node),
    ):
        with pytest.raises(predictions.Unpredicted, match=r"h200\.yaml has no key timing\."):
            ask()
