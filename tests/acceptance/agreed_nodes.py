"""Forty simulated nodes under an agreement, and the jobs that measured them, in one folder.

    machine = Machine(tmp_path)
    machine.job({"node1": 1400.0, "node2": 700.0})
    machine.agree(waivers=[...])

A job has a session of the set smoke on each node, with one check: the memory's copies, of which
1330 GB/s are required.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

import factories
from factories import judged
from session_builder import SessionBuilder, good_case

#: The partition that is simulated, and a commit of its programs.
SYSTEM, COMMIT = "local:sim-mi250x", "0a1b2c3d4e5f"

NODES = [f"node{number}" for number in range(1, 41)]

#: What the nodes of a job reach: all of them alike.
HEALTHY = dict.fromkeys(NODES, 1400.0)

PROGRAMS = {"stream": "5" * 64}

HOUR_S = 3600.0

WAIVER = {
    "node": "node19",
    "criterion": "memory",
    "reason": "a fan is exchanged in spring",
    "by": "the board",
    "until": "2099-12-31",
}


def content(**changes: Any) -> dict[str, Any]:
    """Build what an agreement on forty simulated nodes says."""
    return {
        "form": "fabricheck-acceptance-1",
        "title": "forty simulated nodes",
        "system": SYSTEM,
        "nodes": "node[1-40]",
        "simulated": True,
        "commit": COMMIT,
        "begins": "2026-01-01T00:00:00Z",
        "sets": ["smoke"],
        "criteria": [
            {"name": "memory", "check": "stream_local", "metric": "copy_worst", "at_least": 1300,
             "unit": "GB/s"},
        ],
        "may_fail_at_first": 3,
        "signers": [{"name": "centre", "role": "the centre"}],
        "waivers": [],
    } | changes  # fmt: skip


class Machine:
    """The results folder of a machine, and the file of its agreement."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.file = folder / "acceptance.yaml"
        self.results.mkdir(parents=True)
        self.jobs = 0

    def agree(self, **changes: Any) -> Path:
        """Write the agreement; return its file."""
        text = yaml.safe_dump(content(**changes), sort_keys=False, width=1000)
        # PyYAML quotes what would be a time.
        self.file.write_text(text.replace("'2026-01-01T00:00:00Z'", "2026-01-01T00:00:00Z"))
        for waiver in changes.get("waivers", ()):
            until = waiver["until"]
            self.file.write_text(self.file.read_text().replace(f"'{until}'", until))
        return self.file

    def job(self, values: Mapping[str, float], **changes: Any) -> Path:
        """Measure nodes in a job, an hour after the one before; return its folder.

        :param changes: of each session, as of `session`.
        """
        self.jobs += 1
        folder = self.results / "every-node" / str(self.jobs)
        start = changes.pop("start", factories.SESSION_START + self.jobs * HOUR_S)
        for node, value in values.items():
            self.session(folder / node, node, value, start, **changes)
        started = datetime.fromtimestamp(start, UTC).isoformat()
        nodes = {node: {"results": node} for node in values}
        names = {"partition": None, "started": started, "job": str(self.jobs), "nodes": nodes}
        factories.write(folder / "nodes.json", {"form": "fabricheck-nodes-1"} | names)
        return folder

    def session(
        self,
        results: Path,
        node: str,
        value: float,
        start: float,
        *,
        commit: str = COMMIT,
        serials: Mapping[str, str] | None = None,
        programs: Mapping[str, str] = PROGRAMS,
        least: float = 1400.0,
        command: str = f"reframe --system={SYSTEM} --mode=smoke -r",
        document: Mapping[str, Any] | None = None,
        where: str = SYSTEM,
    ) -> None:
        """Write the session of a node; `least`: of which 95 % are required."""
        began = datetime.fromtimestamp(start + 10, UTC).isoformat()
        serial = (serials or {}).get(node, f"{node}-gpu0")
        made = factories.simulated_document(
            started=began,
            finished=datetime.fromtimestamp(start + 20, UTC).isoformat(),
            devices=[factories.device(0, unique_id=serial), factories.device(1)],
            series=[factories.series([value], host_clock=None)],
        )
        made["program"] = made["program"] | {"commit": commit}
        made["host"] = made["host"] | {"hostname": node, "scheduler_node": node}
        made |= dict(document or {})
        result = "pass" if value >= 0.95 * least else "fail"
        metric = judged(value, least, -0.05, None, "GB/s", result)
        changes: dict[str, Any] = {"perfvalues": {f"{where}:copy_worst": metric}}
        if result == "fail":
            changes |= {
                "result": "fail",
                "fail_phase": "performance",
                "fail_reason": "performance error: failed to meet reference(s)",
                "fail_info": {"exc_type": "PerformanceError"},
            }
        builder = SessionBuilder(results, where=where, command=command, start=start)
        builder.add(good_case("stream_local", node, where, **changes), made).write()
        # Its own record, and that of the last session, for which no dry run is asked.
        for outputs in (results / "output", results / "output" / "last"):
            factories.recorded_checks(outputs, where, stream_local="E1 smoke node full")
        write_software(results, start, programs, commit)


def write_software(
    results: Path, start: float, programs: Mapping[str, str], checkout: str = COMMIT
) -> None:
    """Write the record of a session's software."""
    entry = {
        "says": [],
        "system": "local",
        "environment": "host",
        "spack_environment": None,
        "files": [],
        "sha256": dict(programs),
    }
    record = {"written": start + 1, "checkout": checkout, "environments": [entry]}
    path = results / "output" / "software" / "software.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
