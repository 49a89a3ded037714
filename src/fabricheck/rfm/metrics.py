"""Metrics of a check: the series of a result document that they are made of.

A metric is declared before the run. It names the series by the values of their fields (`where`) and
by the field that distinguishes them (`over`, for instance one series per device). A missing or
duplicate series is therefore an error, and never changes the set.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from fabricheck.core.show import enumerated, listed, numbered
from fabricheck.core.vocabulary import Unit
from fabricheck.references.rules import Rule
from fabricheck.results.metric_records import Comparison, MetricRecord, Reduction
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import device_pair, host_domains, is_judged_by_sum

#: In `Metric.where`: the largest value of that field among the series that match otherwise.
LARGEST = "largest"

#: The ways in which a check reduces the values of all devices or pairs.
WORST_AND_MEDIAN: tuple[Reduction, Reduction] = ("worst", "median")

Population = Mapping[str, Sequence[Any]]


class MetricError(Exception):
    """A metric cannot be computed from a document; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Metric:
    """One figure of a check.

    name: as in the reference file. where: values of the series' fields, dotted where nested
    (``source.memory``), or LARGEST. over: the fields that distinguish the series; exactly one
    series must exist for each combination of the values in the check's population, or exactly one
    in total if empty. among: the combinations of values of `over`, if not all are included: the
    pairs of one link class. reduce: worst and best follow the series' own ``better``; median is the
    median of the medians. unit: GB/s (1e9 bytes per second) or us; count and % for metrics that
    override `figure`. independent: whether it has the same meaning on any number of devices: it is
    of one device, or of one pair of a link class, that works alone. Sums, shares, ranks that all
    work together and collectives are not. alike: whether its members are compared with each other;
    by default if it is independent. rule: the limit if no reference requires anything.
    """

    #: What its members are compared with, of a metric that compares.
    comparison: ClassVar[Comparison | None] = None

    name: str
    where: Mapping[str, Any] = field(default_factory=dict)
    over: tuple[str, ...] = ("device",)
    reduce: Reduction = "worst"
    unit: Unit = "GB/s"
    among: tuple[tuple[Any, ...], ...] | None = None
    independent: bool = False
    alike: bool | None = None
    rule: Rule | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def stem(self) -> str:
        """What the names of metrics begin with that compare this one."""
        return self.name.removesuffix(f"_{self.reduce}")

    def of_any_regime(self) -> Metric:
        """Return the metric of the same series, whether caches can hold their arrays or not."""
        where = {name: value for name, value in self.where.items() if name != "regime"}
        return replace(self, where=where)

    @property
    def of_medians(self) -> bool:
        """Whether it is of the medians of its series; overridden where it is not."""
        return True

    def figure(self, document: ResultDocument, population: Population) -> Figure:
        """Compute the figure; overridden where it is not the value of one of the series.

        :param population: for each field in `over`, the required values.
        :raises MetricError: when a series is missing, duplicate, in another unit, or a share of
            which only the sum is judged.
        """
        return self.of_series(series_of(document, self, population, self.unit))

    def of_series(self, chosen: tuple[Series, ...]) -> Figure:
        """Reduce the medians of its series."""
        medians = [series["median"] for series in chosen]
        if self.reduce == "median":
            return Figure(self, statistics.median(medians), chosen, chosen)
        low = (self.reduce == "worst") == (chosen[0]["better"] == "higher")
        value = min(medians) if low else max(medians)
        decisive = tuple(series for series in chosen if series["median"] == value)
        return Figure(self, value, chosen, decisive)


@dataclass(frozen=True)
class Figure:
    """The value of a metric in its unit, all of its series, and the series that decided it.

    compared: the value in a sentence, if that is more than the value and its unit.
    """

    metric: Metric
    value: float
    series: tuple[Series, ...]
    decisive: tuple[Series, ...]
    compared: str = ""

    def record(self, document: ResultDocument, rule: Rule | None) -> MetricRecord:
        """Return the indices of its series in the document, how they are reduced, and its rule."""
        index = {id(each): number for number, each in enumerate(document["series"])}
        of_one_unit = {series["unit"] for series in self.series} == {self.metric.unit}
        reduced = of_one_unit and self.metric.of_medians
        return MetricRecord(
            series=tuple(index[id(series)] for series in self.series),
            reduce=self.metric.reduce if reduced else self.metric.comparison,
            decided=() if reduced else tuple(index[id(series)] for series in self.decisive),
            compared=self.compared,
            rule=None if rule is None else rule.why,
            is_peak=rule is not None and rule.is_peak,
        )


def series_of(
    document: ResultDocument,
    metric: Metric,
    population: Population,
    unit: str,
    added: bool = False,
) -> tuple[Series, ...]:
    """Return the series of a metric, one for each combination of the distinguishing fields.

    :param unit: the required unit.
    :param added: whether shares are added up, which evens their noise.
    :raises MetricError: as `Metric.figure` does.
    """
    matching = _matching(document, metric)
    chosen: list[Series] = []
    for key in combinations(metric, population):
        wanted = dict(zip(metric.over, key, strict=True))
        fitting = [series for series in matching if _fits(series, wanted)]
        if len(fitting) != 1:
            number = "no" if not fitting else "more than one"
            fields = listed(f"{name} {value}" for name, value in {**metric.where, **wanted}.items())
            raise MetricError(
                f"Metric {metric} has {number} series for {fields} in the result of "
                f"{_place(document, wanted)}."
            )
        chosen += fitting
    for series in chosen:
        if series["unit"] != unit:
            raise MetricError(
                f"Metric {metric} is declared in {unit}, but "
                f"{where_measured(document, (series,))} reported {series['unit']}."
            )
        if is_judged_by_sum(series) and not added:
            raise MetricError(
                f"Metric {metric} is declared for shares between devices, whose noise ends no "
                "run: declare it for their sum."
            )
    return tuple(chosen)


