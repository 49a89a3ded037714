"""Questions about the state of node and devices before and after a run.

Each function answers one question about a document, by causes that name a device, process or host.
A document without a state has none.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, cast

from fabricheck.core.vocabulary import (
    LINK_ERROR_NOUNS,
    Throttle,
)
from fabricheck.results import log_lines
from fabricheck.results.causes import (
    STOLEN_SHARE,
    BusyHost,
    Cause,
    CountersBack,
    Errors,
    LinksDown,
    Logged,
    NamedDevice,
    NarrowPcie,
    Throttled,
    Use,
    When,
    merged,
)
from fabricheck.results.model import (
    DeviceState,
    LogLine,
    PciFunction,
    ResultDocument,
    Series,
    Snapshot,
    State,
    node_name,
)
from fabricheck.results.settings import hiding_devices

#: The least stolen time in s that counts: the kernel counts in ticks of 10 ms, and in the short
#: interval before a run one tick would exceed the share.
STOLEN_LEAST_S = 0.05

#: The share of a run in which a device may be throttled: less does not change a median.
THROTTLED_SHARE = 0.01

#: The vendor of the devices that a runtime lists; others list no devices of PCI.
VENDOR_OF_RUNTIME = {"rocm": "0x1002", "cuda": "0x10de"}

#: An interval of host use that covers at least this share of a run describes the run itself.
_COVERS = 0.5

Devices = Collection[int] | None
"""The devices that a question is about; None of all."""


def uses(document: ResultDocument, devices: Devices = None) -> list[Use]:
    """Return the other processes that used devices before or after the run."""
    seen = []
    for snapshot, when in _snapshots(document):
        for state in snapshot["devices"]:
            if devices is not None and state["index"] not in devices:
                continue
            names = (_named(document, state["index"]),)
            for process in state["processes"] or ():
                seen.append(Use(process["pid"], process["user"], process["command"], names, when))
    return merged(seen)


def host_use(document: ResultDocument) -> BusyHost | None:
    """Return how busy others kept the host during the run; None where it was not recorded.

    The interval since the snapshot before the run counts if it covers the run, otherwise the busier
    of the short intervals before and after.
    """
    busy: list[tuple[float, BusyHost]] = []
    for snapshot, when in _snapshots(document):
        others = snapshot["host"]["others"]
        if others is not None:
            covers = when is When.AFTER and others["seconds"] >= _COVERS * document["duration_s"]
            stolen = others["stolen_cores"]
            host = BusyHost(
                others["busy_cores"],
                # One or two ticks are not counted as stolen.
                stolen if stolen * others["seconds"] > STOLEN_LEAST_S else 0.0,
                snapshot["host"]["cores"],
                tuple(others["processes"]),
                When.MEANWHILE if covers else when,
            )
            if covers:
                return host
            busy.append((others["busy_cores"] + stolen, host))
    return max(busy, key=lambda load: load[0])[1] if busy else None


def busy_host(document: ResultDocument) -> BusyHost | None:
    """Return how busy others kept the host, if more than a run tolerates; else None."""
    host = host_use(document)
    if host is None:
        return None
    return host if host.busy or host.stolen_cores > STOLEN_SHARE * (host.cores or 1) else None


def throttled(document: ResultDocument, devices: Devices = None) -> list[Throttled]:
    """Return the devices that ran below their clock, by a counter or a snapshot's reason."""
    throttles = []
    for index, before, after in _pairs(document, devices):
        counted = throttled_s(before, after) if after is not None else {}
        length = document["duration_s"]
        long = [why for why, seconds in counted.items() if seconds > THROTTLED_SHARE * length]
        seen = [
            (state, when)
            for state, when in ((before, When.BEFORE), (after, When.AFTER))
            if state is not None and state["throttle"]
        ]
        if not (long or seen):
            continue
        shown = chain.from_iterable(state["throttle"] or () for state, _ in seen)
        reasons = tuple(dict.fromkeys((*long, *shown)))
        moments = (When.MEANWHILE if long else When(0), *(when for _, when in seen))
        clocks = [state["clock_mhz"] for state, _ in seen if state["clock_mhz"] is not None]
        throttles.append(
            Throttled(
                _named(document, index),
                reasons,
                seconds=max(counted[why] for why in long) if long else None,
                of_seconds=length,
                clock_mhz=min(clocks, default=None),
                clock_max_mhz=before["clock_max_mhz"],
                when=functools.reduce(operator.or_, moments),
            )
        )
    return throttles


