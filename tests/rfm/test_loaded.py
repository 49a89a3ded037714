"""What ReFrame loads with the settings and a check, on the node that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Packages whose modules read results, and the libraries that only they need.
READING = {"calibration", "claims", "cli", "comparison", "export", "judge", "report", "verdict"}
LIBRARIES = {"altair", "polars", "ruamel", "vl_convert"}

LOADED = """
import json, runpy, sys
for library in sys.argv[1].split():
    sys.modules[library] = None  # as where it is not installed
for file in sys.argv[2:]:
    runpy.run_path(file)
print(json.dumps([name for name, module in sys.modules.items() if module is not None]))
"""


def loaded(folder, *files, without=""):
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, without, *map(str, files)],
        env={**os.environ, "FABRICHECK_RESULTS": str(folder)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def of_settings_and_checks(tmp_path_factory):
    checks = sorted((ROOT / "reframe_checks").glob("*/*.py"))
    assert len(checks) > 5
    results = tmp_path_factory.mktemp("results")
    settings = ROOT / "config" / "settings.py"
    return loaded(results, settings, *checks, without=" ".join(LIBRARIES))


def test_settings_and_checks_load_nothing_that_reads_results(of_settings_and_checks):
    ours = [name for name in of_settings_and_checks if name.startswith("fabricheck.")]
    assert "fabricheck.rfm.base" in ours
    assert [name for name in ours if not READING.isdisjoint(name.split("."))] == []


def test_settings_and_checks_need_no_library_of_an_extra(of_settings_and_checks):
    assert "reframe" in of_settings_and_checks
    assert [name for name in of_settings_and_checks if name.split(".")[0] in LIBRARIES] == []
