"""Reading of result documents: checks of syntax, version, schema and consistency, in that order.

The programs that write documents are tested with the suite, so their form is not checked again.
Checked is what a wrong machine, a damaged file or a document of another run would show: clocks,
medians, that data of a good outcome was verified and is not too noisy, and that what a document
refers to is in it.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import jsonschema_rs
from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from fabricheck.core import models, statistics
from fabricheck.core.errors import FabricheckError, InvalidFile, NotFoundError
from fabricheck.core.forms import NOUNS
from fabricheck.core.show import cut, enumerated, numbered
from fabricheck.core.text import count, moment, read_text
from fabricheck.core.vocabulary import REACHED_THE_END, Clock
from fabricheck.results.model import ResultDocument, RoundsMember, Series
from fabricheck.results.series import is_from_tool, is_too_noisy
from fabricheck.results.state import complete

SCHEMA_NAME = "fabricheck-result"
SCHEMA_VERSION = 1

#: The name of a part of a node model in documents up to version 0.2: h200 (2 of 8 devices).
_PART = re.compile(r"(?P<name>\S+) \((?P<devices>\d{1,9}) of \d+ devices\)")

#: Longest excerpt of a document's value in a sentence, in characters.
_LONGEST_EXCERPT = 160


def load(path: Path) -> ResultDocument:
    """Read one result document and check everything that can be checked without the machine.

    The document of a failed or interrupted run is valid: see ``complete`` and ``outcome``.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when the file cannot be read, is not JSON, has another version, breaks
        the schema, or contradicts itself.
    """
    try:
        text = read_text(path)
    except NotFoundError:
        raise NotFoundError(f"There is no result document {path}.") from None
    return parse(text, path)


class Head(BaseModel):
    """The run that a document belongs to, read without checks in a tenth of the time."""

    model_config = ConfigDict(defer_build=True, strict=True)

    clock: Clock
    started: str
    hostname: str = Field(validation_alias=AliasPath("host", "hostname"))
    simulated_s: float | None = None


def read_head(path: Path) -> Head | None:
    """Read the head of a document; return None where `load` would refuse the document."""
    try:
        return Head.model_validate_json(read_text(path))
    except (FabricheckError, ValidationError):
        return None


def parse(text: str, path: Path | str = "result document") -> ResultDocument:
    """Check the text of a result document as `load` does; ``path`` only names it in errors.

    :raises InvalidFile: as `load`.
    """
    value = models.parse_json(text, path)
    _check_version(value, path)
    _renew(value)
    if not _validator().is_valid(value):
        first = min(_validator().iter_errors(value), key=_place_in_document)
        steps = (
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in first.instance_path
        )
        raise InvalidFile(path, "".join(("$", *steps)), _reason(first))
    document = cast(ResultDocument, value)
    for place, reason in contradictions(document):
        raise InvalidFile(path, place, reason)
    if "state" in document:
        complete(document["state"])
    return document


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the version that this fabricheck reads and its programs write."""
    name = f"result-{SCHEMA_VERSION}.schema.json"
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return cast(dict[str, Any], json.loads(text))


@functools.cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema())


def _check_version(value: Any, path: Path | str) -> None:
    if not isinstance(value, dict) or value.get("schema") != SCHEMA_NAME:
        raise InvalidFile(path, None, "is not a fabricheck result document")
    version = value.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidFile(path, "$.schema_version", "has no schema version")
    if version != SCHEMA_VERSION:
        other = "a newer fabricheck" if version > SCHEMA_VERSION else "the fabricheck that wrote it"
        raise InvalidFile(
            path,
            "$.schema_version",
            f"has schema version {version}, and this fabricheck reads version {SCHEMA_VERSION}: "
            f"read it with {other}",
        )


def _renew(value: dict[str, Any]) -> None:
    """Replace what documents of earlier versions have: a status that told no errors apart, the
    number of devices in the name of the node model, replays as the only errors of links, and
    `both`, which is two directions at once, for copies of ranks to the device and back.
    """
    outcome, options = value.get("outcome"), value.get("options")
    if isinstance(outcome, dict) and outcome.get("status") == "runtime-error":
        outcome["status"] = "software"
    part = _PART.fullmatch(str(options.get("node"))) if isinstance(options, dict) else None
    if part:
        value["options"] |= {"node": part["name"], "devices": int(part["devices"])}
    for device_state in _device_states(value.get("state")):
        links = device_state.get("links")
        if isinstance(links, dict) and "errors" in links:
            replays = links.pop("errors")
            device_state["link_errors"] = None if replays is None else {"nvlink-replay": replays}
    all_series = value.get("series")
    for series in all_series if isinstance(all_series, list) else ():
        if not isinstance(series, dict):
            continue
        if series.get("experiment") == "E6" and series.get("operation") == "both":
            series["operation"] = "there-and-back"


