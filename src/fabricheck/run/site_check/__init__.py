"""Requirements of a site's partition, checked on the node where this runs."""

from collections.abc import Iterator

from fabricheck.run.site_check import node, programs, spack
from fabricheck.run.site_check.machine import Finding, Machine
from fabricheck.site.partitions import Target

__all__ = ["Finding", "Machine", "check"]


def check(target: Target, machine: Machine) -> Iterator[Finding]:
    """Yield what exists, is missing or cannot be seen here, in the order in which to fix it."""
    yield from programs.launching(target, machine)
    for environment in target.environments:
        yield from programs.modules(target, environment, machine)
        yield from spack.check(environment, machine)
        yield from programs.check(target, environment, machine)
    yield from node.check(target, machine)
