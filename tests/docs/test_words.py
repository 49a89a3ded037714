"""One word for a thing: texts have none of the words that ci/prose.yaml has replaced."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from fabricheck.cli import app
from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT

REPLACED: dict[str, str] = yaml_files.read(ROOT / "ci" / "prose.yaml")["everywhere"]
#: Any of them, as a word.
ANY = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, REPLACED))})(?![\w-])", re.IGNORECASE)

PYTHON = [path for folder in ("src/fabricheck", "reframe_checks", "config", "ci")
          for path in sorted((ROOT / folder).rglob("*.py"))]  # fmt: skip
PROGRAMS = sorted((ROOT / "src").rglob("*.[ch]pp"))
SCRIPTS = [*sorted((ROOT / "ci").rglob("*.sh")), ROOT / "spack-env" / "install"]


def found(text: str) -> list[str]:
    """Return the replaced words in a text, whatever its line breaks, each with its replacement."""
    words = " ".join(text.split())
    if not ANY.search(words):
        return []
    return [
        f"{old!r} (use {new!r})"
        for old, new in REPLACED.items()
        if re.search(rf"(?<![\w-]){re.escape(old)}(?![\w-])", words, re.IGNORECASE)
    ]


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of a Python file: docstrings, and what it prints."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def helps(command, name: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command and of all below it, by what a user types."""
    context = command.make_context(name, [], resilient_parsing=True)
    yield name, command.get_help(context)
    if hasattr(command, "list_commands"):
        for word in command.list_commands(context):
            yield from helps(command.get_command(context, word), f"{name} {word}")


def test_help_has_no_replaced_word():
    texts = dict(helps(typer.main.get_command(app), "fabricheck"))
    assert {"fabricheck", "fabricheck compare", "fabricheck results show"} <= texts.keys()
    for name, text in texts.items():
        assert "Options" in text, name
        assert not found(text), name


def test_every_replaced_word_is_found_and_its_replacement_is_none():
    assert len(REPLACED) > 20 and REPLACED["occasion"] == "campaign"
    for old, new in REPLACED.items():
        assert found(f"The {old.upper().replace(' ', chr(10))}.") and not found(new)
    assert not found("occasional, whomsoever")


@pytest.mark.slow
def test_strings_of_python_have_no_replaced_word():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(words)}"
        for path in PYTHON
        for line, text in strings_of(path)
        if (words := found(text))
    ]
    assert not wrong


def test_strings_of_the_programs_have_no_replaced_word():
    for path in PROGRAMS:
        text = path.read_text(encoding="utf-8")
        joined = re.sub(r'"\s*\n\s*"', "", text)  # adjacent literals are one text
        strings = "\n.\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined))
        words = found(strings)
        assert not words, path.relative_to(ROOT)


def test_scripts_have_no_replaced_word():
    for path in SCRIPTS:
        words = found(path.read_text(encoding="utf-8"))
        assert not words, path.relative_to(ROOT)


def prose(*arguments):
    """Run the check of `make lint`."""
    command = [sys.executable, str(ROOT / "ci" / "prose.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pages_have_no_replaced_word():
    done = prose()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("What was told.", "reported"),
        ("It cannot be given with others.", "cannot be combined with"),
        ("reframe -t node -r", "--mode="),
        ("    reframe -c reframe_checks -r", "the default"),
        ("A stand-in prints it.", "substitute"),
    ],
)
def test_a_private_word_on_a_page_is_found(tmp_path, line, write):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\nAll is well; `told`, and -c reframe_checks -c mine.\n\n{line}\n")
    done = prose(page)
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"{page}:5: ") and write in said
