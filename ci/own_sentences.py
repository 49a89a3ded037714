"""Forbid modules below `cli` and `report` to read a sentence of ours: data are records.

    python ci/own_sentences.py

A sentence is a text of three words or more that we write, constant or filled in. It may be printed,
joined and put into other sentences. No method may search or take it apart, no `in` may look into
it, and no regular expression may be given it. A sentence is followed

- through variables of a function, conditions, sums, `join`, lists and loops;
- through calls of a function of this or of an imported module that returns or yields it;
- by name where it is an attribute or a key: those of OURS.

The other way round, no method, `in`, `==` or regular expression may look for the two first words of
a sentence of `cli`, `report` or `judge`, or for three others: so one that comes back through a file
or from a command is seen too. What is not seen: a pattern of fewer words or in a variable, a
sentence in an attribute of another name or in an argument. EXCEPTIONS are texts of others, each
with its reason.

A test asserts values: what a sentence says word by word stands in a snapshot (tests/wording.py).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fabricheck"

#: What reads no sentence: the rooms that show them, and what all use to write them.
SHOWN_BY = ("cli/", "core/", "report/")

#: The rooms whose sentences users read.
MADE_BY = ("cli/", "judge/", "report/")

OURS = frozenset({
    "because", "label", "message", "note", "problem", "reason", "sentence", "sentences",
    "statement", "why",
})  # fmt: skip
METHODS = frozenset({
    "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace",
    "rpartition", "rsplit", "split", "startswith",
})  # fmt: skip

#: By file and name, why that text is not ours.
EXCEPTIONS = {
    ("beside/record.py", "sentence"): "paths that a tool or its loader prints are shortened",
    ("judge/verdict/attempts.py", "reason"): "ReFrame names the exception that ended a session",
    ("results/archive.py", "sentence"): "temporary folders become the archives they are of",
    ("results/session.py", "reason"): "ReFrame puts the words of an exception before a reason",
    ("tools/recording.py", "why"): "the output of a tool",
    ("tools/topology/inventory.py", "last_words"): "the output of a program",
}

#: How many words make a sentence, and how many make a pattern that looks for one. A constant of
#: fewer than four may be a name.
WORDS_OF_SENTENCE, WORDS_OF_PATTERN, WORDS_OF_CONSTANT = 3, 2, 4

#: How many words, to a full stop or a colon, are a sentence in an assert.
WORDS_OF_ASSERTED = 6

_WORD = re.compile(r"[A-Za-z]{2,}")
_FILLED_IN = "\0"

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: What gives a variable its value (`Values.assign`).
ASSIGNING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.comprehension,
)  # fmt: skip


def words(text: str) -> int:
    """Return how many words a text has; one without a space is a name or a path."""
    return len(_WORD.findall(text)) if " " in text.strip() else 0


def written(node: ast.AST) -> str | None:
    """Return the text of a constant or an f-string, with a mark for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(written(part) or _FILLED_IN for part in parts)
    return None


def name_of(node: ast.expr) -> str | None:
    """Return the last name of an expression: of a.b, a["b"] and a.b() it is b."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Name(id="str"), args=[text]):
            return name_of(text)
        case ast.Call(func=function):
            return name_of(function)
    return None


def inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function or a module, but not in the functions within it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, Function):
            yield from inside(node)


@dataclass
class Module:
    """A file, and what its names mean.

    scopes: itself and its functions, each with what is in it. imports: by name, the module and the
    name there. text: the functions that return a sentence. several: those that return or yield
    some.
    """

    file: str
    tree: ast.Module
    scopes: list[tuple[ast.AST, list[ast.AST]]] = field(default_factory=list)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    text: set[str] = field(default_factory=set)
    several: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the scopes and the imports."""
        self.scopes.append((self.tree, [*inside(self.tree)]))
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                self.scopes.append((node, [*inside(node)]))
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (node.module, alias.name)


