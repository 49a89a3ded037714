"""Refuse code in which no breakpoint fits on a decision, and functions and files that are too long.

Some are longer than the limits on purpose: LONGER says which, and why.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: The folders of code; those of tests may be longer, since a case is a table.
FOLDERS = ("src/fabricheck", "src/fabricheck_papers", "reframe_checks", "config", "ci")

#: The most lines of a function and of a file.
FUNCTION, FILE = 60, 600

#: The functions and the files that are longer, by file or by file and function, and why.
LONGER = {
    "src/fabricheck/judge/fabric/fit.py": "one fit, from rates to effects and their errors",
    "src/fabricheck/node/loading.py:from_content": "the members of a node model, in their order",
    "src/fabricheck/node/platform.py:content": "the members of a platform, in their order",
    "src/fabricheck/papers/claims/devices.py": "a table of claims",
    "src/fabricheck/results/model.py": "the form of a document, type by type",
    "src/fabricheck/results/reading.py": "how results are found and read, wherever they lie",
    "src/fabricheck/run/site_check.py": "one list of questions",
    "src/fabricheck/tools/topology/drafting.py:_draft": "the members of a draft, in their order",
    "src/fabricheck/tools/topology/render.py:model_text": "one text from top to bottom",
}


#: Names of variables, parameters and fields that do not say what they hold.
EMPTY_NAMES = {"told", "said", "found", "kept", "own", "one", "it"}

#: The files with members of a result document, which has `found` beside `expected`.
MEMBERS_OF_A_DOCUMENT = (
    "src/fabricheck/results/model.py",
    "src/fabricheck/tools/topology/reported.py",
)


def offences(file: Path) -> Iterator[str]:
    """Yield a line for each place of a file that cannot be stepped through, or is too long."""
    name = file.relative_to(ROOT).as_posix()
    text = file.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if lines > FILE and name not in LONGER:
        yield f"{name}: {lines} lines, more than {FILE}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = body_of(node)
            if lines > FUNCTION and f"{name}:{node.name}" not in LONGER:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION}"
        elif isinstance(node, ast.expr):
            why = packed(node)
            if why:
                yield f"{name}:{node.lineno}: {why}"
        bound = bound_name(node)
        if bound in EMPTY_NAMES and name not in MEMBERS_OF_A_DOCUMENT:
            yield f"{name}:{getattr(node, 'lineno', 0)}: a thing named {bound}: say what it is"


def bound_name(node: ast.AST) -> str | None:
    """Return the name that a node binds to a variable, a parameter or a field."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs)):
        return node.name
    return None


def body_of(function: ast.FunctionDef) -> int:
    """Return the lines of a function below its signature and its docstring."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body:
        return 0
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def packed(node: ast.expr) -> str:
    """Return what hides a decision in an expression; empty if nothing does."""
    if isinstance(node, ast.Lambda) and (node.args.defaults or node.args.kw_defaults):
        return "a lambda with defaults: write a function"
    if isinstance(node, ast.Call):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(isinstance(argument, ast.NamedExpr) for argument in arguments):
            return "an assignment within an argument: assign before the call"
        if is_ladder(node):
            return "next() over a table of rules: write an if for each"
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        conditions = [condition for loop in node.generators for condition in loop.ifs]
        if len(node.generators) > 1 and conditions:
            return "several loops and a condition in one expression: write the loops out"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        if is_repeated_by_a_condition(node.left, node.right):
            return "a sequence times a condition: write an if"
        if is_repeated_by_a_condition(node.right, node.left):
            return "a sequence times a condition: write an if"
    return ""


def is_ladder(call: ast.Call) -> bool:
    """Whether it is the first of some tuples for which a condition holds that is one of them."""
    if not isinstance(call.func, ast.Name) or call.func.id != "next" or not call.args:
        return False
    generator = call.args[0]
    if not isinstance(generator, ast.GeneratorExp) or len(generator.generators) != 1:
        return False
    loop = generator.generators[0]
    if not isinstance(loop.target, ast.Tuple):
        return False
    names = {name.id for name in loop.target.elts if isinstance(name, ast.Name)}
    return any(isinstance(test, ast.Name) and test.id in names for test in loop.ifs)


def is_repeated_by_a_condition(sequence: ast.expr, times: ast.expr) -> bool:
    """Whether a list, tuple or text is repeated by what is true or false.

    A text of several letters is repeated by a number nowhere, so a variable is a condition there.
    """
    words = isinstance(sequence, ast.JoinedStr)
    if isinstance(sequence, ast.Constant) and isinstance(sequence.value, str):
        words = len(sequence.value) > 1
    if not words and not isinstance(sequence, (ast.List, ast.Tuple)):
        return False
    if isinstance(times, ast.Call):
        return isinstance(times.func, ast.Name) and times.func.id in ("bool", "any", "all")
    if isinstance(times, ast.UnaryOp):
        return isinstance(times.op, ast.Not)
    if isinstance(times, (ast.Name, ast.Attribute)):
        return words
    return isinstance(times, (ast.Compare, ast.BoolOp))


def main() -> int:
    """Print what is found; return 1 if there is anything."""
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    offences_ = [offence for file in files for offence in offences(file)]
    for offence in offences_:
        print(offence)
    print(f"steppable: {len(files)} files, {len(offences_)} offences")
    return 1 if offences_ else 0


if __name__ == "__main__":
    sys.exit(main())
