"""Telling a person that a node's status changed: once, and not each night for the same fault.

A file beside the verdicts has the status of each node that was told last. A command of the site's
gets the verdict; where it fails, the next verdict tells the change again.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, NotFoundError
from fabricheck.core.models import StrictModel, parse_model
from fabricheck.core.text import printable_json, read_text
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.verdict import model
from fabricheck.judge.verdict.model import Verdict

#: The file of what was told, in the folder of verdicts of a results folder.
NOTICED = "noticed.json"

#: Seconds that a command may take.
LIMIT_S = 60.0


class Change(StrictModel):
    """A node whose status is another one than was told last."""

    node: str
    was: str | None
    """The status that was told last; null for none: then it passed, or is new."""
    status: str
    rule: str | None
    component: str | None
    sentence: str | None
    next_step: str | None
    drain: bool
    """Whether the evidence drains it."""


class NoticeFailed(FabricheckError):
    """A command did not take a notice."""


def notify(command: str, total: Verdict, folder: Path) -> list[Change]:
    """Run a command where the status of a node changed, with the verdict on its standard input.

    The verdict is as in ``verdict.json``, with the list ``changes`` besides.

    :param command: split as a shell does; no shell runs it.
    :param folder: the results folder, or another one that keeps what was told.
    :returns: what changed; without a change the command does not run.
    :raises NoticeFailed: when the command cannot be run or fails: the change is told again.
    :raises FabricheckError: when the file of what was told cannot be read or written.
    """
    file = folder / model.VERDICTS / NOTICED
    before = _noticed(file)
    changed = [
        change
        for change in map(_change, [*total.nodes, *total.networks])
        if change.status != before.get(change.node, "PASS")
    ]
    if not changed:
        return []
    changes = [change.model_copy(update={"was": before.get(change.node)}) for change in changed]
    content: dict[str, Any] = model.as_json(total)
    content["changes"] = [change.model_dump(mode="json") for change in changes]
    _run(command, json.dumps(content, indent=1) + "\n")
    noticed = {**before, **{change.node: change.status for change in changes}}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{file.parent} cannot be created ({error.strerror}).") from None
    write_whole(file, printable_json(noticed) + "\n")
    return changes


def _change(row: model.Row) -> Change:
    first = row.reasons[0] if row.reasons else None
    return Change(
        node=row.node,
        was=None,
        status=row.status,
        rule=None if first is None else first.rule,
        component=None if first is None else first.component,
        sentence=None if first is None else first.sentence,
        next_step=None if first is None else first.next_step,
        drain=row.drain is not None and row.drain.live,
    )


def _noticed(file: Path) -> Mapping[str, str]:
    if not file.exists():
        return {}
    noticed: Mapping[str, str] = parse_model(read_text(file), dict[str, str], file)
    return noticed


def _run(command: str, verdict: str) -> None:
    """Give a verdict to a command."""
    words = shlex.split(command)
    if not words:
        raise NoticeFailed("--notify names no command.")
    try:
        ended = subprocess.run(
            words, input=verdict, text=True, capture_output=True, timeout=LIMIT_S, check=False
        )
    except OSError as error:
        raise NoticeFailed(f"The notice was not sent: {words[0]} ({error.strerror}).") from None
    except subprocess.TimeoutExpired:
        raise NoticeFailed(
            f"The notice was not sent: {words[0]} took longer than {LIMIT_S:g} s."
        ) from None
    if ended.returncode != 0:
        last = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or ["without a word"]
        raise NoticeFailed(
            f"The notice was not sent: {words[0]} ended with {ended.returncode} ({last[0]})."
        )
