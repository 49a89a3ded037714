"""Parsers of tools that no check runs, as those of `fabricheck.tools.outputs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PlacedValues:
    """The values that a tool printed in one run of a comparison round.

    values: by place, as the parser of the tool names it. A place without a measurement is missing:
    a test that this machine cannot run, a pair without peer access.

    version: of the tool; ``None`` if it prints none.

    devices: the devices that it saw; empty if it prints none.

    addresses: their PCI addresses without domain (``19:00.0``), in the same order; empty if it
    prints none.
    """

    values: Mapping[tuple[str | int, ...], float]
    version: str | None = None
    devices: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
