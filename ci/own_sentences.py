"""Forbid modules below `cli` and `report` to read a sentence of ours: data are records.

    python ci/own_sentences.py

A sentence of ours is told by its name: an attribute, a key or a variable named as in OURS. Such a
name may be printed, joined and put into other sentences; no method may search or take it apart, no
`in` may look into it, and no regular expression may be given it. Text of others has other names.
EXCEPTIONS are files and names that hold text of others under such a name, each with its reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "fabricheck"
SHOWN_BY = ("cli/", "core/", "report/")

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
    ("judge/verdict/checks.py", "reason"): "ReFrame names the exception that ended a session",
    ("results/archive.py", "sentence"): "temporary folders become the archives they are of",
    ("results/session.py", "reason"): "ReFrame puts the words of an exception before a reason",
    ("tools/recording.py", "why"): "the output of a tool",
}


def name_of(node: ast.expr) -> str | None:
    """Return the last name of an expression: of a.b and a["b"] it is b."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Name(id="str"), args=[one]):
            return name_of(one)
    return None


def read(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts that an expression searches or takes apart."""
    match node:
        case ast.Call(func=ast.Attribute(value=text, attr=method), args=[_, *_]) if (
            method in METHODS
        ):
            yield text
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=texts):
            yield from texts
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[text]):
            yield text


def readings(file: str, text: str) -> Iterator[str]:
    """Yield what of a file, below `src/fabricheck`, reads a sentence of ours."""
    for node in ast.walk(ast.parse(text)):
        for one in read(node):
            name = name_of(one)
            if name in OURS and (file, name) not in EXCEPTIONS:
                yield f"src/fabricheck/{file}:{one.lineno}: it reads the text of '{name}'"


def main() -> int:
    """Print each place that reads a sentence of ours; 1 if there is one."""
    files = {str(one.relative_to(SOURCE)): one for one in sorted(SOURCE.rglob("*.py"))}
    found = [
        reading
        for file, path in files.items()
        if not file.startswith(SHOWN_BY)
        for reading in readings(file, path.read_text(encoding="utf-8"))
    ]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
