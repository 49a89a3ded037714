"""What can happen to a text on its way to a reader, each by chance and from a seed.

A mutation either moves whole words, or changes characters. Only of the latter may a value be
another one afterwards: the one that was changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

#: Characters that damage: of the formats, of numbers, and such as readers take for others.
CHARACTERS = (
    "0123456789.,:;-+eExX#*\"'[]{}()<>|=/\\ \t\n\r%&!?@~_aNvZ\0\x1b\x0b\x85"
    "\u00b2\u0663\U0001d7d9\u00e9\u2028\ufeff\U0001f600"
)

#: What may stand where a number stood.
NUMBERS = ("0", "-1", "1e999", "nan", "inf", "N/A", "9" * 400, "9" * 5000, "1e308", "1e-320", "0x1",
           "1_000", "1,5", "true", "null", "", "\u00b2")  # fmt: skip

#: Brackets and their ends.
BRACKETS = (("[", "]"), ("{", "}"), ('{"a":', "}"), ("- ", ""), ("{a: ", "}"), ("(", ")"))

#: Units, each with one that it may be taken for.
UNITS = (
    ("GB/s", "MB/s"), ("MB/s", "GB/s"), ("MB/s", "MiB/s"), ("(us)", "(ms)"), ("(us)", "(ns)"),
    ("(ns)", "(us)"), ("mps", "gps"), ("mbytes", "gbytes"), ("max_MB", "max_GB"), ("(B)", "(KiB)"),
    (" kB", " MB"), ("K\n", "M\n"),
)  # fmt: skip

_WORD = re.compile(r"[^\s,]+")
_TOKEN = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class Damaged:
    """A text after a mutation.

    text: what is written to the file. name: of the mutation. touched: by the part of the text that
    was changed what stands there now; None where words moved, or went, as a whole.
    """

    text: str
    name: str
    touched: tuple[tuple[str, str], ...] | None = None
    raw: bytes | None = None
    swapped: tuple[str, str] | None = None

    @property
    def written(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8", "surrogatepass") if self.raw is None else self.raw


Mutation = Callable[[Random, str, Sequence[str]], "Damaged | None"]


def cut(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Cut the text off, as a full disk or a kill does."""
    return Damaged(text[: rng.randrange(len(text))], "cut")


