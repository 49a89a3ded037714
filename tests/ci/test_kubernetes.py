"""The Job of Kubernetes: its container keeps the exit code, and its node gets labels.

`ci/kubernetes/check.sh` checks the file by the API's schemas, which are a large package.
"""

import io
import json
import runpy
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "ci/kubernetes/job.yaml"
DOCUMENTS = {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text())}
POD = DOCUMENTS["Job"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
LABEL = runpy.run_path(str(ROOT / "ci/kubernetes/label.py"))

VERDICT = {
    "nodes": [
        {"node": "gpu1", "status": "PERF-FAIL", "reasons": [{"rule": "reference"}, {"rule": "x"}]}
    ]
}


def test_a_pod_has_all_devices_of_its_node_and_is_never_repeated():
    job = DOCUMENTS["Job"]["spec"]
    assert CONTAINER["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert (POD["restartPolicy"], job["backoffLimitPerIndex"]) == ("Never", 0)
    (apart,) = POD["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    labels = job["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()
    # Whoever runs it has no rights, and writes to volumes alone.
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    mounted = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in POD["volumes"]}
    (results,) = [
        each["value"] for each in CONTAINER["env"] if each["name"] == "FABRICHECK_RESULTS"
    ]
    assert results.startswith(mounted["results"])


@pytest.mark.parametrize(("measured", "labelled"), [(0, 0), (12, 0), (13, 5)])
def test_the_exit_code_is_the_verdicts_whatever_becomes_of_the_label(tmp_path, measured, labelled):
    for name, code in (("make", measured), ("fabricheck", measured), ("python", labelled)):
        (tmp_path / name).write_text(
            f"#!/bin/sh\necho {name} $@ >> {tmp_path}/calls\nexit {code}\n"
        )
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        CONTAINER["args"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "FABRICHECK_SESSION": "fabricheck-0-x"},
        check=False,
    )
    assert ended.returncode == measured
    calls = (tmp_path / "calls").read_text().splitlines()
    assert set(calls) == {
        "make run SET=node",
        "fabricheck verdict fabricheck-0-x --json",
        "python ci/kubernetes/label.py",
    }


def test_labels_are_the_status_and_the_rule_of_the_first_reason():
    assert LABEL["labels_of"](VERDICT) == {
        "fabricheck": "PERF-FAIL",
        "fabricheck-rule": "reference",
    }
    passed = {"nodes": [{"node": "gpu1", "status": "PASS", "reasons": []}]}
    # null removes the label of an earlier verdict.
    assert LABEL["labels_of"](passed) == {"fabricheck": "PASS", "fabricheck-rule": None}


def test_the_api_gets_a_merge_patch_of_the_node_with_the_token(tmp_path):
    got = []

    class Server(BaseHTTPRequestHandler):
        def do_PATCH(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    (tmp_path / "token").write_text("abc\n")
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        api = f"http://127.0.0.1:{server.server_port}"
        request = LABEL["patched"](api, "gpu1", {"fabricheck": "PASS"}, tmp_path)
        LABEL["urllib"].request.urlopen(request, timeout=30).close()
    ((path, headers, body),) = got
    assert path == "/api/v1/nodes/gpu1"
    assert headers["Authorization"] == "Bearer abc"
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert body == {"metadata": {"labels": {"fabricheck": "PASS"}}}


def test_what_cannot_be_labelled_is_a_sentence(tmp_path, monkeypatch, capsys):
    main = LABEL["main"]
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main() == 3
    (tmp_path / "token").write_text("abc")
    for name, value in {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "NODE": "gpu1",
        "KUBERNETES_ACCOUNT": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    for text in ("", "[]", '{"nodes": []}'):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main() == 4
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "label.py: this is no pod with an account, or NODE names no node"
    assert set(said[1:]) == {
        "label.py: the input is no verdict on one node (fabricheck verdict --json)"
    }
