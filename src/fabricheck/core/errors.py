"""Errors that fabricheck reports: each is one sentence and has one exit code.

vocabulary.json defines the codes, with those of the measuring programs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from fabricheck.core.vocabulary import EXIT_CODE, EXIT_INVALID_INPUT, EXIT_NOT_FOUND, EXIT_USAGE

#: The longest sentence, in characters: a quoted damaged line may have thousands.
_LONGEST = 2000


def _shortened(sentence: str) -> str:
    """Shorten a sentence that is too long in its middle; its end states the reason."""
    if len(sentence) <= _LONGEST or "\n" in sentence:
        return sentence
    return f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 2 :]}"


class FabricheckError(Exception):
    """An expected failure; its text is one sentence that names the file, device or node."""

    exit_code: int = EXIT_INVALID_INPUT

    def __init__(self, sentence: str = "") -> None:
        super().__init__(_shortened(sentence))


def end_session(error: FabricheckError) -> NoReturn:
    """End a session of ReFrame with an error's exit code: its own is 1, as for a failed check."""
    print(f"ERROR: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code) from None


class UsageError(FabricheckError):
    """The command line names something that does not exist, or options that exclude each other."""

    exit_code = EXIT_USAGE


class NotFoundError(FabricheckError):
    """A file, session or program that was asked for does not exist."""

    exit_code = EXIT_NOT_FOUND


class PreventedBySetting(FabricheckError):
    """A setting of the node or the job is wrong, and nothing else differs."""

    exit_code = EXIT_CODE["setting"]


class InvalidInputError(FabricheckError):
    """An input cannot be read or contradicts itself."""

    exit_code = EXIT_INVALID_INPUT


class InvalidFile(InvalidInputError):
    """A file of ours or of the kernel cannot be read, or states something impossible."""

    def __init__(self, path: Path | str, key: str | None, reason: str) -> None:
        """Compose the sentence from the file, the key inside it and the reason.

        :param key: the key inside it, such as ``links.matrix``, or the JSON path inside a result
            document (``$.series[0].median``); ``None`` for the whole file.
        :param reason: the rest of the sentence, without a full stop.
        """
        self.path = str(path)
        self.key = key
        self.reason = reason
        super().__init__(f"{path}: {f'{key}: ' if key else ''}{reason}.")


class _OfOutput(FabricheckError):
    """The output of a third-party program cannot be used."""

    def __init__(self, origin: str, line: int | None, reason: str) -> None:
        """Compose the sentence from the origin, the line and the reason.

        :param origin: the file or the command.
        :param line: the number of the line, from 1; ``None`` for the whole text.
        :param reason: the rest of the sentence, without a full stop.
        """
        self.origin = origin
        self.line = line
        super().__init__(f"{origin}{'' if line is None else f', line {line}'}: {reason}.")


class GarbledOutput(_OfOutput, InvalidInputError):
    """The output of a tool is cut off, damaged, or of an unknown tool."""


class OtherRunError(_OfOutput, InvalidInputError):
    """The output is complete, but of another run than the requested one."""


class RanksApartError(OtherRunError):
    """Each rank of a tool ran by itself, so that no data went from one to another."""


class WrongSettingError(_OfOutput):
    """The tool used something else than a setting should have given it, such as another network."""

    exit_code = EXIT_CODE["setting"]


class NoDeviceSupport(_OfOutput, NotFoundError):
    """The tool was built or run without support for device memory."""


class WrongDataError(_OfOutput):
    """The tool itself reported wrong data."""

    exit_code = EXIT_CODE["wrong-data"]
