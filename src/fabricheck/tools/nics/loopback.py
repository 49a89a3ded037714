"""A vendor's loopback on each NIC in turn: its bandwidth to itself, over its switch or within it.

cxi_gpu_loopback_bw goes to the edge switch and back. perftest's ib_write_bw with itself stays
within the NIC on InfiniBand, so it tells of PCIe and memory, and not of the cable.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.tools import cxi_service
from fabricheck.tools.nics.reading import Kind, SeenNic
from fabricheck.tools.outputs.loopbacks import Loopback, parse_cxi, parse_ib
from fabricheck.tools.runner import run

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
    parse: Callable[[str, str, str], Loopback]


def _cxi_command(tool: str, nic: str) -> str:
    """Return a line with the service that Slurm gave this step; by default the tool takes 1."""
    service = cxi_service.step_service(nic)
    return shlex.join([tool, "--device", nic, *(["--svc-id", service] if service else [])])


def _ib_command(tool: str, nic: str) -> str:
    """Return a line that starts the server, and the client until it has a connection."""
    one = shlex.join([tool, "-d", nic, "-F", "--report_gbits", "-s", str(_IB_BYTES),
                      "-D", str(_IB_SECONDS), "-p", "18517"])  # fmt: skip
    client = f"found=$({one} localhost 2>&1) && break"
    tries = f"for i in 1 2 3 4 5 6; do sleep 0.5; kill -0 $! || exit 1; {client}; done"
    return f'{one} >/dev/null 2>&1 & {tries}; echo "$found"; wait $!'


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


def loopback(tool: str, nic: SeenNic, limit_s: float) -> Loopback:
    """Run a loopback on one NIC.

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
