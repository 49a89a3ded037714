"""Coverage claims what a session shows, and nothing else."""

import pytest

import factories
from fabricheck.core import amounts
from fabricheck.judge import coverage
from fabricheck.site import partitions
from session_builder import SessionBuilder


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    """A site whose features imply checks of E1, E3 and E5."""
    features = ["devices", "several_devices", "managed_memory"]
    partition = {"name": "host", "environs": ["host"], "features": features}
    environment = {"name": "host", "features": ["stream", "managed"]}
    systems = [{"name": "local", "partitions": [partition]}]
    site = {"systems": systems, "environments": [environment]}
    monkeypatch.setattr(partitions, "known_sites", lambda: site)


def rows(command, *arguments):
    result = command("results", "coverage", *arguments, json=True)
    found = result.json["experiments"]
    return {row["experiment"]: row for row in found}


def last_line(command):
    return command("results", "coverage").stdout.splitlines()[-1]


def test_the_experiments_are_e1_to_e17():
    found = coverage.experiments()
    assert [row.id for row in found] == [f"E{number}" for number in range(1, 18)]
    assert all(row.title and row.needs and row.get for row in found)
    runtimes = {"rocm", "cuda", "host", "sim"}
    assert all(set(row.not_on) <= runtimes and all(row.not_on.values()) for row in found)


def test_before_any_session(command, results_folder, wording):
    found = rows(command)
    assert not any(row["ran"] for row in found.values())
    assert found["E1"]["why_not"] == "no session yet"
    assert found["E2"]["why_not"] == "no check in this version"
    wording([found["E1"]["sentence"], found["E2"]["sentence"], last_line(command)])


def test_no_such_session(command, results_folder):
    result = command("results", "coverage", "5", code=3)
    assert "no session '5'" in result.stderr


def test_a_session(command, one_session, wording):
    found = rows(command)
    assert found["E1"]["ran"] == [
        {
            "where": "local:host",
            "node": None,
            "clocks": ["measured"],
            "runtimes": ["host"],
            "programs": ["stream"],
            "series": 1,
            "comparisons": 0,
            "cases": 1,
            "passed": 1,
            "failed": 0,
            "skipped": 0,
            "without_document": 0,
        }
    ]
    assert found["E1"]["why_not"] is None
    assert found["E3"]["ran"] == [] and found["E3"]["why_not"]
    assert found["E5"]["why_not"].startswith("not in session run-0")
    assert found["E15"]["has_check"] is False
    wording([found["E1"]["sentence"], found["E3"]["sentence"], last_line(command)])


def test_what_was_simulated_and_measured_is_not_only_simulated(command, results_folder, wording):
    simulated = factories.simulated_document(series=[factories.series(host_clock=None)])
    only = simulated | {"series": [one | {"experiment": "E5"} for one in simulated["series"]]}
    session = SessionBuilder(results_folder).add(factories.case(), factories.document())
    session.add(factories.case("simulated", partition="sim-mi250x", tags=["E1"]), simulated)
    session.add(factories.case("alone", partition="sim-mi250x", tags=["E5"]), only).write()
    assert {clock for one in rows(command)["E1"]["ran"] for clock in one["clocks"]} == {
        "measured", "simulated",
    }  # fmt: skip
    wording(last_line(command))


def test_a_check_that_failed_before_measuring_did_not_measure(command, results_folder, wording):
    cases = [factories.case(result="fail"), factories.case("two", result="skip")]
    SessionBuilder(results_folder).bare(cases).write()
    row = rows(command)["E1"]
    [ran] = row["ran"]
    assert (ran["series"], ran["failed"], ran["skipped"]) == (0, 1, 1)
    assert (ran["clocks"], ran["without_document"]) == ([], 1)
    wording([row["sentence"], last_line(command)])


def test_series_count_for_their_experiment_whatever_the_tags(command, results_folder):
    SessionBuilder(results_folder).add(
        factories.case(tags=["smoke"]),
        factories.document(series=[factories.series(experiment="E5")]),
    ).write()
    found = rows(command)
    assert found["E5"]["ran"][0]["series"] == 1
    assert found["E1"]["ran"] == []


