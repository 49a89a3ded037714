"""A stand-in for Elasticsearch: it takes documents in bulk, or behaves badly."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandIn:
    """A server on this machine. behaviour: ``good``, ``hangs``, or a status.

    requests: path, headers and body of each; documents: by id what was stored.
    """

    def __init__(self, behaviour: str | int = "good") -> None:
        self.behaviour = behaviour
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.documents: dict[str, dict] = {}
        self.ended = threading.Event()
        self.url = ""

    def answer(self, body: bytes) -> tuple[int, object]:
        if isinstance(self.behaviour, int):
            return self.behaviour, {"error": "as was asked for"}
        if self.behaviour == "refuses":
            refused = {"type": "strict_dynamic_mapping_exception", "reason": "no field [x]"}
            return 200, {"errors": True, "items": [{"create": {"error": refused}}]}
        if self.behaviour == "other":
            return 200, "welcome"
        lines = body.decode("utf-8").split("\n")
        assert lines.pop() == "", "the last line ends, too"
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            self.documents[json.loads(action)["create"]["_id"]] = json.loads(document)
        return 200, {"errors": False, "items": []}


@contextlib.contextmanager
def running(behaviour: str | int = "good") -> Iterator[StandIn]:
    """Run one while the block lasts."""
    stand_in = StandIn(behaviour)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            stand_in.requests.append((self.path, dict(self.headers), body))
            if stand_in.behaviour == "hangs":
                stand_in.ended.wait(60)
                return
            status, answer = stand_in.answer(body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_port}/fabricheck/_bulk"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
