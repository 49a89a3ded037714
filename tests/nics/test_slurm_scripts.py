"""The scripts of docs/network.md for Slurm's prolog, epilog and health check, with stand-ins."""

from __future__ import annotations

import re
import subprocess

import pytest

from fabricheck.core.checkout import ROOT

PAGE = (ROOT / "docs" / "network.md").read_text()
SCRIPTS = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```", PAGE, re.M | re.S)
FOUND = "nid001005:cxi2 runs at 100 Gb/s; mi250x has 200."


@pytest.fixture
def run(tmp_path):
    """Return what runs a script with a check that prints and ends so, and what was called."""

    def call(script: str, code: int, state: str = "IDLE"):
        said = tmp_path / "said"
        for name, body in {
            "fabricheck": f'echo "{FOUND}"; echo second; exit {code}',
            "scontrol": f'echo "scontrol $@" >> {said}; echo "State={state}"',
            "logger": f'echo "logger $@" >> {said}',
            "hostname": "echo nid001005",
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / name).chmod(0o755)
        own = script.replace("/opt/fabricheck/.venv/bin/", f"{tmp_path}/")
        for name in ("scontrol", "logger", "hostname"):
            own = own.replace(f"/usr/bin/{name}", f"{tmp_path}/{name}")
        said.write_text("")
        done = subprocess.run(["/bin/sh", "-c", own], env={}, check=False, timeout=30)
        return done.returncode, said.read_text().splitlines()

    return call


def test_the_prolog_keeps_jobs_from_a_node_that_differs(run):
    prolog, _ = SCRIPTS
    assert run(prolog, 0) == (0, [])
    code, said = run(prolog, 8)
    assert (code, said[0]) == (1, f"logger -t fabricheck network nics ended with 8: {FOUND}")
    for other in (1, 2, 3, 4, 124):
        code, said = run(prolog, other)
        assert code == 0 and said[0].startswith(
            f"logger -t fabricheck network nics ended with {other}"
        )


def test_the_health_check_drains_with_the_first_finding(run):
    _, health = SCRIPTS
    for other in (0, 1, 3, 4):
        assert run(health, other) == (0, [])
    assert run(health, 8) == (
        0,
        [
            "scontrol show node nid001005",
            f"scontrol update NodeName=nid001005 State=DRAIN Reason=fabricheck: {FOUND}",
        ],
    )
    assert run(health, 8, "IDLE+DRAIN")[1] == ["scontrol show node nid001005"]
