"""The environment of a session: node, devices, versions, variables, and states around checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from fabricheck.core.amounts import about, short, size
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.core.show import listed
from fabricheck.judge.comparison import circumstances
from fabricheck.node import products
from fabricheck.node.cores import format_cores
from fabricheck.results import state, table
from fabricheck.results.causes import merged, sentence_of
from fabricheck.results.columns import columns
from fabricheck.results.model import Device, ResultDocument
from fabricheck.results.observed import Observed
from fabricheck.results.reading import Results
from fabricheck.results.session import Session
from fabricheck.site.software import FILE, FOLDER, sentences

#: The most sessions of a job that are named.
_MOST_SESSIONS = 20

#: The most checks that are named when they report something other than the rest.
_MOST_OTHERS = 3


@dataclass(frozen=True)
class Fact:
    """A fact about a partition; ``where``: the checks that report it, empty for all."""

    name: str
    value: str
    where: str = ""


def of_sessions(results: Results) -> list[Fact]:
    """Return the facts of the session from ReFrame's report, or the facts of a job over nodes."""
    session = results.session
    if session is None and results.requested:
        ran = [
            f"{source.name} in {source.results}" for source in results.sources if source.reported
        ]
        return [
            *(Fact("start", _time(nodes.started.timestamp())) for nodes in results.lists),
            Fact("nodes", folded(results.requested)),
            Fact("folder", str(results.home)),
            Fact("sessions", listed(ran[:_MOST_SESSIONS]) or "none"),
        ]
    if session is None:
        return []
    return [
        Fact("session", f"{session.id}, {session.uuid}"),
        Fact("host of ReFrame", session.hostname),
        Fact("start", _time(session.start)),
        Fact("end", f"{_time(session.end)}, after {session.end - session.start:.0f} s"),
        Fact("report", str(session.report)),
        Fact("ReFrame", session.reframe or "unknown"),
        Fact("command", session.command or "unknown"),
    ]


def software(sessions: Iterable[Session]) -> tuple[list[str], list[str]]:
    """Return the statements about the sessions' software, and the locks and specs kept with it.

    Equal statements of the sessions of a job are listed once.
    """
    says: dict[str, None] = {}
    lock_files: list[str] = []
    for session in sessions:
        recorded = sentences(session.outputs, session.start, session.end)
        new = [sentence for sentence in recorded if sentence not in says]
        says |= dict.fromkeys(new)
        folders = [folder / FOLDER for folder in session.outputs if (folder / FOLDER).is_dir()]
        files = folders[0].iterdir() if new and folders else ()
        lock_files += sorted(str(file) for file in files if file.name != FILE)
    return list(says), lock_files


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S %z}"


def environment_facts(observed: Observed) -> list[Fact]:
    """Return the facts that the documents of a partition report; differing facts separately."""
    named = [
        (entry.case.name if entry.case else Path(str(entry.path)).parent.name, entry.document)
        for entry in observed.entries
        if entry.document is not None
    ]
    facts = grouped(
        (fact.name, (fact.value, name)) for name, document in named for fact in _facts(document)
    )
    return [
        Fact(what, value, _who(checks, [name for name, _ in named]))
        for what, stated in facts.items()
        for value, checks in grouped(stated).items()
    ]


def _facts(document: ResultDocument) -> Iterator[Fact]:
    """Yield what comparisons know, but for options and devices, and what the host is set to."""
    for fact, value in circumstances.of_document(document):
        if not fact.option and fact.device is None and fact.what not in ("devices", "unique ids"):
            yield Fact(fact.what, value)
    host = document["host"]
    yield Fact("cores allowed", format_cores(host["cores_allowed"]) or "none")
    domains = listed(
        f"{domain['index']}: {size(domain['memory_bytes'])}" for domain in host["numa_domains"]
    )
    yield Fact("NUMA domains and their memory", domains or "unknown")
    balancing = {None: "unknown", 0: "off"}.get(host["numa_balancing"], "on")
    yield Fact("NUMA balancing", balancing)
    yield Fact("transparent huge pages", host["transparent_hugepage"] or "unknown")
    for note in document["notes"]:
        yield Fact("note", note)


def _who(checks: list[str], all_checks: list[str]) -> str:
    """Return the checks that report something; empty if all do."""
    others = [name for name in dict.fromkeys(all_checks) if name not in checks]
    if not others:
        return ""
    if len(others) <= _MOST_OTHERS < len(checks):
        return f"all but {listed(others)}"
    return listed(dict.fromkeys(checks))


def devices(observed: Observed) -> list[Device]:
    """Return every device that a document of the partition names, once each."""
    same = grouped(
        (
            (device["index"], products.label(device), device["pci_address"], device["unique_id"]),
            device,
        )
        for document in observed.documents
        for device in document["devices"]
    )
    return sorted((first for first, *_ in same.values()), key=lambda device: device["index"])


#: Columns of a state that are no row: other tables and the causes have them.
_ELSEWHERE = frozenset({
    "moment", "taken_at", "taken_s", "device", "device_name", "device_arch", "pci_address",
    "unique_id", "processes", "others_s",
})  # fmt: skip


def logged(observed: Observed) -> list[str]:
    """Return what logs say of devices, each once for all checks of a partition."""
    entries = chain.from_iterable(map(state.logged, observed.documents))
    return list(map(sentence_of, merged(entries)))


def partition_state(observed: Observed) -> Mapping[str, Any]:
    """Return the state around the checks of a partition; empty if no document has it.

    causes: sentences on states that can explain a value, once for all checks. host: ranges of the
    host by what they are of. indices: those of the devices. devices: by what they are of the ranges
    of each device; empty where it is unknown. absent: items without a value, with the reason.
    seconds: the shortest and the longest time of a snapshot.
    """
    documents = [document for document in observed.documents if "state" in document]
    rows = [row.values for check in observed.checks for row in table.states(check)]
    if not rows:
        return {}
    all_causes = chain.from_iterable(map(state.causes, documents))
    absent = {
        reading["item"]: reading["why"] for each in documents for reading in each["state"]["absent"]
    }
    of_device = grouped((row["device"], row) for row in rows if "device" in row)
    devices = {
        index: dict(_ranges(state_of_device))
        for index, state_of_device in sorted(of_device.items())
    }
    return {
        "causes": list(map(sentence_of, merged(all_causes))),
        "host": dict(_ranges(row for row in rows if "device" not in row)),
        "indices": list(devices),
        "devices": {
            what: [state_of_device.get(what, "") for state_of_device in devices.values()]
            for what in dict.fromkeys(chain.from_iterable(devices.values()))
        },
        "absent": [f"{item}: {why}" for item, why in absent.items()],
        "seconds": _range("taken_s", [row["taken_s"] for row in rows]),
    }


def _ranges(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what a column of the export is of, and the range of its values, where any is known."""
    all_rows = list(rows)
    for column in columns():
        values = [row[column.name] for row in all_rows if row.get(column.name) is not None]
        if values and "state" in column.row_types and column.name not in _ELSEWHERE:
            yield column.meaning, _range(column.name, values)


def _range(name: str, values: Iterable[Any]) -> str:
    """Return the least and the greatest of numbers, or each of other values."""
    known = sorted(set(values))
    if isinstance(known[0], (bool, str)):
        return listed(
            "yes" if answer is True else "no" if answer is False else answer for answer in known
        )
    form = about if name.startswith(("free_bytes", "huge_page_bytes")) else short
    return " to ".join(dict.fromkeys(map(form, (known[0], known[-1]))))
