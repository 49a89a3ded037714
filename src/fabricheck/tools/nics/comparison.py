"""Comparison of a node's NICs with its node model and its fabric."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricheck.core.errors import NotFoundError
from fabricheck.core.text import count
from fabricheck.core.vocabulary import NIC_FAILURES
from fabricheck.node import Nic, NodeModel
from fabricheck.node.fabric import Fabric, Place
from fabricheck.results.model import NodeNic
from fabricheck.tools.nics.reading import LAST_RESTART, SeenNic
from fabricheck.tools.topology.reported import Difference

#: The link of a NIC may restart fewer times than this in so many hours (HPE's cxi_healthcheck).
RESTARTS = ((1, 5), (10, 10))

#: A rate of PCIe may be this much below what the model states: documents round.
_ROUNDING = 0.01

#: Counters that the driver of Slingshot refreshes once a minute.
ONCE_A_MINUTE = ("device/properties/pcie_corr_err", "device/properties/pcie_uncorr_err")


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    differences: with node and NIC. unread: a sentence for each NIC whose state or speed is unknown.
    notes: what was not compared, and what differs without being wrong.
    """

    differences: tuple[Difference, ...]
    unread: tuple[str, ...]
    notes: tuple[str, ...]


def require_nics(model: NodeModel) -> None:
    """Refuse a node model without NICs.

    :raises NotFoundError: when it has none.
    """
    if not model.nics:
        raise NotFoundError(f"The node model {model.name} states no NICs.")


def compare(
    node: str, model: NodeModel, nics: Sequence[SeenNic], fabric: Fabric | None, now: float = 0.0
) -> Comparison:
    """Compare a node's NICs with its model: number, names, state, rates, PCIe, places.

    :param node: its name, for the sentences.
    :param model: a node model with NICs.
    :param fabric: the network that joins the nodes; ``None`` where the site names none.
    :param now: in s since 1970; by default the present time.
    """
    seen = {nic.name: nic for nic in nics}
    pairs = [(expected, seen[expected.name]) for expected in model.nics if expected.name in seen]
    # Where none is there, the driver or the namespace lacks them; as many with other names are none
    # that is gone.
    gone = bool(pairs) and len(nics) < len(model.nics)
    gone = gone and model.facts["nics"].kind in ("published", "measured")
    lacks = [
        f"{node}:{expected.name} is not there; {model.name} has {count(len(model.nics), 'NIC')}."
        for expected in model.nics
        if expected.name not in seen
    ]
    differences: list[str] = []
    unread: list[str] = []
    for expected, nic in pairs:
        where = f"{node}:{expected.name}"
        differences += _of_one(where, model, expected, nic, now or time.time())
        unread += _unread(where, nic)
    chosen = [nic for _, nic in pairs]
    differences += _of_the_mtu(node, [nic for expected, nic in pairs if expected.mtu_bytes is None])
    notes = [*_extra(node, model, nics), *_firmware(node, chosen)]
    if fabric is None:
        notes.append("no fabric is named, so places and provider were not examined")
    elif fabric.places.rule == "address":
        differences += _of_the_places(node, chosen, fabric)
        notes += [
            f"the place of {node}:{nic.name} is unknown ({nic.absent['address']})"
            for nic in chosen
            if nic.address is None and "address" in nic.absent
        ]
    elif fabric.places.rule == "switches" and fabric.place(node) is None:
        notes.append(f"the fabric {fabric.name} has no switch of {node}")
    found = [*(Difference(lack, lost=gone) for lack in lacks), *map(Difference, differences)]
    return Comparison(tuple(found), tuple(unread), tuple(notes))


def new_errors(
    node: str, errors: Mapping[str, Mapping[str, tuple[int, int]]]
) -> tuple[list[str], list[str]]:
    """Return the sentences of errors counted during the run: uncorrected ones, then the others.

    :param errors: by NIC and counter, the values before and after.
    """
    failures: list[str] = []
    others: list[str] = []
    for name, counted in errors.items():
        for counter, (before, after) in counted.items():
            if after <= before:
                continue
            where = f"{node}:{name}"
            if counter == LAST_RESTART:
                # It can be the switch's or the cable's, and HPE accepts four in an hour.
                others.append(f"{where} restarted its link during the run.")
                continue
            earlier = " or in the minute before it" if counter in ONCE_A_MINUTE else ""
            more = f"{where} counted {after - before} in {counter} during the run{earlier}"
            (failures if counter in NIC_FAILURES else others).append(f"{more} ({before} before).")
    return failures, others


