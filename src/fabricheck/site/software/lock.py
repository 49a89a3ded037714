"""Spack's lock (``spack.lock``): the concrete specs of an environment, read without Spack.

The formats 5 (Spack 0.21 to 0.23), 6 (1.0, 1.1) and 7 (1.2) share what is read here. Only format 5
states the compiler beside a spec; otherwise a root's spec states the requested one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import first_fault, read_text

#: The supported formats.
FORMATS = (5, 6, 7)

#: Characters of a hash by which people and Spack name a spec.
SHORT = 7

Value = bool | int | str | list[str]


class _Read(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="ignore")


class _Meta(_Read):
    file_type: Literal["spack-lockfile"] = Field(alias="file-type")
    version: int = Field(alias="lockfile-version")


class _Maker(_Read):
    version: str
    commit: str | None = None


class _External(_Read):
    path: str | None = None


class _Root(_Read):
    hash: str
    spec: str


class Concrete(_Read):
    """One concrete spec, with its hash."""

    name: str
    version: str
    hash: str = ""
    parameters: dict[str, Value] = {}
    external: _External | None = None

    @property
    def prefix(self) -> str | None:
        """Where an external package is installed."""
        return self.external.path if self.external else None

    @property
    def short(self) -> str:
        """Name, version and the start of the hash."""
        return f"{self.name}@{self.version}/{self.hash[:SHORT]}"

    @property
    def line(self) -> str:
        """The spec as Spack writes it, with its hash and the prefix of an external."""
        switches, settings = "", ""
        for name, value in sorted(self.parameters.items()):
            if isinstance(value, bool):
                switches += f"{'+' if value else '~'}{name}"
            elif value not in ([], ""):
                text = ",".join(value) if isinstance(value, list) else str(value)
                settings += f" {name}={text}"
        end = f" [external: {self.prefix}]" if self.prefix else ""
        return f"{self.name}@{self.version}{switches}{settings} /{self.hash[:SHORT]}{end}"


class _Lock(_Read):
    meta: _Meta = Field(alias="_meta")
    spack: _Maker | None = None
    roots: list[_Root] = Field(min_length=1)
    concrete_specs: dict[str, Concrete]


@dataclass(frozen=True)
class Lock:
    """A lock: its format, its maker, the requested specs by hash, and all concrete specs."""

    format: int
    spack_version: str | None
    spack_commit: str | None
    roots: Mapping[str, str]
    specs: Sequence[Concrete]

    @property
    def externals(self) -> list[Concrete]:
        """The specs of externals, installed by the site."""
        return [spec for spec in self.specs if spec.prefix]

    @property
    def root_specs(self) -> list[Concrete]:
        """The concrete specs of what was asked for."""
        return [spec for spec in self.specs if spec.hash in self.roots]

    @property
    def listing(self) -> str:
        """Return all specs, one a line, roots first, below a header that names who concretized
        them.
        """
        maker = f"Spack {self.spack_version or 'of unknown version'}"
        commit = f" (commit {self.spack_commit})" if self.spack_commit else ""
        rest = [spec for spec in self.specs if spec.hash not in self.roots]
        lines = [
            f"# lock format {self.format}, made by {maker}{commit}",
            f"# asked for: {len(self.roots)}",
            *(spec.line for spec in self.root_specs),
            f"# what they need: {len(rest)}",
            *(spec.line for spec in rest),
        ]
        return "".join(f"{line}\n" for line in lines)


def parse(text: str, origin: Path | str) -> Lock:
    """Parse the text of a lock.

    :param origin: the file, for errors.
    :raises InvalidInputError: when it is cut off, not a lock, of an unknown format, or lacks a
        root.
    """
    try:
        lock = _Lock.model_validate_json(text)
    except ValidationError as error:
        place, reason = first_fault(error)
        raise InvalidInputError(
            f"{origin}: this is not a Spack lock: {place or 'the file'}: {reason}."
        ) from None
    strict_json.parse(text, origin)
    if lock.meta.version not in FORMATS:
        raise InvalidInputError(
            f"{origin}: the lock format {lock.meta.version} is unknown; supported are "
            f"{', '.join(map(str, FORMATS))}."
        )
    for root in lock.roots:
        if root.hash not in lock.concrete_specs:
            raise InvalidInputError(f"{origin}: there is no concrete spec of its root {root.spec}.")
    specs = [spec.model_copy(update={"hash": key}) for key, spec in lock.concrete_specs.items()]
    return Lock(
        lock.meta.version,
        lock.spack.version if lock.spack else None,
        lock.spack.commit if lock.spack else None,
        {root.hash: root.spec for root in lock.roots},
        sorted(specs, key=lambda spec: (spec.name, spec.version, spec.hash)),
    )


def read(path: Path) -> Lock:
    """Read a lock.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: as `parse`.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no lock {path}.")
    return parse(read_text(path), path)
