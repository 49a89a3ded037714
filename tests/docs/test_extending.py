"""The examples of docs/extending.md, followed in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import reframe

from fabricheck.core.checkout import ROOT
from fabricheck.rfm.pairs import one_each

#: What the examples change, or stand beside.
COPIED = (
    "CMakeLists.txt", "ci/vocabulary.py", "cmake", "config", "reference_values", "reframe_checks",
    "src", "tests/papers", "tests/check_rows.py", "tests/factories.py", "tests/figure_runs.py",
)  # fmt: skip

#: The sites whose lists are looked at; making those of all takes three times as long.
SITES = ("local", "h200", "lumi")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?:#|//) (\S+)\n")

#: What a newcomer would look at: the cases of the claim, its figure.
LOOK = """\
import figure_runs
from cases_local import CASES

from fabricheck.papers.claims import CLAIMS, evaluate
from fabricheck.report.figures import sections

(claim,) = [one for one in CLAIMS if one.id == "local-stream-conclusion"]
cases = CASES[claim.id]
for observed in (cases.reproduced(), cases.refuted(), cases.missing()):
    (verdict,) = evaluate([claim], observed)
    print(verdict.outcome)

copies = figure_runs.copies("host-pinned", {1024: 0.5, 4096: 1.5})
found, undrawn = sections(figure_runs.partition({"tiny_copies": copies}))
assert not undrawn, undrawn
(figure,) = [one for one in found["Between host and device"] if one.id == "host-small"]
print(figure.title, [row["value"] for row in figure.rows], "<svg" in figure.svg)
"""


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Return of each block of a page that names its file: language, file, and the rest."""
    found = []
    for language, text in BLOCK.findall((ROOT / "docs" / page).read_text()):
        named = NAMED.match(text)
        if named:
            found.append((language, named[1], text[named.end() :]))
    return found


def change(text: str, block: str) -> str:
    """Return a text with the changes of a block, each around lines that are there once."""
    for part in block.split("@@\n")[1:]:
        lines = part.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the repository with all that the page writes, and docs/site.md's site."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    for file in (tree / "config" / "sites").iterdir():
        if file.name.partition(".")[0] not in SITES:
            file.unlink()
    for language, name, text in blocks("extending.md"):
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        assert file.exists() == (language == "diff"), name
        file.write_text(change(file.read_text(), text) if language == "diff" else text)
    ((_, site),) = [
        block for block in BLOCK.findall((ROOT / "docs" / "site.md").read_text())
        if block[0] == "python"
    ]  # fmt: skip
    (tree / "config" / "sites" / "north.py").write_text(site)
    return tree


