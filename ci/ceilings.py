"""Count the statements and public names of each room, and hold them below its ceiling.

    python ci/ceilings.py            fail where a room is above its ceiling in ci/ceilings.yaml
    python ci/ceilings.py --lower    write the counts as the new ceilings; none is raised

A statement is one of Python's grammar, without docstrings, so that squeezing lines changes nothing.
A public name is a function, a class, a method or a constant without a leading underscore. Who
raises a ceiling by hand says in the commit what he deletes in exchange.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ROOT / "src" / "fabricheck"
CEILINGS = ROOT / "ci" / "ceilings.yaml"
HEAD = "# The most statements and public names of each room; ci/ceilings.py counts them.\n"

_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def statements(tree: ast.Module) -> int:
    """Return the number of statements, without docstrings."""
    docstrings = sum(
        isinstance(node, _OWNERS) and ast.get_docstring(node, clean=False) is not None
        for node in ast.walk(tree)
    )
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - docstrings


def public_names(owner: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield the public names that a module or a class defines, with those of its classes."""
    for node in owner.body:
        named: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            named = [node.name]
        elif isinstance(owner, ast.Module) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [target.id for target in targets if isinstance(target, ast.Name)]
        public = [name for name in named if not name.startswith("_")]
        yield from public
        if isinstance(node, ast.ClassDef) and public:
            yield from public_names(node)


def counts() -> dict[str, dict[str, int]]:
    """Return by room the numbers of statements and public names; files above all are ``.``."""
    found: dict[str, dict[str, int]] = {}
    for path in sorted(ROOMS.rglob("*.py")):
        inside = path.relative_to(ROOMS).parts
        room = found.setdefault(
            inside[0] if len(inside) > 1 else ".", {"statements": 0, "names": 0}
        )
        tree = ast.parse(path.read_text(encoding="utf-8"))
        room["statements"] += statements(tree)
        room["names"] += len(list(public_names(tree)))
    return found


def main() -> int:
    """Check the counts, or lower the ceilings to them; 1 where a room is above its ceiling."""
    found = counts()
    ceilings = yaml.safe_load(CEILINGS.read_text(encoding="utf-8"))
    above = [
        f"{room} has {number} {what}; its ceiling in ci/ceilings.yaml is "
        f"{ceilings.get(room, {}).get(what, 0)}."
        for room, own in found.items()
        for what, number in own.items()
        if number > ceilings.get(room, {}).get(what, 0)
    ]
    print("\n".join(above), end="\n" if above else "", file=sys.stderr)
    if "--lower" in sys.argv[1:] and not above:
        CEILINGS.write_text(HEAD + yaml.safe_dump(found), encoding="utf-8")
    every = {what: sum(own[what] for own in found.values()) for what in ("statements", "names")}
    print(
        f"{every['statements']} statements and {every['names']} public names in {len(found)} rooms"
    )
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
