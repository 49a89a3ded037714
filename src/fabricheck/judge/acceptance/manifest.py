"""The manifest of a record's folder: the SHA-256 of each file, in the form of `sha256sum`.

So `sha256sum -c MANIFEST.sha256` checks it, too. Signatures of it lie beside it.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.core.text import read_text

NAME = "MANIFEST.sha256"

#: A signature of the manifest; in between is what names the key.
SIGNATURE = re.compile(rf"{re.escape(NAME)}(\.[\w.@+-]+)?\.sig")

_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>[^\x00-\x1f\\]+)")


@dataclass(frozen=True)
class Differences:
    """The files of a folder that are not those of its manifest, by their names.

    odd: what is neither a file nor a folder, such as a link.
    """

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    odd: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there are some."""
        return bool(self.changed or self.missing or self.extra or self.odd)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text(folder: Path) -> str:
    """Return the manifest of the files in a folder."""
    files, _ = _there(folder)
    return "".join(f"{digest(folder / name)}  {name}\n" for name in files)


def signatures(folder: Path) -> list[Path]:
    """Return the signatures beside a manifest."""
    return sorted(path for path in folder.iterdir() if SIGNATURE.fullmatch(path.name))


def compare(folder: Path) -> Differences:
    """Return how a folder differs from its manifest.

    :raises NotFoundError: when it has no manifest.
    :raises InvalidFile: when that is none.
    """
    listed = _read(folder)
    files, odd = _there(folder)
    there = set(files)
    changed = []
    for name, wanted in listed.items():
        if name in there and digest(folder / name) != wanted:
            changed.append(name)
    return Differences(
        tuple(changed),
        tuple(name for name in listed if name not in there),
        tuple(name for name in files if name not in listed),
        tuple(odd),
    )


def _there(folder: Path) -> tuple[list[str], list[str]]:
    """Return the files in a folder, and what is neither file nor folder.

    Manifest and signatures are left out.
    """
    files, odd = [], []
    for root, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(root, name)
            inside = str(path.relative_to(folder))
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                odd.append(inside)
            elif path.is_file() and inside != NAME and not SIGNATURE.fullmatch(inside):
                files.append(inside)
    return sorted(files), sorted(odd)


def _read(folder: Path) -> dict[str, str]:
    path = folder / NAME
    if not path.is_file():
        raise NotFoundError(f"{folder} has no {NAME}: it is no folder of an acceptance record.")
    listed = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in listed:
            raise InvalidFile(path, None, f"line {number} is not a digest and a name of its own")
        listed[match["name"]] = match["digest"]
    return listed
