"""Comparison of a node's NICs with its node model and its fabric, and the libraries below MPI."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import NIC_FAILURES
from fabricheck.node import Nic, NodeModel
from fabricheck.node.fabric import Fabric
from fabricheck.results.model import NodeNic
from fabricheck.tools.nic_matching import ROUNDING, Matching, Pair, address_of, match
from fabricheck.tools.nics import (
    LAST_RESTART,
    device_file,
    hidden_nics,
    most_of_slot,
    restarts,
)
from fabricheck.tools.runner import Output, last_words, run
from fabricheck.tools.topology.reported import Mismatch

#: The link of a NIC may restart fewer times than this in so many hours (HPE's cxi_healthcheck).
_RESTARTS = ((1, 5), (10, 10))

#: Counters that the driver of Slingshot refreshes once a minute.
_ONCE_A_MINUTE = ("device/properties/pcie_corr_err", "device/properties/pcie_uncorr_err")


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    differences: with node and NIC. pairs: each NIC that was compared, and that of the model.
    unread: a sentence for each NIC whose state or speed is unknown. settings: a sentence for each
    thing that keeps messages from the NICs. versions: of libraries below MPI. notes: what was not
    compared or is not installed, and what differs without being wrong. unlike: the latter alone,
    such as NICs that the model lacks.
    """

    differences: tuple[Mismatch, ...]
    pairs: tuple[Pair, ...]
    unread: tuple[str, ...]
    notes: tuple[str, ...]
    settings: tuple[str, ...]
    versions: Mapping[str, str]
    unlike: tuple[str, ...] = ()


def require_nics(model: NodeModel) -> None:
    """Refuse a node model without NICs.

    :raises NotFoundError: when it has none.
    """
    if not model.nics:
        raise NotFoundError(f"The node model {model.name} states no NICs.")


def compare(
    node: str,
    model: NodeModel,
    nics: Sequence[NodeNic],
    fabric: Fabric | None,
    root: Path = Path("/"),
    now: float = 0.0,
) -> Comparison:
    """Compare a node's NICs with its model: number, places, kind, state, rates, PCIe.

    :param node: its name, for the sentences.
    :param model: a node model with NICs.
    :param fabric: the network that joins the nodes; ``None`` where the site names none.
    :param root: the folder with ``sys``.
    :param now: in s since 1970; by default the present time.
    """
    matching = match(model, nics, fabric)
    differences: list[str] = []
    unread = list(_doubtful(node, model, matching))
    for pair in matching.pairs:
        expected, nic = pair.expected, pair.nic
        where = f"{node}:{nic['name']}"
        differences += _of_one(where, model, expected, nic)
        differences += _of_pcie(where, model, expected, nic, root)
        differences += _of_restarts(where, restarts(nic, root) or (), now or time.time())
        unread += _unread(where, nic)
    chosen = [pair.nic for pair in matching.pairs]
    differences += _of_the_mtu(
        node, [pair.nic for pair in matching.pairs if pair.expected.mtu_bytes is None]
    )
    unlike = (
        *_renamed(node, model, matching),
        *_extra(node, model, matching.extra),
        *_firmware(node, chosen),
    )
    notes = [*unlike]
    if fabric is None:
        notes.append("no fabric is named, so places and provider were not examined")
    elif fabric.places.rule == "address":
        differences += _of_the_places(node, chosen)
        notes += [
            f"the place of {node}:{nic['name']} is unknown ({_why(nic, 'address')})"
            for nic in chosen
            if nic["address"] is None
        ]
    elif fabric.places.rule == "switches" and fabric.place(node) is None:
        notes.append(f"the fabric {fabric.name} has no switch of {node}")
    there = libraries(node, chosen, None if fabric is None else fabric.provider, root)
    # Of what the process is not shown nothing but its place is known.
    on_the_bus = hidden_nics(node, nics, root)
    with_hidden = match(model, [*nics, *on_the_bus], fabric)
    hidden = _hidden(matching, with_hidden, on_the_bus)
    gone = [nic for nic in matching.missing if nic not in hidden]
    return replace(
        there,
        differences=(*_gone(node, model, matching, gone), *map(Mismatch, differences)),
        pairs=tuple(matching.pairs),
        unread=tuple(unread),
        notes=(*notes, *there.notes),
        unlike=unlike,
        settings=(
            *_of_hidden(node, model, hidden, on_the_bus),
            *_of_another_kind(node, model, matching, fabric),
            *there.settings,
        ),
    )


