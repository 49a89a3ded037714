"""Commands are found where they are, and imported when they are asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fabricheck import cli

#: What a command on the node that is measured does without: half a second each.
HEAVY = ("reframe", "polars", "fabricheck.cli.claims", "fabricheck.cli.compare")
ASKED = """
import sys
from typer.testing import CliRunner
from fabricheck.cli import app
assert CliRunner().invoke(app, [sys.argv[1], "--help"]).exit_code == 0
print([name for name in sys.argv[2:] if name in sys.modules])
"""


def test_every_command_of_a_module_is_in_the_list():
    found = {name for module in cli.COMMANDS.values() for name in cli._commands_of(module)}
    assert found == cli.COMMANDS.keys()
    folder = Path(cli.__file__).parent
    with_commands = {
        file.stem
        for file in folder.glob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "register"
    }
    assert with_commands <= set(cli.COMMANDS.values())


@pytest.mark.parametrize("command", ["topology", "tools"])
def test_what_checks_call_imports_nothing_of_the_others(command):
    asked = [sys.executable, "-c", ASKED, command, *HEAVY]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
