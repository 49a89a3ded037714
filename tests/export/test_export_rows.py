"""What the table has of sessions: a row for each value, and for each check and node without one."""

from pathlib import Path

import pytest
from exported import of, rows

import factories
from fabricheck.results import requested_nodes
from fabricheck.results.folder import ResultsFolder, documents_of
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from session_builder import SessionBuilder, failed, without_limits


def judged(value, reference, result="pass"):
    """Build what ReFrame records of a metric whose limit is 10 % below its reference."""
    return [value, reference, -0.1, None, "GB/s", result]


RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"


@pytest.fixture(scope="module")
def recorded(command):
    """The rows of a session of two H200, with its samples."""
    found, said = rows(command, RECORDED, "--samples")
    return found, said


@pytest.mark.slow
def test_a_row_stands_for_each_check_metric_series_and_sample(recorded, wording):
    found, said = recorded
    folder = ResultsFolder(RECORDED)
    session = folder.latest()
    documents = [entry.document for entry in documents_of(session) if entry.document]
    series = [one for document in documents for one in document["series"]]
    assert len(of("check", found)) == len(session.cases) == 27
    assert len(of("metric", found)) == sum(len(case.values) for case in session.cases)
    assert len(of("series", found)) == len(series) > 1000
    assert len(of("sample", found)) == sum(len(one["samples"]) for one in series)
    assert {row["session"] for row in found} == {session.uuid}
    counted = {kind: len(of(kind, found)) for kind in ("check", "metric", "series", "sample")}
    assert counted == {"check": 27, "metric": 125, "series": 1355, "sample": 9260}
    wording(said)


def test_a_metric_stands_beside_what_it_is_of(recorded):
    [case] = [one for one in ResultsFolder(RECORDED).latest().cases if one.name == "stream_local"]
    value, unit = case.values["copy_worst"]
    [row] = [
        one
        for one in of("metric", recorded[0])
        if (one["check"], one["metric"]) == ("stream_local", "copy_worst")
    ]
    assert (float(row["value"]), row["unit"], row["better"]) == (value, unit, "higher")
    assert not {"reference", "least", "most"} & row.keys() and row["judged"] == "report-only"
    where = [row[name] for name in ("system", "partition", "environment", "node", "experiment")]
    assert where == ["h200", "x2", "cuda", "vm", "E1"]
    ran = [row[name] for name in ("clock", "runtime", "driver", "commit", "session_start")]
    assert ran == ["measured", "cuda", "580.159.04", "deeb6d8", "2026-11-21T22:52:50.375Z"]


def test_a_metric_without_a_limit_has_no_reference_and_did_not_pass(recorded):
    rows = of("metric", recorded[0])
    free = [row for row in rows if not {"least", "most"} & row.keys()]
    limited = [row for row in rows if {"least", "most"} & row.keys()]
    assert free and limited
    assert {row["judged"] for row in free} == {"report-only"}
    assert not any("reference" in row for row in free)
    assert {row["judged"] for row in limited} == {"pass"}
    assert all("reference" in row for row in limited)


def test_a_series_has_its_ends_its_class_and_its_spread(recorded):
    pairs = [row for row in of("series", recorded[0]) if row.get("operation") == "engine"]
    assert {(row["devices"], row["link_class"]) for row in pairs} == {
        ("[0 1]", "switch18"),
        ("[1 0]", "switch18"),
    }
    for row in pairs:
        assert row["source_memory"] == "device" and row["destination_memory"] == "peer"
        assert row["source_device"] == row["device"] != row["destination_device"]
        assert float(row["ci_low"]) <= float(row["value"]) <= float(row["ci_high"])
        assert row["errors"] == "0" and int(row["bytes_checked"]) > 0
        assert row["pci_address"] == f"0000:00:0{6 + int(row['device'])}.0"
    samples = [row for row in of("sample", recorded[0]) if row.get("operation") == "engine"]
    assert [row["sample"] for row in samples[: int(pairs[0]["n"])]] == list(
        map(str, range(int(pairs[0]["n"])))
    )
    # Two devices that work at once, each in its own memory, are no pair.
    concurrent = [row for row in of("series", recorded[0]) if row["experiment"] == "E5"]
    assert concurrent and not any("link_class" in row for row in concurrent)


