"""What a command did as lines to compare: what it printed, its exit code, the files it wrote.

JSON is set in fewer lines, and a result document in it that is a file is not told again. Of a long
table of results all checks and metrics are there, of other rows one of each check; of a long table
of a page and of a long list of JSON the first. A digest is of all, so that nothing changes unseen.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from fabricheck.results.document import load

ROOT = Path(__file__).resolve().parents[2]

#: Lines are set to so many characters where they can be broken.
WIDTH = 120

#: Tables of at most so many rows are shown whole, and lists of JSON of so many values.
SHORT, LONG = 12, 40

#: Where archives are unpacked.
_UNPACKED = re.compile(re.escape(f"{tempfile.gettempdir()}/fabricheck-") + r"\w{8}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
_BLOCKS = frozenset(
    {"title", "h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "dt", "dd", "tr", "caption", "pre",
     "figcaption", "summary", "div", "section", "nav", "header", "footer", "table", "ul", "figure"}
)  # fmt: skip


def normalised(text: str, began: datetime) -> str:
    """Return a text without what differs between machines and runs, and without spaces at ends.

    That is the working folder, the repository's, those of archives, and times since the test began.
    """

    def written(found: re.Match[str]) -> str:
        time = datetime.fromisoformat(found[0])
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return "(now)" if began <= time <= datetime.now(UTC) else found[0]

    for folder, name in ((Path.cwd(), "(here)"), (ROOT, "(repository)")):
        text = text.replace(str(folder), name)
    text = _UNPACKED.sub("(unpacked)", text)
    text = _TIME.sub(written, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def json_text(text: str) -> str:
    """Set JSON so that what fits a line is on one line."""
    return _set(_named(json.loads(text)), 0)


def _named(value: Any) -> Any:
    """Replace the result documents that are read from files by a word."""
    if isinstance(value, list):
        return [_named(one) for one in value]
    if not isinstance(value, dict):
        return value
    path, document = value.get("path"), value.get("document")
    if path and document and load(Path(path)) == document:
        return value | {"document": "(what is in the file)"}
    return {key: _named(one) for key, one in value.items()}


def _set(value: Any, indent: int) -> str:
    if isinstance(value, list) and len(value) > LONG:
        rest = f"({SHORT} of {len(value)}; {_digest(json.dumps(value))})"
        value = [*value[:SHORT], rest]
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or indent + len(line) <= WIDTH:
        return line
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_set(one, indent + 1)}" for key, one in value.items()]
    else:
        parts = [_set(one, indent + 1) for one in value]
    space = "\n" + " " * (indent + 1)
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}{space}{f',{space}'.join(parts)}{last}"


def table_text(text: str) -> str:
    """Show a CSV: its columns, the cells that all rows share, and the rows that tell of the rest.

    Of a row of a check the cells are left out that are those of the check's own row.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    head = list(reader.fieldnames or ())
    shared = {name: rows[0][name] for name in head if len({row[name] for row in rows}) == 1}
    shared = {name: cell for name, cell in shared.items() if len(rows) > 1 or not cell}
    lines = [f"columns: {', '.join(head)}", f"in all rows: {_cells(shared)}".rstrip()]
    shown = rows if len(rows) <= SHORT else list(_telling(rows))
    base: Mapping[str, str] = shared
    for row in shown:
        if row.get("row_type") == "check":
            base = shared
        lines.append(f"- {_cells(row, base)}")
        if row.get("row_type") == "check":
            base = row
    return "\n".join([*lines, f"{len(shown)} of {len(rows)} rows; {_digest(text)}"])


def _cells(row: Mapping[str, str], base: Mapping[str, str] = MappingProxyType({})) -> str:
    own = {name: cell for name, cell in row.items() if cell != base.get(name, "")}
    return ", ".join(f"{name}={cell}" for name, cell in own.items())


def _telling(rows: Sequence[Mapping[str, str]]) -> Iterator[Mapping[str, str]]:
    seen = set()
    for row in rows:
        key = (row.get("row_type"), row.get("check"))
        if row.get("row_type") in ("check", "metric") or key not in seen:
            yield row
        seen.add(key)


def _digest(text: str) -> str:
    return f"digest of all {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def parquet_text(path: Path) -> str:
    """Show a Parquet file: its metadata, the types of its columns, and the digest of its rows."""
    table = pl.read_parquet(path)
    kept = pl.read_parquet_metadata(path)
    lines = [f"{name}: {value}" for name, value in kept.items() if name != "ARROW:schema"]
    lines.append(", ".join(f"{name} {kind}" for name, kind in table.schema.items()))
    return "\n".join([*lines, f"{len(table)} rows; {_digest(repr(table.rows()))}"])


class _Page(HTMLParser):
    """Lines of a page as one reads them, without drawings and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines = [""]
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("style", "script", "svg")
        if tag in _BLOCKS:
            self.lines.append(f"{'#' * int(tag[1])} " if re.fullmatch(r"h\d", tag) else "")
        if tag in ("td", "th"):
            self.lines[-1] += " | "

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script", "svg")
        if tag in _BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def page_text(text: str) -> str:
    """Return the words of an HTML page; a cell begins with a bar, long tables are cut."""
    lines = (" ".join(line.split()) for line in _Page(text).lines)
    found = []
    for is_row, group in itertools.groupby(filter(None, lines), lambda line: line[0] == "|"):
        own = list(group)
        found += own[:SHORT] if is_row else own
        if is_row and len(own) > SHORT:
            found.append(f"{SHORT} of {len(own)} rows; {_digest(''.join(own))}")
    return "\n".join(found)


def file_text(path: Path, began: datetime) -> str:
    """Return what is compared of a file; of a drawing nothing."""
    if path.suffix == ".svg":
        return ""
    if path.suffix == ".parquet":
        return parquet_text(path)
    text = normalised(path.read_bytes().decode(), began)
    of = {".json": json_text, ".csv": table_text, ".html": page_text}
    return of.get(path.suffix, str)(text)


def printed_text(text: str) -> str:
    """Return what is compared of the standard output of a command."""
    if text.startswith(("{\n", "[\n", "[]")):
        return json_text(text)
    return table_text(text) if text.startswith("row_type,") else text
