"""What the commands of an acceptance read: the agreement, and the results folders."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.core.errors import UsageError
from fabricheck.references import agreement as agreements
from fabricheck.results import archive
from fabricheck.results.folder import default_path
from fabricheck.results.requested_nodes import now

if TYPE_CHECKING:
    from fabricheck.judge.acceptance.judging import Accepted

AgreementFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The agreement, such as acceptance.yaml.")
]

ResultsFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--results",
        metavar="FOLDER",
        help="A results folder, or an archive of one; may be repeated (default: the results "
        "folder).",
    ),
]


@dataclass(frozen=True)
class Judged:
    """An agreement's file, the results folders, and what is judged of them."""

    file: Path
    folders: Sequence[Path]
    accepted: Accepted


def accepted(file: Path, results: Sequence[Path]) -> Judged:
    """Read an agreement and judge it by results folders.

    :raises FabricheckError: when one of them cannot be read, or nothing measures a criterion.
    """
    from fabricheck.judge.acceptance import judging, measured

    agreement = agreements.read(file)
    folders = [_folder(path) for path in results or [default_path()]]
    measured.require(file, agreement, folders)
    there = [folder for folder in folders if results or folder.is_dir()]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Judged(file, there, judging.judge(agreement, digest, there, now()))


def _folder(path: Path) -> Path:
    """Return a results folder; of an archive the one in it."""
    if archive.is_archive(path):
        return archive.unpacked(path) / archive.RESULTS
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is neither a results folder nor an archive of one.")
    return path
