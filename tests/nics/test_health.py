"""`fabricheck node health` on folders in the place of the kernel's, with faults put into them."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import inventories
from driver_trees import DIES, Tree
from fabricheck.tools import look_begun
from fabricheck.tools.look import Look
from fabricheck.tools.topology import asking
from nic_trees import FRONTIER

PROGRAMS = "build/host/bin"


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A healthy node, and its name by a scheduler."""
    monkeypatch.setenv("SLURMD_NODENAME", "nid001001")
    return Tree(tmp_path)


@pytest.fixture
def look(command, tmp_path):
    """Look at the node, and return what the command wrote."""

    def look(*words, code=0, json=True):
        where = ("--root", tmp_path, "--programs", PROGRAMS, "--state", tmp_path / "look.json")
        return command("node", "health", "mi250x", *words, *where, code=code, json=json)

    return look


def test_a_healthy_node_is_a_line_that_says_what_was_looked_at(node, look, wording):
    wording(look(json=False).stdout)
    second = look().json
    assert second["since"] is not None and second["verdict"]["status"] == "PASS"
    assert not second["verdict"]["accepted"], "nothing was measured"
    assert second["counters"][DIES[0]]["uncorrected memory error"] == 0


#: A fault by what it does to the node after a first look: its rule, and its component.
FAULTS = {
    "memory": (lambda node: node.count(3, "umc", 2), "memory-errors", f"device 3 ({DIES[3]})"),
    "link": (lambda node: node.count(5, "xgmi_wafl", 1), "link-errors", f"device 5 ({DIES[5]})"),
    "lost": (lambda node: node.lose(6), "lost", f"device at {DIES[6]}"),
    "log": (
        lambda node: node.log(9_000_000, f"amdgpu {DIES[2]}: amdgpu: Uncorrectable error detected "
        "in UMC inst: 0, chip: 0, channel: 0"),
        "device-error", f"device 2 ({DIES[2]})",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_stays_and_would_drain(node, look, fault):
    put, rule, component = FAULTS[fault]
    look()
    put(node)
    for _ in range(2):  # it is not settled by being seen once
        verdict = look(code=12).json["verdict"]
        first = verdict["reasons"][0]
        assert (first["rule"], first["component"]) == (rule, component)
        assert verdict["drain"]["live"], verdict["drain"]
        assert verdict["drain"]["arguments"][:3] == ["scontrol", "update", "NodeName=nid001001"]


def test_a_line_from_before_the_first_look_is_told_by_the_next_one_too(node, look):
    put, rule, _ = FAULTS["log"]
    put(node)
    for _ in range(2):
        assert look(code=12).json["verdict"]["reasons"][0]["rule"] == rule


@pytest.mark.parametrize("number", [2, 3])
def test_an_error_to_report_if_it_comes_again_is_a_note_until_it_does(node, look, number):
    look()
    address = DIES[2].removesuffix(".0")
    text = f"NVRM: Xid (PCI:{address}): 74, NVLink: fatal error detected on link 4(0x10, 0x0)"
    for at in range(number):
        node.log(9_000_000 + at, text)
    found = look(code=0 if number < 3 else 12).json
    named = [each["component"] for each in found["verdict"]["reasons"]]
    assert named == ([] if number < 3 else [f"device 2 ({DIES[2]})"])
    assert sum(text in note for note in found["notes"]) == (2 if number < 3 else 0)


def test_what_is_repaired_is_forgotten_on_request(node, look):
    look()
    node.count(3, "umc", 2)
    look(code=12)
    assert look("--forget").json["verdict"]["status"] == "PASS"
    assert look().json["verdict"]["status"] == "PASS"


def hide(node, *numbers):
    """Hide NICs as a network namespace does: the bus shows them, with their drivers."""
    for number in numbers:
        device = node.root / "sys/bus/pci/devices" / FRONTIER[number][2]
        shutil.rmtree(device.resolve() / "net")
        shutil.rmtree(node.root / f"sys/class/cxi/cxi{number}")
        shutil.rmtree(node.root / f"sys/class/net/hsn{number}")
    (node.root / "sys/class/net/lo").mkdir(parents=True, exist_ok=True)


def test_a_namespace_that_hides_all_nics_is_no_fault_of_them(node, look, wording):
    """A container has a network of its own by default, which has no interface of a NIC."""
    hide(node, 0, 1, 2, 3)
    found = look(code=13).json["verdict"]
    assert found["status"] == "INCOMPLETE"
    (reason,) = found["reasons"]
    assert reason["rule"] == "setting"
    wording(reason["sentence"])
    # One that is off the bus is lost.
    (node.root / "sys/bus/pci/devices" / FRONTIER[0][2]).unlink()
    assert look(code=12).json["verdict"]["reasons"][0]["rule"] == "nics"


@pytest.mark.parametrize("numbers", [(1,), (0, 2)], ids=["one", "two"])
def test_a_namespace_that_hides_some_nics_is_no_fault_of_them(node, look, numbers, wording):
    """A plugin of Kubernetes moves some NICs of a node into the namespace of a pod."""
    hide(node, *numbers)
    found = look(code=13).json["verdict"]
    (reason,) = found["reasons"]
    assert (found["status"], reason["rule"]) == ("INCOMPLETE", "setting")
    assert all(FRONTIER[number][2] in reason["sentence"] for number in numbers)
    wording(reason["sentence"])


def test_a_nic_off_the_bus_is_lost_though_a_namespace_hides_others(node, look, wording):
    hide(node, 0, 1)
    (node.root / "sys/class/cxi/cxi2/device").unlink()
    shutil.rmtree(node.root / "sys/class/cxi/cxi2")
    shutil.rmtree(node.root / "sys/class/net/hsn2")
    (node.root / "sys/bus/pci/devices" / FRONTIER[2][2]).unlink()
    reasons = look(code=12).json["verdict"]["reasons"]
    assert [each["rule"] for each in reasons] == ["lost", "setting"]
    wording(each["sentence"] for each in reasons)


def test_a_link_that_is_gone_and_a_nic_that_is_down(node, look, wording):
    look()
    node.cut(0, 6)
    (node.root / "sys/class/cxi/cxi2/device/properties/link").write_text("0\n")
    reasons = look(code=12).json["verdict"]["reasons"]
    assert [(each["rule"], each["component"]) for each in reasons] == [
        ("lost", "pair 0-6"),
        ("nics", None),
    ]
    wording(each["sentence"] for each in reasons)


def test_corrected_errors_and_lines_of_programs_are_notes(node, look, wording):
    look()
    node.count(3, "umc", corrected=4)
    node.log(9_000_000, f"amdgpu {DIES[1]}: amdgpu: GPU reset begin!")
    wording(look().json["notes"])
    # A line of the log is new once.
    wording(look().json["notes"])


def test_few_lanes_count_under_load_only(node, look):
    for text, code in (("0", 0), ("80", 12)):
        (node.device(1) / "gpu_busy_percent").write_text(text)
        (node.device(1) / "current_link_width").write_text("8")
        look(code=None)
        result = look(code=code).json
    assert result["verdict"]["reasons"][0]["rule"] == "pcie-lanes"


def test_a_node_with_unlike_modes_is_no_fault_of_hardware(node, look, wording):
    for index in range(8):
        mode = "SPX" if index else "CPX"
        (node.device(index) / "current_compute_partition").write_text(mode)
    (reason,) = look(code=13).json["verdict"]["reasons"]
    assert reason["rule"] == "setting"
    wording(reason["sentence"])


def test_a_state_that_cannot_be_written_loses_no_result(node, command, tmp_path):
    (tmp_path / "file").write_text("")
    where = ("--root", tmp_path, "--programs", PROGRAMS, "--state", tmp_path / "file/look")
    ended = command("node", "health", *where)
    assert "no fault of 8 devices" in ended.stdout
    assert f"{tmp_path}/file" in ended.stderr


def test_a_damaged_state_is_refused_by_its_name(node, look, tmp_path):
    (tmp_path / "look.json").write_text("{}")
    assert f"{tmp_path}/look.json" in look(code=4).stderr


def test_the_command_that_drains_is_printed_on_evidence_alone(node, look):
    assert look("--drain-lines", json=False).stdout == ""
    node.count(3, "umc", 2)
    line = look("--drain-lines", json=False, code=12).stdout
    assert line.startswith("scontrol update NodeName=nid001001 State=DRAIN Reason=")
    (arguments,) = look("--drain-lines", code=12).json
    assert arguments[:4] == ["scontrol", "update", "NodeName=nid001001", "State=DRAIN"]


@pytest.mark.parametrize("named", ["nid001001", None])
def test_of_drivers_that_do_not_answer_the_node_is_named(command, tmp_path, monkeypatch, named):
    monkeypatch.setattr(look_begun, "LIMIT_S", 0.1)
    monkeypatch.setattr(asking, "_GRACE_S", 0)
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    if named is not None:
        monkeypatch.setenv("SLURMD_NODENAME", named)
    hangs = tmp_path / "inventory"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    where = ("--programs", tmp_path, "--state", tmp_path / "l")
    verdict = command("node", "health", *where, code=13, json=True).json["verdict"]
    assert verdict["node"] == (named or platform.node())
    assert [reason["rule"] for reason in verdict["reasons"]] == ["time-limit"]


def test_without_a_gpu_it_says_so(command, tmp_path, wording):
    ended = command("node", "health", "--programs", PROGRAMS, "--state", tmp_path / "l", code=3)
    wording(ended.stderr)


def test_without_a_gpu_before_none_is_lost(command, tmp_path, wording):
    where = ("--programs", PROGRAMS, "--state", tmp_path / "l")
    command("node", "health", "mi250x", *where, code=12)
    ended = command("node", "health", *where, code=3)
    wording(ended.stderr)


@pytest.mark.parametrize(("later_s", "passed_s"), [(0.25, 0.25), (90.0, 90.0), (-90.0, 0.0)])
def test_the_time_since_a_look_before_is_what_passed_and_never_less_than_none(later_s, passed_s):
    before = {"at": "2026-11-25T12:00:00.000+00:00"}
    now = datetime.fromisoformat(before["at"]) + timedelta(seconds=later_s)
    description = inventories.kept("mi250x") | {"at": now.isoformat()}
    assert Look(description, None, None, before).document["duration_s"] == passed_s


#: What a look does without: each takes as long to import as the drivers take to answer.
HEAVY = (
    "reframe",
    "polars",
    "altair",
    "fabricheck.rfm",
    "fabricheck.references",
    "fabricheck.results.document",
    "fabricheck.results.reading",
    "fabricheck.results.table",
    "fabricheck.site.software",
    "fabricheck.node.overlay",
)

#: Looks, and prints what is loaded before the drivers are asked, and at the end.
LOADED = """
import json, sys
from typer.testing import CliRunner
from fabricheck.cli import app
from fabricheck.tools import look_begun
loaded = []
read = look_begun.read
def noting(file):
    loaded.append([*sys.modules])
    return read(file)
look_begun.read = noting
done = CliRunner().invoke(app, sys.argv[1:])
assert done.exit_code == 0, done.output
print(json.dumps([*loaded, [*sys.modules]]))
"""


def test_the_drivers_are_asked_before_much_is_imported_and_a_look_imports_little(node, tmp_path):
    where = ("--root", tmp_path, "--programs", PROGRAMS, "--state", tmp_path / "look.json")
    command = ["node", "health", "mi250x", *map(str, where)]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command], capture_output=True, text=True, check=True
    )
    at_the_start, at_the_end = json.loads(done.stdout)
    late = ("fabricheck.judge", "fabricheck.node", "fabricheck.results", "yaml")
    assert [name for name in at_the_start if name.startswith(late)] == []
    assert [name for name in HEAVY if name in at_the_end] == []


@pytest.mark.parametrize(
    ("user", "runtime", "folder"),
    [
        (0, "/tmp/of-root", "/run"),
        (1000, "/run/user/1000", "/run/user/1000"),
        (1000, "", "~/.cache"),
    ],
)
def test_a_look_lies_where_a_restart_forgets_it_and_its_user_may_write(
    monkeypatch, user, runtime, folder
):
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    assert look_begun.default_file().parent == Path(folder).expanduser() / "fabricheck"
