"""The command `fabricheck fleet`: its text, JSON, page and exit codes, and before with after."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser

import polars as pl
import pytest

import factories
from drift.rounds import PLAN, leave, round_of
from fabricheck.cli import app
from fabricheck.results import metric_records
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.soaks import DeviceRound, Member, Value
from fleet import drawn_fleets
from fleet.drawn_fleets import Fault
from session_builder import SessionBuilder, good_case, missed, of_mi250x

CHECKS = ("stream_local", "p2p_kernel", "mpi_collectives")
NODES = 300
SLOW = "n017"


def run(capsys, *arguments):
    """Run the command; return exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        app(["fleet", *map(str, arguments)])
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


def of_sessions(rows):
    """Return the rows with what tells their session, its driver, and the checks' results."""
    told = {"session_id": "run-0", "driver": "0", "result": "pass"}
    return rows.with_columns(pl.lit(cell).alias(name) for name, cell in told.items())


@pytest.fixture(scope="module")
def healthy():
    return of_sessions(drawn_fleets.fleet(NODES, 6, checks=CHECKS))


@pytest.fixture(scope="module")
def slow(healthy):
    fault = Fault(int(SLOW[1:]) - 1, "device 3", 0.06)
    return of_sessions(drawn_fleets.fleet(NODES, 6, [fault], checks=CHECKS))


@pytest.fixture
def tables(tmp_path, healthy, slow):
    healthy.write_parquet(tmp_path / "healthy.parquet")
    slow.write_parquet(tmp_path / "slow.parquet")
    return tmp_path


def test_of_a_healthy_fleet_nothing_stands_out(tables, capsys, wording):
    code, out, err = run(capsys, tables / "healthy.parquet")
    assert (code, err) == (0, "")
    wording(out)


def test_a_slow_device_is_said_in_one_line(tables, capsys):
    code, out, _ = run(capsys, tables / "slow.parquet")
    assert code == 14
    assert f"1 node stands out: {SLOW}\n" in out
    (line,) = (one for one in out.splitlines() if one.startswith(f"  {SLOW}: "))
    assert re.fullmatch(
        rf"  {SLOW}: [\d.]+ % to 6\.\d % behind in \d+ of 101 metrics; farthest .* "
        r"\(median .*\)",
        line,
    )


def test_the_text_of_many_findings_has_fewer_than_40_lines(tables, capsys, healthy):
    bad = pl.col("node").str.slice(1).cast(pl.Int64) % 20 == 0
    value = pl.when(bad).then(0.9 * pl.col("value")).otherwise("value")
    later = healthy.filter(pl.col("node") != "n001", pl.col("metric") != "copy_worst")
    later.with_columns(value=value, driver=pl.lit("7")).write_parquet(tables / "bad.parquet")
    code, out, _ = run(capsys, tables / "healthy.parquet", "--after", tables / "bad.parquet")
    assert code == 10
    assert 7 < len(out.splitlines()) < 40
    assert re.search(
        r"  worse than before together: 15 of 299 nodes by [\d.]+ % in .* and \d+ more, n\[0?20,",
        out,
    )


def test_nodes_that_stayed_as_they_were_while_the_others_got_faster_are_not_worse(
    tables, capsys, healthy
):
    stayed = pl.col("node").str.slice(1).cast(pl.Int64) % 20 == 0
    value = pl.when(stayed).then("value").otherwise(1.1 * pl.col("value"))
    healthy.with_columns(value=value).write_parquet(tables / "later.parquet")
    _, out, _ = run(capsys, tables / "healthy.parquet", "--after", tables / "later.parquet")
    assert "worse than before together" not in out


