"""The catalogue of mutants is whole, and its page is of its last run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.mutants import imported, page
from proof.mutants.catalogue import MUTANTS
from proof.mutants.changes import CHANGES
from proof.mutants.mutant import Mutant, Outcome
from proof.mutants.runs import ROOT, NotRunError, Tree

#: All of them run in five minutes on two idle cores.
MOST = 142


def test_mutants_have_names_of_their_own_and_are_not_too_many():
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) <= MOST


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_an_error_is_one_place_of_a_file_that_stays_python(mutant):
    compile(mutant.changed(), mutant.path, "exec")
    assert mutant.new != mutant.text
    assert mutant.tests
    for test in mutant.tests:
        assert (ROOT / "tests" / test.split("::")[0]).exists()


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.name)
def test_a_change_is_one_place_of_a_file(change):
    assert change.changed() != (ROOT / change.path).read_text()


def test_the_page_is_what_the_last_run_of_these_mutants_wrote():
    found = list(page.cells(page.PAGE.read_text()))
    assert [cells[:1] for cells in found] == [page.fixed(one) for one in MUTANTS], "make mutants"
    for cells, mutant in zip(found, MUTANTS, strict=True):
        if mutant.survives is None:
            assert (ROOT / "tests" / cells[1].strip("`").split("::")[0]).exists(), "make mutants"
        else:
            assert cells[2] == page.survives(mutant), "make mutants"


@pytest.fixture
def tree(tmp_path):
    """A tree whose package has a constant, and a test that it is 1."""
    sources = {
        "src/fabricheck/__init__.py": "ONE = 1\n",
        "tests/test_one.py": "from fabricheck import ONE\n\ndef test_one():\n    assert ONE == 1\n",
        "proof/mutants/imported.py": Path(imported.__file__).read_text(),
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Tree(tmp_path)


def test_an_error_is_seen_and_put_back(tree):
    with tree.changed("src/fabricheck/__init__.py", "ONE = 2\n"):
        assert tree.first_failure(["test_one.py"]) == "test_one.py::test_one"
    assert tree.first_failure(["test_one.py"]) is None


def test_what_cannot_be_imported_is_not_seen(tree):
    with (
        tree.changed("src/fabricheck/__init__.py", "ONE = 1\nimport no_such_module\n"),
        pytest.raises(NotRunError, match="no_such_module"),
    ):
        tree.first_failure(["test_one.py"])
    with (
        tree.changed("tests/test_one.py", "import no_such_module\n"),
        pytest.raises(NotRunError, match="pytest ended with 2"),
    ):
        tree.first_failure(["test_one.py"])


def test_another_package_than_that_of_the_tree_is_refused(tree):
    (tree.folder / "src").rename(tree.folder / "elsewhere")
    with pytest.raises(NotRunError, match="is tested, and not that of"):
        tree.first_failure(["test_one.py"])


def outcome(killed_by, survives):
    """Return what came of a mutant that a test sees or not, with a reason or without."""
    return Outcome(Mutant("an error", "a.py", "a", "b", ["test_a.py"], survives), killed_by)


def test_a_mutant_survives_with_a_reason_only():
    assert "it survives" in outcome(None, None).unexpected
    assert outcome(None, "a reason").unexpected is None
    assert outcome("test_a.py::test_b", None).unexpected is None
    assert "take its reason out" in outcome("test_a.py::test_b", "a reason").unexpected


def test_the_page_tells_a_reason_as_one():
    assert list(page.cells(page.page([outcome(None, "a reason")]))) == [
        ["an error", "**survives**: a reason"]
    ]
