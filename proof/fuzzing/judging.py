"""What a reader may make of a damaged text: the right values, or one sentence that names the file.

Two kinds of texts are judged in two ways. What a tool printed has one right answer, that of the
text before it was damaged. In JSON and YAML each value stands beside its key: there a line at
another place says something else, and what is read has to be what another parser finds at the
same place.
"""

from __future__ import annotations

import json
import math
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.errors import FabricheckError
from proof.fuzzing.mutations import Damaged

Values = Mapping[Any, Any]

#: Seconds after which a reader hangs.
PATIENCE_S = 20

#: What a sentence is at most, in characters: a path, a place, and an excerpt.
LONGEST = 2_100


@dataclass(frozen=True)
class Text:
    """A text that a reader starts from; read: the values that it gives, by what they are of."""

    name: str
    content: str
    read: Callable[[Path], Values]


@dataclass(frozen=True)
class Reader:
    """A reader and the texts that it is fed with.

    file: the name of the file that it reads; encoding: latin-1 for bytes that are no text.
    by_place: for JSON and YAML the parser that says what stands where; None for what a tool prints.
    may_lack: what it cannot miss, as the text need not have it; may_gain: what any line may add.
    relabelled: whether a key may become another one by a line that is gone, unseen.
    free: lines in which a unit is not one of values.
    exchangeable: whether two values that were exchanged contradict nothing; joins: whether the
        start of a row and the end of another one make a row. No reader can see either.
    together: how many values one number of the text may be part of; ranges: any number of them.
    adds: whether a second text may follow the first.
    errors: what it raises beside fabricheck's own errors, with a sentence. names: what its
        sentences name instead of the file.
    """

    name: str
    texts: Sequence[Text]
    file: str = "text.txt"
    by_place: Callable[[bytes], Any] | None = None
    may_lack: Callable[[Any], bool] = lambda key: False
    may_gain: Callable[[Any], bool] = lambda key: False
    relabelled: Callable[[Any, Any], bool] = lambda one, other: False
    free: str = r"(?!)"
    exchangeable: bool = False
    together: int = 1
    ranges: bool = False
    joins: bool = False
    adds: bool = False
    errors: tuple[type[Exception], ...] = ()
    names: str | None = None
    encoding: str = "utf-8"


class Hangs(BaseException):
    """A reader takes too long."""


@contextmanager
def _limited() -> Iterator[None]:
    def over(_number: int, _frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, over)
    # The limit of a test is an alarm, too.
    left_s = signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left_s)