def _device_states(state: object) -> Iterator[dict[str, Any]]:
    """Yield the states of devices of a document that is not validated yet."""
    for side in ("before", "after"):
        snapshot = state.get(side) if isinstance(state, dict) else None
        devices = snapshot.get("devices") if isinstance(snapshot, dict) else None
        for device_state in devices if isinstance(devices, list) else ():
            if isinstance(device_state, dict):
                yield device_state


def _place_in_document(error: jsonschema_rs.ValidationError) -> list[tuple[bool, str, int]]:
    """Order errors by place; indices as numbers, so that series 2 comes before series 10."""
    return [
        (True, "", step) if isinstance(step, int) else (False, step, 0)
        for step in error.instance_path
    ]


def _reason(error: jsonschema_rs.ValidationError) -> str:
    message, kinds = error.message, ""
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Type):
        message = json.dumps(error.instance, ensure_ascii=False)
        kinds = f" is not of type {enumerated(error.kind.types, last='or')}"
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Pattern):
        message = json.dumps(error.instance)
        kinds = f" is not {NOUNS[error.kind.pattern]}"
    return cut(" ".join(message.split()), _LONGEST_EXCERPT) + kinds


#: Largest relative difference between a stated and a recomputed median: decimal rounding only.
TOLERANCE = 1e-6

#: The columns of a round between nodes, which have a list for each of its pairs.
_Column = Literal["out", "back", "together_out", "together_back", "both", "latency"]
_COLUMNS: tuple[_Column, ...] = get_args(_Column)

#: Places, as JSON paths, and reasons.
Findings = Iterator[tuple[str, str]]


def contradictions(document: ResultDocument) -> Findings:
    """Yield what contradicts itself in a document that satisfies the schema."""
    yield from _run(document)
    yield from _devices_and_ranks(document)
    yield from _state(document)
    if (rounds := document.get("rounds")) is not None:
        yield from _rounds(rounds, len(document.get("ranks") or ()))
    there: dict[str, Container[int]] = {
        "device": {device["index"] for device in document["devices"]},
        "NUMA domain": {domain["index"] for domain in document["host"]["numa_domains"]},
    }
    if not is_from_tool(document):  # each launch of a tool has its own ranks, which no list has
        there["rank"] = range(len(document.get("ranks") or ()))
    good = document["outcome"]["status"] == "good"
    for index, series in enumerate(document["series"]):
        for field, reason in (*_references(series, there), *_samples(series)):
            yield f"$.series[{index}].{field}", reason
        if series["host_clock"] is not None and document["clock"] == "simulated":
            yield f"$.series[{index}].host_clock", "is set, but the clock is simulated"
        for field, reason in _not_good(series) if good else ():
            yield f"$.series[{index}].{field}", f"{reason}, but the outcome is good"


def _run(document: ResultDocument) -> Findings:
    outcome, clock, node = document["outcome"], document["clock"], document.get("node")
    status, runtime = outcome["status"], document["program"]["runtime"]
    good, rounds = status == "good", document.get("rounds")
    times = {"started": document["started"], "finished": document["finished"]}
    faults = [
        ("complete", document["complete"] != (status in REACHED_THE_END),
         f"is {json.dumps(document['complete'])}, but the outcome's status is {status}"),
        ("outcome.exit_code", good and outcome["exit_code"] != 0,
         f"is {outcome['exit_code']}, but the outcome is good"),
        ("clock", (runtime == "sim") != (clock == "simulated"),
         f"is {clock}, but the runtime is {runtime}"),
        ("node", node is not None and clock == "measured", "is set, but the clock is measured"),
        ("node", node is None and clock == "simulated" and good,
         "is missing, but the clock is simulated"),
        *((field, time is not None and moment(time) is None,
           f"{time!r} is not a date and time with a time zone")
          for field, time in times.items()),
        ("series", good and not _has_results(document),
         "is empty, but the outcome is good: no data was compared"),
        ("rounds.wrong", good and rounds is not None and bool(rounds["wrong"]),
         "is not empty, but the outcome is good"),
    ]  # fmt: skip
    yield from ((f"$.{field}", reason) for field, is_so, reason in faults if is_so)


def _has_results(document: ResultDocument) -> bool:
    """Whether a document has what a good outcome is about: series, rounds, a comparison, ranks."""
    rounds = document.get("rounds")
    return bool(
        document["series"]
        or document.get("differences") is not None
        or (rounds is not None and rounds["bytes_checked"])
        or (document["program"]["name"] == "affinity" and document.get("ranks") is not None)
    )


def _devices_and_ranks(document: ResultDocument) -> Findings:
    devices = {device["index"] for device in document["devices"]}
    if len(devices) != len(document["devices"]):
        yield "$.devices", "two devices have the same index"
    for index, rank in enumerate(document.get("ranks") or ()):
        if rank["rank"] != index:
            yield f"$.ranks[{index}].rank", f"is {rank['rank']}, but ranks are in order from 0"
        if rank["device"] not in (None, *devices):
            reason = f"device {rank['device']} is not among the document's devices"
            yield f"$.ranks[{index}].device", reason