def drop_part(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Drop what is between two places, as a lost block of a buffer."""
    start = rng.randrange(len(text))
    end = min(len(text), start + rng.choice((2, 5, 20, 80, 512)))
    whole = _whole_words(text, start, end)
    return Damaged(text[:start] + text[end:], "part dropped", (whole,))


def _whole_words(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the words around a gap as they were, and what is left of them."""
    left = re.search(r"\S*\Z", text[max(0, start - 200) : start])
    right = re.match(r"\S*", text[end : end + 200])
    assert left is not None and right is not None
    return left[0] + text[start:end] + right[0], left[0] + right[0]


def drop_line(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Drop a line, or some that follow each other."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return Damaged("".join(lines[:at] + lines[at + rng.choice((1, 1, 1, 2, 5)) :]), "line dropped")


def double_line(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Write a line twice."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return Damaged("".join([*lines[: at + 1], *lines[at:]]), "line doubled")


def exchange_lines(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Exchange two lines, near each other or not."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return None
    one = rng.randrange(len(lines))
    near = range(max(0, one - 3), min(len(lines), one + 4))
    other = rng.choice(near) if rng.random() < 0.6 else rng.randrange(len(lines))
    swapped = lines[one], lines[other]
    lines[one], lines[other] = lines[other], lines[one]
    return Damaged("".join(lines), "lines exchanged", swapped=swapped)


def move_line(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Put a line to another place."""
    lines = text.splitlines(keepends=True)
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return Damaged("".join(lines), "line moved")


def join_lines(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Drop the end of a line."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    end = rng.choice(("", " "))
    after = lines[at + 1] if at + 1 < len(lines) else ""
    joined = lines[at].rstrip("\r\n") + end + after
    whole = (lines[at] + after, joined)
    return Damaged("".join([*lines[:at], joined, *lines[at + 2 :]]), "lines joined",
                   None if end else (whole,))  # fmt: skip


def foreign_line(rng: Random, text: str, others: Sequence[str]) -> Damaged:
    """Insert a line of another text, which another process wrote between."""
    lines = text.splitlines(keepends=True)
    line = rng.choice(rng.choice(others).splitlines() or [""])
    at = rng.randrange(len(lines) + 1)
    return Damaged("".join([*lines[:at], f"{line}\n", *lines[at:]]), "foreign line")


def in_the_middle(rng: Random, text: str, others: Sequence[str]) -> Damaged:
    """Write a line of another text into the middle of a line."""
    at = rng.randrange(len(text) + 1)
    line = rng.choice(rng.choice(others).splitlines() or [""])
    before, after = _whole_words(text, at, at)
    return Damaged(f"{text[:at]}{line}\n{text[at:]}", "foreign line inside",
                   ((before, f"{after} {line}"),))  # fmt: skip


def twice(rng: Random, text: str, others: Sequence[str]) -> Damaged:
    """Write a second text behind the first, the same or another one."""
    return Damaged(text + rng.choice((text, rng.choice(others))), "two texts")


def _drop(words: list[str], i: int, _j: int) -> None:
    del words[i]


def _double(words: list[str], i: int, _j: int) -> None:
    words.insert(i, words[i])


def _exchange(words: list[str], i: int, j: int) -> None:
    words[i], words[j] = words[j], words[i]


def drop_word(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Drop a word of a line."""
    return _words(rng, text, "word dropped", _drop)


def double_word(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Write a word twice."""
    return _words(rng, text, "word doubled", _double)


def exchange_words(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Exchange two words of a line."""
    return _words(rng, text, "words exchanged", _exchange)


def _words(
    rng: Random, text: str, name: str, change: Callable[[list[str], int, int], object]
) -> Damaged | None:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    swapped = _rebuilt(rng.random(), rng.random(), lines, at, change)
    return None if swapped is None else Damaged("".join(lines), name, swapped=swapped)


def _rebuilt(
    first: float, second: float, lines: list[str], at: int,
    change: Callable[[list[str], int, int], object],
) -> tuple[str, str] | None:  # fmt: skip
    """Change the words of a line, and leave the blanks before them as they are."""
    found = list(_WORD.finditer(lines[at]))
    if len(found) < 2:
        return None
    words = [one[0] for one in found]
    i, j = int(first * len(words)), int(second * len(words))
    if i == j:
        j = (i + 1) % len(words)
    swapped = words[i], words[j]
    gaps = [lines[at][: found[0].start()]]
    gaps += [lines[at][a.end() : b.start()] for a, b in pairwise(found)]
    change(words, i, j)
    gaps += [gaps[-1]] * (len(words) - len(gaps))
    made = "".join(gap + word for gap, word in zip(gaps, words, strict=False))
    lines[at] = made + lines[at][found[-1].end() :]
    return swapped


def drop_column(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Drop a column of a block of lines."""
    return _columns(rng, text, "column dropped", _drop)


def double_column(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Write a column of a block of lines twice."""
    return _columns(rng, text, "column doubled", _double)


def exchange_columns(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Exchange two columns of a block of lines."""
    return _columns(rng, text, "columns exchanged", _exchange)


def _columns(
    rng: Random, text: str, name: str, change: Callable[[list[str], int, int], object]
) -> Damaged | None:
    """Change the lines around one that have about as many words, counted from the left or right."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    count = len(_WORD.findall(lines[at]))
    if count < 2:
        return None
    slack = rng.choice((0, 0, 1))
    first, last = at, at
    while first and abs(len(_WORD.findall(lines[first - 1])) - count) <= slack:
        first -= 1
    while last + 1 < len(lines) and abs(len(_WORD.findall(lines[last + 1])) - count) <= slack:
        last += 1
    one, other, right = rng.randrange(count), rng.randrange(count), rng.random() < 0.3
    for index in range(first, last + 1):
        here = len(_WORD.findall(lines[index]))
        shift = here - count if right else 0
        if here >= 2 and 0 <= one + shift < here and 0 <= other + shift < here:
            _rebuilt((one + shift + 0.5) / here, (other + shift + 0.5) / here, lines, index, change)
    return Damaged("".join(lines), name)


def replace_character(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Replace a character: a flipped bit, a digit, one that looks like it."""
    at = rng.randrange(len(text))
    digit = text[at].isdigit() and rng.random() < 0.5
    return _edited(text, at, at + 1, rng.choice("0123456789" if digit else CHARACTERS),
                   "character replaced")  # fmt: skip


def drop_character(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Drop a character."""
    at = rng.randrange(len(text))
    return _edited(text, at, at + 1, "", "character dropped")


def double_character(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Write a character twice."""
    at = rng.randrange(len(text))
    return _edited(text, at, at + 1, 2 * text[at], "character doubled")


def insert_character(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Insert a character."""
    at = rng.randrange(len(text) + 1)
    return _edited(text, at, at, rng.choice(CHARACTERS), "character inserted")


def exchange_characters(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Exchange two characters that follow each other."""
    if len(text) < 2:
        return None
    at = rng.randrange(len(text) - 1)
    return _edited(text, at, at + 2, text[at : at + 2][::-1], "characters exchanged")


def replace_number(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Replace a number by another, or by what is none."""
    found = list(re.finditer(r"\d+(?:\.\d+)?", text))
    if not found:
        return None
    one = rng.choice(found)
    by = rng.choice((*NUMBERS, rng.choice(found)[0]))
    return _edited(text, one.start(), one.end(), by, "number replaced")


def _edited(text: str, start: int, end: int, by: str, name: str) -> Damaged:
    """Replace a part, and tell the tokens around it before and after."""
    left = re.search(r"[^\s\"',]*\Z", text[max(0, start - 400) : start])
    right = re.match(r"[^\s\"',]*", text[end : end + 400])
    assert left is not None and right is not None
    whole = left[0] + text[start:end] + right[0], left[0] + by + right[0]
    return Damaged(text[:start] + by + text[end:], name, (whole,))


def replace_unit(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Replace a unit by another one, at one place or at all."""
    units = [(unit, by) for unit, by in UNITS if unit in text]
    if not units:
        return None
    unit, by = rng.choice(units)
    places = [one.start() for one in re.finditer(re.escape(unit), text)]
    at = rng.choice(places)
    line = text.count("\n", 0, at)
    if rng.random() < 0.3:
        return Damaged(text.replace(unit, by), f"unit replaced: {unit} by {by} everywhere")
    return Damaged(text[:at] + by + text[at + len(unit) :],
                   f"unit replaced: {unit} by {by} in line {line + 1}")  # fmt: skip


def other_line_ends(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Write other ends of lines, tabs for blanks, or an empty line after each."""
    old, by = rng.choice((("\n", "\r\n"), ("\n", "\r"), ("\n", "\n\n"), ("\n", " \n"), ("  ", "\t"),
                          ("\n", "\v\n"), ("\t", " ")))  # fmt: skip
    return Damaged(text.replace(old, by), "line ends replaced")


def other_encoding(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Write the text in another encoding, or with bytes that no text has."""
    way = rng.randrange(6)
    if way == 0:
        return Damaged(text, "UTF-16", raw=text.encode("utf-16", "surrogatepass"))
    if way == 1:
        return Damaged(text, "byte order mark", raw=b"\xef\xbb\xbf" + text.encode())
    at = rng.randrange(len(text) + 1)
    byte = (b"\0", b"\xff", b"\xc3", b"\0" * 512)[way - 2]
    before, after = _whole_words(text, at, at)
    return Damaged(text, f"byte {byte[:1]!r}", ((before, after + byte.decode(errors="replace")),),
                   text[:at].encode() + byte + text[at:].encode())  # fmt: skip


def colours(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Write colours of a terminal around a word."""
    found = rng.choice(list(re.finditer(r"\S+", text)) or [None])  # type: ignore[list-item]
    if found is None:
        return Damaged(text, "colours")
    start, end = found.span()
    return Damaged(f"{text[:start]}\x1b[4m{text[start:end]}\x1b[0m{text[end:]}", "colours")


def deep_nesting(rng: Random, text: str, _others: Sequence[str]) -> Damaged:
    """Insert many brackets, with their ends or without."""
    at = rng.choice([one.start() for one in re.finditer(r"(?<=[:\[\s])", text)] or [0])
    count = rng.choice((10, 900, 5_000, 200_000))
    one, end = rng.choice(
        (("[", "]"), ("{", "}"), ('{"a":', "}"), ("- ", ""), ("{a: ", "}"), ("(", ")"))
    )
    ends = end * count if rng.random() < 0.7 else ""
    inside = f"{one * count}{ends}"
    before, after = _whole_words(text, at, at)
    return Damaged(f"{text[:at]}{inside}{text[at:]}", "deep nesting", ((before, after + inside),))


def double_key(rng: Random, text: str, _others: Sequence[str]) -> Damaged | None:
    """Write a key of JSON or YAML twice, with two values."""
    lines = text.splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if re.match(r"\s*[\"\w-]+\s*: *\S", line)]
    if not found:
        return None
    at = rng.choice(found)
    other = lines[rng.choice(found)]
    key, value = lines[at].partition(":")[0], other.partition(":")[2]
    return Damaged("".join([*lines[: at + 1], f"{key}:{value}", *lines[at + 1 :]]), "key doubled")


#: What happens to every text.
ALL: tuple[Mutation, ...] = (
    cut, drop_part, drop_line, double_line, exchange_lines, move_line, join_lines, foreign_line,
    in_the_middle, twice, drop_word, double_word, exchange_words, drop_column, double_column,
    exchange_columns, replace_character, drop_character, double_character, insert_character,
    exchange_characters, replace_number, replace_unit, other_line_ends, other_encoding, colours,
    deep_nesting, double_key,
)  # fmt: skip
