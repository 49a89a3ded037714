"""Which set a session ran, from how ReFrame was called; and the sets themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

import factories
from fabricheck.core.errors import UsageError
from fabricheck.judge.coverage import checks_folders
from fabricheck.results.session import read_report
from fabricheck.site import sets
from session_builder import SessionBuilder

#: Of a check class.
TAGS = re.compile(r"^    tags = \{(.*)\}$", re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "words", "chosen", "part_of"),
    [
        ("reframe -r", (), "full", None),
        ("reframe -r --repeat=3 -S overlay=x.yaml", (), "full", None),
        ("reframe -r -c reframe_checks -t node", ("-t node",), "node", None),
        ("reframe -rt smoke", ("-t smoke",), "smoke", None),
        ("reframe -r '--tag=^smoke$'", ("-t ^smoke$",), "smoke", None),
        ("reframe --mode smoke -r --distribute=all", ("--mode=smoke",), "smoke", None),
        # A check must have both tags.
        ("reframe --mode=full -t smoke -r", ("--mode=full", "-t smoke"), "smoke", None),
        ("reframe -r -t node -t E7", ("-t node", "-t E7"), None, "node"),
        ("reframe -r -t node -x rccl", ("-t node", "-x rccl"), None, "node"),
        ("reframe -r -n stream_local -n p2p", ("-n stream_local", "-n p2p"), None, "full"),
        ("reframe -r --restore-session --failed", ("--restore-session", "--failed"), None, "full"),
        ("reframe -r --mode=nightly", ("--mode=nightly",), None, "full"),
        # A part of a tag matches it, and others that nobody thought of.
        ("reframe -r -t no", ("-t no",), None, "full"),
        # A report from before ReFrame wrote it, and one that was changed.
        ("", (), None, None),
        ("reframe -r -t 'smoke", (), None, None),
        ("reframe -r -t", (), None, None),
    ],
)
def test_what_chose_the_checks(command, words, chosen, part_of):
    assert sets.chosen(command) == sets.Choice(words, chosen, part_of)


def test_a_session_tells_its_set_and_when_its_jobs_were(tmp_path):
    SessionBuilder(tmp_path).add(factories.case()).write()
    (report,) = tmp_path.glob("reports/run-*.json")
    content = json.loads(report.read_text())
    content["session_info"]["cmdline"] = "/bin/reframe --mode=node -r"
    (entry,) = content["runs"][0]["testcases"]
    entry |= {"job_submit_time": 10.5, "job_completion_time_unix": "<undefined>"}
    report.write_text(json.dumps(content))
    session = read_report(report, tmp_path)
    assert session.choice == sets.Choice(("--mode=node",), "node")
    (case,) = session.cases
    assert (case.submitted, case.ended) == (10.5, None)


def test_each_set_has_the_checks_of_those_before_it():
    names = list(sets.known())
    assert names == ["smoke", "node", "full", "network", "soak"]
    files = [file.read_text() for folder in checks_folders() for file in folder.rglob("*.py")]
    stated = [re.findall(r'"(\w+)"', tags) for text in files for tags in TAGS.findall(text)]
    of_sets = [tuple(name for name in names if name in tags) for tags in stated]
    nested = {("smoke", "node", "full"), ("node", "full"), ("full",)}
    assert set(of_sets) == {*nested, ("network",), ("soak",), ()}
    assert [tags for tags, found in zip(stated, of_sets, strict=True) if not found] == [["build"]]


def test_a_mode_takes_no_tag_that_its_name_is_a_part_of():
    (smoke,) = [one for one in sets.modes() if one["name"] == "smoke"]
    (option,) = smoke["options"]
    pattern = option.removeprefix("--tag=")
    # As ReFrame does for -t.
    assert [tag for tag in ("smoke", "smoke_long", "no_smoke") if re.search(pattern, tag)] == [
        "smoke"
    ]


@pytest.mark.parametrize(
    "arguments", [["--mode=node", "-r"], ["-l"], ["-r", "--mode", "smoke"], ["--mode"]]
)
def test_a_mode_is_that_of_a_set(arguments):
    sets.require_mode(arguments)


def test_a_misspelt_mode_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(UsageError, match="no set 'nod'; the sets are smoke, node, full, network"):
        sets.require_mode(["-c", "reframe_checks", "--mode=nod", "-r"])
    environment = {**os.environ, "FABRICHECK_RESULTS": str(tmp_path)}
    ended = subprocess.run(
        ["reframe", "--system=local:sim-mi250x", "--mode=nod", "-r"],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "'nod'" in ended.stderr and "smoke" in ended.stderr
