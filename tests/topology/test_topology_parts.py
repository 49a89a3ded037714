"""The commands about nodes for a machine that has a part of its model's devices."""

from __future__ import annotations

import pytest

import inventories
import topology_texts as texts
from fabricheck.node import load
from fabricheck.results import document
from fabricheck.tools.topology.recording import record


def run(command, *arguments: str, code: int = 0) -> str:
    result = command(*arguments, code=code)
    return result.stdout if code in (0, 8) else result.stderr


@pytest.fixture
def machine(tmp_path):
    """Return the arguments that tell of a machine with two of eight H200."""
    file = tmp_path / "topo"
    file.write_text(texts.topo_m(load("h200").part(2)))
    return ["--from", str(file)]


def test_show(command):
    text = run(command, "node", "show", "h200", "--devices", "2")
    assert text.startswith("h200 (2 of 8 devices): Eight NVIDIA H200 on NVSwitch\n")
    assert "\nDevices: 2 x NVIDIA H200 (sm_90)\n" in text
    assert "  0: cores 0-31, memory peak unknown, devices 0, 1\n" in text
    assert "  right: devices 0,1, cores 0,16\n" in text
    assert "  parts: measured, host, " in text


def test_compare(command, machine, wording):
    wording(run(command, "node", "compare", "h200", "--devices", "2", *machine))
    wording(run(command, "node", "compare", "h200", "--devices", "4", *machine, code=8))
    wording(run(command, "node", "compare", "h200", *machine, code=8))


@pytest.fixture
def programs(tmp_path):
    """Return the folder of programs of a machine with two of eight H200."""

    def programs(last_core=31):
        told = inventories.composed(load("h200").part(2))
        told["domains"] = [{"index": 0, "cores": [*range(last_core + 1)], "memory_bytes": 1}]
        return inventories.programs(tmp_path / "programs", told)

    return programs


@pytest.mark.parametrize("last_core", [31, 127, 30])
def test_record(tmp_path, programs, last_core):
    found = record("h200", "cuda", programs(last_core), tmp_path / "result.json", devices=2)
    # The cores are those of another host.
    assert found["differences"] == []
    noted = any("differs from another host" in note for note in found["notes"])
    assert noted == (last_core == 30)
    assert (found["options"]["node"], found["options"]["devices"]) == ("h200", 2)
    assert found["notes"][0].startswith("compared with h200 (2 of 8 devices): devices, links, ")
    assert found["complete"]


def test_record_by_the_command(command, tmp_path, programs, wording):
    output = tmp_path / "result.json"
    asked = ["h200", "--devices", "2", "--runtime", "cuda", "--output", str(output),
             "--programs", str(programs())]  # fmt: skip
    run(command, "node", "record", *asked)
    assert document.load(output)["options"]["devices"] == 2
    asked[2] = "9"
    wording(run(command, "node", "record", *asked, code=2))
    assert document.load(output)["outcome"]["status"] == "usage"


def test_best_gpus(command, wording):
    assert run(command, "node", "best-gpus", "-k", "2", "h200", "--devices", "4") == "0,1\n"
    wording(run(command, "node", "best-gpus", "-k", "5", "h200", "--devices", "4", code=2))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["node", "show", "mi250x", "--devices", "2"], "mi250x.yaml does not state what"),
        (["node", "show", "h200", "--devices", "9"], "8 devices, and 9 were requested"),
        (["node", "best-gpus", "-k", "1", "--devices", "2"], "--devices requires a node model."),
    ],
)
def test_what_is_refused(command, arguments, sentence):
    assert sentence in run(command, *arguments, code=2)
