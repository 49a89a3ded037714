"""The ten commands of the first hour: the handbook lists them, and each runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fabricheck.node import load
from fabricheck.node.system import platform_json
from fabricheck.run import first_hour

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "any-node.md").read_text()
PLACE = {**first_hour.place("lumi:gpu").words(), "system": "$SYSTEM", "programs": "$BIN"}
#: The commands, with the names of their outputs.
LINES = [
    line.format(out=f"{number}-{step.name}-{which}.json", **PLACE)
    for number, step in enumerate(first_hour.STEPS, 1)
    for which, line in enumerate(step.lines, 1)
]


def test_the_page_has_the_questions_whose_answers_need_words():
    table = re.findall(r"^\| (\d+) \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert len(table) > 5
    assert [asks for _, asks in table] == [
        first_hour.STEPS[int(number) - 1].asks for number, _ in table
    ]


@pytest.mark.parametrize("line", [line for line in LINES if "$BIN/" in line])
def test_a_program_takes_its_command_line_on_the_simulated_node(command, tmp_path, line):
    node = tmp_path / "node.json"
    node.write_text(platform_json(load("mi250x")))
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HSA_", "ROC_", "FABRICHECK_"))
    }
    own = {"BIN": str(ROOT / "build" / "sim" / "bin"), "FABRICHECK_SIMULATED_NODE": str(node)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        env=kept | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = tmp_path.glob("[0-9]*.json")
    command("results", "show", written)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("fabricheck")])
def test_a_command_of_fabricheck_takes_its_arguments(command, line, tmp_path, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path))
    arguments = line.replace("$SYSTEM", "lumi:gpu").split()[1:]
    result = command(*arguments, code=None)
    # Usage errors are 2; that there is no device, no module and no session here is 3.
    assert result.exit_code in (0, 3, 8), result.output


@pytest.mark.parametrize("system", ["local:sim-mi250x", "local:host", "lumi:gpu", "h200:x2"])
def test_a_dry_run_prints_them(command, system):
    result = command("site", "first-hour", system, "--dry-run")
    said = result.stdout.splitlines()
    assert [line for line in said if re.match(r"\d+\. ", line)] == [
        f"{number}. {step.asks}" for number, step in enumerate(first_hour.STEPS, 1)
    ]
    assert ("not possible here" in result.stdout) == system.startswith("local")
    assert "{" not in result.stdout
