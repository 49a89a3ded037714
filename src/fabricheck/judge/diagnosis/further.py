"""The further measurement that distinguishes components which explain the misses equally well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricheck.judge.diagnosis.components import Change, Component
from fabricheck.judge.diagnosis.evidence import Session
from fabricheck.node import NodeModel

#: By check, the resources that limit its measurements, by the first words of their names.
_LIMITS = {
    "stream_local": ("memory of device", "kernels of device"),
    "p2p_engine": ("copy engine of copies device", "link ", "latency of copies", "latency of link"),
    "p2p_kernel": ("link ", "accesses of kernels"),
    "memcpy_near": ("host link",),
    "memcpy_near_pageable": ("pageable copies",),
    "memcpy_numa": ("memory of domain", "interconnect"),
    "mpi_pairs": ("copy engine of messages", "link ", "latency of messages"),
    "pingpong_right": ("rank on device", "memory of domain"),
    "stream_concurrent": ("memory of domain", "host reads", "host writes"),
    "managed_zero_copy": ("host reads", "host writes"),
}


def further(
    own: Component | Change,
    equals: Sequence[Component | Change],
    session: Session,
    node: NodeModel | None,
) -> list[str]:
    """Return the checks that distinguish a component from equally good explanations.

    Only checks that the session lacks are returned; none if there is no other explanation.
    """
    if not equals or node is None:
        return []
    every = [one for one in (own, *equals) if isinstance(one, Component)]
    return [*_telling(every, session)]


def _telling(every: Sequence[Component], session: Session) -> Iterator[str]:
    for check, words in _LIMITS.items():
        limited = {one.name for one in every if any(_begins(one, word) for word in words)}
        if check not in session.documents and 0 < len(limited) < len(every):
            yield check


def _begins(component: Component, word: str) -> bool:
    """Whether the name of any of a component's resources starts with a word."""
    starts = (pattern.split("*")[0] for pattern in component.resources)
    return any(one.startswith(word) or word.startswith(one) for one in starts)
