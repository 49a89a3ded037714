"""What a partition of a site needs, looked for on the node where this runs."""

from collections.abc import Iterator

from fabricheck.run.site_check import launching, modules, node, programs, spack
from fabricheck.run.site_check.place import Finding, Place
from fabricheck.site.partitions import Target

__all__ = ["Finding", "Place", "check"]


def check(target: Target, place: Place) -> Iterator[Finding]:
    """Yield what is there, is missing or cannot be seen here, in the order in which to mend it."""
    yield from launching.check(target, place)
    for environment in target.environments:
        yield from modules.check(target, environment, place)
        yield from spack.check(environment, place)
        yield from programs.check(environment, place)
    yield from node.check(target, place)
