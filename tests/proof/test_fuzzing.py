"""Every reader stands some damage, what must not be is seen: docs/evidence/fuzzing.md."""

from __future__ import annotations

import re
from random import Random

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import GarbledOutput
from proof.fuzzing import mutations
from proof.fuzzing.judging import CHANGED, RIGHT, SENTENCE, UNSEEN, Reader, Text, Wrong, judge
from proof.fuzzing.mutations import Damaged
from proof.fuzzing.readers import readers
from proof.fuzzing.running import Fuzzer

#: Cases of each reader, and the seed that they are of.
CASES, SEED = 8, 20

TABLE = "size time(us)\n1 2.50\n2 3.50\n"


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    return Fuzzer(readers(), tmp_path_factory.mktemp("texts"), SEED)


@pytest.mark.slow
@pytest.mark.parametrize("name", readers())
def test_damage_is_a_sentence_or_the_right_values(fuzzer, name):
    failures = [fuzzer.case(name, number) for number in range(CASES)]
    assert not any(failures), "\n".join(map(str, filter(None, failures)))


def test_a_case_is_the_same_each_time(tmp_path):
    one, other = (Fuzzer(readers(), tmp_path, 1) for _ in range(2))
    for each in (one, other):
        for number in range(20):
            each.case("BabelStream", number)
    assert one.counts["BabelStream"].outcomes == other.counts["BabelStream"].outcomes


def test_every_mutation_changes_something():
    contents = [text.content for text in readers()["rocm-smi"].texts]
    for mutation in mutations.ALL:
        found = [mutation(Random(seed), contents[0], contents) for seed in range(40)]
        assert any(one and one.written != contents[0].encode() for one in found), mutation.__name__


def test_the_page_has_every_reader():
    page = (ROOT / "docs" / "evidence" / "fuzzing.md").read_text()
    told = page.split("<!-- recorded run -->")[1].split("<!-- end of recorded run -->")[0]
    assert set(re.findall(r"^\| ([^|]+) \| \d", told, re.MULTILINE)) == {*readers(), "all"}


# What judges must see what must not be.


def strict(path):
    """Read a table as one should."""
    head, *rows = path.read_text().split("\n")
    if head != "size time(us)" or rows[-1:] != [""] or len(rows) != 3:
        raise GarbledOutput(str(path), None, "it is damaged")
    for number, row in enumerate(rows[:-1], 1):
        if not re.fullmatch(rf"{number} \d+\.\d\d", row):
            raise GarbledOutput(str(path), number, "it is damaged")
    return {int(size): float(value) for size, value in map(str.split, rows[:-1])}


def crashes(path):
    return {1: float(path.read_text().split()[9])}


def names_no_file(path):
    try:
        return strict(path)
    except GarbledOutput:
        raise GarbledOutput("somewhere", None, "it is damaged") from None


def takes_rows_as_they_come(path):
    lines = path.read_text().splitlines()[1:]
    return {number: float(line.split()[-1]) for number, line in enumerate(lines, 1)}


def ignores_units(path):
    path.write_text(re.sub(r"\(\ws\)", "(us)", path.read_text()))
    return strict(path)


def verdict(tmp_path, read, text, touched=None, name="a mutation", **options):
    """Return what is made of a reader that reads a damaged table."""
    original = Text("a table", TABLE, read)
    path = tmp_path / "text.txt"
    path.write_text(TABLE)
    right = strict(path)
    reader = Reader("one", [original], **options)
    damaged = Damaged(text, name, touched, swapped=options and ("2.50", "3.50"))
    return judge(reader, original, right, damaged, path)


DROPPED, SWAPPED = "size time(us)\n2 3.50\n", "size time(us)\n1 3.50\n2 2.50\n"


def test_what_is_right_passes(tmp_path):
    assert verdict(tmp_path, strict, TABLE) == RIGHT
    assert verdict(tmp_path, strict, DROPPED) == SENTENCE
    changed = TABLE.replace("2.50", "7.50")
    assert verdict(tmp_path, strict, changed, (("2.50", "7.50"),)) == CHANGED
    assert verdict(tmp_path, strict, SWAPPED, exchangeable=True) == UNSEEN


@pytest.mark.parametrize(
    ("read", "text", "name", "why"),
    [
        (crashes, DROPPED, "line dropped", "IndexError"),
        (names_no_file, DROPPED, "line dropped", "the sentence does not name"),
        (takes_rows_as_they_come, DROPPED, "line dropped", r"lost \[2\], other \[\(1, 2.5, 3.5"),
        (ignores_units, TABLE.replace("us", "ms"), "unit replaced", "their unit is another"),
        (strict, SWAPPED, "columns exchanged", "other"),
        (strict, TABLE.replace("2.50", "7.50"), "line moved", "other"),
    ],
)
def test_what_is_wrong_is_seen(tmp_path, read, text, name, why):
    with pytest.raises(Wrong, match=why):
        verdict(tmp_path, read, text, name=name)


def test_a_value_of_another_place_is_no_changed_one(tmp_path):
    """A character of the first value was replaced, and the second is another."""
    text = TABLE.replace("3.50", "7.50")
    with pytest.raises(Wrong, match="other"):
        verdict(tmp_path, strict, text, (("2.50", "2.90"),))
