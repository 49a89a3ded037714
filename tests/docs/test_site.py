"""The site of docs/ is built without a warning, with what it has of the code."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.results.table import columns


def build(folder, *options):
    # Not --quiet: warnings that are not said do not count as failures.
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options, "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_page_is_in_the_site_and_every_link_leads_somewhere(tmp_path):
    done = build(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {file.stem for file in (ROOT / "docs").glob("*.md")} <= {
        file.stem for file in tmp_path.glob("*.html")
    }


@pytest.mark.parametrize(
    "damage", ["[x](nowhere.md)", "[x](run.md#nowhere)", "[x](../config/nowhere.py)"]
)
def test_a_dead_link_fails_the_build(tmp_path, damage):
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("index.md", "run.md"):
        (docs / name).write_text(f"# {name}\n")
    (docs / "index.md").write_text(f"# Start\n\n{damage}\n")
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0]
    text = text.replace("docs_dir: docs", f"docs_dir: {docs}")
    text = re.sub("^hooks: .*", f"hooks: [{ROOT}/ci/docs_links.py]", text, flags=re.M)
    (tmp_path / "mkdocs.yml").write_text(text)
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode == 1 and "nowhere" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with docs/ and all that is made of the code."""
    folder = tmp_path_factory.mktemp("pages") / "docs"
    command = [sys.executable, "ci/docs_pages.py", str(folder)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE).returncode == 1
    return folder


def test_pages_have_a_table_of_each_experiment_and_each_group_of_published_values(written):
    assert "<!-- checks of E1 -->" in (ROOT / "docs" / "measured.md").read_text()
    for page in written.rglob("*.md"):
        assert not re.search(
            "^<!-- (checks of|published values|columns of)", page.read_text(), re.M
        ), page
    checks = (written / "measured.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (smoke|node|full|network) \|", checks, re.MULTILINE)
    assert {"stream_local", "p2p_engine", "osu_nodes"} <= {check for check, _ in rows}
    assert "| `stream_local` | smoke | " in checks and "`copy_{worst,median}`" in checks
    network = (written / "network.md").read_text()
    assert "| lumi-g | " in network and "`thesis-lumi-" in network


def test_the_page_of_exports_has_every_column_as_it_is(written):
    text = (written / "export.md").read_text()
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    of_rows = ("check", "metric", "series", "sample", "state", "node")
    assert [line for line in table if len(line) == 4] == [
        [f"`{one.name}`", one.type, "all" if one.kinds == of_rows else ", ".join(one.kinds),
         one.meaning]
        for one in columns()
    ]  # fmt: skip


def test_the_page_of_commands_has_the_help_of_each_and_the_exit_codes(written):
    page = (written / "commands.md").read_text()
    for path in ("fabricheck verdict", "fabricheck results", "fabricheck results list"):
        assert re.search(rf"^#+ {path}$", page, re.MULTILINE), path
        assert f"Usage: {path} [OPTIONS]" in page
    assert re.search(r"^\| 12 \| ", page, re.MULTILINE)
    assert str(ROOT) not in page and "\x1b" not in page
    assert max(map(len, re.findall(r"^[ │╭╰].*", page, re.MULTILINE))) <= 100


def test_the_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert "docs/index.md" in links
    paths = [one for one in links if not one.startswith("https://")]
    assert not [one for one in paths if not (ROOT / one).exists()]
