"""Questions about a result document and its series: who measured, between what, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fabricheck.core.show import listed
from fabricheck.core.text import count, ranges
from fabricheck.core.vocabulary import JUDGED_BY_SUM
from fabricheck.results.model import Difference, ResultDocument, Series

if TYPE_CHECKING:
    from fabricheck.references.rules import TransferKind

#: What the noise of a series is that of, from one session to the next.
Noise = Literal["devices", "pinned", "pinned at once", "moved by the host", "latency", "host"]

#: The sizes of copies of which the start takes a good part, in bytes by their names as options have
#: them.
SMALL_COPIES: Mapping[str, int] = {
    "64KiB": 64 << 10,
    "256KiB": 256 << 10,
    "1MiB": 1 << 20,
    "4MiB": 4 << 20,
}

#: The experiment whose series are of several nodes.
BETWEEN_NODES = "E17"

#: Columns and their values.
Columns = tuple[tuple[str, Any], ...]

#: Some devices, and their links or their NUMA domain; None where another property differs.
Place = tuple[frozenset[int], int | None]


def has_runtime(document: ResultDocument) -> bool:
    """Whether the program used a runtime: `topology` and `nics` report what others say."""
    return document["program"]["name"] not in ("topology", "nics")


def place_of(difference: Difference) -> Place:
    """Return the place of a difference: the pair and its links, or the device and its domain."""
    return frozenset(difference["devices"]), difference["found"]


def is_from_tool(document: ResultDocument) -> bool:
    """Whether a document was made of a third-party tool's output (``results record``)."""
    return bool(document["options"].get("tool") == document["program"]["name"])


def is_judged_by_sum(series: Series) -> bool:
    """Whether the series is a share of which only the sum is judged."""
    return series["role"] == "share" and series["experiment"] in JUDGED_BY_SUM


def is_too_noisy(series: Series) -> bool:
    """Whether a run with this series must end as too noisy.

    Noise is only reported within caches, for a share whose sum is judged, and for work beside other
    work, where either may start first.
    """
    reported_only = is_judged_by_sum(series) or series["role"] == "beside"
    return series["noisy"] and series["regime"] == "memory" and not reported_only


def transfer_kind(
    *,
    unit: str | None,
    engine: str | None,
    movement: str | None,
    memories: Iterable[str | None],
    role: str | None,
    direct: bool,
    between_nodes: bool = False,
    both: bool = False,
    several: bool = False,
    size: int | None = None,
) -> TransferKind:
    """Return the kind of transfer of a series or a metric, as named in the rules file.

    :param direct: whether the devices of a pair have a link of their own.
    :param both: of messages between nodes, whether they go both ways at once.
    :param several: of a share between devices, whether several pairs work at once.
    :param size: the bytes of each; None where they are the most of several.
    """
    ends = set(memories)
    pinned = bool(ends & {"host-pinned", "host-noncoherent"})
    if unit == "us" and engine == "copy-engine" and pinned:
        return "host_latency"
    if unit == "us":
        return "message_latency" if engine == "mpi" else "latency"
    if size in SMALL_COPIES.values() and engine == "copy-engine" and role == "single":
        return "small_host_copy" if pinned else "small_copy"
    if between_nodes:
        return "nic_both_ways" if both else "nic"
    if movement in ("page-migration", "prefetch"):
        return "migration"
    if "host-pageable" in ends:
        return "pageable"
    if ends & {"host-pinned", "host-noncoherent", "managed"}:
        return _HOST_LINKS.get(role or "", "host_link")
    if "peer" not in ends and engine != "mpi":
        return "kernel"
    if several and engine != "mpi":
        return "devices_at_once"
    if engine == "copy-engine":
        return "copy_engine"
    if not direct:
        return "kernel_over_several_links"
    return "message" if engine == "mpi" else "kernel"


#: The kind of a transfer of page-locked host memory by its role, where it is not alone.
_HOST_LINKS: Mapping[str, TransferKind] = {
    "share": "host_links_at_once",
    "beside": "host_links_at_once",
    "sum": "host_link_both_ways",
}

#: By kind what its noise is that of, if not that of devices.
_NOISE: Mapping[TransferKind, Noise] = {
    "latency": "latency",
    "message_latency": "latency",
    "host_latency": "latency",
    "small_copy": "latency",
    "small_host_copy": "latency",
    "host_link": "pinned",
    "host_links_at_once": "pinned at once",
    "host_link_both_ways": "pinned at once",
}


def kind_of_series(series: Series, direct: bool = True) -> TransferKind:
    """Return the kind of transfer of a series; see `transfer_kind`."""
    return transfer_kind(
        unit=series["unit"],
        engine=series["engine"],
        movement=series.get("movement"),
        memories=(series["source"]["memory"], series["destination"]["memory"]),
        role=series["role"],
        direct=direct,
        between_nodes=series["experiment"] == BETWEEN_NODES,
        both=series["operation"] == "bandwidth-both",
        several=several_at_once(series),
        size=series["bytes"],
    )


