"""Sessions of several nodes of which the documents are real: recorded on two H200, or simulated.

What stands for another node or another session is a copy with the values times a factor, other
times, and other device ids; nothing else is changed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import factories
from fabricheck.results import requested_nodes
from session_builder import SessionBuilder

RECORDED = Path(__file__).resolve().parents[1] / "outputs" / "h200" / "session-x2"

#: Minutes between two nights: each is a campaign.
NIGHT = 24 * 60.0


def recorded(check: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the case of ReFrame's report and the document of a check of the recorded session."""
    report = json.loads((RECORDED / "reports" / "run-0.json").read_text())
    (case,) = (one for one in report["runs"][0]["testcases"] if one["name"] == check)
    (path,) = RECORDED.glob(f"output/*/h200/x2/cuda/{check}/result.json")
    return case, json.loads(path.read_text())


def times(
    case: Mapping[str, Any], document: Mapping[str, Any], factor: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both with every bandwidth times a factor."""
    changed = copy.deepcopy(dict(document))
    for series in changed["series"]:
        if series["unit"] == "GB/s":
            for name in ("median", "mad"):
                series[name] *= factor
            for name in ("samples", "ci95"):
                if series[name] is not None:
                    series[name] = [value * factor for value in series[name]]
            if series["host_clock"] is not None:
                series["host_clock"]["median"] *= factor
    values = {
        name: [entry[0] * factor if entry[4] == "GB/s" else entry[0], *entry[1:]]
        for name, entry in case["perfvalues"].items()
    }
    return {**case, "perfvalues": values}, changed


def write(
    results: Path,
    case: Mapping[str, Any],
    document: Mapping[str, Any],
    number: int,
    minutes: float,
    node: str,
    ids: tuple[str, ...] | None = None,
) -> Path:
    """Write a session of one check in a results folder of one node; returns the folder.

    :param number: tells sessions apart, of this node and of others.
    :param minutes: when it began, after the first one.
    """
    start = factories.SESSION_START + 60 * minutes
    began = datetime.fromtimestamp(start, UTC)
    content = dict(document) | {
        "started": (began + timedelta(seconds=10)).isoformat(),
        "finished": (began + timedelta(seconds=20)).isoformat(),
        "host": document["host"] | {"scheduler_node": node},
    }
    if ids is not None:
        devices = zip(document["devices"], ids, strict=True)
        content["devices"] = [one | {"unique_id": name} for one, name in devices]
    # Each session has folders of its own, as with the settings of this suite.
    name = f"{case['name']}-{number}"
    own = {key: case[key] for key in ("system", "partition", "environ", "tags", "perfvalues")}
    entry = factories.case(case["name"], unique_name=name, **own)
    return SessionBuilder(results, number, start=start).add(entry, content).write()


def job(folder: Path, nodes: Iterable[str]) -> Path:
    """Write which nodes a job over many nodes was of; returns its folder."""
    requested = requested_nodes.RequestedNodes(
        partition=None,
        started=requested_nodes.now(),
        nodes={name: requested_nodes.RequestedNode(results=name) for name in nodes},
    )
    requested_nodes.write(folder / requested_nodes.NAME, requested)
    return folder


def nights(
    folder: Path,
    made: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]],
    often: int = 2,
    ids: bool = True,
) -> Path:
    """Write one job over many nodes whose nodes have sessions in several nights.

    :param made: by node the case and the document of its sessions.
    :param ids: whether devices tell unique ids.
    """
    number = 0
    for node, (case, document) in made.items():
        for night in range(often):
            number += 1
            own = (f"GPU-{node}-0", f"GPU-{node}-1") if ids else None
            write(folder / node, case, document, number, night * NIGHT, node, own)
    return job(folder, made)
