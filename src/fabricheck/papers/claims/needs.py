"""Preconditions of rules on a partition; each raises NotTestable with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fabricheck.core.amounts import about
from fabricheck.node import NodeModel
from fabricheck.papers.claims.model import NotTestable
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

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
    found = [point for point in points if point.bytes >= LARGE]
    if not found:
        most = about(max(point.bytes for point in points))
        raise NotTestable(
            f"the session has {what} of {most} at most; a rate needs {about(LARGE)} ({experiment})"
        )
    return found


def _only(model: NodeModel, holds: bool, kind: str) -> NodeModel:
    """Return a model of the required kind.

    :param kind: the required kind and the model's, in a sentence.
    """
    if not holds:
        raise NotTestable(f"it applies to {kind}")
    return model


def packages_of_two(observed: Observed) -> NodeModel:
    """Require a node with two devices per package, as MI250X has."""
    model = node(observed)
    holds = all(len(package) == 2 for package in model.packages)
    return _only(model, holds, f"packages with two devices; {model.name} has none")


def eight_devices(observed: Observed) -> NodeModel:
    """Require eight devices, two per package, as on the node of Hugging Face's page."""
    model = packages_of_two(observed)
    has = len(model.devices)
    return _only(model, has == EIGHT, f"{EIGHT} devices; {model.name} has {has}")


def tiers(observed: Observed) -> NodeModel:
    """Require direct links of one, two and four, as MI250X has."""
    model = packages_of_two(observed)
    holds = {link.count for link in model.links.values()} == {1, 2, 4}
    return _only(model, holds, f"single, dual and quad links; {model.name} has others")


def own_domains(observed: Observed) -> NodeModel:
    """Require packages of two devices, each with its own NUMA domain, as MI250X has."""
    model = packages_of_two(observed)
    attached = [domain.devices for domain in model.domains if domain.devices]
    holds = all(devices in model.packages for devices in attached)
    kind = f"packages with a NUMA domain each; on {model.name} several share one"
    return _only(model, holds, kind)


def shared_domains(observed: Observed) -> NodeModel:
    """Require packages of two devices, several near each of several NUMA domains."""
    model = packages_of_two(observed)
    attached = [domain.devices for domain in model.domains if domain.devices]
    return _only(
        model,
        len(attached) >= 2 and all(len(devices) > 2 for devices in attached),
        f"two sockets with several packages each; {model.name} is attached to its NUMA domains "
        "differently",
    )


def one_domain_of_several(observed: Observed) -> NodeModel:
    """Require a whole node with all devices near one of several NUMA domains, as Leonardo's."""
    model = node(observed)
    attached = sum(bool(domain.devices) for domain in model.domains)
    return _only(
        model,
        not model.part_of and attached == 1 and len(model.domains) >= 2,
        f"nodes whose devices are all near one of several NUMA domains; those of {model.name} "
        "are not",
    )


def architecture(wanted: str, device: str) -> Callable[[Observed], NodeModel]:
    """Return a precondition on the devices' architecture, as the node model names it.

    :param device: the device's name in a sentence.
    """

    def requested(observed: Observed) -> NodeModel:
        model = node(observed)
        kind = f"{device}; {model.name} has {model.device_model}"
        return _only(model, model.architecture == wanted, kind)

    return requested


def fabric_to_host(observed: Observed) -> NodeModel:
    """Require packages of two devices connected to the host by Infinity Fabric, not by PCIe."""
    model = packages_of_two(observed)
    holds = "Infinity Fabric" in model.host_link_type
    kind = f"Infinity Fabric to the host; {model.name} has {model.host_link_type}"
    return _only(model, holds, kind)


def linked_alike(observed: Observed) -> NodeModel:
    """Require devices of which each pair has the same direct link, as A100."""
    model = node(observed)
    classes = list(model.link_classes)
    has = f"pairs of {len(classes)} kinds" if classes else "one device"
    holds = len(classes) == 1 and classes[0].direct
    return _only(model, holds, f"devices that are all linked alike; {model.name} has {has}")


def bridges(observed: Observed) -> NodeModel:
    """Require AMD's devices of which some are linked and others are not, as MI210."""
    model = node(observed)
    _only(model, model.vendor == "amd", f"AMD's devices; {model.name} has {model.device_model}")
    return _only(
        model,
        {kind.links > 0 for kind in model.link_classes} == {True, False},
        f"devices of which some are linked and others are not; those of {model.name} differ",
    )
