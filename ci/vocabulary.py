#!/usr/bin/env python3
"""Writes what is made of the words of the suite, src/fabricheck/core/vocabulary.json.

    ci/vocabulary.py               core/vocabulary.py
    ci/vocabulary.py --check       nothing: ends with 1 and a sentence where it differs
    ci/vocabulary.py --header FILE the header of the programs, as CMake does in each build

CMake runs this by any Python from 3.6 on, without packages.

A word has a meaning, alone or beside other columns. Of these `name` is what C++ and Python call it,
where that is not the word with _ for each -, and `code` is an exit code; the docs show the others.
A kind has words or is a `union` of other kinds, and of these what it needs:
  type: its Literal in Python            subtypes: Literals of some of its words
  sets: tuples in Python of some words   values, by_code: tables in Python of a column, by word or
                                         by code
  common_sets: sets that C++ has too, in its namespace
  constants: the prefix of its constants in Python, one for each word (its code, where it has one)
  header: its namespace in C++           schema: the member of the schema of result documents
  nullable: that member may be null      note: what only its editor needs to know
"""

import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = "src/fabricheck/core/vocabulary.json"
MODULE = "src/fabricheck/core/vocabulary.py"
WIDTH = 100
#: Members of a series, or of its places, whose words are in one table of the site.
FIELDS = (
    *("role", "memory", "engine", "stores", "loads", "movement", "direction", "datatype"),
    *("distance", "transport", "bytes_counted", "regime", "unit", "better", "by"),
)
MADE_BY = f"Made of {WORDS} by ci/vocabulary.py: edit that."


def vocabulary():
    """Return the kinds by name, each word of a kind with its columns."""
    kinds = json.loads((ROOT / WORDS).read_text(encoding="utf-8"))
    for kind in kinds.values():
        parts = (kinds[name]["words"] for name in kind.get("union", ()))
        words = {word: columns for part in parts for word, columns in part.items()}
        for word, columns in kind.get("words", {}).items():
            words[word] = {"meaning": columns} if isinstance(columns, str) else columns
        kind["words"] = words
    return kinds


def identifier(word, columns):
    """Return the identifier of a word in programs."""
    return columns.get("name") or re.sub(r"\W", "_", word)


def listed(opening, items, closing):
    """Return a list of items as ruff formats it."""
    items = list(items)
    line = f"{opening}{', '.join(items)}{closing}"
    return [line] if len(line) <= WIDTH else [opening, *(f"    {item}," for item in items), closing]


def comment(text, mark):
    """Return a comment, each line after a mark."""
    return textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=mark)


def python(kinds):
    """Return the module: Literals of the kinds, and the properties of their words."""
    out = [
        '"""The words of the suite and the exit codes.',
        "",
        MADE_BY,
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final, Literal",
    ]
    for kind in kinds.values():
        words, made, typed = kind["words"], [], kind.get("type", "str")
        quoted = {word: json.dumps(word) for word in words}
        if "type" in kind:
            made += listed(f"{typed} = Literal[", quoted.values(), "]")
        for name, chosen in kind.get("subtypes", {}).items():
            made += listed(f"{name} = Literal[", (quoted[word] for word in chosen), "]")
        for name, chosen in {**kind.get("sets", {}), **kind.get("common_sets", {})}.items():
            items = (quoted[word] for word in chosen)
            made += listed(f"{name}: tuple[{typed}, ...] = (", items, ")")
        for name, column in kind.get("values", {}).items():
            texts = {w: json.dumps(c[column]) for w, c in words.items() if column in c}
            value = value_type(words, column, kinds)
            items = (f"{quoted[word]}: {text}" for word, text in texts.items())
            made += listed(f"{name}: Mapping[str, {value}] = {{", items, "}")
        for name, column in kind.get("by_code", {}).items():
            value = typed if column == "word" else "str"
            items = (
                f"{columns['code']}: {json.dumps(word if column == 'word' else columns[column])}"
                for word, columns in words.items()
                if "code" in columns
            )
            made += listed(f"{name}: Mapping[int, {value}] = {{", items, "}")
        if "constants" in kind:
            for word, columns in words.items():
                name = kind["constants"] + identifier(word, columns).upper()
                made.append(f"{name}: Final = {columns.get('code', quoted[word])}")
        if made:
            out += ["", *comment(kind["meaning"], "#: "), *made]
    return "\n".join(out) + "\n"


