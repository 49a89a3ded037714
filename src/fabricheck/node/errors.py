"""The error of an unusable node model or overlay."""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.errors import InvalidInputError


class InvalidNode(InvalidInputError):
    """A node model or an overlay cannot be read, or describes a node that cannot be."""

    def __init__(self, path: Path | str, key: str | None, reason: str) -> None:
        """Say which file, where in it, and why.

        :param path: the YAML file.
        :param key: the key inside it, such as ``links.matrix``; ``None`` for the whole file.
        :param reason: the rest of the sentence, without a full stop.
        """
        self.path = str(path)
        self.key = key
        self.reason = reason
        super().__init__(f"{path}: {f'{key}: ' if key else ''}{reason}.")
