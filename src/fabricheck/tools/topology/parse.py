"""Finding out which tool printed a text, and reading it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fabricheck.core.errors import GarbledOutput, InvalidInputError, NotFoundError
from fabricheck.tools.topology import amd_smi, nvidia_smi, rocm_smi
from fabricheck.tools.topology.reported import Reported, merge

_PARSERS: tuple[tuple[Callable[[str], bool], Callable[[str, str], Reported]], ...] = (
    (rocm_smi.recognises, rocm_smi.parse),
    (amd_smi.recognises, amd_smi.parse),
    (nvidia_smi.recognises, nvidia_smi.parse),
)


def parse_text(text: str, origin: str, *, part: bool = False) -> Reported:
    """Read the output of rocm-smi, amd-smi or nvidia-smi.

    :param text: the output of one call; of rocm-smi also of several.
    :param origin: the file or command, for errors.
    :param part: whether it will be merged with other reports; a list of devices without a
        confirmed end is then let through.
    :raises GarbledOutput: when no tool printed it like that, or it is cut or damaged.
    """
    for recognises, parse in _PARSERS:
        if recognises(text):
            report = parse(text, origin)
            return report if part else usable(report)
    raise GarbledOutput(
        origin, None, "this holds no topology table of rocm-smi, amd-smi or nvidia-smi"
    )


def parse_files(paths: Sequence[Path]) -> Reported:
    """Read the outputs in files, all about the same node, and put them together.

    :raises NotFoundError: when a file does not exist.
    :raises InvalidInputError: when a file is unusable, or two contradict each other.
    """
    reports: list[Reported] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFoundError(f"{path}: there is no such file.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path}: it cannot be read as text ({error}).") from None
        reports.append(parse_text(text, str(path), part=True))
    return usable(merge(reports))


def usable(report: Reported) -> Reported:
    """Refuse a list of devices whose end nothing confirms: cut, it would be a smaller node.

    :raises GarbledOutput: saying what to give beside it.
    """
    if report.may_be_cut:
        reason = "the list of devices may be cut, give a table of links of the same node beside it"
        raise GarbledOutput(report.origin, None, reason)
    return report