@dataclass
class Counts:
    """What came of the cases of a reader."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


SENTENCE, RIGHT, CHANGED, UNSEEN = "sentence", "right values", "the changed value", "cannot be seen"


class Wrong(Exception):
    """What a reader made of a damaged text, and must not."""


def judge(reader: Reader, text: Text, right: Values, damaged: Damaged, path: Path) -> str:
    """Read a damaged text; return which outcome that has.

    :raises Wrong: for a crash, a sentence that is none, and a value that is another's.
    """
    text_only = reader.encoding == "utf-8"
    path.write_bytes(damaged.written if text_only else damaged.text.encode("latin-1", "replace"))
    try:
        with _limited():
            found = dict(text.read(path))
    except Hangs:
        raise Wrong(f"it takes more than {PATIENCE_S} s") from None
    except (FabricheckError, *reader.errors) as error:
        stop = "" if isinstance(error, FabricheckError) else "."
        _require_sentence(f"{error}{stop}", str(path) if reader.names is None else reader.names)
        return SENTENCE
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {str(error)[:300]}") from error
    if reader.by_place is not None:
        return _at_their_places(reader, right, found, damaged)
    return _of_their_keys(reader, text, right, found, damaged)


def _require_sentence(said: str, named: str) -> None:
    # Control characters are made visible where the sentence is shown.
    if re.search(re.escape(named), said) is None:
        raise Wrong(f"the sentence does not name {named}: {said[:300]}")
    if "\n" in said or "Traceback" in said or not said.rstrip().endswith((".", ".)", "'")):
        raise Wrong(f"no sentence: {said[:300]!r}")
    if len(said) > LONGEST:
        raise Wrong(f"a sentence of {len(said)} characters: {said[:300]!r}")


def _of_their_keys(
    reader: Reader, text: Text, right: Values, found: Values, damaged: Damaged
) -> str:
    lost = [key for key in right if key not in found and not reader.may_lack(key)]
    other = [key for key in right if key in found and not same(right[key], found[key])]
    new = [key for key in found if key not in right]
    new = [key for key in new if not reader.may_gain(key)]
    if reader.adds and damaged.name == "two texts":
        new = []
    if damaged.name.startswith("unit replaced"):
        _require_free(reader, text, damaged)
    if not (lost or other or new):
        return RIGHT
    said = f"lost {lost[:3]}, other {[(k, right[k], found[k]) for k in other[:3]]}, new {new[:3]}"
    if reader.ranges:
        return CHANGED
    if damaged.touched is not None:
        if reader.joins and damaged.name == "part dropped" and "\n" in damaged.touched[0][0]:
            return UNSEEN
        gone = [key for key in right if key not in found]
        if len(gone) == len(new) <= reader.together and not other:
            pairs = zip(gone, new, strict=True)
            if all(_renamed(a, b, damaged) and same(right[a], found[b]) for a, b in pairs):
                return CHANGED
        only = not lost and not new and len(other) <= reader.together
        if only and all(_explained(right[key], found[key], damaged) for key in other):
            return CHANGED
    gone = [key for key in right if key not in found]
    one = damaged.touched is None and len(new) == len(gone) == 1 and not other
    if one and reader.relabelled(gone[0], new[0]) and same(right[gone[0]], found[new[0]]):
        return UNSEEN
    if damaged.swapped is not None and reader.exchangeable and not lost and not new:
        parts = [values[key] for key in other for values in (right, found)]
        if all(_is_of(part, damaged.swapped) for part in parts):
            return UNSEEN
    if damaged.name == "columns exchanged" and reader.exchangeable and not lost and not new:
        # In a table whose rows stand apart: the same values at other places of it.
        moved = [Counter(values[key] for key in other) for values in (right, found)]
        if moved[0] == moved[1]:
            return UNSEEN
    raise Wrong(said)


def _is_of(value: Any, parts: Sequence[str]) -> bool:
    """Whether a value stands in one of the parts of a text; None is no value."""
    if value is None:
        return True
    if isinstance(value, int | float):
        return any(_stands_in(value, part) for part in parts)
    return any(str(value) in part for part in parts)


def _require_free(reader: Reader, text: Text, damaged: Damaged) -> None:
    """Refuse values of a text whose unit was changed, but in lines that are about no value."""
    before, after = text.content.splitlines(), damaged.text.splitlines()
    changed = [a for a, b in zip(before, after, strict=False) if a != b]
    if not all(re.search(reader.free, line) for line in changed):
        raise Wrong("values are read although their unit is another")


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12) or one == other
    return bool(one == other) and type(one) is type(other)


def _explained(old: Any, new: Any, damaged: Damaged) -> bool:
    """Whether a value is another because the text of it is."""
    assert damaged.touched is not None
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        # In any order: samples are sorted.
        gone, come = [*(Counter(old) - Counter(new))], [*(Counter(new) - Counter(old))]
        pairs = zip(gone, come, strict=False)
        return len(gone) == len(come) <= 2 and all(_explained(a, b, damaged) for a, b in pairs)
    if isinstance(old, int | float) and isinstance(new, int | float):
        return any(_stands_in(old, a) and _stands_in(new, b) for a, b in damaged.touched)
    gone, come = _middles("" if old is None else str(old), "" if new is None else str(new))
    return any(_holds(a, gone) and _holds(b, come) for a, b in damaged.touched)


def _middles(one: str, other: str) -> tuple[str, str]:
    """Return what two texts have between their common start and their common end."""
    start = _alike_from_start(one, other)
    end = _alike_from_start(one[start:][::-1], other[start:][::-1])
    return one[start : len(one) - end], other[start : len(other) - end]


def _alike_from_start(one: str, other: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _holds(token: str, part: str) -> bool:
    return part.lower().strip() in token.lower()


_FACTORS = (1, 1e-3, 1e3, 1024, 2**-10, 1e-6, 1e9, 1e-9)


def _stands_in(value: float, token: str) -> bool:
    """Whether a value is written in a token, in some unit."""
    if abs(value) > sys.float_info.max:
        return str(value) in token
    numbers = re.findall(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|[0-9]+", token)
    numbers += re.findall(r"[0-9]+", token)
    return any(
        math.isclose(float(number) * factor, value, rel_tol=1e-9)
        for number in numbers
        for factor in _FACTORS
    )


def _renamed(old: Any, new: Any, damaged: Damaged) -> bool:
    """Whether a key is another one because the text of one part of it is."""
    parts = [
        (a, b)
        for a, b in zip(_parts(old), _parts(new), strict=False)
        if a != b
    ]  # fmt: skip
    return len(_parts(old)) == len(_parts(new)) and len(parts) <= 1 and all(
        _explained(a, b, damaged) for a, b in parts
    )  # fmt: skip


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _at_their_places(reader: Reader, right: Values, found: Values, damaged: Damaged) -> str:
    assert reader.by_place is not None
    try:
        stands = dict(leaves(reader.by_place(damaged.written)))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise Wrong(f"it is read, and {error} to another parser") from None
    for place, value in found.items():
        if place not in stands:
            raise Wrong(f"{place} is {value!r}, and nothing stands there")
        if not _alike(value, stands[place]):
            raise Wrong(f"{place} is {value!r}, and {stands[place]!r} stands there")
    return RIGHT if all(place in found and found[place] == one for place, one in right.items()) \
        else CHANGED  # fmt: skip


def _alike(value: Any, written: Any) -> bool:
    """Whether a value is what is written, whatever the type that the parser gave it."""
    if same(value, written) or value == written:
        return True
    if isinstance(value, datetime):
        try:
            return value == datetime.fromisoformat(str(written))
        except ValueError:
            return False
    if isinstance(written, str):
        if value is None:
            return written.lower() in ("", "~", "null")
        if isinstance(value, bool):
            return written.lower() in (("true", "yes", "on", "1") if value else
                                       ("false", "no", "off", "0"))  # fmt: skip
        if isinstance(value, int | float):
            number = _number(written)
            return number == value or (isinstance(value, float) and number is not None
                                       and float(number) == value)  # fmt: skip
    return str(value) == str(written)


def _number(written: str) -> float | int | None:
    try:
        found = yaml.safe_load(written)
        if type(found) in (int, float):
            return found
        return float(written)
    except (ValueError, yaml.YAMLError):
        return None


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every scalar of a structure, with its place in it."""
    pending = [(place, value)]
    while pending:
        at, one = pending.pop()
        if isinstance(one, Mapping):
            pending += [((*at, str(key)), part) for key, part in one.items()]
        elif isinstance(one, list | tuple):
            pending += [((*at, index), part) for index, part in enumerate(one)]
        else:
            yield at, one


