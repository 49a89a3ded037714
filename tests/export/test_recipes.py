"""The queries of docs/result.md, as they stand there, on the table of a recorded session."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "result.md").read_text()
RECORDED = ROOT / "tests" / "outputs" / "h200" / "session-x2"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def history(command, tmp_path, monkeypatch):
    """A folder with the table of a recorded session, under the name that the page has."""
    monkeypatch.chdir(tmp_path)
    command("results", "export", RECORDED, "--output", "history.parquet")


def test_the_query_of_a_metric_has_the_values_of_the_table(history):
    found = duckdb.sql(blocks("sql")[0]).fetchall()
    table = pl.read_parquet("history.parquet")
    known = table.filter(row_type="metric", metric="copy_worst")["value"].to_list()
    assert found and [row[4] for row in found] == sorted(known)


def test_the_same_rows_in_python(monkeypatch, capsys):
    """Nothing failed in the recorded session, so the page's condition is turned round."""
    monkeypatch.setenv("FABRICHECK_RESULTS", str(RECORDED))
    exec(blocks("python")[0].replace('== "fail"', '== "report-only"'), {})
    assert "vm stream_local copy_worst" in capsys.readouterr().out
