"""The errors that fabricheck reports: one sentence and one exit code each.

The codes stand in vocabulary.yaml, beside those of the programs that measure.
"""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.vocabulary import EXIT_CODE, EXIT_INVALID_INPUT, EXIT_NOT_FOUND, EXIT_USAGE

#: The characters of a sentence: a damaged line, which it shows, may have thousands.
_LONGEST = 2000


def _shortened(sentence: str) -> str:
    """Leave out the middle of a sentence that is too long: its end says what is wrong."""
    if len(sentence) <= _LONGEST or "\n" in sentence:
        return sentence
    return f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 2 :]}"


class FabricheckError(Exception):
    """An expected failure; its text is one sentence that names the file, device or node."""

    exit_code: int = EXIT_INVALID_INPUT

    def __init__(self, sentence: str = "") -> None:
        super().__init__(_shortened(sentence))


class UsageError(FabricheckError):
    """The command line asks for something that does not exist or does not go together."""

    exit_code = EXIT_USAGE


class NotFoundError(FabricheckError):
    """What was asked for is not there: a file, a session, a program."""

    exit_code = EXIT_NOT_FOUND


class InvalidInputError(FabricheckError):
    """An input cannot be read or contradicts itself."""

    exit_code = EXIT_INVALID_INPUT


class InvalidFile(InvalidInputError):
    """A file of settings or references cannot be read, or says what cannot be."""

    def __init__(self, path: Path | str, key: str | None, reason: str) -> None:
        """Say which file, where in it, and why.

        :param key: the key inside it, such as ``links.matrix``; ``None`` for the whole file.
        :param reason: the rest of the sentence, without a full stop.
        """
        self.path = str(path)
        self.key = key
        self.reason = reason
        super().__init__(f"{path}: {f'{key}: ' if key else ''}{reason}.")


class _OfOutput(FabricheckError):
    """Something is wrong with the output of a third-party program."""

    def __init__(self, origin: str, line: int | None, reason: str) -> None:
        """Say where and why.

        :param origin: the file or the command.
        :param line: the number of the line, from 1; ``None`` for the whole text.
        :param reason: the rest of the sentence, without a full stop.
        """
        self.origin = origin
        self.line = line
        super().__init__(f"{origin}{'' if line is None else f', line {line}'}: {reason}.")


class GarbledOutput(_OfOutput, InvalidInputError):
    """The output of a tool is cut, damaged, or not one of a tool that is known here."""


class OtherRunError(_OfOutput, InvalidInputError):
    """The output is whole, but of another run than the one that was asked for."""


class NoDeviceSupport(_OfOutput, NotFoundError):
    """The tool was built, or run, without support for device memory."""


class WrongDataError(_OfOutput):
    """The tool itself found wrong data."""

    exit_code = EXIT_CODE["wrong-data"]


class InvalidDocument(InvalidInputError):
    """A result document cannot be read, breaks the schema, or contradicts itself."""

    def __init__(self, path: Path | str, reason: str, place: str | None = None) -> None:
        """Say which document is invalid and why.

        :param path: the document's file.
        :param reason: the rest of the sentence, without a full stop.
        :param place: the JSON path inside the document, such as ``$.series[0].median``.
        """
        self.path = str(path)
        self.reason = reason
        self.place = place
        super().__init__(f"{path}: {f'{place}: ' if place else ''}{reason}.")
