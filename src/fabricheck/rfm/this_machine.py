"""What this machine is called: ReFrame selects the system whose patterns match it from the start.

Machines of one maker call their nodes alike (``uan01``, ``nid001234``), and login nodes may be no
more than ``login05``. So what the site itself calls the system follows after a blank:
``uan01 dardel``.
"""

from __future__ import annotations

import os
import socket

#: Variables that hold a system's name: Lmod's (OLCF and others), that of Sweden's centres, JSC's.
NAMED_BY = ("LMOD_SYSTEM_NAME", "SNIC_RESOURCE", "SYSTEMNAME")


def name() -> str:
    """Return the host name, and the names that the environment gives the system."""
    found = (os.environ.get(variable, "") for variable in NAMED_BY)
    return " ".join([socket.gethostname(), *dict.fromkeys(filter(None, found))])
