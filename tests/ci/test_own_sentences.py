"""The check that no module below `cli` and `report` reads a sentence of ours."""

from __future__ import annotations

import runpy

import pytest

from fabricheck.core.checkout import ROOT

readings = runpy.run_path(str(ROOT / "ci" / "own_sentences.py"))["readings"]


@pytest.mark.parametrize(
    "line",
    [
        "found.sentence.removesuffix('.')",
        "one['sentence'].partition(': ')",
        "str(document.note).startswith('compared with ')",
        "re.search(r'device (\\d+)', one.label)",
        "'changed by' in one.reason",
    ],
)
def test_a_sentence_that_is_read_is_named(line):
    assert len([*readings("judge/verdict/judging.py", line)]) == 1


@pytest.mark.parametrize(
    "line",
    ["print(found.sentence)", "f'{one.label}: {why}'", "line.startswith('#')", "' '.join(reason)"],
)
def test_a_sentence_that_is_shown_is_not(line):
    assert [*readings("judge/verdict/judging.py", line)] == []
