"""What all commands show by: lists of names, tables of rich, of Markdown, and JSON."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import struct
import termios
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

import fabricheck
from fabricheck.core import show
from fabricheck.core.show import Table, enumerated, listed, numbered


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], None, ""),
        (["a"], None, "a"),
        (["a", "b"], None, "a, b"),
        ([1, 2, 3], 3, "1, 2, 3"),
        ([1, 2, 3], 2, "1, 2 and 1 more"),
        (range(9), 1, "0 and 8 more"),
    ],
)
def test_the_first_names_and_the_number_of_the_others(names, most, text):
    assert listed(names, most) == text


def test_names_in_a_sentence():
    assert [enumerated(names) for names in ([], "a", "ab", "abc")] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip
    assert enumerated("abc", last="or") == "a, b or c"
    assert enumerated("abcd", 2) == "a, b and 2 more"
    assert [numbered("device", ids) for ids in ([0], [0, 1, 2])] == [
        "device 0", "devices 0, 1 and 2",
    ]  # fmt: skip


@dataclass
class Found:
    value: float
    at: datetime
    where: Path
    names: frozenset[str]


def test_json_has_the_members_of_the_result_and_null_for_what_is_no_number(capsys):
    when = datetime(2026, 1, 2, tzinfo=UTC)
    show.result([Found(float("nan"), when, Path("a"), frozenset("ba"))], [], as_json=True)
    assert json.loads(capsys.readouterr().out) == [
        {"value": None, "at": "2026-01-02T00:00:00+00:00", "where": "a", "names": ["a", "b"]}
    ]


def test_a_table_shows_its_first_rows_below_its_line_and_nothing_without_rows(capsys):
    rows = [(f"row {number}", "1") for number in range(5)]
    shown = Table(("Name", "n"), rows, ("n",), most=2, rest="--all", above="Rows:")
    show.result(None, [shown, Table(("Nothing",), [], above="Not shown")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["Rows:", "Name  n", "row 0 1", "row 1 1", "and 3 more: --all"]


def test_markdown_shows_the_same_and_takes_text_as_text(capsys):
    show.result(None, ["A *line*", "", Table(("a", "b"), [("1|2", "x")], ("b",))], as_markdown=True)
    assert capsys.readouterr().out == ("A \\*line\\*\n\n| a | b |\n|---|---:|\n| 1\\|2 | x |\n\n")


def test_nothing_is_wrapped_in_a_pipe_unless_columns_says_how_wide_it_is(capsys, monkeypatch):
    long = "word " * 99 + "\x1b"
    row = Table(("a", "b"), [("x", "cell " * 99 + "end"), ("y", "short")])
    show.result(None, [long, row])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["word " * 99 + "\\x1b", "a b", f"x {'cell ' * 99}end", "y short"]
    monkeypatch.setenv("COLUMNS", "60")
    show.result(None, [long, row])
    lines = capsys.readouterr().out.splitlines()
    assert 55 < max(map(len, lines)) <= 60
    show.result(None, [long], wrapped=False)
    assert capsys.readouterr().out == "word " * 99 + "\\x1b\n"


def test_nothing_else_draws_a_table_or_counts_what_it_leaves_out():
    source = Path(fabricheck.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text()
        if path != source / "core" / "show.py":
            assert not re.search(r"^from rich|import rich|^ +from rich(?!\.text)", text, re.M), path
            assert not re.search(r"[Aa]nd \{len\([^}]*\} more\b", text), path


@contextlib.contextmanager
def terminal():
    """Make standard error a terminal of 40 columns, and give how to read it."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with os.fdopen(slave, "w") as stderr, contextlib.redirect_stderr(stderr):
        yield lambda: os.read(master, 1 << 12).decode()
    os.close(master)


def test_a_terminal_shows_what_is_done_until_it_is_done():
    work = "reading session 3 of 40"
    with terminal() as read:
        with show.working(work):
            assert read() == f"{work} ..."
        assert read() == f"\r{27 * ' '}\r"


def test_what_is_done_is_gone_after_an_error_too():
    with terminal() as read:
        with pytest.raises(ValueError), show.working("drawing"):
            assert read() == "drawing ..."
            raise ValueError
        assert read() == f"\r{11 * ' '}\r"


def test_what_is_done_takes_one_line_of_a_narrow_terminal():
    with terminal() as read, show.working("judging " + 60 * "x"):
        assert len(read()) == 39


def test_a_pipe_does_not_show_what_is_done(capsys):
    with show.working("judging"):
        pass
    assert capsys.readouterr() == ("", "")
