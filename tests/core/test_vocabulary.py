"""The words of the suite stand in one file, and no check, claim or program has another one."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = runpy.run_path(str(ROOT / "ci/vocabulary.py"))["vocabulary"]()
MADE = ("src/fabricheck/core/vocabulary.py",)

#: By field of a series the words that it may have. Units, runtimes and statuses are of more than
#: series.
FIELDS = {
    **{kind["schema"]: set(kind["words"]) for kind in KINDS.values() if "schema" in kind},
    "experiments": set(KINDS["experiment"]["words"]),
}
for field in ("unit", "runtime", "status"):
    del FIELDS[field]
#: What these names have that is no field of a series: a role of HTML, a place in a node model, the
#: directions of a component of the diagnosis, the experiment of an operation.
OTHERS = {"img", "devices.memory_peak_gbs", "", "from", "to", "one-way", "E7"}

#: Words of C++ that are also names of members, programs or other kinds of thing there.
ALSO_NAMES = {"both", "cache", "copy", "cpu", "cuda", "device", "devices", "engine", "engines",
              "GB/s", "host", "kernel", "latency", "managed", "memory", "mpi", "nic", "node",
              "package", "read", "rocm", "simulated", "us", "write"}  # fmt: skip


def words_of(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Yield each field of a series that a program selects by or sets, the word, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            # Of a table by operation, such as "engine", a row is no word.
            pairs = [(one, value) for one, value in zip(node.keys, node.values, strict=True)
                     if not isinstance(value, ast.Tuple)]  # fmt: skip
        elif isinstance(node, ast.Call):
            # Polars has engines too, and nodes are reached by a scheduler.
            called = ast.unparse(node.func)
            is_other = called.startswith("pl.") or called.endswith("reached")
            given = [] if is_other else node.keywords
            pairs = [(ast.Constant(one.arg), one.value) for one in given]
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            pairs = [(one, other) for one in sides for other in sides if one is not other]
        elif isinstance(node, ast.Assign):
            pairs = [(one, node.value) for one in node.targets]
        else:
            continue
        for field, value in pairs:
            name = field_named(field)
            if name in FIELDS:
                yield from ((name, word, value.lineno) for word in texts(value))


def field_named(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        node = node.args[0] if node.func.attr == "get" else None
    if isinstance(node, ast.Subscript):
        node = node.slice
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.rpartition(".")[2]  # source.memory
    return node.attr if isinstance(node, ast.Attribute) else None


def texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for one in node.elts:
            yield from texts(one)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def strangers(source: str, name: str) -> list[str]:
    return [
        f"{name}:{line}: {field} {word!r}"
        for field, word, line in words_of(ast.parse(source))
        if word not in FIELDS[field] | OTHERS
    ]


@pytest.mark.slow
def test_checks_claims_and_figures_have_words_of_the_vocabulary():
    found = [
        stranger
        for folder in ("src/fabricheck", "reframe_checks", "config")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for stranger in strangers(file.read_text(), str(file.relative_to(ROOT)))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'Metric("copy", where={"engine": "copy_engine"})',
        'where = {"source.memory": "host-pined"}',
        'observed.select(experiment={"E2", "E99"}, role="single")',
        'if series["role"] in ("single", "summ"): pass',
        'if fields.get("direction") != "both": pass',
        'series["movement"] = "zero_copy" if pinned else "prefetch"',
        'Claim(experiments=("E21",))',
    ],
)
def test_a_word_that_is_not_in_the_vocabulary_is_found(source):
    assert len(strangers(source, "here")) == 1


def test_programs_take_their_words_from_the_header():
    words = {word for kind in KINDS.values() if "header" in kind for word in kind["words"]}
    found = [
        f"{file.relative_to(ROOT)}:{number}: {literal}"
        for folder in ("src/bench", "src/runtime")
        for file in sorted((ROOT / folder).rglob("*.?pp"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        for literal in re.findall(r'"([^"\\]*)"', line.partition("//")[0])
        if literal in words - ALSO_NAMES
    ]
    assert found == []


@pytest.fixture
def copy(tmp_path):
    """Copy the vocabulary and what is made of it."""
    for name in ("ci/vocabulary.py", "src/fabricheck/core/vocabulary.json", *MADE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "ci/vocabulary.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_made_of_the_vocabulary_is_of_today():
    done = run(ROOT, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_word_reaches_every_file(copy):
    file = copy / "src/fabricheck/core/vocabulary.json"
    kinds = json.loads(file.read_text())
    kinds["engine"]["words"]["wormhole"] = "a shortcut"
    file.write_text(json.dumps(kinds))
    told = run(copy, "--check")
    assert told.returncode == 1
    assert [line.split()[0] for line in told.stderr.splitlines()] == list(MADE)
    assert run(copy).returncode == 0
    assert all("wormhole" in (copy / name).read_text() for name in MADE)
    assert run(copy, "--check").returncode == 0
    header = copy / "build" / "vocabulary.hpp"
    assert run(copy, "--header", header).returncode == 0
    assert 'inline constexpr const char* wormhole = "wormhole";' in header.read_text()


def test_files_that_were_edited_by_hand_are_told(copy, wording):
    for name in MADE:
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace("host-pageable", "host-plain", 1))
    told = run(copy, "--check").stderr
    assert [line.split()[0] for line in told.splitlines()] == list(MADE)
    wording(told)
