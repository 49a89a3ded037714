#!/usr/bin/env python3
"""Label a node of Kubernetes by its verdict: fabricheck verdict --json | label.py

The labels are fabricheck (the status) and fabricheck-rule (of the first reason; none for a PASS).
NODE names the node; the account of the pod may patch nodes (ci/kubernetes/job.yaml). Exit code 0,
3 where it is in no pod, 4 where the verdict is not of one node, 5 where the API refuses.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

#: Where a pod has the token of its account.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def labels_of(verdict: dict) -> dict:
    """Return the labels of a verdict on one node; null removes one that is there."""
    (node,) = verdict["nodes"]
    reasons = node["reasons"]
    return {
        "fabricheck": node["status"],
        "fabricheck-rule": reasons[0]["rule"] if reasons else None,
    }


def patched(api: str, node: str, labels: dict, account: Path) -> urllib.request.Request:
    """Return the request that gives a node labels."""
    return urllib.request.Request(
        f"{api}/api/v1/nodes/{node}",
        data=json.dumps({"metadata": {"labels": labels}}).encode(),
        method="PATCH",
        headers={
            "Authorization": f"Bearer {(account / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        },
    )


def main() -> int:
    """Read the verdict, and label the node."""
    host, node = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("NODE")
    account = Path(os.environ.get("KUBERNETES_ACCOUNT", ACCOUNT))
    if not host or not node or not (account / "token").is_file():
        print("label.py: this is no pod with an account, or NODE names no node", file=sys.stderr)
        return 3
    try:
        labels = labels_of(json.load(sys.stdin))
    except (ValueError, KeyError, TypeError):
        print(
            "label.py: the input is no verdict on one node (fabricheck verdict --json)",
            file=sys.stderr,
        )
        return 4
    api = f"https://{host}:{os.environ.get('KUBERNETES_SERVICE_PORT', '443')}"
    trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
    try:
        with urllib.request.urlopen(patched(api, node, labels, account), timeout=30, context=trust):
            pass
    except (OSError, urllib.error.HTTPError) as error:
        print(f"label.py: the API does not label {node}: {error}", file=sys.stderr)
        return 5
    print(f"label.py: {node} is {labels['fabricheck']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