def plain_json(raw: bytes) -> Any:
    """Parse JSON, and refuse a key that stands twice.

    :raises ValueError: when it is none.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    return json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


class _Plain(yaml.CBaseLoader):
    """Leaves every scalar as it is written."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) != len(keys):
            raise ValueError("a key stands twice")
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


def plain_yaml(raw: bytes) -> Any:
    """Parse YAML, and leave every scalar as it is written; refuse a key that stands twice.

    :raises ValueError: when it is none.
    """
    return _merged(yaml.load(raw, Loader=_Plain))


def _plain_key(key: str) -> str:
    """Return a key that is a number as Python writes it: 0x1 is 1."""
    number = yaml.safe_load(key) if re.match(r"[-+0-9]", key) else key
    return str(number) if type(number) is int else key


def _merged(value: Any) -> Any:
    """Put in the place of merge keys what they name."""
    if isinstance(value, list):
        return [_merged(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {_plain_key(key): _merged(one) for key, one in value.items()}
    if len(found) != len(value):
        raise ValueError("a key stands twice")
    given = found.pop("<<", {})
    several = given if isinstance(given, list) else [given]
    if not all(isinstance(one, dict) for one in several):
        raise ValueError("what is merged is no mapping")
    for one in several:
        found = one | found
    return found
