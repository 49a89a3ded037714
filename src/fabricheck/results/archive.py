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
from typing import IO, cast

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.whole_files import replaced
from fabricheck.results import marking, requested_nodes

#: The suffix of an archive.
SUFFIXES = (".tar.gz", ".tgz")

#: The results folder in an archive.
RESULTS = "results"

#: Limits on an archive: its bytes unpacked, those of its headers, its files and folders, and the
#: folders that one is in. A session has some 20 MB and a thousand files, 10 folders deep.
MOST_BYTES, MOST_HEADER_BYTES = 1 << 30, 256 << 20
MOST_MEMBERS, MOST_DEPTH = 100_000, 32

#: The same of the headers of one member: its bytes, of which a path of 4096 takes a third, and its
#: entries, which are lines. A global entry counts for every member.
MOST_BYTES_OF_A_HEADER, MOST_ENTRIES = 16 << 10, 100

#: Archives that this process unpacked, by temporary folder; removed when it ends.
_folders: dict[tempfile.TemporaryDirectory[str], Path] = {}


def is_archive(path: Path) -> bool:
    """Whether a path names an archive, by its suffix."""
    return path.name.endswith(SUFFIXES) and not path.is_dir()


def is_unpacked(folder: Path) -> bool:
    """Whether a folder is of an archive: of paths that its files have, those outside are unread."""
    return any(folder.is_relative_to(target.name) for target in _folders)


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
        # Everything is read before anything is written; the checksum stands at the end.
        with gzip.open(path) as stream:
            bounded = _Bounded(stream, path)
            for _ in _members(bounded):
                pass
            bounded.skip_rest()
        with gzip.open(path) as stream:
            for archive, member in _members(_Bounded(stream, path)):
                archive.extract(member, root, set_attrs=False)
                # The time at which a document was written tells which session it belongs to.
                os.utime(root / member.name, (member.mtime, member.mtime))
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        sentence = f"{path} is not a complete archive of fabricheck ({why})."
        raise InvalidInputError(sentence) from None
    for folder in (root / RESULTS, *sorted(root.glob(f"*/{RESULTS}"))):
        if folder.is_dir():
            return folder.parent
    raise NotFoundError(f"{path} contains no results of fabricheck.")


class _Bounded:
    """The unpacked bytes of an archive, read forward; more than the limits allow are refused.

    ``tarfile`` reads the headers of a member as a whole into memory, however long they are.
    """

    def __init__(self, stream: gzip.GzipFile, path: Path) -> None:
        self.path = path
        self._stream = stream
        self._at = 0
        self._header_bytes = 0
        #: The bytes that the headers of this member may still have; None while it is unpacked.
        self._left_of_header: int | None = None

    def tell(self) -> int:
        return self._at

    def seek(self, target: int) -> None:
        """Skip what is before a place."""
        while self._at < target:
            read = self._stream.read(min(target - self._at, 1 << 20))
            if not read:
                return
            self._count(len(read))
        if self._at > target:
            raise ValueError("its members overlap")

    def read(self, size: int) -> bytes:
        """Read at most as many bytes."""
        if self._left_of_header is not None:
            self._left_of_header -= size
            self._header_bytes += size
            if self._left_of_header < 0:
                raise self.refusal(f"a header exceeds {MOST_BYTES_OF_A_HEADER >> 10} KiB")
            if self._header_bytes > MOST_HEADER_BYTES:
                raise self.refusal(f"its headers exceed {MOST_HEADER_BYTES >> 20} MiB")
        content = self._stream.read(size)
        self._count(len(content))
        if self._left_of_header is not None and content.count(b"\n") > MOST_ENTRIES:
            raise self.refusal(f"a header has more than {MOST_ENTRIES} entries")
        return content

    def begin_header(self) -> None:
        """Count what is read as headers, until they end."""
        self._left_of_header = MOST_BYTES_OF_A_HEADER

    def end_header(self) -> None:
        """Count what is read as content."""
        self._left_of_header = None

    def skip_rest(self) -> None:
        """Read to the end, where the checksum is compared."""
        while read := self._stream.read(1 << 20):
            self._count(len(read))

    def refusal(self, reason: str) -> InvalidInputError:
        """Return the error that the archive is refused for a reason."""
        return InvalidInputError(f"{self.path} is refused: {reason}.")

    def require_room(self, number: int) -> None:
        """Refuse an archive with more bytes than the limit, if as many follow."""
        if self._at + number > MOST_BYTES:
            raise self.refusal(f"it exceeds {MOST_BYTES >> 20} MiB unpacked")

    def _count(self, number: int) -> None:
        self._at += number
        self.require_room(0)


def _members(stream: _Bounded) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the files and folders of an archive; refuse it for any other member.

    :raises InvalidInputError: also when it has more than the limits allow.
    """
    stream.begin_header()
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:") as archive:
        # Python has it from 3.11.4 on.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        number = 0
        while (member := archive.next()) is not None:
            stream.end_header()
            number += 1
            if number > MOST_MEMBERS:
                raise stream.refusal(f"it has more than {MOST_MEMBERS} files and folders")
            if len(archive.pax_headers) > MOST_ENTRIES:
                raise stream.refusal(f"its headers have more than {MOST_ENTRIES} global entries")
            _require_harmless(member, stream)
            stream.require_room(member.size)
            yield archive, member
            # Not kept: they would take more memory than what is in them.
            archive.members.clear()  # type: ignore[attr-defined]
            stream.begin_header()


def _require_harmless(member: tarfile.TarInfo, stream: _Bounded) -> None:
    """Refuse what is no file or folder inside the archive's folder."""
    name = PurePosixPath(member.name)
    if not member.name.isprintable():
        raise stream.refusal(f"the name {member.name[:200]!r} has control characters")
    if name.is_absolute() or ".." in name.parts:
        raise stream.refusal(f"{name} would be written outside the archive's folder")
    if len(name.parts) > MOST_DEPTH:
        raise stream.refusal(
            f"a file lies below {len(name.parts) - 1} folders, more than {MOST_DEPTH}"
        )
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise stream.refusal(f"{name} is neither a file nor a folder")


#: What is packed of sessions. Job scripts and logs of ReFrame, which may have anything of
#: the user, are not; documents have the environment variables that they may have, and no others.
OF_SESSIONS = (
    "reports/*.json",
    f"{marking.FOLDER}/*.json",
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
    matching = {path for pattern in patterns for path in folder.glob(pattern)}
    yield from (path for path in sorted(matching) if path.is_file() and not path.is_symlink())


def pack(folder: Path, archive: Path, patterns: Iterable[str], inside: str) -> None:
    """Write the files in a folder to an archive, completely or not at all.

    :param patterns: what is packed.
    :param inside: the folder's name in the archive.
    :raises NotFoundError: when it cannot be written.
    :raises OSError: when a file cannot be read.
    """
    with replaced(archive) as file, tarfile.open(fileobj=file, mode="w:gz") as out:
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
