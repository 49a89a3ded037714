"""The page of several nodes: all of them at one glance, and no two of them together."""

import csv
import io

import pytest
from html_page import Page, faults

import check_rows
import factories
from fabricheck.core.errors import NotFoundError
from fabricheck.report import contents, nodes, page
from fabricheck.results import reading
from fabricheck.results.observed import Observed
from fabricheck.results.run_report import MetricResult
from fabricheck.results.session import Case
from session_builder import PARTITION, SessionBuilder, document_of, good_case, write_job

#: node2 is slow, node3 was lost; node4 is asked for in nodes.json and never answered.
THREE = {"node1": 10.0, "node2": 7.0, "node3": None}
STATES = {"node4": {"state": "DOWN", "because": "no power"}}


@pytest.fixture
def session(results_folder, one_figure):
    SessionBuilder(results_folder).copies(THREE).write()
    requested = {node: STATES.get(node, {}) for node in (*THREE, "node4")}
    content = {"partition": PARTITION, "started": "2026-01-02T03:04:00Z"}
    factories.write(
        results_folder / "output" / "nodes.json",
        {"form": "fabricheck-nodes-1", "nodes": requested} | content,
    )
    return results_folder


def statuses(found):
    return {row.node: row.verdict.status for row in found.nodes.rows}


def test_every_node_has_its_word_and_the_one_that_is_down_too(session):
    found = contents.page_contents(reading.read())
    assert list(statuses(found).items()) == [
        ("node2", "PERF-FAIL"),
        ("node3", "INCOMPLETE"),
        ("node4", "INCOMPLETE"),
        ("node1", "PASS"),
    ]
    says = {row.node: row.says for row in found.nodes.rows}
    assert "DOWN (no power)" in says["node4"]
    assert says["node1"] == "1 of 1 check passed"
    assert found.status == "PERF-FAIL"


def test_each_node_has_sections_of_its_own(session):
    found = contents.page_contents(reading.read())
    assert [(part.name, part.verdict.status) for part in found.parts] == [
        ("cluster:gpu (node2)", "PERF-FAIL"),
        ("cluster:gpu (node3)", "INCOMPLETE"),
        ("cluster:gpu (node1)", "PASS"),
    ]
    # Each has the one value that is its own.
    assert [[one.value for one in part.missed] for part in found.parts] == [[7.0], [], []]
    assert [len(part.observed.points) for part in found.parts] == [1, 0, 1]


def test_the_page_and_its_summary_name_them(session):
    files = page.files(contents.page_contents(reading.read()))
    shown = Page(files["index.html"])
    assert list(faults(shown)) == []
    text = shown.text()
    assert (
        "4 nodes : 1 provisional PERF-FAIL (node2), 2 INCOMPLETE (node[3-4]), 1 provisional PASS"
        in text.replace("nodes:", "nodes :")
    )
    assert "cluster:gpu on node1 by the host runtime: 1 series" in text
    (grid,) = [one["text"] for one in shown.all("ul") if one.get("class") == "grid"]
    assert grid.split("\n")[1:-1] == [
        "node2 provisional PERF-FAIL", "node3 INCOMPLETE", "node4 INCOMPLETE",
        "node1 provisional PASS",
    ]  # fmt: skip


def test_a_job_over_many_nodes_is_one_page(results_folder, one_figure):
    values = {"node1": 10.0, "node2": 7.0, "node3": 10.0, "node4": None}
    job = write_job(results_folder, values, **STATES)
    for what in (str(job), "17", "latest"):
        results = reading.read([what])
        assert (results.title, page.folder(results).parent.parent.name) == (
            "job 17 over 4 nodes", "17",
        )  # fmt: skip
    found = contents.page_contents(results)
    assert statuses(found) == {
        "node1": "PASS", "node2": "PERF-FAIL", "node3": "PASS", "node4": "INCOMPLETE",
    }  # fmt: skip
    assert [part.name for part in found.parts] == [
        f"cluster:gpu ({node})" for node in ("node2", "node1", "node3")
    ]
    (first, *_) = found.coverage
    assert {ran.node: ran.failed for ran in first.ran} == {"node1": 0, "node2": 1, "node3": 0}
    shown = Page(page.files(found)["index.html"])
    assert list(faults(shown)) == []
    doubts = "its limits have no calibration; it failed this way only once"
    assert f"Do not drain it: {doubts}" in shown.text()
    assert "run-0 in" in shown.text() and "node[1-4]" in shown.text()


