"""The record of a session's software: Spack's lock and concrete specs of each environment.

It is written when a session starts, for the environments that it runs, in the folder ``software``
among the outputs of its checks: ``software.json``, and the lock of each Spack environment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.models import StrictModel, parse_model, read_model
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_all
from fabricheck.site.software.lock import Lock

#: The folder among a session's outputs, and the file in it that describes the rest.
FOLDER, FILE = "software", "software.json"

#: The package of the programs.
OWN_PACKAGE = "fabricheck"

#: The extras of an environment that are folders of programs, and what each contains.
PROGRAMS = {
    "programs": "programs",
    "osu_folder": "OSU Micro-Benchmarks",
    "rccl_folder": "collectives tests",
}

#: Seconds by which the clock of a file may differ from that of its session.
_SLACK_S = 2.0


@dataclass(frozen=True)
class Used:
    """An environment of ReFrame that a session uses: its system, its name and its extras."""

    system: str
    environ: str
    extras: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its name in sentences and file names."""
        return f"{self.system} {self.environ}"


class _Entry(StrictModel, extra="ignore"):
    says: list[str]


class _Record(StrictModel, extra="ignore"):
    written: float
    environments: list[_Entry]


def home(spack_environment: str) -> Path:
    """Return the working folder of a Spack environment, which contains its lock and its view."""
    from fabricheck.site import clusters  # reads ReFrame, which commands do without

    return clusters.view(spack_environment).parent


def write(folder: Path, used: Iterable[Used]) -> list[str]:
    """Record the software of each environment once, and return the statements.

    A lock that is missing or cannot be read becomes a sentence, not an error.

    :param folder: the outputs of the session's checks.
    :raises NotFoundError: when the record cannot be written.
    """
    chosen = {(one.system, one.environ): one for one in used}
    texts: dict[Path, str] = {}
    entries = []
    sentences: list[str] = []
    for (system, environ), one in sorted(chosen.items()):
        says, locked = describe(one)
        sentences += says
        name = f"{system}.{environ}.spack.lock"
        if locked is not None:
            texts[folder / FOLDER / name] = locked
        entries.append(
            {
                "system": system,
                "environment": environ,
                "spack_environment": one.extras.get("spack_environment"),
                **{extra: one.extras.get(extra) for extra in PROGRAMS},
                "files": [] if locked is None else [name],
                "says": says,
            }
        )
    record = {"written": time.time(), "environments": entries}
    target = folder / FOLDER / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    write_all({**texts, target: json.dumps(record, indent=1) + "\n"})
    return sentences


def describe(used: Used) -> tuple[list[str], str | None]:
    """Return what one environment's programs are built from, and the text of its lock.

    The lock is None where there is none, or no program is from a Spack environment.
    """
    folders = {
        what: Path(used.extras[name]) for name, what in PROGRAMS.items() if used.extras.get(name)
    }
    name = used.extras.get("spack_environment")
    if not name:
        listed = " and ".join(f"the {what} of {folder}" for what, folder in folders.items())
        return [f"{used.title}: {listed} are not from a Spack environment."], None
    own = [what for what, folder in folders.items() if is_inside(folder, home(name))]
    elsewhere = [
        f"{used.title}: the {what} of {folder} are not from the Spack environment {name}."
        for what, folder in folders.items()
        if what not in own
    ]
    if not own:
        return elsewhere, None
    built = " and ".join(f"the {what}" for what in own)
    says = f"{used.title}: {built} are from the Spack environment {name}"
    path = home(name) / "spack.lock"
    try:
        text = read_text(path)
    except FabricheckError as error:
        return [f"{says}, whose lock is not kept: {error}", *elsewhere], None
    # A lock that cannot be read here is kept all the same: another Spack may read it.
    try:
        found = parse_model(text, Lock, path)
    except InvalidInputError as error:
        return [f"{says}, whose concrete specs are unknown: {error}", *elsewhere], text
    has_own = any(spec.name == OWN_PACKAGE for spec in found.concrete_specs.values())
    lacks = f"; the lock has no {OWN_PACKAGE}, so it does not state what they were built from"
    sentence = (
        f"{says}: {', '.join(found.root_names)} ({len(found.concrete_specs)} specs, "
        f"{len(found.externals)} of them external){'' if has_own else lacks}."
    )
    return [sentence, *elsewhere], text


def is_inside(folder: Path, environment: Path) -> bool:
    """Whether a folder is inside a Spack environment, by whatever symbolic link."""
    return folder.resolve().is_relative_to(environment.resolve())


def sentences(outputs: Iterable[Path], start: float, end: float) -> list[str]:
    """Return the statements of a session's record; empty without one.

    :param outputs: the folders where the outputs of its checks may be, in order.
    :param start: of the session, in s since 1970; another session's record is ignored.
    :param end: of the session, likewise.
    """
    for folder in outputs:
        path = folder / FOLDER / FILE
        if not path.is_file():
            continue
        try:
            record = read_model(path, _Record)
        except FabricheckError:
            return [f"{path}: this is not a record of a session's software."]
        if start - _SLACK_S <= record.written <= end + _SLACK_S:
            return [sentence for entry in record.environments for sentence in entry.says]
    return []
