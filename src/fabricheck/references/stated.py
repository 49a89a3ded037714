"""The references of a partition: those of the files, and calibrated entries that replace them."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core import yaml_files
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.references import calibrated, origin, rules
from fabricheck.references.calibrated import FOLDER, TRANSFERS, Record, Transfer, file_of
from fabricheck.references.entries import entry_of, requires
from fabricheck.references.origin import Origin
from fabricheck.references.published import FILE, Published, of_folder

PROVENANCE = "x-provenance"
BOUNDS = "x-bounds"
INDEX = ["$partition"]

#: The key of entries for all partitions that have no entries of their own.
ANY = "any"

#: Files in the folder that hold no references: published values, rules, and values for simulated
#: nodes.
OTHERS = (FILE, rules.FILE, "fidelity-*.yaml")

#: A metric's stem is its name without the reduction; provenance may name either.
REDUCED = re.compile(r"_(worst|median|best_block|worst_block)$")


def of(folder: Path) -> References:
    """Return the references of a folder, read again only when a file changed."""
    files = sorted(folder.rglob("*.yaml"))
    return _read(folder, tuple((file, file.stat().st_mtime_ns) for file in files))


@functools.lru_cache(maxsize=4)
def _read(folder: Path, _state: object) -> References:
    return References(folder)


class References:
    """The references in a folder.

    A partition's entry of a metric is the calibrated one, else the files' entry under the
    partition's name, else under the set that it names, else under `ANY`. A calibration does not
    replace an expected failure ($xfail), a count, or a limit of the set from which its sessions
    give none.
    """

    def __init__(self, folder: Path) -> None:
        """Read the files; records are read on demand.

        :raises NotFoundError: when there is no such folder.
        :raises InvalidInputError: when a file cannot be read, has something else where a mapping is
            required, or a check is in two files.
        """
        if not folder.is_dir():
            raise NotFoundError(f"There is no folder of reference files {folder}.")
        self.folder = folder
        self.files: dict[str, Mapping[str, Any]] = {}
        #: The name of each check's file.
        self.file_of: dict[str, str] = {}
        self.records: dict[str, Record | None] = {}
        for path in sorted(folder.glob("*.yaml")):
            if any(path.match(name) for name in OTHERS):
                continue
            content = yaml_files.read(path)
            if not isinstance(content, dict):
                raise InvalidInputError(f"{path}: this is not a mapping of checks.")
            self.files[path.name] = content
            checks = [name for name, one in content.items() if _is_check(one)]
            if not checks:
                raise InvalidInputError(f"{path}: there is no check with its references.")
            for key in (PROVENANCE, BOUNDS, *checks):
                _refuse_no_map(path, key, content.get(key))
            for check in checks:
                if check in self.file_of:
                    raise InvalidInputError(f"{path}: {check} is also in {self.file_of[check]}.")
                self.file_of[check] = path.name

    @property
    def data(self) -> Published:
        """The published data set: that of the folder, else fabricheck's."""
        return of_folder(self.folder)

    def record(self, partition: str) -> Record | None:
        """Return a partition's calibration record, None where there is none.

        :raises InvalidInputError: when its file is not a record.
        """
        if partition not in self.records:
            path = file_of(self.folder, partition)
            found = calibrated.read(path) if path.exists() else None
            # a-b:c and a:b-c share the name of a file.
            theirs = found is not None and found.partition == partition
            self.records[partition] = found if theirs else None
        return self.records[partition]

    def with_record(self, record: Record) -> References:
        """Return the references with a record replaced."""
        made = copy.copy(self)
        made.records = self.records | {record.partition: record}
        return made

    @functools.cached_property
    def transfers(self) -> Mapping[str, Transfer]:
        """By partition the metrics that it takes from another one's record."""
        files = sorted(self.folder.glob(f"{TRANSFERS}/*.yaml"))
        return {one.partition: one for one in map(calibrated.read_transfer, files)}

    def table(self, check: str) -> Mapping[str, Any]:
        """Return the file's references of a check by partition or set; empty without a file."""
        name = self.file_of.get(check)
        found = {} if name is None else self.files[name][check]
        return {key: one for key, one in found.items() if key != "$index"}

    def key(self, check: str, partition: str, named: str | None) -> str | None:
        """Return the key of a partition's entries in the files: its name, its set, else `ANY`."""
        table = self.table(check)
        return next((one for one in (partition, named, ANY) if one in table and one), None)

    def stated(self, check: str, key: str | None) -> Mapping[str, Any]:
        """Return the entries of the check's file under a key, by metric."""
        return self.table(check).get(key or "") or {}

    def entries(self, check: str, partition: str, named: str | None = None) -> dict[str, Any]:
        """Return the entries of a check in a partition by metric.

        :param named: the set of references that the partition names.
        :raises InvalidInputError: when a calibration cannot be read.
        """
        stated = self.stated(check, self.key(check, partition, named))
        given = self.calibrated(check, partition, named)
        return {**stated, **{metric: entry for metric, (entry, _) in given.items()}}

    def calibrated(
        self, check: str, partition: str, named: str | None = None
    ) -> dict[str, tuple[Sequence[Any], Record]]:
        """Return by metric the calibrated entries that apply, each with its record."""
        stated = self.stated(check, self.key(check, partition, named))
        own = partition in self.table(check)
        return {
            metric: (entry, record)
            for metric, (entry, record) in self._given(check, partition).items()
            if _counts(entry, stated.get(metric), own)
        }

    def _given(self, check: str, partition: str) -> dict[str, tuple[Sequence[Any], Record]]:
        found: dict[str, tuple[Sequence[Any], Record]] = {}
        taken = self.transfers.get(partition)
        if taken is not None and check in taken.checks:
            record = self.record(taken.measured_on)
            theirs = {} if record is None else record.entries(check)
            for metric in taken.checks[check]:
                if record is None or metric not in theirs:
                    raise InvalidInputError(
                        f"{self.folder / TRANSFERS}: {partition} takes {metric} of {check} from "
                        f"the record of {taken.measured_on}, which does not have it."
                    )
                found[metric] = (theirs[metric][0], record)
        record = self.record(partition)
        if record is not None:
            found |= {name: (entry, record) for name, (entry, _) in record.entries(check).items()}
        return found

    def provenance(self, check: str, key: str) -> Mapping[str, Any]:
        """Return the provenance in the check's file of the values under a key."""
        return (self.files[self.file_of[check]].get(PROVENANCE) or {}).get(key) or {}

    def bounds(self, name: str) -> Mapping[str, str]:
        """Return the reasons of a file's tolerances."""
        return self.files[name].get(BOUNDS) or {}

    def origin(
        self, check: str, partition: str, metric: str, named: str | None = None
    ) -> Origin | None:
        """Return the origin of a metric's value; ``None`` where none is stated.

        :raises InvalidInputError: when the origin is incomplete.
        """
        given = self.calibrated(check, partition, named).get(metric)
        if given is not None:
            return _of_a_record(given[1], partition)
        key = self.key(check, partition, named)
        return None if key is None else self.stated_origin(check, key, metric)

    def stated_origin(self, check: str, key: str, metric: str) -> Origin | None:
        """Return the origin of the value that the check's file states under a key.

        The origin of the metric in this check comes first, then that of its stem (the metric
        without its reduction) in this check, then both in all checks of the file, and last that of
        the whole partition or set.

        :raises InvalidInputError: when the origin is incomplete.
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
        """Yield check, partition or set, metric and entry of all references."""
        records = [calibrated.read(path) for path in sorted(self.folder.glob(f"{FOLDER}/*.yaml"))]
        names = [*(one.partition for one in records), *self.transfers]
        for check in self.file_of:
            for key in dict.fromkeys([*self.table(check), *names]):
                for metric, entry in self.entries(check, key).items():
                    yield check, key, metric, entry


def _is_check(content: Any) -> bool:
    return isinstance(content, dict) and "$index" in content


def _refuse_no_map(path: Path, key: str, content: Any) -> None:
    """Refuse anything but a mapping for a check, its origins and bounds, and their parts."""
    if content is not None and not isinstance(content, dict):
        raise InvalidInputError(f"{path}: {key} is not a mapping.")
    for name, part in (content or {}).items():
        if name == "$index" and part != INDEX:
            raise InvalidInputError(
                f"{path}: the references of {key} must be by partition: $index is {part}, but "
                f"only {INDEX} is read."
            )
        plain = name == "$index" or key == BOUNDS or part is None
        if not plain and not isinstance(part, dict):
            raise InvalidInputError(f"{path}: {name} of {key} is not a mapping.")


def _counts(entry: Sequence[Any], stated: Any, own: bool) -> bool:
    """Whether a calibrated entry applies instead of the one in a file.

    :param own: whether that is under the partition's own name, not its set's.
    """
    if stated is None:
        return True
    plain = entry_of(stated)
    if plain is None or plain[3] == entry[3] == "count":
        return False
    return own or requires(entry) or not requires(plain)


def _of_a_record(record: Record, partition: str) -> Origin:
    said = {
        "kind": "calibration",
        "record": f"{FOLDER}/{file_of(Path(), record.partition).name}",
        "measured_on": None if record.partition == partition else record.partition,
        "clock": "simulated" if record.clock == "simulated" else None,
    }
    return Origin.model_validate(said)
