"""Commands for the scheduler: a line that drains each failed node, and nodes to run again."""

from __future__ import annotations

from collections.abc import Iterable

from fabricheck.core.nodelists import NODE_NAME, folded, titled
from fabricheck.judge.verdict import draining, model
from fabricheck.schedulers import table

#: What keeps a line from being live, in the words of its comment.
DOUBTS: dict[model.Doubt, str] = {
    "simulated": "it is simulated",
    "nothing-measured": "no document shows what was measured",
    "injected-faults": "faults were injected",
    "not-scheduled": "no scheduler named this node",
    "odd-name": "no scheduler has a node of this name",
    "provisional": "its limits have no calibration",
    "failed-once": "it failed this way only once, run it again",
    "unknown-software": "the driver's version is unknown",
    "no-contrast": "the check passed on no node with the same software",
    "many-alike": "many nodes failed alike",
    "all-alike": "all nodes failed alike",
}


def drain_lines(rows: Iterable[model.Row]) -> list[str]:
    """Return a line that drains each failed node, to be read and run by a person.

    The line is a comment with its doubts where they keep it from being live, and where no command
    drains a node. There is none where all nodes failed alike.
    """
    lines = []
    for row in rows:
        drain = row.drain
        if drain is None or "all-alike" in drain.doubts:
            continue
        by = table.named(row.reached_by)
        arguments = draining.command(row)
        doubts = "; ".join(DOUBTS[doubt] for doubt in drain.doubts)
        if not arguments and not by.no_drain:
            lines.append(f"# no name of a node of {by.title}: {draining.plain(row.node)}")
            continue
        line = _line(arguments)
        if by.no_drain:
            advice = by.no_drain.format(node=draining.plain(row.node))
            line = f"{advice} ({draining.reason(row)})"
        if not drain.live:
            lines.append(f"# {doubts}: {line}")
        elif by.no_drain:
            lines.append(f"# {line}")
        else:
            lines.append(line)
    return lines


def live_commands(rows: Iterable[model.Row | model.NodeVerdict]) -> list[list[str]]:
    """Return the commands that drain nodes without a doubt, each as the arguments of a process."""
    drains = [row.drain for row in rows if row.drain is not None]
    return [drain.arguments for drain in drains if drain.arguments]


def live_lines(rows: Iterable[model.Row | model.NodeVerdict]) -> list[str]:
    """Return the same as lines to read."""
    return [_line(arguments) for arguments in live_commands(rows)]


def _line(arguments: Iterable[str]) -> str:
    """Return arguments as a person types them; none has a quote or what a shell expands."""
    words = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if " " not in argument:
            words.append(argument)
        elif equals and " " not in name:
            words.append(f'{name}="{value}"')
        else:
            words.append(f'"{argument}"')
    return " ".join(words)


def advice(drain: model.Drain, node: str = "it") -> str:
    """Return whether to drain a failed node, and why not, as a sentence.

    No scheduler drains a machine that it does not name: that is measured again, or repaired.
    """
    scheduled = "not-scheduled" not in drain.doubts
    doubts = "; ".join(DOUBTS[doubt] for doubt in drain.doubts if doubt != "not-scheduled")
    if not doubts:
        return f"{'Drain' if scheduled else 'Repair'} {node}: the evidence is {drain.evidence}."
    return f"Do not drain {node}: {doubts}." if scheduled else f"Measure {node} again: {doubts}."


def to_run_again(verdict: model.Verdict) -> list[str]:
    """Return the nodes about which nothing is proven, as a host list of those of a scheduler; then
    each network likewise.
    """
    nodes, networks = (
        [row.node for row in rows if row.status in ("UNSTABLE", "INCOMPLETE")]
        for rows in (verdict.nodes, verdict.networks)
    )
    listed = folded(node for node in nodes if NODE_NAME.fullmatch(node))
    return [
        *([listed] if listed else []),
        *(
            f"the {titled(network)}, by fabricheck every-node --network-only"
            for network in dict.fromkeys(networks)
        ),
    ]
