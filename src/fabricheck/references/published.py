"""The published data set: records in the suite's units, with the software that measured them."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasPath, Field, model_validator

from fabricheck.core import yaml_files
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import listed
from fabricheck.site.sites import OWN_FOLDER, PREFIX_VARIABLE

FILE = "published_values.yaml"

#: Units of records, as a unit of the suite and a factor; other units stay as they are.
UNITS = {"GB/s": ("GB/s", 1.0), "TB/s": ("GB/s", 1e3), "MB/s": ("GB/s", 1e-3), "us": ("us", 1.0),
         "percent": ("percent", 1.0), "ratio": ("ratio", 1.0)}  # fmt: skip

#: The units that metrics have; a ratio and an energy cannot ground a reference.
OF_METRICS = ("GB/s", "us", "percent")

#: The roles of records that are limits and no measurements: by which a site accepts its nodes, and
#: what a vendor or a site demands at least, without a tolerance.
ACCEPTANCE = "site_acceptance_reference"
THRESHOLD = "threshold"
LIMITS = (ACCEPTANCE, THRESHOLD)

#: By partition the data set's name of its machine; other partitions have none. That the paper's
#: machine is Dardel is inferred (``system_inferred`` of its records): the paper does not name it.
MACHINES = {
    "lumi:gpu": "lumi-g",
    "frontier:gpu": "frontier",
    "dardel:gpu": "dardel",
    "jureca:mi250": "jureca-mi250",
    "jureca:a100": "jureca-a100",
    "leonardo:booster": "leonardo-booster",
}

_VERSION = re.compile(r"\b(ROCm|CUDA)[ -]?(\d+(?:\.\d+)*)|\bcu(\d\d)(\d)\b", re.IGNORECASE)


class Record(StrictModel, extra="ignore"):
    """One published record.

    value: in ``unit``, which is one of the suite's where it can be converted. step: the last
    printed digit, in the same unit; printed: the value as text. place: document and place in it.
    kind: measured, theoretical and so on. secondary: its document cites another one. inferred: its
    document does not name the system. pair: the devices, source first, of a transfer between two.
    """

    id: str
    system: str
    accelerator: str
    experiment: str
    metric: str
    value: float
    unit: str
    step: float
    printed: str
    title: str = Field(validation_alias=AliasPath("source", "title"))
    where: str = Field("", validation_alias=AliasPath("source", "where"))
    kind: str
    role: str | None = None
    qualifier: str | None = None
    secondary: bool = False
    inferred: bool = Field(False, validation_alias="system_inferred")
    conditions: dict[str, Any]
    pair: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        None, validation_alias=AliasPath("conditions", "pair")
    )

    @model_validator(mode="before")
    @classmethod
    def _is_in_our_unit(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        value: Any = raw.get("value_si", raw.get("value"))
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ValueError("its value is not a finite number")
        stated = raw.get("unit_si", raw.get("unit"))
        unit, factor = UNITS.get(str(stated), (stated, 1.0))
        printed = str(raw.get("value"))
        return raw | {
            "value": value * factor,
            "unit": unit,
            "step": 10.0 ** -len(printed.partition(".")[2]) * factor,
            "printed": printed if value * factor == raw.get("value") else f"{value * factor:g}",
        }

    @property
    def place(self) -> str:
        """The document, and the place in it."""
        return listed(filter(None, (self.title, self.where)))

    @property
    def includes(self) -> str:
        """What an energy is that of; empty of all else."""
        return str(self.conditions.get("includes", ""))

    @property
    def comparable(self) -> bool:
        """Whether the unit is one of the suite."""
        return (self.unit, 1.0) in UNITS.values()

    @property
    def size(self) -> int | None:
        """The size of the array or message in bytes; None where the document does not state it."""
        return self.conditions.get("message_size_bytes")

    @property
    def is_maximum(self) -> bool:
        """Whether it is the highest of several: over sizes, or over repeats."""
        return self.metric == "bandwidth_peak" or "size_sweep" in self.conditions

    @property
    def is_latency(self) -> bool:
        """Whether it is a time, not a bandwidth."""
        return self.unit == "us"


class _Setup(StrictModel, extra="ignore"):
    """What a document measured with: the beginnings of its titles, and versions by name."""

    titles: list[str]
    software: dict[str, str] | None = None


class _File(StrictModel, extra="ignore"):
    records: list[Record]
    setups: list[_Setup]


class Published:
    """The records, by id."""

    def __init__(self, path: Path) -> None:
        """Read the data set.

        :raises NotFoundError: when there is no such file.
        :raises InvalidInputError: when it is not YAML, or has no records.
        """
        content = validated(_File, yaml_files.read(path), path)
        self.records: Mapping[str, Record] = {record.id: record for record in content.records}
        if len(self.records) != len(content.records):
            raise InvalidInputError(f"{path}: two records have the same id.")
        self._setups = content.setups
        self.path = path

    def record(self, name: str) -> Record:
        """Return a record.

        :raises InvalidInputError: when there is none of that id.
        """
        try:
            return self.records[name]
        except KeyError:
            raise InvalidInputError(f"{self.path}: there is no record {name}.") from None

    def matching(self, *patterns: str) -> list[Record]:
        """Return the records whose ids match a pattern with ``*`` and ``?``."""
        return [
            record
            for name, record in self.records.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        ]

    def value(self, name: str) -> tuple[float, str]:
        """Return a record's value and its unit, which is GB/s, us or percent.

        :raises InvalidInputError: when the record's unit cannot be converted to these.
        """
        record = self.record(name)
        if record.unit not in OF_METRICS:
            raise InvalidInputError(f"{self.path}: record {name} is in {record.unit}.")
        return record.value, record.unit

    def versions(self, name: str) -> dict[str, str]:
        """Return ROCm's or CUDA's version with which a record was measured; empty if unknown.

        The record's own version comes first, then that of its source's setup.
        """
        record = self.record(name)
        for key in ("software", "mpi", "container"):
            match = _VERSION.search(str(record.conditions.get(key, "")))
            if match:
                word, version, *cuda = match.groups()
                return {"cuda": ".".join(cuda)} if version is None else {word.lower(): version}
        if record.kind == "theoretical":
            return {}
        for setup in self._setups:
            if record.title.startswith(tuple(setup.titles)):
                wanted = "cuda" if "A100" in record.accelerator else "rocm"
                version = (setup.software or {}).get(wanted)
                return {wanted: version} if version else {}
        return {}


def folder() -> Path:
    """Return the folder that references are read from."""
    return Path(os.environ.get(PREFIX_VARIABLE) or OWN_FOLDER)


def of_folder(folder: Path) -> Published:
    """Return the data set of a folder of reference files, else that of fabricheck; read once."""
    path = folder / FILE
    return at(path if path.exists() else OWN_FOLDER / FILE)


@functools.cache
def at(path: Path) -> Published:
    """Return the data set of a file, read once."""
    return Published(path)
