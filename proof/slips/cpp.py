"""Slips of C++: drawn by rules, compiled, and shown to the tests.

The rules are few and our own: the library that has such for C++ needs a package that stands before
Python's module `typing`.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from proof.mutants import chosen
from proof.mutants.runs import NotRunError, Tree
from proof.slips.drawing import Slip

#: The folders whose files are changed.
FOLDERS = ("src/bench", "src/runtime/sim", "src/runtime/host")

#: What is changed in a line, and what it can become. Operators have blanks around them, which
#: brackets of templates and signs have not.
RULES: tuple[tuple[str, str, Sequence[str]], ...] = (
    ("operator", r" < ", (" <= ", " > ")),
    ("operator", r" <= ", (" < ", " == ")),
    ("operator", r" > ", (" >= ", " < ")),
    ("operator", r" >= ", (" > ", " == ")),
    ("operator", r" == ", (" != ",)),
    ("operator", r" != ", (" == ",)),
    ("operator", r" \+ ", (" - ",)),
    ("operator", r" - ", (" + ",)),
    ("operator", r" \* ", (" / ",)),
    ("operator", r" / ", (" * ",)),
    ("operator", r" \+= ", (" = ", " -= ")),
    ("operator", r" && ", (" || ",)),
    ("operator", r" \|\| ", (" && ",)),
    ("operator", r"(?<=[( ])!(?=[a-z])", ("",)),
    ("bound", r"\b0\b(?!\.)", ("1",)),
    ("bound", r"\b1\b(?!\.)", ("0", "2")),
    ("bound", r"\bbegin\(\)", ("end()",)),
    ("bound", r"\bfront\(\)", ("back()",)),
    ("bound", r"\bback\(\)", ("front()",)),
    ("order", r"\bstd::min\b", ("std::max",)),
    ("order", r"\bstd::max\b", ("std::min",)),
    ("order", r"\bmin_element\b", ("max_element",)),
    ("order", r"\bmax_element\b", ("min_element",)),
    ("order", r"\bany_of\b", ("all_of",)),
    ("order", r"\ball_of\b", ("any_of",)),
    ("order", r"\bsource\b", ("destination",)),
    ("order", r"\bdestination\b", ("source",)),
    ("unit", r"\b1e9\b", ("1e6",)),
    ("unit", r"\b1e6\b", ("1e3",)),
    ("unit", r"\b1e-3\b", ("1e-6",)),
    ("unit", r"\b1e-6\b", ("1e-3",)),
    ("unit", r"\b<< 20\b", ("<< 10",)),
    ("unit", r"\b1024\b", ("1000",)),
)  # fmt: skip

#: What is built, both with their unit tests: `make test` runs those of sim, `make test-all` those
#: of host, too; and what these have in common, before them.
_BUILDS = ("host", "sim")
_COMMON = "cpu"

#: What starts programs, and sees most of what the unit tests do not.
_OF_PROGRAMS = ("programs", "sim")

#: Seconds that a build may take, and that a list of tests may take.
_BUILD_S, _TESTS_S = 900, 900

_COMMENT = re.compile(r"\s*//.*")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def drawn(root: Path, seed: int) -> Iterator[Slip]:
    """Yield slips without an end: a file is drawn by its length, of its places one."""
    chance = random.Random(seed)
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.cpp"))]
    texts = [file.read_text(encoding="utf-8") for file in files]
    lengths = [text.count("\n") for text in texts]
    while True:
        (number,) = chance.choices(range(len(files)), lengths)
        places = list(_places(texts[number]))
        if not places:
            continue
        line, kind, start, end, others = chance.choice(places)
        lines = texts[number].splitlines(keepends=True)
        before = lines[line - 1]
        lines[line - 1] = before[:start] + chance.choice(others) + before[end:]
        path = files[number].relative_to(root).as_posix()
        yield Slip(path, line, kind, texts[number], "".join(lines))


def _places(text: str) -> Iterator[tuple[int, str, int, int, Sequence[str]]]:
    """Yield what can be changed: the line, the rule's kind, from where to where, into what.

    Left out are comments, texts, and what is for the preprocessor.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            continue
        code = _TEXT.sub(lambda match: '"' * len(match[0]), line)
        code = _COMMENT.sub("", code)
        for kind, pattern, others in RULES:
            for match in re.finditer(pattern, code):
                yield number, kind, match.start(), match.end(), others


@cache
def built(scratch: str) -> Tree:
    """Return the copy of the tree that this process has, with builds of its own."""
    tree = Tree.copied(Path(scratch) / f"cpp-{os.getpid()}")
    (tree.folder / "build").unlink()
    for name in _BUILDS:
        command = ["make", "programs", f"BUILDS={name}", "CMAKE_OPTIONS=-DFABRICHECK_TESTS=ON"]
        subprocess.run(command, cwd=tree.folder, check=True, capture_output=True)
    return tree


def _build(tree: Tree) -> bool:
    """Build the programs; returns whether they compile."""
    for name in (_COMMON, *_BUILDS):
        command = ["cmake", "--build", f"build/{name}"]
        ended = subprocess.run(command, cwd=tree.folder, capture_output=True, timeout=_BUILD_S)
        if ended.returncode:
            return False
    return True


def _machine_code(tree: Tree) -> str:
    """Return a digest of the machine code of all programs and of the unit tests."""
    digest = hashlib.sha256()
    for file in sorted((tree.folder / "build").rglob("*.o")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _code_before(scratch: str) -> str:
    return _machine_code(built(scratch))


def see(slip: Slip, scratch: str) -> str | None:
    """Compile a slip, and return what sees it first; None where nothing does.

    :param scratch: the folder of the copies.
    :raises NotRunError: when it does not compile, or the compiler makes the same of it.
    """
    tree = built(scratch)
    before = _code_before(scratch)
    with tree.changed(slip.path, slip.after):
        if not _build(tree):
            raise NotRunError("it does not compile")
        if _machine_code(tree) == before:
            raise NotRunError("it changes nothing")
        return _first_failure(slip, tree, scratch)


def _first_failure(slip: Slip, tree: Tree, scratch: str) -> str | None:
    for name in _BUILDS:
        command = ["ctest", "--test-dir", f"build/{name}", "--timeout", "120"]
        if subprocess.run(command, cwd=tree.folder, capture_output=True).returncode:
            return "(unit tests)"
    for tests in (_OF_PROGRAMS, *chosen.likeliest(slip)):
        if tests:
            failed, _ = chosen.first_failure(tree, tests, scratch, _TESTS_S)
            if failed is not None:
                return failed
    return None
