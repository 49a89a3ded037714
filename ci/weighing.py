"""The words of texts: identifiers, their parts and neighbours, and what each counts."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s")

Weights = dict[str, float]


@cache
def stem(word: str) -> str:
    """Return a word without the ending of a plural or a tense."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def in_row(text: str) -> str:
    """Return the words of a text in a row, each between spaces."""
    return f" {' '.join(row(text))} "


def row(text: str) -> list[str]:
    """Return the words of a text in their order."""
    words_of_text = [word.strip("_") for word in _WORD.findall(text.lower())]
    return [word for word in words_of_text if word]


def in_threes(text: str) -> set[str]:
    """Return each three neighbours among the words of a text, as ``in_row``."""
    neighbours = row(text)
    starts = range(len(neighbours) - 2)
    return {f" {' '.join(neighbours[at : at + 3])} " for at in starts}


def literals(text: str) -> set[str]:
    """Return the texts that a piece of Python states, each up to what is formatted into it."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return set()
    values = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {value for value in values if isinstance(value, str)}


@cache
def words(text: str) -> Counter[str]:
    """Return the words of a text: identifiers, their parts, and pairs of neighbours."""
    counted: Counter[str] = Counter()
    before = None
    for match in _WORD.finditer(text):
        word = match[0].strip("_").lower()
        parts = [stem(part.lower()) for part in _PART.findall(match[0])]
        counted[word] += 1
        counted.update(part for part in parts if part != word)
        if before is not None:
            counted[f"{before} {word}"] += 1
        before = word
    return counted


@cache
def length(text: str) -> int:
    """Return how many words a text has."""
    return words(text).total()


@dataclass
class Weighed:
    """The words of several texts, each by how often it is there and by what its text counts.

    wanted: the words that are weighed; None for all. length: of all texts, by what they count.
    """

    wanted: set[str] | None
    words: Weights = field(default_factory=dict)
    length: float = 0.0

    def add(self, text: str, weight: float) -> None:
        """Add the words of a text."""
        counted = words(text)
        self.length += weight * length(text)
        for word in counted if self.wanted is None else counted.keys() & self.wanted:
            self.words[word] = self.words.get(word, 0) + weight * counted[word]

    def add_pairs(self, text: str) -> None:
        """Add the pairs of neighbours of a text alone."""
        pairs = {word: float(times) for word, times in words(text).items() if " " in word}
        self.length += sum(pairs.values())
        for word in pairs if self.wanted is None else pairs.keys() & self.wanted:
            self.words[word] = self.words.get(word, 0) + pairs[word]
