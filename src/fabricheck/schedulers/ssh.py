"""ssh: hosts without a scheduler, each check a command that ReFrame's ssh scheduler starts on one.

No scheduler keeps others off a host, so each check takes the host's own lock there, and waits where
another session has it. A host that does not answer when a session begins is named and left out; its
state is what ssh says of it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fabricheck.core import nodelists
from fabricheck.core.vocabulary import ENV_NODE_NAME
from fabricheck.schedulers.row import Node, Scheduler, ask

#: The variable with the hosts of a session, in place of those of the site file.
HOSTS = "FABRICHECK_HOSTS"

#: Never a question to a person, and an end where a host does not answer for a minute.
OPTIONS = ("-o ConnectTimeout=10", "-o ServerAliveInterval=15", "-o ServerAliveCountMax=4")

#: The exit code of ssh where there is no connection, or no longer one.
NO_CONNECTION = 255

#: Seconds for an answer of a host, and how many are asked at a time.
_PATIENCE_S = 30
_AT_A_TIME = 32

#: The line of a job script that has it run under the lock of the host; it names the node.
_UNDER_LOCK = "-m fabricheck.rfm.on_host"


class Ssh(Scheduler):
    """ssh: tried with servers of ssh on several addresses of one machine."""

    name = "ssh"
    title = "ssh"
    node_variable = ENV_NODE_NAME
    backends = ("ssh",)
    commands = {"ssh": ("ssh", "rsync")}
    requested = re.compile(
        rf"^\[ .* \] \|\| {ENV_NODE_NAME}=(?P<node>[^\s,\[\]]+) exec .*{_UNDER_LOCK}", re.MULTILINE
    )
    has_queue = False
    no_drain = "no scheduler drains {node}: take it off the list of hosts"

    def partition(
        self,
        queue: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "",
    ) -> dict[str, Any]:
        """Return scheduler, launcher and access of a partition of a site file.

        :param queue: the list of hosts, such as ``gpu[1-8]``.
        :param options: of ssh, such as ``-F FILE`` for a configuration of its own.
        """
        hosts = nodelists.unfolded(environment.get(HOSTS) or queue)
        return {
            "scheduler": "ssh",
            "launcher": "local",
            "max_jobs": len(hosts),
            "access": [*OPTIONS, *options],
            "sched_options": {"ssh_hosts": hosts},
        }

    def nodes_of(self, descriptions: Mapping[str, str], access: Sequence[str]) -> dict[str, Node]:
        """Ask the hosts of a session of all nodes whether they can measure."""
        names = list(descriptions)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            nodes = pool.map(lambda name: _asked(name, access), names)
        return dict(zip(names, nodes, strict=True))

    def why_not_distributed(self, partition: str) -> str | None:
        """Return why a session needs ``--distribute``."""
        return (
            f"Partition {partition} reaches its hosts by ssh, and a session measures all of them: "
            "add --distribute=all, or use fabricheck every-node --hosts LIST. Otherwise checks of "
            "one session would be spread over them, two on a host at once."
        )

    def of_script(self, node: str | None, output: str, errors: str) -> list[str]:
        """Return the first lines of a job script: it starts itself again under the host's lock."""
        if node is None:
            return []
        python = shlex.quote(sys.executable)
        start = f'{ENV_NODE_NAME}={node} exec {python} {_UNDER_LOCK} "$0" {output} {errors}'
        return [f'[ -n "${ENV_NODE_NAME}" ] || {start}']


def command(host: str, access: Sequence[str], *remote: str) -> list[str]:
    """Return the command that runs another one on a host."""
    options = shlex.split(" ".join(access))
    return ["ssh", "-o", "BatchMode=yes", *options, host, *remote]


def _asked(host: str, access: Sequence[str]) -> Node:
    """Return whether a host answers, and has what a check needs before it starts."""
    python = shlex.quote(sys.executable)
    needs = f"command -v rsync > /dev/null || echo rsync; test -x {python} || echo {python}"
    try:
        lacks = ask(command(host, access, needs), _PATIENCE_S).split()
    except LookupError as error:
        why = str(error).rstrip(".")
        unusable = f"{host} cannot be reached: {why}."
        return Node("UNREACHABLE", why, unusable)
    if lacks:
        why = f"it has no {lacks[0]}"
        return Node("UNREADY", why, f"{host} cannot measure: {why}.")
    return Node("UP")
