"""Outputs of third-party benchmarks as result documents: launches that replay what was recorded."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import factories
from fabricheck.core.errors import FabricheckError, InvalidFile, NotFoundError
from fabricheck.core.lines import doubled
from fabricheck.core.models import read_model
from fabricheck.results.document import load
from fabricheck.results.series import is_from_tool
from fabricheck.tools.benchmarks import BENCHMARKS, NCCL_TESTS, Plan
from fabricheck.tools.benchmarks import OSU as OSU_TESTS
from fabricheck.tools.recording import mpi_version, record
from full_disk import files_of_at_most
from nccl_texts import SCAN, rccl_2024
from processes import is_left

OUTPUTS = Path(__file__).parents[1] / "outputs"
STATE = Path(__file__).parents[2] / "src" / "bench" / "harness" / "state.cpp"
OSU = OUTPUTS / "osu-7.4-host"
NCCL = OUTPUTS / "nccl-tests-h200"
MIB = 1 << 20
ALL_REDUCE = "Node node1: all_reduce.out (all_reduce on devices 0 and 1): "


def launch(program: str, file: Path | None, sizes: tuple[int, ...], **changes) -> dict:
    """Describe a launch that prints a file."""
    verifies = changes.get("verifies", False)
    return {
        "name": f"{program}-c" if verifies else program,
        "program": program,
        "command": f"cat '{file}'",
        "ranks": 2,
        "devices": [],
        "sizes": list(sizes),
        "batch": 320,
    } | changes


def bandwidth(**changes) -> list[dict]:
    sizes = doubled(MIB, 16 * MIB)
    return [
        launch("osu_bw", OSU / "osu_bw_scan.txt", sizes) | changes,
        launch("osu_bw", OSU / "osu_bw_scan_c.txt", sizes, verifies=True, batch=1),
    ]


def reduction() -> list[dict]:
    sizes = doubled(1024, MIB)
    return [
        launch("osu_reduce", OSU / "osu_reduce.txt", sizes, batch=100),
        launch("osu_reduce", OSU / "osu_reduce_c.txt", sizes, verifies=True, batch=1),
    ]


def a_plan(*launches: dict, tmp_path: Path, **changes) -> Plan:
    facts = factories.write(tmp_path / "told.json", changes.pop("facts_document", None))
    return Plan.model_validate(
        {
            "tool": "osu",
            "buffers": "host",
            "facts": f"cp '{facts}' '{tmp_path}/facts.json'",
            "launches": list(launches) or bandwidth(),
        }
        | changes
    )


def recorded(*launches: dict, tmp_path: Path, **changes) -> dict:
    return record(a_plan(*launches, tmp_path=tmp_path, **changes), tmp_path / "result.json", 60)


def failure(*launches: dict, tmp_path: Path, **changes) -> tuple[int, str]:
    document = recorded(*launches, tmp_path=tmp_path, **changes)
    assert load(tmp_path / "result.json") == document
    assert document["outcome"]["status"] != "good"
    assert not (tmp_path / "result.json.partial").exists()
    return document["outcome"]["exit_code"], document["outcome"]["message"]


def test_a_good_run_of_osu(tmp_path):
    document = recorded(*bandwidth(), *reduction(), tmp_path=tmp_path)
    assert document["outcome"]["status"] == "good"
    assert document["complete"]
    assert document["program"]["name"] == "osu"
    assert document["program"]["version"] == "7.4"
    pairs = [one for one in document["series"] if one["experiment"] == "E9"]
    assert [one["bytes"] for one in pairs] == [MIB << step for step in range(5)]
    told = re.findall(r"^(\d+) +([\d.]+)$", (OSU / "osu_bw_scan.txt").read_text(), re.MULTILINE)
    for one, (size, rate) in zip(pairs, told, strict=True):
        assert (one["bytes"], one["median"]) == (int(size), pytest.approx(float(rate) / 1000))
        assert (one["operation"], one["datatype"], one["ranks"]) == ("bandwidth", "byte", [0, 1])
        assert (one["device"], one["device_set"]) == (None, [])
        assert one["verification"]["by"] == "tool"
    reduced = [one for one in document["series"] if one["experiment"] == "E10"]
    assert {one["direction"] for one in reduced} == {"collective"}
    assert {one["unit"] for one in reduced} == {"us"}
    ran = document["options"]["launches"]
    assert [one["name"] for one in ran] == ["osu_bw", "osu_bw-c", "osu_reduce", "osu_reduce-c"]
    assert all(one["exit_code"] == 0 for one in ran)


def test_the_program_of_the_facts_tells_the_state_before_and_after_the_launches(tmp_path):
    one, other = (
        factories.document(state=factories.state([factories.device_state(0, clock_mhz=clock)]))
        for clock in (1980, 1310)
    )
    for name, document in (("one.json", one), ("other.json", other)):
        document["devices"][0]["pci_address"] = "0000:41:00.0"
        factories.write(tmp_path / name, document)
    told = f"cd '{tmp_path}' && if [ -e facts.json.first ]; then cp other.json facts.json"
    facts = f"{told}; else cp one.json facts.json; fi"
    document = recorded(*bandwidth(), tmp_path=tmp_path, facts=facts)
    clocks = [document["state"][when]["devices"][0]["clock_mhz"] for when in ("before", "after")]
    assert clocks == [1980, 1310] and document["outcome"]["status"] == "good"
    written = json.loads((tmp_path / "result.json").read_text())["state"]["after"]
    assert (written["host"], written["devices"]) == ({}, [{"index": 0, "clock_mhz": 1310}])
    assert load(tmp_path / "facts.json") == one and load(tmp_path / "facts-after.json") == other


def test_seconds_that_count_from_the_run_of_the_facts_on_are_not_compared(tmp_path):
    document = factories.on_h200()
    words = "gpu_metrics 1.6, from the snapshot before on"
    document["state"]["sources"]["devices.throttled_s.power"] = words
    assert f'{words.partition(" 1.6")[2]}"' in STATE.read_text()  # as the programs write it
    recorded_here = recorded(*bandwidth(), tmp_path=tmp_path, facts_document=document)
    seconds = [
        [device["throttled_s"] for device in recorded_here["state"][when]["devices"]]
        for when in ("before", "after")
    ]
    assert seconds[0] == [factories.device_state()["throttled_s"]] * 2
    assert seconds[1] == [None, None]


def test_launches_whose_state_after_them_is_not_told_keep_their_values(tmp_path):
    factories.write(tmp_path / "one.json", factories.document(state=factories.state()))
    facts = f"cd '{tmp_path}' && ! [ -e facts.json.first ] && cp one.json facts.json"
    document = recorded(*bandwidth(), tmp_path=tmp_path, facts=facts)
    assert document["outcome"]["status"] == "good" and document["series"]
    assert document["state"]["after"] is None
    assert any("the state after the launches is unknown" in one for one in document["notes"])
    assert load(tmp_path / "facts.json")["state"]["after"] is not None


def test_a_full_disk_is_one_sentence_and_keeps_the_launches_before(tmp_path, wording):
    recorded(*bandwidth(), tmp_path=tmp_path)
    size = (tmp_path / "result.json").stat().st_size
    (tmp_path / "result.json").unlink()
    with files_of_at_most(size), pytest.raises(NotFoundError) as raised:
        recorded(*bandwidth(), *reduction(), tmp_path=tmp_path)
    partial = tmp_path / "result.json.partial"
    wording(str(raised.value))
    kept = load(partial)
    assert {one["name"] for one in kept["options"]["launches"]} == {"osu_bw", "osu_bw-c"}
    assert not (tmp_path / "result.json").exists()


def test_a_line_about_each_launch_says_what_its_first_and_last_size_reached(tmp_path):
    said = []
    record(a_plan(tmp_path=tmp_path), tmp_path / "result.json", 60, said.append)
    assert said == [
        "[1/2] osu_bw of 2 ranks: 1048576 B 12.9419 GB/s, 16777216 B 5.86634 GB/s",
        "[2/2] osu_bw of 2 ranks: verified",
    ]


@pytest.mark.parametrize("program", sorted(NCCL_TESTS.operations.keys() - {"sendrecv"}))
@pytest.mark.parametrize("count", [2, 4, 8])
def test_every_recorded_output_of_nccl_tests(tmp_path, program, count):
    file = NCCL / f"{program}_perf_{count}gpus_1MiB.txt"
    addresses = re.findall(r"device +\d+ \[(\S+)\]", file.read_text())
    devices = [factories.device(index, arch="sm_90", pci_address=f"{address}.0")
               for index, address in enumerate(addresses)]  # fmt: skip
    facts = factories.document(
        devices=devices, program=factories.document()["program"] | {"runtime": "cuda"}
    )
    one = launch(program, file, (MIB,), ranks=count, devices=list(range(count)), batch=50)
    more = {"tool": "nccl-tests", "buffers": "device", "facts_document": facts, "library": "2.28"}
    document = recorded(one, tmp_path=tmp_path, **more)
    assert document["outcome"]["message"] is None
    assert document["versions"]["rccl"] == "2.28.9"
    assert document["program"]["version"] == "2.19.6"
    (row,) = [line.split() for line in file.read_text().splitlines() if line.startswith("     1")]
    times, buses = [row[-8], row[-4]], [row[-6], row[-2]]
    found = {(s["unit"], s["in_place"]): s["median"] for s in document["series"]}
    for in_place, time_us, bus in zip((False, True), times, buses, strict=True):
        assert found["us", in_place] == float(time_us)
        assert found["GB/s", in_place] == float(bus)


NCCL_2 = {"ranks": 2, "devices": [0, 1], "batch": 50}


#: Recorded between two named nodes, which had one device.
ACROSS = OUTPUTS / "nccl-tests-two-nodes"
BETWEEN_NODES = doubled(8 * MIB, 1024 * MIB)
TWO_NODES = {
    "tool": "nccl-tests",
    "buffers": "device",
    "network": "Socket",
    "facts_document": factories.document(
        devices=[factories.device(index, pci_address="0000:00:06.0") for index in (0, 1)]
    ),
}


def between_nodes(program: str) -> dict:
    """Describe a launch of a recorded run of two nodes."""
    return launch(program, ACROSS / f"{program}_perf.txt", BETWEEN_NODES, **NCCL_2, nodes=2)


def nccl(tmp_path, text=None, **changes):
    """Return the failure of one launch of all_reduce on two devices."""
    file = tmp_path / "printed.txt"
    file.write_text(text or (NCCL / "all_reduce_perf_2gpus_1MiB.txt").read_text())
    devices = [factories.device(index, pci_address=f"0000:00:0{index + 6}.0") for index in (0, 1)]
    plan = {"tool": "nccl-tests", "buffers": "device",
            "facts_document": factories.document(devices=devices)}  # fmt: skip
    one = launch("all_reduce", file, (MIB,), **NCCL_2 | changes.pop("launch", {}))
    return failure(one, tmp_path=tmp_path, **plan | changes)


def test_the_node_is_the_one_whose_facts_were_told(tmp_path, monkeypatch):
    """The recorder itself may run elsewhere, as on the node that the batch script is on."""
    monkeypatch.setenv("SLURMD_NODENAME", "node1")
    facts = factories.document()
    facts["host"] |= {"scheduler_node": "node3"}
    document = recorded(*bandwidth(), tmp_path=tmp_path, facts_document=facts)
    assert document["host"]["scheduler_node"] == "node3"
    assert (
        recorded(*bandwidth(), tmp_path=tmp_path, facts="false")["host"]["scheduler_node"]
        == "node1"
    )


@pytest.mark.parametrize(
    "required",
    [
        {"library": "2.27"},
        # No beginning of 2.28: parts of a version are whole.
        {"library": "2.2"},
        {"tool": "rccl-tests"},
    ],
    ids=lambda required: "-".join(required.values()),
)
def test_what_a_library_must_be(tmp_path, required, wording):
    code, told = nccl(tmp_path, **required)
    assert code == 10
    wording(told)


@pytest.mark.parametrize("program", ["all_reduce", "sendrecv"])
def test_a_recorded_run_of_two_nodes(tmp_path, program):
    document = recorded(between_nodes(program), tmp_path=tmp_path, **TWO_NODES)
    assert document["outcome"]["message"] is None
    own = [one for one in document["series"] if (one["unit"], one["in_place"]) == ("GB/s", False)]
    assert {one["experiment"] for one in own} == {"E17"}
    assert [one["bytes"] for one in own] == list(BETWEEN_NODES)
    assert own[-1]["median"] == {"all_reduce": 1.86, "sendrecv": 1.22}[program]


def test_what_carries_the_data_between_nodes(tmp_path, wording):
    for required, message in (
        ({"network": None}, "the ranks are on 2 nodes, but no network is required between them."),
        # A setting, not a slow node.
        (
            {"network": "AWS Libfabric"},
            "the network must be AWS Libfabric, but rank 0 (node1), rank 1 (node2) report Socket.",
        ),
    ):
        code, told = failure(between_nodes("all_reduce"), tmp_path=tmp_path, **TWO_NODES | required)
        assert (code, told) == (8 if required["network"] else 10, f"{ALL_REDUCE}{message}")
    silent = tmp_path / "silent.txt"
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    silent.write_text("".join(re.findall(r"^(?!node\d:).*\n", text, re.MULTILINE)))
    one = between_nodes("all_reduce") | {"command": f"cat '{silent}'"}
    assert "reports none." in failure(one, tmp_path=tmp_path, **TWO_NODES)[1]
    one = between_nodes("all_reduce") | {"nodes": 1}
    wording(failure(one, tmp_path=tmp_path, **TWO_NODES)[1])


#: What the recorded lines "Using network Socket" of both ranks are replaced by.
PLUGIN = r"\1NET/OFI Selected provider is {}, fabric is x (found 4 nics)\n\1Using network {}"
ON_CXI = PLUGIN.format("cxi", "AWS Libfabric")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "changes", "said"),
    [
        (ON_CXI, ON_CXI, {}, None),
        # Newer plug-ins have another name.
        (PLUGIN.format("cxi", "Libfabric"), ON_CXI, {}, None),
        (ON_CXI, PLUGIN.format("tcp;ofi_rxm", "Libfabric"), {},
         "rank 1 (node2) reports the provider tcp;ofi_rxm."),
        (PLUGIN.format("tcp", "AWS Libfabric"), ON_CXI, {},
         "rank 0 (node1) reports the provider tcp."),
        (ON_CXI, r"\1Using network Socket", {}, "rank 1 (node2) reports Socket."),
        (ON_CXI, PLUGIN.format("verbs;ofi_rxm", "Libfabric"), {"provider": "cxi"},
         "rank 1 (node2) reports the provider verbs;ofi_rxm."),
        (r"\1Using network IB", r"\1Using network IB", {},
         "rank 0 (node1), rank 1 (node2) report IB."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("required", ["AWS Libfabric", "Libfabric", "cxi"])
def test_every_rank_has_the_network_and_the_provider(
    tmp_path, required, first, second, changes, said
):
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    for node, lines in (("node1", first), ("node2", second)):
        text, count = re.subn(rf"({node}:\S+ \[0\] NCCL INFO )Using network Socket", lines, text)
        assert count == 1
    (tmp_path / "printed.txt").write_text(text)
    one = between_nodes("all_reduce") | {"command": f"cat '{tmp_path}/printed.txt'"}
    document = recorded(one, tmp_path=tmp_path, **TWO_NODES | {"network": required} | changes)
    outcome = (document["outcome"]["status"], document["outcome"]["message"])
    if said is None:
        assert outcome == ("good", None)
    else:
        assert outcome == (
            "setting", f"{ALL_REDUCE}the network must be {required}, but {said}"
        )  # fmt: skip


def test_what_the_library_of_each_rank_wrote_into_a_file_is_read(tmp_path, wording):
    """The lines of a rank may also be mixed with those of others, if all are in one stream."""
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    lines = re.findall(r"^node(\d):(\d+):.*\n", text, re.MULTILINE)
    processes = {node: process for node, process in lines}
    printed = re.sub(r"^node\d:.*\n", "", text, flags=re.MULTILINE)
    assert processes.keys() == {"1", "2"} and "Using network" not in printed
    (tmp_path / "printed").write_text(printed)
    made = [f"cat '{tmp_path}/printed'"]
    for node, process in processes.items():
        written = re.findall(rf"^node{node}:.*\n", text, re.MULTILINE)
        (tmp_path / f"log{node}").write_text("".join(written).removesuffix("\n"))
        log = f"'{tmp_path}/all_reduce.node{node}.{process}.nccl'"
        made.append(f"cp '{tmp_path}/log{node}' {log}")
    run = between_nodes("all_reduce") | {"command": "; ".join(made)}
    # Of a run before, which had another network.
    old = tmp_path / "all_reduce.node1.1.nccl"
    old.write_text("node1:1:1 [0] NCCL INFO Using network IB\n")
    document = recorded(run, tmp_path=tmp_path, **TWO_NODES)
    assert document["outcome"]["message"] is None
    assert document["versions"]["rccl"] == "2.28.9+cuda13.0"
    assert [file.name for file in tmp_path.glob("*.nccl")] == ["all_reduce.nccl"]
    assert (tmp_path / "all_reduce.nccl").read_text().count("Using network Socket\n") == 2
    # One rank on another network.
    wrong = (tmp_path / "log2").read_text().replace("network Socket", "network IB")
    (tmp_path / "log2").write_text(wrong)
    wording(failure(run, tmp_path=tmp_path, **TWO_NODES)[1])
    # An output that is cut off stays so.
    (tmp_path / "printed").write_text(printed.rstrip("\n"))
    wording(failure(run, tmp_path=tmp_path, **TWO_NODES)[1])
    # A program that prints nothing has its reason in the log.
    (tmp_path / "log2").write_text("node2:7:7 [0] NCCL WARN Error: no such device\n")
    silent = run | {"command": f"{'; '.join(made[1:])}; exit 3"}
    wording(failure(silent, tmp_path=tmp_path, **TWO_NODES)[1])


def test_a_rank_that_names_no_network_has_not_the_required_one(tmp_path, wording):
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    (tmp_path / "printed.txt").write_text(re.sub("node2:.*Using network.*\n", "", text))
    one = between_nodes("all_reduce") | {"command": f"cat '{tmp_path}/printed.txt'"}
    code, told = failure(one, tmp_path=tmp_path, **TWO_NODES)
    assert code == 8
    wording(told)


def test_a_provider_that_nobody_names_is_not_the_required_one(tmp_path, wording):
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    (tmp_path / "printed.txt").write_text(text.replace("network Socket", "network AWS Libfabric"))
    one = between_nodes("all_reduce") | {"command": f"cat '{tmp_path}/printed.txt'"}
    told = failure(one, tmp_path=tmp_path, **TWO_NODES | {"network": "cxi"})[1]
    wording(told)


def test_headers_of_another_version_than_the_library_are_a_note(tmp_path):
    text = (NCCL / "all_reduce_perf_2gpus_1MiB.txt").read_text()
    (tmp_path / "printed.txt").write_text(text.replace("headers=22809", "headers=22803"))
    devices = [factories.device(index, pci_address=f"0000:00:0{index + 6}.0") for index in (0, 1)]
    plan = {"tool": "nccl-tests", "buffers": "device",
            "facts_document": factories.document(devices=devices)}  # fmt: skip
    one = launch("all_reduce", tmp_path / "printed.txt", (MIB,), **NCCL_2)
    document = recorded(one, one | {"name": "again"}, tmp_path=tmp_path, **plan)
    assert document["outcome"]["status"] == "good"
    found = [note for note in document["notes"] if "headers" in note]
    assert found == [
        "nccl-tests 2.19.6 was built with headers of 2.28.3, and the library is 2.28.9"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  Error: Function not implemented (38)",
        "cxip_gen_auth_key failed: -38",
        "MPIDI_OFI_mpi_init_hook(599): OFI fi_open domain failed (x:Function not implemented)",
    ],
    ids=["errno", "auth-key", "mpich"],
)
def test_a_node_without_a_service_of_its_nics_is_a_setting(tmp_path, line, wording):
    (tmp_path / "err").write_text(f"Open MPI failed a call (fi_domain).\n{line}\nAborted\n")
    one, other = bandwidth(command=f"cat '{tmp_path}/err' >&2; exit 1")
    code, told = failure(one, other, tmp_path=tmp_path)
    assert code == 8 and line.strip() in told
    wording(told)


def test_launches_print_what_the_parsers_know_whatever_the_user_sets(tmp_path, monkeypatch):
    one, other = bandwidth()
    labels = "s/^/rank-0 | /"
    one["command"] = f"sed \"${{SLURM_LABELIO:+{labels}}}\" '{OSU}/osu_bw_scan.txt'"
    monkeypatch.setenv("SLURM_LABELIO", "1")
    assert recorded(one, other, tmp_path=tmp_path)["outcome"]["message"] is None


def test_a_wrong_network_that_takes_too_long_is_the_reason(tmp_path):
    """Sockets move 1 GiB for minutes; the network is named before the first row."""
    text = (ACROSS / "all_reduce_perf.txt").read_text()
    for name, printed, code, message in (
        ("named", text[: text.index("   8388608")], 8, "the network must be AWS Libfabric, but "),
        # Nothing says yet that it is another one.
        ("unnamed", text[: text.index("node1:")], 6, "it did not end within 1 s"),
    ):
        (tmp_path / name).write_text(printed)
        one = between_nodes("all_reduce") | {
            "command": f"cat '{tmp_path / name}'; exec sleep 60",
            "limit_s": 1,
        }
        found = failure(one, tmp_path=tmp_path, **TWO_NODES | {"network": "AWS Libfabric"})
        assert found[0] == code and message in found[1], found


@pytest.mark.parametrize(("end", "limit_s"), [("", 60), ("; exit 3", 60), ("; exec sleep 60", 1)])
def test_ranks_that_each_run_a_test_of_their_own(tmp_path, end, limit_s, wording):
    """Without MPI nothing tells a rank of the others, and all of a node take its first device."""
    (tmp_path / "rank").write_text(rccl_2024(SCAN, count=1))
    run = launch(
        "all_reduce", None, doubled(MIB, 4 * MIB), ranks=16, devices=list(range(16)), nodes=2,
        command=f"for i in $(seq 16); do cat '{tmp_path}/rank'; done{end}", limit_s=limit_s,
    )  # fmt: skip
    facts = factories.document(devices=[factories.device(index) for index in range(16)])
    plan = {"tool": "rccl-tests", "buffers": "device", "network": "cxi", "facts_document": facts}
    document = recorded(run, tmp_path=tmp_path, **plan)
    assert document["outcome"]["status"] == "tool"
    wording(document["outcome"]["message"])


def test_other_devices_and_wrong_data_of_nccl(tmp_path, wording):
    text = (NCCL / "all_reduce_perf_2gpus_1MiB.txt").read_text()
    wording(nccl(tmp_path, text.replace("0000:00:07", "0000:00:09"))[1])
    code, message = nccl(tmp_path, text.replace("72.01       0 ", "72.01       5 "))
    assert code == 5
    assert "5" in message
    wording(nccl(tmp_path, launch={"batch": 20})[1])
    wording(nccl(tmp_path, launch={"threads": 2})[1])
    wording(nccl(tmp_path, launch={"devices": [0, 5]})[1])


DEVICES = {"buffers": "device", "accelerator": "rocm"}


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("cat OSU/osu_bw_scan.txt", 3, ": the banner has 'MPI', not 'MPI-ROCM', so"),
        (
            "cat OSU/osu_bw_rocm_not_built.err >&2; cat OSU/osu_bw_rocm_not_built.txt; exit 1",
            3,
            ": osu_bw was built without support for rocm.",
        ),
        (
            "cat OSU/osu_bw_one_rank.err >&2; exit 1",
            10,
            ": it ended with exit code 1: This test requires exactly two processes",
        ),
        (
            "cat CUDA/osu_allreduce_8ranks_crashed.txt; kill -SEGV $$",
            10,
            ": it was ended by signal 11: ",
        ),
        (
            "cat CUDA/osu_allgather_2ranks_crashed.txt; "
            "cat CUDA/osu_allgather_2ranks_crashed.err >&2; kill -SEGV $$",
            10,
            ": it was ended by signal 11: prterun noticed that process rank 1 with PID 2685 on "
            "node vm exited on signal 11 (Segmentation fault).",
        ),
        (
            "sed 's/MPI /MPI-ROCM /' OSU/osu_bw_scan.txt | head -n 4",
            10,
            ", line 4: the text ends here, the row of 1048576 B is missing.",
        ),
        (
            "sed 's/MPI /MPI-ROCM /' OSU/osu_bw_scan.txt;"
            "echo 'Warning: OMB could not identify the local rank of the process.' >&2",
            3,
            ": osu_bw found no local rank, so all ranks used one device.",
        ),
        ("/no/such/program", 10, ": it ended with exit code 127: "),
    ],
    ids=[
        "no devices",
        "not built",
        "one rank",
        "crashed",
        "framed",
        "header",
        "one device",
        "no program",
    ],
)
def test_runs_of_osu_that_are_not_good(tmp_path, command, code, sentence):
    command = command.replace("OSU/", f"{OSU}/").replace("CUDA", f"{OUTPUTS}/osu-7.4-cuda-h200")
    launches = [one | {"devices": [0, 3]} for one in bandwidth()]
    launches[0]["command"] = command
    launches[1]["command"] = f"sed 's/MPI /MPI-ROCM /' '{OSU}/osu_bw_scan_c.txt'"
    found, message = failure(*launches, tmp_path=tmp_path, **DEVICES)
    start = "Node node1: osu_bw.out (osu_bw on devices 0 and 3)"
    assert (found, message[: len(start + sentence)]) == (code, start + sentence)


def test_a_crashed_run_that_ends_well_is_none(tmp_path):
    header = (OUTPUTS / "osu-7.4-cuda-h200" / "osu_allreduce_8ranks_crashed.txt").read_text()
    (tmp_path / "crashed.txt").write_text(header.replace("MPI-CUDA", "MPI"))
    launches = [launch("osu_allreduce", tmp_path / "crashed.txt", (MIB,), verifies=verifies)
                for verifies in (False, True)]  # fmt: skip
    code, message = failure(*launches, tmp_path=tmp_path)
    assert code == 10
    assert "the row of 1048576 B is missing" in message


def test_wrong_data_outweighs_and_the_other_launches_still_run(tmp_path, wording):
    verified = bandwidth()[1]
    text = (OSU / "osu_bw_scan_c.txt").read_text()
    (tmp_path / "wrong.txt").write_text(re.sub("Pass$", "Fail", text.rstrip()) + "\n")
    launches = [
        bandwidth()[0] | {"command": "exit 1"},
        verified | {"command": f"cat {tmp_path}/wrong.txt; exit 1"},
        *reduction(),
    ]
    code, message = failure(*launches, tmp_path=tmp_path)
    assert code == 5
    wording(message)
    document = load(tmp_path / "result.json")
    assert document["complete"]
    assert {one["operation"] for one in document["series"]} == {"reduce"}


def test_other_iterations_than_asked_for(tmp_path, wording):
    launches = reduction()
    launches[0]["batch"] = 50
    wording(failure(*launches, tmp_path=tmp_path)[1])


def test_a_device_build_where_host_memory_was_asked_for(tmp_path, wording):
    launches = [one | {"command": one["command"] + " | sed 's/OSU MPI /OSU MPI-CUDA /'"}
                for one in bandwidth()]  # fmt: skip
    wording(failure(*launches, tmp_path=tmp_path)[1])


def test_two_versions_of_osu(tmp_path, wording):
    launches = bandwidth()
    launches[1]["command"] += " | sed 's/v7.4/v7.5/'"
    wording(failure(*launches, tmp_path=tmp_path)[1])


def test_a_launch_that_does_not_end(tmp_path, wording):
    launches = bandwidth()
    launches[0] |= {"command": "sleep 600 & wait", "limit_s": 0.2}
    code, message = failure(*launches, tmp_path=tmp_path)
    assert code == 6
    wording(message)


def test_the_time_of_all_launches(tmp_path, wording):
    launches = bandwidth()
    launches[0] |= {"command": "sleep 600"}
    document = record(a_plan(*launches, tmp_path=tmp_path), tmp_path / "result.json", 0.5)
    assert document["outcome"]["exit_code"] == 6
    # Before it is how long the first launch had, which is not always the same.
    wording(document["outcome"]["message"].rpartition(" s. ")[2])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("echo no GPU >&2; exit 3", "ended with exit code 3: no GPU"),
        ("true", "There is no result document"),
        ("echo '{}' > FACTS", "is not a fabricheck result document"),
    ],
)
def test_a_node_that_is_not_told(tmp_path, command, sentence):
    command = command.replace("FACTS", str(tmp_path / "facts.json"))
    code, message = failure(*bandwidth(), tmp_path=tmp_path, facts=command)
    assert code in (3, 4, 10)
    assert sentence in message
    assert load(tmp_path / "result.json")["devices"] == []


@pytest.mark.slow
def test_a_run_that_is_ended_leaves_nothing_behind(tmp_path, wording):
    mark = tmp_path / "started"
    launches = bandwidth()
    launches[0]["command"] = f"echo $$ > {mark}; exec sleep 600"
    (tmp_path / "plan.json").write_text(a_plan(*launches, tmp_path=tmp_path).model_dump_json())
    fabricheck = Path(sys.executable).with_name("fabricheck")
    run = subprocess.Popen(
        [fabricheck, "results", "record", "plan.json", "--output", "result.json"], cwd=tmp_path
    )
    while not (mark.exists() and mark.read_text().endswith("\n")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 143
    outcome = load(tmp_path / "result.json")["outcome"]
    assert (outcome["exit_code"], outcome["status"]) == (143, "interrupted")
    wording(outcome["message"])
    assert not is_left(int(mark.read_text()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda plan: plan["launches"].pop(), "no launch verifies what osu_bw measures"),
        (
            lambda plan: plan["launches"][0].update(program="osu_hello"),
            "osu_hello of osu has no parser",
        ),
        (lambda plan: plan.update(tool="other"), "the tool other is unknown; known are osu, "),
        (lambda plan: plan["launches"][0].update(name="../x"), "launches[0].name: "),
        (lambda plan: plan.update(launches=[]), "launches: "),
    ],
)
def test_plans_that_are_refused(tmp_path, change, sentence):
    content = json.loads(a_plan(tmp_path=tmp_path).model_dump_json())
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(content))
    assert read_model(path, Plan).launches[0].name == "osu_bw"
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile) as caught:
        read_model(path, Plan)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


def test_a_plan_with_a_key_twice_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    text = a_plan(tmp_path=tmp_path).model_dump_json()
    path.write_text(text.replace('"ranks":', '"ranks":1,"ranks":', 1))
    with pytest.raises(FabricheckError, match=f"{path}: contains the key 'ranks' twice"):
        read_model(path, Plan)


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(FabricheckError, match=r"plan\.json: there is no such file\."):
        read_model(tmp_path / "plan.json", Plan)


def test_a_new_tool_is_an_entry(tmp_path, monkeypatch):
    def read(plan, launch, text, facts):
        return dataclasses.replace(OSU_TESTS.read(plan, launch, text, facts), versions={})

    own = dataclasses.replace(OSU_TESTS, name="own-tests", verifies_apart=False, read=read)
    monkeypatch.setitem(BENCHMARKS, own.name, own)
    document = recorded(bandwidth()[0], tmp_path=tmp_path, tool="own-tests")
    assert document["outcome"]["message"] is None
    assert load(tmp_path / "result.json") == document
    assert (document["program"]["name"], document["program"]["version"]) == ("own-tests", "unknown")
    assert [one["operation"] for one in document["series"]] == ["bandwidth"] * 5
    assert is_from_tool(document)


def test_a_program_without_mpi():
    assert mpi_version(Path("/bin/sh")) is None
    assert mpi_version(Path("/no/such/program")) is None
