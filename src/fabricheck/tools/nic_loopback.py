"""A vendor's loopback on each NIC in turn: its bandwidth to itself, over its switch or within it.

cxi_gpu_loopback_bw has a Slingshot NIC write to itself, by the edge switch and back. Source of the
format: HPE's "Loopback performance test" (HewlettPackard/shs-docs, fabric_validation/
loopback_performance_test.md). perftest's ib_write_bw with ``--report_gbits`` writes by RDMA, here
to the same NIC: on InfiniBand that stays within it, so it tells of PCIe and memory, and not of the
cable. Source of the format: perftest (linux-rdma/perftest, src/perftest_parameters.h), and outputs
that users published. Each prints one table with one row below its title; neither compares data.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricheck.core.errors import GarbledOutput, NotFoundError, OtherRunError, UsageError
from fabricheck.core.lines import agree, ended_lines_of, printed
from fabricheck.core.show import listed
from fabricheck.results.model import NodeNic
from fabricheck.tools.runner import run

#: The time limit of the loopback of one NIC, in s.
_LIMIT_S = 60.0

#: A number of a table, and the two that count.
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_COUNT = rf"(?P<rate>{_NUMBER})\s+(?P<messages>{_NUMBER})"

#: The lines from a title to the end: the NIC, the size of a write twice, and one row of numbers.
_CXI = rf"""\s*CXI Loopback Bandwidth Test
(?:.*: .*\n)*?\s*Device\s+: (?P<nic>\S+)
(?:.*: .*\n)*?\s*TX Mem\s+: \S+
(?:.*: .*\n)*?\s*Write Size \(B\)\s+: (?P<stated>[0-9]+)
(?:.*: .*\n)*-+
RDMA Size\[B\]\s+Writes\s+BW\[Gb/s\]\s+PktRate\[Mpkt/s\]
\s*(?P=stated)\s+[0-9]+\s+{_COUNT}
-+"""

#: Below the header it may tell that the clock of the processor varies.
_REMARKS = r"(?:(?:Conflicting|Warning:).*\n)*"
_IB = rf"""\s*RDMA_Write BW Test
(?:.*\n)*?\s*Dual-port\s+: O(?:N|FF)\s+Device\s+: (?P<nic>\S+)
(?:.*\n)*?\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\]\s+MsgRate\[Mpps\]
{_REMARKS}\s*(?P<size>[0-9]+)\s+[0-9]+\s+{_NUMBER}\s+{_COUNT}
{_REMARKS}-+"""


@dataclass(frozen=True)
class Loopback:
    """A vendor's loopback.

    kind: of the NICs that it measures. provider: of the fabrics that have such NICs. title and
    form: of its table. message_bytes: of a packet, or of a message that is asked for. apart: the
    part by which the bandwidth and the rate of messages of a row may contradict each other.
    """

    kind: Literal["cxi", "infiniband"]
    provider: str
    command: Callable[[str, str], str]
    title: str
    form: re.Pattern[str]
    message_bytes: int
    apart: float = 0.0

    def parse(self, text: str, origin: str, nic: str) -> float:
        """Return the Gb/s that it printed; of ib_write_bw the average, as the peak may be 0.00.

        :param origin: the file or command, for errors.
        :param nic: the NIC that was asked for.
        :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
        :raises OtherRunError: when it is of another NIC or size.
        """
        whole = "\n".join(line.text for line in ended_lines_of(text, origin))
        match = self.form.search(whole)
        if match is None or whole.count(self.title) != 1:
            reason = f"it has no whole table of '{self.title}' with one row in Gb/s"
            raise GarbledOutput(origin, None, reason)
        if match["nic"] != nic:
            raise OtherRunError(origin, None, f"it is of {match['nic']}, not of {nic}")
        size = match.groupdict().get("size") or str(self.message_bytes)
        if size != str(self.message_bytes):
            reason = f"messages have {size} bytes, not {self.message_bytes}"
            raise OtherRunError(origin, None, reason)
        rate, messages = printed(match["rate"]), printed(match["messages"])
        assert rate is not None and messages is not None
        bits = 8 * self.message_bytes / 1000
        by_messages = (
            bits * messages.low * (1 - self.apart),
            bits * messages.high * (1 + self.apart),
        )
        if rate.value <= 0 or not agree((rate.low, rate.high), by_messages):
            reason = "its bandwidth and its rate of messages contradict each other"
            raise GarbledOutput(origin, None, reason)
        return rate.value


#: The size of a message of ib_write_bw in bytes, as in Azure's checks, and its duration in s.
_IB_BYTES, _IB_SECONDS = 1 << 20, 5


def _step_service(nic: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the number of the service that Slurm made on a NIC for this step; None without one.

    The services are in the order of the NICs.
    """
    names = ("SLINGSHOT_DEVICES", "SLINGSHOT_SVC_IDS")
    nics, services = (environment.get(name, "").split(",") for name in names)
    return dict(zip(nics, services, strict=False)).get(nic)


