"""The calibration record of a partition: its sessions' values, the entries from them, its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fabricheck.core import statistics
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.judge.calibration import rule
from fabricheck.judge.calibration.gathering import Run, Value, reduced
from fabricheck.node import products
from fabricheck.references.calibrated import (
    Group,
    MetricRecord,
    PublishedRecord,
    Record,
    SessionRecord,
    Transfer,
    UnusedRecord,
)
from fabricheck.references.entries import Origin, follow, load, requires
from fabricheck.references.stated import References
from fabricheck.site import clusters, partitions

#: The header of a file.
_HEADS = {
    "calibration": "Values are in the unit of\n# their metric, by the number of the session; parts "
    "of a value are fractions.",
    "transfer": "The entries of these\n# metrics are those of the partition that was measured.",
}

_K = TypeVar("_K", int, str)

#: Returns the value of a check's metric in a unit from the documents, or None.
Expected = Callable[[str, str, str], PublishedRecord | None]


def build(runs: Sequence[Run], partition: str, expected: Expected = lambda *_: None) -> Record:
    """Build the record of a partition's sessions, which are in order of time.

    :param expected: returns the published values of the partition's node model.
    """
    by_group = grouped((run.group, run.devices) for run in runs)
    sets = {group: frozenset().union(*devices) for group, devices in by_group.items()}
    documents = [document for run in runs for document in run.documents]
    values = grouped(
        (check, (metric, (run, value)))
        for run in runs
        for (check, metric), value in run.values.items()
    )
    return Record(
        partition=partition,
        clock="simulated" if partitions.simulates(partition) else "measured",
        rule=rule.TEXT,
        same_devices=len(sets) == 1,
        device_names=sorted(
            {products.label(device) for document in documents for device in document["devices"]}
        ),
        device_sets={name: sorted(ids) for name, ids in sets.items()},
        overlays={run.group: run.overlay for run in runs if run.overlay is not None},
        programs=_distinct([document["program"] for document in documents]),
        versions=_distinct([document["versions"] for document in documents]),
        sessions=[
            SessionRecord(
                number=run.number,
                uuid=run.session.uuid,
                date=datetime.fromtimestamp(run.session.start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                campaign=run.campaign,
                devices=run.group,
            )
            for run in runs
        ],
        unused=[
            UnusedRecord(session=run.number, check=unused.check, why=unused.reason)
            for run in runs
            for unused in run.unused
        ],
        checks={
            check: {
                metric: _metric(
                    values_of_runs,
                    len(sets) > 1,
                    expected(check, metric, values_of_runs[0][1].unit),
                )
                for metric, values_of_runs in grouped(of_check).items()
            }
            for check, of_check in sorted(values.items())
        },
    )


def _distinct(entries: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    distinct = {
        tuple(sorted((key, str(value)) for key, value in entry.items())) for entry in entries
    }
    return [dict(entry) for entry in sorted(distinct)]


def _metric(
    values_of_runs: Sequence[tuple[Run, Value]], several: bool, published: PublishedRecord | None
) -> MetricRecord:
    """Return the record of a metric.

    :param values_of_runs: its value in each session that has it.
    :param several: whether the sessions are of several nodes.
    """
    values = {run.number: value.value for run, value in values_of_runs}
    unit = values_of_runs[0][1].unit
    when, groups = (
        [run.campaign for run, _ in values_of_runs],
        [run.group for run, _ in values_of_runs],
    )
    floor = max(value.floor for _, value in values_of_runs)
    outcome = rule.judge(list(values.values()), when, unit, groups, floor)
    by_campaign = _groups(zip(when, values.values(), strict=True))
    medians = [group.median for group in by_campaign.values()]
    middle = statistics.median(list(values.values()))
    between = (max(medians) - min(medians)) / middle if len(medians) > 1 and middle else None
    bounds = [value.bound.value for _, value in values_of_runs if value.bound is not None]
    return MetricRecord(
        unit=unit,
        link_class=_only({value.link_class for _, value in values_of_runs}),
        engine=_only({value.engine for _, value in values_of_runs}),
        # Zero bounds a time; a count has no bound.
        peak=max(bounds) if bounds and unit not in ("us", "count") else None,
        published=published,
        entry=list(outcome.entry),
        why=outcome.reason,
        n=len(values),
        median=middle,
        mad=statistics.mad(list(values.values())),
        min=min(values.values()),
        max=max(values.values()),
        campaigns=by_campaign,
        between_campaigns=between,
        within_run=reduced(statistics.median, (value.half_width for _, value in values_of_runs)),
        tolerance=outcome.tolerance,
        by_devices=_groups(zip(groups, values.values(), strict=True)) if several else None,
        excluded=list(outcome.excluded),
        values=values,
    )


def _only(words: set[str | None]) -> str | None:
    """Return the common value of a property of the sessions, or all values if they differ."""
    return listed(sorted(word for word in words if word is not None)) or None


def _groups(values: Iterable[tuple[_K, float]]) -> dict[_K, Group]:
    return {
        name: Group(
            n=len(of_group), median=statistics.median(of_group), mad=statistics.mad(of_group)
        )
        for name, of_group in grouped(values).items()
    }


class _Writer(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists as well."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal content in full at each place, without YAML aliases."""
        return True


