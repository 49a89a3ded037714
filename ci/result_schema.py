#!/usr/bin/env python3
"""Writes the JSON schemas of result documents and of verdicts from their types.

    ci/result_schema.py [--check]

With --check nothing is written: ends with 1 if a file is not what the types give.
"""

import ast
import inspect
import json
import sys
import types
import typing
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import annotated_types
from pydantic import TypeAdapter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from fabricheck.judge.diagnosis import model as diagnosis  # noqa: E402 - of this checkout
from fabricheck.judge.verdict import model as verdict  # noqa: E402
from fabricheck.results import model  # noqa: E402

SCHEMA = ROOT / "src/fabricheck/results/result-1.schema.json"
VERDICT = ROOT / "src/fabricheck/judge/verdict/verdict-4.schema.json"
NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def words():
    """Return by word list the meaning of the kind of words and of each word."""
    kinds = json.loads((ROOT / "src/fabricheck/core/vocabulary.json").read_text(encoding="utf-8"))
    meanings = {}
    for kind in kinds.values():
        of_kind = kind.get("words") or {}
        meaning = kind["meaning"]
        for word, columns in of_kind.items():
            if isinstance(columns, str) or "code" not in columns:
                meaning_of_word = columns if isinstance(columns, str) else columns["meaning"]
                meaning += f" {word}: {meaning_of_word}."
        parts = [kinds[name]["words"] for name in kind.get("union", ())]
        meanings[tuple(dict.fromkeys(word for part in (*parts, of_kind) for word in part))] = (
            kind["meaning"] if parts else meaning
        )
    return meanings


MEANINGS = words()


def form(hint, changes=False):
    """Return the schema of a type.

    :param changes: whether objects have only the members that changed, and their index.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return {}
    if hint in NAMES:
        return {"type": NAMES[hint]}
    if origin is typing.Annotated:
        return annotated(form(arguments[0], changes), arguments[1:])
    if origin is typing.Literal:
        meaning = MEANINGS.get(tuple(arguments))
        return ({"description": meaning} if meaning else {}) | {"enum": [*arguments]}
    if origin in (typing.Union, types.UnionType):
        (other,) = (argument for argument in arguments if argument is not type(None))
        made = form(other, changes)
        if "enum" in made:
            return made | {"enum": [*made["enum"], None]}
        return made | {"type": [made["type"], "null"]}
    if origin is list:
        return {"type": "array", "items": form(arguments[0], changes)}
    if origin is dict:
        return {"type": "object", "additionalProperties": form(arguments[1])}
    if changes:
        return {"type": "object", **members(hint, changes)}
    return {"type": "object", "$ref": f"#/$defs/{hint.__name__}"}


def annotated(made, metadata):
    """Return a schema with the constraints and the description of an annotation."""
    at_least = "minItems" if made.get("type") == "array" else "minLength"
    for constraint in metadata:
        # A type of Pydantic's that says more to it alone has its constraint within.
        for part in getattr(constraint, "metadata", None) or [constraint]:
            match part:
                case str():
                    made = {"description": part} | made
                case annotated_types.Ge():
                    made |= {"minimum": part.ge}
                case annotated_types.Gt():
                    made |= {"exclusiveMinimum": part.gt}
                case annotated_types.MinLen():
                    made |= {at_least: part.min_length}
                case annotated_types.MaxLen():
                    made |= {"maxItems": part.max_length}
                case object(pattern=str()):
                    made |= {"pattern": part.pattern}
                case annotated_types.Len():
                    made |= {"minItems": part.min_length, "maxItems": part.max_length}
    return made


def members(cls, changes=False):
    """Return the members of an object, and which are required."""
    hints = typing.get_type_hints(cls, include_extras=True)
    made = {"description": (cls.__doc__ or "").split("\n")[0]} if cls.__doc__ else {}
    properties, required = {}, []
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.NotRequired:
            hint = typing.get_args(hint)[0]
        else:
            required.append(name)
        # After a run only what changed in the host and in the devices is written.
        partial = changes or (cls, name) == (model.State, "after")
        properties[name] = form(hint, partial)
    if changes and cls in (model.HostState, model.DeviceState):
        required = [name for name in required if name == "index"]
    return made | {
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


def schema():
    """Return the schema of a document."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:fabricheck:result:1",
        "title": "fabricheck result document, version 1",
        "type": "object",
    } | members(model.ResultDocument)
    named = [var for var in vars(model).values() if typing.is_typeddict(var)]
    parts = {each.__name__: members(each) for each in named if each is not model.ResultDocument}
    return document | {"$defs": dict(sorted(parts.items()))}


def verdict_schema():
    """Return the schema of both documents of a verdict, with the strings below their fields."""
    made = TypeAdapter(verdict.Document).json_schema(mode="serialization")
    described = defaultdict(dict)
    for module in (verdict, diagnosis):
        body = ast.parse(inspect.getsource(module)).body
        for owner in [statement for statement in body if isinstance(statement, ast.ClassDef)]:
            for base in map(ast.unparse, owner.bases):
                described[owner.name] |= described[base]
            for field, docstring in pairwise(owner.body):
                if isinstance(field, ast.AnnAssign) and isinstance(docstring, ast.Expr):
                    text = inspect.cleandoc(ast.literal_eval(docstring.value))
                    described[owner.name][ast.unparse(field.target)] = text
    for name, definition in made["$defs"].items():
        for field, text in described[name].items():
            definition["properties"][field]["description"] = text
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fabricheck verdict: on one node, or on all nodes of a session",
        **made,
    }


def main():
    """Write or compare the files, and return the exit code."""
    differs = False
    for path, made in ((SCHEMA, schema()), (VERDICT, verdict_schema())):
        text = json.dumps(made, indent=1, ensure_ascii=path == SCHEMA) + "\n"
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path} is not what its types give: run ci/result_schema.py.", file=sys.stderr)
            differs = True
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
