"""Running the tools that a node has, and reading what they say about its topology."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.tools.runner import run
from fabricheck.tools.topology import nvidia_smi
from fabricheck.tools.topology.parse import parse_text, usable
from fabricheck.tools.topology.reported import Reported, merge

#: The calls that tell something about the topology, in the order of trust.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("rocm-smi", "--showbus"),
    ("rocm-smi", "--shownodesbw"),
    ("rocm-smi", "--showtoponuma"),
    ("rocm-smi", "--showtopo"),
    ("amd-smi", "topology"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", nvidia_smi.QUERY, "--format=csv,noheader"),
)

_TIME_LIMIT_S = 60


@dataclass(frozen=True)
class Detection:
    """What the tools said, the tools that this machine lacks, and the calls that failed."""

    report: Reported
    missing: tuple[str, ...]
    failed: tuple[str, ...]


def detect(environ: Mapping[str, str] = os.environ) -> Detection:
    """Run every tool that exists and put together what they say.

    :param environ: the variables that the tools see; its PATH says which exist.
    :raises NotFoundError: when none exists, naming them.
    :raises InvalidInputError: when none of those that exist said anything usable, or two
        contradict each other.
    """
    tools = list(dict.fromkeys(command[0] for command in COMMANDS))
    missing = [tool for tool in tools if shutil.which(tool, path=environ.get("PATH")) is None]
    if len(missing) == len(tools):
        raise NotFoundError(f"This machine has none of the tools {', '.join(missing)}.")
    reports: list[Reported] = []
    failed: list[str] = []
    for command in COMMANDS:
        if command[0] in missing:
            continue
        try:
            reports.append(parse_text(_output(command, environ), " ".join(command), part=True))
        except InvalidInputError as error:
            failed.append(str(error))
    if not reports:
        raise InvalidInputError(f"No tool told anything usable: {failed[0]}")
    return Detection(usable(merge(reports)), tuple(missing), tuple(failed))


def _output(command: tuple[str, ...], environ: Mapping[str, str]) -> str:
    name = " ".join(command)
    try:
        done = run(command, _TIME_LIMIT_S, environ)
    except OSError as error:
        raise InvalidInputError(f"'{name}' cannot be run ({error.strerror}).") from None
    done.require_good(f"'{name}'", _TIME_LIMIT_S, done.err, done.out)
    return done.out