def test_failed_skipped_and_lost_checks_have_a_row_that_says_why(command, results_folder, wording):
    slow = {"local:host:copy_worst": judged(1.5, 2.0, result="fail")}
    missed = failed("performance", "too\nslow", perfvalues=slow)
    session = SessionBuilder(results_folder)
    session.add(factories.case("missed", **missed), factories.document())
    session.add(factories.case("broken", **failed("run", "no program")))
    session.add(factories.case("left_out", result="skip", fail_reason="needs two devices"))
    session.add(factories.case("damaged"), factories.document())
    session.write()
    damaged = factories.case_folder(results_folder, "damaged") / "result.json"
    damaged.write_text(damaged.read_text()[:-40])
    found, said = rows(command, code=4)
    checks = {row["check"]: row for row in of("check", found)}
    assert {name: (row["result"], row.get("reason")) for name, row in checks.items()} == {
        "missed": ("fail", "too slow"),
        "broken": ("fail", "no program"),
        "left_out": ("skip", "needs two devices"),
        "damaged": ("pass", checks["damaged"]["reason"]),
    }
    assert checks["missed"]["phase"] == "performance" and "cut off" in checks["damaged"]["reason"]
    # Nothing tells where the one without a document ran but those beside it.
    assert checks["broken"]["node"] == "node1" and "clock" not in checks["broken"]
    assert [row["check"] for row in of("series", found)] == ["missed"]
    [metric] = of("metric", found)
    limits = [metric.get(name) for name in ("value", "reference", "least", "most", "judged")]
    assert limits == ["1.5", "2.0", "1.8", None, "fail"]
    cut, *others = said.splitlines()
    assert f"{damaged}: is not JSON, or cut off" in cut
    wording(others)


def test_a_metric_that_is_not_finite_has_no_value(command, results_folder):
    recorded = without_limits({"copy_worst": float("inf"), "add_worst": 2.0})
    SessionBuilder(results_folder).add(
        factories.case(perfvalues=recorded), factories.document()
    ).write()
    found, _ = rows(command)
    assert [row.get("value") for row in of("metric", found)] == [None, "2.0"]


def test_all_sessions_of_a_folder_are_there_once_first_one_first(command, results_folder):
    for number in range(3):
        start = factories.SESSION_START + 3600 * number
        started = f"2026-01-02T0{3 + number}:04:05Z"
        content = factories.document(started=started, finished=started)
        session = SessionBuilder(results_folder, number, start=start)
        session.add(factories.case(f"c{number}"), content).write()
    assert [row["session_id"] for row in of("check", rows(command)[0])] == ["run-2"]
    found, said = rows(command, "--all")
    assert [row["session_id"] for row in of("check", found)] == ["run-0", "run-1", "run-2"]
    assert len(of("series", found)) == 3 and "3 sessions" in said
    twice, _ = rows(command, "run-1", "1", results_folder)
    assert [row["session_id"] for row in of("check", twice)] == ["run-1", "run-2"]


def test_a_report_that_can_not_be_read_is_told_and_the_others_are_written(
    command, results_folder, wording
):
    SessionBuilder(results_folder).add(factories.case(), factories.document()).write()
    (results_folder / "reports" / "run-9.json").write_text('{"session_info": ')
    found, said = rows(command, "--all", code=4)
    assert len(of("check", found)) == 1
    wording(said)


def test_a_folder_without_a_session_costs_the_others_no_row(
    command, results_folder, tmp_path, wording
):
    SessionBuilder(results_folder).add(factories.case()).write()
    early = tmp_path / "early"
    early.mkdir()
    found, said = rows(command, early, results_folder, code=4)
    assert [row["check"] for row in of("check", found)] == ["stream_local"]
    wording(said)
    command("results", "export", early, early, code=3)


