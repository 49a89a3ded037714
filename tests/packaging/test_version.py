"""The version stands in one place; what cannot read it there agrees with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import fabricheck

ROOT = Path(__file__).parents[2]


def test_cmake_reads_it_where_python_has_it(tmp_path):
    asked = (ROOT / "CMakeLists.txt").read_text().splitlines()
    until = next(number for number, line in enumerate(asked) if line.startswith("project("))
    lines = [line.replace("src/", f"{ROOT}/src/") for line in asked[1:until]]
    script = tmp_path / "version.cmake"
    script.write_text("\n".join([*lines, "message(STATUS ${FABRICHECK_VERSION})"]))
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"-- {fabricheck.__version__}\n"
    assert asked[until].startswith("project(fabricheck VERSION ${FABRICHECK_VERSION} ")


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("spack-env/common/fabricheck.yaml", r"spec: fabricheck@=(.*)"),
        ("spack-env/repo/packages/fabricheck/package.py", r'url = "fabricheck-(.*)\.tar\.gz"'),
        ("CHANGELOG.md", r"^## \[(\d+\.\d+\.\d+)\]"),
    ],
)
def test_other_files_have_the_same(file, pattern):
    found = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found and found[0] == fabricheck.__version__


def test_who_cites_it_cites_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == fabricheck.__version__
    heading = f"## [{fabricheck.__version__}] - {citation['date-released']}\n"
    assert heading in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_is_valid_cff():
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format"]
    subprocess.run([sys.executable, *command, ROOT / "CITATION.cff"], check=True)
