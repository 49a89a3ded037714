"""`make check` runs the tests that are likeliest to see what differs from main."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "ci")
        yield importlib.import_module("check")


@pytest.fixture
def chosen(check, tmp_path):
    """A function that makes a tree of files and returns what is chosen for a change in it."""

    def of(path, before, after, **files):
        for name, text in files.items():
            file = tmp_path / name.replace("__", "/")
            file = file.with_name(file.name.replace("_DOT_", "."))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (tmp_path / "src").mkdir(exist_ok=True)
        tests = check.chosen(tmp_path, [check.Change(path, before, after)], 99, 99)
        return [*tests.quick, *tests.slow]

    return of


def test_a_test_that_quotes_what_is_gone_comes_first(chosen):
    found = chosen(
        "src/fabricheck/cli/verdict.py",
        "def heading(total):\n    return f'Verdict on {total}'\n",
        "def heading(total):\n    return f'Result of {total}'\n",
        tests__test_b_DOT_py="def test_sum():\n    assert heading(total) == result\n",
        tests__test_a_DOT_py="def test_words():\n    assert 'Verdict on run-0' in text\n",
        tests__test_c_DOT_py="def test_other():\n    assert 3 == 4\n",
    )
    assert found[:2] == ["tests/test_a.py::test_words", "tests/test_b.py::test_sum"]


def test_a_test_whose_sentences_are_a_snapshot_quotes_them(chosen):
    found = chosen(
        "src/fabricheck/cli/verdict.py",
        "def heading(total):\n    return f'Verdict on {total}'\n",
        "def heading(total):\n    return f'Result of {total}'\n",
        tests__a__test_b_DOT_py="def test_sum():\n    assert heading(total) == result\n",
        tests__a__test_a_DOT_py="def test_words(wording):\n    wording(text)\n",
        tests__snapshots__sentences__a__test_a_DOT_txt="== test_words\nVerdict on run-0\n",
    )
    assert found[0] == "tests/a/test_a.py::test_words"


def test_what_changed_itself_comes_before_all(chosen):
    text = "def test_one():\n    assert heading == 1\n\ndef test_two():\n    assert heading == 2\n"
    other = "import test_b\n\ndef test_b_heading_3():\n    'tests', 'test_two', 'heading == 3'\n"
    found = chosen(
        "tests/test_b.py",
        text.replace("2", "3"),
        text,
        tests__test_a_DOT_py=other,
        tests__test_b_DOT_py=text,
    )
    assert found[0] == "tests/test_b.py::test_two"


def test_of_equal_words_fewer_imports_between_come_first(chosen):
    test = "import {}\n\ndef test_limit():\n    assert limit() == 3\n"
    found = chosen(
        "src/fabricheck/core.py",
        "def limit():\n    return 3\n",
        "def limit():\n    return 4\n",
        src__fabricheck__core_DOT_py="def limit():\n    return 4\n",
        src__fabricheck__far_DOT_py="from fabricheck.core import limit\n",
        tests__test_a_DOT_py=test.format("fabricheck.none"),
        tests__test_b_DOT_py=test.format("fabricheck.far"),
        tests__test_c_DOT_py=test.format("fabricheck.core"),
    )
    assert [one[6:12] for one in found] == ["test_c", "test_b", "test_a"]


def test_a_file_that_no_module_imports_is_reached_by_its_name_or_folder(chosen):
    test = "def test_limit():\n    assert read({!r}, {!r}) == 3\n"
    found = chosen(
        "config/sites/stream.yaml",
        "limit: 3\n",
        "limit: 4\n",
        tests__test_a_DOT_py=test.format("stream yaml", "sites"),
        tests__test_b_DOT_py=test.format("stream.yaml", "sites"),
        tests__test_c_DOT_py=test.format("stream yaml", "sites/"),
    )
    assert {one[6:12] for one in found[:2]} == {"test_b", "test_c"}


def test_a_fixture_of_its_folder_is_part_of_a_test(chosen):
    found = chosen(
        "config/sites/north.py",
        "descr = 'four MI300A'\n",
        "descr = 'eight MI300A'\n",
        tests__conftest_DOT_py="def place():\n    return site('four MI300A')\n",
        tests__test_a_DOT_py="def test_b(other):\n    pass\n\ndef test_c(place):\n    pass\n",
    )
    assert found[0] == "tests/test_a.py::test_c"


def test_a_slow_test_comes_later_and_one_of_whole_sessions_not_at_all(chosen):
    found = chosen(
        "a.py",
        "limit = 3\n",
        "limit = 4\n",
        tests__test_a_DOT_py="@pytest.mark.slow\ndef test_limit():\n    assert limit == 3\n",
        tests__test_b_DOT_py="@pytest.mark.quick\ndef test_limit():\n    assert limit == 3\n",
        tests__test_c_DOT_py="@pytest.mark.full\ndef test_limit():\n    assert limit == 3\n",
    )
    assert found == ["tests/test_b.py::test_limit", "tests/test_a.py::test_limit"]


def test_a_recorded_text_is_a_test_by_what_it_quotes(chosen):
    snapshots = """
OF_DRY_RUNS = ("references",)

