"""What docs/ has of the code: commands.md, the tables of pages.

A hook of mkdocs.yml makes them when the site is built; nothing of them is committed. A table stands
in its page as one line, such as `<!-- checks of E1 -->` or `<!-- published values: one way -->`,
and NOTE below the title says so.

docs_pages.py FOLDER    write docs/ with all of them to a new folder, for reading without the site
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer
import yaml
from pydantic import BaseModel

from fabricheck.beside import table as rounds
from fabricheck.core import amounts
from fabricheck.core.amounts import about
from fabricheck.core.show import markdown
from fabricheck.core.yaml_files import SAFE
from fabricheck.judge.verdict import rules
from fabricheck.references.stated import References
from fabricheck.results import log_lines, settings
from fabricheck.results.columns import columns
from fabricheck.site import sets

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

#: The page of the help of all commands.
COMMANDS = "reference/commands.md"

#: The set of references whose metrics are listed: nodes with four MI250X.
REFERENCES = "lumi"

SETS = ("smoke", "node", "full", "network", "soak")


def check_classes() -> Iterator[tuple[str, str, set[str]]]:
    """Yield name, description and tags of each check of reframe_checks, read from the source."""
    for file in sorted((ROOT / "reframe_checks").glob("*/*.py")):
        classes = [
            class_
            for class_ in ast.parse(file.read_text()).body
            if isinstance(class_, ast.ClassDef)
        ]
        stated: dict[str, dict[str, object]] = {}
        for class_ in classes:
            inherited = [stated.get(ast.unparse(base), {}) for base in class_.bases]
            both = [*inherited, constants(class_)]
            stated[class_.name] = {
                key: value
                for constants_of_class in both
                for key, value in constants_of_class.items()
            }
        for class_ in classes:
            if not any("simple_test" in ast.unparse(mark) for mark in class_.decorator_list):
                continue
            fields = stated[class_.name]
            if "build" not in fields["tags"]:
                yield class_.name, fields["descr"], fields["tags"]


def constants(class_: ast.ClassDef) -> dict[str, object]:
    """Return the constants that a class states by name."""
    values = {}
    for line in class_.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            try:
                values[line.targets[0].id] = ast.literal_eval(line.value)
            except ValueError:
                continue
    return values


@cache
def references() -> References:
    """Return the references of the repository."""
    return References(ROOT / "reference_values")


def metric_names(check: str) -> list[str]:
    """Return the metrics that a check's references have for nodes with four MI250X."""
    return list(references().stated(check, references().key(check, REFERENCES, None)))


def table_of(experiment: str) -> str:
    """Return the table of the checks of one experiment, with their sets and metrics."""
    rows = []
    for name, descr, tags in check_classes():
        if experiment in tags:
            smallest = next(set_ for set_ in SETS if set_ in tags)
            described = re.sub(r" \((?:E\d+(?:, )?)+\)$", "", descr)
            names = ", ".join(f"`{set_}`" for set_ in shortened(metric_names(name))) or "-"
            rows.append((f"`{name}`", smallest, described, names))
    columns = ("check", "set", "measures", "metrics on a node with four MI250X")
    return "\n".join(markdown(columns, rows)) + "\n"


def shortened(names: list[str]) -> list[str]:
    """Return the names with one for a worst and a median of the same stem."""
    both = {
        name[:-6] for name in names if name.endswith("_worst") and f"{name[:-6]}_median" in names
    }
    stems = [re.sub("_(worst|median)$", "", name) for name in names]
    pairs = zip(stems, names, strict=True)
    return list(
        dict.fromkeys(f"{stem}_{{worst,median}}" if stem in both else each for stem, each in pairs)
    )


#: The published values between nodes, by the experiments of their records.
BETWEEN_NODES = {
    "one way": "mpi_internode_osu_bw(_mpi4py)?",
    "both ways": "mpi_internode_osu_bibw",
    "node": "mpi_internode_(osu_mbw_mr|all_pairs_of_nodes)|dgnettest_of_a_node",
    "latency": "mpi_internode_osu_(multi_lat|latency)",
    "collectives": "(ccl|rccl)_(all_reduce|sendrecv)_busbw",
    "wrong network": ".*_wrong_network",
    "tools": "cxi_.*|ib_write_.*|gpcnet_.*",
}


