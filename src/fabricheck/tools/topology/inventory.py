"""The description of a node by `inventory`: devices, links and domains, by its drivers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, Literal, cast

from fabricheck.core import models
from fabricheck.core.errors import InvalidFile, NotFoundError, PreventedBySetting
from fabricheck.core.show import enumerated
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_CODE, UNKNOWN
from fabricheck.node import format_cores
from fabricheck.results.model import Device, Host, node_name
from fabricheck.results.other_devices import divides
from fabricheck.tools.runner import EndedBadly, ProgramFailed, TimeLimit, last_words
from fabricheck.tools.topology import asking
from fabricheck.tools.topology.asking import PROGRAM as PROGRAM
from fabricheck.tools.topology.reported import Matrix, Mismatch, Reported, links_text, symmetric

SCHEMA, VERSION = "fabricheck-inventory", 1

#: Where the programs of a runtime with devices are, for commands that name no folder: the folder in
#: the variable of the sites, else where CMake builds them.
_BUILDS = {
    "FABRICHECK_ROCM_PROGRAMS": "build/rocm/bin",
    "FABRICHECK_CUDA_PROGRAMS": "build/cuda/bin",
}

#: The vendors of PCI's functions.
_PCI_VENDORS: Mapping[str, Literal["amd", "nvidia"]] = {"0x1002": "amd", "0x10de": "nvidia"}

#: The drivers of devices that a runtime uses; others, such as vfio-pci, keep a device from it.
_DRIVERS = frozenset({"amdgpu", "nvidia"})

#: KFD's kinds of links as types; another kind keeps its name.
_TYPES = {"xgmi": "XGMI", "pcie": "PCIE"}


def this_machine(programs: Path | None) -> dict[str, Any]:
    """Return the description of this machine.

    :param programs: the folder of the programs; None for those of the first build with devices.
    :raises NotFoundError: when there is no such program.
    :raises FabricheckError: as `ask`.
    """
    built = (os.environ.get(variable) or folder for variable, folder in _BUILDS.items())
    folders = [programs] if programs else [Path(folder) for folder in built]
    for folder in folders:
        if (folder / PROGRAM).is_file():
            return ask(folder, 60)
    named = enumerated(map(str, folders), last="or")
    raise NotFoundError(f"There is no program {PROGRAM} in {named}: build the programs.")


def ask(
    programs: Path, limit_s: float, options: Sequence[str] = (), *, needs_device: bool = True
) -> dict[str, Any]:
    """Run `inventory` and return its description, also of a node whose driver shows no device.

    :param programs: the folder of the programs.
    :param limit_s: in s.
    :param options: more options of the program, such as --passive.
    :param needs_device: whether a node without any device is an error.
    :raises PreventedBySetting: when a setting may hide the devices.
    :raises TimeLimit: when a driver does not answer.
    :raises ProgramFailed: when the runtime shows no device, and PCI none that its driver lost.
    :raises FabricheckError: when it fails otherwise.
    """
    return described(asking.ask(programs, limit_s, options), needs_device=needs_device)


def described(answer: asking.Answer, *, needs_device: bool = True) -> dict[str, Any]:
    """Return the description of a run of `inventory` that has ended.

    :raises FabricheckError: as `ask`.
    """
    program, ended = answer.program, answer.ended
    why = last_words(ended.err, ended.out).removeprefix(f"{PROGRAM}: ")
    if ended.code in (None, EXIT_CODE["time-limit"]):
        raise TimeLimit(f"The node's drivers did not answer within {answer.limit_s:g} s.")
    if ended.code == EXIT_CODE["setting"]:
        raise PreventedBySetting(f"{PROGRAM}: {why}.")
    content = None if answer.text is None else parse(answer.text, answer.place)
    if ended.code == EXIT_CODE["unsupported"] and content is not None:
        if needs_device and not lost_functions(content):
            raise ProgramFailed(f"{PROGRAM} shows no device: {why}.")
    elif ended.code != 0:
        if ended.code in EXIT_CODE.values():
            raise EndedBadly(f"{program} failed: {why}.", ended.code)
        ended.require_good(str(program), answer.limit_s, ended.err, ended.out)
    if content is None:
        raise ProgramFailed(f"{program} wrote no description.")
    return content


def parse(text: str, path: Path) -> dict[str, Any]:
    """Read a description from the text of a file.

    :raises InvalidFile: when it is none, or of another version.
    """
    try:
        content: dict[str, Any] = models.parse_json(text, path)
    except InvalidFile:
        raise InvalidFile(path, None, f"this is no description by {PROGRAM}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InvalidFile(path, None, f"this is no description by {PROGRAM}")
    if content.get("schema_version") != VERSION:
        raise InvalidFile(path, "schema_version", f"it is not {VERSION}")
    try:
        origin_of(content), content["at"], content["versions"], reason(content, "links")
        node_name(host_of(content)), devices_of(content)
        lost_functions(content), hidden_functions(content)
        if content["devices"] or content["links"]:
            reported(content, str(path))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidFile(path, None, f"this description by {PROGRAM} is damaged") from None
    return content


def origin_of(content: Mapping[str, Any]) -> str:
    """Return what the sentences of a comparison call the source of a description."""
    node = content["node"]
    if node is None:
        return "the driver"
    changed = f" with the overlay '{node['overlay']['name']}'" if node["overlay"] else ""
    return f"the simulated node{changed}"


def reported(content: Mapping[str, Any], origin: str | None = None) -> Reported:
    """Return what a description tells of a node, in the form that is compared with a model.

    :param origin: what to call its source; None as `origin_of`.
    :raises InvalidFile: when the devices are virtual.
    """
    devices: Sequence[Mapping[str, Any]] = content["devices"]
    origin = origin or origin_of(content)
    ways = {(way["from"], way["to"]): way for way in content["links"]}
    n = len(devices)
    if set(ways) != set(permutations(range(n), 2)):
        raise ValueError("the pairs are not those of the devices")

    def square(cell: Any, diagonal: Any) -> Matrix[Any]:
        return tuple(
            tuple(diagonal if a == b else cell(ways[a, b]) for b in range(n)) for a in range(n)
        )

    vendor = _vendor(content, origin)
    links = square(lambda way: way["links"], 0)
    typed = vendor == "amd" and all(way["kind"] for way in ways.values())
    peaks = {way["gb_per_s"] for way in ways.values()} - {None}
    domains = tuple(device["numa_domain"] for device in devices)
    cores = tuple(
        None if device["cores"] is None else format_cores(device["cores"]) for device in devices
    )
    addresses = tuple(device["pci_address"] for device in devices)
    whole = None not in addresses and len(set(addresses)) == n
    return Reported(
        origin=origin,
        vendor=vendor,
        count=n,
        links=symmetric(links) if all(None not in row for row in links) and n else None,
        link_peak_gbs=peaks.pop() if len(peaks) == 1 else None,
        link_types=square(_type, "SELF") if n and typed else None,
        numa=domains if n else None,
        cpus=cores if any(core is not None for core in cores) else None,
        pci=tuple(addresses) if whole and n else None,
        description=content,
    )


def _type(way: Mapping[str, Any]) -> str:
    """Return the type of a way; over other devices it is no link of the two."""
    if way["kind"] == "xgmi" and way["links"] == 0:
        return "XGMI over others"
    return _TYPES.get(way["kind"], str(way["kind"]))


def _vendor(content: Mapping[str, Any], origin: str) -> Literal["amd", "nvidia"]:
    for device in content["devices"]:
        if str(device["architecture"]).startswith("gfx"):
            return "amd"
        if str(device["architecture"]).startswith("sm_"):
            return "nvidia"
        raise InvalidFile(origin, None, f"its devices are {device['name']}, of no vendor")
    for function in content["pci_functions"] or ():
        if function["vendor"] in _PCI_VENDORS:
            return _PCI_VENDORS[function["vendor"]]
    raise InvalidFile(origin, None, "it has no device")


def devices_of(content: Mapping[str, Any]) -> list[Device]:
    """Return the devices of a description as a result document has them."""
    return [
        {
            "index": device["index"],
            "name": device["name"] or UNKNOWN,
            "arch": device["architecture"] or UNKNOWN,
            "pci_address": device["pci_address"],
            "pci_id": device.get("pci_id"),
            "pci_subsystem": device.get("pci_subsystem"),
            "unique_id": device.get("unique_id"),
            "memory_bytes": device["memory_bytes"],
            "compute_units": None,
            "last_level_cache_bytes": None,
            "numa_domain": device["numa_domain"],
        }
        for device in content["devices"]
    ]


def host_of(content: Mapping[str, Any]) -> Host:
    """Return the host of a description as a result document has it."""
    of_system = {"numa_domains": content["domains"], "numa_balancing": content["numa_balancing"]}
    return cast(Host, content["host"] | of_system)


def lost_functions(content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of devices that PCI shows and their driver lacks.

    Only those of the kind of the other devices. Not those that another driver, a mode or a control
    group keeps from the runtime.
    """
    functions = content["pci_functions"] or ()
    kinds = {
        (function["vendor"], function["device"]) for function in functions if function["indices"]
    }
    return [
        function["address"]
        for function in functions
        if function["in_driver"] is False
        and (not kinds or (function["vendor"], function["device"]) in kinds)
        and (
            function["driver"] is None
            or (function["accessible"] and function["driver"] in _DRIVERS)
        )
        and not divides(function["mode"])
    ]


