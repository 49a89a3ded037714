"""Reference entries, ``[value, lower, upper, unit]``: their faults, and the origin of a value.

ReFrame accepts any entry. One that no value can miss, or whose unit is not the metric's, passes
there; here each is refused in one sentence.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.models import StrictModel
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.node.schema import Quantity
from fabricheck.references.published import LIMITS, Published

#: The first part of an expected failure in ReFrame's references.
EXPECTED_FAILURE = "$xfail"

Entry = tuple[float, float | None, float | None, str]

#: The widest limits that a reference may have, as parts of its value: a link at half of its width
#: has half of the bandwidth, and takes twice the time.
WIDEST_BELOW, WIDEST_ABOVE = -0.5, 1.0


def report_only(unit: str) -> Entry:
    """Return the entry that requires nothing."""
    return (0, None, None, unit)


def requires(entry: Any) -> bool:
    """Whether an entry can be missed: [0, null, null, unit] cannot; what is no entry is a fault."""
    return not isinstance(entry, Sequence) or any(bound is not None for bound in entry[1:3])


def is_wide(lower: float | None, upper: float | None, unit: str) -> bool:
    """Whether the limit on the side of worse values accepts what a link at half its width has."""
    if unit == "count":
        return False
    if unit in SMALLER_IS_BETTER:
        return upper is not None and upper > WIDEST_ABOVE
    return lower is not None and lower < WIDEST_BELOW


def required(entry: Any) -> bool:
    """Whether a file states an entry that can be missed."""
    return entry is not None and requires(plain(entry))


def entry_of(raw: Any) -> Entry | None:
    """Return a reference as a file states it, or None where it is not a plain one ($xfail)."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) != 4:
        return None
    value, lower, upper, unit = raw
    numbers = (value, *(bound for bound in (lower, upper) if bound is not None))
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        return None
    return (value, lower, upper, str(unit))


def plain(entry: Any) -> Any:
    """Return the entry; for an expected failure (['$xfail', why, entry]) the inner one."""
    if isinstance(entry, (list, tuple)):
        return plain(entry[-1]) if entry and entry[0] == EXPECTED_FAILURE else list(entry)
    return entry


def formatted(entry: Any) -> str:
    """Format an entry as in a reference file, with six digits; anything else as Python does."""
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        return repr(entry)
    words = (f"{part:.6g}" if isinstance(part, float) else part for part in entry)
    return f"[{listed('null' if word is None else str(word) for word in words)}]"


def faults(name: str, unit: str, entry: Any) -> Iterator[str]:
    """Yield one sentence for each fault of the reference of one metric.

    Only ``[0, null, null, unit]`` is report only.

    :param name: the metric's, for the sentence.
    :param unit: the metric's: GB/s, us or count.
    :param entry: the reference, ``(value, lower, upper, unit)``.
    """
    subject = f"The reference of metric {name}, {formatted(entry)},"
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) not in (3, 4):
        yield f"{subject} is not [value, lower, upper, unit]."
        return
    value, lower, upper, stated = (*entry, None)[:4]
    bounds = [bound for bound in (lower, upper) if bound is not None]
    are_numbers = all(map(_is_number, (value, *bounds)))
    faults = {
        f"has no unit; the metric is in {unit}": stated is None,
        f"is in {stated}, but the metric is in {unit}": stated not in (None, unit),
        "contains something other than a finite number": not are_numbers,
    }
    if are_numbers:
        faults |= {
            "has a negative value": value < 0,
            f"has no limit, so nothing can miss it: write [0, null, null, {unit}] for report only":
                value > 0 and not bounds,
        }  # fmt: skip
    if are_numbers and value >= 0 and bounds:
        counted, smaller_is_better = unit == "count", unit in SMALLER_IS_BETTER
        faults |= {
            "has a limit and the value 0; a limit is a fraction of the value":
                value == 0 and not (counted and upper is not None),
            "has a lower limit outside -1 (exclusive) to 0":
                lower is not None and not -1 < lower <= 0 and not (counted and value == 0),
            "has a negative upper limit":
                upper is not None and upper < 0,
            f"has a lower limit only, but a smaller value of {unit} is better":
                smaller_is_better and upper is None,
            f"has an upper limit only, but a larger value in {unit} is better":
                not smaller_is_better and lower is None,
        }  # fmt: skip
    yield from (f"{subject} {fault}." for fault, is_so in faults.items() if is_so)


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


Statistic = Literal["value", "median", "mean", "least"]

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "value": lambda values: values[0],
    "median": statistics.median,
    "mean": statistics.mean,
    "least": min,
}

#: The kind of a source that gives a reason why nothing is required.
REPORT_ONLY = "report only"

#: What needs no measurement, as unit and value.
DEFINED = (("count", 0), ("%", 100))

#: A node model, read once.
load = functools.cache(load_node)


