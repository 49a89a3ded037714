"""ReFrame's httpjson handler, prepared for Elasticsearch: what each check came to, as it ends.

A document is a row of the table of `fabricheck export` (docs/export.md). ReFrame's own handler
waits for a server without end, fails the session where there is none, and does not hear of checks
that failed before their output was judged; so this one sends, and what is not taken is kept in a
file.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from reframe.core import logging as rfm_logging
from reframe.core import runtime
from reframe.core.exceptions import ConfigError
from reframe.core.logging import getlogger
from reframe.frontend import executors

from fabricheck.results import session
from fabricheck.results.entry import read_entry
from fabricheck.results.export import rows
from fabricheck.results.export.rows import Row
from fabricheck.results.run_report import SessionInfo, TestCase

#: The address to send to, ending with ``/_bulk``; without it nothing is sent.
URL = "FABRICHECK_HTTPJSON_URL"
#: The header ``Authorization``, such as ``ApiKey ...``.
AUTHORIZATION = "FABRICHECK_HTTPJSON_AUTHORIZATION"
#: More fields of each document, below ``labels``: ``name=value,name=value``.
FIELDS = "FABRICHECK_HTTPJSON_FIELDS"

#: Seconds that a server has to connect, and again to answer.
TIMEOUT_S = 5.0
#: Seconds that a session waits in all for what then fails; after that nothing more is sent.
PATIENCE_S = 10.0

_FIELD = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.+)")

#: The header is taken out of the environment, which the programs and jobs inherit.
_authorization: str | None = None


def handlers(results: Path, name: str) -> list[dict[str, Any]]:
    """Return the handler for ReFrame's configuration; none where nobody asked for it.

    :param results: the results folder; what a server does not take is kept in its ``logs``.
    :param name: of the session, for the file that it is kept in.
    :raises ConfigError: for an address, or fields, that can not be meant.
    """
    global _authorization
    _authorization = os.environ.pop(AUTHORIZATION, None) or _authorization
    url = os.environ.get(URL)
    if not url:
        return []
    _require_bulk(url)
    _send_instead()
    extras = {"labels": _fields(), "kept": str(results / "logs" / f"httpjson-{name}.ndjson")}
    return [
        {
            "type": "httpjson",
            "level": "info",
            "url": url,
            "json_formatter": documents,
            "extras": extras,
        }
    ]


def _require_bulk(url: str) -> None:
    # The address itself is not said: a password may be in it.
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        raise ConfigError(f"{URL} is no address of http or https.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{URL} has a password in it: set {AUTHORIZATION} instead.")
    if not parts.path.endswith("/_bulk"):
        raise ConfigError(
            f"{URL} has to end with /_bulk, as in https://HOST:9200/fabricheck/_bulk."
        )


def _fields() -> dict[str, str]:
    found = {}
    for part in filter(None, os.environ.get(FIELDS, "").split(",")):
        field = _FIELD.fullmatch(part.strip())
        if field is None:
            raise ConfigError(f"{FIELDS}: {part!r} is not of the form name=value.")
        found[field["name"]] = field["value"]
    return found


def _send_instead() -> None:
    """Let ReFrame make our sender where a handler has our documents; a second call is nothing."""
    original = rfm_logging._create_handlers["httpjson"]
    if getattr(original, "of_fabricheck", False):
        return

    def create(site_config: Any, prefix: str) -> Any:
        if site_config.get(f"{prefix}/json_formatter") is not documents:
            return original(site_config, prefix)
        return Sender(site_config.get(f"{prefix}/url"), site_config.get(f"{prefix}/extras"))

    create.of_fabricheck = True  # type: ignore[attr-defined]
    rfm_logging.register_log_handler("httpjson")(create)
    log_result = executors.RegressionTask.log_result

    def log_every_result(task: Any) -> None:
        log_result(task)
        if task._perflogger is rfm_logging.null_logger:
            _log_early_failure(task)

    executors.RegressionTask.log_result = log_every_result


def _log_early_failure(task: Any) -> None:
    """Send what failed before its output was judged, which ReFrame logs nowhere."""
    all_handlers = rfm_logging.getperflogger(task.check).logger.handlers
    logger = rfm_logging.Logger("reframe")
    logger.setLevel(rfm_logging.INFO)
    for sender in all_handlers:
        if isinstance(sender, Sender):
            logger.addHandler(sender)
    if logger.handlers:
        rfm_logging.LoggerAdapter(logger, task.check).log_result(rfm_logging.INFO, task)


class Sender(rfm_logging.HTTPJSONHandler):  # type: ignore[misc]
    """Sends the documents of a check, waits little, and keeps what was not taken."""

    def __init__(self, url: str, extras: dict[str, Any]) -> None:
        super().__init__(url, extras, json_formatter=documents)
        self._host = urlsplit(url).netloc
        self._kept = Path(extras["kept"])
        self._waited = 0.0
        self._said = False

    def emit(self, record: Any) -> None:
        """Send the documents of one record; nothing that goes wrong reaches the session."""
        try:
            body = self._json_format(record, self._extras, self._ignore_keys)
        except Exception as error:
            self._say(f"the documents of {record.check_name} can not be made: {error!r}", "")
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
        """Return why the documents were not taken, or None where they were."""
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
            # Its text has the address; what the system said is enough.
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
            where = f"what was not taken is kept in {self._kept}"
        except OSError as error:
            where = f"{self._kept} can not be written ({error.strerror}), so they are not kept"
        self._say(reason, where)

    def _say(self, reason: str, where: str) -> None:
        if self._said:
            return
        self._said = True
        text = "; ".join(one for one in (reason, where) if one)
        getlogger().info(
            f"Documents for {self._host} ({URL}): {text}. This session's own results are whole."
        )


def _refused(answer: Any) -> str | None:
    if answer["errors"] is False:
        return None
    item = next(one for entry in answer["items"] for one in entry.values() if "error" in one)
    said = f"{item['error']['type']}: {item['error']['reason']}"
    return f"it refused documents ({' '.join(said.split())[:200]})"


def documents(record: Any, extras: Any, ignore_keys: Any) -> str:
    """Return the documents of a record of ReFrame as lines for the interface ``_bulk``.

    Each has an id, so that lines which are sent again are stored once.
    """
    lines = []
    for row in _rows(record):
        document = {"@timestamp": datetime.now(UTC), **row, "labels": extras["labels"]}
        stated = {name: value for name, value in document.items() if value not in (None, {})}
        lines.append(json.dumps({"create": {"_id": uuid.uuid4().hex}}))
        lines.append(json.dumps(stated, default=_time))
    return "".join(f"{line}\n" for line in lines)


def _time(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rows(record: Any) -> Iterator[Row]:
    """Yield the rows of the check and of its metrics."""
    check = record.__rfm_check__
    info = _session_info()
    system = runtime.runtime().system
    [scheduler] = {
        one.scheduler.registered_name
        for one in system.partitions
        if one.name == record.check_partition
    }
    stated = {
        "environ": record.check_environ,
        "partition": record.check_partition,
        "system": system.name,
        "display_name": check.display_name,
        "result": record.check_result,
        "tags": sorted(check.tags),
        "fail_phase": record.check_fail_phase,
        "fail_reason": record.check_fail_reason,
        "perfvalues": {key: list(value) for key, value in check.perfvalues.items()},
        # What a check that passed keeps is copied to its output folder later.
        "outputdir": check.stagedir,
        "stagedir": check.stagedir,
        "scheduler": scheduler,
        "job_nodelist": list(check.job.nodelist) if check.job is not None else None,
    }
    case = session.case_of(TestCase.model_validate(stated), info, Path(check.stagedir or "."))
    path = case.document_path
    common = {"session": info.uuid, "session_start": rows.time(info.time_start_unix)}
    entry = read_entry(path, case) if path is not None else None
    here = info.hostname if scheduler == "local" else None
    made = rows.of_case(common, case, entry, here)
    yield from takewhile(lambda row: row["kind"] in ("check", "metric"), made)


def _session_info() -> SessionInfo:
    """Return what ReFrame's front end knows of the session that runs.

    :raises LookupError: when this ReFrame keeps it elsewhere.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "reframe.frontend.cli" and "report" in frame.f_locals:
            return SessionInfo.model_validate(dict(frame.f_locals["report"]["session_info"]))
        frame = frame.f_back
    raise LookupError("ReFrame's front end has no report of this session")
