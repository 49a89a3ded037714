"""How the tests call `fabricheck results export` and read what it wrote."""

import csv
import io

from typer.testing import CliRunner

from fabricheck.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["results", "export", *map(str, arguments)])


def read(text):
    """Return the rows of a CSV; a cell without anything is not in its row."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


def rows(*arguments, code=0):
    """Return the rows that are written to standard output, and what is said beside them."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return read(result.stdout), result.stderr


def of(kind, found):
    return [row for row in found if row["kind"] == kind]
