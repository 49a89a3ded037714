"""`fabricheck network fabric`: what it prints, and how it ends."""

from __future__ import annotations

import json
import random

import pytest

import factories
from fabric.drawn_fabrics import NICS, Faults, System


@pytest.fixture
def run(command, tmp_path):
    """Write the document of a drawn system, and run the command on it."""

    def run(faults, *arguments, nodes=16):
        path = tmp_path / "result.json"
        measured = System(nodes, random.Random(1)).measured(faults)
        path.write_text(json.dumps(measured))
        done = command("network", "fabric", path, *arguments, code=None)
        return done.exit_code, done.stdout

    return run


def low_nics(count):
    faults = Faults()
    for number in range(count):
        faults.nic(number // 2 * 4, number % 2, 0.9)
    return faults


def test_a_low_nic_is_in_the_table_and_ends_with_12(run):
    code, out = run(low_nics(1))
    assert code == 12
    assert "16 nodes, 64 NICs, " in out
    assert "nid000000:cxi0" in out
    assert "Nodes: nid000000" in out


def test_a_healthy_system_ends_with_0(run, wording):
    code, out = run(Faults())
    assert code == 0
    nothing = out.splitlines()[2]
    wording(nothing)
    _, out = run(Faults(), "--json")
    (found,) = json.loads(out)
    assert found["named"] == found["switches"] == []


def test_a_low_pair_ends_with_13(run):
    code, out = run(Faults(pairs={frozenset((2, 11)): 0.7}))
    assert code == 13
    assert "neither node is named" in out


def test_much_that_is_low_fits_on_a_screen_and_json_has_all(run):
    faults = low_nics(24)
    faults.pairs = {frozenset((node, node + 20)): 0.6 for node in range(1, 24, 4)}
    code, out = run(faults, nodes=48)
    assert code == 12
    assert len(out.splitlines()) < 40
    assert "and 8 more: --json" in out
    code, out = run(faults, "--json", nodes=48)
    (found,) = json.loads(out)
    assert len(found["named"]) == 24
    assert {one["nic"] for one in found["named"]} == {f"cxi{k}" for k in range(NICS // 2)}


def test_a_document_without_rounds_ends_with_3(command, tmp_path):
    path = factories.write(tmp_path / "result.json")
    command("network", "fabric", path, code=3)


def test_a_damaged_document_is_said_and_ends_with_4(command, tmp_path):
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps(System(4, random.Random(1)).measured(Faults()))[:-9])
    done = command("network", "fabric", damaged, code=4)
    assert "damaged.json: is not JSON, or cut off" in done.stderr


@pytest.mark.parametrize("column", ["back", "together_out", "latency"])
def test_a_round_without_a_number_of_one_of_its_pairs_is_refused(
    command, tmp_path, column, wording
):
    measured = System(4, random.Random(1)).measured(Faults())
    measured["rounds"]["rounds"][1][column].pop()
    path = factories.write(tmp_path / "result.json", measured)
    done = command("network", "fabric", path, code=4)
    wording(done.stderr)


def test_a_damaged_document_beside_a_good_one_is_said_too(command, tmp_path):
    good = json.dumps(System(8, random.Random(1)).measured(Faults()))
    for name, text in (("a", good), ("b", good[:-9])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(text)
    done = command("network", "fabric", tmp_path, code=4)
    assert "8 nodes, 32 NICs" in done.stdout
    assert "b/result.json: is not JSON, or cut off" in done.stderr


def test_a_run_of_fabric_without_rounds_says_why(command, tmp_path, wording):
    content = factories.document(series=[])
    content["program"]["name"] = "fabric"
    content["outcome"].update(status="unsupported", exit_code=3, message="fabric needs two nodes")
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**content, "complete": False}))
    done = command("network", "fabric", path, code=3)
    wording(done.stderr)


def test_a_document_of_another_program_has_no_rounds(command, tmp_path, wording):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(factories.document()))
    done = command("network", "fabric", path, code=3)
    wording(done.stderr)