class Values:
    """Which expressions of a function are a sentence of ours, and which are several."""

    def __init__(
        self, module: Module, nodes: Sequence[ast.AST], modules: Mapping[str, Module]
    ) -> None:
        """Follow the assignments and loops of the function until nothing is new."""
        self.module, self.modules, self.nodes = module, modules, nodes
        self.text: set[str] = set()
        self.several: set[str] = set()
        assigning = [node for node in nodes if isinstance(node, ASSIGNING)]
        before = None
        while before != (self.text, self.several):
            before = ({*self.text}, {*self.several})
            for node in assigning:
                self.assign(node)

    def assign(self, node: ast.AST) -> None:
        """Note the variables that a statement gives a sentence, or several."""
        match node:
            case ast.Assign(targets=targets, value=value):
                names = {target.id for target in targets if isinstance(target, ast.Name)}
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                names = {name}
            case (
                ast.For(target=ast.Name(id=name), iter=several)
                | ast.comprehension(target=ast.Name(id=name), iter=several)
            ) if self.are_ours(several):
                self.text.add(name)
                return
            case _:
                return
        if self.is_ours(value):
            self.text |= names
        if self.are_ours(value):
            self.several |= names

    def is_ours(self, node: ast.expr) -> bool:
        """Whether an expression is a sentence of ours."""
        match node:
            case ast.Constant() | ast.JoinedStr():
                return words(written(node) or "") >= WORDS_OF_SENTENCE
            case ast.Name(id=name):
                return name in self.text
            case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
                return self.is_ours(first) or self.is_ours(second)
            case ast.BoolOp(values=parts):
                return any(map(self.is_ours, parts))
            case ast.Subscript(value=value):
                return self.is_ours(value) or self.are_ours(value)
            case ast.Call(func=ast.Attribute(value=text, attr="join"), args=parts):
                return self.is_ours(text) or any(map(self.are_ours, parts))
            case ast.Call(func=ast.Attribute(value=text, attr="strip" | "rstrip" | "lstrip")):
                return self.is_ours(text)
            case ast.Call(func=function):
                module, name = self.function(function)
                return name in module.text
        return False

    def are_ours(self, node: ast.expr) -> bool:
        """Whether an expression has several sentences of ours."""
        match node:
            case ast.Name(id=name):
                return name in self.several
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return any(self.is_ours(part) or self.are_ours(part) for part in parts)
            case ast.Starred(value=value):
                return self.are_ours(value)
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.SetComp(elt=value):
                return self.is_ours(value)
            case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
                return self.are_ours(first) or self.are_ours(second)
            case ast.Call(func=ast.Name(id="list" | "tuple" | "sorted" | "set"), args=[value, *_]):
                return self.are_ours(value)
            case ast.Call(func=function):
                module, name = self.function(function)
                return name in module.several
        return False

    def function(self, called: ast.expr) -> tuple[Module, str]:
        """Return the module of a function that is called, this one where it is unknown."""
        match called:
            case ast.Name(id=name) if name in self.module.imports:
                where, name = self.module.imports[name]
                return self.modules.get(where, self.module), name
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                return self.module, name
            case ast.Attribute(value=ast.Name(id=alias), attr=name) if alias in self.module.imports:
                where = ".".join(self.module.imports[alias])
                return self.modules.get(where, self.module), name
        return self.module, ""


def note_results(module: Module, function: ast.AST, values: Values) -> None:
    """Note a function that returns a sentence of ours, or returns or yields several."""
    if not isinstance(function, Function) or function.returns is None:
        return
    returns = ast.unparse(function.returns)
    for node in values.nodes:
        match node:
            case ast.Return(value=ast.expr() as value):
                if returns in ("str", "str | None") and values.is_ours(value):
                    module.text.add(function.name)
                if "[str]" in returns and values.are_ours(value):
                    module.several.add(function.name)
            case ast.Yield(value=ast.expr() as value) if "[str]" in returns:
                if values.is_ours(value):
                    module.several.add(function.name)
            case ast.YieldFrom(value=value) if "[str]" in returns:
                if values.are_ours(value):
                    module.several.add(function.name)


def follow(modules: Mapping[str, Module]) -> None:
    """Find the functions that return sentences, until nothing is new."""
    before, now = -1, 0
    while before != now:
        before = now
        for module in modules.values():
            for scope, nodes in module.scopes:
                note_results(module, scope, Values(module, nodes, modules))
        now = sum(len(module.text) + len(module.several) for module in modules.values())


