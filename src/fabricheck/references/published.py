"""The published data set: records in the suite's units, with the software that measured them."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.show import listed

#: The variable with ReFrame's folder of reference files; the settings set it if unset.
PREFIX_VARIABLE = "RFM_REFERENCE_PREFIX"

OWN_FOLDER = ROOT / "reference_values"

FILE = "published_values.yaml"

#: Units of records, as a unit of the suite and a factor; other units stay as they are.
UNITS = {"GB/s": ("GB/s", 1.0), "TB/s": ("GB/s", 1e3), "MB/s": ("GB/s", 1e-3), "us": ("us", 1.0),
         "percent": ("percent", 1.0), "ratio": ("ratio", 1.0)}  # fmt: skip

#: The units that metrics have; a ratio cannot ground a reference.
OF_METRICS = ("GB/s", "us", "percent")

#: Fields of a record that are copied unchanged.
_AS_THEY_ARE = ("id", "system", "accelerator", "experiment", "metric", "kind", "conditions")

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


@dataclass(frozen=True)
class Record:
    """One published record.

    value: in ``unit``, which is one of the suite's where it can be converted. step: the last
    printed digit, in the same unit; printed: the value as text. place: document and place in it.
    kind: measured, theoretical and so on. secondary: its document cites another one. inferred: its
    document does not name the system.
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
    title: str
    where: str
    kind: str
    role: str | None
    qualifier: str | None
    secondary: bool
    inferred: bool
    conditions: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The document, and the place in it."""
        return listed(filter(None, (self.title, self.where)))

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


def _record(raw: Mapping[str, Any]) -> Record:
    lacking = [key for key in (*_AS_THEY_ARE, "value", "source") if key not in raw]
    if lacking:
        raise ValueError(f"record {raw['id']} lacks {listed(lacking)}")
    printed = raw["value"]
    stated, value = raw["unit"], printed
    texts = [raw[key] for key in _AS_THEY_ARE if key != "conditions"]
    are_texts = all(isinstance(one, str) for one in (*texts, stated, raw["source"]["title"]))
    if not (are_texts and isinstance(raw["conditions"], dict)):
        raise TypeError(f"{raw['id']} has something other than the texts or conditions required")
    if "unit_si" in raw:
        stated, value = raw["unit_si"], raw["value_si"]
    if isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"the value of {raw['id']} is not a finite number")
    unit, factor = UNITS.get(stated, (stated, 1.0))
    _, _, decimals = str(printed).partition(".")
    return Record(
        **{key: raw[key] for key in _AS_THEY_ARE},
        value=value * factor,
        unit=unit,
        step=10.0 ** -len(decimals) * factor,
        printed=str(printed) if value * factor == printed else f"{value * factor:g}",
        title=raw["source"]["title"],
        where=raw["source"].get("where", ""),
        role=raw.get("role"),
        qualifier=raw.get("qualifier"),
        secondary=bool(raw.get("secondary")),
        inferred=bool(raw.get("system_inferred")),
    )


def _setup(raw: Mapping[str, Any]) -> dict[str, Any]:
    software = dict(raw.get("software") or {})
    if not all(isinstance(one, str) for one in raw["titles"]):
        raise TypeError("a title of a setup is not a text")
    return {"titles": tuple(raw["titles"]), "software": software}


class Published:
    """The records, by id."""

    def __init__(self, path: Path) -> None:
        """Read the data set.

        :raises NotFoundError: when there is no such file.
        :raises InvalidInputError: when it is not YAML, or has no records.
        """
        content = yaml_files.read(path)
        try:
            self.records: Mapping[str, Record] = {
                one["id"]: _record(one) for one in content["records"]
            }
            self._setups: list[dict[str, Any]] = [_setup(one) for one in content["setups"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"{path}: this is not a data set of records ({error})."
            ) from None
        if len(self.records) != len(content["records"]):
            raise InvalidInputError(f"{path}: two records have the same id.")
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
            found = _VERSION.search(str(record.conditions.get(key, "")))
            if found:
                word, version, *cuda = found.groups()
                return {"cuda": ".".join(cuda)} if version is None else {word.lower(): version}
        if record.kind == "theoretical":
            return {}
        for setup in self._setups:
            if record.title.startswith(setup["titles"]):
                wanted = "cuda" if "A100" in record.accelerator else "rocm"
                version = setup["software"].get(wanted)
                return {wanted: version} if version else {}
        return {}


def folder() -> Path:
    """Return the folder that references are read from."""
    return Path(os.environ.get(PREFIX_VARIABLE) or OWN_FOLDER)


def of_folder(folder: Path) -> Published:
    """Return the data set of a folder of reference files, else that of fabricheck; read once."""
    own = folder / FILE
    return at(own if own.exists() else OWN_FOLDER / FILE)


@functools.cache
def at(path: Path) -> Published:
    """Return the data set of a file, read once."""
    return Published(path)
