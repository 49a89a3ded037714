"""Series of a result document made of the rows that another tool printed.

A row is one sample: the mean that the tool reports, of `batch` operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabricheck.core.errors import GarbledOutput, OtherRunError
from fabricheck.core.vocabulary import BETTER, Datatype, SeriesUnit
from fabricheck.results.model import Place, ResultDocument, Series, Verification
from fabricheck.tools.outputs import nccl, osu
from fabricheck.tools.outputs.nccl import NcclDevice, NcclResult
from fabricheck.tools.outputs.nccl_rows import Timing
from fabricheck.tools.plan import NCCL_OPERATIONS, OSU_OPERATIONS, PAIRS, Launch, Plan

#: The words of the schema for the data types of both tools.
DATATYPES: Mapping[str, Datatype] = {
    "MPI_CHAR": "byte",
    "MPI_BYTE": "byte",
    "MPI_INT": "int32",
    "MPI_FLOAT": "float",
    "MPI_DOUBLE": "double",
    "int8": "byte",
    "int32": "int32",
    "float": "float",
    "double": "double",
}

#: The arrays of a transfer are past a cache that they are at least so many times larger than.
PAST_CACHES = 4


@dataclass(frozen=True)
class Found:
    """What one launch gave: its series (none of one that only verifies), and versions by name."""

    series: tuple[Series, ...]
    versions: Mapping[str, str]


def read(plan: Plan, launch: Launch, text: str, facts: ResultDocument, origin: str) -> Found:
    """Read the output of one launch.

    :param facts: a document of the same node: its devices and caches.
    :param origin: the file, for errors.
    :raises FabricheckError: as the parsers of `tools.outputs` do, and when a run was of other
        devices, or of another version than asked for.
    """
    if plan.tool == "osu":
        return _of_osu(plan, launch, text, facts, origin)
    return _of_nccl(plan, launch, text, facts, origin)


def _of_osu(plan: Plan, launch: Launch, text: str, facts: ResultDocument, origin: str) -> Found:
    sizes = launch.sizes
    result = osu.parse(text, origin, launch.program, sizes, verified=launch.verifies)
    if plan.accelerator is not None:
        osu.require_device_support(result, plan.accelerator)
    elif result.accelerator is not None:
        reason = f"the banner names {result.accelerator}, which was not asked for"
        raise OtherRunError(origin, None, reason)
    versions = {"osu": result.version}
    if launch.verifies:
        return Found((), versions)
    datatype = DATATYPES.get(result.datatype or "")
    rows = []
    for row in result.rows:
        if row.iterations is not None and row.iterations != launch.batch:
            reason = f"{row.iterations} iterations of {row.size} B, and {launch.batch} asked for"
            raise OtherRunError(origin, None, reason)
        about = _about(plan, launch, facts, row.size) | {
            "operation": OSU_OPERATIONS[launch.program],
            "engine": "mpi",
            "datatype": datatype,
            "batch": launch.batch,
        }
        rows.append(_series(about, row.value, result.unit))
    return Found(tuple(rows), versions)


def _of_nccl(plan: Plan, launch: Launch, text: str, facts: ResultDocument, origin: str) -> Found:
    result = nccl.parse(text, origin, launch.program, launch.ranks, launch.sizes)
    _same_library(plan, result)
    _same_network(plan, result)
    if plan.buffers == "device":
        for index, device in zip(launch.devices, result.devices, strict=True):
            _same_device(index, device, facts, origin)
    given = result.parameters.iterations * result.parameters.aggregated
    if given != launch.batch:
        reason = f"{given} operations are in a mean, and {launch.batch} were asked for"
        raise OtherRunError(origin, None, reason)
    series: list[Series] = []
    for row in result.rows:
        if row.size == 0:
            continue  # too small for an element of each rank: nothing was moved
        about = _about(plan, launch, facts, row.size) | {
            "operation": NCCL_OPERATIONS[launch.program],
            "engine": "rccl",
            "datatype": DATATYPES.get(row.datatype),
            "batch": launch.batch,
        }
        for in_place, timing in ((False, row.out_of_place), (True, row.in_place)):
            if timing is not None:
                series += _of_a_timing(about | {"in_place": in_place}, timing)
    return Found(tuple(series), dict(_versions(result)))


def _of_a_timing(about: dict[str, Any], timing: Timing) -> Iterator[Series]:
    yield _series(about, timing.time_us, "us")
    # 0.00 is below the digits that the tool prints, and no bandwidth.
    if timing.busbw > 0:
        yield _series(about | {"bytes_counted": "bus"}, timing.busbw, "GB/s")


def _versions(result: NcclResult) -> Iterator[tuple[str, str]]:
    if result.tests is not None:
        yield "tests", result.tests
    if result.library is not None:
        yield "rccl", result.library
    yield from result.stack


def _same_library(plan: Plan, result: NcclResult) -> None:
    if result.tests is not None and not result.tests.startswith(plan.tool):
        raise OtherRunError(result.origin, None, f"this is {result.tests}, not {plan.tool}")
    if plan.library is None:
        return
    found = result.library
    if found is None:
        reason = f"the library tells no version, and {plan.library} is required"
        raise OtherRunError(result.origin, None, reason)
    if found != plan.library and not found.startswith((f"{plan.library}.", f"{plan.library}-")):
        reason = f"the library is of version {found}, and {plan.library} is required"
        raise OtherRunError(result.origin, None, reason)


def _same_network(plan: Plan, result: NcclResult) -> None:
    """Across nodes a library that falls back to plain sockets is slow, and nothing else says so."""
    hosts = {device.host for device in result.devices}
    if plan.network is None:
        if len(hosts) > 1:
            reason = f"the ranks are on {len(hosts)} nodes, and no network is named to be required"
            raise OtherRunError(result.origin, None, reason)
        return
    if not any(plan.network in told for told in result.network):
        told = " and ".join(result.network) or "none"
        reason = f"the network is {plan.network} where required, and the library tells {told}"
        raise OtherRunError(result.origin, None, reason)


def _same_device(index: int, device: NcclDevice, facts: ResultDocument, origin: str) -> None:
    known = {one["index"]: one["pci_address"] for one in facts["devices"]}
    if index not in known:
        raise GarbledOutput(origin, None, f"device {index} is none of the node's")
    address = known[index]
    # Older versions print the bus alone (0x19), some without the function (0000:00:06).
    if address is None or ":" not in device.pci:
        return
    if not address.lower().startswith(device.pci.lower()):
        reason = f"rank {device.rank} is on {device.pci}, and device {index} is {address}"
        raise OtherRunError(origin, None, reason)


def _about(plan: Plan, launch: Launch, facts: ResultDocument, size: int) -> dict[str, Any]:
    """Return what the series of one size have in common, whatever tool measured them."""
    devices = list(launch.devices)
    pair = launch.program in PAIRS
    source: Place = {"memory": "host-pageable", "device": None, "numa_domain": None}
    destination = source
    if plan.buffers == "device":
        ends = devices if pair else [None, None]
        source = {"memory": "device", "device": ends[0], "numa_domain": None}
        destination = {"memory": "device", "device": ends[1], "numa_domain": None}
    experiment = "E11" if plan.tool != "osu" else "E9" if pair else "E10"
    return {
        "experiment": experiment,
        "role": "single",
        "device": None,
        "device_set": devices,
        "ranks": list(range(launch.ranks)),
        "source": source,
        "destination": destination,
        "direction": "one-way" if pair else "collective",
        "bytes": size,
        "bytes_moved": size,
        "bytes_counted": "once",
        "regime": "memory" if 2 * size >= PAST_CACHES * _cache(plan, facts) else "cache",
        "block_size": None,
        "verification": _verification(size),
    }


def _verification(size: int) -> Verification:
    return {"bytes_checked": size, "errors": 0, "first_mismatch": None, "by": "tool"}


def _cache(plan: Plan, facts: ResultDocument) -> int:
    if plan.buffers == "host":
        return facts["host"]["last_level_cache_bytes"]
    return max((one["last_level_cache_bytes"] or 0 for one in facts["devices"]), default=0)


def _series(about: Mapping[str, Any], value: float, unit: SeriesUnit) -> Series:
    numbers: dict[str, Any] = {
        "unit": unit,
        "better": BETTER[unit],
        "samples": [value],
        "median": value,
        "mad": 0.0,
        "ci95": None,
        "relative_half_width": None,
        "host_clock": None,
        "noisy": False,
    }
    whole: Series = {**about, **numbers}  # type: ignore[typeddict-item]
    return whole
