"""The published data set: records by id, each value in the units of the suite."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.errors import InvalidInputError, NotFoundError

#: Factors to the units of the suite, by the unit of a record.
_UNITS = {
    "GB/s": ("GB/s", 1.0),
    "MB/s": ("GB/s", 0.001),
    "TB/s": ("GB/s", 1000.0),
    "us": ("us", 1.0),
    "percent": ("percent", 1.0),
    "ratio": ("ratio", 1.0),
}


@dataclass(frozen=True)
class Record:
    """One published record.

    ``value`` is in ``unit``: GB/s, us, percent or ratio; ``step`` is the last digit printed, in the
    same unit; ``printed`` is the value as text; ``where`` names publication and place.
    """

    id: str
    system: str
    accelerator: str
    experiment: str
    value: float
    unit: str
    step: float
    printed: str
    where: str
    exact: bool
    qualifier: str | None
    measured: bool
    secondary: bool
    inferred: bool

    @property
    def is_latency(self) -> bool:
        """Whether the tolerance of latencies applies, not that of bandwidths."""
        return self.unit == "us"


class Records:
    """The records of a data set by id."""

    def __init__(self, path: Path, content: Mapping[str, Mapping[str, Any]]) -> None:
        self.path = path
        self._content = content

    def matching(self, pattern: str) -> list[str]:
        """Return the ids that a shell pattern matches, such as one id.

        :raises NotFoundError: when there are none.
        """
        found = fnmatch.filter(self._content, pattern)
        if not found:
            raise NotFoundError(f"{self.path} has no record '{pattern}'.")
        return found

    def get(self, name: str) -> Record:
        """Return a record.

        :raises NotFoundError: when there is none of that id.
        :raises InvalidInputError: when its unit or value can not be compared.
        """
        raw = self._content.get(name)
        if raw is None:
            raise NotFoundError(f"{self.path} has no record '{name}'.")
        unit, factor, value = raw.get("unit"), 1.0, raw.get("value")
        printed = value
        if raw.get("unit_si"):
            unit, value = raw["unit_si"], raw.get("value_si")
        if unit not in _UNITS or isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInputError(
                f"{self.path}: record '{name}' can not be compared: its value is {value!r} {unit}."
            )
        unit, factor = _UNITS[unit]
        source = raw.get("source", {})
        return Record(
            id=name,
            system=raw["system"],
            accelerator=raw["accelerator"],
            experiment=raw["experiment"],
            value=value * factor,
            unit=unit,
            step=10.0 ** -_decimals(printed) * factor,
            printed=str(printed) if value * factor == printed else f"{value * factor:g}",
            where=", ".join(filter(None, (source.get("title"), source.get("where")))),
            exact="qualifier" not in raw,
            qualifier=raw.get("qualifier"),
            measured=raw.get("kind") == "measured",
            secondary=bool(raw.get("secondary")),
            inferred=bool(raw.get("system_inferred")),
        )

    def eligible(self, systems: tuple[str, ...], experiments: frozenset[str]) -> set[str]:
        """Return the ids of measured, exact, not secondary records of systems and experiments."""
        return {
            name
            for name, raw in self._content.items()
            if raw["system"] in systems
            and raw["experiment"] in experiments
            and raw.get("kind") == "measured"
            and "qualifier" not in raw
            and not raw.get("secondary")
        }


def _decimals(value: Any) -> int:
    _, _, digits = str(value).partition(".")
    return len(digits)


def read_records(path: Path) -> Records:
    """Read a published data set.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: when it holds no records.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(path.read_bytes(), Loader=loader)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise InvalidInputError(f"{path}: it can not be read ({first}).") from None
    records = content.get("records") if isinstance(content, dict) else None
    if not isinstance(records, list) or not all(
        isinstance(record, dict) and {"id", "system", "accelerator", "experiment"} <= set(record)
        for record in records
    ):
        raise InvalidInputError(f"{path}: it holds no list of records with id and system.")
    return Records(path, {record["id"]: record for record in records})
