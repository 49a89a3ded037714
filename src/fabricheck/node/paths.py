"""Paths over the links of a node: hops, the shortest and the widest path, link classes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[int, int]
Path = tuple[int, ...]
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, order=True)
class LinkClass:
    """The class of a pair: links of its widest path at the narrowest hop, and its hops.

    ``links`` and ``hops`` are 0 where there is no path.
    """

    links: int
    hops: int
    switched: bool = False

    @property
    def name(self) -> str:
        """The name that references and metrics use.

        It says what the links are: ``links4`` of a direct pair; with the hops of the widest path
        of an indirect one, as in ``links2_3hops``; ``switch18`` through a switch; ``pcie`` without
        a link.
        """
        if self.links == 0:
            return "pcie"
        if self.switched:
            return f"switch{self.links}"
        return f"links{self.links}" if self.hops == 1 else f"links{self.links}_{self.hops}hops"

    @property
    def word(self) -> str:
        """The word of the papers on MI250X for a direct link, where they have one: quad."""
        words = {4: "quad", 2: "dual", 1: "single"}
        return words.get(self.links, self.name) if self.direct else self.name

    @property
    def direct(self) -> bool:
        """Whether the two devices are connected by links or the switch, without a third device."""
        return self.hops == 1


def _neighbours(links: Mapping[Pair, int], width: int) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = {}
    for (a, b), count in links.items():
        if count >= width:
            neighbours.setdefault(a, []).append(b)
            neighbours.setdefault(b, []).append(a)
    return {device: sorted(peers) for device, peers in neighbours.items()}


def _fewest_hops(neighbours: Mapping[int, list[int]], source: int, destination: int) -> Path:
    """Search breadth first; of equally long paths, the first in device order."""
    paths: deque[Path] = deque([(source,)])
    seen = {source}
    while paths:
        path = paths.popleft()
        for peer in neighbours.get(path[-1], []):
            if peer == destination:
                return (*path, peer)
            if peer not in seen:
                seen.add(peer)
                paths.append((*path, peer))
    return ()


def widest_path(links: Mapping[Pair, int], source: int, destination: int) -> Path:
    """Return the devices on the path with most links at its narrowest hop, then fewest hops.

    :param links: links of each directly joined pair (a, b), a < b.
    """
    for width in sorted({count for count in links.values() if count > 0}, reverse=True):
        path = _fewest_hops(_neighbours(links, width), source, destination)
        if path:
            return path
    return ()


def link_class(links: Mapping[Pair, int], path: Path, *, switched: bool = False) -> LinkClass:
    """Return the link class of a path; the links through a switch make it a *switched* one."""
    if not path:
        return LinkClass(0, 0)
    narrowest = min(links[(min(hop), max(hop))] for hop in pairwise(path))
    return LinkClass(narrowest, len(path) - 1, switched)


def hop_matrix(links: Mapping[Pair, int], devices: int) -> Matrix:
    """Return the hops of the shortest path of each pair; 0 on the diagonal and without a path."""
    neighbours = _neighbours(links, 1)
    return tuple(
        tuple(len(_fewest_hops(neighbours, a, b)[1:]) if a != b else 0 for b in range(devices))
        for a in range(devices)
    )