def test_what_a_killed_session_left_is_there_with_an_unknown_result(
    command, results_folder, wording
):
    SessionBuilder(results_folder).add(factories.case(), factories.document()).write()
    folder = results_folder / "stage" / "20260102T030400-7" / "local" / "host" / "host" / "killed"
    factories.write(folder / "result.json.partial", factories.killed_document())
    found, said = rows(command, "--all")
    killed = [row for row in found if row["check"] == "killed"]
    assert [(row["row_type"], row.get("result"), row["complete"]) for row in killed] == [
        ("check", "unknown", "false"),
        ("series", "unknown", "false"),
    ]
    assert "session" not in killed[0]
    wording(said)


def test_documents_outside_of_a_session_have_their_folder_as_check(command, tmp_path):
    factories.write(tmp_path / "loose" / "one" / "result.json", factories.simulated_document())
    found, _ = rows(command, tmp_path / "loose")
    assert [(row["row_type"], row["check"], row["clock"]) for row in found] == [
        ("series", "one", "simulated")
    ]


def test_repetitions_have_one_name_and_a_number(command, results_folder):
    names = [f"stream_local %repeat_no={number}" for number in (0, 1)]
    session = SessionBuilder(results_folder)
    for number, name in enumerate(names):
        case = factories.case(f"stream_local_{number}", display_name=name)
        session.add(case, factories.document())
    session.write()
    checks = of("check", rows(command)[0])
    assert [(row["check"], row["repetition"]) for row in checks] == [
        ("stream_local", "0"),
        ("stream_local", "1"),
    ]


def requested(folder, partition, **nodes):
    folder.mkdir(parents=True, exist_ok=True)
    known = {name: RequestedNode(**fields) for name, fields in nodes.items()}
    started = "2026-01-02T03:00:00Z"
    content = RequestedNodes(partition=partition, started=started, nodes=known)
    requested_nodes.write(folder / requested_nodes.NAME, content)


def test_distributed_cases_are_told_apart_by_the_node_and_a_lost_node_has_a_row(
    command, results_folder
):
    SessionBuilder(results_folder).copies({"node1": 10.0, "node2": 5.0, "node3": None}).write()
    down = {"state": "DOWN", "because": "Not responding"}
    requested(results_folder / "output", "cluster:gpu",
          node1={}, node2={}, node3={}, node4=down)  # fmt: skip
    found, _ = rows(command)
    metrics = of("metric", found)
    assert [(row["node"], row["value"], row["judged"]) for row in metrics] == [
        ("node1", "10.0", "pass"),
        ("node2", "5.0", "fail"),
    ]
    assert {row["node"]: row["result"] for row in of("check", found)} == {
        "node1": "pass", "node2": "fail", "node3": "fail"
    }  # fmt: skip
    nodes = {row["node"]: (row["result"], row.get("reason")) for row in of("node", found)}
    assert nodes == {
        "node1": ("present", None),
        "node2": ("present", None),
        "node3": ("present", None),
        "node4": ("lost", "DOWN (Not responding)"),
    }


def test_a_killed_session_of_every_node_has_a_row_for_each(command, results_folder):
    name = "20260102T030400-7"
    folder = results_folder / "stage" / name / "cluster" / "queue" / "sim" / "stream_0a1b2c3d"
    factories.write(folder / "result.json")
    (folder / "rfm_job.sh").write_text("#!/bin/bash\n#SBATCH --nodelist=node1\n")
    requested(results_folder / "output" / name, "cluster:gpu", node1={}, node2={"state": "DOWN"})
    found, _ = rows(command, name, code=4)
    assert {row["node"]: row["result"] for row in of("node", found)} == {
        "node1": "present", "node2": "lost"
    }  # fmt: skip


