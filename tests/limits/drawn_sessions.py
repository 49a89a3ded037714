"""Sessions that are drawn: the documents of a simulated session with noise, judged by its checks.

A session has the noise of samples as it was recorded on H200, a fixed factor for each device and
pair of its node, and a shift for its day. Their sizes are assumed: `SIGMAS`.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import site_checks
from fabricheck.core.checkout import ROOT
from fabricheck.references.entries import plain
from fabricheck.results.document import load
from fabricheck.results.metric_records import is_at_times, reached
from fabricheck.results.series import device_pair
from fabricheck.rfm import metrics, relative
from peer_percents import percents

OUTPUTS = ROOT / "tests" / "outputs"
SIMULATED = OUTPUTS / "simulated-mi250x"
RECORDED = OUTPUTS / "h200" / "session-x2"

#: Those of its checks whose noise counts.
RECORDED_CHECKS = (
    "memcpy_near", "mpi_pairs", "p2p_engine", "p2p_kernel", "pingpong_right", "stream_concurrent",
    "stream_local",
)  # fmt: skip

#: The standard deviations of the fixed factors, and of a day's shift: assumed, not measured. A copy
#: of pinned memory of one device at a time is one of an engine.
SIGMAS = {"kernel or engine": 0.007, "host links": 0.02, "pageable": 0.03}
SIGMA_OF_A_DAY = 0.005

#: What has the noise of what was not recorded.
UNKNOWN_NOISE = ("kernel or engine", "copy-engine", False)

#: At how many percent of the reference a value is missed; None where nothing is required.
Limits = tuple[float | None, float | None]


def kind_of(series: Mapping[str, Any]) -> str:
    """Return the kind of a series, by which `SIGMAS` has its factor."""
    memories = {series["source"]["memory"], series["destination"]["memory"]}
    if "host-pageable" in memories:
        return "pageable"
    at_once = series["role"] != "single" or len(series.get("ranks") or ()) > 0
    of_host = memories & {"host-pinned", "managed"}
    return "host links" if of_host and at_once else "kernel or engine"


def _noise_of(series: Mapping[str, Any]) -> tuple[str, str, bool]:
    return (kind_of(series), series["engine"], series["unit"] == "us")


@cache
def recorded_noise() -> Mapping[Any, Sequence[Sequence[float]]]:
    """Return by kind, engine and whether it is a time the samples of each series over their median.

    Of checks of the set node; of bandwidths those past the caches, which metrics are made of.
    """
    found: dict[Any, list[list[float]]] = {}
    for path in sorted(RECORDED.glob("output/**/result.json")):
        if path.parent.name not in RECORDED_CHECKS:
            continue
        for series in load(path)["series"]:
            if series["regime"] == "memory" or series["unit"] == "us":
                own = [one / series["median"] for one in series["samples"]]
                found.setdefault(_noise_of(series), []).append(own)
    return found


@dataclass
class Judged:
    """A metric of a check with its limits, and its series in the document.

    reference: what the limits are about, where that counts.
    """

    check: str
    metric: metrics.Metric
    limits: Limits
    population: Mapping[str, Sequence[Any]]
    reference: float | None = None

    def missed(self, document: Any) -> bool:
        """Whether the document's value is beyond a limit, and not at times only."""
        figure = self.metric.figure(document, self.population)
        if not self.is_beyond(figure.value):
            return False
        return not is_at_times(*reached(figure.decisive, figure.value, *self.limits))

    def is_beyond(self, value: float) -> bool:
        """Whether a value is beyond a limit."""
        low, high = self.limits
        return (low is not None and value < low) or (high is not None and value > high)

    def found(self, document: Any) -> list[float]:
        """Return for each member by how many percent it could become slower and just not miss it.

        Below 0 of one that misses it already.
        """
        assert isinstance(self.metric, relative.PeerRatio) and self.limits[0] is not None
        parts = percents(self.metric, document, self.population)
        return [100 * (1 - self.limits[0] / part) for part in parts]


