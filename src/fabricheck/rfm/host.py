"""What settings and site files need to know of the machine that they are read on."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import ENV_RESULTS

#: Variables that hold a system's name: Lmod's (OLCF and others), that of Sweden's centres, JSC's.
NAMED_BY = ("LMOD_SYSTEM_NAME", "SNIC_RESOURCE", "SYSTEMNAME")

#: Bytes that must be free: stage, output, logs and reports of a session of all checks have some
#: 20 MB, most of it the documents of the scans.
LEAST_FREE = 64 << 20

CPUS = Path("/sys/devices/system/cpu")

#: Assumed where the system states no maximum frequency; above that of any server processor of 2025.
ASSUMED_HZ = 6e9

#: Bytes that a core moves per cycle at most: two 64-byte loads and one 64-byte store, as the widest
#: load and store units of x86-64 and AArch64 cores of 2025 do.
BYTES_PER_CYCLE = 3 * 64


def system_name() -> str:
    """Return the host name, and behind a blank what the site itself calls the system.

    ReFrame selects the system whose patterns match it from the start. Machines of one maker call
    their nodes alike (``uan01``, ``nid001234``), and login nodes may be no more than ``login05``:
    the name is ``uan01 dardel``.
    """
    found = (os.environ.get(variable, "") for variable in NAMED_BY)
    return " ".join([socket.gethostname(), *dict.fromkeys(filter(None, found))])


def results_folder(default: Path) -> Path:
    """Return the folder that FABRICHECK_RESULTS names, or the default; it exists afterwards.

    :raises InvalidInputError: for a relative path, one that a shell would have to quote, a folder
        that cannot be made or written, and a disk that is all but full.
    """
    text = os.environ.get(ENV_RESULTS, "")
    folder = Path(text) if text else default
    if not folder.is_absolute():
        # ReFrame reads its settings from another working folder than the user's.
        raise InvalidInputError(
            f"{ENV_RESULTS}={text} is not an absolute path: write {ENV_RESULTS}=$PWD/{text}."
        )
    if shlex.quote(str(folder)) != str(folder):
        raise InvalidInputError(
            f"The results folder '{folder}' has white space or another character that a shell "
            f"would need quoted, and ReFrame does not quote it: set {ENV_RESULTS} to another one."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The results folder {folder} cannot be made: {error.strerror}."
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInputError(f"The results folder {folder} is not writable.")
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise InvalidInputError(
            f"The results folder {folder} has {free / 1e6:.0f} MB free, and a session needs "
            f"{LEAST_FREE / 1e6:.0f} MB."
        )
    return folder


def whole_number(variable: str, default: int, least: int) -> int:
    """Return the whole number in an environment variable, or the default where it is not set.

    :raises InvalidInputError: when it holds something else, or less than ``least``.
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise InvalidInputError(f"{variable}={text} is not a whole number of at least {least}.")
    return int(text)


def last_level_cache_bytes(cpus: Path = CPUS) -> int:
    """Return the size of all last-level caches together in bytes, 0 where the system hides it."""
    found: dict[tuple[int, str], int] = {}
    for index in cpus.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((index / "level").read_text())
            shared = (index / "shared_cpu_list").read_text().strip()
            size = (index / "size").read_text().strip()
            found[level, shared] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last)


def array_bytes(cpus: Path = CPUS, least: int = 128 << 20) -> int:
    """Return a power of two of at least four times the last-level caches, the rule of STREAM."""
    size = least
    while size < 4 * last_level_cache_bytes(cpus):
        size *= 2
    return size


def memory_bound(cpus: Path = CPUS) -> dict[str, object]:
    """Return an upper bound of what all cores together load and store, as a site file states it.

    Derived, in GB/s: hardware threads x BYTES_PER_CYCLE x maximum frequency. It holds for the first
    level cache too, so memory stays far below it: it catches nonsense, not a slow machine.
    """
    threads = os.cpu_count() or 1
    hertz = maximum_hertz(cpus)
    assumed = "" if hertz else ", a frequency assumed because the system states none"
    hertz = hertz or ASSUMED_HZ
    return {
        "value": threads * BYTES_PER_CYCLE * hertz / 1e9,
        "origin": "derived",
        "how": f"{threads} hardware threads x {BYTES_PER_CYCLE} B per cycle x "
        f"{hertz / 1e9:g} GHz{assumed}",
        "per_device": False,
        "bytes_counted": "read+write",
    }


def latency_bound(cpus: Path = CPUS) -> dict[str, object]:
    """Return a lower bound of any time between two cores in us, as a site file states it.

    Derived: one cycle. A message takes hundreds of them: it catches nonsense, as `memory_bound`.
    """
    hertz = maximum_hertz(cpus) or ASSUMED_HZ
    how = f"one cycle at {hertz / 1e9:g} GHz"
    return {"value": 1e6 / hertz, "origin": "derived", "how": how}


def maximum_hertz(cpus: Path = CPUS) -> float | None:
    """Return the highest maximum frequency of any core in Hz, None where the system states none."""
    rates = []
    for file in cpus.glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq"):
        try:
            rates.append(int(file.read_text()) * 1e3)
        except (OSError, ValueError):
            continue
    return max(rates, default=None)