def _state(document: ResultDocument) -> Findings:
    state = document.get("state")
    if state is None:
        return
    known, among = (
        {device["index"] for device in document["devices"]},
        "among the document's devices",
    )
    for side, snapshot in (("before", state["before"]), ("after", state["after"])):
        if snapshot is None:
            continue
        if moment(snapshot["at"]) is None:
            reason = f"{snapshot['at']!r} is not a date and time with a time zone"
            yield f"$.state.{side}.at", reason
        seen: set[int] = set()
        for number, device in enumerate(snapshot["devices"]):
            index = device["index"]
            if index not in known or index in seen:
                reason = "there twice" if index in seen else f"not {among}"
                yield f"$.state.{side}.devices[{number}].index", f"device {index} is {reason}"
            seen.add(index)
        known, among = seen, "in the snapshot before the run"


def _references(series: Series, there: Mapping[str, Container[int]]) -> Findings:
    """Yield devices, NUMA domains and ranks of a series that the document does not have.

    :param there: those that it has, by their noun.
    """
    sides = (("source", series["source"]), ("destination", series["destination"]))
    ranks = series.get("ranks") or []
    named: list[tuple[str, str, int | None]] = [("device", "device", series["device"])]
    named += [
        (f"device_set[{at}]", "device", device) for at, device in enumerate(series["device_set"])
    ]
    named += [(f"{side}.device", "device", place["device"]) for side, place in sides]
    named += [(f"{side}.numa_domain", "NUMA domain", place["numa_domain"]) for side, place in sides]
    named += [("ranks", "rank", rank) for rank in ranks if "rank" in there]
    for field, noun, number in named:
        if number is not None and number not in there[noun]:
            yield field, f"{noun} {number} is not among the document's {noun}s"
    for field, members in (("device_set", series["device_set"]), ("ranks", ranks)):
        if len(set(members)) != len(members):
            yield field, "names a member twice"


def _rounds(rounds: RoundsMember, ranks: int) -> Findings:
    """Yield what rounds between nodes name that is not in the document, or lack of their pairs."""
    nics = [len(node["nics"]) for node in rounds["nodes"]]
    for number, node in enumerate(rounds["nodes"]):
        for rank in node["ranks"]:
            if rank >= ranks:
                reason = f"rank {rank} is not among the document's ranks"
                yield f"$.rounds.nodes[{number}].ranks", reason
    for number, measured in enumerate(rounds["rounds"]):
        pairs = len(measured["pairs"])
        for column in _COLUMNS:
            if len(measured[column]) != pairs:
                reason = f"is of {count(len(measured[column]), 'pair')}, but the round has {pairs}"
                yield f"$.rounds.rounds[{number}].{column}", reason
    named: list[tuple[str, Sequence[int], int | None]] = [
        *((f"rounds[{n}].pairs[{index}]", pair, None)
          for n, measured in enumerate(rounds["rounds"])
          for index, pair in enumerate(measured["pairs"])),
        *((f"suspects[{n}]", [suspect["node"]], suspect["nic"])
          for n, suspect in enumerate(rounds["suspects"])),
        *((f"low_pairs[{n}]", pair, None) for n, pair in enumerate(rounds["low_pairs"])),
        *((f"failed[{n}]", failure["nodes"], failure["nic"])
          for n, failure in enumerate(rounds["failed"])),
        *((f"wrong[{n}]", [error["from"], error["to"]], error["nic"])
          for n, error in enumerate(rounds["wrong"])),
    ]  # fmt: skip
    for place, nodes, nic in named:
        if any(node >= len(nics) or (nic is not None and nic >= nics[node]) for node in nodes):
            yield (
                f"$.rounds.{place}",
                f"{numbered('node', nodes)}{'' if nic is None else f', NIC {nic},'} is not among "
                "the nodes and their NICs",
            )


def _samples(series: Series) -> Findings:
    samples = series["samples"]
    if min(samples) <= 0:
        index, sample = next(each for each in enumerate(samples) if each[1] <= 0)
        yield f"samples[{index}]", f"{sample:g} {series['unit']} is not positive"
        return
    median = statistics.median(samples)
    if not math.isclose(series["median"], median, rel_tol=TOLERANCE):
        yield "median", f"is {series['median']:.9g}, but the samples give {median:.9g}"


def _not_good(series: Series) -> Findings:
    """Yield what no series of a good outcome is."""
    errors = series["verification"]["errors"]
    if errors:
        yield "verification.errors", f"is {errors}"
    if not series["verification"]["bytes_checked"]:
        yield "verification.bytes_checked", "is 0, so that no data was verified"
    if is_too_noisy(series):
        yield "noisy", "is true beyond the caches"
