"""Everything that is looked for, in the order in which a person mends it."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.run.site_check import launching, modules, node, programs, spack
from fabricheck.run.site_check.place import Finding, Place
from fabricheck.run.site_check.target import Target


def check(target: Target, place: Place) -> Iterator[Finding]:
    """Yield what is there of one partition, what is missing, and what cannot be seen here."""
    yield from launching.check(target, place)
    for environment in target.environments:
        yield from modules.check(target, environment, place)
        yield from spack.check(environment, place)
        yield from programs.check(environment, place)
    yield from node.check(target, place)
