"""The check that a breakpoint fits on each decision, and that functions and files end in time."""

from __future__ import annotations

import runpy

import pytest

from fabricheck.core.checkout import ROOT

steppable = runpy.run_path(str(ROOT / "ci" / "steppable.py"))


@pytest.fixture
def offences(tmp_path, monkeypatch):
    """Return how the check judges a file of some text."""

    def offences(text, folder="src/fabricheck"):
        file = tmp_path / folder / "some.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        monkeypatch.setitem(steppable["offences"].__globals__, "ROOT", tmp_path)
        return list(steppable["offences"](file))

    return offences


@pytest.mark.parametrize(
    "line",
    [
        "next((rule, why) for holds, rule, why in rows if holds)",
        "words = ['simulated'] * (clock != 'measured')",
        "title = name + ', simulated' * simulated",
        "rows += [('a',)] * bool(values)",
        "record(checks := outcomes(checks))",
        "least(lambda log, others=others: cost(log, others))",
        "cores = [core for domain in domains if domain for core in domain.cores]",
        "found = search(text)",
        "def judge(own): pass",
        "class Row:  said: str",
        "for kept in rows: print(kept)",
    ],
)
def test_what_hides_a_decision_is_named_with_its_line(offences, line):
    (offence,) = offences(f"\n{line}\n")
    assert offence.startswith("src/fabricheck/some.py:2: ")


@pytest.mark.parametrize(
    "line",
    [
        "next((node for node in nodes if node.name == name), None)",
        "heading = '#' * level",
        "words = [0] * count",
        "if match := search(text): print(match)",
        "sorted(names, key=lambda name: name.lower())",
        "cores = [core for domain in domains for core in domain.cores]",
        "row.found = {'found': search(text)}",
    ],
)
def test_what_can_be_stepped_through_is_not(offences, line):
    assert offences(f"{line}\n") == []


def test_the_lines_of_a_function_count_below_its_signature_and_docstring(offences):
    signature = "def long(\n" + "    option,\n" * 20 + "):\n"
    docstring = '    """' + "A line.\n" * 100 + '    """\n'
    lines = "    print()\n"
    most = steppable["FUNCTION"]
    assert offences(signature + docstring + lines * most) == []


def test_a_function_that_is_too_long_is_named(offences):
    (offence,) = offences("def long():\n" + "    print()\n" * (steppable["FUNCTION"] + 1))
    assert "long has 61 lines, more than 60" in offence


def test_a_file_that_is_too_long_is_named(offences):
    (offence,) = offences("print()\n" * (steppable["FILE"] + 1))
    assert offence == "src/fabricheck/some.py: 601 lines, more than 600"


def test_what_is_longer_with_a_reason_still_is():
    for name in steppable["LONGER"]:
        file, _, function = name.partition(":")
        text = (ROOT / file).read_text(encoding="utf-8")
        if function:
            assert f"def {function}(" in text
        else:
            assert len(text.splitlines()) > steppable["FILE"]
