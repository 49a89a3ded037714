"""What the site files say of the partitions of a session, read once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from fabricheck import partitions


@functools.cache
def sites() -> dict[str, list[dict[str, Any]]] | None:
    """Return what the site files say; None without readable ones."""
    return partitions.read_sites()


def extras(where: str) -> Mapping[str, Any]:
    """Return the extras of a partition, ``system:partition``; none of one that no site has."""
    for system in (sites() or {}).get("systems", []):
        for one in system.get("partitions", []):
            if f"{system['name']}:{one['name']}" == where:
                found: dict[str, Any] = one.get("extras", {})
                return found
    return {}
