"""The topology in files that somebody sends: texts of vendors' tools, or of `inventory`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import lines_of, refuse_odd_numbers
from fabricheck.core.text import read_text
from fabricheck.tools.topology import amd, inventory, nvidia_smi
from fabricheck.tools.topology.reported import Reported, merge


def parse_text(text: str, origin: str, *, part: bool = False) -> Reported:
    """Parse the output of rocm-smi, amd-smi or nvidia-smi, or a description by `inventory`.

    :param text: the output of one call; for rocm-smi also of several.
    :param origin: the file or command, for errors.
    :param part: whether it will be merged with other reports; a list of devices without a confirmed
        end is then accepted.
    :raises GarbledOutput: when no tool prints such a text, or it is cut off or damaged.
    """
    if inventory.SCHEMA in text:
        return inventory.reported(inventory.parse(text, Path(origin)), origin)
    lines = lines_of(text, origin)
    refuse_odd_numbers(lines)
    # The header of rocm-smi's tables equals that of nvidia-smi without its additions.
    if amd.recognises(lines):
        if nvidia_smi.ENDS_HEADER in text:
            raise GarbledOutput(origin, None, "it contains topology tables of several tools")
        report = amd.parse(lines, origin)
    elif nvidia_smi.recognises(lines):
        report = nvidia_smi.parse(lines, origin)
    else:
        raise GarbledOutput(
            origin, None, "it contains no topology table of rocm-smi, amd-smi or nvidia-smi"
        )
    return report if part else _usable(report)


def parse_files(paths: Sequence[Path]) -> Reported:
    """Parse the outputs in files, all of the same node, and merge them.

    :raises NotFoundError: when a file does not exist.
    :raises InvalidInputError: when a file is unusable, or two contradict each other.
    """
    return _usable(merge([parse_text(read_text(path), str(path), part=True) for path in paths]))


def _usable(report: Reported) -> Reported:
    """Refuse a list of devices with an unconfirmed end: if cut off, it describes a smaller node."""
    if report.may_be_cut:
        reason = "the list of devices may be cut off: add a table of links of the same node"
        raise GarbledOutput(report.origin, None, reason)
    return report
