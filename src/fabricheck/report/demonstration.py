"""Results that accept no node: simulated nodes, and the memory of hosts without GPUs."""

from __future__ import annotations

from collections.abc import Collection

from fabricheck.judge.verdict.model import NodeVerdict, Row

#: What stands above all else where results are a demonstration.
SENTENCE = "No GPU was measured: this is a demonstration and accepts no node."


def is_demonstration(judged: Collection[NodeVerdict | Row]) -> bool:
    """Whether nothing of GPUs was measured, on no node of a cluster, and nothing shows some."""
    return bool(judged) and not any(
        verdict.scheduled or verdict.clock is None or verdict.gpus != "none" for verdict in judged
    )