@cache
def published_records() -> list[dict[str, Any]]:
    """Return the records of published values."""
    text = (ROOT / "reference_values" / "published_values.yaml").read_text()
    return yaml.load(text, Loader=SAFE)["records"]


def published(group: str) -> str:
    """Return the table of published values between nodes of one group; devices apart are left out.

    Of collectives those of several nodes.
    """
    rows = []
    for record in published_records():
        on = record["conditions"]
        of_this = re.fullmatch(BETWEEN_NODES[group], record["experiment"])
        alone = group == "collectives" and on.get("nodes") == 1
        if not of_this or alone or "gcd" in on:
            continue
        value = f"{record['value']:,} {record['unit']}" + allowed(record)
        if record.get("qualifier") == "approx":
            value = f"about {value}"
        buffers = on.get("buffers") or ("D D" if "D D" in on.get("benchmark", "") else "")
        size = on.get("message_size_bytes", on.get("message_size", ""))
        size = about(size) if isinstance(size, int) else size
        software = on.get("library") or on.get("network") or ""
        nodes = ", ".join(str(on[key]) for key in ("nodes", "distance") if key in on)
        cells = (record["system"], value, buffers, size, nodes, software, f"`{record['id']}`")
        rows.append(map(str, cells))
    columns = ("machine", "value", "buffers", "size", "nodes", "software", "record")
    return "\n".join(markdown(columns, rows)) + "\n"


def allowed(reference: dict[str, Any]) -> str:
    """Return what a limit allows, in words: a tolerance, or that it is a threshold."""
    if reference.get("role") == "threshold":
        return ", at most" if reference["unit"] == "us" else ", at least"
    if "tolerance" not in reference:
        return ""
    lower, upper = (part and f"{100 * part:+g} %" for part in reference["tolerance"])
    return f", accepted {' to '.join(filter(None, (lower, upper)))}"


def commands() -> str:
    """Return the page of the commands: the help of each command, printed on 100 columns."""
    # Typer reads COLUMNS and NO_COLOR at its import: `commands_page` starts a process for this.
    from fabricheck import cli
    from fabricheck.core.vocabulary import COMMAND_EXITS

    group = typer.main.get_command(cli.app)
    codes = ((str(code), meaning) for code, meaning in COMMAND_EXITS.items())
    parts = [
        "# Commands",
        "",
        "The help of each command. `fabricheck COMMAND --help` prints the same.",
        "",
        "## Exit codes of fabricheck",
        "",
        *markdown(("code", "meaning"), codes),
        "",
        "Exit status 3 of `site check`: something of the site file is missing on the node. "
        "`every-node` has the status of the verdict. Codes of their own have [the "
        "programs](result-document.md#exit-codes) and [`spack-env/install`](../install.md).",
    ]

    def helps(command, path, level) -> None:
        context = typer.Context(command, info_name=path, terminal_width=100, max_content_width=100)
        parts.extend(
            ["", "#" * level + f" {path}", "", "```text", command.get_help(context), "```"]
        )
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            helps(command.get_command(context, name), f"{path} {name}", min(level + 1, 4))

    context = typer.Context(group)
    for name in group.list_commands(context):
        helps(group.get_command(context, name), f"fabricheck {name}", 2)
    text = re.sub(r"[ \t]+$", "", "\n".join(parts), flags=re.MULTILINE) + "\n"
    return text.replace(str(ROOT), "<checkout>")


#: The files with the words of a site file, and with those of documents.
SITE_WORDS = ROOT / "src" / "fabricheck" / "site" / "words.yaml"


def words_of(kind: str) -> str:
    """Return the table of a kind of words of the vocabulary."""
    made = runpy.run_path(str(ROOT / "ci" / "vocabulary.py"))
    kinds = made["vocabulary"]()
    special = {"exit": made["exits"], "series": made["words_of_fields"]}
    lines = special[kind](kinds) if kind in special else made["table"](kinds[kind], kind)
    return "\n".join(lines) + "\n"


