"""ci/times.sh: where the seconds of a make went."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "tests" / "outputs" / "h200" / "session-x2" / "reports" / "run-0.json"

MAKEFILE = """
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
all:
\t@sleep 1.1; echo said; echo warned >&2
\t@$(MAKE) --no-print-directory -f {file} below
below:
\t@echo two \\
\tlines; exit 3
"""

NINJA = """# ninja log v5
0\t9000\t1\tCMakeFiles/one.dir/a.cpp.o\t5
100\t4100\t1\tCMakeFiles/one.dir/a.cpp.o\t5
0\t2500\t1\tbin/one\t6
0\t40\t1\tbin/two\t7
"""

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.rfm.test_long" name="test_a[x]" time="4.5"/>
<testcase classname="tests.rfm.test_short" name="test_b" time="0.25"/>
<testcase classname="tests.cli.test_short" name="test_b" time="0.25"/>
</testsuite></testsuites>
"""


def rows(kind: str, file: Path) -> dict[str, list[str]]:
    program = [sys.executable, ROOT / "ci" / "spent.py", kind, file]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    cut = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    return {name: seconds for name, *seconds in cut}


def test_lines_of_recipes_are_timed_and_do_what_they_do_without(tmp_path):
    file, timed = tmp_path / "Makefile", tmp_path / "timed"
    file.write_text(MAKEFILE.format(file=file))
    command = ["make", "-f", file, f"SHELL={ROOT / 'ci' / 'timed.sh'}", "all"]
    # The tests may be started by make themselves, whose options would be those of this one.
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    environment = outside | {"MAKE_TIMED": str(timed)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stdout == "said\ntwo lines\n"
    assert ended.stderr.startswith("warned\n") and "Error 3" in ended.stderr
    assert len(timed.read_text().splitlines()) == 3
    (row,) = rows("recipes", timed).items()
    assert row[0].startswith("sleep 1.1;") and 1.1 <= float(row[1][0]) < 60


def test_who_makes_without_a_file_of_times_is_not_timed(tmp_path):
    ended = subprocess.run(
        [ROOT / "ci" / "timed.sh", "-c", "echo said"], env={}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "said\n", "")


def test_of_what_was_built_twice_the_last_time_counts(tmp_path):
    log = tmp_path / "sim" / ".ninja_log"
    log.parent.mkdir()
    log.write_text(NINJA)
    assert rows("units", log) == {
        "all of sim, one after another": ["6.54", "-"],
        "one a.cpp.o": ["4.00", "-"],
        "bin/one": ["2.50", "-"],
    }


def test_folders_of_tests_and_long_tests_are_told(tmp_path):
    (tmp_path / "tests.xml").write_text(JUNIT)
    assert rows("tests", tmp_path / "tests.xml") == {
        "tests/rfm/": ["4.75", "-"],
        "test_long::test_a[x]": ["4.50", "-"],
    }


def test_checks_of_a_session_have_the_time_of_their_program_without_their_turn():
    assert rows("checks", SESSION)["osu_device_0 @x2"] == ["36.41", "-"]
