"""Commands are found where they are, and imported when they are asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from fabricheck import cli

#: What a command on the node that is measured does without: half a second each.
HEAVY = ("reframe", "polars", "fabricheck.papers.claims_command", "fabricheck.cli.compare")
ASKED = """
import sys
from typer.testing import CliRunner
from fabricheck.cli import app
assert CliRunner().invoke(app, [*sys.argv[1].split(), "--help"]).exit_code == 0
print([name for name in sys.argv[2:] if name in sys.modules])
"""


def test_every_command_of_a_module_is_in_the_list():
    rooms = Path(cli.__file__).parents[1]
    for file in (*rooms.glob("cli/[a-z]*.py"), *rooms.glob("*/*command.py")):
        importlib.import_module(f"fabricheck.{file.parent.name}.{file.stem}")
    assert typer.main.get_group(cli.commands).commands.keys() == cli.COMMANDS.keys()


@pytest.mark.slow
def test_every_command_is_in_the_help_of_the_command_line_or_of_its_group():
    def below(group, path=()):
        context = typer.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found = below(command, (*path, name)) if hasattr(command, "list_commands") else ()
            yield from found or [" ".join((*path, name))]

    assert sorted(below(typer.main.get_command(cli.app))) == sorted(cli.COMMANDS)


@pytest.mark.parametrize("command", ["node record", "network record", "results record"])
def test_what_checks_call_imports_nothing_of_the_others(command):
    asked = [sys.executable, "-c", ASKED, command, *HEAVY]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