class Origin(StrictModel, populate_by_name=True, strict=False):
    """What a limit rests on; docs/reference/reference-file.md describes the keys."""

    kind: Literal["published", "derived", "calibration", "site", "report only"]
    records: tuple[str, ...] = ()
    statistic: Statistic | None = None
    link_class: str | None = Field(None, alias="class")
    map: str | None = None
    system: str | None = None
    factor: float | None = None
    peak: Literal["pair", "host_link", "memory"] | None = None
    times: int = 1
    efficiency: float | None = Field(None, gt=0, le=1)
    why: str | None = None
    definition: str | None = Field(None, alias="from")
    record: str | None = None
    measured_on: str | None = None
    clock: Literal["simulated"] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Origin:
        of_peak = self.kind == "derived" and self.peak is not None
        without_peak = self.kind == "derived" and self.peak is None
        faults = {
            "records require a statistic and their system":
                self.records and (self.statistic is None or self.system is None),
            "a class requires the node model (map) that defines its pairs":
                self.link_class is not None and self.map is None,
            "a published value requires records, and nothing else":
                self.kind == "published" and (not self.records or self.peak or self.efficiency),
            "a calibration requires its record":
                self.kind == "calibration" and not self.record,
            "a limit of the site requires why, and neither records nor a peak":
                self.kind == "site" and (not self.why or self.records or self.peak),
            "a peak requires the node model (map) that states it":
                of_peak and self.map is None,
            "a peak requires either an efficiency or records of it":
                of_peak and (self.efficiency is None) == (not self.records),
            "an efficiency requires its reason":
                of_peak and self.efficiency is not None and not self.why,
            "a derived value requires records, a peak, or the reason (why)":
                without_peak and not self.records and not (self.why or self.definition),
        }  # fmt: skip
        for reason, is_so in faults.items():
            if is_so:
                raise ValueError(reason)
        return self

    @property
    def by_definition(self) -> bool:
        """Whether the value needs no measurement: a count of faults, or 100 % of itself."""
        return self.kind == "derived" and not self.records and self.peak is None

    def disagreement(self, value: float, unit: str, data: Published) -> str | None:
        """Return why a value with a limit does not follow from this origin; None where it does.

        What a record of a calibration says is compared there, and what a site states is not.
        """
        if self.kind == REPORT_ONLY:
            return "its source says that nothing is required"
        if self.by_definition and (unit, value) not in DEFINED:
            return "by definition only a count of 0 and 100 % are right"
        if self.by_definition or self.kind in ("calibration", "site"):
            return None
        try:
            computed, computed_unit = follow(self, data)
        except InvalidInputError as error:
            return str(error).removesuffix(".")
        if computed_unit != unit or not math.isclose(computed, value, rel_tol=1e-3):
            return f"its source gives {computed:g} {computed_unit}"
        return None


def record_names(origin: Origin) -> list[str]:
    """Return the ids of the records; for a class those of every ordered pair in it.

    :raises InvalidInputError: when the node model has no such class.
    """
    if not any("{" in name for name in origin.records):
        return list(origin.records)
    assert origin.map is not None and origin.link_class is not None
    ordered = [
        pair for a, b in _pairs(load(origin.map), origin.link_class) for pair in ((a, b), (b, a))
    ]
    return [name.format_map({"from": a, "to": b}) for name in origin.records for a, b in ordered]


def _pairs(node: NodeModel, name: str) -> Sequence[tuple[int, int]]:
    for link_class, pairs in node.link_classes.items():
        if link_class.name == name:
            return pairs
    raise InvalidInputError(f"{node.file}: the node has no pair of the link class {name}.")


def follow(origin: Origin, data: Published) -> tuple[float, str]:
    """Compute a value from its origin; return it with its unit, GB/s, us or percent.

    :raises InvalidInputError: for a missing or secondary record, records of several units or of
        another system than stated, an acceptance limit that is declared published, and a peak that
        is assumed or comes from a secondary record.
    """
    value, unit = _of_records(origin, data) if origin.records else (1.0, "part")
    if origin.peak is not None:
        part = value / 100 if unit == "percent" else value
        value = peak_gbs(origin, data) * (origin.efficiency or 1.0) * part
        unit = "GB/s"
    return value * (origin.factor or 1.0), unit


def _of_records(origin: Origin, data: Published) -> tuple[float, str]:
    names = record_names(origin)
    values = [data.value(name) for name in names]
    for name in names:
        _refuse_secondary(name, data)
        system = data.record(name).system
        if system != origin.system:
            raise InvalidInputError(f"Record {name} is of {system}, not of {origin.system}.")
        if origin.kind == "published" and data.record(name).role in LIMITS:
            raise InvalidInputError(
                f"Record {name} is an acceptance limit of {system}, not a published measurement."
            )
    units = {unit for _, unit in values}
    if len(units) > 1:
        raise InvalidInputError(f"Records {listed(names)} have several units.")
    assert origin.statistic is not None
    return STATISTICS[origin.statistic]([value for value, _ in values]), units.pop()


def _refuse_secondary(name: str, data: Published) -> None:
    if data.record(name).secondary:
        raise InvalidInputError(
            f"Record {name} is secondary: its original is required before a value uses it."
        )


def peak_gbs(origin: Origin, data: Published) -> float:
    """Return the peak of the node model that an origin names, in GB/s, times its factor.

    :raises InvalidInputError: when the peak is assumed or unknown, or from a secondary record.
    """
    assert origin.map is not None
    node = load(origin.map)
    key, fact = peak_fact(origin)
    if node.doubt(key) is not None:
        raise InvalidInputError(f"{node.file}: {key} is {fact.kind}, so it cannot ground a limit.")
    if fact.record:
        _refuse_secondary(fact.record, data)
    if origin.peak == "pair":
        a, b = _pairs(node, str(origin.link_class))[0]
        return origin.times * node.peer_peak_gbs(a, b)
    device = node.devices[0]
    peak = device.host_link_gbs if origin.peak == "host_link" else device.memory_peak_gbs
    assert peak is not None  # an unknown one is refused above
    return origin.times * peak


def peak_fact(origin: Origin) -> tuple[str, Quantity]:
    """Return the key of the peak in its node model's file, and its provenance."""
    assert origin.map is not None
    node = load(origin.map)
    key = {
        "pair": "links.peak_gbs" if node.switch is None else "switch.peak_gbs",
        "host_link": "host_link.peak_gbs",
        "memory": "devices.memory_peak_gbs",
    }[str(origin.peak)]
    fact = node.facts[key]
    assert isinstance(fact, Quantity)
    return key, fact
