"""Writing of results into one archive to send: only the files that are listed here."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from fabricheck.core.whole_files import replaced
from fabricheck.results import requested_nodes
from fabricheck.results.archive import RESULTS, stem

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
MOST_BYTES = 1 << 20

#: A result document is never cut; a larger one is left out.
MOST_JSON_BYTES = 64 << 20


def files(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Yield the files in a folder that are packed, sorted; symbolic links are not followed."""
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    yield from (path for path in sorted(found) if path.is_file() and not path.is_symlink())


def results(folder: Path, archive: Path) -> None:
    """Write a results folder to an archive, as `first_hour`."""
    _write(folder, archive, OF_RESULTS, f"{stem(archive)}/{RESULTS}")


def first_hour(folder: Path, archive: Path) -> None:
    """Write the folder of a first hour to an archive, completely or not at all.

    :raises NotFoundError: when it cannot be written.
    :raises OSError: when a file cannot be read.
    """
    _write(folder, archive, OF_FIRST_HOUR, folder.name)


def _write(folder: Path, archive: Path, patterns: Iterable[str], inside: str) -> None:
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
    if size <= MOST_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        head = file.read(MOST_BYTES // 2)
        file.seek(-MOST_BYTES // 2, io.SEEK_END)
        tail = file.read()
    first, last = head.rpartition(b"\n")[0], tail.partition(b"\n")[2]
    return first + f"\n[{size - len(first) - len(last)} bytes left out]\n".encode() + last
