"""Which partitions have a check of an experiment: those whose features imply one."""

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.site import partitions, sites
from session_builder import SessionBuilder

SITES = {
    "systems": [
        {
            "name": "here",
            "partitions": [
                {"name": "cpu", "environs": ["host"], "features": ["devices"]},
                {
                    "name": "gpu",
                    "environs": ["hip"],
                    "features": ["devices", "several_devices", "peers"],
                },
                {
                    "name": "sim",
                    "environs": ["host"],
                    "features": ["several_devices", "simulated"],
                },
                {"name": "without", "environs": ["hip"]},
            ],
        }
    ],
    "environments": [
        {"name": "host", "features": ["stream"]},
        {"name": "hip", "features": ["stream", "p2p"]},
    ],
}


def test_the_partitions_that_have_a_check_of_an_experiment():
    assert partitions.able(None) is None
    assert partitions.able(SITES) == {
        "E1": ("here:cpu", "here:gpu"),
        "E5": ("here:gpu", "here:sim (simulated)"),
        **{name: ("here:gpu",) for name in ("E7", "E8", "E13", "E14")},
    }


def test_site_files_that_can_not_be_read(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert partitions.known_sites(empty) is None
    (tmp_path / "site.py").write_text("raise OSError('no such machine')")
    assert partitions.known_sites(tmp_path) is None


def test_why_a_site_file_can_not_be_read_is_said_once(tmp_path, wording):
    with pytest.raises(NotFoundError, match="change to the root of the repository"):
        sites.gather(tmp_path / "none")
    (tmp_path / "bad.py").write_text("x = [")
    with pytest.raises(InvalidInputError) as error:
        sites.gather(tmp_path)
    wording(str(error.value))


def test_the_suites_own_checks_and_sites(monkeypatch):
    able = partitions.able(partitions.known_sites())
    assert {"local:host", "local:sim-mi250x (simulated)"} <= set(able["E1"])
    assert {"local:host", "local:sim-mi250x (simulated)"} <= set(able["E2"])
    for name in ("E3", "E4", "E7", "E8", "E13", "E14"):
        assert "local:sim-mi250x (simulated)" in able[name] and "local:host" not in able[name]
    assert {"local:host", "local:sim-mi250x (simulated)", "lumi:gpu"} <= set(able["E12"])


def covered(command, monkeypatch, sites):
    monkeypatch.setattr(partitions, "known_sites", lambda: sites)
    rows = command("results", "coverage", json=True).json["experiments"]
    return {row["experiment"]: row for row in rows}


def test_the_sentence_of_an_experiment_that_did_not_run(command, one_session, monkeypatch, wording):
    rows = covered(command, monkeypatch, SITES)
    assert rows["E5"]["partitions"] == ["here:gpu", "here:sim (simulated)"]
    assert rows["E12"]["partitions"] == [] and not rows["E12"]["has_check"]
    wording(rows[name]["sentence"] for name in ("E5", "E7", "E12"))
    rows = covered(command, monkeypatch, None)
    assert rows["E12"]["partitions"] is None and rows["E12"]["has_check"]
    wording([command("results", "coverage").stdout.splitlines()[1], rows["E12"]["sentence"]])


def test_what_was_only_simulated_is_counted_apart(command, results_folder, wording):
    simulated = factories.simulated_document()
    on_node = factories.case("on_node", partition="sim-mi250x")
    SessionBuilder(results_folder).add(factories.case(), simulated).add(on_node, simulated).write()
    wording(command("results", "coverage").stdout.splitlines()[-1])
    factories.write(factories.case_folder(results_folder, "stream_local") / "result.json")
    wording(command("results", "coverage").stdout.splitlines()[-1])
    row = command("results", "coverage", json=True).json["experiments"][0]
    assert {ran["where"]: ran["clocks"] for ran in row["ran"]} == {
        "local:host": ["measured"], "local:sim-mi250x": ["simulated"]
    }  # fmt: skip
    wording(row["sentence"])
