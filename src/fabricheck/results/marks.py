"""The marks of a results folder: which sessions began there, in which order.

`marking` leaves a mark; here it is completed and read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.whole_files import write_whole
from fabricheck.results import marking
from fabricheck.results.requested_nodes import Moment


class Mark(StrictModel):
    """The mark of one session, or of a job over many nodes.

    stamp: its start and process, which name its log; empty where only the number is known. name:
    the one that the user gave it. outputs: its folder in ``output`` and ``stage``; None before its
    first check. elsewhere: the folders and files outside the results folder that it writes to. job:
    the job over many nodes. number: that of the mark, not stored in the file.
    """

    form: Literal["fabricheck-mark-1"] = "fabricheck-mark-1"
    stamp: str = Field(pattern=r"^\d{8}T\d{6}-\d+-\d{3}$|^$")
    name: str | None = Field(pattern=f"^{marking.NAME}$")
    began: Moment
    host: str
    command: str
    outputs: str | None = Field(default=None, pattern=r"^[^/]*[^/.][^/]*$")
    elsewhere: Sequence[str] = ()
    job: str | None = None
    number: int = Field(default=0, exclude=True)

    @property
    def id(self) -> str:
        """The name of its folders, or of the mark alone."""
        return self.outputs or self.stamp or f"mark-{self.number}"


def complete(
    path: Path,
    *,
    outputs: str | None = None,
    elsewhere: Sequence[str] = (),
    job: str | None = None,
) -> None:
    """Add to a mark where the results of its session are, as soon as that is known.

    :raises NotFoundError: when it cannot be written.
    :raises InvalidInputError: when it cannot be read.
    """
    mark = read_model(path, Mark)
    known = {"outputs": outputs, "elsewhere": elsewhere, "job": job}
    write_whole(path, mark.model_copy(update=known).model_dump_json(indent=1) + "\n")


def marks_of(results: Path) -> list[Mark]:
    """Return the marks of a results folder by number; one that cannot be read has no stamp."""
    paths = [
        path
        for path in results.glob(f"{marking.FOLDER}/*.json")
        if path.stem.isdecimal() and path.is_file()
    ]
    return [_read(path) for path in sorted(paths, key=lambda path: int(path.stem))]


def require_room(results: Path) -> None:
    """Raise an error where no session can leave a mark: the newest session may have none.

    :raises NotFoundError: when a folder is read-only or full.
    """
    folder = results / marking.FOLDER
    try:
        tempfile.TemporaryFile(dir=folder if folder.is_dir() else results).close()
    except OSError as error:
        raise NotFoundError(
            f"No session can leave its mark in {folder} ({error.strerror}), so the newest one is "
            "unknown: name the session to judge."
        ) from None


def _read(path: Path) -> Mark:
    number = int(path.stem)
    try:
        return read_model(path, Mark).model_copy(update={"number": number})
    except InvalidInputError:
        written = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
        return Mark(stamp="", name=None, began=written, host="", command="", number=number)