def test_a_job_over_many_nodes_has_the_sessions_of_each_and_its_lost_ones(command, results_folder):
    job = results_folder / "every-node" / "71"
    for number, node in enumerate(("node1", "node2")):
        host = factories.document()["host"] | {"scheduler_node": node}
        content = factories.document(host=host)
        SessionBuilder(job / node, number).add(factories.case(), content).write()
    hung = {"results": "node3", "how_ended": "It did not answer in 600 s"}
    requested(job, None, node1={"results": "node1"}, node2={"results": "node2"}, node3=hung)
    found, _ = rows(command, job)
    assert [row["node"] for row in of("check", found)] == ["node1", "node2"]
    lost = of("node", found)[-1]
    assert (lost["node"], lost["result"]) == ("node3", "lost")
    assert lost["reason"] == "It did not answer in 600 s"
    # It began last, and is there once among all.
    for arguments in ((), ("71",), ("--all",), (results_folder,)):
        assert rows(command, *arguments)[0] == found
    SessionBuilder(results_folder, 7).add(factories.case("later")).write()
    assert [row["check"] for row in rows(command)[0]] == ["later"]
    assert len(rows(command, "--all")[0]) == len(found) + 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("no-such-session",), 3, "There is no session 'no-such-session'"),
        (("--all", "run-0"), 2, "--all applies to results folders; run-0 is not one."),
        (("--output", "table.xlsx"), 2, "table.xlsx: the format is unknown"),
        (("--all",), 3, "There is no session in"),
    ],
)
def test_what_can_not_be_exported_is_one_sentence(
    command, results_folder, arguments, code, sentence
):
    result = command("results", "export", *arguments, code=code)
    assert sentence in result.stderr


def test_a_row_stands_for_the_host_and_each_device_before_and_after_a_program(
    command, results_folder
):
    before, after = (
        factories.snapshot(
            [
                factories.device_state(0, throttle=reasons, links=None, processes=None),
                factories.device_state(1, memory_errors={"corrected": 2, "uncorrected": None}),
            ],
            load_1min=load,
            free_bytes={"0": 5, "1": 3},
        )
        for reasons, load in (([], 0.5), (["power", "thermal"], 7.5))
    )
    after["devices"][1]["processes"] = [factories.process()]
    busy = {"pid": 12, "user": None, "command": "bash", "cores": 1.5}
    after["host"]["others"] |= {"busy_cores": 1.6, "processes": [busy]}
    document = factories.document(state=factories.state() | {"before": before, "after": after})
    SessionBuilder(results_folder).add(factories.case("a"), document).write()
    found, said = rows(command, results_folder)
    states = of("state", found)
    assert [(one["moment"], one.get("device")) for one in states] == [
        ("before", None), ("before", "0"), ("before", "1"),
        ("after", None), ("after", "0"), ("after", "1"),
    ]  # fmt: skip
    host, first, second = states[3:]
    assert (host["load_1min"], host["cores"], host["busy_cores"]) == ("7.5", "16", "1.6")
    assert (host["free_bytes"], host["free_bytes_least"]) == ("8", "3")
    assert (host["processes"], second["processes"]) == ("12 ? bash", "4711 ada copy_loop")
    assert (first.get("processes"), states[2]["processes"]) == (None, "none")
    assert (first["throttle"], second["throttle"]) == ("power thermal", "none")
    assert (first.get("links"), second["links"], second["links_up"]) == (None, "18", "18")
    errors = ("memory_errors_corrected", "memory_errors_uncorrected")
    assert [second.get(name) for name in errors] == ["2", None]
    assert (second["pcie_width"], second["pcie_gt_per_s"]) == ("16", "32.0")
    assert (second["firmware"], second["check"]) == ("inforom G520.0282.02.02", "a")
    assert (second["throttled_power_s"], second.get("throttled_hardware_s")) == ("0.0", "0.0")
    assert ", 6 states." in said


def test_a_run_without_its_end_has_the_state_before_alone(command, results_folder):
    document = factories.document(state=factories.state() | {"after": None})
    SessionBuilder(results_folder).add(factories.case("a"), document).write()
    assert [one["moment"] for one in of("state", rows(command, results_folder)[0])] == ["before"]