def test_a_comparison_with_the_node_model_counts(command, results_folder, wording):
    SessionBuilder(results_folder).add(
        factories.case("node_topology", tags=["E13"]),
        factories.simulated_document(series=[], differences=["Pair 0-6: no direct link."]),
    ).write()
    row = rows(command)["E13"]
    [ran] = row["ran"]
    assert (ran["comparisons"], ran["series"], ran["clocks"]) == (1, 0, ["simulated"])
    wording([row["sentence"], last_line(command)])


def test_a_comparison_of_nics_is_one_of_e16(command, results_folder):
    document = factories.simulated_document(series=[], differences=[])
    document["program"]["name"] = "nics"
    case = factories.case("nic_inventory", tags=["E16"])
    SessionBuilder(results_folder).add(case, document).write()
    assert [ran["comparisons"] for ran in rows(command)["E16"]["ran"]] == [1]
    assert rows(command)["E13"]["ran"] == []


def test_the_best_devices_are_found_from_the_series_of_another_experiment(command, results_folder):
    session = SessionBuilder(results_folder)
    for name, experiment in (("best_devices", "E8"), ("other", "E1")):
        document = factories.document(series=[factories.series(experiment=experiment)] * 2)
        session.add(factories.case(name, tags=["E14"]), document)
    session.write()
    found = rows(command)
    assert (found["E14"]["ran"][0]["series"], found["E14"]["ran"][0]["cases"]) == (2, 2)
    assert (found["E8"]["ran"][0]["series"], found["E8"]["ran"][0]["cases"]) == (2, 1)


def test_two_partitions_are_two_rows(command, one_session):
    cases = [factories.case(), factories.case("two", partition="gpu", result="fail")]
    SessionBuilder(one_session).bare(cases).write()
    assert [ran["where"] for ran in rows(command)["E1"]["ran"]] == ["local:host", "local:gpu"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (2094.123, "2094.1"), (123456.7, "123457"), (9.9, "9.9000"), (0.001, "0.001")],
)
def test_numbers(value, text):
    assert amounts.number(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 B"), (1000, "1000 B"), (1024, "1 KiB"), (1 << 33, "8 GiB"), (1 << 60, "1048576 TiB")],
)
def test_sizes(count, text):
    assert amounts.size(count) == text


def test_a_tool_that_measures_an_experiment_too(command, results_folder, wording):
    def pair(program, **more):
        host = factories.place("host-pageable", None)
        moved = {"bytes_moved": 1 << 28, "bytes_counted": "once", "block_size": None}
        kind = {"experiment": "E9", "engine": "mpi", "operation": "bandwidth"}
        ends = {"ranks": [0, 1], "device_set": [], "device": None, "datatype": "byte"}
        one = factories.series(
            [10.0], source=host, destination=host, direction="one-way", **ends, **moved, **kind
        )
        one["verification"] |= more.pop("verification", {})
        name = factories.document()["program"] | {"name": program}
        return factories.document(series=[one], program=name, **more)

    place = {"cores": [0, 1], "numa_domain": 0, "memory_domain": 0}
    seen = {"host": "node1", "visible_devices": [], "device": None}
    ranks = [{"rank": rank, **place, **seen} for rank in (0, 1)]
    versions = factories.document()["versions"] | {"mpi": "MPICH 5"}
    found = rows(command)["E9"]
    assert found["missing_tool"] == "OSU Micro-Benchmarks"
    wording(found["sentence"])
    case = factories.case("pairs", tags=["E9"])
    SessionBuilder(results_folder).add(case, pair("mpi", ranks=ranks, versions=versions)).write()
    wording(rows(command)["E9"]["sentence"])
    document = pair("osu", verification={"by": "tool"}, options={"tool": "osu"})
    SessionBuilder(results_folder).add(case, document).write()
    assert rows(command)["E9"]["missing_tool"] is None
    assert rows(command)["E10"]["missing_tool"] == "OSU Micro-Benchmarks"
    assert rows(command)["E1"]["missing_tool"] is None
