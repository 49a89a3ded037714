"""Write what docs/ has of the code: commands.md, tables of measured.md and network.md, drawings.

docs_pages.py            write them
docs_pages.py --check    end with 1 where one differs from what would be written
"""

from __future__ import annotations

import argparse
import ast
import os
import re
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

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

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


def measured() -> str:
    """Return docs/measured.md with its generated tables."""
    text = (DOCS / "measured.md").read_text()
    return re.sub(
        r"(<!-- checks of (E\d+) -->\n).*?(<!-- end of checks of \2 -->)",
        lambda found: found[1] + table_of(found[2]) + found[3],
        text,
        flags=re.DOTALL,
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


def network() -> str:
    """Return docs/network.md with its generated tables."""
    return re.sub(
        r"(<!-- published values: ([a-z ]+) -->\n).*?(<!-- end of published values: \2 -->)",
        lambda found: found[1] + published(found[2]) + found[3],
        (DOCS / "network.md").read_text(),
        flags=re.DOTALL,
    )


def commands() -> str:
    """Return docs/commands.md: the help of each command, printed on 100 columns."""
    # Typer reads these at its import, so they are set for a process of its own: see main.
    from fabricheck.cli import app
    from fabricheck.core.vocabulary import COMMAND_EXITS

    group = typer.main.get_command(app)
    codes = ((str(code), said) for code, said in COMMAND_EXITS.items())
    parts = [
        "# Commands",
        "",
        "<!-- Written by ci/docs_pages.py, not by hand. -->",
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


# --- drawings: a node with four MI250X, and what an experiment moves in it ------------------------

#: The NUMA domain near each package, as in config/nodes/mi250x.yaml.
NEAR = (3, 1, 0, 2)

#: The devices that the NICs hang on, as in config/nodes/mi250x.yaml.
ON_NIC = (1, 3, 5, 7)

#: By experiment, the arrows as (from, to, kind); h is the host memory, d a device, n a NIC.
MOVED: dict[str, list[tuple[str, str, str]]] = {
    "E1": [(f"d{i}", f"d{i}", "kernel") for i in range(8)],
    "E2": [("h3", "d0", "engine"), ("d4", "h0", "engine")],
    "E3": [("h3", "d0", "kernel"), ("h0", "d4", "page")],
    "E4": [(f"h{i}", "d2", "engine") for i in range(4)],
    "E5": [(f"h{NEAR[i // 2]}", f"d{i}", "kernel") for i in (0, 2, 4, 6)],
    "E6": [(f"h{NEAR[i // 2]}", f"d{i}", "engine") for i in range(8)],
    "E7": [("d0", "d1", "engine"), ("d0", "d2", "engine"), ("d0", "d6", "engine")],
    "E8": [("d0", "d1", "kernel"), ("d0", "d2", "kernel"), ("d0", "d6", "kernel")],
    "E9": [("d0", "d1", "message"), ("d0", "d6", "message"), ("d2", "d7", "message")],
    "E10": [(f"d{i}", f"d{i + 1}", "message") for i in range(7)],
    "E11": [(f"d{i}", f"d{i + 1}", "message") for i in range(7)] + [("d7", "d0", "message")],
    "E12": [("d0", "d3", "message"), ("d3", "d0", "message")],
    "E13": [],
    "E14": [("d0", "d1", "kernel")],
    "E15": [(f"h{NEAR[i // 2]}", f"d{i}", "rank") for i in range(8)],
    "E16": [],
    "E17": [(f"d{device}", f"n{number}", "message") for number, device in enumerate(ON_NIC)],
}
#: The drawings with the NICs, and what those without an arrow show.
WITH_NICS = ("E16", "E17")
REPORTED = {
    "E13": "devices, links and domains as the driver reports them",
    "E16": "NICs as the kernel reports them",
}
COLOURS = {
    "kernel": "#b4530a", "engine": "#0b6b8f", "page": "#6b3fa0", "message": "#1f7a3d",
    "rank": "#555555",
}  # fmt: skip
MEANS = {
    "kernel": "moved by a kernel", "engine": "moved by the copy engine",
    "page": "pages migrate", "message": "message of MPI or RCCL", "rank": "rank, core and device",
}  # fmt: skip


def place(end: str) -> tuple[int, int]:
    """Return the centre of a device or of a NUMA domain."""
    number = int(end[1])
    if end[0] == "n":
        return 40 + 80 * ON_NIC[number], 264
    return (80 + 160 * NEAR.index(number), 60) if end[0] == "h" else (40 + 80 * number, 190)


def drawing(experiment: str) -> str:
    """Return an SVG drawing of the transfers of an experiment in a node with four MI250X."""
    height = 320 if experiment in WITH_NICS else 270
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" width="640" '
        f'height="{height}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{experiment}">',
        "<defs>",
        *(
            f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
            f'fill="{colour}"/></marker>'
            for kind, colour in COLOURS.items()
        ),
        "</defs>",
        f'<rect width="640" height="{height}" fill="#ffffff"/>',
    ]
    for number in range(4):
        x, y = place(f"h{number}")
        out.append(f'<rect x="{x - 65}" y="{y - 30}" width="130" height="40" rx="4" fill="#eef2f5" '
                   'stroke="#8a97a3"/>')  # fmt: skip
        out.append(f'<text x="{x}" y="{y - 6}" text-anchor="middle">NUMA domain {number}</text>')
        x = 80 + 160 * number
        out.append(f'<rect x="{x - 76}" y="158" width="152" height="64" rx="4" fill="none" '
                   'stroke="#8a97a3" stroke-dasharray="4 3"/>')  # fmt: skip
    for number in range(8):
        x, y = place(f"d{number}")
        out.append(f'<rect x="{x - 30}" y="{y - 20}" width="60" height="40" rx="4" fill="#fbf3e8" '
                   'stroke="#8a97a3"/>')  # fmt: skip
        out.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">GCD {number}</text>')
    for number in range(len(ON_NIC)) if experiment in WITH_NICS else ():
        x, y = place(f"n{number}")
        out.append(f'<rect x="{x - 30}" y="{y - 16}" width="60" height="32" rx="4" fill="#eef5ee" '
                   'stroke="#8a97a3"/>')  # fmt: skip
        out.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">NIC {number}</text>')
        out.append(f'<path d="M{x} {y + 16}L{x} 316" stroke="#8a97a3" stroke-dasharray="4 3"/>')
        out.append(f'<path d="M{x} 211L{x} {y - 16}" stroke="#8a97a3"/>')
    for start, end, kind in MOVED[experiment]:
        (x, y), (to_x, _) = place(start), place(end)
        style = f'fill="none" stroke="{COLOURS[kind]}" stroke-width="2"'
        ends = f'marker-end="url(#{kind})"' + (' marker-start="url(#rank)"' * (kind == "rank"))
        if start == end:
            path = f"M{x - 14} 170C{x - 22} 130 {x + 22} 130 {x + 14} 168"
        elif start[0] == end[0]:
            bow = 235 + min(30, abs(to_x - x) // 14)
            path = f"M{x} 211C{x} {bow} {to_x} {bow} {to_x} 212"
        elif start[0] == "h":
            path = f"M{x} 72L{to_x} 167"
        elif end[0] == "n":
            path = f"M{x} 211L{x} 246"
        else:
            path = f"M{x} 169L{to_x} 73"
        out.append(f'<path d="{path}" {style} {ends}/>')
    kinds = list(dict.fromkeys(kind for _, _, kind in MOVED[experiment]))
    said = [f'<tspan fill="{COLOURS[kind]}">{MEANS[kind]}</tspan>' for kind in kinds]
    below = " · ".join(said) or REPORTED[experiment]
    out.append(f'<text x="8" y="18">{experiment}: {below}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def pages() -> dict[Path, str]:
    """Return the required content of each file."""
    drawn = {DOCS / "drawings" / f"{name}.svg": drawing(name) for name in MOVED}
    return {
        DOCS / "commands.md": commands(),
        DOCS / "measured.md": measured(),
        DOCS / "network.md": network(),
        **drawn,
    }


def main() -> int:
    """Write the pages, or name those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    differing = [path for path, text in pages().items()
                 if not path.exists() or path.read_text() != text]  # fmt: skip
    for path in differing:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages()[path])
        print(f"{path.relative_to(ROOT)}: {'differs' if check else 'written'}")
    if check and differing:
        print("make them anew: python ci/docs_pages.py", file=sys.stderr)
    return int(check and bool(differing))


if __name__ == "__main__":
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    sys.exit(main())
