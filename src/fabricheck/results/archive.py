"""Archives of results, read and written: of `fabricheck site first-hour` and of `results pack`."""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.whole_files import replaced
from fabricheck.results import requested_nodes

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
            # Python has it from 3.11.4 on.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            for member in _members(archive, path):
                archive.extract(member, root, set_attrs=False)
                # The time at which a document was written tells which session it belongs to.
                os.utime(root / member.name, (member.mtime, member.mtime))
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


#: What is packed of sessions. Job scripts and logs of ReFrame, which may have anything of
#: the user, are not; documents have the environment variables that they may have, and no others.
OF_SESSIONS = (
    "reports/*.json",
    "nodes/*.yaml",
    "output/**/software/*",
    *(
        f"{folder}/**/{name}"
        for folder in ("output", "stage")
        for name in ("*.json", "*.json.partial", "*.out", "*.err")
    ),
)

#: What is packed of a results folder, with its jobs over many nodes.
OF_RESULTS = (
    *OF_SESSIONS,
    f"{requested_nodes.FOLDER}/*/{requested_nodes.NAME}",
    *(f"{requested_nodes.FOLDER}/*/*/{pattern}" for pattern in OF_SESSIONS),
)

#: What is packed of a first hour.
OF_FIRST_HOUR = (
    "*.json",
    "topology/*",
    *(f"steps/**/{name}" for name in ("*.txt", "*.json", "*.json.partial")),
    *(f"{RESULTS}/{pattern}" for pattern in OF_SESSIONS),
)

#: The most bytes of one text file; of a longer one the beginning and the end are kept.
MOST_TEXT_BYTES = 1 << 20

#: A result document is never cut; a larger one is left out.
MOST_JSON_BYTES = 64 << 20


def files(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Yield the files in a folder that are packed, sorted; symbolic links are not followed."""
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    yield from (path for path in sorted(found) if path.is_file() and not path.is_symlink())


def pack(folder: Path, archive: Path, patterns: Iterable[str], inside: str) -> None:
    """Write the files in a folder to an archive, completely or not at all.

    :param patterns: what is packed.
    :param inside: the folder's name in the archive.
    :raises NotFoundError: when it cannot be written.
    :raises OSError: when a file cannot be read.
    """
    with replaced(archive) as partial, tarfile.open(partial, "w:gz") as out:
        for path in files(folder, patterns):
            content = _content(path)
            # Neither owner nor permissions of the machine.
            member = tarfile.TarInfo(f"{inside}/{path.relative_to(folder)}")
            member.size, member.mtime = len(content), int(path.stat().st_mtime)
            out.addfile(member, io.BytesIO(content))


def _content(path: Path) -> bytes:
    size = path.stat().st_size
    if path.name.endswith((".json", ".json.partial")):
        too_large = size > MOST_JSON_BYTES
        return json.dumps(f"left out: {size} bytes").encode() if too_large else path.read_bytes()
    if size <= MOST_TEXT_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        head = file.read(MOST_TEXT_BYTES // 2)
        file.seek(-MOST_TEXT_BYTES // 2, io.SEEK_END)
        tail = file.read()
    first, last = head.rpartition(b"\n")[0], tail.partition(b"\n")[2]
    return first + f"\n[{size - len(first) - len(last)} bytes left out]\n".encode() + last
