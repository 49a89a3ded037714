"""Compose sessions once, keep what a checkout says of them, and compare what two checkouts say.

    python -m proof.record sessions FOLDER
    python -m proof.record keep CHECKOUT FOLDER RECORD.json
    python -m proof.record compare BEFORE.json AFTER.json

A checkout is a worktree of any commit; it is run by this Python. A fact is a value of what a
command writes as JSON, or of a row that it exports: a status, rule, metric, place, value, limit,
component. A text is one with blanks: it may be worded otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

#: What every session is asked.
ASKED = (
    "verdict {} --json",
    "diagnose {} --json",
    "results coverage {} --json",
    "papers claims {} --json",
    "fleet {} --json",
    "compare {healthy} {} --json",
    "results export {} --output rows.csv",
)

#: The folders of each kind of composed session that are asked; of `repeated` other commands.
COMPOSED = {
    "h200": ("results",),
    "simulated": ("results",),
    "killed": ("results",),
    "distributed": ("results",),
    "job": ("results/every-node/17",),
    "failures": ("results",),
    "older": ("results/documents",),
    "pairs": ("before", "after", "model", "node-5-independent"),
}
CALIBRATED = (
    "limits calibrate steady/session-0 steady/session-1 steady/session-2 steady/session-3 "
    "steady/session-4 --system local:host --output references",
    "limits calibrate h200 --system h200:x2 --report-only",
)

#: Run in the folder of a session: the commands come on stdin, their outcomes go to stdout.
RUN = """
import json, shlex, sys
from pathlib import Path
from typer.testing import CliRunner
from fabricheck import cli
found = {}
for line in json.load(sys.stdin):
    words = shlex.split(line)
    # Before 0.3 these commands were in no group.
    if not hasattr(cli, "GROUPS") and words[0] in ("results", "papers", "limits"):
        words = words[1:]
    done = CliRunner().invoke(cli.app, words)
    rows = Path("rows.csv")
    found[line] = [done.exit_code, rows.read_text() if rows.exists() else done.stdout, done.stderr]
    rows.unlink(missing_ok=True)
json.dump(found, sys.stdout)
"""

#: What differs between two runs of the same commit: times, paths, versions and identities.
VARIES = re.compile(
    r"(^|\.)(made|by|commit|program_version|session_id|session_start|measured_at|file|digest)$"
)


def compose(folder: Path) -> None:
    """Compose the sessions: those of the snapshots, and one of each row of the faults."""
    sys.path.append(str(ROOT / "tests" / "snapshots"))
    import snapshot_sessions as made

    for name in (*COMPOSED, "repeated"):
        (folder / name).mkdir(parents=True)
        os.chdir(folder / name)
        getattr(made, name)()
    subprocess.run(
        [sys.executable, "-m", "proof.faults", "--keep", str(folder / "faults")],
        cwd=ROOT, check=True,
    )  # fmt: skip


def keep(checkout: Path, folder: Path) -> dict[str, Any]:
    """Return by session and command the exit code, the facts and the texts."""
    asked = {
        (folder / name, path): [one.format(path, healthy=path) for one in ASKED]
        for name, paths in COMPOSED.items()
        for path in paths
    }
    asked[folder / "repeated", ""] = list(CALIBRATED)
    for fault in sorted(folder.glob("faults/*/results")):
        healthy = "../../simulated/results"
        asked[fault.parent, "results"] = [one.format("results", healthy=healthy) for one in ASKED]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda key: _said(checkout, key[0], asked[key]), asked)
        return {
            f"{where.relative_to(folder)}: {command}": outcome
            for (where, _), own in zip(asked, found, strict=True)
            for command, outcome in own.items()
        }


def _said(checkout: Path, where: Path, commands: list[str]) -> dict[str, Any]:
    clean = {name: one for name, one in os.environ.items() if not name.startswith("FABRICHECK_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(commands), cwd=where, text=True,
        env={**clean, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "10000"},
        capture_output=True, check=True,
    )  # fmt: skip
    return {
        command: {"exit": code, **dict(zip(("facts", "texts"), _parts(out, where), strict=True)),
                  "stderr": err.replace(str(where), "")}
        for command, (code, out, err) in json.loads(done.stdout).items()
    }  # fmt: skip


def _parts(out: str, where: Path) -> tuple[dict[str, Any], dict[str, str]]:
    facts, texts = {}, {}
    for key, value in _leaves(_content(out)):
        if not VARIES.search(key):
            value = value.replace(str(where), "") if isinstance(value, str) else value
            is_text = isinstance(value, str) and " " in value.strip()
            (texts if is_text else facts)[key] = value
    return facts, texts


def _content(out: str) -> Any:
    try:
        return json.loads(out)
    except ValueError:
        if out.startswith(("row_type,", "kind,")):
            return [{key: one for key, one in row.items() if one}
                    for row in csv.DictReader(out.splitlines())]  # fmt: skip
        return out.splitlines()


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{key}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{key}[{number}]")
    else:
        yield key, value


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print what differs; returns the number of facts and exit codes that do."""
    differing = 0
    for what in sorted({*before, *after}):
        a, b = before.get(what), after.get(what)
        if a is None or b is None:
            differing += 1
            print(f"{what}: only {'after' if a is None else 'before'}")
            continue
        if a["exit"] != b["exit"]:
            differing += 1
            print(f"{what}: exit code {a['exit']}, then {b['exit']}")
        for kind in ("facts", "texts"):
            for key in {**a[kind], **b[kind]}:
                if a[kind].get(key) == b[kind].get(key):
                    continue
                differing += kind == "facts"
                print(f"{what}: {kind[:-1]} {key}: {a[kind].get(key)!r}, then {b[kind].get(key)!r}")
        if a["stderr"] != b["stderr"]:
            print(f"{what}: stderr: {a['stderr']!r}, then {b['stderr']!r}")
    print(f"{differing} facts differ in {len(before)} outcomes.")
    return differing


def main() -> int:
    """Do one of the three; 1 where facts differ."""
    parser = argparse.ArgumentParser(prog="python -m proof.record", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("sessions").add_argument("folder", type=Path)
    one = actions.add_parser("keep")
    for name in ("checkout", "folder", "record"):
        one.add_argument(name, type=Path)
    two = actions.add_parser("compare")
    for name in ("before", "after"):
        two.add_argument(name, type=Path)
    given = parser.parse_args()
    if given.action == "sessions":
        compose(given.folder.resolve())
        return 0
    if given.action == "keep":
        found = keep(given.checkout.resolve(), given.folder.resolve())
        given.record.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} outcomes, {sum(len(one['facts']) for one in found.values())} facts")
        return 0
    return bool(compare(*(json.loads(path.read_text()) for path in (given.before, given.after))))


if __name__ == "__main__":
    sys.exit(main())
