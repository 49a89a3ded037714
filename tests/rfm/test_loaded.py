"""What ReFrame loads with the settings and a check, on the node that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabricheck.cli import EXTRAS

ROOT = Path(__file__).resolve().parents[2]

#: Packages whose modules read results, and the libraries that only they need.
READING = {"cli", "export", "judge", "report", "run"}
#: Without ReFrame, which runs checks, and Jinja2, which it brings.
LIBRARIES = EXTRAS.keys() - {"jinja2", "reframe"}

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


@pytest.mark.slow
def test_settings_and_checks_load_nothing_that_reads_results(of_settings_and_checks):
    ours = [name for name in of_settings_and_checks if name.startswith("fabricheck.")]
    assert "fabricheck.rfm.base" in ours
    assert [name for name in ours if not READING.isdisjoint(name.split("."))] == []


def test_settings_and_checks_need_no_library_of_an_extra(of_settings_and_checks):
    assert "reframe" in of_settings_and_checks
    assert [name for name in of_settings_and_checks if name.split(".")[0] in LIBRARIES] == []


#: Commands that only read results, on the sessions that are recorded.
SESSION = str(ROOT / "tests" / "outputs" / "h200" / "session-x2")
READERS = [
    ["results", "show", SESSION],
    ["results", "coverage", SESSION],
    ["papers", "claims", SESSION],
    ["compare", SESSION, SESSION],
    ["verdict", SESSION, "--output", "verdict"],
    ["results", "export", SESSION, "--output", "table.csv"],
]

#: Calls the commands in one process; prints how long a text each wrote, and what is loaded then.
IMPORTED = """
import json, sys
from typer.testing import CliRunner
from fabricheck.cli import app
for command in json.load(sys.stdin):
    wrote = len(CliRunner().invoke(app, command).stdout)
    loaded = [name for name in sys.modules if name.split(".")[0] == "reframe"]
    print(json.dumps([command, wrote, loaded]))
"""


@pytest.mark.full
def test_a_command_that_reads_results_does_not_load_reframe(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        input=json.dumps(READERS),
        cwd=tmp_path,
        env={**os.environ, "FABRICHECK_SITES": "", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [command for command, _, _ in told] == READERS, ended.stderr
    for command, wrote, loaded in told:
        assert wrote and loaded == [], command


@pytest.fixture
def base_alone(suite):
    """The suite where no extra is installed, for ReFrame and for what a check starts."""
    folder = suite.folder / "without"
    folder.mkdir()
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({sorted(LIBRARIES)}))\n"
    (folder / "sitecustomize.py").write_text(blocked)
    suite.variables["PYTHONPATH"] = str(folder)
    return suite


def fabricheck(suite, *arguments):
    command = [Path(sys.executable).with_name("fabricheck"), *arguments]
    return subprocess.run(command, env=suite.environment(), capture_output=True, text=True)


@pytest.mark.slow
def test_the_dependencies_alone_run_a_check_and_show_it(base_alone):
    outcome = base_alone.shell("-r", "-n", "stream_local")
    assert outcome.status == 0 and "Ran 1/1 test case(s)" in outcome, outcome
    shown = fabricheck(base_alone, "results", "show")
    assert shown.returncode == 0 and "stream_local @local:host (pass)" in shown.stdout


@pytest.mark.parametrize(
    "command",
    [["report"], ["results", "export", "--output", "table.parquet"]],
    ids=["report", "export"],
)
def test_a_command_whose_extra_is_missing_says_which(base_alone, command, wording):
    ended = fabricheck(base_alone, *command)
    assert ended.returncode == 3
    wording(ended.stderr)