def test_the_session_of_one_node_of_a_job_is_a_page_as_of_any(results_folder, one_figure):
    job = write_job(results_folder, {"node1": 10.0, "node2": 7.0})
    found = contents.page_contents(reading.read([str(job / "node2")]))
    assert (found.nodes, [part.name for part in found.parts]) == (None, ["cluster:gpu"])
    assert "On node2, 2026-01-02" in Page(page.files(found)["index.html"]).text()


def test_nothing_simulated_stands_beside_the_word_of_a_machine(results_folder, one_figure):
    """node2 is slow where it is simulated alone, node3 as a machine."""
    values = {f"node{number}": 10.0 for number in range(1, 5)}
    write_job(results_folder, values | {"node3": 7.0}, simulated=values | {"node2": 5.0})
    found = contents.page_contents(reading.read(["17"]))
    behind = {
        (node, one.clock): round(percent)
        for one in found.nodes.spreads
        for node, percent in one.worse.items()
    }
    assert behind == {("node3", "measured"): -30, ("node2", "simulated"): -50}
    nearest = {(row.verdict.node, row.verdict.clock): row.nearest.value for row in found.nodes.rows}
    alike = {(node, kind): 10.0 for node in values for kind in ("measured", "simulated")}
    assert nearest == alike | {("node3", "measured"): 7.0, ("node2", "simulated"): 5.0}
    files = page.files(found)
    shown = Page(files["index.html"]).text()
    assert "4 nodes : 1 provisional PERF-FAIL (node3), 3 provisional PASS" in shown.replace(
        "nodes:", "nodes :"
    )
    assert "4 simulated nodes: 1 PERF-FAIL (node2), 3 PASS" in shown.replace("nodes :", "nodes:")
    assert "8 nodes" not in shown


def test_a_node_that_fails_twice_has_each_section_once(results_folder, one_figure):
    """As a machine, and by more where it is simulated: the machine is told first."""
    values = {f"node{number}": 10.0 for number in range(1, 7)}
    slow = {name: values | {"node5": value} for name, value in (("as", 7.0), ("in", 5.0))}
    write_job(results_folder, slow["as"], simulated=slow["in"])
    found = contents.page_contents(reading.read(["17"]))
    assert [(part.observed.on, part.clock) for part in found.parts] == [
        ("node5", "measured"), ("node5", "simulated"),
    ]  # fmt: skip
    rows = [row for row in found.nodes.rows if row.verdict.status != "PASS"]
    assert [row.verdict.clock for row in rows] == ["measured", "simulated"]


def test_one_node_that_never_answered_is_no_empty_page(
    command, results_folder, one_figure, tmp_path, wording
):
    write_job(results_folder, {"node4": None}, **STATES)
    done = command("report", "--output", tmp_path / "page", code=4)
    wording(done.stderr)
    assert "DOWN (no power)" in (tmp_path / "page" / "index.html").read_text()


def test_values_without_any_document_are_of_what_the_site_says(results_folder):
    """A simulated partition whose documents are lost: its metrics are no measured ones."""
    cases = [
        good_case(
            node=node, where="local:sim-mi250x",
            perfvalues={"local:sim-mi250x:copy_worst": factories.judged(value)},
        )
        for node, value in {"node1": 10.0, "node2": 9.5, "node3": 10.0}.items()
    ]  # fmt: skip
    SessionBuilder(results_folder).bare(cases).write()
    (found,) = contents.page_contents(reading.read()).nodes.spreads
    assert (found.clock, len(found.values)) == ("simulated", 3)


@pytest.fixture
def fifty(results_folder, one_figure):
    values = {f"nid{number:04}": 10.0 + number % 7 / 100 for number in range(50)}
    SessionBuilder(results_folder).copies(values | {"nid0007": 7.0, "nid0044": None}).write()
    return results_folder