@pytest.mark.parametrize("name", [one for one in SNAPSHOTS if one not in OF_DRY_RUNS])
def test_all(name):
    pass

@pytest.mark.slow
@pytest.mark.parametrize("name", OF_DRY_RUNS)
def test_dry(name):
    pass
"""
    found = chosen(
        "src/a.py",
        "text = 'it explains the missed limit'\n",
        "text = 'which explains a missed limit'\n",
        tests__snapshots__test_snapshots_DOT_py=snapshots,
        tests__snapshots__expected__nodes_DOT_txt="Device 0: it explains the missed limit.\n",
        tests__snapshots__expected__references_DOT_txt="it explains the missed limit",
        tests__snapshots__expected__usage_DOT_txt="No such command.\n",
    )
    file = "tests/snapshots/test_snapshots.py"
    assert found == [f"{file}::test_all[nodes]", f"{file}::test_dry[references]"]


def test_each_changed_file_has_its_turn(check, tmp_path):
    for name in ("a", "b"):
        file = tmp_path / "tests" / f"test_{name}.py"
        file.parent.mkdir(exist_ok=True)
        words = " ".join(f"word_{name}_{number}" for number in range(9))
        tests = (f"def test_{number}():\n    '{words}'\n\n" for number in range(3))
        file.write_text("".join(tests))
    changes = [check.Change(f"{name}.txt", "", f"word_{name}_1") for name in ("a", "b")]
    tests = check.chosen(tmp_path, changes, 4, 0)
    assert [one[11] for one in tests.quick] == ["a", "b", "a", "b"]


def test_tests_of_a_file_run_one_after_the_other_but_none_much_later(check):
    tests = [f"{'ab'[number % 2]}.py::{number}" for number in range(20)]
    ordered = check.in_turn(tests, 10)
    assert ordered[0].startswith("a.py") and ordered[10].startswith("a.py")
    assert sorted(ordered[:10]) == sorted(tests[:10])


def test_a_test_that_quotes_a_text_of_the_changed_function_comes_before_others(chosen):
    source = (
        "def require(left):\n    if not left:\n        raise Error('all of them were skipped')\n"
    )
    found = chosen(
        "src/fabricheck/guard.py",
        source,
        source.replace("not left", "left is None"),
        src__fabricheck__guard_DOT_py=source,
        tests__test_a_DOT_py="def test_left():\n    assert require(left, require) == left\n",
        tests__test_b_DOT_py="def test_session():\n    assert 'all of them were skipped' in out\n",
    )
    assert found[0] == "tests/test_b.py::test_session"


def test_what_uses_the_changed_function_leads_to_it(chosen):
    """Also where the test calls a helper of another file."""
    source = (
        "def _slack(before):\n    return before - 1\n\ndef propose(entry):\n    _slack(entry)\n"
    )
    found = chosen(
        "src/fabricheck/changes.py",
        source,
        source.replace("- 1", "- 2"),
        src__fabricheck__changes_DOT_py=source.replace("- 1", "- 2"),
        tests__helper_DOT_py="def write(folder):\n    propose(folder)\n",
        tests__test_a_DOT_py="def test_x():\n    rewrite(folder)\n",
        tests__test_b_DOT_py="from helper import write\n\ndef test_x():\n    write(folder)\n",
    )
    assert found[0] == "tests/test_b.py::test_x"


def test_a_phrase_that_is_gone_names_the_recorded_texts_that_have_it(check, tmp_path):
    """Before the tests that only have words of it, though many snapshots may."""
    folder = tmp_path / "tests" / "snapshots"
    (folder / "expected").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (folder / "test_snapshots.py").write_text(
        "OF_DRY_RUNS = ()\n\n@mark([one for one in ALL if one not in OF_DRY_RUNS])\n"
        "def test_all(name):\n    pass\n"
    )
    (folder / "expected" / "job.txt").write_text("Verdict\n on the 3 nodes")
    (folder / "expected" / "help.txt").write_text("Verdicts on the nodes")
    (tmp_path / "tests" / "test_a.py").write_text("def test_a():\n    'verdict on', Verdict\n")
    text = "heading = f'Verdict on the {nodes}'\n"
    change = check.Change("src/a.py", text, text.replace(" on", " for"))
    tests = check.chosen(tmp_path, [change], 9, 9)
    job = "tests/snapshots/test_snapshots.py::test_all[job]"
    assert (tests.recording, tests.quick[0]) == ([job], job)


def test_files_that_were_not_reached_are_named_the_likeliest_first(check):
    tests = ["b.py::one", "a.py::one", "c.py::one", "b.py::two"]
    assert check.not_reached(tests, {"a.py::one"}) == ["b.py", "c.py"]


def test_tests_end_with_their_time_and_a_failure_counts(check, tmp_path):
    file = tmp_path / "test_a.py"
    file.write_text("def test_a():\n    assert 1 == 2\n\ndef test_b():\n    pass\n")
    tests = [f"{file}::test_a", f"{file}::test_b"]
    command = (
        f"import check; done = check.run({tests}, 0.0); print(done.code, done.over, done.reached)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "ci")}
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("1 True ") and "test_b" not in done.stdout