def python(
    tree: Path, code: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, with its packages."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FABRICHECK_", "RFM_", "SLURM_"))
    }
    path = [tree / "src", tree / "tests", tree / "tests" / "papers"]
    environment = clean | {"PYTHONPATH": ":".join(map(str, path))} | variables
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def run(tree: Path, code: str, *arguments: str, **variables: str) -> str:
    """Run Python in the copy, and return what it printed."""
    done = python(tree, code, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def listed(tree: Path, partition: str) -> set[str]:
    """Return the checks that ReFrame has for a partition."""
    said = run(
        tree,
        "from reframe.frontend.cli import main; main()",
        *(f"--system={partition}", "-l"),
        RFM_CONFIG_FILES=str(tree / "config" / "settings.py"),
        RFM_INSTALL_PREFIX=reframe.INSTALL_PREFIX,
    )
    return set(re.findall(r"^- (\w+)", said, re.MULTILINE))


@pytest.mark.slow
def test_the_site_has_the_checks_of_its_node(tree):
    found = listed(tree, "north:gpu")
    assert "tiny_copies" in found and found == listed(tree, "lumi:gpu")


def test_what_the_page_names_is_there():
    text = BLOCK.sub("", (ROOT / "docs" / "extending.md").read_text())
    paths = re.findall(r"`((?:src|tests|config|docs|spack-env|reference_values)/[\w./-]+)`", text)
    assert "src/fabricheck/rfm/benchmarks.py" in paths
    assert not [path for path in paths if not (ROOT / path).exists()]
    rfm = "".join(file.read_text() for file in (ROOT / "src/fabricheck/rfm").glob("*.py"))
    bases = set(re.findall(r"`(\w+Check)`", text))
    assert {"MeasuringCheck", "BenchmarkCheck"} <= bases
    assert not [base for base in bases if f"class {base}(" not in rfm]


def test_the_files_through_which_a_value_travels_are_there():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## How a value travels")[2]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for _, step, where, *_ in rows:
        # A name alone is in the folder of the one before it.
        last = ROOT / "src" / "fabricheck" / "none"
        for name in re.findall("`(.+?)`", where):
            below = ROOT / "src" / "fabricheck" if name.count("/") else last.parent
            last = next((file for file in (below / name, ROOT / name) if file.exists()), None)
            assert last is not None, f"{step}: {name}"


@pytest.mark.full
def test_claim_and_figure(tree):
    printed = run(tree, LOOK).splitlines()
    assert printed == [
        "reproduced",
        "not reproduced",
        "not testable here",
        "Copies of 1024 B to each device [0.5] True",
    ]


@pytest.mark.full
def test_the_limits_have_their_sources(tree):
    """Of the site and of a published record; `limits check` follows both."""
    asked = ("from fabricheck.cli import app; app()", "limits", "check", "--json")
    found = json.loads(run(tree, *asked))
    assert found["limits"] and found["faults"] == []
    values = tree / "reference_values" / "published_values.yaml"
    text = values.read_text()
    values.write_text(text.replace("  value: 6.1\n", "  value: 61\n", 1))
    done = python(tree, *asked)
    values.write_text(text)
    assert done.returncode == 4 and "its source gives 61 GB/s" in done.stdout


def test_a_pair_is_a_tuple_or_a_list():
    assert one_each([(0, 1), [1, 0]]) == one_each([[0, 1], (1, 0)]) == (([0, 1],), ([1, 0],))


@pytest.mark.slow
def test_the_check_runs_on_a_simulated_node(tree, tmp_path):
    said = run(
        tree,
        "from reframe.frontend.cli import main; main()",
        *("--system=local:sim-mi250x", "-n", "tiny_copies", "-r"),
        RFM_CONFIG_FILES=str(tree / "config" / "settings.py"),
        RFM_INSTALL_PREFIX=reframe.INSTALL_PREFIX,
        FABRICHECK_SIM_PROGRAMS=str(ROOT / "build" / "sim" / "bin"),
        FABRICHECK_RESULTS=str(tmp_path),
    )
    assert "Ran 1/1 test case(s)" in said and "P: h2d_worst: " in said
    assert "tiny_copies: report only, without a limit on local:sim-mi250x: h2d_worst" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"source.memory": "host-pinned",', "", "Metric h2d_worst is compared with its peers"),
        (
            "independent=True",
            'over=("device_set",)',
            "Metric h2d_worst is over device_set, of which",
        ),
    ],
)
def test_a_metric_that_lacks_something_is_refused_in_one_sentence(tree, tmp_path, old, new, said):
    text = (tree / "reframe_checks" / "tiny_copies" / "tiny_copies.py").read_text()
    assert text.count(old) == 1
    (tmp_path / "tiny_copies.py").write_text(text.replace(old, new))
    session = python(
        tree,
        "from reframe.frontend.cli import main; main()",
        *("--system=local:sim-mi250x", "-c", str(tmp_path), "-n", "tiny_copies", "--dry-run"),
        RFM_CONFIG_FILES=str(tree / "config" / "settings.py"),
        RFM_INSTALL_PREFIX=reframe.INSTALL_PREFIX,
        FABRICHECK_RESULTS=str(tmp_path),
    )
    assert session.returncode == 1
    assert said in session.stdout and "Traceback" not in session.stdout + session.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("printed", "status", "exit_code", "said"),
    [
        pytest.param(
            "device 0: 1650.2 GB/s\ndevice 1: 1648.9 GB/s\ndone\n",
            "(left-out-",
            13,
            "P: device_1: 1648.9",
            marks=pytest.mark.full,
        ),
        ("device 0: 1650.2 GB/s\ndevice 1: 1400.0 GB/s\ndone\n", "PERF-FAIL", 12, "device_1"),
        pytest.param(
            "device 0: 1650.2 GB/s\ndevice 1: 16",
            "INCOMPLETE",
            13,
            "without a value of device_1",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "device 0: 1650.2 GB/s\n",
            "INCOMPLETE",
            13,
            "sanity error: 1 != 2",
            marks=pytest.mark.full,
        ),
    ],
)
@pytest.mark.full
def test_the_third_party_tool_is_judged(tree, tmp_path, printed, status, exit_code, said):
    tool = tmp_path / "bin" / "devcopy"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nprintf '{printed}'\n")
    tool.chmod(0o755)
    variables = {
        "FABRICHECK_RESULTS": str(tmp_path / "results"),
        "PATH": f"{tool.parent}:{os.environ['PATH']}",
        "RFM_CONFIG_FILES": str(tree / "config" / "settings.py"),
        "RFM_INSTALL_PREFIX": reframe.INSTALL_PREFIX,
    }
    words = shlex.split("--system=local:host -c reframe_checks -c checks -n devcopy -r")
    session = python(tree, "from reframe.frontend.cli import main; main()", *words, **variables)
    assert said in session.stdout + session.stderr
    verdict = python(tree, "from fabricheck.cli import app; app()", "verdict", **variables)
    assert verdict.returncode == exit_code and status in verdict.stdout, verdict.stdout


@pytest.mark.full
def test_the_program_is_built_and_runs(tree):
    build = tree / "build"
    program = build / "count"
    main = "src/bench/CMakeFiles/count.dir/Unity/unity_0_cxx.cxx.o"
    # The libraries are those of make build, and so is the compiler: anew it would take a minute.
    made = (ROOT / "build" / "host" / "CMakeCache.txt").read_text()
    (compiler,) = re.findall(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", made, re.MULTILINE)
    libraries = [
        *(ROOT / "build" / "cpu").rglob("libfabricheck_harness*.a"),
        *(ROOT / "build" / "host").rglob("libfabricheck_h*.a"),
    ]
    together = ["-Wl,--start-group", *libraries, "-Wl,--end-group"]
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(build), "-DCMAKE_BUILD_TYPE=Debug"],
        ["cmake", "--build", str(build), "--target", main],
        [compiler, build / main, *together, "-lhwloc", "-ldl", "-fopenmp", "-o", program],
    ):
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"CXX": compiler})
    done = subprocess.run(
        [program, "--output", str(build / "count.json")],
        capture_output=True, text=True, check=True,
        env=os.environ | {"FABRICHECK_HOST_DEVICES": "3"},
    )  # fmt: skip
    assert done.stderr.endswith("3 device(s)\n"), done.stderr
    assert '"count"' in run(tree, "from fabricheck.site.clusters import PROGRAMS; import json; "
                            "print(json.dumps(PROGRAMS))")  # fmt: skip


TESTS = ROOT / "tests"


def test_the_map_of_tests_has_every_folder():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("| folders of `tests` |")[2]
    table = section.partition("\n\n")[0]
    folders = {file.parent.name for kind in ("py", "cpp") for file in TESTS.glob(f"*/*.{kind}")}
    assert set(re.findall(r"`(\w+)`", table)) == folders