def throttled_s(before: DeviceState, after: DeviceState) -> dict[Throttle, float]:
    """Return by reason the additional seconds that the driver counted; decreased counters are left
    out.
    """
    first, last = before["throttled_s"] or {}, after["throttled_s"] or {}
    rises = {why: _rise(first.get(why), seconds) for why, seconds in last.items()}
    return {why: rise for why, rise in rises.items() if rise}


def errors(document: ResultDocument, what: str, devices: Devices = None) -> list[Errors]:
    """Return the errors of one kind that were counted during the run.

    :param what: one of those in `Errors`.
    """
    rises = [new for new in new_errors(document, devices) if new.what == what]
    if what in _MEMORY_ERRORS and devices is None:
        # Memory of a device joined to the CPU may be reported as host memory.
        counter = _MEMORY_ERRORS[what]
        for name, first, last in _controllers(document):
            rise = int(_rise(first[counter], last[counter]))
            if rise:
                rises.append(Errors(name, what, rise))
    return rises


def link_errors(document: ResultDocument, devices: Devices = None) -> list[Errors]:
    """Return the errors of links, to devices and to the host, that were counted during the run."""
    return [new for new in new_errors(document, devices) if new.of_links]


def new_errors(document: ResultDocument, devices: Devices = None) -> Iterator[Errors]:
    """Yield the errors of every kind that devices counted during the run."""
    for index, before, after in _pairs(document, devices):
        if after is not None:
            yield from _new_errors(_named(document, index), before, after)


def counters_back(document: ResultDocument, devices: Devices = None) -> list[CountersBack]:
    """Return the devices of which a counter of errors went back during the run."""
    backs = []
    for index, before, after in _pairs(document, devices):
        lower = _lower(before, after) if after is not None else []
        if lower:
            backs.append(CountersBack(_named(document, index), tuple(lower)))
    return backs


def errors_between(documents: Iterable[ResultDocument]) -> list[Errors]:
    """Return the new errors of devices while none of a session's programs ran on their host."""
    rises = []
    last: dict[tuple[str, str | int], DeviceState] = {}
    running = 0
    for _, document, snapshot, when in sorted(_moments(documents), key=lambda moment: moment[0]):
        host = node_name(document["host"])
        for device_state in snapshot["devices"]:
            named = _named(document, device_state["index"])
            key = (host, named.pci_address or named.index)
            if when is When.BEFORE and running == 0 and key in last:
                rises += [
                    replace(new, between=True)
                    for new in _new_errors(named, last[key], device_state)
                ]
            last[key] = device_state
        # A program that was killed has no end: what came then is between programs.
        if document["state"]["after"] is not None:
            running += 1 if when is When.BEFORE else -1
    return merged(rises)


def _moments(
    documents: Iterable[ResultDocument],
) -> Iterator[tuple[datetime, ResultDocument, Snapshot, When]]:
    for document in documents:
        for snapshot, when in _snapshots(document):
            yield datetime.fromisoformat(snapshot["at"]), document, snapshot, when


#: By what is counted the member of `memory_errors`.
_MEMORY_ERRORS = {
    "uncorrected memory error": "uncorrected",
    "corrected memory error": "corrected",
}

#: What is counted of a device, and not of one of its links, is counted under this.
_OF_DEVICE = ""


def counters(device_state: DeviceState) -> dict[str, int]:
    """Return the counters of errors of a device by what is counted, those of its links added up."""
    return {what: sum(by_link.values()) for what, by_link in _counters(device_state).items()}


