"""The components of a node that can be degraded, and the resources of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from itertools import permutations

from fabricheck.core.vocabulary import COLLECTIVES
from fabricheck.judge.diagnosis.transfers import Transfer
from fabricheck.node import NodeModel
from fabricheck.results.model import Difference

#: Some devices, and their links or their NUMA domain; None where another property differs.
Place = tuple[frozenset[int], int | None]


def place_of(difference: Difference) -> Place:
    """Return the place of a difference: the pair and its links, or the device and its domain."""
    return frozenset(difference["devices"]), difference["found"]


@dataclass(frozen=True)
class Component:
    """A component that can be degraded.

    name: in sentences. resources: patterns of its resources; all become slower by the same factor.
    devices: those that it belongs to or connects; empty for a component that all share. parts: the
    number of like components that it represents. loose: whether the loose slacks of transfers
    apply. is_latency: whether it is slower by taking longer, not by less bandwidth.
    """

    name: str
    resources: tuple[str, ...]
    devices: tuple[int, ...] = ()
    parts: int = 1
    loose: bool = False
    is_latency: bool = False

    def all_of(self, names: Collection[str]) -> Iterator[str]:
        """Yield the given resources that belong to the component, each once."""
        patterns = [one for one in self.resources if "*" in one]
        yield from (one for one in self.resources if "*" not in one and one in names)
        if patterns:
            every = re.compile("|".join(map(translate, patterns)))
            yield from (one for one in names if every.match(one) and one not in self.resources)


def components(node: NodeModel | None, transfers: Iterable[Transfer]) -> list[Component]:
    """Return the components of a node that can be degraded.

    :param node: None without a model; the devices and pairs that the transfers name are then
        returned.
    """
    if node is None:
        return [*_without_model(transfers)]
    return [*_of_devices(node), *_of_pairs(node), *_of_domains(node), *_of_all(node)]


def _of_devices(node: NodeModel) -> Iterator[Component]:
    for device in node.devices:
        own = (device.index,)
        d = f"device{device.index}"
        kernels = (f"kernels of {d}", f"accesses of kernels of {d} to *",
                   f"host * of kernels of {d}")  # fmt: skip
        copies, messages = "copy engine of copies", "copy engine of messages"
        for name, *resources in (
            (f"HBM of device {device.index}", f"memory of {d}"),
            (f"compute units of device {device.index}", *kernels),
            (f"copy engines of device {device.index}", f"{copies} {d}-*",
             f"{copies} domain*-{d}", f"copy engines of {d}"),
            (f"copies from device {device.index}", f"{copies} {d}-*"),
            (f"copies to device {device.index}", f"{copies} *-{d}"),
            (f"host link to device {device.index}", f"host link to {d}"),
            (f"host link from device {device.index}", f"host link from {d}"),
            (f"host link of device {device.index}", f"host link * {d}"),
            (f"kernels' host accesses of device {device.index}", kernels[-1]),
            (f"pageable copies to device {device.index}", f"pageable copies to {d}"),
            (f"pageable copies from device {device.index}", f"pageable copies from {d}"),
            (f"pageable copies of device {device.index}", f"pageable copies * {d}"),
            (f"page migration of device {device.index}", f"page migration of {d}"),
            (f"messages of device {device.index}", f"{messages} {d}-*", f"{messages} *-{d}"),
            (f"messages from device {device.index}", f"{messages} {d}-*"),
            (f"messages to device {device.index}", f"{messages} *-{d}"),
            (f"rank on device {device.index}", f"rank on {d}"),
            (f"links of device {device.index}", f"link {device.index}-*",
             f"link *-{device.index}"),
            (f"device {device.index}", f"memory of {d}", f"*{d}", f"*{d}-*", f"*of {d} *",
             f"link {device.index}-*", f"link *-{device.index}"),
        ):  # fmt: skip
            yield Component(name, tuple(resources), own)
        for name, *resources in (
            (f"latency of copies from device {device.index}",
             f"latency of copies {device.index}-*"),
            (f"latency of messages of device {device.index}",
             f"latency of messages {device.index}-*", f"latency of messages *-{device.index}"),
        ):  # fmt: skip
            yield Component(name, tuple(resources), own, is_latency=True)
    for package in node.packages:
        if 1 < len(package) < len(node.devices):
            named = ", ".join(map(str, package))
            clocked = tuple(
                one for device in package
                for one in (f"kernels of device{device}",
                            f"accesses of kernels of device{device} to *",
                            f"memory of device{device}")
            )  # fmt: skip
            yield Component(f"package of devices {named}", clocked, package, len(package))


def _of_pairs(node: NodeModel) -> Iterator[Component]:
    if node.switch is None:
        for a, b in node.links:
            for x, y in ((a, b), (b, a)):
                yield Component(f"link {x}-{y}, one direction", (f"link {x}-{y}",), (x, y))
            yield Component(f"link {a}-{b}", (f"link {a}-{b}", f"link {b}-{a}"), (a, b))
            yield Component(
                f"latency of link {a}-{b}",
                (f"latency of link {a}-{b}", f"latency of link {b}-{a}"), (a, b),
                is_latency=True,
            )  # fmt: skip
    else:
        for device in range(len(node.devices)):
            ways = (f"link {device}-switch", f"link switch-{device}")
            yield Component(f"links from device {device} to the switch", ways[:1], (device,))
            yield Component(f"links from the switch to device {device}", ways[1:], (device,))
    for a, b in permutations(range(len(node.devices)), 2):
        pair = (a, b)
        yield Component(
            f"copy engine {a}-{b}", (f"copy engine of copies device{a}-device{b}",), pair
        )
        yield Component(
            f"messages {a}-{b}", (f"copy engine of messages device{a}-device{b}",), pair
        )
        yield Component(
            f"kernels of device {a} at device {b}",
            (f"accesses of kernels of device{a} to device{b}",), pair,
        )  # fmt: skip
        for what in ("copies", "messages"):
            name = f"latency of {what} {a}-{b}"
            yield Component(name, (name,), pair, is_latency=True)
        if a < b:
            for what, name in (("copies", "copy engines"), ("messages", "messages")):
                both = tuple(
                    f"copy engine of {what} device{x}-device{y}" for x, y in ((a, b), (b, a))
                )
                yield Component(f"{name} between {a} and {b}", both, pair)


def _of_domains(node: NodeModel) -> Iterator[Component]:
    for domain in node.domains:
        index = domain.index
        yield Component(
            f"DDR of NUMA domain {index}", (f"memory of domain{index}",), domain.devices
        )
        for other in node.domains:
            if other is not domain:
                name = f"interconnect domain{index}-domain{other.index}"
                yield Component(f"connection of NUMA domains {index} to {other.index}", (name,), ())


def _of_all(node: NodeModel) -> Iterator[Component]:
    count = len(node.devices)
    if count == 1:
        return
    every: tuple[tuple[str, ...], ...] = (
        ("HBM of all devices", "memory of device*"),
        ("compute units of all devices", "kernels of device*", "accesses of kernels of *",
         "host * of kernels of *"),
        ("copy engines of all devices", "copy engine of copies *", "copy engines of *"),
        ("links of all devices", "link *"),
        ("host links of all devices", "host link *"),
        ("DDR of all NUMA domains", "memory of domain*"),
        ("pageable copies of all devices", "pageable copies *"),
        ("page migration of all devices", "page migration of *"),
        ("messages of all devices", "copy engine of messages *"),
        *((f"{operation} of {library}", f"{operation} of {engine}")
          for engine, library in (("mpi", "MPI"), ("rccl", "RCCL"))
          for operation in ("collectives", *COLLECTIVES)),
    )  # fmt: skip
    for name, *resources in every:
        yield Component(name, tuple(resources), (), count)
    for what in ("copies", "messages"):
        name, resource = f"latency of all {what}", f"latency of {what} *"
        yield Component(name, (resource,), (), count, is_latency=True)


def _without_model(transfers: Iterable[Transfer]) -> Iterator[Component]:
    names = dict.fromkeys(name for one in transfers for name in one.slack)
    for name in names:
        word, _, numbers = name.partition(" ")
        if word in ("device", "pair"):
            yield Component(name, (name,), tuple(map(int, numbers.split("-"))))
        else:
            yield Component(name, (name,))


@dataclass(frozen=True)
class Change:
    """A wiring other than the model's: the transfers that become slower or faster, and by how much.

    logs: by index in the list of transfers, the logarithm of the rate over the model's rate.
    places: the differences from the model, as the node's tools would report them. cost: the cost of
    the tools' reports, as that of a hypothesis.
    """

    name: str
    devices: tuple[int, ...]
    logs: Mapping[int, float]
    places: frozenset[Place] = frozenset()
    cost: float = 0.0
