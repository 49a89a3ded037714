"""What a check records of its metrics beside a document: their series, and the rules of limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.whole_files import write_whole
from fabricheck.results.model import ResultDocument, Series

#: The file beside a document.
NAME = "metrics.json"

Reduction = Literal["worst", "best", "median"]

#: What a metric in percent compares its series with: the other members of the node, or what the
#: same members had when the session began.
Comparison = Literal["peers", "first"]

#: The present names of metrics by those of older versions. Copies of ranks to the device and back
#: (E6) were called `both`, which is the sum of two directions at once.
RENAMED: Mapping[str, str] = {
    f"both_{memory}_{reduce}": f"there_and_back_{memory}_{reduce}"
    for memory in ("pageable", "pinned")
    for reduce in ("worst", "median", "alike")
}

#: The least share of samples that reach a limit for it to count as missed only at times.
LEAST_REACHED = 0.1


class MetricRecord(StrictModel):
    """What one metric is made of, and what limits it.

    series: their indices in the document's ``series``, from 0. reduce: ``worst`` or ``best`` of
    their medians, by the series' own ``better``, or their ``median``; None where the value is
    computed from them, or is a count; what it is compared with, of a member in percent of that.
    decided: the series that decided a computed value, as of the member that is behind. compared: of
    a metric that compares measurements, its value with these, in words. rule: the rule that gave
    its limit, in a sentence; None where a reference gave it. is_peak: whether its reference is a
    peak, and not what healthy nodes reach.
    """

    series: tuple[int, ...]
    reduce: Reduction | Comparison | None
    decided: tuple[int, ...] = ()
    compared: str = ""
    rule: str | None = None
    is_peak: bool = False


class CheckRecord(StrictModel):
    """What a check records beside its document.

    started: when the document's run began, as in the document. not_intended: the variables of the
    document's environment that neither the check nor its site set, or not so; None where no check
    recorded them.
    """

    form: Literal["fabricheck-metrics-1"] = "fabricheck-metrics-1"
    started: str
    metrics: dict[str, MetricRecord]
    not_intended: tuple[str, ...] | None = None


#: What stands for the record of a document that no check wrote.
NONE = CheckRecord(started="", metrics={})


def write(
    folder: Path,
    document: ResultDocument,
    metrics: Mapping[str, MetricRecord],
    not_intended: Iterable[str] | None = None,
) -> None:
    """Write what the metrics of a document are made of, beside the document.

    :param not_intended: as in `CheckRecord`.
    :raises NotFoundError: when it cannot be written.
    """
    file = CheckRecord(
        started=document["started"],
        metrics=dict(metrics),
        not_intended=None if not_intended is None else tuple(not_intended),
    )
    write_whole(folder / NAME, file.model_dump_json() + "\n")


def read(path: Path, document: ResultDocument) -> CheckRecord:
    """Return the record beside a document; `NONE` where it belongs to another run.

    :param path: the document.
    :raises InvalidInputError: when the file is damaged, or names series that the document does not
        have.
    """
    path = path.with_name(NAME)
    try:
        file = read_model(path, CheckRecord)
    except NotFoundError:
        return NONE  # no check wrote the document
    if file.started != document["started"]:
        return NONE
    count = len(document["series"])
    for name, record in file.metrics.items():
        for index in (*record.series, *record.decided):
            if not 0 <= index < count:
                raise InvalidInputError(
                    f"{path}: metrics.{name}: there is no series {index} among the document's "
                    f"{count}."
                )
    renewed = {RENAMED.get(name, name): record for name, record in file.metrics.items()}
    return file.model_copy(update={"metrics": renewed})


def is_within(value: float, least: float | None, most: float | None) -> bool:
    """Whether a value keeps its limits, as no NaN does; None for a side without one."""
    if least is not None and not value >= least:
        return False
    return most is None or value <= most


def reached(
    series: Iterable[Series], value: float, least: float | None, most: float | None
) -> tuple[int, int]:
    """Return how many samples reach the limits of a metric, and how many there are.

    :param series: those that decided its value; each sample scales the value in proportion.
    """
    values = [value * sample / each["median"] for each in series for sample in each["samples"]]
    within = [sample for sample in values if is_within(sample, least, most)]
    return len(within), len(values)


def is_at_times(reached: int, samples: int) -> bool:
    """Whether samples reach a limit that their median misses: it is missed only at times."""
    return reached > 0 and reached >= LEAST_REACHED * samples
