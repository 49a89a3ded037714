"""Node names: folded into host lists, expanded, and sorted naturally."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from fabricheck.core.errors import UsageError

#: The digits of a range.
_RANGE = re.compile(r"([0-9]{1,1000})-([0-9]{1,1000})")

#: The largest number of nodes to expand: each becomes a name in memory.
_MOST = 100_000

#: A node's name as schedulers accept it, in the characters of Slurm's configuration.
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def unfolded(text: str) -> list[str]:
    """Expand a host list such as ``node[1-3],login``.

    :raises UsageError: when it is no host list, or names no node.
    """
    if any(int(last) - int(first) > _MOST for first, last in _RANGE.findall(text)):
        raise UsageError(f"{text[:100]!r} names too many nodes.")
    try:
        names = list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{text[:100]!r} is not a list of nodes: {reason}.") from None
    if not names:
        raise UsageError(f"{text[:100]!r} names no node.")
    for name in names:
        if not NODE_NAME.fullmatch(name):
            raise UsageError(
                f"{text[:100]!r} is not a list of nodes: {name[:100]!r} is not a node name."
            )
    return names


def folded(names: Iterable[str | None]) -> str:
    """Fold node names into a host list; names that no scheduler accepts stay as they are, None is
    left out.
    """
    each = [name for name in dict.fromkeys(names) if name is not None]
    plain = [name for name in each if NODE_NAME.fullmatch(name)]
    odd = [name for name in each if not NODE_NAME.fullmatch(name)]
    try:
        lists = [str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))] if plain else []
    except NodeSetException:
        lists = plain
    return ",".join([*lists, *odd])


def is_several(name: str) -> bool:
    """Whether a name is a host list of several nodes, as `folded` makes it."""
    return "[" in name or "," in name


def titled(name: str) -> str:
    """Return a node's name, and of a host list of several that it is of what joins them."""
    return f"network of {name}" if is_several(name) else name


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts node2 before node10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.findall(r"[0-9]+|[^0-9]+", name)
    ]
