"""A vendor's loopback on each NIC in turn: its bandwidth to itself, over its switch or within it.

cxi_gpu_loopback_bw has a Slingshot NIC write to itself, by the edge switch and back. Source of the
format: HPE's "Loopback performance test" (HewlettPackard/shs-docs, fabric_validation/
loopback_performance_test.md). perftest's ib_write_bw with ``--report_gbits`` writes by RDMA, here
to the same NIC: on InfiniBand that stays within it, so it tells of PCIe and memory, and not of the
cable. Source of the format: perftest (linux-rdma/perftest, src/perftest_parameters.h), and outputs
that users published. Each prints one table with one row below its title; neither compares data.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import GarbledOutput, NotFoundError, UsageError
from fabricheck.core.lines import Line, Printed, agree, ended_lines_of, printed
from fabricheck.tools import cxi_service
from fabricheck.tools.nics.reading import Kind, SeenNic
from fabricheck.tools.runner import run

_CXI_TITLE, _IB_TITLE = "CXI Loopback Bandwidth Test", "RDMA_Write BW Test"
_CXI_HEADER = ["RDMA", "Size[B]", "Writes", "BW[Gb/s]", "PktRate[Mpkt/s]"]
_IB_HEADER = [
    "#bytes", "#iterations", "BW", "peak[Gb/sec]", "BW", "average[Gb/sec]", "MsgRate[Mpps]"
]  # fmt: skip

_FIELD = re.compile(r"\s*([A-Z][\w() ]*?)\s*: (\S.*)")
_DEVICE = re.compile(r"\s*Dual-port\s+: O(?:N|FF)\s+Device\s+: (\S+)")

#: The bits of data in a packet of CXI, and the part by which both rates of a row may differ.
_PACKET_BITS, _APART = 8 * 2048, 0.03

#: Words of lines of ib_write_bw between header and row: the clock of the processor varies.
_REMARKS = ("Conflicting", "Warning:")


def parse_cxi(text: str, origin: str, nic: str) -> float:
    """Return the Gb/s that ``cxi_gpu_loopback_bw --device NIC`` printed; it states no version.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :raises GarbledOutput: when it is cut off or damaged.
    :raises OtherRunError: when it is of another NIC.
    """
    lines = _below(_CXI_TITLE, text, origin)
    fields: dict[str, tuple[Line, str]] = {}
    while lines and (match := _FIELD.fullmatch(lines[0].text)):
        if match[1] in fields:
            raise lines[0].garbled(f"it states '{match[1]}' twice")
        fields[match[1]] = (lines.pop(0), match[2].strip())
    for name in ("Device", "TX Mem", "Write Size (B)"):
        if name not in fields:
            raise GarbledOutput(origin, None, f"it does not state '{name}'")
    line, device = fields["Device"]
    if device != nic:
        raise line.other_run(f"it is of {device}, not of {nic}")
    while lines and not lines[0].text.strip().strip("-"):
        lines.pop(0)
    if not lines or lines[0].words != _CXI_HEADER:
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    row, (_, _, bandwidth, packets) = _only_row(lines[1:], 4, origin)
    size_line, size = fields["Write Size (B)"]
    if not size.isdecimal() or row.words[0] != size:
        raise size_line.garbled(f"writes of {size} bytes do not fit the row's {row.words[0]}")
    # In HPE's own listing one row of six differs from the others by 2 %.
    apart = abs(packets.value * _PACKET_BITS / 1000 - bandwidth.value)
    if bandwidth.value <= 0 or apart > _APART * bandwidth.value:
        raise row.garbled("its bandwidth and its rate of packets contradict each other")
    return bandwidth.value


def parse_ib(text: str, origin: str, nic: str, size: int) -> float:
    """Return the Gb/s that ``ib_write_bw -d NIC --report_gbits`` of one size printed.

    The peak of a run with a duration (``-D``) is 0.00, so only the average is read.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :param size: of a message, in bytes.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    :raises OtherRunError: when it is of another NIC or size.
    """
    lines = _below(_IB_TITLE, text, origin)
    devices = [(line, match) for line in lines if (match := _DEVICE.fullmatch(line.text))]
    if len(devices) != 1:
        raise GarbledOutput(origin, None, "it does not name one device")
    line, match = devices[0]
    if match[1] != nic:
        raise line.other_run(f"it is of {match[1]}, not of {nic}")
    heads = [at for at, line in enumerate(lines) if line.words[0] == _IB_HEADER[0]]
    if len(heads) != 1 or lines[heads[0]].words != _IB_HEADER:
        raise GarbledOutput(origin, None, "it has no header with bandwidths in Gb/s")
    below = [line for line in lines[heads[0] + 1 :] if line.words[0] not in _REMARKS]
    row, (_, _, _, average, rate) = _only_row(below, 5, origin)
    if int(row.words[0]) != size:
        raise row.other_run(f"messages have {row.words[0]} bytes, not {size}")
    bits = 8 * size / 1000
    by_messages = bits * rate.low, bits * rate.high
    if average.value <= 0 or not agree((average.low, average.high), by_messages):
        raise row.garbled("its bandwidth and its rate of messages contradict each other")
    return average.value


def _below(title: str, text: str, origin: str) -> list[Line]:
    lines = ended_lines_of(text, origin)
    start = next((at for at, line in enumerate(lines) if line.text.strip() == title), None)
    if start is None:
        raise GarbledOutput(origin, None, f"it has no '{title}'")
    return list(lines[start + 1 :])


def _only_row(lines: Sequence[Line], cells: int, origin: str) -> tuple[Line, list[Printed]]:
    """Return the one row of a table, which a line of hyphens ends, and its numbers."""
    table = [line for line in lines if line.text.strip().strip("-")]
    closed = bool(lines) and not lines[-1].text.strip().strip("-")
    if len(table) != 1 or not closed:
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    (row,) = table
    numbers = [number for number in map(printed, row.words) if number is not None]
    whole = row.words[0] + row.words[1] if len(row.words) > 1 else ""
    if len(row.words) != cells or len(numbers) != cells or not whole.isdecimal():
        raise row.garbled(f"it is no row of {cells} numbers")
    return row, numbers


#: The size of a message of ib_write_bw in bytes, as in Azure's checks, and its duration in s.
_IB_BYTES, _IB_SECONDS = 1 << 20, 5


@dataclass(frozen=True)
class _Tool:
    """A loopback.

    kind: of the NICs that it measures. provider: of the fabrics that have such NICs.
    """

    kind: Kind
    provider: str
    command: Callable[[str, str], str]
    parse: Callable[[str, str, str], float]


def _cxi_command(tool: str, nic: str) -> str:
    """Return a line with the service that Slurm gave this step; by default the tool takes 1."""
    service = cxi_service.step_service(nic)
    return shlex.join([tool, "--device", nic, *(["--svc-id", service] if service else [])])


def _ib_command(tool: str, nic: str) -> str:
    """Return a line that starts the server, and the client until it has a connection."""
    test = shlex.join([tool, "-d", nic, "-F", "--report_gbits", "-s", str(_IB_BYTES),
                       "-D", str(_IB_SECONDS), "-p", "18517"])  # fmt: skip
    client = f"found=$({test} localhost 2>&1) && break"
    tries = f"for i in 1 2 3 4 5 6; do sleep 0.5; kill -0 $! || exit 1; {client}; done"
    return f'{test} >/dev/null 2>&1 & {tries}; echo "$found"; wait $!'


#: The tools by name.
TOOLS = {
    "cxi_gpu_loopback_bw": _Tool(
        "cxi",
        "cxi",
        _cxi_command,
        parse_cxi,
    ),
    "ib_write_bw": _Tool(
        "infiniband",
        "verbs",
        _ib_command,
        lambda text, origin, nic: parse_ib(text, origin, nic, _IB_BYTES),
    ),
}


def loopback_of(provider: str | None) -> str | None:
    """Return the loopback of NICs of a fabric's provider; None where none is known."""
    return next((name for name, tool in TOOLS.items() if tool.provider == provider), None)