def _hidden(
    matching: Matching, with_hidden: Matching, on_the_bus: Sequence[NodeNic]
) -> Sequence[Nic]:
    """Return the NICs of the model that a network namespace may hide from this process.

    They are those at the places of what is on the bus; where no places are known, any as many.
    """
    still_missing = [nic for nic in with_hidden.missing if nic in matching.missing]
    at_places = len(matching.missing) - len(still_missing)
    if not with_hidden.knows_devices and len(on_the_bus) - at_places >= len(still_missing):
        return matching.missing
    return [nic for nic in matching.missing if nic not in still_missing]


def _of_hidden(
    node: str, model: NodeModel, hidden: Sequence[Nic], on_the_bus: Sequence[NodeNic]
) -> Iterator[str]:
    """Yield that a network namespace hides NICs."""
    if not hidden:
        return
    which = f"{len(hidden)} of {count(len(model.nics), 'NIC')} are not"
    if len(hidden) == len(model.nics):
        which = "no NIC is"
    if len(hidden) == 1:
        which = f"1 of {count(len(model.nics), 'NIC')} is not"
    addresses = listed(nic["name"] for nic in on_the_bus)
    there = (
        "is on the bus with its driver"
        if len(on_the_bus) == 1
        else ("are on the bus with their drivers")
    )
    yield (
        f"Node {node}: {which} shown to this process, and {addresses} {there}: a container has a "
        "network of its own (start it with --network host)."
    )


def _gone(
    node: str, model: NodeModel, matching: Matching, gone: Sequence[Nic]
) -> Iterator[Mismatch]:
    """Yield the NICs that the node lacks, by their places."""
    # Where none is there, the driver or the namespace lacks them.
    lost = bool(matching.pairs) and model.facts["nics"].kind in ("published", "measured")
    stated = f"{model.name} has {count(len(model.nics), 'NIC')}"
    left = list(gone)
    while left:
        alike = matching.alike(left[0], model.nics)
        missing = [nic for nic in alike if nic in left]
        left = [nic for nic in left if nic not in missing]
        if len(alike) > len(missing) and matching.is_any_renamed(alike):
            # Neither names nor places tell which of them is gone.
            number = f"{len(missing)} of {count(len(alike), 'NIC')}"
            where = "" if len(alike) == len(model.nics) else f" {_place(model, alike[0])}"
            verb = "is" if len(missing) == 1 else "are"
            yield Mismatch(f"{node}: {number}{where} {verb} not there; {stated}.", lost=lost)
            continue
        for nic in missing:
            which = f"the NIC {_place(model, nic)}, {nic.name} in {model.name}"
            yield Mismatch(f"{node}: {which}, is not there; {stated}.", lost=lost)


def _doubtful(node: str, model: NodeModel, matching: Matching) -> Iterator[str]:
    """Yield the NICs of the model that may be any of several of the node."""
    for expected, nics in matching.doubtful:
        unclear = f"Which NIC of {node} is {expected.name} of {model.name} cannot be told"
        names = enumerated(nic["name"] for nic in nics)
        are = "is" if len(nics) == 1 else "are"
        if not matching.knows_devices and _are_elsewhere(expected, nics):
            yield f"{unclear}: {names} {are} in another NUMA domain than {expected.domain}."
            continue
        yield (
            f"{unclear}: {names} {are} {_place(model, expected)} or of unknown place, and differ "
            "in state or rate."
        )


def _are_elsewhere(expected: Nic, nics: Sequence[NodeNic]) -> bool:
    """Whether no NIC may be in the NUMA domain of the model's."""
    return not any(nic["numa_domain"] in (None, expected.domain) for nic in nics)


def _place(model: NodeModel, expected: Nic) -> str:
    """Return the words for the place of a NIC of a model."""
    if expected.device is None:
        return f"in NUMA domain {expected.domain}"
    address = address_of(model, expected)
    return f"nearest to device {expected.device}" + (f" ({address})" if address else "")


