"""docs/reproduce.md has a command for each figure of the paper that a check measures."""

from __future__ import annotations

import fnmatch
import re

from test_parity import ROWS

from fabricheck.core.checkout import ROOT
from fabricheck.papers import document_figures
from fabricheck.papers.claims import CLAIMS

PAGE = ROOT / "docs" / "reproduce.md"

ROW = re.compile(
    r"^\| (?P<item>[^|]+) \| `(?P<checks>-n '.+?)` \| (?P<figures>.+?) \| (?P<claims>.+?)"
    r" \|$",
    re.M,
)


def rows():
    """Return by item of the paper its checks, figures of the report, and claims."""
    found = {}
    for row in ROW.finditer(PAGE.read_text()):
        checks = set(re.findall(r"-n '\^(\w+)\$'", row["checks"]))
        named = [re.findall(r"`([^`]+)`", row[key]) for key in ("figures", "claims")]
        for item in row["item"].removeprefix("text ").split(", "):
            found[item] = (checks, *named)
    return found


def in_parity():
    """Return by figure of the paper the checks that its row of parity names."""
    start = "the paper, figure "
    return {row.item.removeprefix(start): set(row.checks) for row in ROWS
            if row.item.startswith(start)}  # fmt: skip


def test_each_figure_has_a_command_of_checks_that_measure_it():
    commands, parity = rows(), in_parity()
    assert parity.keys() <= commands.keys()
    for figure, checks in parity.items():
        assert commands[figure][0] & checks, figure


def test_the_figures_of_the_page_are_those_that_show_the_same():
    commands = rows()
    for one in document_figures.figures():
        if one.document == "paper":
            assert set(one.ours) & set(commands[one.figure][1]), one.figure


def test_its_findings_are_claims_on_the_paper():
    names = [claim.id for claim in CLAIMS]
    for _, _, claims in rows().values():
        assert claims and all(fnmatch.filter(names, pattern) for pattern in claims)


def test_pages_state_how_many_findings_there_are():
    for page in ("README.md", "docs/reproduce.md"):
        stated = re.findall(r"(\d+) findings of", (ROOT / page).read_text())
        assert stated == [str(len(CLAIMS))], page
