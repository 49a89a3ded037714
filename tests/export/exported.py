"""How the tests call `fabricheck results export` and read what it wrote."""

import csv
import io


def read(text):
    """Return the rows of a CSV; a cell without anything is not in its row."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


def rows(command, *arguments, code=0):
    """Return the rows that are written to standard output, and what is said beside them."""
    result = command("results", "export", *arguments, code=code)
    return read(result.stdout), result.stderr


def of(kind, found):
    return [row for row in found if row["row_type"] == kind]