def require_installed(tool: str) -> None:
    """Refuse a loopback that this machine lacks.

    :param tool: its path, or its name in the PATH.
    :raises NotFoundError: with its name.
    """
    if shutil.which(tool) is None:
        raise NotFoundError(f"There is no program {tool} on this machine.")


def loopback(tool: str, nic: SeenNic, limit_s: float) -> float:
    """Run a loopback on one NIC; return the Gb/s that it reached in writing to itself.

    :param tool: its path, or its name in the PATH.
    :param limit_s: its time limit, in s.
    :raises UsageError: when it is none of `TOOLS`, or not of such a NIC.
    :raises WrongSettingError: when no CXI service lets it use the NIC.
    :raises InvalidInputError: when it fails, or its output is unusable.
    :raises TimeLimit: when the time limit passed.
    """
    name = Path(tool).name
    if name not in TOOLS:
        raise UsageError(f"There is no loopback {name}; known are {', '.join(TOOLS)}.")
    found = TOOLS[name]
    if nic.kind != found.kind:
        raise UsageError(f"{name} measures NICs of {found.kind}; {nic.name} is one of {nic.kind}.")
    origin = f"{name} of {nic.name}"
    done = run(["/bin/sh", "-c", found.command(tool, nic.name)], limit_s)
    cxi_service.require(origin, done.code, done.err, done.out)
    done.require_good(f"{origin}: it", limit_s, done.err, done.out)
    return found.parse(done.out, origin, nic.name)
