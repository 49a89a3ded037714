"""Documents for Elasticsearch: the result of each check, sent when the check ends.

A document is a row of the table of `fabricheck export` (docs/export.md). ReFrame's own handler
``httpjson`` waits for a server without limit, fails the session if there is none, and is not called
for checks that failed before their output was judged. Documents that a server does not accept are
kept in a file.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reframe.core import runtime
from reframe.core.exceptions import ConfigError, what

from fabricheck.rfm import seams

# The modules for rows and requests are imported only when something is sent: checks do not need
# them.
if TYPE_CHECKING:
    from fabricheck.results.export.cells import Cells

#: The address of the server, ending with ``/_bulk``; without it nothing is sent.
URL = "FABRICHECK_HTTPJSON_URL"
#: The header ``Authorization``, such as ``ApiKey ...``.
AUTHORIZATION = "FABRICHECK_HTTPJSON_AUTHORIZATION"
#: Further fields of each document, below ``labels``: ``name=value,name=value``.
FIELDS = "FABRICHECK_HTTPJSON_FIELDS"

#: The time limit of a server to connect, and again to answer, in s.
TIMEOUT_S = 5.0
#: The total waiting time of a session for failures, in s; after that nothing more is sent.
PATIENCE_S = 10.0

_FIELD = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.+)")

#: The header is removed from the environment, which programs and jobs inherit.
_authorization: str | None = None

#: The sender; None where no address is set.
_sender: Sender | None = None


def install(results: Path, name: str) -> None:
    """Send the result of each check of a session, if an address is set.

    :param results: the results folder; documents that a server does not accept are kept in its
        ``logs``.
    :raises ConfigError: for an invalid address or fields.
    """
    global _authorization, _sender
    _authorization = os.environ.pop(AUTHORIZATION, None) or _authorization
    url = os.environ.get(URL)
    _sender = None
    if url:
        _require_bulk(url)
        _sender = Sender(url, _fields(), results / "logs" / f"httpjson-{name}.ndjson")
        seams.after_each_result(_send)


def _send(task: Any) -> None:
    if _sender is not None and not task.check.is_dry_run():
        _sender.send(task)


def _require_bulk(url: str) -> None:
    # The address itself is not shown: it may contain a password.
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        raise ConfigError(f"{URL} is not an address of http or https.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{URL} contains a password: set {AUTHORIZATION} instead.")
    if not parts.path.endswith("/_bulk"):
        raise ConfigError(f"{URL} must end with /_bulk, as in https://HOST:9200/fabricheck/_bulk.")


def _fields() -> dict[str, str]:
    found = {}
    for part in filter(None, os.environ.get(FIELDS, "").split(",")):
        field = _FIELD.fullmatch(part.strip())
        if field is None:
            raise ConfigError(f"{FIELDS}: {part!r} is not of the form name=value.")
        found[field["name"]] = field["value"]
    return found


class Sender:
    """Sends the documents of a check, waits briefly, and keeps those that were not accepted.

    labels: fields of each document besides its row. kept: the file of documents that were not
    accepted.
    """

    def __init__(self, url: str, labels: Mapping[str, str], kept: Path) -> None:
        self._url = url
        self._labels = labels
        self._host = urlsplit(url).netloc
        self._kept = kept
        self._waited = 0.0
        self._said = False

    def send(self, task: Any) -> None:
        """Send the documents of a check that ended; a failure does not affect the session."""
        try:
            body = documents(task, self._labels)
        except Exception as error:
            self._say(f"the documents of {task.check.name} cannot be made: {error!r}", "")
            return
        if self._waited >= PATIENCE_S:
            self._keep(body, "")
            return
        began = time.monotonic()
        reason = self._post(body)
        if reason is not None:
            self._waited += time.monotonic() - began
            self._keep(body, reason)

    def _post(self, body: str) -> str | None:
        """Return why the documents were not accepted, or None if they were."""
        import requests

        headers = {"Content-Type": "application/x-ndjson"}
        if _authorization:
            headers["Authorization"] = _authorization
        try:
            answer = requests.post(
                self._url,
                data=body.encode(),
                headers=headers,
                timeout=TIMEOUT_S,
                # Elsewhere a POST would become a GET, which stores nothing.
                allow_redirects=False,
            )
        except requests.Timeout:
            return f"no answer in {TIMEOUT_S:g} s"
        except requests.RequestException as error:
            # Its text contains the address; the system's message is enough.
            return f"{type(error).__name__}"
        if answer.status_code != 200:
            return f"status {answer.status_code}"
        try:
            return _refused(answer.json())
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            return "the answer is not Elasticsearch's"

    def _keep(self, body: str, reason: str) -> None:
        try:
            with self._kept.open("a", encoding="utf-8") as out:
                out.write(body)
            where = f"what was not accepted is kept in {self._kept}"
        except OSError as error:
            where = f"{self._kept} cannot be written ({error.strerror}), so they are not kept"
        self._say(reason, where)

    def _say(self, reason: str, where: str) -> None:
        if self._said:
            return
        self._said = True
        text = "; ".join(one for one in (reason, where) if one)
        seams.say(
            f"Documents for {self._host} ({URL}): {text}. This session's own results are complete."
        )


def _refused(answer: Any) -> str | None:
    if answer["errors"] is False:
        return None
    item = next(one for entry in answer["items"] for one in entry.values() if "error" in one)
    said = f"{item['error']['type']}: {item['error']['reason']}"
    return f"it refused documents ({' '.join(said.split())[:200]})"


def documents(task: Any, labels: Mapping[str, str]) -> str:
    """Return the documents of a ReFrame task as lines for the interface ``_bulk``.

    Each has an id, so that repeated lines are stored once.
    """
    lines = []
    for row in _rows(task):
        document = {"@timestamp": datetime.now(UTC), **row, "labels": labels}
        stated = {name: value for name, value in document.items() if value not in (None, {})}
        lines.append(json.dumps({"create": {"_id": uuid.uuid4().hex}}))
        lines.append(json.dumps(stated, default=_time))
    return "".join(f"{line}\n" for line in lines)


def _time(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rows(task: Any) -> Iterator[Cells]:
    """Yield the rows of the check and of its metrics."""
    from fabricheck.results import session, table
    from fabricheck.results.entry import read_entry
    from fabricheck.results.export.cells import of_row
    from fabricheck.results.run_report import SessionInfo, TestCase

    check, case = task.check, task.testcase
    info = SessionInfo.model_validate(dict(seams.front_end().report["session_info"]))
    scheduler = case.partition.scheduler.registered_name
    stated = {
        "environ": case.environ.name,
        "partition": case.partition.name,
        "system": runtime.runtime().system.name,
        "display_name": check.display_name,
        "result": task.result,
        "tags": sorted(check.tags),
        "fail_phase": None if task.succeeded else task.failed_stage,
        "fail_reason": None if task.succeeded else what(*task.exc_info),
        "perfvalues": {key: list(value) for key, value in check.perfvalues.items()},
        # The files of a passed check are copied to its output folder later.
        "outputdir": check.stagedir,
        "stagedir": check.stagedir,
        "scheduler": scheduler,
        "job_nodelist": list(check.job.nodelist) if check.job is not None else None,
    }
    ended = session.case_of(TestCase.model_validate(stated), info, Path(check.stagedir or "."))
    path = ended.document_path
    entry = read_entry(path, ended) if path is not None else None
    here = info.hostname if scheduler == "local" else None
    row = table.check_row(None, ended, entry, here)
    row.session, row.session_start = info.uuid, table.moment(info.time_start_unix)
    yield of_row(row)
    yield from map(of_row, table.metrics(row))
