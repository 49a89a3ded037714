"""The series of documents that show components, and what each says of the way of its transfer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import COMPUTE, ENV_ENGINES
from fabricheck.node.platform import End
from fabricheck.results.model import Place, ResultDocument, Series
from fabricheck.results.series import (
    BETWEEN_NODES,
    device_pair,
    kernel_variant,
    kind_of_series,
    series_key,
    shares_key,
)

#: The end of a way that is in the NUMA domain of a device, whichever that is.
HOME = "domain of device"

#: A series: its check, and its index in the document.
Key = tuple[str, int]


class Way(NamedTuple):
    """What a series says of the way of its transfer; where it goes on a node, its routes say.

    carrier: which routes it takes; None where no route describes it, as for a collective. source,
    destination: the places of its ends; None where they are unknown. device: the one that moves it.
    """

    carrier: Literal["by_engine", "by_kernel", "kernel", "links", "pageable", "migration"] | None
    source: End | None
    destination: End | None
    device: int | None


@dataclass(frozen=True)
class Chosen:
    """The series of a document that show components: of each transfer that of the largest size.

    at_once: the keys of those that were measured at the same time, without those of no route.
    """

    series: Mapping[Key, Series]
    ways: Mapping[Key, Way]
    at_once: Sequence[Sequence[Key]]


def chosen_series(documents: Mapping[str, ResultDocument]) -> list[Chosen]:
    """Return the series of each document that show components.

    :param documents: by check.
    """
    chosen = []
    for check, document in documents.items():
        largest = _largest(check, document)
        ways = {key: _way(series, document) for key, series in largest.items()}
        together = grouped(
            (shares_key(series) if series["role"] == "share" else key, key)
            for key, series in largest.items()
            if ways[key].carrier is not None
        )
        chosen.append(Chosen(largest, ways, [*together.values()]))
    return chosen


def _way(series: Series, document: ResultDocument) -> Way:
    """Return the way of the transfer of a series."""
    if series["unit"] == "GB/s" and series["engine"] == "mpi":
        return _way_of_message(series, document)
    ends = _place(series, series["source"]), _place(series, series["destination"])
    device = series["device"]
    if series["unit"] != "GB/s" or None in ends:
        return Way(None, *ends, device)
    if series.get("movement") in ("page-migration", "prefetch"):
        return Way("migration", *ends, device)
    if series["engine"] == "kernel":
        return Way("kernel", *ends, device)
    if "host-pageable" in (series["source"]["memory"], series["destination"]["memory"]):
        return Way("pageable", *ends, device)
    return Way("links", *ends, device)


def _way_of_message(series: Series, document: ResultDocument) -> Way:
    pair = device_pair(series)
    if len(pair) == 1 and series["direction"] == "one-way":
        pair = [*pair, *pair]  # two ranks share the device
    if len(pair) != 2:
        return Way(None, None, None, series["device"])
    ends = End("device", pair[0]), End("device", pair[1])
    if document["environment"].get(ENV_ENGINES) == "0":
        return Way("by_kernel", *ends, series["device"])
    return Way("by_engine", *ends, series["device"])


def _place(series: Series, place: Place) -> End | None:
    """Return where one end of a transfer is."""
    if place["device"] is not None:
        return End("device", place["device"])
    if place["numa_domain"] is not None:
        return End("domain", place["numa_domain"])
    if series["device"] is None or place["memory"] in ("device", "peer"):
        return None
    return End(HOME, series["device"])


def _largest(check: str, document: ResultDocument) -> dict[Key, Series]:
    """Return the series of the largest size of each transfer, without sums and variants.

    Those between nodes show no component of one node.
    """
    largest: dict[Hashable, tuple[int, Series]] = {}
    for index, series in enumerate(document["series"]):
        if (
            is_in_turn(series)
            # It consists of others, or one of its parts has no route: a kernel that computes.
            or series["role"] in ("sum", "beside")
            or series["operation"] == COMPUTE
            # Few blocks do not fill a path, so they do not show how fast it is.
            or kernel_variant(series)
            or series["experiment"] == BETWEEN_NODES
            or series["median"] <= 0
            or not series["samples"]
        ):
            continue
        ends = (series["source"], series["destination"])
        same = (
            series_key(series), series["device"], tuple(series["device_set"]),
            tuple(series.get("ranks") or ()), series["block_size"],
            *((end["memory"], end["device"], end["numa_domain"]) for end in ends),
            # Each size of small copies, whose rate depends on it.
            series["bytes"] if kind_of_series(series).startswith("small_") else None,
        )  # fmt: skip
        if same not in largest or largest[same][1]["bytes"] < series["bytes"]:
            largest[same] = (index, series)
    return {(check, index): series for index, series in largest.values()}


def is_in_turn(series: Series) -> bool:
    """Whether both directions of a copy are measured one after the other."""
    return series["operation"] == "there-and-back"