def _of_another_kind(
    node: str, model: NodeModel, matching: Matching, fabric: Fabric | None
) -> Iterator[str]:
    """Yield the NICs whose ports or drivers are of another network than the model's or fabric's."""
    for pair in matching.other_kind:
        nic, layer = pair.nic, pair.nic.get("link_layer")
        place = f"at the place of {pair.expected.name} in {model.name}"
        if pair.found_by == "order":
            place = "of unknown place"
        where = f"{node}:{nic['name']}, {place},"
        if fabric is None:
            stated = (
                f"is a NIC of the kind {nic['kind']}, of which {model.name} has none: load a driver"
            )
        elif layer is not None and fabric.link_layer not in (None, layer):
            stated = (
                f"has ports of {layer}; the fabric {fabric.name} needs {fabric.link_layer}: set "
                "their type"
            )
        else:
            stated = (
                f"is a NIC of the kind {nic['kind']}; the fabric {fabric.name} needs the provider "
                f"{fabric.provider}: load its driver"
            )
        yield f"{where} {stated}, or name the fabric that joins the nodes."


def _renamed(node: str, model: NodeModel, matching: Matching) -> Iterator[str]:
    """Yield the NICs that have another name than in the model, and by what they were found."""
    renamed = [pair for pair in matching.pairs if pair.is_renamed]
    if not renamed:
        return
    names = listed(f"{pair.nic['name']} ({pair.expected.name})" for pair in renamed)
    yield f"other names than in {model.name}: {names} of {node}"
    if any(pair.found_by == "domain" for pair in renamed):
        yield (
            f"NICs of {node} under other names were compared by NUMA domain, as the device nearest "
            f"to each is not known of {model.name} or of the node"
        )
    if any(pair.found_by == "order" for pair in renamed):
        yield (
            f"NICs of {node} under other names were compared in the order of PCI addresses, as "
            "their places are unknown"
        )


def new_errors(nics: Sequence[NodeNic]) -> tuple[list[str], list[str]]:
    """Return the sentences of errors counted during the run: uncorrected ones, then the others."""
    failures: list[str] = []
    others: list[str] = []
    for nic in nics:
        where = f"{nic['node']}:{nic['name']}"
        for counter, (before, after) in nic["errors"].items():
            if after <= before:
                continue
            if counter == LAST_RESTART:
                # It can be the switch's or the cable's, and HPE accepts four in an hour.
                others.append(f"{where} restarted its link during the run.")
                continue
            earlier = " or in the minute before it" if counter in _ONCE_A_MINUTE else ""
            more = f"{where} counted {after - before} in {counter} during the run{earlier}"
            (failures if counter in NIC_FAILURES else others).append(f"{more} ({before} before).")
    return failures, others


def _of_one(where: str, model: NodeModel, expected: Nic, nic: NodeNic) -> Iterator[str]:
    """Yield how a NIC differs from the model's; of one that is down, its rates tell nothing."""
    if nic["state"] == "down":
        yield f"{where} is down."
    else:
        rated = 8 * expected.peak_gbs
        if nic["gbit_per_s"] is not None and abs(nic["gbit_per_s"] - rated) > ROUNDING * rated:
            yield f"{where} runs at {nic['gbit_per_s']:g} Gb/s; {model.name} has {rated:g}."
    if nic["numa_domain"] is not None and nic["numa_domain"] != expected.domain:
        yield f"{where} is in NUMA domain {nic['numa_domain']}; {model.name} has {expected.domain}."
    yield from _of_the_device(where, model, expected, nic)
    wanted = expected.mtu_bytes
    if wanted is not None and nic["mtu_bytes"] is not None and nic["mtu_bytes"] != wanted:
        yield f"{where} has an MTU of {nic['mtu_bytes']} bytes; {model.name} has {wanted}."


def _of_restarts(where: str, times: Sequence[int], now: float) -> Iterator[str]:
    for hours, fewer in _RESTARTS:
        recent = sum(now - 3600 * hours < restart <= now for restart in times)
        if recent >= fewer:
            since = "hour" if hours == 1 else f"{hours} hours"
            yield (
                f"{where} restarted its link {recent} times in the last {since}; fewer than "
                f"{fewer} are accepted, as by HPE's cxi_healthcheck."
            )
            break


