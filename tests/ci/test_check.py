"""`make check` runs the tests of what differs from main, the most particular first."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check", ROOT / "ci" / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(check, *names):
    return [str(one.relative_to(ROOT)) for one in check.tests_of({ROOT / name for name in names})]


def test_a_test_that_changed_comes_before_those_of_a_module(check):
    own = "tests/ci/test_check.py"
    found = chosen(check, own, "src/fabricheck/core/nodelists.py")
    assert found[0] == own and "tests/verdict/test_verdict_documents.py" in found
    assert "tests/ci/test_setup.py" not in found


def test_a_file_that_is_named_has_the_tests_that_name_it(check):
    assert "tests/ci/test_setup.py" in chosen(check, "ci/setup.sh")


def test_fixtures_have_the_tests_of_their_folder(check):
    found = chosen(check, "tests/papers/conftest.py")
    assert found and all(one.startswith("tests/papers/") for one in found)


def test_what_no_test_knows_has_none(check):
    assert chosen(check, "CITATION" + ".old") == []
