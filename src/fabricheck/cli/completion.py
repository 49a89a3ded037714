"""Shell completion of the names of partitions."""

from __future__ import annotations

from fabricheck.site import partitions


def partition_names(incomplete: str) -> list[str]:
    """Return the systems and partitions of the site files that begin with some letters."""
    every = [name for name, _ in partitions.named(partitions.known_sites())]
    systems = dict.fromkeys(name.partition(":")[0] for name in every)
    return [name for name in (*systems, *every) if name.startswith(incomplete)]