def _of_one(where: str, model: NodeModel, expected: Nic, nic: SeenNic, now: float) -> Iterator[str]:
    """Yield how a NIC differs from the model's; of one that is down, its rates tell nothing."""
    if nic.state == "down":
        yield f"{where} is down."
    else:
        rated = 8 * expected.peak_gbs
        if nic.gbit_per_s is not None and abs(nic.gbit_per_s - rated) > _ROUNDING * rated:
            yield f"{where} runs at {nic.gbit_per_s:g} Gb/s; {model.name} has {rated:g}."
    yield from _of_pcie(where, model, expected, nic)
    if nic.numa_domain is not None and nic.numa_domain != expected.domain:
        yield f"{where} is in NUMA domain {nic.numa_domain}; {model.name} has {expected.domain}."
    yield from _of_the_device(where, model, expected, nic)
    wanted = expected.mtu_bytes
    if wanted is not None and nic.mtu_bytes is not None and nic.mtu_bytes != wanted:
        yield f"{where} has an MTU of {nic.mtu_bytes} bytes; {model.name} has {wanted}."
    for hours, fewer in RESTARTS:
        recent = sum(now - 3600 * hours < restart <= now for restart in nic.restarts)
        if recent >= fewer:
            since = "hour" if hours == 1 else f"{hours} hours"
            yield (
                f"{where} restarted its link {recent} times in the last {since}; fewer than "
                f"{fewer} are accepted, as by HPE's cxi_healthcheck."
            )
            break


def _of_pcie(where: str, model: NodeModel, expected: Nic, nic: SeenNic) -> Iterator[str]:
    """Yield why the PCIe link is too slow: for the model, or for what NIC and slot can do."""
    link = nic.pcie
    if link.gt_per_s is None or link.width is None:
        return
    has = f"{where} has PCIe x{link.width} at {link.gt_per_s:g} GT/s"
    # Of a model's rate it is not known whether the encoding is counted, so it is not taken off.
    rate = link.gt_per_s * link.width / 8
    needed = expected.pcie_gbs
    if needed is not None and rate < (1 - _ROUNDING) * needed:
        yield f"{has}, {rate:g} GB/s; {model.name} has {needed:g}."
        return
    if link.gt_per_s_max is None or link.width_max is None:
        return
    width = min(link.width_max, link.slot_width_max or link.width_max)
    speed = min(link.gt_per_s_max, link.slot_gt_per_s_max or link.gt_per_s_max)
    if link.width < width or link.gt_per_s < speed:
        yield f"{has}; NIC and slot can have x{width} at {speed:g} GT/s."


def _of_the_device(where: str, model: NodeModel, expected: Nic, nic: SeenNic) -> Iterator[str]:
    """Yield another nearest device than the model's, where both are known by PCI address."""
    if expected.device is None or not nic.near_devices:
        return
    numbers = {
        device.pci_address: device.index
        for device in model.devices
        if device.pci_address is not None
    }
    wanted = model.devices[expected.device].pci_address
    if wanted is None or not set(nic.near_devices) <= numbers.keys() or wanted in nic.near_devices:
        return
    near = " and ".join(f"{numbers[device]} ({device})" for device in nic.near_devices)
    yield f"{where} is nearest to device {near}; {model.name} has {expected.device} ({wanted})."


def _unread(where: str, nic: SeenNic) -> Iterator[str]:
    """Yield what is unknown of a NIC that cannot be called good without it."""
    for item, known in (("state", nic.state), ("speed", nic.gbit_per_s)):
        # A NIC that is down has no speed, and is a difference already.
        if known is None and nic.state != "down":
            why = nic.absent.get(item, "the kernel does not tell it")
            yield f"The {item} of {where} cannot be read ({why})."


