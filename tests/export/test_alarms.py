"""Alarms by the real Prometheus, node exporter and Alertmanager; and the examples of --notify."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from driver_trees import Tree
from fabricheck.core.checkout import ROOT
from session_builder import SessionBuilder, slow_node, sound_node

SERVERS = ("prometheus", "prometheus-node-exporter", "prometheus-alertmanager")
FILES = ROOT / "ci/prometheus"
NOTIFY = ROOT / "ci/notify"


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Listener(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.got.append(json.loads(self.rfile.read(length)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


class MailSink(socketserver.StreamRequestHandler):
    """Takes mail as RFC 5321 asks, and keeps its text."""

    def handle(self) -> None:
        self.wfile.write(b"220 sink\r\n")
        while line := self.rfile.readline().decode().strip():
            if line.upper() == "DATA":
                self.wfile.write(b"354 go on\r\n")
                text = []
                while (part := self.rfile.readline().decode()) != ".\r\n":
                    text.append(part)
                self.server.got.append("".join(text))
            self.wfile.write(b"221 end\r\n" if line.upper() == "QUIT" else b"250 well\r\n")


@pytest.fixture
def listening():
    """Return a function that starts a server of a kind, and gives its address and what it got."""
    servers = []

    def listening(kind, handler):
        server = kind(("127.0.0.1", 0), handler)
        server.got = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"127.0.0.1:{server.server_address[1]}", server.got

    yield listening
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def slow(results_folder):
    """A session in which n2 is slow and n1 is not."""
    session = SessionBuilder(results_folder)
    for node, (changes, document) in {"n1": sound_node(), "n2": slow_node()}.items():
        session.check("stream_local", node, document, **changes)
    return session.write()


def by(script: str, *words: str) -> str:
    return " ".join([sys.executable, str(NOTIFY / script), *words])


def test_a_webhook_gets_the_change_in_words_and_as_data(command, slow, listening):
    address, got = listening(http.server.HTTPServer, Listener)
    command("verdict", "--notify", by("webhook.py", f"http://{address}/hook"), code=None)
    (posted,) = got
    assert posted["text"] == "fabricheck run-0: n2: PERF-FAIL (reference)"
    assert posted["changes"][0]["next_step"].startswith("Measure the node again")


def test_a_mail_says_what_changed_and_what_to_do(command, slow, listening):
    address, got = listening(socketserver.ThreadingTCPServer, MailSink)
    command("verdict", "--notify", by("mail.py", "ops@example.org", address), code=None)
    (mail,) = got
    assert "Subject: fabricheck run-0: n2" in mail
    assert "n2: new to PERF-FAIL (reference)" in mail and "Next: Measure the node again" in mail


class Servers:
    """Prometheus and what belongs to it, with the files of ci/prometheus, in a folder."""

    def __init__(self, folder: Path, webhook: str) -> None:
        self.folder, self.processes = folder, []
        ports = {name: free_port() for name in SERVERS}
        self.port = ports["prometheus"]
        self.alertmanager = f"http://127.0.0.1:{ports['prometheus-alertmanager']}"
        self.metrics = folder / "metrics"
        self.metrics.mkdir()
        shutil.copy(FILES / "alerts.yml", folder)
        self.write("prometheus.yml", {
            "localhost:9100": f"127.0.0.1:{ports['prometheus-node-exporter']}",
            "localhost:9093": f"127.0.0.1:{ports['prometheus-alertmanager']}",
            "interval: 1m": "interval: 1s",
        })  # fmt: skip
        self.write("alertmanager.yml", {
            "localhost:8080": webhook, "group_wait: 1m": "group_wait: 1s",
        })  # fmt: skip
        listen = {name: f"--web.listen-address=127.0.0.1:{port}" for name, port in ports.items()}
        exporter, prometheus, alertmanager = (listen[name] for name in
                                              (SERVERS[1], SERVERS[0], SERVERS[2]))  # fmt: skip
        textfile = ("--collector.disable-defaults", "--collector.textfile")
        folder_of = f"--collector.textfile.directory={self.metrics}"
        self.start("prometheus-node-exporter", *textfile, folder_of, exporter)
        storage = f"--storage.path={folder}/alertmanager"
        config = f"--config.file={folder}/alertmanager.yml"
        self.start(
            "prometheus-alertmanager", config, storage, "--cluster.listen-address=", alertmanager
        )
        config = f"--config.file={folder}/prometheus.yml"
        self.start("prometheus", config, f"--storage.tsdb.path={folder}/data", prometheus)

    def write(self, name: str, replaced: dict[str, str]) -> None:
        text = (FILES / name).read_text()
        for old, new in replaced.items():
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    def start(self, *words: str) -> None:
        log = (self.folder / f"{words[0]}.log").open("w")
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def query(self, words: str) -> list[dict]:
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={words}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def alerts(self) -> list[dict]:
        with urllib.request.urlopen(f"{self.alertmanager}/api/v2/alerts", timeout=10) as answer:
            return json.load(answer)


def wait(question, seconds: float = 60):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            answer = question()
        except OSError:
            answer = None
        if answer:
            return answer
        time.sleep(0.5)
    raise AssertionError(f"no answer within {seconds} s")


@pytest.fixture
def servers(tmp_path, listening):
    if any(shutil.which(name) is None for name in SERVERS):
        pytest.skip(f"one of {SERVERS} is not installed (Debian packages of these names)")
    folder = tmp_path / "servers"
    folder.mkdir()
    address, got = listening(http.server.HTTPServer, Listener)
    running = Servers(folder, address)
    running.got = got
    yield running
    running.stop()


@pytest.mark.slow
@pytest.mark.full
def test_prometheus_raises_what_the_verdict_and_the_look_say(
    command, slow, servers, tmp_path, monkeypatch
):
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    tree = Tree(tmp_path / "n3")
    where = ("--root", tree.root, "--programs", "build/host/bin", "--state", tmp_path / "look.json")
    look = ("node", "health", "mi250x", *where, "--prometheus", servers.metrics / "health.prom")
    command(*look)
    tree.count(3, "umc", 2)
    command(*look, code=12)
    command("verdict", code=None)
    command("results", "export", "--prometheus", servers.metrics / "nodes.prom", code=None)

    def raised():
        alerts = [alert for post in servers.got for alert in post["alerts"]]
        return {(a["labels"]["alertname"], a["labels"]["node"]): a["annotations"] for a in alerts}

    wait(lambda: len(raised()) >= 4)
    # The session of n1 and n2 is of January: stale as well.
    assert {key for key in raised() if key[0] != "FabricheckNodeStale"} >= {
        ("FabricheckNodeFailed", "n2"), ("FabricheckHealthFailed", "n3"),
    }  # fmt: skip
    assert ("FabricheckNodeFailed", "n1") not in raised()
    failed = raised()["FabricheckNodeFailed", "n2"]
    assert failed["summary"] == "n2: PERF-FAIL (reference)"
    assert failed["next_step"].startswith("Measure the node again")
    health = raised()["FabricheckHealthFailed", "n3"]
    assert health["summary"] == "n3: HW-FAIL (memory-errors, device 3 (0000:ce:00.0))"
    (errors,) = servers.query(
        "fabricheck_device_errors_total%7Bwhat%3D%22uncorrected%20memory%20error%22%7D%20%3E%200"
    )
    assert (errors["metric"]["node"], errors["value"][1]) == ("n3", "2")
    scrapes = servers.query("node_textfile_scrape_error")
    assert [scrape["value"][1] for scrape in scrapes] == ["0"]
    posted = len(servers.got)
    time.sleep(5)
    assert len(servers.got) == posted, "the same alert is not sent again"


@pytest.mark.slow
@pytest.mark.full
def test_an_alertmanager_gets_the_change_and_its_end(command, slow, servers, results_folder):
    wait(lambda: urllib.request.urlopen(f"{servers.alertmanager}/-/ready", timeout=5))
    to = by("webhook.py", "--alertmanager", servers.alertmanager)
    command("verdict", "--notify", to, code=None)
    (alert,) = wait(servers.alerts)
    assert (alert["labels"]["node"], alert["annotations"]["status"]) == ("n2", "PERF-FAIL")
    session = SessionBuilder(results_folder, 1)
    changes, document = sound_node()
    session.check("stream_local", "n2", document, **changes).write()
    command("verdict", "run-1", "--notify", to, code=None)
    wait(lambda: not servers.alerts())


def test_the_files_of_prometheus_and_alertmanager_are_valid():
    for words in (("promtool", "check", "config", "prometheus.yml"),
                  ("amtool", "check-config", "alertmanager.yml")):  # fmt: skip
        if shutil.which(words[0]) is None:
            pytest.skip(f"there is no {words[0]} (Debian package prometheus)")
        done = subprocess.run(words, cwd=FILES, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_dashboard_asks_for_metrics_that_are_written():
    written = set(re.findall(r'"(fabricheck_\w+)"', (ROOT / "src/fabricheck/report/metrics.py")
                             .read_text()))  # fmt: skip
    written |= {f"fabricheck_{of}_{what}" for of in ("node", "health") for what in
                ("status", "exit_code")}  # fmt: skip
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = set(re.findall(r"fabricheck_\w+", " ".join(texts)))
    assert asked and asked <= written
    alerts = set(re.findall(r"fabricheck_\w+", (FILES / "alerts.yml").read_text()))
    assert alerts <= written
