"""A wheel reads, judges and reports results where there is no ReFrame and no checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fabricheck.core.errors import NotFoundError

ROOT = Path(__file__).parents[2]
H200 = ROOT / "tests" / "outputs" / "h200"
SESSION = "session-x2"
#: The checks that are taken of it: the page of all takes seconds to draw.
CHECKS = ("stream_local", "p2p_engine")

#: Of the checkout what a wheel is made of.
MADE_OF = ("src/fabricheck", "config", "reference_values", "setup.py", "pyproject.toml",
           "README.md", "LICENSE")  # fmt: skip

#: Runs the command lines of its input in one process, and prints how each ended, as JSON.
WITHOUT_REFRAME = """
import json, sys
sys.modules["reframe"] = None
import fabricheck
assert fabricheck.__file__.startswith(sys.argv[1]), fabricheck.__file__
from typer.testing import CliRunner
from fabricheck.cli import app
ended = [CliRunner().invoke(app, one) for one in json.load(sys.stdin)]
print(json.dumps([(one.exit_code, one.stdout, one.stderr) for one in ended]))
"""

#: A command line, its exit codes, and what it says; a session is judged, and none runs checks.
COMMANDS = (
    (["results", "show", SESSION], {0}, "stream_local"),
    (["papers", "claims", SESSION], {0}, "reproduced"),
    (["results", "coverage", SESSION], {0}, "E1 "),
    (["compare", SESSION, SESSION], {0}, "0 worse, 0 better"),
    # Its references were report only, but for three counts: no limit judged the GPUs.
    (["verdict", SESSION], {13}, "was compared with a limit on h200:x2"),
    (["results", "export", SESSION, "--output", "table.csv"], {0}, "15 series"),
    (["report", SESSION, "--output", "page"], {0}, "Report: page/index.html"),
    (["every-node", "lumi:gpu"], {NotFoundError.exit_code}, "fabricheck[run]"),
    (["site", "first-hour", "lumi:gpu"], {NotFoundError.exit_code}, "fabricheck[run]"),
)


def installed(folder):
    """Build a wheel, and return a folder with what it installs."""
    for name in MADE_OF:
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / "source" / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "-w", str(folder), str(folder / "source")],
        check=True,
    )  # fmt: skip
    (wheel,) = folder.glob("fabricheck-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def copied(folder):
    """Copy the session with a few of its checks; a verdict is written beside it."""
    shutil.copytree(H200 / SESSION, folder)
    report = folder / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    cases = content["runs"][0]["testcases"]
    content["runs"][0]["testcases"] = [one for one in cases if one["name"] in CHECKS]
    report.write_text(json.dumps(content))
    for name in {one["name"] for one in cases} - set(CHECKS):
        for left_out in folder.glob(f"output/**/{name}"):
            shutil.rmtree(left_out)


def run(site, folder, commands):
    """Run command lines by what is installed, in one process, and compare how each ended."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RFM_", "FABRI"))
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_REFRAME, str(site)],
        input=json.dumps([arguments for arguments, *_ in commands]),
        env=environment | {"PYTHONPATH": str(site)}, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for (arguments, codes, says), (code, out, err) in zip(
        commands, json.loads(done.stdout), strict=True
    ):
        assert code in codes and says in out + err, (arguments, code, out, err)


@pytest.mark.full
def test_a_wheel_reads_judges_and_reports_without_reframe(tmp_path):
    site = installed(tmp_path)
    copied(tmp_path / SESSION)
    run(site, tmp_path, COMMANDS)
    # Node model and references are those of the wheel.
    text = (tmp_path / "page" / "index.html").read_text()
    assert 'id="h200-x2-node"' in text and f"{site}/fabricheck/suite/reference_values" in text
    assert "Claims of the documents" in text
    # The core does without what compares with publications, and with third-party tools.
    for name in ("papers", "beside"):
        shutil.rmtree(site / "fabricheck" / name)
    without = [one for one in COMMANDS if one[0][0] != "papers"]
    run(
        site,
        tmp_path,
        [*without, (["papers", "claims", SESSION], {2}, "There is no command 'papers'")],
    )
    text = (tmp_path / "page" / "index.html").read_text()
    assert 'id="h200-x2-node"' in text and "Claims" not in text
