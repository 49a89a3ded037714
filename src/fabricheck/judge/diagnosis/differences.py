"""Which devices a sentence on a difference between a node and its model is of."""

from __future__ import annotations

import re

#: A pair or a device, as `fabricheck.tools.topology.comparison` names it.
_PAIR, _DEVICE = re.compile(r"\bPair (\d+)-(\d+)"), re.compile(r"\bDevice (\d+)\b")


def devices_in(sentence: str) -> frozenset[int]:
    """Return the two devices of a pair, or the one; none where the sentence names none."""
    found = _PAIR.search(sentence) or _DEVICE.search(sentence)
    return frozenset(map(int, found.groups())) if found else frozenset()