def text(made: Record | Transfer) -> str:
    """Format a record, or metrics taken from another record, as YAML without empty keys."""
    content = {"kind": made.kind, "format": made.format, **made.model_dump(exclude_defaults=True)}
    # Maps and lists that hold no others are written on one line.
    lines = yaml.dump(content, Dumper=_Writer, sort_keys=False, width=120, default_flow_style=None)
    return (
        f"# Written by `fabricheck limits calibrate` (docs/limits.md). {_HEADS[made.kind]}\n{lines}"
    )


def published(folder: Path, partition: str) -> Expected:
    """Return a function that finds published values in the reference files.

    It uses the values of the node model that the partition's site names, under any partition or
    set. Values of the partition itself or of its set come first. A partition without a node model
    has no published values. A calibration that replaces such values changes nothing here.

    :param folder: the folder of the reference files.
    :raises NotFoundError: when the folder does not exist.
    :raises InvalidInputError: when a file, or the origin of a value in it, cannot be read.
    """
    extras = partitions.extras(partition)
    references = References(folder)
    model = extras.get("node")
    first = [key for key in (partition, extras.get("references")) if key]
    users = _users(str(model)) if model is not None else set()

    def look_up(check: str, metric: str, unit: str) -> PublishedRecord | None:
        keys = dict.fromkeys([*first, *references.tables.get(check, ())])
        for key in keys if model is not None else ():
            entry = references.stated(check, key).get(metric)
            if not isinstance(entry, list) or len(entry) != 4 or not requires(entry):
                continue
            origin = references.stated_origin(check, key, metric)
            if origin is None or not _counts(origin, str(model), key in users):
                continue
            try:
                value, stated = follow(origin, references.data)
            except InvalidInputError as error:
                raise InvalidInputError(f"{folder / references.file_of[check]}: {error}") from None
            if stated == unit:
                value = float(f"{value:.5g}")
                return PublishedRecord.model_validate(
                    {"value": value, "key": key, "kind": origin.kind}
                )
        return None

    return look_up


def _counts(origin: Origin, model: str, used: bool) -> bool:
    """Whether a value belongs to a node model: by its own entry, or by its machine or its user."""
    if origin.kind not in ("published", "derived") or origin.by_definition:
        return False
    return used or origin.map == model or origin.system in load(model).systems


def _users(model: str) -> set[str]:
    """Return the partitions of a node model, the sets that they name, and that of its devices."""
    return {clusters.references_of(load(model))} | {
        known["extras"].get("references", name)
        for name, known in partitions.named(partitions.known_sites())
        if known["extras"].get("node") == model
    }


#: The fewest sessions of one campaign from which a spread is computed.
MIN_SESSIONS_PER_CAMPAIGN = 3

#: Kinds of memory that one check measures and whose noise is listed separately.
_KINDS = ("pinned", "pageable")


@dataclass(frozen=True)
class Noise:
    """The noise of a check, or of a kind of memory that it measures, relative to the median.

    within_run: half of the 95 % interval. between_sessions: of one campaign, the robust spread;
    both the median over the metrics. between_campaigns: the largest difference of medians, the most
    of any metric. None where it is unknown.
    """

    check: str
    unit: str
    metrics: int
    within_run: float | None
    between_sessions: float | None
    between_campaigns: float | None


def noises(record: Record) -> Iterator[Noise]:
    """Yield the noise of each check of a record, and of each kind of memory that it measures."""
    rows: dict[tuple[str, str], list[MetricRecord]] = {}
    for check, metrics in record.checks.items():
        for name, metric in metrics.items():
            if metric.unit != "count":
                kinds = [kind for kind in _KINDS if kind in name.split("_")]
                rows.setdefault((listed([check, *kinds]), metric.unit), []).append(metric)
    for (check, unit), records in sorted(rows.items()):
        yield Noise(
            check,
            unit,
            len(records),
            reduced(statistics.median, (metric_record.within_run for metric_record in records)),
            reduced(
                statistics.median, (between_sessions(metric_record) for metric_record in records)
            ),
            reduced(max, (metric_record.between_campaigns for metric_record in records)),
        )


def between_sessions(metric: MetricRecord) -> float | None:
    """Return the relative robust spread of a campaign's sessions, the median over campaigns."""
    spreads = [
        statistics.NORMAL * group.mad / group.median
        for group in metric.campaigns.values()
        if group.n >= MIN_SESSIONS_PER_CAMPAIGN and 0 < group.median < math.inf
    ]
    return statistics.median(spreads) if spreads else None
