"""Every sentence of a snapshot is one that a test sees."""

import re

import wording


def test_sentences_are_those_of_tests_that_there_are():
    for file in wording.SENTENCES.rglob("*.txt"):
        folder = file.relative_to(wording.SENTENCES).parent
        tests = (wording.TESTS / folder / f"{file.stem}.py").read_text(encoding="utf-8")
        for name in wording.read(file):
            test = re.split(r"[\[ ]", name)[0]
            assert f"def {test}(" in tests, f"{file}: no test is named {test}"


def test_a_sentence_that_is_worded_otherwise_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(wording, "SENTENCES", tmp_path)
    monkeypatch.setattr(wording, "WRITE", True)
    test_file = wording.TESTS / "results" / "test_a.py"
    wording.Wording(test_file, "test_b", {})("It is slow.")
    seen = wording.Wording(test_file, "test_c", {"/tmp/7": "FOLDER"})
    seen(["One in /tmp/7.", "Another."])
    seen("A third.")
    assert wording.read(tmp_path / "results" / "test_a.txt") == {
        "test_b": ["It is slow."],
        "test_c": ["One in FOLDER.", "Another."],
        "test_c (2)": ["A third."],
    }
    monkeypatch.setattr(wording, "WRITE", False)
    wording.Wording(test_file, "test_b", {})("It is slow.")
    for other in ("It is slower.", ["It is slow.", "It is slow."], []):
        try:
            wording.Wording(test_file, "test_b", {})(other)
        except AssertionError:
            continue
        raise AssertionError(f"{other} is not seen")
