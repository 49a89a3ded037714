"""The manifest of recorded rounds: what ran, in which order, and what failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fabricheck.errors import InvalidDocument, NotFoundError
from fabricheck.results.text import read_text
from fabricheck.rounds.cases import Tool

#: Its name in the folder.
FILE = "rounds.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Failure(_Strict):
    """Why a launch gave no value: one sentence, and the exit code of fabricheck for it."""

    code: int
    sentence: str


class Ran(_Strict):
    """One launch, as it was started.

    round: from 1.
    command: without folders; output: the file in the same folder.
    exit_code: None when its time was over; 128 + n of one that signal n ended.
    """

    round: int
    name: str
    tool: Tool | None
    command: str
    output: str
    exit_code: int | None
    seconds: float
    failure: Failure | None = None


class Device(_Strict):
    """One device, as our documents name it."""

    index: int
    name: str
    pci_address: str | None
    unique_id: str | None


class Manifest(_Strict):
    """Launches are in the order in which they ran.

    started, finished: dates of ISO 8601; finished is None in a folder that was not.
    left_out: tools that did not run, and why.
    versions: of our programs, of each tool that tells it, of runtime and driver.
    failures: all of the launches', and those that belong to none.
    """

    format: Literal["fabricheck-rounds"] = "fabricheck-rounds"
    format_version: Literal[1] = 1
    started: str
    finished: str | None = None
    rounds: int
    devices: tuple[Device, ...]
    versions: dict[str, str]
    left_out: dict[str, str]
    launches: tuple[Ran, ...] = ()
    failures: tuple[Failure, ...] = ()


def load(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    :raises NotFoundError: when there is none.
    :raises InvalidDocument: when it can not be read, or is not one.
    """
    path = folder / FILE
    if not path.exists():
        raise NotFoundError(f"{folder} holds no rounds: there is no {FILE} in it.")
    try:
        return Manifest.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise InvalidDocument(path, f"{place}: {first['msg']}") from None


def save(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, all at once: whoever reads meanwhile gets the one before."""
    path = folder / FILE
    partial = path.with_name(f"{FILE}.partial")
    text = json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n"
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