def _cxi_command(tool: str, nic: str) -> str:
    """Return a line with the service that Slurm gave this step; by default the tool takes 1."""
    service = _step_service(nic)
    return shlex.join([tool, "--device", nic, *(["--svc-id", service] if service else [])])


def _ib_command(tool: str, nic: str) -> str:
    """Return a line that starts the server, and the client until it has a connection."""
    test = shlex.join([tool, "-d", nic, "-F", "--report_gbits", "-s", str(_IB_BYTES),
                       "-D", str(_IB_SECONDS), "-p", "18517"])  # fmt: skip
    client = f"found=$({test} localhost 2>&1) && break"
    tries = f"for i in 1 2 3 4 5 6; do sleep 0.5; kill -0 $! || exit 1; {client}; done"
    return f'{test} >/dev/null 2>&1 & {tries}; echo "$found"; wait $!'


#: The tools by name. Of the six rows of HPE's own listing one has rates 2 % apart.
TOOLS = {
    "cxi_gpu_loopback_bw": Loopback(
        "cxi", "cxi", _cxi_command, "CXI Loopback Bandwidth Test",
        re.compile(rf"^{_CXI}\Z", re.MULTILINE), 2048, apart=0.03,
    ),
    "ib_write_bw": Loopback(
        "infiniband", "verbs", _ib_command, "RDMA_Write BW Test",
        re.compile(rf"^{_IB}\Z", re.MULTILINE), _IB_BYTES,
    ),
}  # fmt: skip


def loopback_of(provider: str | None) -> str | None:
    """Return the loopback of NICs of a fabric's provider; None where none is known."""
    return next((name for name, tool in TOOLS.items() if tool.provider == provider), None)


def loopbacks(tool: str, nics: Sequence[NodeNic], end: float) -> dict[str, float]:
    """Run a loopback on each NIC in turn; return the Gb/s that each reached in writing to itself.

    :param tool: its path, or its name in the PATH.
    :param end: when all have to end on the monotonic clock, in s.
    :raises NotFoundError: when this machine lacks it.
    :raises UsageError: when it is none of `TOOLS`, or not of such a NIC.
    :raises PreventedBySetting: when no CXI service lets it use a NIC.
    :raises InvalidInputError: when it fails, or its output is unusable.
    :raises TimeLimit: when the time limit passed.
    """
    if shutil.which(tool) is None:
        raise NotFoundError(f"There is no program {tool} on this machine.")
    name = Path(tool).name
    if name not in TOOLS:
        raise UsageError(f"There is no loopback {name}; known are {listed(TOOLS)}.")
    program, reached = TOOLS[name], {}
    for nic in nics:
        if nic["kind"] != program.kind:
            raise UsageError(
                f"{name} measures NICs of {program.kind}; {nic['name']} is one of {nic['kind']}."
            )
        origin, limit_s = f"{name} of {nic['name']}", min(_LIMIT_S, end - time.monotonic())
        done = run(["/bin/sh", "-c", program.command(tool, nic["name"])], max(limit_s, 0.001))
        done.require_good(f"{origin}: it", limit_s, done.err, done.out)
        reached[nic["name"]] = program.parse(done.out, origin, nic["name"])
    return reached
