"""The published data set: its records in one unit, and what they were measured with."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError

#: Where ReFrame looks for reference files; the settings set it where nobody has.
PREFIX_VARIABLE = "RFM_REFERENCE_PREFIX"

OWN_FOLDER = ROOT / "reference_values"

FILE = "published_values.yaml"

#: The units of records, as a unit of metrics and a factor; others are no ground for a reference.
UNITS = {"GB/s": ("GB/s", 1.0), "TB/s": ("GB/s", 1e3), "MB/s": ("GB/s", 1e-3), "us": ("us", 1.0),
         "percent": ("percent", 1.0)}  # fmt: skip

#: The role of records that a site accepts its nodes with: no measurement of that site.
ACCEPTANCE = "site_acceptance_reference"

#: libyaml reads the data set in a fifth of a second, PyYAML alone in eight.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_VERSION = re.compile(r"\b(ROCm|CUDA)[ -]?(\d+(?:\.\d+)*)|\bcu(\d\d)(\d)\b", re.IGNORECASE)


class Published:
    """The records, by their id."""

    def __init__(self, path: Path) -> None:
        """Read the data set.

        :raises NotFoundError: when there is no such file.
        :raises InvalidInputError: when it is not readable as YAML, or has no records.
        """
        content = read_yaml(path)
        try:
            self.records: Mapping[str, dict[str, Any]] = {
                one["id"]: one for one in content["records"]
            }
            self._setups: list[dict[str, Any]] = content["setups"]
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"{path}: is no data set of records ({error}).") from None
        self._path = path

    def record(self, name: str) -> dict[str, Any]:
        """Return a record.

        :raises InvalidInputError: when there is none of that id.
        """
        try:
            return self.records[name]
        except KeyError:
            raise InvalidInputError(f"{self._path}: there is no record {name}.") from None

    def value(self, name: str) -> tuple[float, str]:
        """Return a record's value and its unit, which is GB/s, us or percent.

        :raises InvalidInputError: when the record's unit can not be made one of these.
        """
        record = self.record(name)
        value = record.get("value_si", record["value"])
        stated = record.get("unit_si", record["unit"])
        if stated not in UNITS:
            raise InvalidInputError(f"{self._path}: record {name} is in {stated}.")
        unit, factor = UNITS[stated]
        return value * factor, unit

    def versions(self, name: str) -> dict[str, str]:
        """Return ROCm's or CUDA's version with which a record was measured; empty if unknown.

        The record's own words count first, then the setup of its source.
        """
        record = self.record(name)
        conditions = record["conditions"]
        for key in ("software", "mpi", "container"):
            found = _VERSION.search(str(conditions.get(key, "")))
            if found:
                word, version, *cuda = found.groups()
                return {"cuda": ".".join(cuda)} if version is None else {word.lower(): version}
        if record["kind"] == "theoretical":
            return {}
        title = record["source"]["title"]
        for setup in self._setups:
            if title.startswith(tuple(setup["titles"])):
                wanted = "cuda" if "A100" in record["accelerator"] else "rocm"
                version = setup.get("software", {}).get(wanted)
                return {wanted: version} if version else {}
        return {}


def read_yaml(path: Path) -> Any:
    """Read a file of YAML.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: when it is not readable as YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InvalidInputError(
            f"{path}: can not be read as YAML ({' '.join(str(error).split())})."
        ) from None


def folder() -> Path:
    """Return the folder that references are read from."""
    return Path(os.environ.get(PREFIX_VARIABLE) or OWN_FOLDER)


def of_folder(folder: Path) -> Published:
    """Return the data set of a folder of reference files, else that of fabricheck; read once."""
    own = folder / FILE
    return _read(own if own.exists() else OWN_FOLDER / FILE)


@functools.cache
def _read(path: Path) -> Published:
    return Published(path)
