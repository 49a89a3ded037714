"""Facts about this machine for settings and site files."""

from __future__ import annotations

import getpass
import math
import os
import shlex
import shutil
import socket
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results.model import ResultDocument
from fabricheck.tools.runner import text_of
from fabricheck.tools.topology.host import CPUS, last_level_cache_bytes

#: Variables with a system's name: Lmod's (OLCF and others), that of Swedish centres, and JSC's.
NAMED_BY = ("LMOD_SYSTEM_NAME", "SNIC_RESOURCE", "SYSTEMNAME")

#: The minimum free bytes. Stage, output, logs and reports of a session of all checks take some 20
#: MB, mostly the documents of the scans.
LEAST_FREE = 64 << 20

#: The assumed frequency in Hz if the system reports no maximum; higher than that of any server
#: processor of 2025.
ASSUMED_HZ = 6e9

#: The most bytes that a core moves per cycle: two 64-byte loads and one 64-byte store, the widest
#: load and store units of x86-64 and AArch64 cores of 2025.
BYTES_PER_CYCLE = 3 * 64


def system_name() -> str:
    """Return the host name, a blank, and the site's own name of the system.

    The patterns of site files are compared with this name from its start. Machines of one vendor
    name their nodes alike (``uan01``, ``nid001234``), and a login node may be just ``login05``, so
    the name is ``uan01 dardel``.
    """
    return _with_name_of_site(socket.gethostname())


def full_system_name() -> str:
    """Return the same with the domain that the resolver knows, which may take it seconds."""
    name = socket.gethostname()
    full = socket.getfqdn(name)
    # A resolver may know another name of the machine: localhost.
    is_full = full.lower().startswith(f"{name.lower()}.")
    return _with_name_of_site(full if is_full else name)


def user_name() -> str:
    """Return the user's name, or the number where no list of users has it, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _with_name_of_site(host: str) -> str:
    names = (os.environ.get(variable, "") for variable in NAMED_BY)
    return " ".join([host, *dict.fromkeys(filter(None, names))])


def results_folder(default: Path) -> Path:
    """Return the folder in FABRICHECK_RESULTS, or the default; it is created if needed.

    :raises InvalidInputError: for a relative path, a path that a shell would have to quote, a
        folder that cannot be created or written, and a disk that is nearly full.
    """
    text = os.environ.get(ENV_RESULTS, "")
    folder = Path(text) if text else default
    if not folder.is_absolute():
        # ReFrame reads its settings in another working folder than the user's.
        raise InvalidInputError(
            f"{ENV_RESULTS}={text} is not an absolute path: write {ENV_RESULTS}=$PWD/{text}."
        )
    if shlex.quote(str(folder)) != str(folder):
        raise InvalidInputError(
            f"The results folder '{folder}' contains white space or another character that a "
            f"shell would need quoted, which ReFrame does not do: set {ENV_RESULTS} to another "
            "one."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"The results folder {folder} cannot be created: {error.strerror}."
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInputError(f"The results folder {folder} is not writable.")
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise InvalidInputError(
            f"The results folder {folder} has {free / 1e6:.0f} MB free; a session needs "
            f"{LEAST_FREE / 1e6:.0f} MB."
        )
    return folder


def whole_number(variable: str, default: int, least: int) -> int:
    """Return the whole number in an environment variable, or the default if it is unset.

    :raises InvalidInputError: when it contains something else, or less than ``least``.
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise InvalidInputError(f"{variable}={text} is not a whole number of at least {least}.")
    return int(text)


def hidden_caches(document: ResultDocument, cpus: Path = CPUS) -> str | None:
    """Return a sentence where arrays were too small because the system hides the caches.

    The programs' reading also asks the processor.
    """
    shown, read = last_level_cache_bytes(cpus), document["host"]["last_level_cache_bytes"]
    past = any(series["regime"] == "memory" for series in document["series"])
    if document["program"]["runtime"] != "host" or past or read <= shown:
        return None
    return (
        f"Node {document['host']['hostname']} has caches of {read >> 20} MiB by its processor, "
        f"but {cpus} shows {shown >> 20} MiB, by which the arrays were sized: no array is far "
        "larger than the caches. Let the session, or its container, read that folder."
    )


#: Bytes of the arrays of a copy that are past any caches, as the programs have it (past_caches).
PAST_ANY_CACHE = 4 << 30


#: Bytes of both arrays of a copy for each core that may run: a bound of time, stated in bytes so
#: that all sessions of a machine measure the same. A core that copies 5 GB/s (assumed) takes
#: 0.03 s, and a check makes some 100 passes over its arrays.
BYTES_OF_A_CORE = 128 << 20


def array_bytes(cpus: Path = CPUS, cores: int | None = None) -> int:
    """Return the bytes of one array, a multiple of 64 MiB and at least 128 MiB.

    Both arrays of a copy together are at least four times the last-level caches, or 4 GiB, or
    BYTES_OF_A_CORE for each core. Not the next power of two: near twice as much takes near twice
    the time, which checks on large caches do not have.

    :param cores: those that may run; by default those open to this process.
    """
    step = 64 << 20
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    together = min(_past_caches(cpus), cores * BYTES_OF_A_CORE)
    return max(2, math.ceil(together / 2 / step)) * step


def arrays_fit_caches(cpus: Path = CPUS, cores: int | None = None) -> bool:
    """Return whether the bound of time keeps both arrays of a copy within what caches may hold."""
    return 2 * array_bytes(cpus, cores) < _past_caches(cpus)


def _past_caches(cpus: Path) -> int:
    return min(4 * last_level_cache_bytes(cpus), PAST_ANY_CACHE)


def scan_bytes(cpus: Path = CPUS, cores: int | None = None) -> int:
    """Return the size at which scans end: 256 MiB, doubled until it is at least `array_bytes`."""
    size = 256 << 20
    while size < array_bytes(cpus, cores):
        size *= 2
    return size


def memory_bound(cpus: Path = CPUS) -> dict[str, object]:
    """Return an upper bound of the rate at which all cores together load and store.

    Derived, in GB/s, for a site file: hardware threads x BYTES_PER_CYCLE x maximum frequency. The
    bound also covers the first-level cache, so memory stays far below it: it detects impossible
    values, not a slow machine.
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
    """Return a lower bound of any time between two cores in us, for a site file.

    Derived: one cycle. A message takes hundreds of cycles. Like `memory_bound`, the bound detects
    impossible values only.
    """
    hertz = maximum_hertz(cpus) or ASSUMED_HZ
    how = f"one cycle at {hertz / 1e9:g} GHz"
    return {"value": 1e6 / hertz, "origin": "derived", "how": how}


def maximum_hertz(cpus: Path = CPUS) -> float | None:
    """Return the highest maximum frequency of any core in Hz; None if it is not reported."""
    files = cpus.glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")
    rates = [int(text) * 1e3 for text in map(text_of, files) if text.strip().isdecimal()]
    return max(rates, default=None)
