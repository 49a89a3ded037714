"""Consistency of a document of several MPI ranks: the ranks, and the series that they measure.

A rank is bound to cores and uses one device. Series of messages (E9, E10, E12) have the engine
``mpi``; series of E6 are copies that one rank makes between the host and its device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from fabricheck.core.vocabulary import COLLECTIVES, COPY_ENGINES, OF_HOST, OF_MESSAGES
from fabricheck.results.model import Rank, ResultDocument, Series

Findings = Iterator[tuple[str, str]]

#: Copies between host and device, one by each rank, and their directions.
PLACED_COPIES = {"h2d": "one-way", "d2h": "one-way", "both": "both-ways"}
_OF_ALL_RANKS = (*COLLECTIVES, "exchange")
#: Messages of a pair of ranks, their directions and units.
PAIRS = {
    "bandwidth": ("one-way", "GB/s"),
    "bandwidth-both": ("both-ways", "GB/s"),
    "latency": ("one-way", "us"),
}

_SIDES: tuple[Literal["source", "destination"], ...] = ("source", "destination")


def messages(series: Series) -> int:
    """Return how many messages of ``bytes`` bytes count as moved by a series of ranks."""
    ways = 2 if series["direction"] == "both-ways" else 1
    pairs = len(series.get("ranks") or ()) // 2 if series["role"] == "sum" else 1
    return ways * pairs


def arrays(series: Series) -> int:
    """Return the largest number of arrays of ``bytes`` bytes in the results on all ranks."""
    if series["direction"] == "collective":
        return len(series.get("ranks") or ()) ** 2
    if series["operation"] == "latency":
        return 2  # there and back
    return messages(series)


def cores_text(cores: Sequence[int]) -> str:
    """Format one core, or the number of cores and the first."""
    if not cores:
        return "no core"
    return f"core {cores[0]}" if len(cores) == 1 else f"{len(cores)} cores from {cores[0]} on"


def rank_lines(document: ResultDocument) -> Iterator[str]:
    """Yield one line for each rank: its cores, NUMA domain and device."""
    addresses = {device["index"]: device["pci_address"] for device in document["devices"]}
    for rank in document.get("ranks") or ():
        device = rank["device"]
        address = f" ({addresses[device]})" if device is not None and addresses[device] else ""
        yield (
            f"rank {rank['rank']} on {rank['host']}: {cores_text(rank['cores'])}, NUMA domain "
            f"{rank['numa_domain']}, device {device}{address}"
        )


def of_the_ranks(document: ResultDocument) -> Findings:
    """Yield the place and the reason of each fault of the document's ranks."""
    ranks = document.get("ranks")
    known = "mpi" in document["versions"]
    if ranks is None:
        if known:
            yield "$.versions.mpi", "is set, but there are no ranks"
        return
    if not known:
        yield "$.versions.mpi", "is missing, but there are ranks"
    devices = {device["index"] for device in document["devices"]}
    for index, rank in enumerate(ranks):
        for field, reason in _of_a_rank(rank, index, devices, document):
            yield f"$.ranks[{index}].{field}", reason


def _of_a_rank(rank: Rank, index: int, devices: set[int], document: ResultDocument) -> Findings:
    if rank["rank"] != index:
        yield "rank", f"is {rank['rank']}, but ranks are in order from 0"
    for field, numbers in (("cores", rank["cores"]), ("visible_devices", rank["visible_devices"])):
        if len(set(numbers)) != len(numbers):
            yield field, "names one twice"
    for device in rank["visible_devices"]:
        if device not in devices:
            yield "visible_devices", f"device {device} is not among the document's devices"
    if rank["device"] is not None and rank["device"] not in rank["visible_devices"]:
        yield "device", f"device {rank['device']} is not among those that the rank sees"
    host = document["host"]
    if rank["host"] != host["hostname"]:
        return  # the domains of other machines are not in the document
    domains = {domain["index"]: set(domain["cores"]) for domain in host["numa_domains"]}
    if rank["memory_domain"] is not None and rank["memory_domain"] not in domains:
        domain = rank["memory_domain"]
        yield "memory_domain", f"NUMA domain {domain} is not among the host's"
    own = {index for index, cores in domains.items() if cores & set(rank["cores"])}
    found = own.pop() if len(own) == 1 else None
    if rank["numa_domain"] != found:
        said = "null" if rank["numa_domain"] is None else rank["numa_domain"]
        have = "several domains or none" if found is None else f"domain {found}"
        yield "numa_domain", f"is {said}, but the cores are in {have}"


def contradictions(series: Series, ranks: list[Rank] | None) -> Findings:
    """Yield the field and the reason of each fault of a series, with or without ranks."""
    members = series.get("ranks")
    experiment = series["experiment"]
    if members is None:
        needs = experiment in (*OF_MESSAGES, "E6") or series["engine"] == "mpi"
        if needs or series["direction"] == "collective":
            yield "ranks", f"is missing in a series of {experiment}"
        for field in ("datatype", "placement"):
            if series.get(field) is not None:
                yield field, "is set, but no ranks take part"
        return
    if ranks is None:
        yield "ranks", "is set, but the document has no ranks"
        return
    if len(set(members)) != len(members):
        yield "ranks", "names a rank twice"
    strangers = [member for member in members if member >= len(ranks)]
    if strangers:
        yield "ranks", f"rank {strangers[0]} is not among the document's ranks"
        return
    if (experiment == "E6") != (series.get("placement") is not None):
        word = "null" if experiment == "E6" else "set"
        yield "placement", f"is {word}, but the experiment is {experiment}"
    if (series["engine"] == "mpi") != (series.get("datatype") is not None):
        yield "datatype", f"does not fit the engine {series['engine']}"
    if (series["engine"] == "mpi") != (experiment in OF_MESSAGES):
        yield "engine", f"is {series['engine']}, but the experiment is {experiment}"
    elif experiment in OF_MESSAGES:
        yield from _of_messages(series, members, ranks)
    elif experiment == "E6":
        yield from _of_placed_copies(series, members, ranks)


