"""docs/sets.md has the checks of today, and the times of the recorded sessions."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.references import dry_run
from fabricheck.references.dry_run import Told
from site_dry_runs import H200_TOOLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "sets.md"
H200 = ROOT / "tests" / "outputs" / "h200"

pytestmark = pytest.mark.slow


def block(text: str, partition: str) -> str:
    (found,) = re.findall(f"<!-- sets of {partition} -->\n(.*)<!-- end of sets of {partition} -->",
                          text, re.DOTALL)  # fmt: skip
    return found


@pytest.fixture
def made_anew(tmp_path, monkeypatch):
    """Write the tables of a system in a copy of the page."""
    page = shutil.copy(PAGE, tmp_path)

    def made(system: str, asked: list[Told], *results: Path) -> str:
        monkeypatch.setattr(dry_run, "ask", lambda system, folders: asked)
        arguments = ["site", "sets", *map(str, results), "--system", system, "--page", str(page)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return Path(page).read_text()

    return made


@pytest.fixture
def h200(site_dry_run):
    return site_dry_run("h200", **H200_TOOLS)


@pytest.mark.parametrize("devices", [2, 4])
def test_what_h200_took_is_of_the_recorded_sessions(made_anew, h200, devices):
    reports = [
        *sorted((H200 / f"reports-x{devices}").glob("*.json")),
        *([H200 / "session-x2"] if devices == 2 else []),
        *sorted((H200 / "reports-later").glob(f"x{devices}-*.json")),
    ]
    here = f"h200:x{devices}"
    assert block(made_anew(here, h200.of(here), *reports), here) == block(PAGE.read_text(), here)


def test_limits_on_h200_are_at_least_twice_what_is_predicted(h200):
    assert len({one.partition for one in h200.told}) == 4
    assert all(one.predicted_s and one.limit_s >= 2 * one.predicted_s for one in h200.told)


def test_the_checks_of_this_machine_are_those_of_the_page(made_anew, site_dry_run, tmp_path):
    anew = made_anew("local", site_dry_run("local").told, tmp_path)
    for partition in ("local:host", "local:sim-mi250x"):
        now, then = block(anew, partition), block(PAGE.read_text(), partition)
        assert now == then  # without the sessions of the page, whose times stay
        # Each set has been measured here.
        assert (
            len(re.findall(r"^\| (?:smoke|node|full) (?:\| [^|]+){4}\| \d+\.\d", then, re.M)) == 3
        )


def test_what_make_run_prints_is_of_all_checks_of_the_set_node():
    page = PAGE.read_text()
    blocks = [block(page, partition) for partition in ("local:host", "local:sim-mi250x")]
    cases = sum(int(re.search(r"\| node \| (\d+)", text)[1]) for text in blocks)
    readme = (ROOT / "README.md").read_text()
    assert f"  passed   {cases}/{cases}  " in readme
    for partition, text in zip(("host", "sim-mi250x"), blocks, strict=True):
        number = int(re.search(r"\| node \| (\d+)", text)[1])
        assert re.search(rf"^local:{partition}, .*; {number} of {number} checks", readme, re.M)
