"""Rounds of composed programs: what is recorded, and what becomes of failures."""

from __future__ import annotations

import dataclasses
import json

import pytest

from fabricheck.beside import launches, table
from fabricheck.beside.record import exit_code, record
from fabricheck.core.errors import FabricheckError
from fabricheck.results.document import load

OURS = [
    "stream", "stream-from-host", "stream-to-host", "memcpy",
    "p2p", "p2p-to-all", "p2p-to-one", "p2p-chase",
]  # fmt: skip
THEIRS = ["nvbandwidth", "babelstream-512MiB", "babelstream-1GiB", "p2p-test"]


def one_round(programs, tools, folder, limit_s=300.0):
    return record(folder, programs, tools, 1, limit_s)


@pytest.mark.full
def test_good_rounds(recorded):
    folder, said = recorded
    found = table.load(folder)
    assert exit_code(found) == 0 and found.finished is not None
    assert [one.name for one in found.launches] == OURS + THEIRS + (OURS + THEIRS)[::-1]
    assert [one.round for one in found.launches] == [1] * 12 + [2] * 12
    assert found.left_out == {}
    assert [one.unique_id for one in found.devices] == ["GPU-composed-0", "GPU-composed-1"]
    assert found.versions["nvbandwidth"] == "v0.8"
    assert found.versions["driver"] == load(folder / "stream-1.json")["versions"]["driver"]
    files = {one.output for one in found.launches} | {table.FILE, "facts-0.json"}
    assert {file.name for file in folder.iterdir()} == files
    assert len(said) == 24 and all(sentence.startswith("[round ") for sentence in said)


@pytest.mark.full
def test_nothing_recorded_names_a_folder(recorded, programs):
    folder, _ = recorded
    for file in folder.iterdir():
        text = file.read_text()
        assert str(programs) not in text and str(folder) not in text


def test_a_set_has_all_other_devices(programs):
    commands = {one.name: one.arguments for one in launches.ours(programs, 4)}
    assert "--together 0-1,0-2,0-3 " in commands["p2p-to-all"]
    assert "--together 1-0,2-0,3-0 " in commands["p2p-to-one"]


#: The faults of a round: which launch each is of, its code, and what is said of it; and the code
#: of all.
FAULTS = [
    (
        7,
        {
            "nvbandwidth:crash": ("nvbandwidth", 4, "ended with exit code 1: the driver is gone"),
            "cuda-stream:empty": ("babelstream-512MiB", 4, "the text is empty"),
            "stream-1:noisy": ("stream", 7, "device 0 is too noisy"),
            "p2p-1:crash": ("p2p", 4, "ended with exit code 1: the driver is gone"),
            "p2p-to-all-1:other-device": ("p2p-to-all", 4, "has other devices"),
        },
    ),
    (
        8,
        {
            "nvbandwidth:killed": ("nvbandwidth", 4, "was ended by signal 9: it printed nothing"),
            "p2p-test:empty": ("p2p-test", 4, "the text is empty"),
            "stream-1:setting": ("stream", 8, "/dev/shm has 64 MiB"),
            "p2p-1:lost-series": ("p2p", 4, "has 0 series of engine"),
        },
    ),
    (
        4,
        {
            "nvbandwidth:one-more": ("nvbandwidth", 4, "it has 3 devices, but our programs see 2"),
            "stream-1:empty": ("stream", 4, "left no result document"),
        },
    ),
]


@pytest.mark.parametrize(("code", "faults"), FAULTS)
@pytest.mark.full
def test_failures_are_recorded_and_the_rest_goes_on(
    programs, tools, tmp_path, monkeypatch, code, faults
):
    monkeypatch.setenv("FAKE_FAULT", ",".join(faults))
    found = one_round(programs, tools, tmp_path / "out")
    assert table.load(tmp_path / "out") == found
    assert [one.name for one in found.launches] == OURS + THEIRS
    assert exit_code(found) == code
    failed = {one.name: one.failure for one in found.launches if one.failure is not None}
    # BabelStream is one program with two launches.
    assert failed.keys() - {"babelstream-1GiB"} == {launch for launch, _, _ in faults.values()}
    for launch, own_code, said in faults.values():
        assert failed[launch].code == own_code and said in failed[launch].sentence
        assert str(tmp_path) not in failed[launch].sentence
        assert failed[launch].sentence.endswith(".")
    # The rest is there; of what failed there is no value.
    rows = table.read(tmp_path / "out").rows
    assert any(row.ours is not None for row in rows)
    for row in rows:
        assert (row.ours is None) == (row.comparison.ours.launch in failed)
        assert not any(cell.launch in failed for cell, _ in row.tools)


def test_a_launch_that_hangs_is_ended(programs, tools, few, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "p2p-test:hang")
    quick = dataclasses.replace(launches.TOOLS["p2p-test"], limit_s=0.5)
    monkeypatch.setitem(launches.TOOLS, "p2p-test", quick)
    found = one_round(programs, {"p2p-test": tools["p2p-test"]}, tmp_path / "out")
    (failure,) = found.failures
    assert (failure.code, exit_code(found)) == (6, 6)
    assert "p2p-test-1.txt: it did not end within" in failure.sentence
    assert found.launches[-1].exit_code is None


