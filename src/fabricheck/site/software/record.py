"""The record of a session's software: Spack's lock and concrete specs of each environment.

It is written when a session starts, for the environments that it runs, in the folder ``software``
among the outputs of its checks: ``software.json``, and for programs from a Spack environment its
lock and a list of its concrete specs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.text import read_model, read_text
from fabricheck.core.whole_files import write_all
from fabricheck.site.software import lock

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


@dataclass(frozen=True)
class Told:
    """The statement about one environment, and the files that are kept of it (name and text)."""

    says: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)


class _Entry(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="ignore")
    says: list[str]


class _Record(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="ignore")
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
    told = {key: tell(one) for key, one in sorted(chosen.items())}
    record = {
        "written": time.time(),
        "environments": [
            {
                "system": system,
                "environment": environ,
                "spack_environment": chosen[system, environ].extras.get("spack_environment"),
                **{name: chosen[system, environ].extras.get(name) for name in PROGRAMS},
                "files": sorted(one.files),
                "says": list(one.says),
            }
            for (system, environ), one in told.items()
        ],
    }
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    texts = {target / name: text for one in told.values() for name, text in one.files.items()}
    write_all({**texts, target / FILE: json.dumps(record, indent=1) + "\n"})
    return [sentence for one in told.values() for sentence in one.says]


def tell(used: Used) -> Told:
    """Return what one environment's programs are built from, and the files that prove it."""
    folders = {
        what: Path(used.extras[name]) for name, what in PROGRAMS.items() if used.extras.get(name)
    }
    name = used.extras.get("spack_environment")
    if not name:
        listed = " and ".join(f"the {what} of {folder}" for what, folder in folders.items())
        return Told([f"{used.title}: {listed} are not from a Spack environment."])
    own = [what for what, folder in folders.items() if is_inside(folder, home(name))]
    elsewhere = [
        f"{used.title}: the {what} of {folder} are not from the Spack environment {name}."
        for what, folder in folders.items()
        if what not in own
    ]
    if not own:
        return Told(elsewhere)
    sentence, files = _of_environment(used, name, " and ".join(f"the {what}" for what in own))
    return Told([sentence, *elsewhere], files)


def _of_environment(used: Used, name: str, what: str) -> tuple[str, dict[str, str]]:
    path = home(name) / "spack.lock"
    says = f"{used.title}: {what} are from the Spack environment {name}"
    try:
        text = read_text(path)
    except FabricheckError as error:
        return f"{says}, whose lock is not kept: {error}", {}
    # A lock that cannot be read here is kept all the same: another Spack may read it.
    stem = f"{used.system}.{used.environ}"
    files = {f"{stem}.spack.lock": text}
    try:
        found = lock.parse(text, path)
    except InvalidInputError as error:
        return f"{says}, whose concrete specs are unknown: {error}", files
    files[f"{stem}.specs.txt"] = found.listing
    roots = ", ".join(spec.short for spec in found.root_specs)
    lacks = (
        ""
        if any(spec.name == OWN_PACKAGE for spec in found.specs)
        else (f"; the lock has no {OWN_PACKAGE}, so it does not state what they were built from")
    )
    return (
        f"{says}: {roots} ({len(found.specs)} specs, {len(found.externals)} of them external, "
        f"in {FOLDER}/{stem}.specs.txt){lacks}.",
        files,
    )


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
