"""What is read of Spack's locks, and how one that cannot be read is refused."""

from __future__ import annotations

import pytest

import locks
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.models import parse_model
from fabricheck.site import software


@pytest.mark.parametrize("number", software.FORMATS)
def test_every_format_gives_the_same_concrete_specs(number):
    found = parse_model(locks.text(number), software.Lock, "spack.lock")
    assert (found.format, found.spack_version) == (number, "0.23.0")
    assert found.root_names == ["fabricheck@0.1.0/abcdefg", "osu-micro-benchmarks@7.4/ijklmno"]
    assert [spec.prefix for spec in found.externals] == ["/opt/cray/mpich"]


REFUSED = {
    locks.text()[:200]: "x.lock: it is not valid JSON (",
    "[]": "x.lock: it must contain a mapping",
    locks.text(8): "x.lock: the lock format 8 is unknown; supported are 5, 6, 7.",
    locks.text(4): "x.lock: the lock format 4 is unknown; supported are 5, 6, 7.",
    locks.text(5, roots=[]): "x.lock: roots: ",
    locks.text(
        5, concrete_specs={}
    ): "x.lock: there is no concrete spec of its root fabricheck+rocm.",
    locks.text(5, concrete_specs={locks.OURS: {"name": "x"}}): "concrete_specs.abcdefgh",
    locks.text(5, _meta={"file-type": "spec", "lockfile-version": 5}): "_meta.file-type: ",
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_is_no_lock_is_one_sentence(text, sentence):
    with pytest.raises(InvalidInputError) as refused:
        parse_model(text, software.Lock, "x.lock")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_that_stands_twice_is_refused():
    text = locks.text().replace('"version"', '"version": "9.9", "version"', 1)
    with pytest.raises(InvalidInputError, match=r"x\.lock: contains the key 'version' twice"):
        parse_model(text, software.Lock, "x.lock")