def test_the_limit_of_all_rounds(programs, tools, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "stream-1:hang")
    found = one_round(programs, tools, tmp_path / "out", limit_s=2)
    assert exit_code(found) == 6
    assert len(found.launches) == len(found.failures) == 12
    assert "passed before it" in found.failures[-1].sentence


def test_one_device(programs, tools, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_DEVICES", "1")
    found = one_round(programs, tools, tmp_path / "out")
    assert exit_code(found) == 0, found.failures
    assert [one.name for one in found.launches] == OURS[:4] + THEIRS[:3]
    assert found.left_out == {"p2pBandwidthLatencyTest": "there is only one device"}
    rows = table.read(tmp_path / "out").rows
    assert [row.comparison.name for row in rows if row.ratio is not None] == [
        row.comparison.name for row in rows[:7]
    ]


def test_several_devices(programs, tools, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_DEVICES", "4")
    found = one_round(programs, tools, tmp_path / "out")
    assert exit_code(found) == 0, found.failures
    assert all(row.ratio is not None for row in table.read(tmp_path / "out").rows)


# By the command line


def test_tools_that_are_not_given_are_left_out_and_failures_said_at_the_end(
    command, programs, tmp_path, monkeypatch, wording
):
    monkeypatch.setenv("FAKE_FAULT", "stream-1:noisy")
    ended = command(
        "beside", "rounds", tmp_path / "out", "--programs", programs, "--rounds", 1, code=7
    )
    found = table.load(tmp_path / "out")
    assert set(found.left_out) == {"nvbandwidth", "BabelStream", "p2pBandwidthLatencyTest"}
    assert [one.code for one in found.failures] == [7]
    # In between is how far the rounds are.
    lines = ended.stderr.splitlines()
    wording(line for line in lines if line.startswith("fabricheck: ") or "left out" in line)


def test_bad_usage(command, programs, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    ended = command("beside", "rounds", tmp_path / "full", "--programs", programs, code=2)
    assert (ended.exit_code, "is not empty" in ended.stderr) == (2, True)
    ended = command("beside", "rounds", tmp_path / "out", "--programs", tmp_path, code=3)
    assert (ended.exit_code, "There is no program" in ended.stderr) == (3, True)
    ended = command(
        "beside",
        "rounds",
        tmp_path / "out",
        "--programs",
        programs,
        "--nvbandwidth",
        tmp_path / "none",
        code=3,
    )
    assert (ended.exit_code, "There is no program" in ended.stderr) == (3, True)


def test_a_program_that_can_not_be_executed_is_found_before_anything_starts(
    command, programs, tools, tmp_path
):
    late = tmp_path / "p2p-test"
    late.write_text("#!/bin/sh\n")
    late.chmod(0o644)
    ended = command(
        "beside", "rounds", tmp_path / "out", "--programs", programs, "--p2p-test", late, code=3
    )
    assert (ended.exit_code, f"{late} cannot be executed" in ended.stderr) == (3, True)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_can_not_be_made(command, programs, tmp_path):
    (tmp_path / "file").touch()
    ended = command("beside", "rounds", tmp_path / "file", "--programs", programs, code=3)
    assert (ended.exit_code, "cannot be created or read" in ended.stderr) == (3, True)


def test_no_folder_of_a_tool_gets_into_the_manifest(programs, few, tmp_path, wording):
    scripts = {
        "nvbandwidth": "#!/none/such\n",
        "p2p-test": '#!/bin/sh\necho "$0: no library" >&2; exit 127\n',
    }
    tools = {name: tmp_path / "tools" / name for name in scripts}
    (tmp_path / "tools").mkdir()
    for name, script in scripts.items():
        tools[name].write_text(script)
        tools[name].chmod(0o755)
    found = one_round(programs, tools, tmp_path / "out")
    wording(one.sentence for one in found.failures)
    assert str(tmp_path) not in (tmp_path / "out" / table.FILE).read_text()


def test_programs_that_can_not_tell_the_devices(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "facts-0:crash")
    with pytest.raises(FabricheckError, match="ended with exit code 1: the driver is gone"):
        one_round(programs, {}, tmp_path / "out")
    # So that the next try is not refused.
    assert list((tmp_path / "out").iterdir()) == []


def test_simulated_programs_are_refused(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAULT", "facts-0:simulated")
    with pytest.raises(FabricheckError, match="simulates") as caught:
        one_round(programs, {}, tmp_path / "out")
    assert caught.value.exit_code == 2


def test_the_manifest_is_strict(recorded, tmp_path):
    folder, _ = recorded
    content = json.loads((folder / table.FILE).read_text())
    for change in ({"format_version": 2}, {"more": 1}, {"devices": None}):
        (tmp_path / table.FILE).write_text(json.dumps(content | change))
        with pytest.raises(FabricheckError, match=r"rounds\.json: "):
            table.load(tmp_path)
    (tmp_path / table.FILE).write_text((folder / table.FILE).read_text()[:-40])
    with pytest.raises(FabricheckError, match=r"rounds\.json: "):
        table.load(tmp_path)