def test_json_has_every_node_and_metric(tables, capsys):
    code, out, _ = run(capsys, tables / "slow.parquet", "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 14
    (part,) = found["partitions"]
    assert (part["partition"], part["nodes"], len(part["metrics"])) == ("drawn:gpu", NODES, 101)
    (one,) = part["outliers"]
    assert one["node"] == SLOW and len(one["values"]) > 10
    assert all(value["behind"] >= 0.01 for value in one["values"])
    assert found["sessions"] == {SLOW: [["run-0", str(tables / "slow.parquet")]]}


@pytest.mark.slow
def test_before_and_after_tell_what_is_worse_better_gone_and_new(tables, capsys, healthy):
    slower = pl.when(pl.col("metric") == "read_links4_worst").then(0.93)
    faster = slower.when(pl.col("metric") == "bcast_8").then(0.5)
    later = healthy.filter(pl.col("node") != "n005", pl.col("metric") != "write_links4_worst")
    alone = (pl.col("node") == SLOW) & (pl.col("check") == "stream_local")
    factor = faster.when(alone).then(0.9).otherwise(1.0)
    last = pl.col("node").str.slice(1).cast(pl.Int64) > 290
    failed = (pl.col("check") == "p2p_kernel") & (pl.col("node") == "n002")
    later.with_columns(
        value=pl.col("value") * factor,
        driver=pl.when(last).then(pl.col("driver")).otherwise(pl.lit("amdgpu 7.0")),
        result=pl.when(failed).then(pl.lit("fail")).otherwise("result"),
    ).write_parquet(tables / "later.parquet")
    code, out, _ = run(capsys, tables / "healthy.parquet", "--after", tables / "later.parquet")
    assert code == 10
    assert "1 metrics worse, 1 better, 98 unchanged, 0 undetermined; 1 disappeared, 0 new" in out
    assert "  worse: p2p_kernel read_links4_worst" in out and "(-7.0 %)" in out
    assert "  better: mpi_collectives bcast_8" in out and "(-50.0 %)" in out
    assert f"  worse beside the other nodes: 1 node, {SLOW}; {SLOW} by 10 % in stream_local" in out
    assert "  disappeared: 1 node, n005\n" in out
    assert "No longer passes: p2p_kernel on n002\n" in out
    assert "Changed: driver: 0 on 300 -> amdgpu 7.0 on 289, 0 on 10\n" in out
    found = json.loads(
        run(capsys, tables / "healthy.parquet", "--after", tables / "later.parquet", "--json")[1]
    )["changes"]
    (part,) = found["partitions"]
    assert [(one["check"], one["name"]) for one in part["gone"]] == [
        ("p2p_kernel", "write_links4_worst")
    ]
    assert [one["node"] for one in part["worse"]] == [SLOW] and part["better"] == []
    (driver,) = found["facts"]
    assert len(driver["moved"]) == 289
    (check,) = found["checks"]
    assert (check["check"], check["worse"], check["better"]) == ("p2p_kernel", ["n002"], [])


@pytest.mark.slow
def test_nothing_changed_ends_with_0_and_what_disappeared_with_11(tables, capsys, healthy):
    same = tables / "healthy.parquet"
    assert run(capsys, same, "--after", same)[0] == 0
    healthy.filter(pl.col("node") != "n005").write_parquet(tables / "fewer.parquet")
    assert run(capsys, same, "--after", tables / "fewer.parquet")[0] == 11


def test_a_change_within_the_floor_of_compare_is_unchanged(tables, capsys, healthy):
    later = healthy.with_columns(
        value=pl.when(pl.col("check") == "stream_local")
        .then(0.985 * pl.col("value"))
        .when(pl.col("unit") == "us")
        .then(1.3 * pl.col("value"))
        .otherwise("value")
    )
    later.write_parquet(tables / "later.parquet")
    code, out, _ = run(capsys, tables / "healthy.parquet", "--after", tables / "later.parquet")
    assert code == 0
    assert "0 metrics worse, 0 better, 101 unchanged" in out


@pytest.mark.slow
def test_a_node_that_changed_within_the_floor_is_not_worse(tables, capsys, healthy):
    same = tables / "healthy.parquet"
    own = (pl.col("node") == SLOW) & (pl.col("metric") == "bcast_8")
    for factor, code in ((1.25, 0), (1.5, 10)):
        changed = pl.col("value") * pl.when(own).then(factor).otherwise(1.0)
        healthy.with_columns(value=changed).write_parquet(tables / "later.parquet")
        ended, out, _ = run(capsys, same, "--after", tables / "later.parquet")
        assert ended == code
        assert ("worse beside the other nodes" in out) == (code == 10)


def test_an_unreadable_table_ends_with_4_and_the_others_are_judged(tables, capsys):
    (tables / "broken.parquet").write_bytes(b"PAR1")
    code, out, err = run(capsys, tables)
    assert code == 4
    assert "300 nodes" in out
    assert err.startswith(f"fabricheck: {tables / 'broken.parquet'}: cannot be read (")


def test_lost_nodes_and_missing_metrics_end_with_11(tables, capsys, healthy):
    lost = healthy.head(1).with_columns(
        row_type=pl.lit("node"), node=pl.lit("n999"), result=pl.lit("lost")
    )
    nameless = lost.with_columns(node=pl.lit(None, dtype=pl.String))
    few = healthy.filter(~((pl.col("node") == "n003") & (pl.col("check") == "stream_local")))
    pl.concat([few, lost, nameless]).write_parquet(tables / "few.parquet")
    code, out, _ = run(capsys, tables / "few.parquet")
    assert code == 11
    assert "Metrics missing on 1 node that nine in ten others have: n003\n" in out
    assert "Requested without any result: n999\n" in out


def test_without_polars_the_extra_is_named(tables, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    for name in [one for one in sys.modules if one.startswith("fabricheck.judge.fleet")]:
        monkeypatch.delitem(sys.modules, name)
    code, _, err = run(capsys, tables / "slow.parquet")
    assert code == 3 and "fabricheck[results]" in err


class _Page(HTMLParser):
    """Elements, ids and links of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links, self.loaded = set(), [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        self.loaded += [given[name] for name in ("src", "data", "srcset") if name in given]


def test_the_page_stands_alone_and_its_links_lead_somewhere(tables, capsys):
    page = tables / "pages" / "fleet.html"
    code, out, _ = run(
        capsys, tables / "healthy.parquet", "--after", tables / "slow.parquet", "--output", page
    )
    assert code == 10 and f"Page: {page}\n" in out
    text = page.read_text(encoding="utf-8")
    found = _Page()
    found.feed(text)
    assert "script" not in found.tags and found.loaded == [] and "url(" not in text
    assert len(found.ids) == len(set(found.ids))
    here = [one[1:] for one in found.links if one.startswith("#")]
    assert set(here) <= set(found.ids) and f"node-0-{SLOW}" in here
    elsewhere = {one for one in found.links if not one.startswith("#")}
    assert elsewhere == {"../slow.parquet"}
    assert (page.parent / "../slow.parquet").exists()


@pytest.mark.full
def test_the_page_of_thousands_of_nodes_stays_small(tmp_path, capsys):
    rows = drawn_fleets.fleet(9408, 3, checks=["mpi_collectives"])
    rows.write_parquet(tmp_path / "fleet.parquet")
    page = tmp_path / "fleet.html"
    assert run(capsys, tmp_path / "fleet.parquet", "--output", page)[0] == 0
    assert page.stat().st_size < 1_000_000


def test_of_sessions_a_node_that_stands_out_has_the_diagnosis_of_its_verdict(tmp_path, capsys):
    model = {"name": "mi250x", "digest": "0" * 64, "overlay": None}
    for number in range(6):
        folder, slow = tmp_path / "nodes" / f"node{number}", number == 4
        document = of_mi250x(slow=3 if slow else None, node=model)
        case = good_case(node=f"node{number}") | (missed("copy_worst") if slow else {})
        SessionBuilder(folder).add(case, document).write()
        place = factories.case_folder(folder, case["unique_name"], "stage" if slow else "output")
        one = MetricRecord(series=tuple(range(8)), reduce="worst")
        metric_records.write(place, document, {"copy_worst": one})
    page = tmp_path / "fleet.html"
    code, out, _ = run(capsys, tmp_path / "nodes", "--output", page)
    sentence = "HBM of device 3, compute units of device 3 or device 3 is down by 25 %"
    (line,) = (one for one in out.splitlines() if one.startswith("  node4: "))
    assert code == 14 and f"; diagnosis: {sentence}" in line
    assert sentence in page.read_text(encoding="utf-8")
    (part,) = json.loads(run(capsys, tmp_path / "nodes", "--json")[1])["partitions"]
    (node,) = part["outliers"]
    assert node["diagnosis"]["degraded"][0]["component"] == {
        "kind": "hbm", "ids": [3], "direction": None, "operation": None,
    }  # fmt: skip


def test_the_fleet_shows_nodes_by_hours_under_load_drift_and_errors(tmp_path, capsys):
    for number in range(4):
        folder = tmp_path / "nodes" / f"node{number}"
        SessionBuilder(folder).add(good_case(node=f"node{number}"), factories.document()).write()
        plan = PLAN.model_copy(update={"hours": 5.0})
        hours = 10 if number != 2 else 4
        leave(folder, [soaked(f"node{number}", each, plan) for each in range(1, hours + 1)])
    page = tmp_path / "fleet.html"
    _, out, _ = run(capsys, tmp_path / "nodes", "--output", page)
    rows = [" ".join(line.split()) for line in out.splitlines()]
    # The node that lacks hours comes first.
    at = rows.index("Node Status Hours Rounds Largest loss Errors Wrong data")
    assert rows[at + 1].startswith("node2 INCOMPLETE 2.0 of 5 4")
    assert rows[at + 2] == "node0 PASS 5.0 of 5 10 0.9 % (copy 0) 30 0"
    text = page.read_text()
    assert '<h2 id="soaks">' in text
    assert "2.0 of 5" in text
    _, out, _ = run(capsys, tmp_path / "nodes", "--json")
    assert [each["hours"] for each in json.loads(out)["soaks"]] == [5.0, 5.0, 2.0, 5.0]
    # A round that cannot be read is named, and the other nodes are shown.
    damaged = tmp_path / "nodes" / "node1" / "output" / "soak-0003" / "round.json"
    damaged.write_text("{")
    code, out, err = run(capsys, tmp_path / "nodes")
    assert code == 4
    assert str(damaged) in err
    assert "node1" not in out
    assert "node2" in out


def soaked(node, number, plan):
    """Return a round in which memory is 0.1 % slower than before, and three errors are counted."""
    member = Member(
        phase="load", group="copy", devices=(0,), unit="GB/s", better="higher", noise="devices"
    )
    rate = 1000.0 - number
    device = DeviceRound(
        pci_address=None, unique_id=None,
        before={"corrected memory error": 3 * number - 3},
        after={"corrected memory error": 3 * number},
    )  # fmt: skip
    each = round_of(
        number, plan=plan, members={"copy 0": member}, devices={0: device},
        values={"copy 0": Value(middle=rate, low=rate, high=rate, n=30)},
    )  # fmt: skip
    return each.model_copy(update={"node": node})
