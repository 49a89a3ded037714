"""What the reference files state: entries by check and partition or set, and their origins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.calibration.files import BOUNDS, OTHERS, PROVENANCE, REDUCED
from fabricheck.references import origin
from fabricheck.references.origin import Origin
from fabricheck.references.published import FILE, Published, published, read_yaml

#: Where ReFrame looks for reference files; the settings set it where nobody has.
PREFIX_VARIABLE = "RFM_REFERENCE_PREFIX"

OWN_FOLDER = ROOT / "reference_values"


def folder() -> Path:
    """Return the folder that ReFrame reads references from."""
    return Path(os.environ.get(PREFIX_VARIABLE) or OWN_FOLDER)


class References:
    """The reference files of a folder."""

    def __init__(self, folder: Path) -> None:
        """Read them.

        :raises NotFoundError: when there is no such folder.
        :raises InvalidInputError: when a file is not readable, or a check is in two of them.
        """
        if not folder.is_dir():
            raise NotFoundError(f"There is no folder of reference files {folder}.")
        self.folder = folder
        self.files: dict[str, Mapping[str, Any]] = {}
        #: By check the name of its file.
        self.file_of: dict[str, str] = {}
        for path in sorted(folder.glob("*.yaml")):
            if any(path.match(name) for name in OTHERS):
                continue
            content = read_yaml(path)
            if not isinstance(content, dict):
                raise InvalidInputError(f"{path}: is no map of checks.")
            self.files[path.name] = content
            for check, table in content.items():
                if not isinstance(table, dict) or "$index" not in table:
                    continue
                if check in self.file_of:
                    raise InvalidInputError(f"{path}: {check} is in {self.file_of[check]} as well.")
                self.file_of[check] = path.name

    @property
    def data(self) -> Published:
        """The published data set: that of the folder, else that of fabricheck."""
        own = self.folder / FILE
        return published(own if own.exists() else OWN_FOLDER / FILE)

    def table(self, check: str) -> Mapping[str, Any]:
        """Return the entries of a check by partition or set; none of a check without a file."""
        name = self.file_of.get(check)
        return {} if name is None else self.files[name][check]

    def key(self, check: str, partition: str, named: str | None) -> str | None:
        """Return under which key ReFrame finds a partition's entries: its name, else its set."""
        table = self.table(check)
        return next((one for one in (partition, named) if one in table and one), None)

    def entries(self, check: str, key: str) -> Mapping[str, Any]:
        """Return the entries under a key by metric."""
        found = self.table(check).get(key)
        return found if isinstance(found, dict) else {}

    def provenance(self, check: str, key: str) -> Mapping[str, Any]:
        """Return what the check's file says of where the values under a key are from."""
        stated = (self.files[self.file_of[check]].get(PROVENANCE) or {}).get(key)
        return stated if isinstance(stated, dict) else {}

    def bounds(self, name: str) -> Mapping[str, str]:
        """Return the reasons of a file's tolerances."""
        found = self.files[name].get(BOUNDS)
        return found if isinstance(found, dict) else {}

    def origin(self, check: str, key: str, metric: str) -> Origin | None:
        """Return where a metric's value is from; ``None`` where the file does not say it.

        What is said of the metric in this check counts first, then of its stem (the metric
        without how it was reduced) in this check, then of both in all checks of the file, and last
        what is said of the whole partition or set.

        :raises InvalidInputError: when what is said is not complete.
        """
        stated = self.provenance(check, key)
        stem = REDUCED.sub("", metric)
        place = f"{self.file_of[check]}, {PROVENANCE} of {key}"
        for name in (f"{check}.{metric}", f"{check}.{stem}", metric, stem):
            if name in stated:
                return origin.read(stated[name], f"{place}, {name}")
        if "kind" not in stated:
            return None
        return origin.read(
            {name: one for name, one in stated.items() if not isinstance(one, dict)}, place
        )

    def all_entries(self) -> Iterator[tuple[str, str, str, Any]]:
        """Yield check, key, metric and entry of all files."""
        for check in self.file_of:
            for key in self.table(check).keys() - {"$index"}:
                for metric, entry in self.entries(check, key).items():
                    yield check, key, metric, entry


def requires(entry: Any) -> bool:
    """Whether an entry can be missed: [0, null, null, unit] can not."""
    return any(bound is not None for bound in entry[1:3])
