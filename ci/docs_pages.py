"""What docs/ has of the code: commands.md, the tables of pages.

A hook of mkdocs.yml makes them when the site is built; nothing of them is committed. A table stands
in its page as one line, such as `<!-- checks of E1 -->` or `<!-- published values: one way -->`.

docs_pages.py FOLDER    write docs/ with all of them to a new folder, for reading without the site
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer
import yaml

from fabricheck.core.amounts import about
from fabricheck.core.show import markdown
from fabricheck.core.yaml_files import SAFE
from fabricheck.results.table import columns

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

#: The page of the help of all commands.
COMMANDS = "commands.md"

#: The set of references whose metrics are listed: nodes with four MI250X.
REFERENCES = "lumi"

SETS = ("smoke", "node", "full", "network")


def check_classes() -> Iterator[tuple[str, str, set[str]]]:
    """Yield name, description and tags of each check of reframe_checks, read from the source."""
    for file in sorted((ROOT / "reframe_checks").glob("*/*.py")):
        classes = [one for one in ast.parse(file.read_text()).body if isinstance(one, ast.ClassDef)]
        stated: dict[str, dict[str, object]] = {}
        for one in classes:
            inherited = [stated.get(ast.unparse(base), {}) for base in one.bases]
            both = [*inherited, constants(one)]
            stated[one.name] = {key: value for of in both for key, value in of.items()}
        for one in classes:
            if not any("simple_test" in ast.unparse(mark) for mark in one.decorator_list):
                continue
            fields = stated[one.name]
            if "build" not in fields["tags"]:
                yield one.name, fields["descr"], fields["tags"]


def constants(of: ast.ClassDef) -> dict[str, object]:
    """Return the constants that a class states by name."""
    found = {}
    for line in of.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            try:
                found[line.targets[0].id] = ast.literal_eval(line.value)
            except ValueError:
                continue
    return found


@cache
def metric_names() -> dict[str, list[str]]:
    """Return by check the metrics that the reference files have for nodes with four MI250X."""
    found = {}
    for file in sorted((ROOT / "reference_values").glob("*.yaml")):
        content = yaml.load(file.read_text(), Loader=SAFE)
        for check, systems in content.items():
            if not check.startswith("x-") and isinstance(systems, dict):
                entries = systems.get(REFERENCES, systems.get("any"))
                if isinstance(entries, dict):
                    found[check] = list(entries)
    return found


def table_of(experiment: str) -> str:
    """Return the table of the checks of one experiment, with their sets and metrics."""
    metrics = metric_names()
    rows = []
    for name, descr, tags in check_classes():
        if experiment in tags:
            smallest = next(one for one in SETS if one in tags)
            said = re.sub(r" \((?:E\d+(?:, )?)+\)$", "", descr)
            names = ", ".join(f"`{one}`" for one in shortened(metrics.get(name, []))) or "-"
            rows.append((f"`{name}`", smallest, said, names))
    columns = ("check", "set", "measures", "metrics on a node with four MI250X")
    return "\n".join(markdown(columns, rows)) + "\n"


def shortened(names: list[str]) -> list[str]:
    """Return the names with one for a worst and a median of the same stem."""
    both = {one[:-6] for one in names if one.endswith("_worst") and f"{one[:-6]}_median" in names}
    stems = [re.sub("_(worst|median)$", "", one) for one in names]
    pairs = zip(stems, names, strict=True)
    return list(
        dict.fromkeys(f"{stem}_{{worst,median}}" if stem in both else one for stem, one in pairs)
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
    for one in published_records():
        on = one["conditions"]
        of_this = re.fullmatch(BETWEEN_NODES[group], one["experiment"])
        alone = group == "collectives" and on.get("nodes") == 1
        if not of_this or alone or "gcd" in on:
            continue
        value = f"{one['value']:,} {one['unit']}" + allowed(one)
        if one.get("qualifier") == "approx":
            value = f"about {value}"
        buffers = on.get("buffers") or ("D D" if "D D" in on.get("benchmark", "") else "")
        size = on.get("message_size_bytes", on.get("message_size", ""))
        size = about(size) if isinstance(size, int) else size
        software = on.get("library") or on.get("network") or ""
        nodes = ", ".join(str(on[key]) for key in ("nodes", "distance") if key in on)
        cells = (one["system"], value, buffers, size, nodes, software, f"`{one['id']}`")
        rows.append(map(str, cells))
    columns = ("machine", "value", "buffers", "size", "nodes", "software", "record")
    return "\n".join(markdown(columns, rows)) + "\n"


def allowed(one: dict[str, Any]) -> str:
    """Return what a limit allows, in words: a tolerance, or that it is a threshold."""
    if one.get("role") == "threshold":
        return ", at most" if one["unit"] == "us" else ", at least"
    if "tolerance" not in one:
        return ""
    lower, upper = (part and f"{100 * part:+g} %" for part in one["tolerance"])
    return f", accepted {' to '.join(filter(None, (lower, upper)))}"


def columns_of(kinds: str) -> str:
    """Return the table of the columns of an export.

    :param kinds: of its rows: ``all``.
    """
    rows = [
        (f"`{one.name}`", one.type, kinds if len(one.kinds) == 6 else ", ".join(one.kinds),
         one.meaning)
        for one in columns()
    ]  # fmt: skip
    return "\n".join(markdown(("column", "type", "in rows of kind", "meaning"), rows)) + "\n"


def commands() -> str:
    """Return docs/commands.md: the help of each command, printed on 100 columns."""
    # Typer reads COLUMNS and NO_COLOR at its import: `commands_page` starts a process for this.
    from fabricheck import cli
    from fabricheck.core.vocabulary import COMMAND_EXITS

    group = typer.main.get_command(cli.app)
    codes = ((str(code), said) for code, said in COMMAND_EXITS.items())
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
        "programs](result-document.md#exit-codes), also in [the first hour](first-hour.md), and "
        "[`spack-env/install`](install.md#an-environment).",
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


#: What makes the table of a line in a page, by the line's first words.
TABLES = {"checks of": table_of, "published values:": published, "columns of rows:": columns_of}
LINE = re.compile(rf"^<!-- ({'|'.join(TABLES)}) (.+) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """Return the text of a page with its tables.

    :raises KeyError: for a group of published values that there is not.
    """
    return LINE.sub(lambda line: TABLES[line[1]](line[2]), text)


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
