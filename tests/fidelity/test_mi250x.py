"""The simulated MI250X node against published values: the aims, and the page made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.fidelity import AIM, render
from fabricheck.fidelity.plan import MOST_FITTED
from fabricheck.node.schema import Quantity

ROOT = Path(__file__).resolve().parents[2]
#: Predicted records that the model misses, found and left so. A new one has to be understood.
#: The last is not run: 4 B are less than the programs copy.
KNOWN = {"kth-lat-34", "kth-lat-70", "epicure-lumi-size-4B"}


def rows(tables):
    return {row.record.id: row for table in tables for row in table.rows}


@pytest.mark.parametrize(("latency", "n"), [(False, 68), (True, 53)])
def test_most_predicted_values_are_reproduced(found, latency, n):
    share = found.share(latency=latency)
    assert share.n == n
    assert share.part >= AIM == 0.95, [row.record.id for row in share.worst]
    assert share.tolerance == (0.15 if latency else 0.05)


def test_what_is_not_explained_is_what_is_known(found):
    predicted = rows(found.predicted)
    assert {name for name, row in predicted.items() if not row.within} == KNOWN
    assert [judged.title for judged in found.statements if not judged.holds] == [
        "STREAM copy on one device, achievable"
    ]


def test_a_value_that_is_not_run_counts_as_missed(found):
    summary = "\n".join(render.summary(found))
    assert "Worst predicted bandwidths: epicure-lumi-size-4B not run, lumirfm-" in summary


def test_what_is_shown_but_not_counted_is_in_the_summary(found):
    both = found.share(latency=False, beside=True)
    assert (both.n, both.within) == (76, 67)
    summary = "\n".join(render.summary(found))
    assert "67 of 76 within 5 % (88.2 %)" in summary
    assert "58 of 60 within 15 % (96.7 %)" in summary


def test_the_fitted_records_are_those_of_the_parameters_and_reproduced(found, node):
    parameters = [value for _, value in node.simulation if isinstance(value, Quantity)]
    wanted = {value.record for value in parameters if value.kind == "fitted"}
    fitted = rows(found.fitted)
    assert set(fitted) == wanted
    assert len(fitted) <= MOST_FITTED == 12
    assert not set(fitted) & set(rows(found.predicted))
    assert all(row.within for row in fitted.values())


def test_every_pair_is_predicted_or_fitted_once(found):
    named = set(rows(found.predicted)) | set(rows(found.fitted))
    for prefix in ("kth-bw", "kth-lat"):
        pairs = {f"{prefix}-{a}{b}" for a in range(8) for b in range(8) if a != b}
        assert pairs <= named


@pytest.mark.parametrize(
    ("record", "published", "simulated"),
    [
        ("kth-bw-01", 50.3, 50.0),
        ("kth-lat-17", 18.23, 17.78),
        ("lumirfm-commscope-quad", 148, 150.4),
        ("lumi-train-hipstream", 1280 * 2**30 / 1e9, 1394),
        ("paper-commscope-util-quad", 25, 25),
        ("epicure-lumi-single-gpu4", 23.45257 * 2**30 / 1e9, 25.28),
        ("epicure-lumi-size-64KiB", 5.3084 * 2**30 / 1e9, 5.706),
    ],
)
def test_values_are_in_the_units_of_the_record(found, record, published, simulated):
    row = rows(found.predicted)[record]
    assert row.record.value == pytest.approx(published, rel=1e-4)
    assert row.simulated == pytest.approx(simulated, rel=0.005)
    assert row.deviation == pytest.approx(row.simulated / row.record.value - 1)


def test_the_page_of_the_documentation_is_what_is_made_now(found):
    page = ROOT / "docs" / "fidelity-mi250x.md"
    assert page.read_bytes() == render.page(found).encode(), (
        "make it again: fabricheck fidelity mi250x --write docs/fidelity-mi250x.md"
    )


def test_the_matrices_stand_side_by_side(found, programs):
    done = CliRunner().invoke(
        app, ["fidelity", "mi250x", "--programs", str(programs), "--matrices"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout == render.matrices_text(found)
    bandwidth, latency = done.stdout.strip().split("\n\n")
    for text, published, simulated in ((bandwidth, "50.30", "49.83"), (latency, "10.74", "10.74")):
        lines = text.split("\n")
        assert len(lines) == 3 + 8
        assert lines[1].split() == ["published", "simulated"]
        row = lines[3].split()
        assert len(row) == 1 + 8 + 8
        assert (row[0], row[1], row[2], row[9], row[10]) == ("0", "-", published, "-", simulated)


def test_the_command_prints_tables_and_writes_the_page(found, programs, tmp_path):
    runner, arguments = CliRunner(), ["fidelity", "mi250x", "--programs", str(programs)]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout == render.text(found)
    page = tmp_path / "page.md"
    assert runner.invoke(app, [*arguments, "--write", str(page)]).exit_code == 0
    assert page.read_text() == render.page(found)


def test_json_holds_every_row_labelled(found, programs):
    done = CliRunner().invoke(app, ["fidelity", "mi250x", "--programs", str(programs), "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content == json.loads(json.dumps(render.as_json(found)))
    assert content["node"]["sha256"] == found.node.sha256
    kinds = [row["kind"] for row in content["rows"]]
    assert (kinds.count("predicted"), kinds.count("fitted")) == (68 + 53, 12)
    assert all({"published", "simulated"} <= set(row) for row in content["rows"])
