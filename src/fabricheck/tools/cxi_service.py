"""Slingshot's CXI services: what a program prints that none lets use the NICs.

A service is a permission of the driver, with VNIs and limits: a default one, which sites disable,
and those that Slurm makes for steps of several nodes or with ``--network=single_node_vni``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from fabricheck.core.errors import WrongSettingError
from fabricheck.core.text import printable

#: What a user can do about it.
_NEEDED = (
    "a CXI service must be enabled for it: the default one, or that of a step "
    "(srun --network=single_node_vni)"
)

# A missing permission in words, or by number (ENOSYS, and those of keys). A device that is gone
# (ENODEV, EIO) is none.
_DENIED = (
    r"(?:Key (?:has been revoked|has expired|was rejected by service)|Required key not available"
    r"|Function not implemented|-(?:38|12[6-9])\b)"
)
_REFUSAL = re.compile(
    "|".join(
        rf".*{form}.*"
        for form in (
            r"Failed to get (?:default )?service\b",
            r"\bVNI\b.*\bnot a? ?valid\b",
            r"\b(?:[Ii]nvalid|[Nn]o|[Mm]issing) (?:VNIs?|CXI services?)\b",
            r"Failed to (?:open CXI device|allocate (?:LNI|Domain|Communication Profile)).*"
            r"(?:Operation not permitted|Permission denied|Invalid argument)",
            # The libraries of NCCL and of MPICH.
            r"(?:NET/OFI Couldn't open domain|OFI domain (?:open|creation) failed).*"
            r"(?:Operation not permitted|Permission denied)",
            rf"(?:cxi|CXI|LNI|OFI|fi_\w+|[Ll]ibfabric).*{_DENIED}",
            r"Error: Function not implemented \(",  # Open MPI, below the name of the call
        )
    )
)


def step_service(nic: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the number of the service that Slurm made on a NIC for this step; None without one.

    The services are in the order of the NICs.
    """
    names = ("SLINGSHOT_DEVICES", "SLINGSHOT_SVC_IDS")
    nics, services = (environment.get(name, "").split(",") for name in names)
    return dict(zip(nics, services, strict=False)).get(nic)


def require(origin: str, code: int | None, *said: str) -> None:
    """Refuse a program that ended because no CXI service let it use the NICs.

    :param origin: the program, for the error.
    :param code: its exit code.
    :param said: texts that it wrote.
    :raises WrongSettingError: with the first line that tells so.
    """
    found = next(filter(None, map(_REFUSAL.search, said)), None)
    if code and found:
        line = printable(found[0].strip().rstrip("."))
        raise WrongSettingError(origin, None, f"it ended with exit code {code}: {line}; {_NEEDED}")
