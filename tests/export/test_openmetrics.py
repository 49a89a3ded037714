"""The metrics as OpenMetrics, and as GitLab reads them."""

import re
import shlex
from pathlib import Path

import pytest

import factories
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from session_builder import SessionBuilder, without_limits

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    rf"(?:\{{(?P<labels>{LABEL}(?:,{LABEL})*)?\}})?"
    r" (?P<value>-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
)


def parse(text):
    """Return the samples of an OpenMetrics text of gauges, by its grammar; labels as pairs."""
    assert text.endswith("# EOF\n")
    samples, known, current = {}, set(), None
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert kind == "gauge" and current not in known, "a family stands together"
            known.add(current)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == current
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            assert found["name"] == current
            labels = re.findall(r'([^=,]+)="((?:[^"\\]|\\.)*)"', found["labels"])
            assert len(dict(labels)) == len(labels)
            key = (current, tuple(sorted(labels)))
            assert key not in samples, "one sample for a set of labels"
            samples[key] = float(found["value"])
    return samples


def written(command, path, *arguments, code=0):
    command("results", "export", *arguments, "--openmetrics", path, code=code)
    return path.read_text()


def of(text, family, *labels):
    """Return the values of a family by some of their labels."""
    return {
        tuple(dict(own).get(label) for label in labels): value
        for (name, own), value in parse(text).items()
        if name == family
    }


def test_every_metric_and_check_of_a_session_is_a_gauge(command, tmp_path):
    text = written(command, tmp_path / "m.txt", RECORDED)
    metrics = of(text, "fabricheck_metric", "check", "metric", "unit", "clock")
    assert len(metrics) == 125
    assert metrics["affinity", "misplaced", "count", "measured"] == 0
    # The skipped six are neither good nor bad.
    checks = of(text, "fabricheck_check_passed", "system", "partition", "environment", "check")
    assert len(checks) == 21 and set(checks.values()) == {1.0}
    assert ("h200", "x2", "cuda", "p2p_engine") in checks


def test_labels_say_nothing_that_another_run_would_not(command, results_folder, tmp_path):
    texts = []
    for number, value in enumerate((30.0, 30.0)):
        recorded = without_limits({"copy_worst": value})
        start = factories.SESSION_START + 3600 * number
        at = f"2026-01-02T0{3 + number}:04:05Z"
        host = factories.document()["host"] | {"hostname": f"node{number}"}
        content = factories.document(started=at, finished=at, host=host)
        session = SessionBuilder(results_folder, number, start=start)
        session.add(factories.case(perfvalues=recorded), content).write()
        texts.append(written(command, tmp_path / "m.txt", f"run-{number}"))
    assert texts[0] == texts[1]
    assert "node1" not in texts[0] and "30.000" in texts[0]


def test_several_values_of_one_metric_are_their_median(command, results_folder, tmp_path):
    for number, value in enumerate((10.0, 30.0, 11.0)):
        recorded = without_limits({"copy_worst": value})
        start = factories.SESSION_START + 3600 * number
        session = SessionBuilder(results_folder, number, start=start)
        session.add(factories.case(perfvalues=recorded)).write()
    text = written(command, tmp_path / "m.txt", "--all")
    assert of(text, "fabricheck_metric", "metric") == {("copy_worst",): 11.0}


def test_two_nodes_are_told_apart_and_one_has_no_label(command, results_folder, tmp_path):
    SessionBuilder(results_folder).copies({"node1": 10.0, "node2": 5.0}).write()
    text = written(command, tmp_path / "two.txt")
    assert of(text, "fabricheck_metric", "node") == {("node1",): 10.0, ("node2",): 5.0}
    alone = tmp_path / "alone"
    SessionBuilder(alone).copies({"node1": 10.0}).write()
    of_one = written(command, tmp_path / "one.txt", alone)
    metrics = [line for line in of_one.splitlines() if line.startswith("fabricheck_metric{")]
    assert metrics and not any("node=" in line for line in metrics)


def test_with_several_nodes_the_node_is_a_label_and_lost_ones_are_there(
    command, results_folder, tmp_path
):
    SessionBuilder(results_folder).copies({"node1": 10.0, "node2": 5.0}).write()
    names = {name: RequestedNode() for name in ("node1", "node2", "node3")}
    started = "2026-01-02T03:00:00Z"
    requested = RequestedNodes(partition="cluster:gpu", started=started, nodes=names)
    (results_folder / "output").mkdir(exist_ok=True)
    requested_nodes.write(results_folder / "output" / requested_nodes.NAME, requested)
    text = written(command, tmp_path / "m.txt")
    assert of(text, "fabricheck_metric", "node") == {("node1",): 10.0, ("node2",): 5.0}
    assert of(text, "fabricheck_check_passed", "node") == {("node1",): 1.0, ("node2",): 0.0}
    present = of(text, "fabricheck_node_present", "node")
    assert present == {("node1",): 1.0, ("node2",): 1.0, ("node3",): 0.0}


def test_nodes_whose_checks_left_no_value_are_told_apart(command, results_folder, tmp_path):
    session = SessionBuilder(results_folder).copies({"node1": 10.0})
    session.failed("run", node="node2", perfvalues=None).write()
    text = written(command, tmp_path / "m.txt")
    assert of(text, "fabricheck_check_passed", "node") == {("node1",): 1.0, ("node2",): 0.0}


@pytest.mark.parametrize("name", ['a "b" \\ c', "a # b", "a b"])
def test_odd_names_are_escaped_and_gitlab_reads_the_line(command, results_folder, tmp_path, name):
    recorded = without_limits({"copy_worst": 12.5})
    case = factories.case("odd", display_name=name, perfvalues=recorded)
    SessionBuilder(results_folder).add(case).write()
    text = written(command, tmp_path / "m.txt", code=0)
    parse(text)
    [line] = [one for one in text.splitlines() if one.startswith("fabricheck_metric{")]
    # GitLab cuts the line at #, splits it as a shell does, and takes the first two words.
    words = shlex.split(line.partition("#")[0])
    assert words[1:] == ["12.500"] and "metric=copy_worst" in words[0]


def test_a_table_can_be_written_with_it(command, results_folder, tmp_path):
    SessionBuilder(results_folder).add(
        factories.case(result="fail", fail_reason="no program")
    ).write()
    result = command(
        "results", "export", "--output", tmp_path / "t.csv", "--openmetrics", tmp_path / "m.txt"
    )
    assert result.stdout.split() == ["Export:", f"{tmp_path}/t.csv", "Export:", f"{tmp_path}/m.txt"]
    assert of((tmp_path / "m.txt").read_text(), "fabricheck_check_passed", "check") == {
        ("stream_local",): 0.0
    }
