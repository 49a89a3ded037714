"""Rounds beside AMD's tools: dry runs of whole commands, with stand-ins that print composed text.

Nothing here ran on an AMD GPU.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

import amd_tool_texts as composed
from fabricheck.beside import launches, table
from fabricheck.beside.cases import BESIDE_AMD, HOST
from fabricheck.beside.outputs import rocm_bandwidth_test as rbt
from fabricheck.beside.outputs import transferbench as tb

TOOLS = ("transferbench", "rocm-bandwidth-test", "babelstream")
FILES = {"babelstream": "hip-stream"}
OURS = ["stream", "stream-from-host", "stream-to-host", "memcpy", "p2p", "p2p-to-all", "p2p-all"]


def rounds(command, folder, programs, *more, tools=TOOLS, number=1):
    """Run the whole command."""
    words = [str(folder), "--programs", str(programs), "--rounds", str(number)]
    for tool in tools:
        words += [f"--{tool}", str(programs / FILES.get(tool, tool))]
    return command("beside", "rounds", *words, *more, code=None)


def table_of(command, folder):
    """Return the table by its first cell, and the whole text."""
    shown = command("beside", "table", folder)
    rows = [line for line in shown.stdout.splitlines() if line.startswith("| ")]
    return {row.split(" | ")[0].strip("| "): row for row in rows}, shown.stdout


@pytest.fixture(autouse=True)
def _rocm(monkeypatch):
    monkeypatch.setenv("FAKE_RUNTIME", "rocm")


@pytest.fixture(scope="module")
def recorded(command, programs, tmp_path_factory):
    """A folder with a good round of all tools beside four devices, for reading only."""
    folder = tmp_path_factory.mktemp("recorded") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_RUNTIME", "rocm")
        patch.setenv("FAKE_DEVICES", "4")
        ended = rounds(command, folder, programs)
    assert ended.exit_code == 0, ended.output
    assert "nvbandwidth" not in ended.stderr
    return folder


@pytest.mark.full
def test_a_dry_run(command, recorded, wording):
    found = table.load(recorded)
    theirs = [name for tool in TOOLS for name in launches.NAMES[tool]]
    assert sorted(found.planned) == sorted(OURS + theirs)
    assert found.runtime == "rocm" and found.left_out == {}
    assert found.versions["TransferBench"] == "1.60.00"
    assert found.versions["rocm_bandwidth_test"] == rbt.VERSION
    rows, text = table_of(command, recorded)
    head = (
        "| case | unit | fabricheck | BabelStream | TransferBench | rocm_bandwidth_test | ratio |"
    )
    assert head in text and "nvbandwidth" not in text
    found = {row.comparison.name: row for row in table.read(recorded).rows}
    assert all(row.ratio is not None for row in found.values())
    both_tools = {
        "to a peer, engine": [48.51, 49.442],
        "both directions between peers, engine": [92.51, 97.69],
        # Half of what a copy on one device reads and writes: 926.329 GB/s.
        "copy on the device, beside 64 MiB": [1690.85, 463.1645],
        # The best NUMA domain of four.
        "host to device, engine": [25.41, 28.779],
    }
    for name, medians in both_tools.items():
        theirs = [values.median for _, values in found[name].tools]
        assert theirs == pytest.approx(medians, abs=1e-3)
    assert found["copy on the device, beside 64 MiB"].verdict == "not judged"
    wording(rows[name] for name in both_tools)
    call = next(line for line in text.splitlines() if "USE_GPU_DMA=1" in line)
    assert call.endswith("transferbench p2p 64M") and "USE_REMOTE_READ=0" in call


def test_of_the_numa_domains_of_the_host_the_best_counts():
    rates = {"CPU 00": 20.0, "CPU 01": 30.0, "CPU 02": 10.0}
    text = composed.transferbench_p2p(
        cpus=3, remote=True, rate=lambda source, target, both: rates.get(source, 40.0)
    )
    launch = launches.TOOLS["transferbench"].launches["transferbench-read"]
    values = launch.parse(text, "the file", 2).values
    assert values[tb.ALONE, HOST, "GPU 00"] == 30.0


def test_every_case_says_how_the_tools_differ():
    assert all(case.note for case in BESIDE_AMD)
    names = [case.name for case in BESIDE_AMD]
    assert len(set(names)) == len(names)
    for case in BESIDE_AMD:
        for cell in case.tools:
            assert cell.launch in launches.NAMES[cell.tool]


#: The faults of a round: which launch each is of, and what is said of it.
FAULTS = [
    {
        "transferbench:crash": ("transferbench-a2a", "with exit code 1: the driver is gone"),
        "rocm-bandwidth-test:garbage": ("rocm-bandwidth-test", "is not the version of"),
        "hip-stream:empty": ("babelstream-1GiB", "the text is empty"),
    },
    {
        "transferbench:garbage": ("transferbench-read", "does not state the version"),
        "rocm-bandwidth-test:crash": ("rocm-bandwidth-test", "the driver is gone"),
    },
    {"transferbench:empty": ("transferbench-scaling", "the text is empty")},
]


@pytest.mark.parametrize("faults", FAULTS, ids=",".join)
@pytest.mark.full
def test_a_tool_that_fails_is_one_sentence_and_the_rest_goes_on(
    command, programs, few, tmp_path, monkeypatch, faults
):
    monkeypatch.setenv("FAKE_FAULT", ",".join(faults))
    failing = [tool for tool in TOOLS if FILES.get(tool, tool) in str(faults)]
    ended = rounds(command, tmp_path / "out", programs, tools=failing)
    assert ended.exit_code == 4
    found = table.load(tmp_path / "out")
    failed = {one.name: one.failure.sentence for one in found.launches if one.failure is not None}
    assert set(failed) == {name for tool in failing for name in launches.NAMES[tool]}
    rows, _ = table_of(command, tmp_path / "out")
    for launch, said in faults.values():
        assert said in failed[launch]
        assert re.fullmatch(rf"{launch}-1\.txt[:,][^\n]+\.", failed[launch])
        assert f"fabricheck: {failed[launch]}" in ended.stderr.splitlines()
        assert "| no value |" in rows[next(c.name for c in BESIDE_AMD if launch in str(c.tools))]
    assert "| 2130" in rows["copy on the device"]


def test_a_tool_that_is_missing_is_said_before_anything_runs(command, programs, tmp_path):
    ended = rounds(
        command, tmp_path / "out", programs, "--transferbench", str(tmp_path / "none"), tools=[]
    )
    assert (ended.exit_code, "There is no program" in ended.stderr) == (3, True)
    assert not (tmp_path / "out").exists()


def test_tools_that_are_not_given_or_of_the_other_vendor_are_left_out(
    command, programs, few, tmp_path
):
    ended = rounds(command, tmp_path / "out", programs, tools=["nvbandwidth"])
    assert "nvbandwidth is left out: our programs are of rocm" in ended.stderr
    assert "TransferBench is left out: not given" in ended.stderr


def test_beside_our_programs_of_cuda_amds_tools_are_left_out(
    command, programs, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAKE_RUNTIME", "cuda")
    ended = rounds(command, tmp_path / "other", programs, tools=["rocm-bandwidth-test"])
    assert "rocm_bandwidth_test is left out: our programs are of cuda" in ended.stderr
    assert set(table.load(tmp_path / "other").planned) == set(launches.NAMES[None]) - {"p2p-all"}


def test_programs_without_devices_are_refused(command, programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_RUNTIME", "host")
    ended = rounds(command, tmp_path / "out", programs, tools=[])
    assert (ended.exit_code, "has no devices" in ended.stderr) == (2, True)


def test_one_device(command, programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_DEVICES", "1")
    ended = rounds(command, tmp_path / "out", programs)
    assert ended.exit_code == 0, ended.output
    found = table.load(tmp_path / "out")
    assert found.left_out == {"TransferBench": "there is only one device"}
    named = [row.comparison.name for row in table.read(tmp_path / "out").rows if row.ratio]
    assert named[:3] == [
        "copy on the device",
        "copy on the device, beside 64 MiB",
        "host to device, engine",
    ]


def test_a_tool_that_saw_other_devices_is_refused(command, programs, few, tmp_path, monkeypatch):
    launch = launches.Launch(
        "", lambda text, origin, devices: rbt.parse(text.replace("00:7.0", "17:0.0"), origin)
    )
    other = dataclasses.replace(
        launches.TOOLS["rocm-bandwidth-test"], launches={"rocm-bandwidth-test": launch}
    )
    monkeypatch.setitem(launches.TOOLS, "rocm-bandwidth-test", other)
    ended = rounds(command, tmp_path / "out", programs, tools=["rocm-bandwidth-test"])
    assert ended.exit_code == 4
    said = "its device 1 is at 17:00.0, that of our programs at 0000:00:07.0"
    assert said in ended.stderr
