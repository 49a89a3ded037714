"""The third-party benchmarks that checks run: entries, launch plans, and series.

A check writes a plan, the launches of one node, as a file beside the result. Each command line
includes the launcher, so the file records everything that ran and can be run by hand. The tool's
parser (`tools.osu`, `tools.nccl`) reads the output of a launch. Each row becomes a series of one
sample: the tool's mean of `batch` operations.

A new tool of messages or collectives needs a parser with recorded outputs, and an entry in
:data:`BENCHMARKS` that makes series of its rows. Any other is a plain test (docs/extending.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from fabricheck.core.errors import (
    FabricheckError,
    OtherRunError,
    RanksApartError,
    WrongSettingError,
)
from fabricheck.core.models import StrictModel
from fabricheck.core.show import listed, numbered
from fabricheck.core.vocabulary import (
    BETTER,
    NCCL_COLLECTIVES,
    NCCL_PAIRS,
    OSU_COLLECTIVES,
    OSU_PAIRS,
    Datatype,
    DeviceRuntime,
    SeriesUnit,
)
from fabricheck.results.model import Place, ResultDocument, Series
from fabricheck.tools import nccl, osu
from fabricheck.tools.nccl import NcclResult, Network

#: The file in the launches' folder that describes the node: a document of a program.
FACTS = "facts.json"

#: The same for the state after the launches.
FACTS_AFTER = "facts-after.json"

#: The end of the name of a file that the library of a rank writes, after the launch, host and
#: process; and of the one with all of these, after the launch alone.
LIBRARY_LOG = ".nccl"

#: The schema's names of the data types of both tools.
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

#: The names that NCCL's and RCCL's plug-in for libfabric gives itself, older and newer.
LIBFABRIC = ("AWS Libfabric", "Libfabric")

#: The providers of libfabric that send by the kernel's network stack.
_OF_THE_KERNEL = ("tcp", "sockets", "udp", "net")

#: The most ranks that a sentence names.
_MOST_RANKS = 3

#: A transfer counts as beyond a cache if its arrays are at least this many times larger.
PAST_CACHES = 4


@dataclass(frozen=True)
class Found:
    """The result of one launch: its series (none if it only verifies), versions by name, notes."""

    series: tuple[Series, ...]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """A tool that checks run.

    name: in result documents, and among the features of environments. extra: the partition extra
    with the tool's settings there. The environment extra with the folder of its programs has the
    suffix ``_folder``, and ``folder`` describes that folder. path: the file of a program in that
    folder. operations: those of the series, by program. read: makes series of a launch's output
    with a document of the same node: for each row, `series_of` its `fields_of`; its errors are
    those of the parser, and of a run with other devices or another version than required. engine:
    what moves the data. pairs: its programs of two ranks (E9), and at_once those of several pairs
    at the same time; all others are
    collectives. collectives: the experiment of these. verifies_apart: whether it compares data in
    separate launches.
    """

    name: str
    extra: str
    folder: str
    path: Callable[[str], str]
    operations: Mapping[str, str]
    read: Callable[[Plan, Launch, str, ResultDocument], Found]
    engine: Literal["mpi", "rccl"]
    collectives: str
    pairs: Sequence[str] = ()
    at_once: Sequence[str] = ()
    verifies_apart: bool = False

    def experiment(self, program: str, nodes: int = 1) -> str:
        """Return the experiment of a program on one node or several."""
        if nodes > 1:
            return "E17"
        return "E9" if program in (*self.pairs, *self.at_once) else self.collectives


Count = Annotated[int, Field(gt=0)]
Index = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
Command = Annotated[str, Field(min_length=1)]


class Launch(StrictModel):
    """One launch of a program of the tool.

    name: of its output files, ``NAME.out`` and ``NAME.err``. command: the line for a shell,
    launcher and environment included. devices: those of the ranks, in rank order, one twice if two
    ranks share it; empty if buffers are on no device. threads: of a process that has all devices,
    one thread for each; 1 if one thread has them all. sizes: of messages, in bytes and in order.
    batch: number of operations in the tool's mean. verifies: whether it only compares data (OSU's
    -c, which changes the times). nodes: on which the ranks are, as many on each. limit_s: its time
    limit in s.
    """

    name: Name
    program: Name
    command: Command
    ranks: Count
    devices: list[Index]
    sizes: Annotated[list[Count], Field(min_length=1)]
    batch: Count
    threads: Count = 1
    verifies: bool = False
    nodes: Count = 1
    limit_s: Annotated[float, Field(gt=0)] = 60.0

    @property
    def what(self) -> str:
        """Describe it in a sentence, with the devices or the number of ranks."""
        if not self.devices:
            return f"{self.program} of {self.ranks} ranks"
        if len(set(self.devices)) < len(self.devices):
            return f"{self.program} of {self.ranks} ranks on device {self.devices[0]}"
        return f"{self.program} on {numbered('device', self.devices)}"

    @property
    def origin(self) -> str:
        """Describe the file of its output in a sentence."""
        return f"{self.name}.out ({self.what})"

    @property
    def measured(self) -> tuple[object, ...]:
        """Return the operation that it measures, or compares."""
        return (self.program, self.ranks, *self.devices, "sizes", *self.sizes)


class Plan(StrictModel):
    """All launches of one result document.

    buffers: the memory of the messages. accelerator: the accelerator that OSU's banner must name;
    ``None`` if OSU does not choose the buffers: in host memory, and on a simulated node, where a
    rank's host determines the memory. facts: the command that writes :data:`FACTS`: a program of
    this suite on the measured node. mpi_program: a program linked with the MPI whose version is
    recorded. library: the version that NCCL or RCCL must report, or its beginning; ``None`` accepts
    any. network: the network that it must report between nodes, or the provider of libfabric;
    provider: that of a fabric, where a plug-in for libfabric names one.
    """

    tool: str
    buffers: Literal["device", "host"]
    accelerator: DeviceRuntime | None = None
    facts: Command
    mpi_program: str | None = None
    library: str | None = None
    network: str | None = None
    provider: str | None = None
    launches: Annotated[list[Launch], Field(min_length=1)]

    @property
    def benchmark(self) -> Benchmark:
        """The entry of its tool."""
        return BENCHMARKS[self.tool]

    @model_validator(mode="after")
    def _is_verified(self) -> Plan:
        tool = BENCHMARKS.get(self.tool)
        if tool is None:
            raise ValueError(f"the tool {self.tool} is unknown; known are {listed(BENCHMARKS)}")
        verified = {launch.measured for launch in self.launches if launch.verifies}
        for launch in self.launches:
            if launch.program not in tool.operations:
                raise ValueError(f"{launch.program} of {self.tool} has no parser")
            if tool.verifies_apart and not launch.verifies and launch.measured not in verified:
                raise ValueError(f"no launch verifies what {launch.name} measures")
        return self


def _read_osu(plan: Plan, launch: Launch, text: str, facts: ResultDocument) -> Found:
    origin = launch.origin
    result = osu.parse(text, origin, launch.program, launch.sizes, verified=launch.verifies)
    if result.pairs is not None and 2 * result.pairs != launch.ranks:
        reason = f"{result.pairs} pairs were measured, but there are {launch.ranks} ranks"
        raise OtherRunError(origin, None, reason)
    if plan.accelerator is not None:
        osu.require_device_support(result, plan.accelerator)
    elif result.accelerator is not None:
        reason = f"the banner names {result.accelerator}, which was not requested"
        raise OtherRunError(origin, None, reason)
    versions = {plan.tool: result.version}
    if launch.verifies:
        return Found((), versions)
    datatype = DATATYPES.get(result.datatype or "")
    rows = []
    for row in result.rows:
        if row.iterations is not None and row.iterations != launch.batch:
            reason = (
                f"{row.iterations} iterations of {row.size} B were run, but {launch.batch} were "
                "requested"
            )
            raise OtherRunError(origin, None, reason)
        fields = fields_of(plan, launch, facts, row.size) | {"datatype": datatype}
        rows.append(series_of(fields, row.value, result.unit))
    return Found(tuple(rows), versions)


def _read_nccl(plan: Plan, launch: Launch, text: str, facts: ResultDocument) -> Found:
    if apart := _ranks_apart(plan, launch, text):
        raise apart
    result = nccl.parse(text, launch.origin, launch.program, launch.ranks, launch.sizes)
    for reason in _of_another_run(plan, launch, result, facts):
        raise OtherRunError(launch.origin, None, reason)
    if wrong := _other_network(plan, launch, result.network):
        raise wrong
    if silent := _without_network(plan, result):
        reason = f"the network must be {plan.network}, but none is named by "
        raise WrongSettingError(launch.origin, None, reason + listed(silent, _MOST_RANKS))
    series: list[Series] = []
    for row in result.rows:
        if row.size == 0:
            continue  # too small for an element per rank: nothing was moved
        fields = fields_of(plan, launch, facts, row.size)
        fields |= {"datatype": DATATYPES.get(row.datatype)}
        for in_place, timing in ((False, row.out_of_place), (True, row.in_place)):
            if timing is None:
                continue
            placed = fields | {"in_place": in_place}
            series.append(series_of(placed, timing.time_us, "us"))
            # 0.00 means below the tool's digits, and is not a bandwidth.
            if timing.busbw > 0:
                series.append(series_of(placed | {"bytes_counted": "bus"}, timing.busbw, "GB/s"))
    versions = {} if result.tests is None else {plan.tool: result.tests.split(" ")[-1]}
    versions |= {} if result.library is None else {"rccl": result.library}
    headers, library = result.headers, result.library
    others = headers and library and not re.match(rf"{re.escape(headers)}(?![.\d])", library)
    note = f"{result.tests} was built with headers of {headers}, and the library is {library}"
    notes = (note,) if others else ()
    return Found(tuple(series), versions | dict(result.stack), notes)


def _without_network(plan: Plan, result: NcclResult) -> list[str]:
    """Return the ranks that name no network, if one is required and any rank is known by name."""
    named = {network.process for network in result.network}
    ranks = [f"rank {device.rank} ({device.host})" for device in result.devices]
    if plan.network is None or named.isdisjoint(ranks):
        return []
    return [rank for rank in ranks if rank not in named]


def too_slow(plan: Plan, launch: Launch, text: str) -> FabricheckError | None:
    """Return why a launch did not finish in its time, where its output shows that.

    :param text: what it printed until then.
    """
    networks = nccl.networks_of(text)
    other = _other_network(plan, launch, networks) if networks else None
    return _ranks_apart(plan, launch, text) or other


def _ranks_apart(plan: Plan, launch: Launch, text: str) -> RanksApartError | None:
    """Return that each rank on several nodes ran a test of its own; None if one test ran."""
    if launch.nodes == 1 or nccl.tests_in(text) < 2:
        return None
    reason = (
        f"each of the {launch.ranks} ranks ran a test of its own: {plan.tool} is built without "
        "MPI, or with another MPI than the launcher's"
    )
    return RanksApartError(launch.origin, None, reason)


def _other_network(
    plan: Plan, launch: Launch, networks: Sequence[Network]
) -> WrongSettingError | None:
    """Return the first network of a rank that is not the required one; None without such a rank."""
    if plan.network is None:
        return None
    wrong = [network for network in networks if not _is_required(network, plan)]
    if wrong:
        name, is_provider = wrong[0].name, wrong[0].is_provider
        alike = [
            network.process
            for network in wrong
            if (network.name, network.is_provider) == (name, is_provider)
        ]
        says = "reports" if len(alike) == 1 else "report"
        reported = f"{listed(alike, _MOST_RANKS)} {says} "
        reported += f"the provider {name}" if is_provider else name
    elif not networks:
        reported = "the library reports none"
    elif plan.network.islower() and not any(network.is_provider for network in networks):
        reported = f"the library reports {networks[0].name}"
    else:
        return None
    reason = f"the network must be {plan.network}, but {reported}"
    return WrongSettingError(launch.origin, None, reason)


def _is_required(network: Network, plan: Plan) -> bool:
    """Whether a network is that of a plan: a provider has a name in lower case, others have not."""
    assert plan.network is not None
    by_provider = plan.network.islower()
    if network.is_provider:
        # Layers above a provider follow it: tcp;ofi_rxm.
        provider = network.name.partition(";")[0]
        required = plan.provider or (plan.network if by_provider else None)
        return provider == required if required else provider not in _OF_THE_KERNEL
    if by_provider or plan.network in LIBFABRIC:
        return network.name in LIBFABRIC
    return plan.network in network.name


def _of_another_run(
    plan: Plan, launch: Launch, result: NcclResult, facts: ResultDocument
) -> Iterator[str]:
    """Yield why an output of nccl-tests or rccl-tests is not that of the requested run."""
    if result.tests is not None and not result.tests.startswith(plan.tool):
        yield f"this is {result.tests}, not {plan.tool}"
    required, version = plan.library, result.library
    if required is not None and version is None:
        yield f"the library reports no version, but {required} is required"
    elif required is not None and not f"{version}.".startswith((f"{required}.", f"{required}-")):
        yield f"the library's version is {version}, but {required} is required"
    # A library that falls back to plain sockets between nodes is slow, and nothing else reports it.
    hosts = {device.host for device in result.devices}
    if plan.network is None and len(hosts) > 1:
        yield f"the ranks are on {len(hosts)} nodes, but no network is required between them"
    if len(hosts) != launch.nodes:
        yield f"the ranks are on {len(hosts)} nodes, but {launch.nodes} were requested"
    known = {each["index"]: each["pci_address"] for each in facts["devices"]}
    for index, device in zip(launch.devices, result.devices, strict=False):
        if index not in known:
            yield f"device {index} is not one of the node's"
            continue
        address = known[index]
        # Older versions print the bus alone (0x19), some without the function (0000:00:06).
        if address and ":" in device.pci and not address.lower().startswith(device.pci.lower()):
            yield f"rank {device.rank} is on {device.pci}, but device {index} is {address}"
    if result.threads != launch.threads:
        yield f"{result.threads} threads have the devices, but {launch.threads} were requested"
    if result.batch != launch.batch:
        yield f"{result.batch} operations are in a mean, but {launch.batch} were requested"


def fields_of(plan: Plan, launch: Launch, facts: ResultDocument, size: int) -> dict[str, Any]:
    """Return the fields common to the series of one message size, for any tool.

    The reader of a tool adds what only its output states (``datatype``), or changes a field.
    """
    devices = list(launch.devices)
    operation = plan.benchmark.operations[launch.program]
    pair = launch.program in plan.benchmark.pairs
    several = launch.program in plan.benchmark.at_once
    ways = 2 if operation == "bandwidth-both" else 1
    source: Place = {"memory": "host-pageable", "device": None, "numa_domain": None}
    destination = source
    if plan.buffers == "device":
        ends = devices if pair else [None, None]
        source = {"memory": "device", "device": ends[0], "numa_domain": None}
        destination = {"memory": "device", "device": ends[1], "numa_domain": None}
    return {
        "experiment": plan.benchmark.experiment(launch.program, launch.nodes),
        "operation": operation,
        "engine": plan.benchmark.engine,
        "batch": launch.batch,
        "role": "sum" if several else "single",
        "device": None,
        "device_set": list(dict.fromkeys(devices)),
        "ranks": _ranks(launch.ranks, several),
        "source": source,
        "destination": destination,
        "direction": ("one-way", "both-ways")[ways - 1] if pair or several else "collective",
        "bytes": size,
        "bytes_moved": size * ways * (launch.ranks // 2 if several else 1),
        "bytes_counted": "once",
        "regime": "memory" if 2 * size >= PAST_CACHES * _cache(plan, facts) else "cache",
        "block_size": None,
        "verification": {
            "bytes_checked": size * ways * (launch.ranks // 2 if several else 1),
            "errors": 0,
            "first_mismatch": None,
            "by": "tool",
        },
    }


def _ranks(number: int, several: bool) -> list[int]:
    """Return the ranks; of several pairs at once the pairs, each source before its destination."""
    if not several:
        return list(range(number))
    half = number // 2
    return [rank for source in range(half) for rank in (source, source + half)]


def _cache(plan: Plan, facts: ResultDocument) -> int:
    if plan.buffers == "host":
        return facts["host"]["last_level_cache_bytes"]
    return max((device["last_level_cache_bytes"] or 0 for device in facts["devices"]), default=0)


def series_of(fields: Mapping[str, Any], value: float, unit: SeriesUnit) -> Series:
    """Return a series of one sample: the mean that a tool reports.

    :param fields: all other fields, see `fields_of`.
    """
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
    return cast(Series, {**fields, **numbers})


OSU = Benchmark(
    name="osu",
    extra="osu",
    folder="the folder libexec/osu-micro-benchmarks of an OSU",
    path=lambda program: (
        f"mpi/{'collective' if program in OSU_COLLECTIVES.values() else 'pt2pt'}/{program}"
    ),
    operations={
        **{program: name for name, program in (*OSU_PAIRS.items(), *OSU_COLLECTIVES.items())},
        "osu_mbw_mr": "bandwidth",
    },
    read=_read_osu,
    engine="mpi",
    collectives="E10",
    pairs=tuple(OSU_PAIRS.values()),
    at_once=("osu_mbw_mr",),
    verifies_apart=True,
)

NCCL_TESTS = Benchmark(
    name="nccl-tests",
    extra="rccl",
    folder="that of nccl-tests",
    path=lambda program: f"{program}_perf",
    operations={
        program.removesuffix("_perf"): name
        for name, program in (*NCCL_COLLECTIVES.items(), *NCCL_PAIRS.items())
    },
    read=_read_nccl,
    engine="rccl",
    collectives="E11",
)

RCCL_TESTS = replace(NCCL_TESTS, name="rccl-tests", folder="that of rccl-tests")

#: The tools by name.
BENCHMARKS = {tool.name: tool for tool in (OSU, RCCL_TESTS, NCCL_TESTS)}