def _counters(device_state: DeviceState) -> dict[str, Mapping[str, int]]:
    """Return by what is counted the counters of a device by link; those that its driver tells."""
    counters: dict[str, Mapping[str, int]] = {}
    memory: Mapping[str, Any] = device_state["memory_errors"] or {}
    for what, member in _MEMORY_ERRORS.items():
        number = memory.get(member)
        if number is not None:
            counters[what] = {_OF_DEVICE: number}
    pcie = device_state["pcie"]
    if pcie is not None and pcie["replays"] is not None:
        counters["PCIe replay"] = {_OF_DEVICE: pcie["replays"]}
    for kind, by_link in (device_state.get("link_errors") or {}).items():
        counters[LINK_ERROR_NOUNS[kind]] = by_link
    return counters


def counted(device_state: DeviceState) -> dict[str, int]:
    """Return by what is counted the errors of a device since its driver was loaded."""
    return {what: sum(numbers.values()) for what, numbers in _counters(device_state).items()}


def _new_errors(named: NamedDevice, before: DeviceState, after: DeviceState) -> Iterator[Errors]:
    """Yield what a device counted between two states, by counters that both have."""
    first = _counters(before)
    for what, numbers in _counters(after).items():
        if what not in first:
            continue
        rises = {
            link: int(_rise(first[what].get(link, 0), number)) for link, number in numbers.items()
        }
        links = tuple(sorted(int(link) for link, rise in rises.items() if rise and link.isdigit()))
        number = sum(rises.values())
        if number:
            yield Errors(named, what, number, links)


def _lower(before: DeviceState, after: DeviceState) -> list[str]:
    """Return what a device counted less of after than before."""
    first, last = _counters(before), _counters(after)
    links = after["links"]
    down = {str(link) for link in links["down"]} if links is not None else set()
    lower = []
    for what, numbers in first.items():
        if what not in last:
            continue
        # The counters of a link that is down may not be read.
        compared = [link for link in numbers if link not in down]
        if any(last[what].get(link, 0) < numbers[link] for link in compared):
            lower.append(what)
    return lower


def _controllers(document: ResultDocument) -> list[tuple[str, Any, Any]]:
    """Return the memory controllers of the host before and after the run."""
    moments = [
        {counted["controller"]: counted for counted in snapshot["host"].get("memory_errors") or ()}
        for snapshot, _ in _snapshots(document)
    ]
    if len(moments) < 2:
        return []
    before, after = moments
    return [
        (f"memory controller {name}", before[name], after[name]) for name in after if name in before
    ]


def narrow_pcie(document: ResultDocument, devices: Devices = None) -> list[NarrowPcie]:
    """Return the devices whose PCIe link used fewer lanes than both ends support, as far as they
    are known: after the run, else before it.

    Its speed is not examined: an idle link slows down by itself.
    """
    narrowed = []
    for index, before, after in _pairs(document, devices):
        pcie = (after or before)["pcie"]
        if pcie is None or not pcie["width"] or not pcie["width_max"]:
            continue
        port = pcie.get("width_max_port")
        most = min(pcie["width_max"], port or pcie["width_max"])
        # Idle links may save lanes, so those of both moments count.
        first = before["pcie"]
        both = (
            port is not None
            and after is not None
            and first is not None
            and 0 < (first["width"] or 0) < most
        )
        if pcie["width"] < most:
            narrow = NarrowPcie(_named(document, index), pcie["width"], most, both)
            narrowed.append(narrow)
    return narrowed


def lost_functions(document: ResultDocument) -> list[PciFunction]:
    """Return the accelerators that PCI showed before the run and does not show after it."""
    before, after = _functions(document)
    if before is None or after is None:
        return []
    left = {function["address"] for function in after}
    return [function for function in before if function["address"] not in left]