def _of_pcie(
    where: str, model: NodeModel, expected: Nic, nic: NodeNic, root: Path
) -> Iterator[str]:
    """Yield why the PCIe link is too slow: for the model, or for what NIC and slot can do."""
    link = nic["pcie"]
    width, speed = link["width"], link["gt_per_s"]
    if speed is None or width is None:
        return
    link_says = f"{where} has PCIe x{width} at {speed:g} GT/s"
    # Whether a model's rate counts the encoding is unknown, so the encoding is not taken off.
    rate, needed = speed * width / 8, expected.pcie_gbs
    if needed is not None and rate < (1 - ROUNDING) * needed:
        yield f"{link_says}, {rate:g} GB/s; {model.name} has {needed:g}."
        return
    if link["gt_per_s_max"] is None or link["width_max"] is None:
        return
    of_slot, lanes = most_of_slot(nic, root)
    most = min(link["width_max"], lanes or link["width_max"])
    fastest = min(link["gt_per_s_max"], of_slot or link["gt_per_s_max"])
    if width < most or speed < fastest:
        yield f"{link_says}; NIC and slot can have x{most} at {fastest:g} GT/s."


def _of_the_device(where: str, model: NodeModel, expected: Nic, nic: NodeNic) -> Iterator[str]:
    """Yield another nearest device than the model's, where both are known by PCI address."""
    if expected.device is None or not nic["near_devices"]:
        return
    numbers = {
        device.pci_address: device.index
        for device in model.devices
        if device.pci_address is not None
    }
    wanted = model.devices[expected.device].pci_address
    if (
        wanted is None
        or not set(nic["near_devices"]) <= numbers.keys()
        or wanted in nic["near_devices"]
    ):
        return
    near = enumerated(f"{numbers[device]} ({device})" for device in nic["near_devices"])
    yield f"{where} is nearest to device {near}; {model.name} has {expected.device} ({wanted})."


def _unread(where: str, nic: NodeNic) -> Iterator[str]:
    """Yield what is unknown of a NIC that cannot be called good without it."""
    for item, known in (("state", nic["state"]), ("speed", nic["gbit_per_s"])):
        # A NIC that is down has no speed, and is a difference already.
        if known is None and nic["state"] != "down":
            yield f"The {item} of {where} cannot be read ({_why(nic, item)})."


def _why(nic: NodeNic, item: str) -> str:
    """Return why an item of a NIC is unknown."""
    known = (absent["why"] for absent in nic["absent"] if absent["item"] == item)
    return next(known, "the kernel does not tell it")


def _of_the_mtu(node: str, nics: Sequence[NodeNic]) -> Iterator[str]:
    """Yield the NICs whose MTU is not that of most others of the node."""
    known = Counter(nic["mtu_bytes"] for nic in nics if nic["mtu_bytes"] is not None)
    usual = _most(known)
    for nic in nics:
        if usual is not None and nic["mtu_bytes"] not in (None, usual):
            yield (
                f"{node}:{nic['name']} has an MTU of {nic['mtu_bytes']} bytes; the node's others "
                f"have {usual}."
            )


def _most(counted: Counter[int] | Counter[str]) -> int | str | None:
    """Return what most have; ``None`` where no value has more than half."""
    value, number = counted.most_common(1)[0] if counted else (None, 0)
    return value if 2 * number > sum(counted.values()) else None


def _of_the_places(node: str, nics: Sequence[NodeNic]) -> Iterator[str]:
    """Yield NICs without a place, at one place, or in another group than the node's others.

    The NICs of a node are on several switches of one group, or on one (docs/network.md).
    """
    places = {nic["name"]: nic["place"] for nic in nics if nic["place"] is not None}
    for nic in nics:
        if nic["address"] is not None and nic["place"] is None:
            yield f"{node}:{nic['name']} has the address {nic['address']}, which states no place."
    at: dict[str, list[str]] = defaultdict(list)
    for name, place in places.items():
        stated = f"group {place['group']}, switch {place['switch']}, port {place['port']}"
        at[stated].append(f"{node}:{name}")
    for stated, names in at.items():
        if len(names) > 1:
            yield f"{enumerated(names)} have the same place: {stated}."
    groups = Counter(place["group"] for place in places.values())
    usual = _most(groups)
    if len(groups) > 1 and usual is None:
        named = listed(f"{name} in {place['group']}" for name, place in places.items())
        yield f"The NICs of {node} are in several groups: {named}."
    for name, place in places.items():
        if usual is not None and place["group"] != usual:
            yield f"{node}:{name} is in group {place['group']}; the node's others are in {usual}."


def _extra(node: str, model: NodeModel, nics: Sequence[NodeNic]) -> Iterator[str]:
    """Yield the NICs that the model does not have: those of storage, for example."""
    if nics:
        yield f"not in {model.name}: {listed(nic['name'] for nic in nics)} of {node}"


