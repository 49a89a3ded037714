"""How a folder of references differs from the one that this commit has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fabricheck.core import checkout
from fabricheck.references import rules
from fabricheck.references.published import FILE
from fabricheck.site.sites import OWN_FOLDER

#: The files that are read from the checkout's folder where another one lacks them.
_NOT_NEEDED = (FILE, rules.FILE)


def differing_files(folder: Path) -> Iterator[str]:
    """Yield the files of this commit that a folder lacks or has with another content.

    Files that only the folder has loosen no limit of this commit: those of a site's own checks, and
    records of calibrations, which `limits calibrate` writes and `limits check` computes again.
    """
    if folder.resolve() == OWN_FOLDER.resolve():
        yield from checkout.changed_files(OWN_FOLDER)
        return
    for shipped in sorted(OWN_FOLDER.rglob("*.yaml")):
        name = shipped.relative_to(OWN_FOLDER)
        other = folder / name
        if not other.exists() and str(name) in _NOT_NEEDED:
            continue
        if not other.is_file() or other.read_bytes() != shipped.read_bytes():
            yield str(name)
