"""CSV and Parquet hold the same, whole or not at all, and what they hold is documented."""

import csv
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from exported import of, rows

import factories
from fabricheck.core.text import moment
from fabricheck.results import export
from fabricheck.results.columns import columns
from full_disk import files_of_at_most
from session_builder import SessionBuilder, sound_node

ROOT = Path(__file__).parents[2]
COLUMNS = columns()
NAMES = tuple(column.name for column in COLUMNS)
RECORDED = ROOT / "tests" / "outputs" / "h200" / "session-x2"
TYPES = {
    "text": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
    "time": pl.Datetime("ms", "UTC"),
}


@pytest.fixture(scope="module")
def files(command, tmp_path_factory):
    """A session as CSV and as Parquet; the latter in several batches."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "BATCH", 400)
        for name in ("table.csv", "table.parquet"):
            result = command("results", "export", RECORDED, "--output", folder / name)
            assert result.stdout == f"Export: {folder / name}\n"
    assert sorted(one.name for one in folder.iterdir()) == ["table.csv", "table.parquet"]
    return folder / "table.csv", folder / "table.parquet"


def test_both_hold_the_same_with_the_types_that_are_stated(files):
    schema = {column.name: TYPES[column.type] for column in COLUMNS}
    parquet = pl.read_parquet(files[1])
    assert dict(parquet.schema) == schema and len(parquet) == 27 + 125 + 1355
    times = [column.name for column in COLUMNS if column.type == "time"]
    as_read = schema | dict.fromkeys(times, pl.String)
    text = pl.read_csv(files[0], schema=as_read)
    text = text.with_columns(pl.col(times).str.to_datetime(time_unit="ms", time_zone="UTC"))
    assert text.equals(parquet)


def test_a_reader_that_guesses_guesses_right(files):
    guessed = pl.read_csv(files[0], infer_schema_length=None, try_parse_dates=True)
    stated = pl.read_parquet(files[1])
    for column in COLUMNS:
        # A column of one reader's choice is only what is null throughout.
        if column.type in ("number", "boolean", "time") and stated[column.name].count():
            assert guessed[column.name].dtype.base_type() == TYPES[column.type].base_type()
    assert guessed["devices"].dtype == guessed["ranks"].dtype == pl.String


def test_no_number_is_nan_and_no_text_is_empty(files):
    table = pl.read_parquet(files[1])
    for column in COLUMNS:
        if column.type == "number":
            assert (
                not table[column.name].is_nan().any() and not table[column.name].is_infinite().any()
            )
        if column.type == "text":
            assert not (table[column.name] == "").any()


def test_the_csv_is_that_of_rfc_4180(files):
    raw = files[0].read_bytes()
    assert raw.startswith(b"row_type,session,session_id,") and raw.endswith(b"\r\n")
    lines = list(csv.reader(raw.decode("utf-8").splitlines(keepends=True), strict=True))
    assert lines[0] == list(NAMES) and {len(line) for line in lines} == {len(NAMES)}
    # Every record is a line, for tools that know no quotes.
    assert raw.count(b"\n") == raw.count(b"\r\n") == len(lines)


def test_rows_have_only_what_their_type_has(files):
    table = pl.read_parquet(files[1])
    for row_type in ("check", "metric", "series"):
        part = table.filter(pl.col("row_type") == row_type)
        for column in COLUMNS:
            assert part[column.name].count() == 0 or row_type in column.row_types, (
                row_type,
                column.name,
            )


def test_parquet_tells_what_its_columns_are(files):
    said = json.loads(pl.read_parquet_metadata(files[1])["fabricheck.columns"])
    assert list(said) == list(NAMES)
    assert said["mad"] == "number: median absolute deviation, in unit, not scaled"


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", " =1", "\t=1"])
def test_no_text_is_a_formula_for_a_spreadsheet(command, results_folder, tmp_path, name):
    reason = f"{name}\nof two lines, with a comma"
    failed = factories.case("x", display_name=name, result="fail", fail_reason=reason)
    SessionBuilder(results_folder).add(failed).write()
    written = tmp_path / "x.parquet"
    command("results", "export", "--output", written)
    cell = "'" + name.strip()
    for row in (*pl.read_parquet(written).to_dicts(), *of("check", rows(command)[0])):
        assert (row["check"], row["reason"]) == (cell, f"{cell} of two lines, with a comma")


def test_times_of_any_zone_are_in_utc():
    assert moment("2026-01-02T03:04:05+02:00") == datetime.fromisoformat("2026-01-02T01:04:05Z")
    assert moment("yesterday") is None


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_full_disk_leaves_the_file_of_before(command, tmp_path, name):
    before = tmp_path / name
    before.write_text("of before")
    with files_of_at_most(20_000):
        metrics = ("--openmetrics", tmp_path / "metrics.txt")
        result = command("results", "export", RECORDED, "--output", before, *metrics, code=3)
    assert f"{before} cannot be written (" in result.stderr
    assert before.read_text() == "of before" and [*tmp_path.iterdir()] == [before]


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.csv.gz"])
def test_a_format_that_is_not_known_is_refused_first(command, tmp_path, name, wording):
    result = command("results", "export", tmp_path / "nothing", "--output", tmp_path / name, code=2)
    wording(result.stderr)


def test_without_polars_parquet_is_refused_and_csv_is_not(command, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "polars", None)
    result = command("results", "export", RECORDED, "--output", tmp_path / "table.parquet", code=3)
    assert "install fabricheck[results], or copy" in result.stderr
    command("results", "export", RECORDED, "--output", tmp_path / "table.csv")


def test_who_reads_only_the_head_gets_no_error():
    entry = "from fabricheck.cli import app; app()"
    command = (
        f"set -o pipefail; {sys.executable} -c '{entry}' results export {RECORDED} | head -n 1"
    )
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.strip()) == (0, ",".join(NAMES))
    assert "Error" not in ended.stderr and "refused" not in ended.stderr


def test_metrics_of_nodes_without_a_verdict_say_so(command, tmp_path, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    done = command("results", "export", RECORDED, "--prometheus", tmp_path / "n.prom")
    assert f"No node is in {tmp_path}/n.prom: {tmp_path} has no verdict" in done.stderr


def test_a_node_whose_last_verdict_has_no_start_keeps_when_its_sessions_began_and_passed(
    command, results_folder, tmp_path
):
    """The next night n2 never gets its job: its verdict is that of the night, and has no start."""
    for night, lost in ((0, ()), (1, ("n2",))):
        start = factories.SESSION_START + night * 86400
        at = datetime.fromtimestamp(start, UTC).isoformat()
        session = SessionBuilder(results_folder, night, start=start)
        for node in ("n1", "n2"):
            if node in lost:
                session.lost(node)
            else:
                changes, document = sound_node()
                times = {"started": at, "finished": at}
                session.check("stream_local", node, document | times, **changes)
        session.write()
        command("verdict", f"run-{night}", code=None)
    command("results", "export", "--prometheus", tmp_path / "n.prom", code=None)
    told = {
        tuple(re.match(r'fabricheck_node_(\w+)\{node="(\w+)"\}', line).groups()): line.split()[-1]
        for line in (tmp_path / "n.prom").read_text().splitlines()
        if re.match(r'fabricheck_node_\w+\{node="\w+"\}', line)
    }
    assert (told["exit_code", "n1"], told["exit_code", "n2"]) == ("0", "13")
    for what in ("session_timestamp_seconds", "pass_timestamp_seconds"):
        assert float(told[what, "n1"]) - float(told[what, "n2"]) == 86400
