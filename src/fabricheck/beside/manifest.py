"""The manifest of recorded rounds: the launches, their order, and the failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from fabricheck.beside.launches import NAMES, order
from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.whole_files import write_whole

#: Its file name in the folder.
FILE = "rounds.json"


class Failure(StrictModel):
    """Why a launch gave no value: one sentence, and fabricheck's exit code for it.

    code: 128 + n if signal n ended the rounds.
    """

    code: int
    sentence: str


class LaunchRecord(StrictModel):
    """One launch, as it was started.

    round: from 1. command: without folders; output: the file in the same folder. exit_code: None
    after a time limit, its own or that of the rounds, or when it could not be started; 128 + n if
    signal n ended it.
    """

    round: int
    name: str
    tool: str | None
    command: str
    output: str
    exit_code: int | None
    seconds: float
    failure: Failure | None = None

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the rounds while it ran."""
        return self.failure is not None and self.failure.code > 128


class Device(StrictModel):
    """One device, as our documents describe it."""

    index: int
    name: str
    pci_address: str | None
    unique_id: str | None


class Manifest(StrictModel, frozen=False):
    """The manifest; launches are in the order in which they ran.

    started, finished: dates of ISO 8601. finished is None in an unfinished folder.

    runtime: of our programs.

    planned: the launches of each round, in the order of the first.

    left_out: tools that did not run, and why.

    versions: of our programs, of each tool that reports one, of runtime and driver.

    failures: those of the launches, and those that belong to no launch.
    """

    format: Literal["fabricheck-rounds"] = "fabricheck-rounds"
    format_version: Literal[1] = 1
    started: str
    finished: str | None = None
    rounds: int
    runtime: Literal["cuda", "rocm"]
    devices: tuple[Device, ...]
    versions: dict[str, str]
    left_out: dict[str, str]
    planned: tuple[str, ...]
    launches: list[LaunchRecord] = []
    failures: list[Failure] = []

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the rounds."""
        return next((failure.code - 128 for failure in self.failures if failure.code > 128), None)

    def missing(self) -> dict[int, tuple[str, ...]]:
        """Return by round the launches that did not finish, in the order of the round."""
        ended = {(launch.round, launch.name) for launch in self.launches if not launch.interrupted}
        found = {
            number: tuple(one for one in order(self.planned, number) if (number, one) not in ended)
            for number in range(1, self.rounds + 1)
        }
        return {number: names for number, names in found.items() if names}


def load(folder: Path) -> Manifest:
    """Load the manifest of a folder.

    :raises NotFoundError: when there is none.
    :raises InvalidFile: when it cannot be read, is not a manifest, or has a launch of unknown
        name.
    """
    path = folder / FILE
    if not path.exists():
        raise NotFoundError(f"{folder} contains no recorded rounds: it has no {FILE}.")
    found = read_model(path, Manifest)
    for number, launch in enumerate(found.launches):
        known = NAMES.get(launch.tool, ("unknown tool",))
        if launch.name not in known:
            whose = launch.tool or "our programs"
            reason = f"{launch.name} is not a launch of {whose} ({', '.join(known)})"
            raise InvalidFile(path, f"launches[{number}]", reason)
    return found


def save(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a folder; a concurrent reader sees the previous one.

    :raises NotFoundError: when it cannot be written; the previous one then stays.
    """
    text = json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n"
    write_whole(folder / FILE, text)
