"""Jobs on hosts that ReFrame's scheduler ssh reaches: how they start, and how they end."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reframe.core.exceptions import JobError, SpawnedProcessError

from fabricheck.core.vocabulary import EXIT_NODE_OPEN
from fabricheck.rfm import reframe_internals
from fabricheck.schedulers import ssh

#: What ssh and rsync print about a job, in its folder.
LOG = "ssh.log"

#: The hosts that were lost in this session, with the reason.
_LOST: dict[str, str] = {}

#: Runs a job, brings back its folder and removes it there; the exit code is that of the job, and
#: that of a lost connection where the folder did not come.
_COMMAND = """
exec > {log} 2>&1
{ssh} {host} {script}
code=$?
[ $code != {lost} ] || exit {lost}
rsync -az -e {ssh_quoted} {host}:{there}/ {here}/ || exit {lost}
{ssh} {host} rm -rf {there}
exit $code
"""


def submit(original: Callable[..., None], scheduler: Any, job: Any) -> None:
    """Start a job on its host.

    :raises JobError: when the host does not answer, or has not answered before.
    """
    host = job.pin_nodes[0] if job.pin_nodes else None
    if host in _LOST:
        raise JobError(_LOST[host])
    try:
        original(scheduler, job)
    except SpawnedProcessError as error:
        lines = (error.stderr or "").strip().splitlines() or [f"ssh ended with {error.exitcode}"]
        sentence = f"{host} cannot be reached: {lines[-1].rstrip('.')}"
        if host is not None:
            _LOST[host] = sentence
        raise JobError(sentence) from None


def command(job: Any) -> str:
    """Return the command for a shell that runs a job on its host, and brings back its files."""
    host, there, here = reframe_internals.host_of(job)
    options = " ".join(reframe_internals.options_of_host(job))
    start = f"ssh -o BatchMode=yes {options}"
    return _COMMAND.format(
        log=shlex.quote(str(Path(here, LOG))),
        ssh=start,
        ssh_quoted=shlex.quote(start),
        host=shlex.quote(host),
        script=shlex.quote(f"cd {there} && bash -l {job.script_filename}"),
        there=shlex.quote(there),
        here=shlex.quote(here),
        lost=ssh.NO_CONNECTION,
    )


def complete(job: Any) -> None:
    """Complete a job that has ended: whether its host was lost, or was not free."""
    if job.exitcode == ssh.NO_CONNECTION:
        reframe_internals.set_state(job, "NODE_FAIL", None)
    elif job.exitcode == EXIT_NODE_OPEN:
        reframe_internals.set_state(job, "NODE_TAKEN", job.exitcode)
