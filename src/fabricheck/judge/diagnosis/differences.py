"""Parsing of a sentence on a difference between a node and its model: its place and content."""

from __future__ import annotations

import re

#: Some devices, and their links or their NUMA domain; None if the sentence does not state it.
Place = tuple[frozenset[int], int | None]

#: The sentences of `fabricheck.tools.topology.comparison`.
_PAIR = re.compile(r"\bPair (\d+)-(\d+):(?:.* in \S+, (?:(\d+) links?|no direct link) in )?")
_DEVICE = re.compile(r"\bDevice (\d+):(?:.* in \S+, (\d+) in )?")


def place(sentence: str) -> Place:
    """Return the place in a sentence: the pair and its links, or the device and its domain."""
    pair, device = _PAIR.search(sentence), _DEVICE.search(sentence)
    if pair:
        links = 0 if "no direct link in" in sentence.rpartition(",")[2] else None
        return frozenset(map(int, pair.group(1, 2))), int(pair[3]) if pair[3] else links
    if device:
        return frozenset((int(device[1]),)), int(device[2]) if device[2] else None
    return frozenset(), None