def _of_the_mtu(node: str, nics: Sequence[SeenNic]) -> Iterator[str]:
    """Yield the NICs whose MTU is not that of most others of the node."""
    known = Counter(nic.mtu_bytes for nic in nics if nic.mtu_bytes is not None)
    usual = _most(known)
    for nic in nics:
        if usual is not None and nic.mtu_bytes not in (None, usual):
            yield (
                f"{node}:{nic.name} has an MTU of {nic.mtu_bytes} bytes; the node's others have "
                f"{usual}."
            )


def _most(counted: Counter[int] | Counter[str]) -> int | str | None:
    """Return what most have; ``None`` where no value has more than half."""
    value, number = counted.most_common(1)[0] if counted else (None, 0)
    return value if 2 * number > sum(counted.values()) else None


def _of_the_places(node: str, nics: Sequence[SeenNic], fabric: Fabric) -> Iterator[str]:
    """Yield NICs without a place, at one place, or in another group than the node's others.

    The NICs of a node are on several switches of one group, or on one (docs/network.md).
    """
    places: dict[str, Place] = {}
    for nic in nics:
        place = fabric.place(node, nic.address)
        if place is not None:
            places[nic.name] = place
        elif nic.address is not None:
            yield f"{node}:{nic.name} has the address {nic.address}, which states no place."
    at: dict[Place, list[str]] = defaultdict(list)
    for name, place in places.items():
        at[place].append(f"{node}:{name}")
    for place, names in at.items():
        if len(names) > 1:
            stated = f"group {place.group}, switch {place.switch}, port {place.port}"
            yield f"{' and '.join(names)} have the same place: {stated}."
    groups = Counter(place.group for place in places.values())
    usual = _most(groups)
    if len(groups) > 1 and usual is None:
        listed = ", ".join(f"{name} in {place.group}" for name, place in places.items())
        yield f"The NICs of {node} are in several groups: {listed}."
    for name, place in places.items():
        if usual is not None and place.group != usual:
            yield f"{node}:{name} is in group {place.group}; the node's others are in {usual}."


def _extra(node: str, model: NodeModel, nics: Sequence[SeenNic]) -> Iterator[str]:
    """Yield the NICs that the model does not have: those of storage, for example."""
    modelled = {nic.name for nic in model.nics}
    more = [nic.name for nic in nics if nic.name not in modelled]
    if more:
        yield f"not in {model.name}: {', '.join(more)} of {node}"


def _firmware(node: str, nics: Sequence[SeenNic]) -> Iterator[str]:
    found = {nic.name: nic.firmware for nic in nics if nic.firmware is not None}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        yield f"the NICs of {node} have several versions of firmware: {listed}"


def described(
    node: str,
    nic: SeenNic,
    fabric: Fabric | None,
    errors: Mapping[str, tuple[int, int]],
    loopback_gbit_per_s: float | None = None,
) -> NodeNic:
    """Return a NIC as the result document has it."""
    place = None if fabric is None else fabric.place(node, nic.address)
    link = nic.pcie
    found: NodeNic = {
        "node": node,
        "name": nic.name,
        "kind": nic.kind,
        "interface": nic.interface,
        "address": nic.address,
        "pci_address": nic.pci_address,
        "numa_domain": nic.numa_domain,
        "near_devices": list(nic.near_devices),
        "state": nic.state,
        "gbit_per_s": nic.gbit_per_s,
        "mtu_bytes": nic.mtu_bytes,
        "pcie": {
            "gt_per_s": link.gt_per_s,
            "width": link.width,
            "gt_per_s_max": link.gt_per_s_max,
            "width_max": link.width_max,
        },
        "firmware": nic.firmware,
        "driver": nic.driver,
        "place": None if place is None else {
            "group": place.group, "switch": place.switch, "port": place.port,
        },
        "errors": {name: list(values) for name, values in errors.items()},
        "absent": [{"item": item, "why": why} for item, why in nic.absent.items()],
    }  # fmt: skip
    if loopback_gbit_per_s is not None:
        found["loopback_gbs"] = loopback_gbit_per_s / 8
    return found
