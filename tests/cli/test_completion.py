"""Shells complete commands, their sub-commands, and the names of sites."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SITES = Path(__file__).parents[2] / "config" / "sites"


def asked(shell, words):
    begun = words.split(" ")
    variables = {
        "COMP_WORDS": words, "COMP_CWORD": str(len(begun) - 1),
        "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": begun[-1],
        "_FABRICHECK_COMPLETE": f"complete_{shell}",
    }  # fmt: skip
    command = [Path(sys.executable).with_name("fabricheck")]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.replace("\\\\:", ":").replace("\\:", ":")


@pytest.mark.parametrize(
    ("shell", "words", "wanted", "never"),
    [
        ("bash", "fabricheck results co", "coverage", "claims"),
        ("bash", "fabricheck results va", "validate", "show"),
        ("bash", "fabricheck site sets --system lum", "lumi:gpu", "jureca"),
        # Shells take a colon differently.
        ("bash", "fabricheck site check jur", "jureca:mi250", "lumi"),
        ("zsh", "fabricheck site check jur", "jureca:mi250", "lumi"),
        ("fish", "fabricheck site check jur", "jureca:mi250", "lumi"),
    ],
)
@pytest.mark.full
def test_a_shell_completes(shell, words, wanted, never):
    found = asked(shell, words)
    assert wanted in found and never not in found


def test_every_site_is_offered():
    found = asked("bash", "fabricheck site check ").split()
    assert {file.stem for file in SITES.glob("*.py")} <= set(found)
