"""Writing of the collected files into one archive, without secrets."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

from fabricheck.core.whole_files import replaced
from fabricheck.run.first_hour.secrets import Masks

#: Files that are not text: ReFrame's own database, which repeats its reports.
_NO_TEXT = (".db", ".db.lock", ".so")

#: The most bytes of one text file; of a longer one the beginning and the end are kept.
MOST_BYTES = 1 << 20

#: A result document is never cut; a larger one is left out.
MOST_JSON_BYTES = 64 << 20


def files(folder: Path) -> Iterator[Path]:
    """Yield the text files in a folder, sorted; symbolic links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.endswith(_NO_TEXT):
            yield path


def write(folder: Path, archive: Path) -> None:
    """Write the files of a folder to an archive, completely or not at all.

    :raises NotFoundError: when it cannot be written.
    :raises OSError: when a file cannot be read.
    """
    parts = {part for path in files(folder) for part in path.relative_to(folder).parts}
    masks = Masks(kept=parts)
    with replaced(archive) as partial, tarfile.open(partial, "w:gz") as out:
        for path in files(folder):
            content = _masked(path, masks).encode()
            # Neither owner nor permissions of the machine.
            member = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder)}")
            member.size, member.mtime = len(content), int(path.stat().st_mtime)
            out.addfile(member, io.BytesIO(content))


def _masked(path: Path, masks: Masks) -> str:
    size = path.stat().st_size
    if path.name.endswith((".json", ".json.partial")):
        if size > MOST_JSON_BYTES:
            return json.dumps(f"left out: {size} bytes")
        try:
            return json.dumps(masks.json(json.loads(path.read_bytes())), indent=1) + "\n"
        except (ValueError, RecursionError):
            pass  # cut off by a full disk or a kill; then it is treated as text
    if size <= MOST_BYTES:
        return masks.text(path.read_text(encoding="utf-8", errors="replace"))
    with path.open("rb") as file:
        head = file.read(MOST_BYTES // 2)
        file.seek(-MOST_BYTES // 2, io.SEEK_END)
        tail = file.read()
    # Cut lines are removed: half of a secret would not be recognised.
    first, last = head.rpartition(b"\n")[0], tail.partition(b"\n")[2]
    said = f"\n[{size - len(first) - len(last)} bytes left out]\n".encode()
    return masks.text((first + said + last).decode(errors="replace"))