def undriven_functions(document: ResultDocument) -> list[PciFunction]:
    """Return the accelerators that PCI shows and the document's devices lack.

    Only those of the devices' kind, or of the runtime's vendor where there is no device. Empty if
    PCI's list is unknown, the devices are virtual or simulated, or a setting hides some.
    """
    functions = next((function for function in _functions(document) if function is not None), [])
    vendor = VENDOR_OF_RUNTIME.get(document["program"]["runtime"])
    if vendor is None or hiding_devices(document):
        return []
    listed = {(device["pci_address"] or "").lower() for device in document["devices"]}
    kinds = {function["device"] for function in functions if function["address"] in listed}
    if document["devices"] and not kinds:
        return []
    return [
        function
        for function in functions
        if function["vendor"] == vendor
        and function["address"] not in listed
        and (not kinds or function["device"] in kinds)
    ]


def accelerators(document: ResultDocument) -> int | None:
    """Return how many accelerators of the runtime's vendor PCI shows last; None if unknown."""
    vendor = VENDOR_OF_RUNTIME.get(document["program"]["runtime"])
    known = [function for function in _functions(document) if function is not None]
    return sum(function["vendor"] == vendor for function in known[-1]) if known else None


def all_accelerators(document: ResultDocument) -> int:
    """Return how many accelerators PCI shows last, of any vendor; 0 where it is unknown."""
    known = [function for function in _functions(document) if function is not None]
    return len(known[-1]) if known else 0


def _functions(
    document: ResultDocument,
) -> tuple[list[PciFunction] | None, list[PciFunction] | None]:
    """Return PCI's accelerators before and after the run; None where they are unknown."""
    snapshots = [snapshot["host"].get("pci_functions") for snapshot, _ in _snapshots(document)]
    before, after = [*snapshots, None, None][:2]
    aftermath = document.get("aftermath")
    later = aftermath["pci_functions"] if aftermath is not None else None
    return before, after if later is None else later


def logged(*documents: ResultDocument) -> list[Logged]:
    """Return what logs say of devices since the programs began, that on hardware first.

    :param documents: of one node; the lines of all count together.
    """
    lines: list[LogLine] = []
    indices: dict[str | None, int] = {}
    for document in documents:
        aftermath = document.get("aftermath")
        if aftermath is not None:
            lines += [*(aftermath["kernel_log"] or ()), *(aftermath["runtime_log"] or ())]
            indices |= {device["pci_address"]: device["index"] for device in document["devices"]}
    entries = []
    for line in log_lines.weighed(lines):
        address = line["pci_address"]
        device: NamedDevice | str | None = address
        if address is not None and address in indices:
            device = NamedDevice(indices[address], address)
        node = node_name(documents[0]["host"])
        entries.append(Logged(node, line["kind"], line.get("row"), device, line["text"]))
    return sorted(merged(entries), key=lambda each: each.kind != "hardware")


def shows_others(document: ResultDocument) -> bool:
    """Whether a document shows, before and after, what others used of the devices and the host."""
    snapshots = [snapshot for snapshot, _ in _snapshots(document)]
    known = (
        snapshot["host"]["others"] is not None
        and all(state["processes"] is not None for state in snapshot["devices"])
        for snapshot in snapshots
    )
    return len(snapshots) == 2 and all(known)


def disturbances(document: ResultDocument, devices: Devices = None) -> list[Cause]:
    """Return other processes on some devices and on the host."""
    host = busy_host(document)
    return [*uses(document, devices), *([host] if host is not None else [])]


def slowdowns(document: ResultDocument, devices: Devices = None) -> list[Cause]:
    """Return the states of some devices that can have slowed them down."""
    return [
        *throttled(document, devices),
        *narrow_pcie(document, devices),
        *links_down(document, devices),
        *link_errors(document, devices),
        *errors(document, "PCIe replay", devices),
        *errors(document, "corrected memory error", devices),
    ]