def test_of_many_nodes_those_that_did_not_pass_have_sections(fifty):
    found = contents.page_contents(reading.read())
    assert [part.observed.on for part in found.parts] == ["nid0007", "nid0044"]
    assert (len(found.nodes.rows), found.left_out) == (50, 48)
    files = page.files(found)
    assert len(files["index.html"]) < 400_000
    shown = Page(files["index.html"])
    assert "omit 48 more" in shown.text()
    assert "Nothing failed on 48 nodes; not accepted" in shown.text("header")
    (grid,) = [one["text"] for one in shown.all("ul") if one.get("class") == "grid"]
    assert grid.count("nid00") == 50 and "nid0044 INCOMPLETE\n" in grid
    (table,) = [one["text"] for one in shown.all("table") if "First reason" in one["text"]]
    assert table.count("nid00") > 2 and "nid0045" not in table
    table = list(csv.DictReader(io.StringIO(files["figures/all-nodes-cluster-gpu-measured.csv"])))
    assert len(table) == 49
    assert [row["node"] for row in table if row["stands_out"] == "True"] == ["nid0007"]


def test_of_those_that_failed_the_farthest_off_are_the_worst(results_folder, one_figure):
    values = {f"node{number}": 8.9 - number / 10 for number in range(1, 7)}
    SessionBuilder(results_folder).copies(values).write()
    found = contents.page_contents(reading.read())
    assert [part.observed.on for part in found.parts] == ["node6", "node5", "node4", "node3"]
    assert [row.node for row in found.nodes.rows][-2:] == ["node2", "node1"]


def test_chosen_nodes_have_sections(fifty):
    found = contents.page_contents(reading.read(), ["nid0001", "nid0002"])
    assert [part.observed.on for part in found.parts] == ["nid0001", "nid0002"]
    assert len(found.nodes.rows) == 50
    with pytest.raises(NotFoundError, match=r"There is no result of nid9999 in session run-0\."):
        contents.page_contents(reading.read(), ["nid9999"])


def test_where_all_passed_the_first_has_sections(results_folder, one_figure):
    SessionBuilder(results_folder).copies({f"node{n}": 10.0 for n in range(1, 7)}).write()
    found = contents.page_contents(reading.read())
    assert ([part.observed.on for part in found.parts], found.status) == (["node1"], "PASS")


def test_documents_of_many_nodes_outside_of_a_session(tmp_path, one_figure):
    for number in range(6):
        document = document_of(f"node{number}")
        factories.write(tmp_path / f"{number}" / "result.json", document)
    found = contents.page_contents(reading.read([str(tmp_path)]))
    assert (found.nodes, len(found.parts), found.left_out) == (None, 1, 5)


def test_the_command_takes_nodes(command, session, tmp_path, wording):
    folder = str(tmp_path / "page")
    done = command("report", "--node", "node[1-2]", "--output", folder, code=4)
    wording(done.stderr)
    assert "cluster:gpu (node2)" in (tmp_path / "page" / "index.html").read_text()
    assert "cluster:gpu (node3)" not in (tmp_path / "page" / "index.html").read_text()
    wording(command("report", "--node", "node9", "--output", folder, code=3).stderr)


@pytest.mark.full
def test_five_hundred_nodes_are_as_quick_to_look_at(results_folder, one_figure):
    SessionBuilder(results_folder).copies({f"nid{n:04}": 10.0 for n in range(500)}).write()
    files = page.files(contents.page_contents(reading.read()))
    assert len(files["index.html"]) < 800_000
    assert len(files["figures/all-nodes-cluster-gpu-measured.svg"]) < 100_000


def over(values, unit="GB/s", metric="copy_worst"):
    """Return how one metric is spread over nodes."""
    parts = [
        Observed(
            "cluster:gpu",
            check_rows.checks(cases=[
                Case("stream_local", "cluster", "queue", "host", "pass", None, frozenset(), (),
                     metrics={metric: MetricResult(value, None, None, None, unit, None)},
                     node=node)]),
            None, on=node,
        )
        for node, value in values.items()
    ]  # fmt: skip
    return nodes.spreads_over_nodes(parts)


def named(far):
    return [(node, round(percent)) for node, percent in far.items()]