def read(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts that an expression searches or takes apart."""
    match node:
        case ast.Call(func=ast.Attribute(value=text, attr=method), args=[_, *_]) if (
            method in METHODS
        ):
            yield text
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[_, *texts]):
            yield from texts
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[text]):
            yield text


def looked_for(node: ast.AST) -> Iterator[str]:
    """Yield the texts that an expression looks for."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
            for text in constants(pattern):
                yield from literals(text)
        case ast.Call(func=ast.Attribute(attr=method), args=[text, *_]) if method in METHODS:
            yield from constants(text)
        case ast.Compare(left=text, ops=[ast.In() | ast.NotIn()], comparators=[where]) if (
            not isinstance(where, ast.Tuple | ast.List | ast.Set)
        ):
            yield from constants(text)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            yield from (*constants(left), *constants(right))


def constants(node: ast.AST) -> Iterator[str]:
    """Yield the constant parts of a text, or of several."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def literals(pattern: str) -> Iterator[str]:
    """Yield what a regular expression has letter by letter; of a part of one all."""
    try:
        parsed = _parser.parse(pattern)
    except re.error:
        yield pattern
        return
    yield from _literals(parsed)


def _literals(parsed: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    text = ""
    for kind, what in parsed:
        if kind is _constants.LITERAL:
            text += chr(what)
            continue
        yield text
        text = ""
        if kind is _constants.SUBPATTERN:
            yield from _literals(what[-1])
        elif kind is _constants.BRANCH:
            for branch in what[1]:
                yield from _literals(branch)
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            yield from _literals(what[2])
    yield text


def sentences(modules: Iterable[Module]) -> dict[str, str]:
    """Return the sentences of what is shown, each with its place."""
    made: dict[str, str] = {}
    for module in modules:
        if not module.file.startswith(MADE_BY):
            continue
        nodes = [*ast.walk(module.tree)]
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        parts = {part for node in joined for part in node.values}
        for node in nodes:
            text = "" if node in parts else written(node) or ""
            least = WORDS_OF_PATTERN if isinstance(node, ast.JoinedStr) else WORDS_OF_CONSTANT
            if words(text) >= least:
                made.setdefault(text, f"{module.file}:{getattr(node, 'lineno', 0)}")
    return made


def readings(files: Mapping[str, str]) -> Iterator[str]:
    """Yield what reads a sentence of ours, of the texts of files below `src/fabricheck`."""
    modules = {
        "fabricheck."
        + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): Module(
            name, ast.parse(text)
        )
        for name, text in files.items()
    }
    follow(modules)
    made = sentences(modules.values())
    for module in modules.values():
        if module.file.startswith(SHOWN_BY):
            continue
        for _, nodes in module.scopes:
            values = Values(module, nodes, modules)
            for node in nodes:
                for reading in _of_node(node, values, made):
                    yield f"src/fabricheck/{module.file}:{getattr(node, 'lineno', 0)}: {reading}"


def _of_node(node: ast.AST, values: Values, made: Mapping[str, str]) -> Iterator[str]:
    file = values.module.file
    for text in read(node):
        name = name_of(text)
        if (file, name) in EXCEPTIONS:
            continue
        if name in OURS:
            yield f"it reads the text of '{name}'"
        elif values.is_ours(text):
            yield f"it reads the sentence of '{ast.unparse(text)}'"
    for text in looked_for(node):
        if words(text) < WORDS_OF_PATTERN:
            continue
        for sentence, place in made.items():
            if sentence.startswith(text) or (words(text) > WORDS_OF_PATTERN and text in sentence):
                yield f"it looks for '{text}', which {place} writes"
                break


def asserted(files: Mapping[str, str]) -> Iterator[str]:
    """Yield each sentence that a test asserts.

    :param files: the texts of tests, by file.
    """
    for file, text in files.items():
        for statement in _statements(ast.parse(text)):
            if not isinstance(statement, ast.Assert):
                continue
            for node in ast.walk(statement.test):
                if isinstance(node, ast.Constant) and _is_asserted_sentence(node.value):
                    yield f"{file}:{node.lineno}: it asserts a sentence; give it to `wording`"


def _statements(of: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(of):
        if isinstance(node, ast.stmt):
            yield node
            yield from _statements(node)


def _is_asserted_sentence(value: object) -> bool:
    if not isinstance(value, str):
        return False
    return len(value.split()) >= WORDS_OF_ASSERTED and value.rstrip().endswith((".", ":"))


def _texts(folder: Path, pattern: str, root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob(pattern))
    }


def main() -> int:
    """Print each place that reads a sentence of ours, or asserts one; 1 if there is one."""
    offences = [
        *readings(_texts(SOURCE, "*.py", SOURCE)),
        *asserted(_texts(ROOT / "tests", "test_*.py", ROOT)),
    ]
    print("\n".join(offences), end="\n" if offences else "", file=sys.stderr)
    return int(bool(offences))


if __name__ == "__main__":
    sys.exit(main())