def links_down(document: ResultDocument, devices: Devices = None) -> list[LinksDown]:
    """Return the links between devices that were up before the run and down after it."""
    lost = []
    for index, before, after in _changed(document, devices, "links"):
        down = tuple(link for link in after["down"] if link not in before["down"])
        if down:
            lost.append(LinksDown(_named(document, index), down))
    return lost


def causes(document: ResultDocument, devices: Devices = None) -> list[Cause]:
    """Return everything that can explain a value: the devices' states and other processes.

    Also that counters went back, so that they may not tell everything.
    """
    return [
        *slowdowns(document, devices),
        *disturbances(document, devices),
        *counters_back(document, devices),
    ]


def devices_of(series: Iterable[Series], document: ResultDocument) -> set[int]:
    """Return the devices that take part in some series of a document."""
    rank_devices = {rank["rank"]: rank["device"] for rank in document.get("ranks") or ()}
    numbers: set[int | None] = set()
    for each in series:
        numbers |= {*each["device_set"], each["source"]["device"], each["destination"]["device"]}
        numbers |= {rank_devices.get(rank) for rank in each.get("ranks") or ()}
    return {index for index in numbers if index is not None}


# Snapshots


def complete(state: State) -> None:
    """Complete the snapshot after a run, where a document has only the changed members."""
    before, after = state["before"], state["after"]
    if after is not None:
        first = {device_state["index"]: device_state for device_state in before["devices"]}
        after["host"] = {**before["host"], **after["host"]}
        after["devices"] = [
            {**first[device_state["index"]], **device_state} for device_state in after["devices"]
        ]


def changes(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return the snapshot after a run with only the changed members of host and devices.

    This is the form in a document. A device that was not there before is left out.
    """
    first = {state["index"]: state for state in before["devices"]}
    devices = [
        {"index": state["index"], **_other_than(first[state["index"]], state)}
        for state in after["devices"]
        if state["index"] in first
    ]
    host = _other_than(before["host"], after["host"])
    return cast(Snapshot, {**after, "host": host, "devices": devices})


def _other_than(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in after.items() if value != before.get(name)}


def busy_devices(document: ResultDocument) -> set[int]:
    """Return the devices that were in use at a snapshot."""
    return {state["index"] for state in device_states(document) if state["busy_percent"]}


def device_states(document: ResultDocument) -> Iterator[DeviceState]:
    """Yield the states of all devices, before and after."""
    for snapshot, _ in _snapshots(document):
        yield from snapshot["devices"]


def _snapshots(document: ResultDocument) -> Iterator[tuple[Snapshot, When]]:
    state = document.get("state")
    if state is not None:
        yield state["before"], When.BEFORE
        if state["after"] is not None:
            yield state["after"], When.AFTER


def _named(document: ResultDocument, index: int) -> NamedDevice:
    addresses = {device["index"]: device["pci_address"] for device in document["devices"]}
    return NamedDevice(index, addresses.get(index))


def _pairs(
    document: ResultDocument, devices: Devices
) -> Iterator[tuple[int, DeviceState, DeviceState | None]]:
    """Yield each device before and, where known, after the run."""
    state = document.get("state")
    if state is None:
        return
    last = (
        {device_state["index"]: device_state for device_state in state["after"]["devices"]}
        if state["after"]
        else {}
    )
    for before in state["before"]["devices"]:
        index = before["index"]
        if devices is None or index in devices:
            yield index, before, last.get(index)


def _changed(
    document: ResultDocument, devices: Devices, item: str
) -> Iterator[tuple[int, Any, Any]]:
    """Yield an item of each device before and after the run, where it is known and changed."""
    for index, first, last in _pairs(document, devices):
        before: Mapping[str, Any] = first
        after: Mapping[str, Any] = last or {item: None}
        if before[item] != after[item] and before[item] is not None and after[item] is not None:
            yield index, before[item], after[item]


def _rise(before: float | None, after: float | None) -> float:
    # A counter that decreased was reset, as by reloading the driver: it is not used.
    return 0 if before is None or after is None else max(after - before, 0)
