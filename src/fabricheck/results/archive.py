"""Archives written by `fabricheck site first-hour`: a results folder and node facts in one file."""

from __future__ import annotations

import functools
import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fabricheck.core.errors import InvalidInputError, NotFoundError

#: The suffix of an archive.
SUFFIXES = (".tar.gz", ".tgz")

#: The results folder in an archive.
RESULTS = "results"

#: Limits on the content of an archive, in bytes and in files: a session has some 20 MB.
MOST_BYTES, MOST_MEMBERS = 1 << 30, 100_000

#: Archives that this process unpacked, by temporary folder; removed when it ends.
_folders: dict[tempfile.TemporaryDirectory[str], Path] = {}


def is_archive(path: Path) -> bool:
    """Whether a path names an archive, by its suffix."""
    return path.name.endswith(SUFFIXES) and not path.is_dir()


def stem(path: Path) -> str:
    """Return the name of an archive without its suffix."""
    return path.name.removesuffix(SUFFIXES[0]).removesuffix(SUFFIXES[1])


def no_session(path: Path) -> NotFoundError:
    """Return the sentence for an archive without any session."""
    return NotFoundError(f"{path} contains no session, so there is nothing to judge.")


def naming_archives(sentence: str) -> str:
    """Replace the temporary folders in a sentence by the archives they were unpacked from."""
    for target, path in _folders.items():
        sentence = sentence.replace(target.name, str(path))
    return sentence


@functools.cache
def unpacked(path: Path) -> Path:
    """Unpack an archive into a temporary folder; return its top folder, which contains `RESULTS`.

    Only files and folders inside that folder are written. A second call returns the same folder.

    :raises NotFoundError: when there is no such archive, or it has no results of fabricheck.
    :raises InvalidInputError: when it is damaged or too large, or contains anything but files and
        folders inside its own folder.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no archive {path}.")
    target = tempfile.TemporaryDirectory(prefix="fabricheck-")
    _folders[target] = path
    root = Path(target.name)
    try:
        with gzip.open(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in _members(archive, path):
                _unpack(archive, member, root / member.name)
            # The checksum is compared only at the end of the file.
            left = MOST_BYTES
            while left > 0 and (read := stream.read(1 << 20)):
                left -= len(read)
            if left <= 0:
                raise ValueError("it is cut off")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        sentence = f"{path} is not a complete archive of fabricheck ({why})."
        raise InvalidInputError(sentence) from None
    for found in (root / RESULTS, *sorted(root.glob(f"*/{RESULTS}"))):
        if found.is_dir():
            return found.parent
    raise NotFoundError(f"{path} contains no results of fabricheck.")


def _members(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the files and folders of an archive; refuse it for any other member."""
    left = MOST_BYTES
    for number, member in enumerate(archive):
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise InvalidInputError(
                f"{path} is refused: {name} would be written outside the archive's folder."
            )
        if not (member.isreg() or member.isdir()):
            raise InvalidInputError(f"{path} is refused: {name} is neither a file nor a folder.")
        left -= member.size
        if left < 0 or number >= MOST_MEMBERS:
            raise InvalidInputError(
                f"{path} is refused: its content exceeds {MOST_BYTES >> 20} MiB or "
                f"{MOST_MEMBERS} files."
            )
        yield member


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(member)
    assert source is not None
    with source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
    # The time at which a document was written tells which session it belongs to.
    os.utime(target, (member.mtime, member.mtime))
