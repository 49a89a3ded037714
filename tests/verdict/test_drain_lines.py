"""`fabricheck verdict --drain-lines`: the live lines alone, and commands that need no shell."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from session_builder import SessionBuilder, of_many, slow_node, sound_node, verdicts_of_sessions

PAGE = Path(__file__).parents[2] / "docs" / "result.md"

#: What docs/result.md gives to run the commands: what reads them is behind the first line's pipe.
RECIPE = re.compile(
    r"^```sh\nfabricheck verdict 17 --drain-lines --json \| (?P<reader>.*?)\n```$", re.M | re.S
)

#: A sentence that would add a command if a shell read it.
EVIL = '"; touch injected; $(touch injected) `touch injected` #'


@pytest.fixture
def sessions(tmp_path):
    """Two sessions: node1 missed its limit in both, alone; node2 once."""
    bad = slow_node()
    first, second = of_many(bad), of_many(bad) | {"node2": bad}
    del first["node2"]
    verdicts_of_sessions(tmp_path, first, second)
    return [str(tmp_path / "0"), str(tmp_path / "1")]


def run(command, *arguments):
    result = command("verdict", *arguments, code=12)
    assert result.stderr == ""
    return result.stdout


def test_only_live_lines_are_printed(command, sessions):
    (line,) = run(command, *sessions, "--drain-lines").splitlines()
    assert line.startswith("scontrol update NodeName=node1 State=DRAIN Reason=")
    said = run(command, *sessions).splitlines()
    assert [each for each in said if each.startswith("scontrol ")] == [line]
    assert any(each.startswith("# ") and "NodeName=node2" in each for each in said)


def test_commands_are_lists_of_arguments(command, sessions):
    commands = json.loads(run(command, *sessions, "--drain-lines", "--json"))
    (line,) = run(command, *sessions, "--drain-lines").splitlines()
    assert commands == [shlex.split(line)]
    drains = {
        row["node"]: row["drain"] for row in json.loads(run(command, *sessions, "--json"))["nodes"]
    }
    assert drains["node1"]["arguments"] == commands[0]
    assert not drains["node2"]["live"] and drains["node2"]["arguments"] == []


def test_no_node_to_drain_prints_nothing(command, tmp_path):
    results = SessionBuilder(tmp_path).passed(document=sound_node()[1]).write()
    result = command("verdict", results, "--drain-lines")
    assert (result.exit_code, result.stdout) == (0, "")
    result = command("verdict", results, "--drain-lines", json=True)
    assert (result.exit_code, result.json) == (0, [])


def test_the_documented_way_runs_the_commands_without_a_shell(tmp_path):
    (reader,) = RECIPE.findall(PAGE.read_text(encoding="utf-8"))
    told = tmp_path / "told"
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nprintf "%s\\n" "$#" "$@" >> {told}\n')
    scontrol.chmod(0o755)
    commands = [["scontrol", "update", "NodeName=node1", f"Reason={EVIL}"], ["scontrol", "x"]]
    ran = subprocess.run(
        ["bash", "-c", reader],
        input=json.dumps(commands),
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        text=True,
    )
    assert ran.returncode == 0
    assert told.read_text() == f"3\nupdate\nNodeName=node1\nReason={EVIL}\n1\nx\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scontrol", "told"]


def test_no_page_gives_text_to_a_shell():
    root = PAGE.parents[1]
    pages = [root / "README.md", root / "SECURITY.md", root / "CONTRIBUTING.md"]
    piped = re.compile(r"\|\s*(?:sudo\s+)?(?:ba|da|z|k)?sh\b|\|\s*xargs\b|\beval\b")
    found = [
        f"{path.name}: {line}"
        for path in (*pages, *sorted(PAGE.parent.rglob("*.md")))
        for line in path.read_text(encoding="utf-8").splitlines()
        if piped.search(line)
    ]
    assert found == []