def test_a_node_stands_out_by_more_than_the_spread_of_all():
    values = {f"node{n}": 100 + n / 10 for n in range(9)}
    (found,) = over(values | {"slow": 80.0, "fast": 130.0})
    assert named(found.worse) == [("slow", -20)] and named(found.better) == [("fast", 29)]
    # With a spread of 10 % a node that is 20 % off is one of them.
    wide = {f"node{n}": 100 + 5 * n for n in range(9)}
    (found,) = over(wide | {"slow": 95.0})
    assert not found.worse and not found.better


def test_of_a_latency_more_is_worse():
    (found,) = over({"node1": 2.0, "node2": 2.0, "node3": 2.5}, "us")
    assert named(found.worse) == [("node3", 25)] and not found.better


def test_alike_values_are_no_reason_to_name_a_node_that_is_hardly_off():
    """Simulated nodes are exactly alike: their spread is none, and 1 % the least that counts."""
    (found,) = over({"node1": 10.0, "node2": 10.0, "node3": 9.95})
    assert found.deviation == 0 and not found.worse
    (found,) = over({"node1": 10.0, "node2": 10.0, "node3": 9.85})
    assert named(found.worse) == [("node3", -2)]


def test_of_two_nodes_nobody_knows_which_one_stands_out(wording):
    (found,) = over({"node1": 10.0, "node2": 5.0})
    assert not found.worse and not found.better
    assert [round(end) for end in found.ends] == [-33, 33]
    (figure,) = nodes.figures([found])
    wording(figure.says)


def test_two_environments_of_a_check_are_two_metrics():
    parts = [
        Observed("cluster:gpu", check_rows.checks(cases=[
            Case("stream_local", "cluster", "queue", environ, "pass", None, frozenset(), (),
                 metrics={"copy": MetricResult(value, None, None, None, "GB/s", None)}, node=node)
            for environ, value in {"rocm5": 10.0, "rocm6": 20.0}.items()]), None, on=node)
        for node in ("node1", "node2")
    ]  # fmt: skip
    found = {one.check: one.median for one in nodes.spreads_over_nodes(parts)}
    assert found == {"stream_local +rocm5": 10.0, "stream_local +rocm6": 20.0}


def test_where_most_nodes_are_slow_the_words_say_so(wording):
    slow = {f"node{n}": 70.0 for n in range(6)}
    (found,) = over(slow | {"a": 100.0, "b": 100.0})
    assert named(found.better) == [("a", 43), ("b", 43)]
    (figure,) = nodes.figures([found])
    wording(figure.says)
    (figure,) = nodes.figures(over(slow))
    wording(figure.says)


def test_each_node_that_stands_out_is_named_once(wording):
    values = {f"node{n}": 100.0 for n in range(9)} | {"a": 50.0, "b": 80.0}
    one, other = over(values), over(values | {"a": 60.0}, metric="add_worst")
    (figure,) = nodes.figures([*one, *other])
    wording(figure.says)
    assert named(one[0].worse) == [("a", -50), ("b", -20)]


def test_repetitions_on_a_node_are_one_value():
    parts = [
        Observed("cluster:gpu", check_rows.checks(cases=[
            Case(f"stream_local %.repeat_no={number}", "cluster", "queue", "host", "pass", None,
                 frozenset(), (),
                 metrics={"copy": MetricResult(value, None, None, None, "GB/s", None)}, node=node)
            for number, value in enumerate(values)]), None, on=node)
        for node, values in {"node1": (9.0, 10.0, 20.0), "node2": (11.0, 11.0, 11.0)}.items()
    ]  # fmt: skip
    (found,) = nodes.spreads_over_nodes(parts)
    assert (found.check, dict(found.values)) == ("stream_local", {"node1": 10.0, "node2": 11.0})


def test_the_figure_draws_every_place_once_and_tells_who_stands_out(wording):
    values = {f"node{n}": 100.0 for n in range(200)} | {"slow": 80.0}
    (figure,) = nodes.figures(over(values))
    wording(figure.says)
    assert len(figure.rows) == 201
    # Two hundred nodes on one spot are one mark.
    assert figure.svg.count("<path aria") + figure.svg.count('transform="translate(') < 60
    assert ">slow</text>" in figure.svg


def test_without_a_file_of_nodes_the_cases_tell_them(session):
    (session / "output" / "nodes.json").unlink()
    assert list(statuses(contents.page_contents(reading.read()))) == ["node2", "node3", "node1"]
