#!/usr/bin/env python3
"""For --notify: posts the changes of a verdict as JSON, or sends them to an Alertmanager.

fabricheck verdict 17 --notify "ci/notify/webhook.py https://chat.example.org/hook"
fabricheck verdict 17 --notify "ci/notify/webhook.py --alertmanager http://localhost:9093"

A webhook gets {"text": "...", "changes": [...]}. An Alertmanager gets an alert for each node, which
a later PASS of the node ends.
"""

import json
import sys
import urllib.request
from datetime import UTC, datetime, timedelta


def alert(change):
    """Return the alert of a node; one that passed has ended."""
    now = datetime.now(UTC)
    ends = now if change["status"] == "PASS" else now + timedelta(days=30)
    labels = {"alertname": "FabricheckVerdict", "node": change["node"], "severity": "critical"}
    names = ("status", "rule", "component", "sentence", "next_step")
    notes = {name: str(change[name]) for name in names}
    return {"labels": labels, "annotations": notes, "endsAt": ends.isoformat()}


verdict = json.load(sys.stdin)
changes = verdict["changes"]
if sys.argv[1] == "--alertmanager":
    url = f"{sys.argv[2].rstrip('/')}/api/v2/alerts"
    content = [alert(change) for change in changes]
else:
    url = sys.argv[1]
    lines = [f"{change['node']}: {change['status']} ({change['rule']})" for change in changes]
    content = {"text": f"fabricheck {verdict['of']}: {'; '.join(lines)}", "changes": changes}
request = urllib.request.Request(
    url, json.dumps(content).encode(), {"Content-Type": "application/json"}
)
with urllib.request.urlopen(request, timeout=30) as answer:
    answer.read()
