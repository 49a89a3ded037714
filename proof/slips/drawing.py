"""Which slips there can be, and a draw of some: the operators are those of cosmic-ray."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import mutating, plugins
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.operators.operator import Operator

#: The rooms of the package in which slips are made.
ROOMS = ("judge", "references", "results", "rfm", "run", "tools")


@dataclass(frozen=True)
class Slip:
    """One changed place of a file.

    path: from the root. line: where. operator: its name in cosmic-ray. before, after: the text of
    the file.
    """

    path: str
    line: int
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """Where it is, and what it changes."""
        before, after = self.lines
        return f"{self.path}:{self.line}: {before} -> {after}"

    def changed(self) -> str:
        """Return the text of its file with the slip in it."""
        return self.after

    @property
    def lines(self) -> tuple[str, str]:
        """The first line that differs, before and after."""
        before, after = self.before.splitlines(), self.after.splitlines()
        for old, new in zip(before, after, strict=False):
            if old != new:
                return old.strip(), new.strip()
        return "", ""


@dataclass(frozen=True)
class _Occurrence:
    operator: str
    number: int


class _Places(Visitor):
    """Collects what each operator can change, by the place in the file."""

    def __init__(self, operators: dict[str, Operator]) -> None:
        self.operators = operators
        self.counts: Counter[str] = Counter()
        self.found: dict[tuple[int, int], list[_Occurrence]] = {}

    def visit(self, node):
        """Note the places of a node; it is left as it is."""
        for name, operator in self.operators.items():
            for start, _ in operator.mutation_positions(node):
                occurrence = _Occurrence(name, self.counts[name])
                self.found.setdefault(start, []).append(occurrence)
                self.counts[name] += 1
        return node


def operators() -> dict[str, Operator]:
    """Return the operators that need no argument, by name."""
    by_name = {}
    for name in sorted(plugins.operator_names()):
        operator = plugins.get_operator(name)
        if not operator.arguments():
            by_name[name] = operator()
    return by_name


def behaviour(text: str) -> str:
    """Return a program without what changes nothing when it runs: annotations and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.arg():
                node.annotation = None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
            case ast.AnnAssign():
                node.annotation = ast.Constant(None)
            case ast.Expr(value=ast.Constant(value=str())):
                node.value = ast.Constant(None)
    return ast.unparse(tree)


def changes_behaviour(before: str, after: str) -> bool:
    """Whether a program is another one; what is none any more would be seen wherever it starts.

    An operator can be changed that is none, as the stars before a mapping.
    """
    try:
        return behaviour(after) != behaviour(before)
    except SyntaxError:
        return False


def drawn(root: Path, seed: int, number: int, rooms: Sequence[str] = ROOMS) -> Iterator[Slip]:
    """Yield slips: a file is drawn by its length, of its places one, and of its operators one.

    A slip that changes no behaviour is drawn again.
    """
    chance = random.Random(seed)
    every = operators()
    folders = [root / "src" / "fabricheck" / room for room in rooms]
    texts = {
        file: file.read_text(encoding="utf-8")
        for folder in folders
        for file in sorted(folder.rglob("*.py"))
    }
    lengths = [text.count("\n") for text in texts.values()]
    known: dict[Path, list[tuple[int, list[_Occurrence]]]] = {}
    while number > 0:
        (file,) = chance.choices([*texts], lengths)
        if file not in known:
            known[file] = _places(texts[file], every)
        if not known[file]:
            continue
        line, occurrences = chance.choice(known[file])
        occurrence = chance.choice(occurrences)
        before = texts[file]
        after = _mutated(before, every[occurrence.operator], occurrence.number)
        if after is None or not changes_behaviour(before, after):
            continue
        number -= 1
        name = occurrence.operator.removeprefix("core/")
        yield Slip(file.relative_to(root).as_posix(), line, name, before, after)


def _mutated(text: str, operator: Operator, number: int) -> str | None:
    try:
        return mutating.mutate_code(text, operator, number)
    except AttributeError:
        # cosmic-ray 8.7 replaces no exception that is an attribute, as in "except errors.Failure".
        return None


def _places(text: str, every: dict[str, Operator]) -> list[tuple[int, list[_Occurrence]]]:
    """Return the lines of a file's places, each with what can be changed there."""
    collected = _Places(every)
    collected.walk(get_ast(text))
    return [(line, found) for (line, _), found in sorted(collected.found.items())]
