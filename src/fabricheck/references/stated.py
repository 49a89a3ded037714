"""The references of a partition: those of the files, and calibrated entries that replace them."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fabricheck.core import yaml_files
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.models import validated
from fabricheck.references import calibrated, entries
from fabricheck.references.calibrated import FOLDER, TRANSFERS, Record, Transfer, file_of
from fabricheck.references.entries import Origin, entry_of, requires
from fabricheck.references.published import Published, of_folder
from fabricheck.site.sites import NO_REFERENCES

#: The key of the reason why a partition's metrics have no limit, beside its metrics.
WHY = "$why"

#: The comment in a file that gives the reasons for the tolerances of its limits.
_WIDTHS = "# Why the limits are as wide as they are:"

#: The keys of an entry that states its source.
LIMIT, SOURCE = "limit", "source"

#: Metrics that share an entry, as ``copy_{worst,median}``.
_TOGETHER = re.compile(r"(.*)\{([^{}]+)\}(.*)")

#: The key of entries for all partitions that have no entries of their own.
ANY = "any"

#: A metric's stem is its name without the reduction.
REDUCED = re.compile(r"_(worst|median|best_block|worst_block)$")


#: What a file has: by check, partition or set, and metric an entry.
_Content: Any = Annotated[dict[str, dict[str, dict[str, Any] | None] | None], Field(min_length=1)]


def references_in(folder: Path) -> References:
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
        #: The name of each check's file.
        self.file_of: dict[str, str] = {}
        #: By check, partition or set, and metric, the entry that a file states.
        self.tables: dict[str, dict[str, dict[str, Any]]] = {}
        #: By check, partition or set, and metric (or `WHY`) the source that it states.
        self.sources: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        #: By file, since that of local:gpu is another one for each kind of machine.
        self.records: dict[Path, Record | None] = {}
        for path in sorted(folder.glob("*.yaml")):
            if any(path.match(name) for name in NO_REFERENCES):
                continue
            content = validated(_Content, yaml_files.read(path), path)
            for check, by_partition in content.items():
                if check in self.file_of:
                    raise InvalidInputError(f"{path}: {check} is also in {self.file_of[check]}.")
                self.file_of[check] = path.name
                self.tables[check] = {
                    key: dict(self._read_entries(path, check, key, part or {}))
                    for key, part in (by_partition or {}).items()
                }

    def _read_entries(
        self, path: Path, check: str, key: str, part: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """Yield metric and entry of a partition or set; the sources are kept apart."""
        seen = set()
        for names, stated in part.items():
            place = f"{names} of {check} on {key}"
            if names == WHY:
                if not isinstance(stated, str):
                    raise InvalidInputError(f"{path}: {place} is not a text.")
                self.sources[check, key, WHY] = {"kind": entries.REPORT_ONLY, "why": stated}
                continue
            entry, source = _entry(path, place, stated)
            for metric in _expanded(names):
                if metric in seen:
                    raise InvalidInputError(f"{path}: {metric} of {check} on {key} is there twice.")
                seen.add(metric)
                if source is not None:
                    self.sources[check, key, metric] = source
                yield metric, entry

    @property
    def data(self) -> Published:
        """The published data set: that of the folder, else fabricheck's."""
        return of_folder(self.folder)

    def record(self, partition: str) -> Record | None:
        """Return a partition's calibration record, None where there is none.

        :raises InvalidInputError: when its file is not a record.
        """
        path = file_of(self.folder, partition)
        if path not in self.records:
            self.records[path] = calibrated.read(path) if path.exists() else None
        record = self.records[path]
        # a-b:c and a:b-c share the name of a file.
        return record if record is not None and record.partition == partition else None

    def with_record(self, record: Record) -> References:
        """Return the references with a record replaced."""
        made = copy.copy(self)
        made.records = self.records | {file_of(self.folder, record.partition): record}
        return made

    @functools.cached_property
    def transfers(self) -> Mapping[str, Transfer]:
        """The metrics that a partition takes from another one's record, by partition."""
        files = sorted(self.folder.glob(f"{TRANSFERS}/*.yaml"))
        return {transfer.partition: transfer for transfer in map(calibrated.read_transfer, files)}

    @property
    def sets(self) -> list[str]:
        """The names of its sets of references."""
        keys = {key for table in self.tables.values() for key in table}
        return sorted(key for key in keys if ":" not in key and key != ANY)

    def key(self, check: str, partition: str, named: str | None) -> str | None:
        """Return the key of a partition's entries in the files: its name, its set, else `ANY`."""
        table = self.tables.get(check, {})
        return next((key for key in (partition, named, ANY) if key in table and key), None)

    def stated(self, check: str, key: str | None) -> Mapping[str, Any]:
        """Return the entries of the check's file under a key, by metric."""
        return self.tables.get(check, {}).get(key or "") or {}

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
        has_table = partition in self.tables.get(check, {})
        return {
            metric: (entry, record)
            for metric, (entry, record) in self._given(check, partition).items()
            if _counts(entry, stated.get(metric), has_table)
        }

    def _given(self, check: str, partition: str) -> dict[str, tuple[Sequence[Any], Record]]:
        given: dict[str, tuple[Sequence[Any], Record]] = {}
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
                given[metric] = (theirs[metric][0], record)
        record = self.record(partition)
        if record is not None:
            given |= {name: (entry, record) for name, (entry, _) in record.entries(check).items()}
        return given

    def origin(
        self, check: str, partition: str, metric: str, named: str | None = None
    ) -> Origin | None:
        """Return the origin of a metric's value; ``None`` where none is stated.

        :raises InvalidInputError: when the origin is incomplete.
        """
        given = self.calibrated(check, partition, named).get(metric)
        if given is not None:
            _, record = given
            return Origin.model_validate({
                "kind": "calibration",
                "record": f"{FOLDER}/{file_of(Path(), record.partition).name}",
                "measured_on": None if record.partition == partition else record.partition,
                "clock": "simulated" if record.clock == "simulated" else None,
            })  # fmt: skip
        key = self.key(check, partition, named)
        return None if key is None else self.stated_origin(check, key, metric)

    def why_open(
        self, check: str, partition: str, metric: str, named: str | None = None
    ) -> str | None:
        """Return the reason beside a metric's entry that is report only; None where it has none.

        Such a metric stays report only. The reason of all metrics of a partition or set (`WHY`)
        says that no document states their values, which no rule and no floor needs.
        """
        key = self.key(check, partition, named)
        source = self.sources.get((check, key or "", metric), {})
        return source.get("why") if source.get("kind") == entries.REPORT_ONLY else None

    def stated_origin(self, check: str, key: str, metric: str) -> Origin | None:
        """Return the origin of the value that the check's file states under a key.

        The reason of the partition or set (`WHY`) is that of its metrics without a limit.

        :raises InvalidInputError: when the origin is incomplete.
        """
        source = self.sources.get((check, key, metric))
        entry = entry_of(self.stated(check, key).get(metric))
        if source is None and (entry is None or not requires(entry)):
            source = self.sources.get((check, key, WHY))
        if source is None:
            return None
        place = f"{self.file_of[check]}, {metric} of {check} on {key}"
        return validated(Origin, source, place)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each entry that is none, and each limit that its source denies.

        Of the limits of a file that gives no reason for their tolerances, one for the first. What
        a site promises needs none.
        """
        bare = {
            name
            for name in {*self.file_of.values()}
            if _WIDTHS not in (self.folder / name).read_text("utf-8")
        }
        for check, key, metric, stated in self.all_entries():
            file, entry = self.file_of[check], entries.plain(stated)
            place = f"{file}: {check} on {key}: "
            plain = entry_of(entry)
            wrong = list(
                entries.faults(metric, plain[3] if plain else "GB/s, us, count or %", entry)
            )
            yield from (place + fault for fault in wrong)
            if wrong or not requires(entry):
                continue
            try:
                origin = self.origin(check, key, metric)
            except InvalidInputError as error:
                yield str(error)
                continue
            limit = f"{place}the limit of {metric}, {entries.formatted(entry)}, "
            if entries.is_wide(*entry[1:4]):
                yield (
                    f"{limit}accepts less than half of its value, or more than twice its time: a "
                    "link at half its width would pass."
                )
            elif origin is None:
                yield f"{limit}has no source: state one beside it (docs/limits.md)."
            elif reason := origin.disagreement(entry[0], entry[3], self.data):
                yield f"{limit}does not hold: {reason}."
            elif origin.kind in ("published", "derived") and entry[3] != "count" and file in bare:
                bare.remove(file)
                yield f"{limit}needs '{_WIDTHS} ...' at the head of the file."

    def all_entries(self) -> Iterator[tuple[str, str, str, Any]]:
        """Yield check, partition or set, metric and entry of all references."""
        records = [calibrated.read(path) for path in sorted(self.folder.glob(f"{FOLDER}/*.yaml"))]
        names = [*(record.partition for record in records), *self.transfers]
        for check in self.file_of:
            for key in dict.fromkeys([*self.tables.get(check, {}), *names]):
                for metric, entry in self.entries(check, key).items():
                    yield check, key, metric, entry


def _entry(path: Path, place: str, stated: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """Return an entry and its source, of ``[value, lower, upper, unit]`` or of a mapping."""
    if not isinstance(stated, dict):
        return stated, None
    if stated.keys() != {LIMIT, SOURCE} or not isinstance(stated[SOURCE], dict):
        raise InvalidInputError(
            f"{path}: {place} is neither [value, lower, upper, unit] nor a mapping of {LIMIT}, "
            f"such a list, and {SOURCE}, a mapping."
        )
    return stated[LIMIT], stated[SOURCE]


def _expanded(names: str) -> list[str]:
    match = _TOGETHER.fullmatch(names)
    return (
        [names]
        if match is None
        else [f"{match[1]}{part}{match[3]}" for part in match[2].split(",")]
    )


def _counts(entry: Sequence[Any], stated: Any, has_table: bool) -> bool:
    """Whether a calibrated entry applies instead of the one in a file.

    :param has_table: whether that is under the partition's own name, not its set's.
    """
    if stated is None:
        return True
    plain = entry_of(stated)
    if plain is None or plain[3] == entry[3] == "count":
        return False
    return has_table or requires(entry) or not requires(plain)
