"""The series of a document that each metric is made of.

A check writes them beside the document when it judges. For older sessions they are found here by
the metric's name, and only where they give the recorded value.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from fabricheck.core import amounts
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.whole_files import write_whole
from fabricheck.node import NodeModel
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import device_pair, host_domains

#: The file beside a document.
NAME = "metrics.json"

Reduction = Literal["worst", "best", "median"]
REDUCTIONS: tuple[Reduction, ...] = ("worst", "best", "median")

#: Fields in which all series of a metric agree: they differ in places and block sizes only.
_ALIKE = (
    "experiment", "operation", "unit", "bytes", "role", "direction", "engine", "movement",
    "placement", "datatype", "in_place", "regime", "bytes_counted",
)  # fmt: skip


#: Parts of metric names other than operations, link classes and sizes; names with further parts are
#: not resolved here.
_WORDS = frozenset({*REDUCTIONS, "block", "pinned", "pageable", "near", "far"})


#: The least share of samples that reach a limit for it to count as missed only at times.
LEAST_REACHED = 0.1


class MadeOf(StrictModel):
    """What one metric is made of.

    series: their indices in the document's ``series``, from 0. reduce: ``worst`` or ``best`` of
    their medians, by the series' own ``better``, or their ``median``; None where the value is
    computed from them, or is a count; ``peers`` where it is a member in percent of its peers.
    decided: the series that decided a computed value, as of the member that is behind.
    """

    series: tuple[int, ...]
    reduce: Reduction | Literal["peers"] | None
    decided: tuple[int, ...] = ()

    def decisive(self, document: ResultDocument, value: float) -> list[Series]:
        """Return the series that gave the value: for worst and best not all of them."""
        if self.decided:
            return [document["series"][index] for index in self.decided]
        every = [document["series"][index] for index in self.series]
        if self.reduce in ("worst", "best"):
            return [one for one in every if one["median"] == value] or every
        return every


class _File(StrictModel):
    """The file's content; started: when the document's run began, as in the document."""

    form: Literal["fabricheck-metrics-1"] = "fabricheck-metrics-1"
    started: str
    metrics: dict[str, MadeOf]


def write(folder: Path, document: ResultDocument, metrics: Mapping[str, MadeOf]) -> None:
    """Write what the metrics of a document are made of, beside the document.

    :raises NotFoundError: when it cannot be written.
    """
    file = _File(started=document["started"], metrics=dict(metrics))
    write_whole(folder / NAME, file.model_dump_json() + "\n")


def kept(path: Path, document: ResultDocument) -> Mapping[str, MadeOf]:
    """Return what was written beside a document, by metric; empty where it belongs to another run.

    :param path: the document.
    :raises InvalidInputError: when it is damaged, or names series that the document does not have.
    """
    path = path.with_name(NAME)
    try:
        file = read_model(path, _File)
    except NotFoundError:
        return {}  # of an older session
    if file.started != document["started"]:
        return {}
    count = len(document["series"])
    for name, one in file.metrics.items():
        for index in (*one.series, *one.decided):
            if not 0 <= index < count:
                raise InvalidInputError(
                    f"{path}: metrics.{name}: there is no series {index} among the document's "
                    f"{count}."
                )
    return file.metrics


def found(
    document: ResultDocument, node: NodeModel | None, metric: str, value: float, unit: str
) -> MadeOf | None:
    """Return what a metric is made of, by its name; None where that does not give its value.

    None also where several sets of series give it, as of two sizes, and where a part of the name is
    unknown.

    :param node: the healthy node model; without one, link classes are unknown.
    """
    if unit == "count":
        return MadeOf(series=(), reduce=None)
    words = metric.split("_")
    reduce = next((word for word in REDUCTIONS if word in words), None)
    operation, link_class = _operation_in(document, metric, unit), link_class_in(metric, node)
    known = {*(operation or "").split("-"), *(link_class or "").split("_"), *_WORDS}
    known |= {_size(one) for one in document["series"]}
    if not known.issuperset(words):
        return None
    sets: dict[tuple[object, ...], list[int]] = {}
    for index in named(document, node, metric, unit):
        series: Mapping[str, object] = document["series"][index]
        sets.setdefault(tuple(series.get(key) for key in _ALIKE), []).append(index)
    agreeing = [
        own
        for own in sets.values()
        if value == _value([document["series"][i] for i in own], reduce)
    ]
    if len(agreeing) != 1:
        return None
    # With one series it is the same as any other reduction.
    return MadeOf(series=tuple(agreeing[0]), reduce=reduce or "worst")


def named(
    document: ResultDocument, node: NodeModel | None, metric: str, unit: str
) -> Iterator[int]:
    """Yield the series whose operation, link class, size, memory and domain match a metric's name.

    The metric is made of some of them.
    """
    operation, link_class = _operation_in(document, metric, unit), link_class_in(metric, node)
    name = f"_{metric}_"
    sizes = {_size(one) for one in document["series"]}.intersection(metric.split("_"))
    for index, one in enumerate(document["series"]):
        if (
            (one["unit"], one["operation"]) == (unit, operation)
            and (link_class is None or _is_of(one, node, link_class))
            and (not sizes or _size(one) in sizes)
            and _together_fits(one, name)
            and _memory_fits(one, name)
            and _domain_fits(one, node, name)
        ):
            yield index


def _operation_in(document: ResultDocument, metric: str, unit: str) -> str | None:
    operations = {one["operation"] for one in document["series"] if one["unit"] == unit}
    # `engine_both` is not `engine`.
    own = [one for one in operations if f"{metric}_".startswith(f"{one.replace('-', '_')}_")]
    return max(own, key=len, default=None)


def link_class_in(metric: str, node: NodeModel | None) -> str | None:
    """Return the link class in the name of a metric; None without one."""
    classes = [] if node is None else [one.name for one in node.link_classes]
    return max((one for one in classes if f"_{one}_" in f"_{metric}_"), key=len, default=None)


def _is_of(series: Series, node: NodeModel | None, link_class: str) -> bool:
    pairs = {} if node is None else node.link_classes
    pair = sorted(device_pair(series))
    return any(one.name == link_class and tuple(pair) in pairs[one] for one in pairs)


def _size(series: Series) -> str:
    return amounts.size(series["bytes"]).replace(" ", "")


def _together_fits(series: Series, name: str) -> bool:
    share_of_pairs = series["engine"] == "mpi" and series["role"] == "share"
    return share_of_pairs == ("_together_" in name)


def _memory_fits(series: Series, name: str) -> bool:
    memories = (series["source"]["memory"], series["destination"]["memory"])
    return all(
        f"_{memory}_" not in name or f"host-{memory}" in memories
        for memory in ("pinned", "pageable")
    )


def _domain_fits(series: Series, node: NodeModel | None, name: str) -> bool:
    devices, domains = series["device_set"], host_domains(series)
    if node is None or not domains or len(devices) != 1 or devices[0] >= len(node.devices):
        return "_far_" not in name
    near = set(domains) == {node.devices[devices[0]].domain}
    return f"_{'far' if near else 'near'}_" not in name


def _value(series: Sequence[Series], reduce: Reduction | None) -> float | None:
    medians = [one["median"] for one in series]
    if reduce == "median":
        return statistics.median(medians)
    if reduce is None:
        return medians[0] if len(medians) == 1 else None
    low = (reduce == "worst") == (series[0]["better"] == "higher")
    return min(medians) if low else max(medians)


def decisive(
    document: ResultDocument, series: Iterable[int] | None, value: float, unit: str
) -> list[Series]:
    """Return the series whose median is a metric's value.

    :param series: the indices of the series it is made of; None where unknown: any may be.
    """
    every = document["series"]
    among = every if series is None else [every[index] for index in series]
    return [one for one in among if (one["unit"], one["median"]) == (unit, value)]


def reached(
    series: Iterable[Series], value: float, least: float | None, most: float | None
) -> tuple[int, int]:
    """Return how many samples reach the limits of a metric, and how many there are.

    :param series: those that decided its value; each sample scales the value in proportion.
    """
    values = [value * sample / one["median"] for one in series for sample in one["samples"]]
    within = [(least is None or one >= least) and (most is None or one <= most) for one in values]
    return sum(within), len(within)


def is_at_times(reached: int, samples: int) -> bool:
    """Whether samples reach a limit that their median misses: it is missed only at times."""
    return reached > 0 and reached >= LEAST_REACHED * samples