def where_measured(document: ResultDocument, series: Sequence[Series]) -> str:
    """Name pairs, devices (with PCI addresses where known), verified NUMA domains, and the node.

    A transfer between two devices is named as the pair source-destination, messages between nodes
    by both ends as node:NIC. Without series, the node alone is named.
    """
    between = _between_nodes(document, series)
    if between:
        return between
    pairs: list[str] = []
    active: list[int] = []
    for each in series:
        # For a share or a single series the executing device; for a sum all devices that took part.
        members = each["device_set"] if each["device"] is None else [each["device"]]
        places = (each["source"]["memory"], each["destination"]["memory"])
        message = each["engine"] == "mpi" and each["direction"] != "collective"
        ends = device_pair(each) if "peer" in places else each["device_set"]
        if ("peer" in places or message) and len(ends) == 2:
            members = ends
            name = "-".join(map(str, members))
            if name not in pairs:
                pairs.append(name)
        active += [device for device in members if device not in active]
    node = f"node {document['host']['hostname']}"
    if not active:
        ranks = sorted({rank for each in series for rank in each.get("ranks") or ()})
        return f"{numbered('rank', ranks)} of {node}" if ranks else node
    domains = sorted({domain for each in series for domain in host_domains(each)})
    named = f"{_ends(document, sorted(active), domains)} of {node}"
    if not pairs:
        return named
    return f"{'pair' if len(pairs) == 1 else 'pairs'} {listed(pairs)}, {named}"


def _between_nodes(document: ResultDocument, series: Sequence[Series]) -> str:
    """Name the ends of messages between nodes as node:NIC; empty for other series."""
    ranks = document.get("ranks") or []

    def end(number: int) -> str:
        network = ranks[number].get("network")
        nics = network["nics"] if network else []
        return f"{ranks[number]['host']}:{nics[0]['name'] if nics else f'rank {number}'}"

    named: list[str] = []
    for each in series:
        numbers = each.get("ranks") or []
        hosts = list(
            dict.fromkeys(ranks[number]["host"] for number in numbers if number < len(ranks))
        )
        if len(hosts) < 2:
            return ""
        pair = " and " if each["direction"] == "both-ways" else " to "
        named.append(
            pair.join(map(end, numbers))
            if len(numbers) == 2
            else f"all NICs of {enumerated(hosts)}"
        )
    return listed(dict.fromkeys(named))


def _ends(document: ResultDocument, devices: Sequence[int], domains: Sequence[int]) -> str:
    addresses = {device["index"]: device["pci_address"] for device in document["devices"]}
    named = [
        f"{index} ({addresses[index]})" if addresses.get(index) else str(index) for index in devices
    ]
    ends = [("device", named), ("NUMA domain", [str(domain) for domain in domains])]
    return enumerated(numbered(noun, words) for noun, words in ends if words)


def combinations(metric: Metric, population: Population) -> Sequence[tuple[Any, ...]]:
    """Return the values of `over` for each series of a metric.

    :raises MetricError: when they are stated neither by the metric nor by its check.
    """
    if metric.among is not None:
        return metric.among
    try:
        return tuple(itertools.product(*(population[name] for name in metric.over)))
    except KeyError as error:
        raise MetricError(
            f"Metric {metric} is over {error.args[0]}, of which the check states no values: give "
            "the metric those that must be measured as `among`, or return them by population()."
        ) from None


def _place(document: ResultDocument, wanted: Mapping[str, Any]) -> str:
    node = f"node {document['host']['hostname']}"
    device = wanted.get("device")
    devices = wanted.get("device_set", []) if device is None else [device]
    domains = [value for name, value in wanted.items() if name.endswith(".numa_domain")]
    return f"{_ends(document, devices, domains)} of {node}" if devices or domains else node


def _matching(document: ResultDocument, metric: Metric) -> list[Series]:
    plain = {name: value for name, value in metric.where.items() if value != LARGEST}
    series = [measured for measured in document["series"] if _fits(measured, plain)]
    for name in metric.where.keys() - plain.keys():
        largest = max((_field(measured, name) for measured in series), default=None)
        series = [measured for measured in series if _field(measured, name) == largest]
    return series


def _fits(series: Series, wanted: Mapping[str, Any]) -> bool:
    # Of a document with many pairs this is asked a hundred thousand times.
    for name, value in wanted.items():  # noqa: SIM110
        if _field(series, name) != value:
            return False
    return True


def _field(series: Series, name: str) -> Any:
    if "." not in name:
        return series.get(name)
    value: Any = series
    for part in name.split("."):
        # Members that were added later are missing in older documents.
        value = value.get(part)
    return value
