"""The software of a session's programs: Spack's lock, and the record of each environment.

The lock (``spack.lock``) has the concrete specs of an environment, read without Spack. The formats
5 (Spack 0.21 to 0.23), 6 (1.0, 1.1) and 7 (1.2) share what is read here. The site's software that
its ``spack.yaml`` names is compared with them.

The record is written when a session starts, for the environments that it runs, in the folder
``software`` among the outputs of its checks: ``software.json``, and the lock of each Spack
environment. It has the commit of the checkout, whose checks and limits the session uses, and the
SHA-256 of each program.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import runpy
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import AliasPath, Field, model_validator

from fabricheck.core import checkout
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.models import StrictModel, parse_model, read_model
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_all
from fabricheck.site import clusters

#: The supported formats.
FORMATS = (5, 6, 7)

#: Characters of a hash by which people and Spack name a spec.
SHORT = 7


class _Section(StrictModel, extra="ignore"):
    """A part of a lock, of which only some keys are read."""


class _Root(_Section):
    hash: str
    spec: str


class Concrete(_Section):
    """One concrete spec. prefix: where an external package is installed."""

    name: str
    version: str
    prefix: str | None = Field(None, validation_alias=AliasPath("external", "path"))


class Lock(_Section):
    """A lock: its format, the Spack that made it, the requested specs, all specs by hash."""

    file_type: Literal["spack-lockfile"] = Field(validation_alias=AliasPath("_meta", "file-type"))
    format: int = Field(validation_alias=AliasPath("_meta", "lockfile-version"))
    spack_version: str | None = Field(None, validation_alias=AliasPath("spack", "version"))
    roots: list[_Root] = Field(min_length=1)
    concrete_specs: Mapping[str, Concrete]

    @model_validator(mode="after")
    def _is_known(self) -> Lock:
        if self.format not in FORMATS:
            supported = listed(map(str, FORMATS))
            raise ValueError(f"the lock format {self.format} is unknown; supported are {supported}")
        for root in self.roots:
            if root.hash not in self.concrete_specs:
                raise ValueError(f"there is no concrete spec of its root {root.spec}")
        return self

    @property
    def externals(self) -> list[Concrete]:
        """The specs of externals, installed by the site, by name."""
        externals = [spec for spec in self.concrete_specs.values() if spec.prefix]
        return sorted(externals, key=lambda spec: (spec.name, spec.version))

    @property
    def root_names(self) -> list[str]:
        """Name, version and the start of the hash of each requested spec."""
        roots = {root.hash: self.concrete_specs[root.hash] for root in self.roots}
        return sorted(
            f"{spec.name}@{spec.version}/{hash_[:SHORT]}" for hash_, spec in roots.items()
        )


#: The script with which `spack-env/install` checks locks; a separate program, as Spack's Python
#: runs it.
CHECKER = ROOT / "spack-env" / "check.py"

_VERSION = re.compile(r"@=?([\w.-]+)")


def packages(folder: Path) -> dict[str, Any]:
    """Return the section ``packages`` of an environment and its includes.

    :param folder: with ``spack.yaml``.
    :raises InvalidInputError: when a file cannot be read.
    """
    try:
        configured: dict[str, Any] = runpy.run_path(str(CHECKER))["packages"](
            str(folder), yaml.safe_load
        )
        _ = [
            external["spec"]
            for package in configured.values()
            for external in package.get("externals", [])
        ]
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(f"{folder / 'spack.yaml'}: {reason}.") from None
    return configured


def versions(folder: Path) -> dict[str, dict[str, str | None]]:
    """Return by package the version of each external, and its prefix.

    :raises InvalidInputError: as `packages`.
    """
    installed: dict[str, dict[str, str | None]] = {}
    for name, about in packages(folder).items():
        for external in about.get("externals", []):
            for version in _VERSION.findall(external["spec"])[:1]:
                installed.setdefault(name, {})[version] = external.get("prefix")
    return installed


def disagreement(folder: Path, locked: Lock) -> str | None:
    """Return a sentence about externals of a lock that ``spack.yaml`` has in another version or
    folder; None without any.

    :raises InvalidInputError: as `packages`.
    """
    described = versions(folder)
    differ = []
    for external in locked.externals:
        known = described.get(external.name, {})
        if known and known.get(external.version, "") not in (None, external.prefix):
            stated = enumerated(map(_at, known.items()), last="or")
            differ.append(
                f"{external.name} {stated}, locked {_at((external.version, external.prefix))}"
            )
    if not differ:
        return None
    return (
        f"{folder / 'spack.yaml'} and its lock differ ({'; '.join(differ)}): make the lock anew, "
        f"spack-env/install --new-lock {folder.name}."
    )


def _at(external: tuple[str, str | None]) -> str:
    version, prefix = external
    return f"{version} ({prefix})" if prefix else version


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


class Environment(StrictModel, extra="ignore"):
    """What a session recorded of an environment: its statements, its lock and its programs.

    folder: of its programs, in the checkout where they are there. files: the names of its locks.
    sha256: of each program by its name; empty in records from before it was recorded, and where the
    folder cannot be read.
    """

    says: list[str]
    system: str = ""
    environment: str = ""
    spack_environment: str | None = None
    folder: str | None = None
    files: list[str] = []
    sha256: dict[str, str] = {}


class Record(StrictModel, extra="ignore"):
    """What a session recorded of its software.

    written: in s since 1970. checkout: the commit of its checks and limits; None in older records.
    """

    written: float
    checkout: str | None = None
    environments: list[Environment]


def home(spack_environment: str) -> Path:
    """Return the working folder of a Spack environment, which contains its lock and its view."""
    return clusters.view(spack_environment).parent


def write(folder: Path, used: Iterable[Used]) -> list[str]:
    """Record the software of each environment once, and return the statements.

    A lock that is missing or cannot be read becomes a sentence, not an error.

    :param folder: the outputs of the session's checks.
    :raises NotFoundError: when the record cannot be written.
    """
    chosen = {(use.system, use.environ): use for use in used}
    texts: dict[Path, str] = {}
    entries = []
    sentences: list[str] = []
    for (system, environ), use in sorted(chosen.items()):
        says, locked = describe(use)
        sentences += says
        name = f"{system}.{environ}.spack.lock"
        if locked is not None:
            texts[folder / FOLDER / name] = locked
        entries.append(
            {
                "system": system,
                "environment": environ,
                "spack_environment": use.extras.get("spack_environment"),
                **{extra: use.extras.get(extra) for extra in PROGRAMS},
                "files": [] if locked is None else [name],
                "folder": _in_checkout(use.extras.get("programs")),
                "sha256": digests(use.extras.get("programs")),
                "says": says,
            }
        )
    record = {
        "written": time.time(),
        "checkout": checkout.commit(),
        "environments": entries,
    }
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
        programs = enumerated(f"the {what} of {folder}" for what, folder in folders.items())
        return [f"{used.title}: {programs} are not from a Spack environment."], None
    inside = [what for what, folder in folders.items() if is_inside(folder, home(name))]
    elsewhere = [
        f"{used.title}: the {what} of {folder} are not from the Spack environment {name}."
        for what, folder in folders.items()
        if what not in inside
    ]
    if not inside:
        return elsewhere, None
    built = enumerated(f"the {what}" for what in inside)
    says = f"{used.title}: {built} are from the Spack environment {name}"
    path = home(name) / "spack.lock"
    try:
        text = read_text(path)
    except FabricheckError as error:
        return [f"{says}, whose lock is not kept: {error}", *elsewhere], None
    # A lock that cannot be read here is kept all the same: another Spack may read it.
    try:
        lock = parse_model(text, Lock, path)
    except InvalidInputError as error:
        return [f"{says}, whose concrete specs are unknown: {error}", *elsewhere], text
    has_own = any(spec.name == OWN_PACKAGE for spec in lock.concrete_specs.values())
    lacks = f"; the lock has no {OWN_PACKAGE}, so it does not state what they were built from"
    sentence = (
        f"{says}: {listed(lock.root_names)} ({len(lock.concrete_specs)} specs, "
        f"{len(lock.externals)} of them external){'' if has_own else lacks}."
    )
    return [sentence, *elsewhere], text


def is_inside(folder: Path, environment: Path) -> bool:
    """Whether a folder is inside a Spack environment, by whatever symbolic link."""
    return folder.resolve().is_relative_to(environment.resolve())


def _in_checkout(folder: str | None) -> str | None:
    """Return a folder relative to the checkout, where it is in it."""
    if folder and Path(folder).is_relative_to(checkout.ORIGIN):
        return str(Path(folder).relative_to(checkout.ORIGIN))
    return folder


def digests(programs: str | None) -> dict[str, str]:
    """Return the SHA-256 of each program in a folder by its name; of a link that of its target."""
    folder = Path(programs) if programs else None
    if folder is None or not folder.is_dir():
        return {}
    paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
    digest_of = {}
    for path in paths:
        try:
            state = path.stat()
            digest_of[path.name] = _digest(path, state.st_mtime_ns, state.st_size)
        except OSError:
            continue  # one that nobody may read cannot be run either
    return digest_of


@functools.lru_cache(maxsize=256)
def _digest(path: Path, _changed: int, _bytes: int) -> str:
    # Cached, because checks that compile record the same programs again.
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recorded(outputs: Iterable[Path], start: float, end: float) -> Record | None:
    """Return a session's record; None without one.

    :param outputs: the folders where the outputs of its checks may be, in order.
    :param start: of the session, in s since 1970; another session's record is ignored.
    :param end: of the session, likewise.
    :raises InvalidInputError: when it is damaged.
    """
    for folder in outputs:
        path = folder / FOLDER / FILE
        if not path.is_file():
            continue
        try:
            record = read_model(path, Record)
        except FabricheckError:
            raise InvalidInputError(
                f"{path}: this is not a record of a session's software."
            ) from None
        if start - _SLACK_S <= record.written <= end + _SLACK_S:
            return record
    return None


def sentences(outputs: Iterable[Path], start: float, end: float) -> list[str]:
    """Return the statements of a session's record; empty without one. Parameters as `recorded`."""
    try:
        record = recorded(outputs, start, end)
    except InvalidInputError as damaged:
        return [str(damaged)]
    if record is None:
        return []
    return [sentence for entry in record.environments for sentence in entry.says]