def hidden_functions(content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of devices that a setting or a control group hides from the runtime."""
    functions = content["pci_functions"] or ()
    return [
        function["address"]
        for function in functions
        if not function["indices"] and (function["in_driver"] or function["accessible"] is False)
    ]


def closed_functions(content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of listed devices whose files this process may not open.

    Their drivers list all of a node to a container that has some of them.
    """
    functions = content["pci_functions"] or ()
    return [
        function["address"]
        for function in functions
        if function["indices"] and function["accessible"] is False
    ]


def reason(content: Mapping[str, Any] | None, fact: str) -> str | None:
    """Return why a description lacks the links or the NUMA domains; None if it does not say."""
    item = {"links": "links.links", "NUMA domains": "devices.numa_domain"}[fact]
    absent = () if content is None else content["absent"]
    return next((entry["why"] for entry in absent if entry["item"] == item), None)


def one_sided(content: Mapping[str, Any], origin: str) -> list[Mismatch]:
    """Return the pairs of which one direction has other links than the other.

    Through a switch the links of each direction are those of one device.
    """
    ways = {(way["from"], way["to"]): way for way in content["links"]}
    mismatches = []
    for a, b in combinations(range(len(content["devices"])), 2):
        if "nvswitch" in (ways[a, b]["kind"], ways[b, a]["kind"]):
            continue
        there, back = ways[a, b]["links"], ways[b, a]["links"]
        if None not in (there, back) and there != back:
            sentence = (
                f"Pair {a}-{b}: {count(there, 'link')} from {a} to {b}, {count(back, 'link')} "
                f"back, in {origin}."
            )
            mismatches.append(Mismatch(sentence, (a, b), lost=True))
    return mismatches


def unlike(content: Mapping[str, Any], origin: str) -> list[Mismatch]:
    """Return the links that differ where those of all devices should be alike.

    They should be to a switch, and where nearly all pairs have the same number of links. Maps with
    several classes of pairs need a node model.
    """
    ways = content["links"]
    n = len(content["devices"])
    if any(way["kind"] == "nvswitch" for way in ways):
        by_device: dict[int, int] = {}
        for way in ways:
            links = way["links"] if way["kind"] == "nvswitch" else 0
            by_device[way["from"]] = max(links, by_device.get(way["from"], 0))
        usual = max(by_device.values())
        return [
            Mismatch(
                f"Device {device}: {count(links, 'link')} to the switch, and {usual} of other "
                f"devices, in {origin}.",
                (device,),
                lost=True,
            )
            for device, links in sorted(by_device.items())
            if links < usual
        ]
    known = reported(content, origin).links
    if known is None:
        return []
    direct = {(a, b): known[a][b] for a, b in combinations(range(n), 2)}
    if len(direct) < 2:
        return []
    ((usual, alike),) = Counter(direct.values()).most_common(1)
    fewer = {pair: links for pair, links in direct.items() if links < usual}
    # One fault is of one device or one pair; more fewer pairs are another class.
    of_one = bool(fewer) and bool(set.intersection(*map(set, fewer)))
    if len(fewer) + alike != len(direct) or not of_one or 3 * len(fewer) > alike:
        return []
    return [
        Mismatch(
            f"Pair {a}-{b}: {links_text(links)}, and {usual} of each other pair, in {origin}.",
            (a, b),
            found=links,
            lost=True,
        )
        for (a, b), links in fewer.items()
    ]