def value_type(words, column, kinds):
    """Return the type of a column: whole numbers, the words of a kind of that name, else text."""
    if all(isinstance(columns.get(column, 0), int) for columns in words.values()):
        return "int"
    return kinds[column]["type"] if column in kinds else "str"


def header(kinds):
    """Return the header: the exit codes of programs, and a namespace for each kind."""
    out = [
        *comment(f"The words of the result document and the exit codes. {MADE_BY}", "// "),
        "#pragma once",
        "",
        "#include <array>",
        "",
        "namespace fabricheck {",
        "",
        "/// Exit codes of every program; docs/reference/result-document.md lists them for users.",
        "enum class Status {",
    ]
    coded = {w: c for w, c in kinds["status"]["words"].items() if "code" in c}
    out += [f"  {identifier(word, entry)} = {entry['code']}," for word, entry in coded.items()]
    out += ["};"]
    for kind in kinds.values():
        if "header" not in kind:
            continue
        out += ["", *comment(kind["meaning"], "/// "), f"namespace {kind['header']} {{"]
        for word, columns in kind["words"].items():
            if "union" not in kind:  # a word of several kinds has several meanings
                out += comment(columns["meaning"], "/// ")
            name = identifier(word, columns)
            out.append(f'inline constexpr const char* {name} = "{word}";')
        for name, chosen in kind.get("common_sets", {}).items():
            names = ", ".join(identifier(word, kind["words"][word]) for word in chosen)
            out.append(f"inline constexpr std::array {name.lower()}{{{names}}};")
        out.append(f"}}  // namespace {kind['header']}")
    out += ["", "/// The word of the result document's schema for a status."]
    out += ["inline const char* status_word(Status status) {", "  switch (status) {"]
    for name in (identifier(word, entry) for word, entry in coded.items()):
        out += [f"    case Status::{name}:", f"      return status::{name};"]
    out += ["  }", "  return status::software;", "}"]
    return "\n".join([*out, "", "}  // namespace fabricheck"]) + "\n"


def table(kind, name):
    """Return the words of a kind with all columns, as the lines of a table."""
    hidden = ("name", "code")
    words = kind["words"].values()
    columns = [c for c in dict.fromkeys(c for word in words for c in word) if c not in hidden]
    columns.sort(key=lambda column: column == "meaning")
    return rows(
        [name if "experiment" not in columns else "operation", *columns],
        (
            [f"`{word}`", *(str(row.get(column, "")) for column in columns)]
            for word, row in kind["words"].items()
        ),
    )


def words_of_fields(kinds):
    """Return the words of the fields of a series that have no table of their own."""
    fields = [kind for kind in kinds.values() if kind.get("schema") in FIELDS]
    return rows(
        ["field", "word", "meaning"],
        (
            [f"`{kind['schema']}`" if number == 0 else "", f"`{word}`", row["meaning"]]
            for kind in fields
            for number, (word, row) in enumerate(kind["words"].items())
        ),
    )


def exits(kinds):
    """Return the exit codes of the programs and of the command line."""
    statuses = kinds["status"]["words"]
    programs = {row["code"]: [f"`{word}`", row["meaning"]]
                for word, row in statuses.items() if "code" in row}  # fmt: skip
    commands = {row["code"]: row["meaning"] for row in kinds["exit"]["words"].values()}
    return rows(
        ["code", "status", "programs", "command line `fabricheck`"],
        [
            *(
                [str(code), *programs.get(code, ["", ""]), commands.get(code, "")]
                for code in sorted({*programs, *commands})
            ),
            ["128 + n", "`interrupted`", *["ended by signal n"] * 2],
        ],
    )


def rows(head, body):
    """Return the lines of a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *body)]
    return [lines[0], f"|{'---|' * len(head)}", *lines[1:]]


def read(path):
    """Return the text of a file, none if there is no such file."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path, text):
    """Write a file, unless it has this text: what was compiled of it stays."""
    if text != read(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main():
    """Write or compare what is made of the words, and return the exit code."""
    kinds = vocabulary()
    if sys.argv[1:2] == ["--header"]:
        write(Path(sys.argv[2]), header(kinds))
        return 0
    path, made = ROOT / MODULE, python(kinds)
    if sys.argv[1:] == ["--check"] and made != read(path):
        print(f"{MODULE} is not what {WORDS} gives: run ci/vocabulary.py.", file=sys.stderr)
        return 1
    if sys.argv[1:] != ["--check"]:
        write(path, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
