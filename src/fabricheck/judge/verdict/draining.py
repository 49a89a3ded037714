"""The command that drains a node, as the arguments of a process: no shell reads them."""

from __future__ import annotations

import re

from fabricheck.core.nodelists import NODE_NAME
from fabricheck.judge.verdict import model
from fabricheck.schedulers import table

#: The characters of a reason: a shell and a scheduler read none of them specially between quotes.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:;/()+%@#_<>=-]")

#: The longest reason that a scheduler is given; its listings truncate it anyway.
LONGEST_REASON = 200


def command(status: model.NodeVerdict | model.Row) -> list[str]:
    """Return the command that drains a node; empty where no scheduler has a node of its name."""
    if NODE_NAME.fullmatch(status.node) is None:
        return []
    return table.named(status.reached_by).drain(status.node, reason(status))


def reason(status: model.NodeVerdict | model.Row) -> str:
    """Return why a node is drained, as a scheduler is told."""
    why = plain(f"fabricheck {status.status}: {_reason(status).sentence}")
    return why[:LONGEST_REASON].rstrip()


def plain(text: str) -> str:
    """Return a text without characters that a shell or a terminal interprets."""
    return _NOT_PLAIN.sub("?", " ".join(text.replace("'", "").replace('"', "").split()))


def _reason(status: model.NodeVerdict | model.Row) -> model.Reason:
    """Return the reason that the command states: the diagnosis, else that of the evidence."""
    first, drain = status.reasons[0], status.drain
    if drain is None or drain.rule is None or first.rule == "diagnosis":
        return first
    for reason in status.reasons:
        if (reason.rule, reason.check) == (drain.rule, drain.check):
            return reason
    return first
