"""The topology that a node's tools report, from their output here or from files."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import GarbledOutput, InvalidInputError, NotFoundError
from fabricheck.core.lines import lines_of, refuse_odd_numbers
from fabricheck.core.text import read_text
from fabricheck.tools.runner import DeviceLost, ProgramFailed, TimeLimit, first_reason, run
from fabricheck.tools.topology import amd_smi, nvidia_smi, rocm_smi
from fabricheck.tools.topology.reported import Reported, merge

#: The calls that report the topology, the most reliable first.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("rocm-smi", "--showbus"),
    ("rocm-smi", "--shownodesbw"),
    ("rocm-smi", "--showtoponuma"),
    ("rocm-smi", "--showtopo"),
    ("amd-smi", "topology"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", nvidia_smi.QUERY, "--format=csv,noheader"),
)

_TOOLS = (rocm_smi, amd_smi, nvidia_smi)

#: How nvidia-smi says that a device is lost: its words, and its exit code.
_LOST, _LOST_CODE = re.compile(r"GPU is lost|fallen off the bus"), 15

#: The time limit of one call, in s.
_TIME_LIMIT_S = 60.0


class NoTools(NotFoundError):
    """A machine has none of the tools."""


@dataclass(frozen=True)
class Detection:
    """The tools' reports, the tools missing on this machine, and the calls that failed."""

    report: Reported
    missing: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def parse_text(text: str, origin: str, *, part: bool = False) -> Reported:
    """Parse the output of rocm-smi, amd-smi or nvidia-smi.

    :param text: the output of one call; for rocm-smi also of several.
    :param origin: the file or command, for errors.
    :param part: whether it will be merged with other reports; a list of devices without a confirmed
        end is then accepted.
    :raises GarbledOutput: when no tool prints such a text, or it is cut off or damaged.
    """
    refuse_odd_numbers(lines_of(text, origin))
    tools = [tool for tool in _TOOLS if tool.recognises(text)]
    if not tools:
        raise GarbledOutput(
            origin, None, "it contains no topology table of rocm-smi, amd-smi or nvidia-smi"
        )
    # The header of rocm-smi's tables equals that of nvidia-smi without its additions.
    if len(tools) > 1 and ({rocm_smi, amd_smi} <= {*tools} or nvidia_smi.ENDS_HEADER in text):
        raise GarbledOutput(origin, None, "it contains topology tables of several tools")
    report = tools[0].parse(text, origin)
    return report if part else _usable(report)


def parse_files(paths: Sequence[Path]) -> Reported:
    """Parse the outputs in files, all of the same node, and merge them.

    :raises NotFoundError: when a file does not exist.
    :raises InvalidInputError: when a file is unusable, or two contradict each other.
    """
    return _usable(merge([parse_text(read_text(path), str(path), part=True) for path in paths]))


def detect(environ: Mapping[str, str] = os.environ, limit_s: float = 600) -> Detection:
    """Run every installed tool and merge the reports.

    :param environ: the variables that the tools see; its PATH decides which are installed.
    :param limit_s: for all of them, in s.
    :raises NoTools: when none is installed, naming them.
    :raises InvalidInputError: when no installed tool reported anything usable, or two contradict
        each other; of several calls with the reason of the first that failed.
    :raises DeviceLost: when a tool says so.
    :raises TimeLimit: when the time limit passed.
    """
    end = time.monotonic() + limit_s
    tools = list(dict.fromkeys(command[0] for command in COMMANDS))
    missing = [tool for tool in tools if shutil.which(tool, path=environ.get("PATH")) is None]
    if len(missing) == len(tools):
        raise NoTools(f"This machine has none of the tools {', '.join(missing)}.")
    reports: list[Reported] = []
    failed: list[str] = []
    for command in COMMANDS:
        if command[0] in missing:
            continue
        name = " ".join(command)
        try:
            said = _output(command, name, environ, end - time.monotonic())
            reports.append(parse_text(said, name, part=True))
        except DeviceLost:
            raise
        except InvalidInputError as error:
            failed.append(str(error))
        if time.monotonic() >= end:
            raise TimeLimit(f"The node did not answer within the time limit of {limit_s:g} s.")
    if not reports:
        raise InvalidInputError(f"No tool reported anything usable: {failed[0]}")
    merged = merge(reports)
    if merged.may_be_cut and failed:
        raise InvalidInputError(failed[0])
    return Detection(_usable(merged), tuple(missing), tuple(failed))


def _usable(report: Reported) -> Reported:
    """Refuse a list of devices with an unconfirmed end: if cut off, it describes a smaller node."""
    if report.may_be_cut:
        reason = "the list of devices may be cut off: add a table of links of the same node"
        raise GarbledOutput(report.origin, None, reason)
    return report


def _output(command: tuple[str, ...], name: str, environ: Mapping[str, str], left_s: float) -> str:
    limit_s = min(_TIME_LIMIT_S, left_s)
    try:
        done = run(command, limit_s, environ)
    except OSError as error:
        raise InvalidInputError(f"'{name}' cannot be run ({error.strerror}).") from None
    reason = first_reason(done.err, done.out)
    if _LOST.search(done.err + done.out) or (
        command[0] == "nvidia-smi" and done.code == _LOST_CODE
    ):
        raise DeviceLost(f"'{name}' ended with exit code {done.code}: {reason}.")
    done.require_good(f"'{name}'", limit_s, reason)
    # rocm-smi may end with 0 and say on standard error why it prints no table.
    if done.err.strip() and not any(tool.recognises(done.out) for tool in _TOOLS):
        raise ProgramFailed(f"'{name}' printed no table: {reason}.")
    return done.out
