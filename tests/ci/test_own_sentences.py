"""The check that no module below `cli` and `report` reads a sentence of ours."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from fabricheck.core.checkout import ROOT

FILE = "judge/verdict/judging.py"


@pytest.fixture(scope="module")
def own_sentences():
    spec = importlib.util.spec_from_file_location("own_sentences", ROOT / "ci" / "own_sentences.py")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def readings(own_sentences):
    return lambda **files: [
        *own_sentences.readings(
            {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
        )
    ]


@pytest.mark.parametrize(
    "line",
    [
        "found.sentence.removesuffix('.')",
        "one['sentence'].partition(': ')",
        "str(document.note).startswith('compared with ')",
        "re.search(r'device (\\d+)', one.label)",
        "row.label().split(':')",
        "'changed by' in one.reason",
    ],
)
def test_a_sentence_is_told_by_its_name(readings, line):
    assert len(readings(judge__verdict__judging=line)) == 1


@pytest.mark.parametrize(
    "line", ["print(a.sentence)", "f'{a.label}: {why}'", "line.startswith('#')", "' '.join(reason)"]
)
def test_a_sentence_that_is_shown_is_not(readings, line):
    assert readings(judge__verdict__judging=line) == []


VALUES = """
from fabricheck.judge import texts
from fabricheck.judge.texts import slow, reasons

def judged(node, rows):
    text = f"{node} is slow today"
    longer = text + "."
    every = [f"{row} was not measured" for row in rows]
    HERE
"""

TEXTS = """
def slow(node) -> str:
    name = f"node {node} is slow"
    return name if node else ""

def reasons(nodes) -> Iterator[str]:
    yield from (slow(node) for node in nodes)

def named(node) -> str:
    return f"node{node}"
"""


@pytest.mark.parametrize(
    "line",
    [
        "longer.split('.')",
        "'slow' in text",
        "[one for one in every if one.startswith('a')]",
        "every[0].find('x')",
        "'; '.join(every).partition(':')",
        "re.search('x', slow(node))",
        "texts.slow(node).endswith('.')",
        "[one for one in reasons(rows) if 'x' in one]",
    ],
)
def test_a_sentence_is_followed_to_where_it_is_read(readings, line):
    found = readings(judge__texts=TEXTS, judge__judging=VALUES.replace("HERE", line))
    assert len(found) == 1 and "judge/judging.py:9: it reads the sentence" in found[0]


@pytest.mark.parametrize(
    "line",
    [
        "print(longer, every)",
        "text in every",
        "texts.named(node).split('e')",
        "[one for one in rows if one.startswith('a')]",
    ],
)
def test_what_is_no_sentence_may_be_read(readings, line):
    assert readings(judge__texts=TEXTS, judge__judging=VALUES.replace("HERE", line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "re.compile(r'^Verdict on ')",
        "re.compile(r'x|(?:Verdict on )+')",
        "line.startswith(('a', 'Verdict on '))",
        "line == 'Nothing failed on any node.'",
        "'failed on any' in line",
    ],
)
def test_words_of_a_command_are_looked_for_by_nobody(readings, line):
    command = "heading = f'Verdict on {name}: '\nrest = 'Nothing failed on any node.'"
    assert len(readings(cli__verdict=command, run__first_hour=line)) == 1
    assert readings(tools__verdict=command, run__first_hour=line) == []
    assert readings(cli__verdict=command, cli__first_hour=line) == []


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("assert said == 'Link 0-6 is down by 50 %.'", True),
        (
            "with here:\n        assert any('There is no result of n1: ' in one for one in said)",
            True,
        ),
        ("assert row == 'link 0-6   50 GB/s   within'", False),
        ("wording('Link 0-6 is down by 50 %.')", False),
    ],
)
def test_a_test_asserts_no_sentence(own_sentences, line, is_one):
    found = list(own_sentences.asserted({"test_link.py": f"def test_link():\n    {line}"}))
    assert len(found) == is_one
