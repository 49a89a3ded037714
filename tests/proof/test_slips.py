"""The draw of slips: repeatable, one place each, and of what changes behaviour."""

from __future__ import annotations

import ast
from itertools import islice
from multiprocessing.pool import ThreadPool

import pytest

from proof.mutants import chosen
from proof.mutants.drawn import DRAWN
from proof.mutants.runs import ROOT
from proof.slips import cpp, drawing, page
from proof.slips.record import Outcome, Record, survivors

TEXT = '''"""A file."""


def least(values: list[int | None]) -> int | None:
    """Return the least one above 3 and below 9."""
    found = [value for value in values if value is not None and 3 < value <= 9]
    return min(found) if found else None
'''


@pytest.fixture
def root(tmp_path):
    """A tree with one file in one room."""
    file = tmp_path / "src" / "fabricheck" / "judge" / "least.py"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    return tmp_path


def slips(root, seed=1, number=20):
    return list(drawing.drawn(root, seed, number, ["judge"]))


def test_a_seed_draws_the_same_slips(root):
    assert slips(root) == slips(root) != slips(root, seed=2)


def test_a_slip_changes_one_line_and_what_the_program_does(root):
    for slip in slips(root):
        differing = [
            number
            for number, (before, after) in enumerate(
                zip(slip.before.splitlines(), slip.after.splitlines(), strict=True), 1
            )
            if before != after
        ]
        assert len(differing) == 1 and differing[0] > 4
        assert ast.parse(slip.after)


def test_a_change_of_an_annotation_or_a_docstring_is_none():
    text = "def f(a: int) -> int:\n    'Say it.'\n    b: int | None = a\n    return b\n"
    same = "def f(a: str) -> str:\n    'It.'\n    b: int = a\n    return b\n"
    assert drawing.behaviour(text) == drawing.behaviour(same)
    assert drawing.behaviour(text) != drawing.behaviour(text.replace("= a", "= -a"))


def test_what_is_no_program_any_more_is_no_slip():
    assert drawing.changes_behaviour("a = b * c\n", "a = b / c\n")
    assert not drawing.changes_behaviour("a = {**b}\n", "a = {|b}\n")


CPP = """#include <limits>

// More than 0 and less < than 9.
int least(const std::vector<int>& values) {
  return values.size() > 0 && text != "a < b" ? std::min(values.front(), 1024) : 0;  // or > 1
}
"""


def test_a_slip_of_cpp_changes_code_and_no_comment_text_or_template(tmp_path):
    file = tmp_path / "src" / "bench" / "least.cpp"
    file.parent.mkdir(parents=True)
    file.write_text(CPP)
    drawn = [*islice(cpp.drawn(tmp_path, 1), 60)]
    assert {slip.line for slip in drawn} == {5}
    changed = {slip.lines[1] for slip in drawn}
    assert len(changed) == 9
    assert all('"a < b"' in line and "// or > 1" in line for line in changed)
    assert drawn == [*islice(cpp.drawn(tmp_path, 1), 60)]


def test_a_run_that_was_ended_is_taken_up_where_it_was(root, tmp_path):
    drawn = [*{slip.name: slip for slip in slips(root)}.values()][:4]
    assert len(drawn) == 4
    file, ran = tmp_path / "record", []

    def run(slip):
        ran.append(slip)
        return Outcome(slip, "test_least" if slip is drawn[0] else None, slip is not drawn[1])

    with ThreadPool(1) as pool:
        Record(file).completed(drawn[:2], run, pool)
        outcomes = Record(file).completed(drawn, run, pool)
    assert ran == drawn
    assert [each.seen_by for each in outcomes] == ["test_least", None, None, None]
    assert [each.counts for each in outcomes] == [True, False, True, True]


class Failing:
    """A tree whose tests fail in their order, unless they are left out; some fail once alone."""

    def __init__(self, *failing, once=()):
        self.failing, self.once = failing, [*once]

    def first_failure(self, tests, limit_s=0, *, left_out=()):
        failing = [test for test in self.failing if test in tests and test not in left_out]
        for test in self.once:
            if test in tests:
                self.once.remove(test)
                return test
        return failing[0] if failing else None


@pytest.mark.parametrize(
    ("fail_always", "seen"), [((), "a"), (("a",), "b"), (("a", "b"), None), (("c",), "a")]
)
def test_a_test_that_fails_without_the_change_sees_nothing_and_hides_no_other(
    monkeypatch, fail_always, seen
):
    monkeypatch.setattr(chosen, "unchanged", lambda scratch: Failing(*fail_always))
    chosen.passes_without_a_change.cache_clear()
    assert chosen.first_failure(Failing("a", "b"), ["a", "b", "c"], "")[0] == seen
    chosen.passes_without_a_change.cache_clear()


@pytest.mark.parametrize(("failing", "seen"), [(("b",), "b"), ((), None)])
def test_a_test_that_fails_once_on_a_busy_machine_sees_nothing(monkeypatch, failing, seen):
    monkeypatch.setattr(chosen, "unchanged", lambda scratch: Failing())
    chosen.passes_without_a_change.cache_clear()
    tree = Failing(*failing, once=("a",))
    assert chosen.first_failure(tree, ["a", "b"], "")[0] == seen
    chosen.passes_without_a_change.cache_clear()


def a_slip(mutant, after=None):
    before = (ROOT / mutant.path).read_text()
    return drawing.Slip(mutant.path, 1, "operator", before, after or mutant.changed())


def test_a_survivor_is_explained_by_the_mutant_that_makes_the_same_change_or_by_a_reason():
    mutant = DRAWN[0]
    assert Outcome(a_slip(mutant), None).seen_since == " ".join(mutant.tests)
    assert not Outcome(a_slip(mutant), None).is_unexplained
    another = a_slip(mutant, (ROOT / mutant.path).read_text() + "pass\n")
    assert Outcome(another, None).is_unexplained and not Outcome(another, "a_test").is_unexplained


def test_each_survivor_is_of_a_file_that_is_there_and_has_a_reason_or_a_test():
    for (path, _, _), came in survivors().items():
        assert (ROOT / path).exists() and len(came) == 1
        if "seen_by" in came:
            assert (ROOT / "tests" / came["seen_by"].partition("::")[0]).exists()
        else:
            assert came["why"]


def test_a_survivor_of_cpp_is_explained_by_the_test_that_sees_it_since():
    (found,) = [
        (slip, came)
        for slip, came in survivors().items()
        if "cpp/test_sampling.cpp" in came.values()
    ]
    (path, before, after), came = found
    slip = drawing.Slip(path, 1, "operator", before, after)
    assert Outcome(slip, None).seen_since == came["seen_by"]
    assert not Outcome(slip, None).is_unexplained


def test_a_run_of_one_language_leaves_the_section_of_the_other(monkeypatch, wording):
    monkeypatch.setattr(page, "_commit", lambda: "commit 1234")
    slip = drawing.Slip("src/bench/fabric/plan.cpp", 1, "order", "a < b\n", "a > b\n")
    python = Outcome(a_slip(DRAWN[0]), "a_test")
    first = page.page("", 1, [python])
    both = page.page(first, 2, [Outcome(slip, "another_test")])
    assert both.startswith(first.rstrip()) and both[len(first) :].startswith("\n## C++\n\nSeed 2")
    wording(line for line in both.splitlines() if line.startswith("Seed"))
    assert page.page(both, 3, [python]).index("## Python") < both.index("## C++")
    assert "Seed 3" in page.page(both, 3, [python]) and "Seed 1" not in page.page(both, 3, [python])
