"""A room of the package that grows above its ceiling does not pass `make lint`."""

import sys

import pytest

from fabricheck.core.checkout import ROOT


@pytest.fixture
def ceilings(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "ci"))
    import ceilings

    monkeypatch.setattr(ceilings, "ROOMS", tmp_path / "rooms")
    monkeypatch.setattr(ceilings, "CEILINGS", tmp_path / "ceilings.yaml")
    (tmp_path / "rooms" / "core").mkdir(parents=True)
    (tmp_path / "ceilings.yaml").write_text("core: {statements: 5, names: 2}\n")
    return ceilings


def check(ceilings, monkeypatch, text, *arguments):
    (ceilings.ROOMS / "core" / "a.py").write_text(text)
    monkeypatch.setattr(sys, "argv", ["ceilings.py", *arguments])
    return ceilings.main()


def test_a_room_above_its_ceiling_fails_and_is_named(ceilings, monkeypatch, capsys):
    # Docstrings are no statements, and a line with two is two.
    fits = (
        '"""A."""\nclass A:\n    """A."""\n    x = 1; _y = 2\n    def b(self):\n        return 1\n'
    )
    assert check(ceilings, monkeypatch, fits) == 0
    assert check(ceilings, monkeypatch, fits + "_c = 3\n") == 1
    assert check(ceilings, monkeypatch, fits.replace("_y = 2", "y = 2") + "\n") == 0
    assert check(ceilings, monkeypatch, fits.replace("x = 1; ", "") + "c = 3\n") == 1
    said = capsys.readouterr().err
    assert "core has 6 statements; its ceiling in ci/ceilings.yaml is 5." in said
    assert "core has 3 names; its ceiling in ci/ceilings.yaml is 2." in said


def test_a_ceiling_is_lowered_and_never_raised(ceilings, monkeypatch):
    before = ceilings.CEILINGS.read_text()
    assert check(ceilings, monkeypatch, "a = b = c = 1\n" * 6, "--lower") == 1
    assert ceilings.CEILINGS.read_text() == before
    assert check(ceilings, monkeypatch, "a = 1\n", "--lower") == 0
    assert "names: 1\n  statements: 1\n" in ceilings.CEILINGS.read_text()
