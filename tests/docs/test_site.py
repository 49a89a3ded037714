"""The site of docs/ is built without a warning, with what it has of the code."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.results.columns import columns


def build(folder, *options):
    # Not --quiet: warnings that are not said do not count as failures.
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options, "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(made_once):
    """The folder of the site; one worker builds it."""

    def make(folder):
        done = build(folder)
        assert done.returncode == 0, done.stdout + done.stderr

    return made_once("site", make)


@pytest.mark.full
def test_every_page_is_in_the_site_and_every_link_leads_somewhere(site):
    pages = {file.relative_to(ROOT / "docs") for file in (ROOT / "docs").rglob("*.md")}
    assert {page.with_suffix(".html") for page in pages} <= {
        file.relative_to(site) for file in site.rglob("*.html")
    }


def test_the_search_names_the_page_of_a_hit_and_prefers_the_handbook(site):
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    by_location = {entry["location"]: entry for entry in entries}
    assert by_location["result.html#drain"]["title"] == "Read the result: Drain"
    assert by_location["result.html"]["title"] == "Read the result"
    boosts = [
        by_location[page]["boost"]
        for page in ("result.html#drain", "reference/verdict.html#drain", "evidence/faults.html")
    ]
    assert boosts[0] > boosts[1] == boosts[2]
    # The worker of the site's search hands the boost to lunr.
    assert "{boost: doc.boost}" in (site / "search" / "worker.js").read_text()
    # Opened as files, the site has the same index as a script, and what loads it.
    script = (site / "search" / "search_index.js").read_text()
    assert json.loads(script.removeprefix("data = ").removesuffix(";\n"))["docs"] == entries
    loads = (site / "search" / "main.js").read_text()
    assert "search_index.js" in loads and "new Worker(" in loads


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
def written(made_once):
    """A folder with docs/ and all that is made of the code."""

    def make(folder):
        command = [sys.executable, "ci/docs_pages.py", str(folder / "docs")]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
        again = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE)
        assert again.returncode == 1

    return made_once("pages", make) / "docs"


@pytest.mark.full
def test_no_line_of_a_page_is_left_without_its_table(written):
    made = runpy.run_path(str(ROOT / "ci" / "docs_pages.py"))
    line, note = (re.compile(f"^<!-- ({'|'.join(made['TABLES'])}) ", re.M), made["NOTE"])
    for page in written.rglob("*.md"):
        assert not line.search(page.read_text()) and note not in page.read_text(), page
    # Who reads a page in the repository is told where its tables are.
    pages = {page: page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    without = [page for page, text in pages.items() if bool(line.search(text)) != (note in text)]
    assert without == []


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("reference/metrics.md", "| `stream_local` | smoke | "),
        ("reference/metrics.md", "`copy_{worst,median}`"),
        ("reference/published-network.md", "| lumi-g | "),
        ("reference/sets.md", "`stream_local`"),
        ("reference/verdict.md", "| `wrong-data` | DATA-FAIL | "),
        ("reference/verdict.md", "### NodeVerdict"),
        ("reference/result-document.md", "| 5 | `wrong-data` | wrong data |"),
        ("reference/result-document.md", "| `samples` | list of number | yes | "),
        ("reference/result-document.md", "| `engine` | E7 | copy engine | "),
        ("reference/node-model.md", "| `peak_gbs` | KnownQuantity | yes |"),
        ("reference/site-file.md", "| `several_domains` | more than one NUMA domain"),
        ("reference/export.md", "| `value` | number | metric, series, sample | "),
        ("reference/sites.md", "| **`lumi:gpu`** | "),
        ("reference/sites.md", "`module load CrayEnv PrgEnv-gnu "),
        (
            "evidence/h200.md",
            "| copy on the device | GB/s | 2145.7 ± 0.08 % (2145.4",
        ),
        ("evidence/h200.md", "| copy | plain | 4283 | 4176 | 4114 | 4142 |"),
        ("evidence/h200.md", "| 264 | 3117 | 3569 | 2465 | 4381 | 3878 | 4546 |"),
        ("evidence/h200.md", "Of 25 targets: 19 reached, 6 equal within the spread, 0 missed."),
        ("evidence/parity.md", "| the paper, figure 2 | `paper-h2d-*` | "),
    ],
)
@pytest.mark.full
def test_a_page_of_the_reference_is_made_of_the_code(written, page, row):
    assert row in (written / page).read_text()


@pytest.mark.full
def test_the_page_of_exports_has_every_column_as_it_is(written):
    text = (written / "reference" / "export.md").read_text()
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    of_rows = ("check", "metric", "series", "sample", "state", "node")
    assert [line for line in table if len(line) == 4] == [
        [f"`{one.name}`", one.type, "all" if one.row_types == of_rows else ", ".join(one.row_types),
         one.meaning]
        for one in columns()
    ]  # fmt: skip


@pytest.mark.full
def test_the_page_of_commands_has_the_help_of_each_and_the_exit_codes(written):
    page = (written / "reference" / "commands.md").read_text()
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