def noise(series: Series) -> Noise:
    """Return what the noise of a series is that of, but for the runtime host."""
    memories = {series["source"]["memory"], series["destination"]["memory"]}
    if memories & {"host-pageable", "managed"}:
        return "moved by the host"
    if series["regime"] == "cache":
        return "latency"  # small arrays measure launches
    kind = _NOISE.get(kind_of_series(series), "devices")
    return "pinned at once" if kind == "pinned" and series["direction"] != "one-way" else kind


def device_pair(series: Series) -> list[int]:
    """Return the two ends of a transfer between two devices; otherwise the devices at work.

    Each series of pairs that work at the same time has its own ends and the set of all.
    """
    ends = (series["source"]["device"], series["destination"]["device"])
    known = [end for end in ends if end is not None]
    if len({*known}) == 2 and (series["engine"] == "mpi" or several_at_once(series)):
        return known
    return series["device_set"]


def several_at_once(series: Series) -> bool:
    """Whether it is the share of one of several pairs, not of one of both directions of a pair."""
    return series["role"] == "share" and len(series["device_set"]) > 2


def host_domains(series: Series) -> list[int]:
    """Return the NUMA domains in which the series' host memory was verified to be, in order."""
    domains = {series[side]["numa_domain"] for side in ("source", "destination")}
    return sorted(domain for domain in domains if domain is not None)


def members(series: Series) -> tuple[str, str]:
    """Return who takes part in a series, as a noun and numbers: pair, 0 to 1.

    Of a share the numbers name all that work at the same time, too: device, 0 of 0-7.
    """
    device, devices, ranks = series["device"], series["device_set"], series.get("ranks") or []
    together = series["role"] == "sum" or series["direction"] == "collective"
    working = devices
    if not together:
        ends = [series[side]["device"] for side in ("source", "destination")]
        known = [end for end in ends if end is not None]
        if len({*known}) == 2:
            working = known
        elif series["role"] != "single" and device is not None:
            working = [device]
    others = f" of {ranges(devices)}" if {*devices} - {*working} else ""
    noun, working = ("device", working) if working else ("rank", ranks)
    if len(working) == 2 and not together:
        noun = "pair" if noun == "device" else "ranks"
        return noun, f"{working[0]} to {working[1]}{others}"
    if len(working) == 1 and len(ranks) == 1 and noun == "device":
        noun = f"rank {ranks[0]}, device"
    return noun if len(working) == 1 else f"{noun}s", ranges(working) + others


class SeriesKey(NamedTuple):
    """What was done, by whomever: what series share that are compared with each other.

    All but the members and their places, the size, and the variant of a kernel.
    """

    experiment: str
    operation: str
    role: str
    engine: str
    direction: str
    source_memory: str
    destination_memory: str
    movement: str | None
    placement: str | None
    datatype: str | None
    in_place: bool | None
    unit: str
    bytes_counted: str
    devices: int
    ranks: int


def series_key(series: Series) -> SeriesKey:
    """Return what a series shares with those that it is compared with."""
    return SeriesKey(
        experiment=series["experiment"],
        operation=series["operation"],
        role=series["role"],
        engine=series["engine"],
        direction=series["direction"],
        source_memory=series["source"]["memory"],
        destination_memory=series["destination"]["memory"],
        movement=series.get("movement"),
        placement=series.get("placement"),
        datatype=series.get("datatype"),
        in_place=series.get("in_place"),
        unit=series["unit"],
        bytes_counted=series["bytes_counted"],
        devices=len(series["device_set"]),
        ranks=len(series.get("ranks") or ()),
    )


class SharesKey(NamedTuple):
    """What shares that were measured at the same time have in common, with their sum."""

    experiment: str
    operation: str
    engine: str
    bytes: int
    block_size: int | None
    variant: str
    devices: tuple[int, ...]
    placement: str | None
    datatype: str | None
    memories: frozenset[str]
    domains: frozenset[int | None] | None


def shares_key(series: Series) -> SharesKey:
    """Return what a share has in common with those that were measured at the same time.

    NUMA domains tell shares apart only where they are measured (E2, E4).
    """
    ends = (series["source"], series["destination"])
    domains = None
    if series["experiment"] in ("E2", "E4"):
        domains = frozenset(end["numa_domain"] for end in ends)
    return SharesKey(
        experiment=series["experiment"],
        operation=series["operation"],
        engine=series["engine"],
        bytes=series["bytes"],
        block_size=series["block_size"],
        variant=kernel_variant(series),
        devices=tuple(series["device_set"]),
        placement=series.get("placement"),
        datatype=series.get("datatype"),
        memories=frozenset(end["memory"] for end in ends),
        domains=domains,
    )


def kernel_variant(series: Series) -> str:
    """Return how a kernel differs from the default, as the programs print it; empty if not."""
    elements, grid = series.get("elements") or 1, series.get("grid")
    parts = [f"{elements} elements a thread"] if elements > 1 else []
    parts += ["streaming loads"] if series.get("loads") == "streaming" else []
    parts += [count(grid, "block")] if grid is not None else []
    return listed(parts)
