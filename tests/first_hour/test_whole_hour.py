"""The whole first hour on the simulated node, and what reads its archive."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_hour_of_the_simulated_node(command, tmp_path, monkeypatch):
    archive = tmp_path / "hour.tar.gz"
    variables = {"SITE_API_TOKEN": "planted-in-a-variable"}
    done = subprocess.run(
        ["fabricheck", "site", "first-hour", "local:sim-mi250x", "--output", str(archive)],
        cwd=tmp_path,
        env={**os.environ, **variables, "RFM_CONFIG_FILES": str(ROOT / "config" / "settings.py")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == [archive]
    assert " 2/10 topology: not possible here" in done.stdout
    assert "5/10 smoke: good" in done.stdout and "Ran 7/7 test case(s)" in done.stdout
    assert "10/10 verdict: good" in done.stdout and "Verdict on run-1: 1 PASS" in done.stdout

    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", unpacked], check=True)
    texts = {path: path.read_bytes() for path in unpacked.rglob("*") if path.is_file()}
    assert not [path for path, text in texts.items() if b"planted-" in text]
    versions = json.loads((unpacked / "hour" / "versions.json").read_text())
    assert versions["programs"]["mpi"]["mpi"].startswith("SMPI")

    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    shown = command("results", "show", archive).words
    assert "session run-0 (2/2 passed), session run-1 (7/7 passed), 7 documents" in shown
    assert "Verdict on run-1: 1 PASS" in command("verdict", archive).output
    words = ["--system", "local:sim-mi250x", "--report-only", "--output", ROOT / "reference_values"]
    calibrated = command("limits", "calibrate", archive, *words).stdout
    assert "session 1" in calibrated and "session 2" in calibrated
