"""Coverage names what cannot be tested in a partition, with the reason; it never counts as run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import factories
from fabricheck.judge.coverage import experiments, features_of_devices
from fabricheck.site.partitions import known_sites
from session_builder import SessionBuilder

RECORDED = Path(__file__).resolve().parents[1] / "outputs" / "h200" / "two-devices-mpi"
SKIPPED = ("pingpong_in_order", "pingpong_shared_domain")
ONE_DEVICE = "it has one device; two are needed"


def h200(devices: int, name: str, experiment: str, **changes: object) -> dict:
    where = {"system": "h200", "partition": f"x{devices}", "environ": "cuda"}
    return factories.case(name, tags=[experiment], **where, **changes)


def covered(command, results_folder, *cases) -> dict:
    """Return the rows of a session as JSON."""
    SessionBuilder(results_folder).bare(cases).write()
    found = command("results", "coverage", json=True).json["experiments"]
    return {row["experiment"]: row for row in found}


def reasons(rows, where="h200:x2"):
    return {name: row["not_testable"].get(where, []) for name, row in rows.items()}


def test_one_device(command, results_folder, wording):
    rows = covered(command, results_folder, h200(1, "stream_local", "E1"))
    found = reasons(rows, "h200:x1")
    of_pairs = [f"E{number}" for number in (5, 6, 7, 8, 9, 10, 11, 12, 14, 15)]
    assert {name for name, why in found.items() if why == [ONE_DEVICE]} == set(of_pairs)
    assert found["E1"] == found["E2"] == found["E13"] == []
    assert len(found["E4"]) == 1 and len(found["E3"]) == 1
    wording(rows[name]["sentence"] for name in ("E3", "E4", "E5"))


def test_two_devices(command, results_folder, wording):
    cases = [
        h200(2, "managed_migration", "E3"),
        h200(2, "p2p_engine", "E7"),
        h200(2, "pingpong_right", "E6"),
        *(h200(2, name, "E6", result="skip") for name in SKIPPED),
        h200(2, "best_devices", "E14", result="skip"),
    ]
    rows = covered(command, results_folder, *cases)
    found = reasons(rows)
    assert {name for name, why in found.items() if why} == {
        *("E3", "E4", "E6", "E7", "E9", "E14", "E16", "E17")
    }
    [pingpong] = rows["E6"]["ran"]
    assert (pingpong["passed"], pingpong["skipped"]) == (1, 2)
    # Nothing of E14 ran: only the reason is said.
    assert rows["E14"]["ran"][0]["passed"] == 0
    wording(rows[name]["sentence"] for name in ("E6", "E7", "E14"))


def test_collectives_that_are_left_out(command, results_folder, wording):
    # As recorded: this MPI was asked for broadcasts only.
    recorded = json.loads((RECORDED / "mpi_pairs.json").read_text())
    assert recorded["skipped"][3]["operation"] == "reduce_scatter"
    recorded["skipped"][3]["reason"] = "the trial did not come to it"
    recorded |= {name: factories.document()[name] for name in ("started", "finished")}
    cases = [h200(2, "mpi_collectives", "E10"), h200(2, "mpi_pairs", "E9")]
    for case in cases:
        folder = results_folder / "output" / case["name"]
        case |= {"outputdir": str(folder)}
        factories.write(folder / "result.json", recorded)
    rows = covered(command, results_folder, *cases)
    [left_out] = reasons(rows)["E10"]
    assert left_out not in reasons(rows)["E9"]
    assert left_out in rows["E10"]["sentence"]
    wording(left_out)


def test_a_partition_that_has_everything_says_nothing(command, results_folder):
    case = factories.case(partition="sim-mi250x", environ="sim")
    rows = covered(command, results_folder, case, factories.case("two", result="skip"))
    assert not any(row["not_testable"] for row in rows.values())


def test_features_are_those_of_real_devices():
    found = features_of_devices(known_sites())
    assert {"h200:x1", "h200:x8"} <= found.keys()
    assert not any(where.startswith("local:") for where in found)
    assert features_of_devices(None) == {}


@pytest.mark.parametrize("row", experiments(), ids=lambda row: row.id)
def test_every_word_is_one_that_some_check_asks_for(row):
    known = {"nics", "several_devices", "several_domains", "several_nodes", "sdma", "xnack"}
    assert set(row.not_without) <= known
    assert all(row.not_without.values())
