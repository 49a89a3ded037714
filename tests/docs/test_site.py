"""The site of docs/ is built without a warning, and what it has of the code is up to date."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fabricheck.core.checkout import ROOT


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
    text = text.replace("ci/docs_links.py", str(ROOT / "ci" / "docs_links.py"))
    (tmp_path / "mkdocs.yml").write_text(text)
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode == 1 and "nowhere" in done.stdout + done.stderr


def test_what_is_made_of_the_code_is_up_to_date():
    done = subprocess.run(
        [sys.executable, "ci/docs_pages.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert "docs/index.md" in links
    paths = [one for one in links if not one.startswith("https://")]
    assert not [one for one in paths if not (ROOT / one).exists()]
