"""The scripts of ci/slurm for Slurm's prolog, epilog and health check, with stand-ins."""

from __future__ import annotations

import os
import subprocess

import pytest

from fabricheck.core.checkout import ROOT

SCRIPTS = ROOT / "ci" / "slurm"
LINE = "nid001005: HW-FAIL (lost, device at 0000:c1:00.0): its driver has lost it."
DRAIN = 'scontrol update NodeName=nid001005 State=DRAIN Reason="fabricheck HW-FAIL: lost"'


@pytest.fixture
def run(tmp_path):
    """Return what runs a script with a look that prints and ends so, and what was called."""

    def call(script: str, code: int, state: str = "IDLE"):
        calls = tmp_path / "calls"
        prints = LINE if script == "prolog.sh" else DRAIN
        for name, body in {
            "fabricheck": f"echo '{prints}'; exit {code}",
            "scontrol": f'echo "scontrol $@" >> {calls}; echo "State={state}"',
            "logger": f'echo "logger $@" >> {calls}',
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / name).chmod(0o755)
        text = (SCRIPTS / script).read_text().replace("/usr/bin/logger", f"{tmp_path}/logger")
        calls.write_text("")
        environment = {
            "FABRICHECK": f"{tmp_path}/fabricheck",
            "SLURMD_NODENAME": "nid001005",
            "PATH": f"{tmp_path}:/usr/bin:/bin",
        }
        done = subprocess.run(["/bin/sh", "-c", text], env=environment, check=False, timeout=30)
        return done.returncode, calls.read_text().splitlines()

    return call


def test_the_prolog_keeps_jobs_from_a_node_with_a_fault(run, wording):
    assert run("prolog.sh", 0) == (0, [])
    logged = []
    for code in (12, 1, 2, 3, 4, 13, 124):
        status, calls = run("prolog.sh", code)
        assert status == (1 if code == 12 else 0)
        logged += calls
    wording(logged)


def test_the_health_check_drains_once_and_on_a_fault_alone(run):
    for other in (0, 1, 3, 4, 13):
        assert run("health-check.sh", other) == (0, [])
    show = "scontrol show node nid001005"
    drain = DRAIN.replace('"', "")
    assert run("health-check.sh", 12) == (0, [show, drain])
    assert run("health-check.sh", 12, "IDLE+DRAIN") == (0, [show])


@pytest.mark.parametrize(
    ("line", "ended", "submitted", "status"),
    [
        ("n2: 8 days ago, PASS", 14, ["fabricheck-n2"], 0),
        ("Every node had a session in the last 7 days.", 0, [], 0),
        ("Every node had a session in the last 7 days.", 4, [], 4),
    ],
)
def test_the_weekly_job_is_of_stale_nodes_alone(tmp_path, line, ended, submitted, status):
    for name, script in {
        "sinfo": "echo n[1-2]",
        "squeue": "true",
        "fabricheck": f"echo '{line}'; exit {ended}",
        "sbatch": f'echo "$2" >> {tmp_path}/submitted',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "env.sh").write_text(f"export PATH={tmp_path}:$PATH\n")
    done = subprocess.run(
        [SCRIPTS / "weekly.sh"],
        env={**os.environ, "FABRICHECK_ROOT": str(tmp_path)},
        check=False,
    )
    file = tmp_path / "submitted"
    assert (file.read_text().split() if file.exists() else []) == submitted
    assert done.returncode == status