def _firmware(node: str, nics: Sequence[NodeNic]) -> Iterator[str]:
    by_nic = {nic["name"]: nic["firmware"] for nic in nics if nic["firmware"] is not None}
    if len(set(by_nic.values())) > 1:
        versions = listed(f"{name} {version}" for name, version in by_nic.items())
        yield f"the NICs of {node} have several versions of firmware: {versions}"


#: The time limit of one tool, in s: three of them fit into the 10 s of a scheduler's prolog.
LIMIT_S = 2.5

#: What prints the version of a library, by the library's name in a result document.
_VERSIONS: Mapping[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "libfabric": (("fi_info", "--version"), re.compile(r"^libfabric: (\S+)$", re.MULTILINE)),
    "ucx": (
        ("ucx_info", "-v"),
        re.compile(r"^# (?:Library version: |UCT version=)(\S+)", re.MULTILINE),
    ),
}

#: The version of rdma-core ends the name of its library's file: libibverbs.so.1.14.50.0.
_VERBS = re.compile(r"libibverbs\.so\.1\.\d+\.(\d\S*)")
_FOLDERS = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib")


def libraries(
    node: str,
    nics: Sequence[NodeNic],
    provider: str | None,
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
) -> Comparison:
    """Return the versions of libfabric, UCX and rdma-core, and what keeps messages from the NICs.

    A missing provider is no fault of a NIC: messages then go by TCP, more than ten times slower,
    with right data.

    :param node: its name, for the sentences.
    :param nics: the NICs of the node model that are there.
    :param provider: the driver by which messages must go; ``None`` where no fabric states it.
    :param root: the folder with ``dev`` and ``usr``.
    :param environ: its PATH decides which tools are installed.
    """
    versions: dict[str, str] = {}
    notes: list[str] = []
    for library, (command, form) in _VERSIONS.items():
        answer = _answer(command, environ)
        match = form.search(answer.out) if isinstance(answer, Output) else None
        if match is not None:
            versions[library] = match[1]
        else:
            why = answer if isinstance(answer, str) else "its output has no version"
            notes.append(f"no version of {library}: {why}")
    verbs = _verbs(root)
    versions |= {} if verbs is None else {"rdma_core": verbs}
    settings = [*_closed(node, nics, root), *_no_provider(node, provider, environ)]
    return Comparison((), (), (), tuple(notes), tuple(settings), versions)


def _answer(command: Sequence[str], environ: Mapping[str, str]) -> Output | str:
    """Return what a tool printed, or why it did not."""
    name = command[0]
    if shutil.which(name, path=environ.get("PATH")) is None:
        return f"{name} is not in the PATH"
    try:
        done = run(command, LIMIT_S, environ)
    except OSError as error:
        return f"{name} cannot be started ({error.strerror})"
    return f"{name} did not answer within {LIMIT_S:g} s" if done.code is None else done


def _no_provider(node: str, provider: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield that libfabric lacks the provider cxi, where fi_info says so.

    MPI uses verbs without libfabric, so only their device files count.
    """
    if provider != "cxi":
        return
    answer = _answer(("fi_info", "-p", provider), environ)
    if isinstance(answer, Output) and f"provider: {provider}" not in answer.out:
        yield (
            f"Node {node}: libfabric has no provider {provider} (fi_info -p {provider}: "
            f"{last_words(answer.err, answer.out)}), so messages would go by TCP: use the system's "
            "libfabric."
        )


def _closed(node: str, nics: Sequence[NodeNic], root: Path) -> Iterator[str]:
    """Yield the NICs whose device file this user cannot open."""
    for nic in nics:
        file = device_file(nic, root)
        if file is None and nic["kind"] == "infiniband":
            yield (
                f"Node {node}: {nic['name']} has no device for user programs (module ib_uverbs)."
            )
        elif file is not None and not os.access(root / file, os.R_OK | os.W_OK):
            why = "cannot be opened by this user" if (root / file).exists() else "is not there"
            yield f"Node {node}: /{file}, by which programs use {nic['name']}, {why}."


def _verbs(root: Path) -> str | None:
    for folder in _FOLDERS:
        match = _VERBS.fullmatch(Path(os.path.realpath(root / folder / "libibverbs.so.1")).name)
        if match is not None:
            return match[1]
    return None