@dataclass
class Drawn:
    """The documents of a session by check, and what they are judged by.

    healthy: the medians of each document's series, as simulated.
    """

    documents: dict[str, Any]
    judged: list[Judged]
    healthy: dict[str, list[float]]

    def draw(self, rng: random.Random, factors: Mapping[Any, float]) -> None:
        """Give each series the samples that a session on a day has, and their median."""
        day = {kind: 1 + rng.gauss(0, SIGMA_OF_A_DAY) for kind in SIGMAS}
        noise = recorded_noise()
        for check, document in self.documents.items():
            for series, healthy in zip(document["series"], self.healthy[check], strict=True):
                one = rng.choice(noise.get(_noise_of(series)) or noise[UNKNOWN_NOISE])
                scale = factors[_member(series)] * day[kind_of(series)]
                whole = healthy * (scale if series["better"] == "higher" else 1 / scale)
                series["samples"] = [whole * sample for sample in rng.choices(one, k=len(one))]
                series["median"] = statistics.median(series["samples"])

    def apply(self, shifts: Mapping[tuple[str, int], float]) -> None:
        """Multiply the present rates of series, each named by its check and its index.

        A bandwidth is multiplied and a time divided. The next draw knows nothing of it.
        """
        for (check, index), factor in shifts.items():
            series = self.documents[check]["series"][index]
            part = factor if series["better"] == "higher" else 1 / factor
            series["median"] *= part
            series["samples"] = [part * one for one in series["samples"]]

    def reset(self) -> None:
        """Give each series its healthy median, without noise."""
        for check, document in self.documents.items():
            for series, healthy in zip(document["series"], self.healthy[check], strict=True):
                series["median"], series["samples"] = healthy, [healthy]

    def failures(self) -> list[Judged]:
        """Return what the present values miss."""
        return [one for one in self.judged if one.missed(self.documents[one.check])]


def _member(series: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what has a factor of its own: a pair, or a device by kind."""
    pair = device_pair(series)  # type: ignore[arg-type]
    if len(pair) == 2 and kind_of(series) == "kernel or engine":
        return ("pair", *sorted(pair))
    device = series["device"] if series["device"] is not None else tuple(series["device_set"])
    return (kind_of(series), device)


def factors(rng: random.Random, documents: Mapping[str, Any]) -> dict[Any, float]:
    """Draw the fixed factors of a node."""
    members = {
        _member(series): kind_of(series)
        for document in documents.values()
        for series in document["series"]
    }
    return {member: 1 + rng.gauss(0, SIGMAS[kind]) for member, kind in sorted(
        members.items(), key=str)}  # fmt: skip


def session(partition: str) -> Drawn:
    """Return the simulated session as the checks of a partition judge it.

    Left out are checks that the simulated session does not have, as of RCCL.
    """
    documents = simulated_documents()
    return of(documents, [one for one in judged(partition) if one.check in documents])


def simulated_documents() -> dict[str, Any]:
    """Return by check the documents of the simulated session that have series."""
    paths = SIMULATED.glob("output/*/local/sim-mi250x/sim/*/result.json")
    documents: dict[str, Any] = {one.parent.name: load(one) for one in sorted(paths)}
    return {name: one for name, one in documents.items() if one["series"]}


def of(documents: dict[str, Any], judged: list[Judged]) -> Drawn:
    """Return documents as a session whose healthy values they have."""
    healthy = {
        name: [one["median"] for one in document["series"]] for name, document in documents.items()
    }
    return Drawn(documents, judged, healthy)


@contextmanager
def chosen_once() -> Iterator[None]:
    """Let metrics choose their series once: a draw changes values and nothing else."""
    # The document and the metric are kept as well: no other one then has the same identity.
    kept: dict[tuple[int, int], tuple[Any, metrics.Metric, Any]] = {}

    def series_of(document: Any, metric: metrics.Metric, *how: Any, **more: Any) -> Any:
        key = (id(document), id(metric))
        if key not in kept:
            kept[key] = (document, metric, chosen(document, metric, *how, **more))
        return kept[key][2]

    chosen = metrics.series_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "series_of", series_of)
        patch.setattr(relative, "series_of", series_of)
        yield


def judged(partition: str) -> Iterator[Judged]:
    """Yield the metrics of the checks of a partition that have a limit."""
    with checks_of(partition) as checks:
        for check in checks:
            for metric in measured_metrics(check):
                value, lower, upper, _ = plain(check.entries[metric.name])
                limits = tuple(None if one is None else value * (1 + one) for one in (lower, upper))
                if limits != (None, None):
                    yield Judged(type(check).__name__, metric, limits, check.population())


@contextmanager
def checks_of(partition: str) -> Iterator[Iterator[Any]]:
    """Give the checks of a partition as they are set up there, but for those of absent tools."""
    with site_checks.set_up(
        partition, [ROOT / "reframe_checks"], ROOT / "reference_values"
    ) as checks:
        yield (check for check in checks if hasattr(check, "entries"))


def measured_metrics(check: Any) -> Iterator[metrics.Metric]:
    """Yield the metrics of a check that are measured, and not counted."""
    yield from (metric for metric in check.judged_metrics() if metric.unit != "count")