def _devices(members: list[int], ranks: list[Rank]) -> list[int]:
    """Return the devices of ranks, each once, in order."""
    devices = (ranks[member]["device"] for member in members)
    return list(dict.fromkeys(device for device in devices if device is not None))


def _of_messages(series: Series, members: list[int], ranks: list[Rank]) -> Findings:
    operation = series["operation"]
    collective = operation in _OF_ALL_RANKS
    if not collective and operation not in PAIRS:
        yield "operation", f"{operation!r} is not an operation of {series['experiment']}"
        return
    direction, unit = ("collective", "us") if collective else PAIRS[operation]
    if series["direction"] != direction:
        yield "direction", f"is {series['direction']}, but {operation} is {direction}"
    if series["unit"] != unit:
        yield "unit", f"is {series['unit']}, but {operation} is in {unit}"
    if series["bytes_counted"] != "once":
        yield "bytes_counted", f"is {series['bytes_counted']}, but messages count once"
    if series["device"] is not None:
        yield "device", f"is {series['device']}, but messages have none"
    if collective and series["role"] != "single":
        yield "role", f"is {series['role']}, but {operation} is measured over all its ranks"
    if not collective and series["role"] != "sum" and len(members) != 2:
        yield "ranks", f"are {len(members)}, but {operation} needs two"
    if series["role"] == "sum" and len(members) % 2:
        yield "ranks", f"are {len(members)}, which is not a number of pairs"
    own = _devices(members, ranks)
    active = series["device_set"]
    if series["role"] == "share":
        if not set(own) <= set(active):
            yield "device_set", "lacks a device of the ranks that take part"
    elif active != own:
        yield "device_set", f"is {active}, but the devices of the ranks are {own}"
    alone = not collective and series["role"] != "sum"
    for member, side in zip(members, _SIDES, strict=False):
        place = series[side]
        if place["memory"] not in ("device", *OF_HOST):
            yield f"{side}.memory", f"is {place['memory']}, which no message has"
        holder = ranks[member]["device"] if alone and place["memory"] == "device" else None
        if place["device"] != holder:
            yield (
                f"{side}.device",
                f"is {place['device']}, but the device of rank {member} is {holder}",
            )


def _of_placed_copies(series: Series, members: list[int], ranks: list[Rank]) -> Findings:
    operation = series["operation"]
    if operation not in PLACED_COPIES:
        yield "operation", f"{operation!r} is not an operation of E6"
        return
    if series["direction"] != PLACED_COPIES[operation]:
        yield "direction", f"is {series['direction']}, but {operation} has another"
    if series["engine"] not in COPY_ENGINES:
        yield "engine", f"is {series['engine']}, but {operation} uses {' or '.join(COPY_ENGINES)}"
    if series["unit"] != "GB/s":
        yield "unit", f"is {series['unit']}, but {operation} is a bandwidth"
    if series["bytes_counted"] != "once":
        yield "bytes_counted", f"is {series['bytes_counted']}, but {operation} counts once"
    if series["batch"] != 1:
        yield "batch", f"is {series['batch']}, but a sample of {operation} is one copy"
    if len(members) != 1:
        yield "ranks", f"are {len(members)}, but a copy has one"
        return
    yield from _of_the_set(series, members[0], ranks)
    yield from _of_the_ends(series, ranks[members[0]])


def _of_the_set(series: Series, member: int, ranks: list[Rank]) -> Findings:
    """Yield faults of the set of devices that work at once: it must be that of all ranks."""
    device = ranks[member]["device"]
    role = "single" if len(ranks) == 1 else "share"
    if series["role"] != role:
        yield "role", f"is {series['role']}, but with {len(ranks)} rank(s) each is a {role}"
    if series["device"] is None or series["device"] != device:
        yield "device", f"is {series['device']}, but the device of rank {member} is {device}"
    everyone = _devices(list(range(len(ranks))), ranks)
    if series["device_set"] != everyone:
        active = series["device_set"]
        yield "device_set", f"is {active}, but the devices of all ranks are {everyone}"


def _of_the_ends(series: Series, rank: Rank) -> Findings:
    """Yield faults of a copy's source and destination: both are the rank's own memory."""
    ends: list[Literal["source", "destination"]] = ["source", "destination"]
    if series["operation"] == "d2h":
        ends.reverse()
    host, device = ends
    kinds = (series[host]["memory"], series[device]["memory"])
    if kinds[0] not in OF_HOST or kinds[1] != "device":
        kinds = (series["source"]["memory"], series["destination"]["memory"])
        yield "source", f"is {kinds[0]} to {kinds[1]}, which is not {series['operation']}"
        return
    if series[device]["device"] != series["device"]:
        place = series[device]["device"]
        yield f"{device}.device", f"is {place}, but the device of the series is {series['device']}"
    own = rank["memory_domain"]
    if own is not None and series[host]["numa_domain"] != own:
        found = series[host]["numa_domain"]
        yield f"{host}.numa_domain", f"is {found}, but memory of rank {rank['rank']} is on {own}"
