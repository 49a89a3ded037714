"""Preconditions of rules on a partition; each raises NotTestable with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fabricheck.core.amounts import about
from fabricheck.node import NodeModel
from fabricheck.papers.claims.model import NotTestable
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

Found = TypeVar("Found")

#: The smallest message with a published rate, from AMD's lab notes. Below it the start-up time
#: matters.
LARGE = 16 << 20

#: The number of devices of the machine in Hugging Face's tables.
EIGHT = 8


def devices(observed: Observed) -> None:
    """Require devices, real or simulated, that have memory of their own."""
    if not observed.documents:
        raise NotTestable("it has no readable result")
    if observed.runtimes <= {"host"}:
        raise NotTestable("its devices are virtual ones that share the memory of the host")


def node(observed: Observed) -> NodeModel:
    """Require a node model."""
    devices(observed)
    if observed.node is None:
        raise NotTestable("it has no node model, so the links of its devices are unknown")
    return observed.node


def some(points: Sequence[Found], what: str, experiment: str) -> Sequence[Found]:
    """Require at least one point.

    :param what: the missing subject, such as "copy-engine transfers".
    """
    if not points:
        raise NotTestable(f"the session has no {what} ({experiment})")
    return points


def large(points: Sequence[Series], what: str, experiment: str) -> Sequence[Series]:
    """Require points of at least `LARGE`, and return these.

    :param what: as for `some`.
    """
    some(points, what, experiment)
    points_of_size = [point for point in points if point.bytes >= LARGE]
    if not points_of_size:
        most = about(max(point.bytes for point in points))
        raise NotTestable(
            f"the session has {what} of {most} at most; a rate needs {about(LARGE)} ({experiment})"
        )
    return points_of_size


def series(
    observed: Observed,
    what: str,
    keep: Callable[[Series], object] = lambda point: True,
    *,
    rate: bool = False,
    **fields: Any,
) -> Sequence[Series]:
    """Require series with these fields, such as the experiment, and return them.

    :param what: as for `some`.
    :param keep: a further condition.
    :param rate: whether they must be as `large`.
    """
    chosen = [point for point in observed.select(**fields) if keep(point)]
    return (large if rate else some)(chosen, what, fields["experiment"])


def nodes(
    holds: Callable[[NodeModel], object],
    kind: Callable[[NodeModel], str],
    base: Callable[[Observed], NodeModel] = node,
) -> Callable[[Observed], NodeModel]:
    """Return a precondition on the node model.

    :param kind: the required kind and the model's, in a sentence.
    :param base: a precondition that it must meet, too.
    """

    def require(observed: Observed) -> NodeModel:
        model = base(observed)
        if not holds(model):
            raise NotTestable(f"it applies to {kind(model)}")
        return model

    return require


def _attached(model: NodeModel) -> list[tuple[int, ...]]:
    """Return the devices near each NUMA domain that has some."""
    return [domain.devices for domain in model.domains if domain.devices]


#: Two devices per package, as MI250X has.
packages_of_two = nodes(
    lambda model: all(len(package) == 2 for package in model.packages),
    lambda model: f"packages with two devices; {model.name} has none",
)
#: Eight devices, two per package, as on the node of Hugging Face's page.
eight_devices = nodes(
    lambda model: len(model.devices) == EIGHT,
    lambda model: f"{EIGHT} devices; {model.name} has {len(model.devices)}",
    packages_of_two,
)
#: Direct links of one, two and four, as MI250X has.
tiers = nodes(
    lambda model: {link.count for link in model.links.values()} == {1, 2, 4},
    lambda model: f"single, dual and quad links; {model.name} has others",
    packages_of_two,
)
#: Packages of two devices, each with its own NUMA domain, as MI250X has.
own_domains = nodes(
    lambda model: all(devices in model.packages for devices in _attached(model)),
    lambda model: f"packages with a NUMA domain each; on {model.name} several share one",
    packages_of_two,
)
#: Packages of two devices, several near each of several NUMA domains.
shared_domains = nodes(
    lambda model: (
        len(_attached(model)) >= 2 and all(len(devices) > 2 for devices in _attached(model))
    ),
    lambda model: (
        f"two sockets with several packages each; {model.name} is attached to its NUMA domains "
        "differently"
    ),
    packages_of_two,
)
#: A whole node with all devices near one of several NUMA domains, as Leonardo's.
one_domain_of_several = nodes(
    lambda model: not model.part_of and len(_attached(model)) == 1 and len(model.domains) >= 2,
    lambda model: (
        "nodes whose devices are all near one of several NUMA domains; those of "
        f"{model.name} are not"
    ),
)
#: Packages of two devices connected to the host by Infinity Fabric, not by PCIe.
fabric_to_host = nodes(
    lambda model: "Infinity Fabric" in model.host_link_type,
    lambda model: f"Infinity Fabric to the host; {model.name} has {model.host_link_type}",
    packages_of_two,
)
#: Devices of which each pair has the same direct link, as A100.
linked_alike = nodes(
    lambda model: len(model.link_classes) == 1 and next(iter(model.link_classes)).direct,
    lambda model: (
        f"devices that are all linked alike; {model.name} has "
        + (f"pairs of {len(model.link_classes)} kinds" if model.link_classes else "one device")
    ),
)
#: AMD's devices of which some are linked and others are not, as MI210.
bridges = nodes(
    lambda model: (
        model.vendor == "amd" and {kind.links > 0 for kind in model.link_classes} == {True, False}
    ),
    lambda model: (
        "AMD's devices of which some are linked and others are not; those of "
        f"{model.name} ({model.device_model}) differ"
    ),
)


def architecture(wanted: str, device: str) -> Callable[[Observed], NodeModel]:
    """Return a precondition on the devices' architecture, as the node model names it.

    :param device: the device's name in a sentence.
    """
    return nodes(
        lambda model: model.architecture == wanted,
        lambda model: f"{device}; {model.name} has {model.device_model}",
    )