def members_of(document: str) -> str:
    """Return a section for each kind of object of a document, made of its schema."""
    schema = json.loads((ROOT / "src" / "fabricheck" / SCHEMAS[document]).read_text())
    parts = {"the document": schema, **schema.get("$defs", {})}
    lines = []
    for name, part in parts.items():
        if "properties" not in part:
            continue
        required = part.get("required", ())
        rows = [
            (f"`{key}`", type_of(member), "yes" if key in required else "", meaning(member))
            for key, member in part["properties"].items()
        ]
        lines += [f"### {name}", "", *filter(None, [part.get("description")]), ""]
        lines += [*markdown(("member", "type", "required", "meaning"), rows), ""]
    return "\n".join(lines) + "\n"


SCHEMAS = {
    "results": "results/result-1.schema.json",
    "verdicts": "judge/verdict/verdict-4.schema.json",
}


def type_of(schema: dict[str, Any]) -> str:
    """Return the type of a member, an object by its name."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(type_of, schema["anyOf"])))
    if "items" in schema:
        return f"list of {type_of(schema['items'])}"
    kind = schema.get("type", "text" if "enum" in schema or "const" in schema else "any")
    return " or ".join(kind) if isinstance(kind, list) else kind


def meaning(schema: dict[str, Any]) -> str:
    """Return what a member means, with the words that it may have."""
    words = ", ".join(f"`{word}`" for word in schema.get("enum", ()))
    text = " ".join(filter(None, (schema.get("description"), words and f"One of {words}.")))
    return " ".join(text.split()).replace("|", "\\|")


def keys_of(file: str) -> str:
    """Return a section for each part of a node model, an overlay or a fabric file."""
    module = importlib.import_module(f"fabricheck.node.{FILES[file]}")
    lines = []
    for name, value in vars(module).items():
        is_class_here = isinstance(value, type) and value.__module__ == module.__name__
        if not is_class_here or not issubclass(value, BaseModel) or not value.model_fields:
            continue
        rows = [
            (f"`{each.alias or key}`", shown(each.annotation), "yes" if each.is_required() else "")
            for key, each in value.model_fields.items()
        ]
        text = (value.__doc__ or "").replace("``", "`")
        lines += [f"### {name}", "", inspect.cleandoc(text), ""]
        lines += [*markdown(("key", "type", "required"), rows), ""]
    return "\n".join(lines) + "\n"


FILES = {"node model": "schema", "overlay": "overlay", "fabric": "fabric"}


def shown(annotation: Any) -> str:
    """Return a type as a reader of YAML needs it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return shown(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(shown(argument) for argument in arguments if argument is not type(None))
    if origin is typing.Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin is list:
        return f"list of {shown(arguments[0])}"
    if origin is dict:
        return f"map of {shown(arguments[0])} to {shown(arguments[1])}"
    return {"str": "text", "float": "number", "int": "number"}.get(
        annotation.__name__, annotation.__name__
    )


def site_words(group: str) -> str:
    """Return the table of one group of words of a site file, or of the variables."""
    words = yaml.load(SITE_WORDS.read_text(), Loader=SAFE)[group]
    if group == "variables":
        rows = [(f"`{name}`", word["meaning"], word["default"]) for name, word in words.items()]
        return "\n".join(markdown(("variable", "meaning", "default"), rows)) + "\n"
    rows = [(f"`{name}`", " ".join(text.split())) for name, text in words.items()]
    return "\n".join(markdown(("word", "meaning"), rows)) + "\n"


def columns_of(rows_of: str) -> str:
    """Return the table of the columns of an export.

    :param rows_of: the word for all types of rows: ``all``.
    """
    rows = [
        (
            f"`{column.name}`",
            column.type,
            rows_of if len(column.row_types) == 6 else ", ".join(column.row_types),
            column.meaning,
        )
        for column in columns()
    ]
    return "\n".join(markdown(("column", "type", "in rows of type", "meaning"), rows)) + "\n"


def rules_of(what: str) -> str:
    """Return the table of the rules of a verdict, or of those of a soak alone."""
    lines = rules.table(rules.OF_A_SOAK) if what == "a soak" else rules.table()
    return "\n".join(lines) + "\n"


def lines_of(_: str) -> str:
    """Return the table of the lines of logs."""
    return "\n".join(log_lines.table()) + "\n"


def variables_of(_: str) -> str:
    """Return the table of the variables that take something away from what is measured."""
    rows = [(f"`{name}`", effect, source) for name, effect, source in settings.table()]
    return "\n".join(markdown(("variable", "what it does", "source"), rows)) + "\n"


def sets_of(_: str) -> str:
    """Return the sets with what they show, and the checks that each adds."""
    lines = []
    for name, set_ in sets.known().items():
        added = [
            check
            for check, _descr, tags in check_classes()
            if next(each for each in SETS if each in tags) == name
        ]
        limit = f"At most {set_.limit_s:g} s on a node. " if set_.limit_s else ""
        lines += [f"### {name}", "", f"{limit}Shows {set_.shows}; not {set_.not_}.", ""]
        lines += [", ".join(f"`{check}`" for check in sorted(added)) + ".", ""]
    return "\n".join(lines) + "\n"


def list_of(partition: str) -> str:
    """Return every check of a partition in a line, as `fabricheck site sets` lists them."""
    done = subprocess.run(
        [Path(sys.executable).with_name("fabricheck"), "site", "sets", "--system", partition,
         "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [
        (
            f"`{check['check']}`",
            " ".join(check["experiments"]),
            re.sub(r" \((?:E\d+(?:, )?)+\)$", "", check["description"]),
            f"`{check['program']}`",
            amounts.sizes(check["sizes"]),
            check["sets"][0] if check["sets"] else "-",
            ", ".join(f"{number} {kind}" for kind, number in check["limits"].items()),
        )
        for check in json.loads(done.stdout)["checks"]
    ]
    columns = (
        "check", "experiment", "measures", "program", "sizes", "set", "metrics by limit"
    )  # fmt: skip
    return "\n".join(markdown(columns, rows)) + "\n"


#: Extras of a partition that name a file.
NAMED = ("node", "references", "fabric")


def site_of(name: str) -> str:
    """Return the partitions of a site file, with modules and environment."""
    made = runpy.run_path(str(ROOT / "config" / "sites" / f"{name}.py"))["site_configuration"]
    rows = []
    for system in made["systems"]:
        for partition in system["partitions"]:
            extras = partition["extras"]
            rows += [
                (f"**`{system['name']}:{partition['name']}`**", partition["descr"]),
                ("reached by", " ".join(f"`{option}`" for option in partition.get("access", ()))),
                *((key, f"`{extras[key]}`") for key in NAMED if key in extras),
                *(
                    [("recommended binding", " ".join(f"`{o}`" for o in extras["site_binding"]))]
                    if "site_binding" in extras
                    else ()
                ),
            ]
    for environment in made["environments"]:
        extras = environment["extras"]
        loads = " ".join(
            m if isinstance(m, str) else m["name"] for m in environment.get("modules", ())
        )
        rows.append(
            (f"environment `{environment['name']}`", f"`module load {loads}`" if loads else "")
        )
        for variable, value in environment.get("env_vars", ()):
            rows.append(("variable", f"`{variable}={value}`"))
        if "spack_environment" in extras:
            rows.append(("Spack environment", f"`{extras['spack_environment']}`"))
        for key, value in extras.get("rccl_nodes", {}).items():
            rows.append((f"`rccl_nodes`, {key}", f"`{value}`"))
    text = "\n".join(markdown(("", ""), [row for row in rows if row[1]])) + "\n"
    return text.replace(str(ROOT), "<checkout>")


#: What a row of parity has in words.
TEXTS = ("document", "suite", "parity")


def parity_of(document: str) -> str:
    """Return the rows of a document: what it did, which checks do it, and what differs."""
    file = ROOT / "src" / "fabricheck" / "papers" / "parity.yaml"
    rows = [
        (
            row["item"],
            ", ".join(f"`{name}`" for name in row["published"]) or "no number",
            ", ".join(f"`{name}`" for name in row["checks"]) or "-",
            *(" ".join(row[key].split()).replace("|", "\\|") for key in TEXTS),
        )
        for row in yaml.load(file.read_text(), Loader=SAFE)[document]
    ]
    columns = ("item", "published", "checks", "in the document", "in this suite", "parity")
    return "\n".join(markdown(columns, rows)) + "\n"


RECORDED = ROOT / "tests" / "outputs"


def kernels_of(what: str) -> str:
    """Return the table of a recorded document of varied kernels: ``variants`` or ``grids``."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for name, extra in KERNELS[what].items():
        document = json.loads((RECORDED / "h200" / "one-device" / f"{name}.json").read_text())
        for series in document["series"]:
            if what == "variants":
                key, column = (
                    (series["operation"], series["loads"] or "none"),
                    f"{series['elements']} elements",
                )
            else:
                key = (str(series["grid"] or "cover"),)
                column = series["operation"] + extra
            # What only reads has the same grid twice: where none was given, it loops too.
            rows.setdefault(key, {}).setdefault(column, f"{series['median']:.4g}")
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    first = ("kernel", "loads") if what == "variants" else ("blocks",)
    cells = ([*key, *(row.get(column, "") for column in columns)] for key, row in rows.items())
    return "\n".join(markdown((*first, *columns), cells)) + "\n"


KERNELS = {
    "variants": {"stream_variants": ""},
    "grids": {"stream_grid": "", "stream_grid_1024": ", 1024 threads, 4 elements"},
}


def rounds_of(folder: str) -> str:
    """Return the tables of recorded rounds beside third-party benchmarks."""
    return rounds.section(rounds.read_all([RECORDED / folder]))


#: What makes the table of a line in a page, by the line's first words.
TABLES = {
    "checks of": table_of,
    "columns of rows:": columns_of,
    "kernels of": kernels_of,
    "keys of a": keys_of,
    "members of": members_of,
    "parity of": parity_of,
    "published values:": published,
    "rounds of": rounds_of,
    "rules of": rules_of,
    "lines of": lines_of,
    "list of": list_of,
    "sets of": sets_of,
    "site": site_of,
    "variables of": variables_of,
    "words of a site:": site_words,
    "words of": words_of,
}
LINE = re.compile(rf"^<!-- ({'|'.join(TABLES)}) (.+) -->$", re.MULTILINE)


#: Says in a page that is read without the site where its tables are.
NOTE = "*Tables come from the code: `python ci/docs_pages.py /tmp/docs` writes pages with them.*"


def filled(text: str) -> str:
    """Return the text of a page with its tables, and without the note that says where they are.

    :raises KeyError: for a group of published values that there is not.
    """
    return LINE.sub(lambda line: TABLES[line[1]](line[2]), text.replace(f"{NOTE}\n\n", ""))


def commands_page() -> str:
    """Return what `commands` returns with a fixed width and without colours."""
    done = subprocess.run(
        [sys.executable, __file__, "--commands"],
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Add the page of the commands (mkdocs)."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, COMMANDS, content=commands_page()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with its tables (mkdocs)."""
    return filled(markdown)


def write(folder: Path) -> None:
    """Write docs/ with all that is made of the code to a new folder."""
    shutil.copytree(DOCS, folder)
    for page in folder.rglob("*.md"):
        page.write_text(filled(page.read_text()))
    (folder / COMMANDS).write_text(commands_page())


if __name__ == "__main__":
    if sys.argv[1:] == ["--commands"]:
        print(commands(), end="")
    elif len(sys.argv) == 2 and not Path(sys.argv[1]).exists():
        write(Path(sys.argv[1]))
    else:
        sys.exit("docs_pages: name a new folder to write docs/ to")
