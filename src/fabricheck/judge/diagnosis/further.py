"""Which further measurement would tell components apart that explain as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricheck.judge.diagnosis.components import Change, Component
from fabricheck.judge.diagnosis.evidence import Session
from fabricheck.node import NodeModel

#: By check what it measures of which resources: the words of resources that it tells apart.
_TELLS = {
    "stream_local": ("memory of device", "kernels of device"),
    "p2p_engine": ("copy engine of copies", "link ", "latency of copies"),
    "p2p_kernel": ("link ", "accesses of kernels", "memory of device"),
    "memcpy_near": ("host link", "copy engine of copies", "memory of domain"),
    "memcpy_near_pageable": ("pageable copies",),
    "memcpy_numa": ("memory of domain", "interconnect", "host link"),
    "mpi_pairs": ("copy engine of messages", "link ", "latency of messages"),
    "pingpong_right": ("rank on device", "host link"),
    "stream_concurrent": ("memory of domain", "host "),
    "managed_zero_copy": ("host ", "host link"),
}


def further(
    own: Component | Change,
    equals: Sequence[Component | Change],
    session: Session,
    node: NodeModel | None,
) -> list[str]:
    """Return the checks, as commands, that tell a component from what explains as much.

    Those that the session does not have; nothing where nothing explains as much.
    """
    if not equals or node is None:
        return []
    every = [one for one in (own, *equals) if isinstance(one, Component)]
    return [f"reframe -c reframe_checks -r -n '^{check}$'" for check in _telling(every, session)]


def _telling(every: Sequence[Component], session: Session) -> Iterator[str]:
    for check, words in _TELLS.items():
        if check in session.documents:
            continue
        touched = {
            one.name
            for one in every
            if any(word.startswith(pattern.split("*")[0][: len(word)]) or pattern.startswith(word)
                   for pattern in one.resources for word in words)
        }  # fmt: skip
        if touched and len(touched) < len(every):
            yield check
