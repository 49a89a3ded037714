"""A month of nights over forty nodes, with faults that come, stay and go: what people are told.

The sessions are composed; `verdict --notify` judges each night, and Prometheus' own promtool
evaluates the alert rules over what `results export --prometheus` wrote.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from datetime import UTC, datetime

import pytest

import factories
from fabricheck.core.checkout import ROOT
from session_builder import SessionBuilder, failed, slow_node, sound_node

pytestmark = [pytest.mark.slow, pytest.mark.full]

NIGHTS, DAY = 30, 86400
NODES = [f"n{number}" for number in range(1, 41)]
BROKEN = factories.device_state(memory_errors={"corrected": 0, "uncorrected": 2})

#: By node the nights of its fault: memory that is repaired, a slow node that nobody repairs, one
#: that is slow now and then, and one that is down.
FAULTS = {
    "n7": ("HW-FAIL", range(5, 10)),
    "n13": ("PERF-FAIL", range(3, NIGHTS)),
    "n21": ("PERF-FAIL", (12, 14)),
    "n33": ("INCOMPLETE", range(20, 23)),
}

#: Each change, and nothing twice.
TOLD = [
    (3, "n13", "PERF-FAIL"), (5, "n7", "HW-FAIL"), (10, "n7", "PASS"), (12, "n21", "PERF-FAIL"),
    (13, "n21", "PASS"), (14, "n21", "PERF-FAIL"), (15, "n21", "PASS"), (20, "n33", "INCOMPLETE"),
    (23, "n33", "PASS"),
]  # fmt: skip


def status_of(node: str, night: int) -> str:
    status, nights = FAULTS.get(node, ("PASS", ()))
    return status if night in nights else "PASS"


def compose(results, night: int, start: float) -> None:
    session = SessionBuilder(results, night, start=start)
    at = datetime.fromtimestamp(start + 10, UTC).isoformat()
    for node in NODES:
        status = status_of(node, night)
        changes, document = slow_node() if status == "PERF-FAIL" else sound_node()
        if status == "HW-FAIL":
            changes = failed("sanity", "it ended badly")
            document = document | {"state": factories.state([factories.device_state()], [BROKEN])}
        if status == "INCOMPLETE":
            session.lost(node)
            continue
        times = {"started": at, "finished": at}
        session.check("stream_local", node, document | times, **changes)
    session.write()


def test_a_month_tells_each_change_once(command, results_folder, tmp_path):
    notices = tmp_path / "notices"
    notices.mkdir()
    script = tmp_path / "notice"
    script.write_text(f"#!/bin/sh\ncat > {notices}/$NIGHT\n")
    script.chmod(0o755)
    codes: dict[str, list[str]] = {node: [] for node in NODES}
    month = time.time() - NIGHTS * DAY
    for night in range(NIGHTS):
        compose(results_folder, night, month + night * DAY)
        environment = {"NIGHT": f"{night:02}"}
        words = ("verdict", f"run-{night}", "--notify", script)
        command(*words, code=None, env=environment)
        command("results", "export", f"run-{night}", "--prometheus", tmp_path / "n.prom", code=None)
        for line in (tmp_path / "n.prom").read_text().splitlines():
            if line.startswith("fabricheck_node_exit_code"):
                node = line.partition('node="')[2].partition('"')[0]
                codes[node].append(line.split()[-1])
    told = [
        (int(path.name), change["node"], change["status"])
        for path in sorted(notices.iterdir())
        for change in json.loads(path.read_text())["changes"]
    ]
    print(*told, sep="\n")
    assert told == TOLD
    meant = {"PASS": "0", "INCOMPLETE": "13"}
    for node, read in codes.items():
        assert read == [meant.get(status_of(node, night), "12") for night in range(NIGHTS)], node
    require_alerts(codes, tmp_path)


def require_alerts(codes: dict[str, list[str]], folder) -> None:
    """Let promtool say that each alert fires on the nights of its fault, and on no other."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: the Debian package prometheus")
    shutil.copy(ROOT / "ci/prometheus/alerts.yml", folder)
    tests = []
    for night in range(NIGHTS):
        for alert, code in (("FabricheckNodeFailed", "12"), ("FabricheckNodeUnproven", "13")):
            severity = "critical" if code == "12" else "warning"
            firing = [node for node in NODES if codes[node][night] == code]
            labels = [{"exp_labels": {"node": node, "severity": severity}} for node in firing]
            tests.append({"eval_time": f"{night}d", "alertname": alert, "exp_alerts": labels})
    content = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": "1d",
        "tests": [
            {
                "interval": "1d",
                "input_series": [
                    {"series": f'fabricheck_node_exit_code{{node="{node}"}}',
                     "values": " ".join(values)}
                    for node, values in codes.items()
                ],
                "alert_rule_test": tests,
            }
        ],
    }  # fmt: skip
    # JSON is YAML; what annotations say is tested elsewhere.
    rules = json.dumps(content)
    (folder / "tests.yml").write_text(rules)
    text = (folder / "alerts.yml").read_text()
    (folder / "alerts.yml").write_text(without_annotations(text))
    done = subprocess.run([promtool, "test", "rules", folder / "tests.yml"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def without_annotations(text: str) -> str:
    """Return the rules without annotations, which promtool would compare as well."""
    import yaml

    rules = yaml.safe_load(text)
    for rule in rules["groups"][0]["rules"]:
        del rule["annotations"]
    return yaml.safe_dump(rules)
