"""The sentences of an acceptance record: criteria, doubts, changes, waivers, what to run next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from fabricheck.core.amounts import short
from fabricheck.core.nodelists import folded
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.acceptance.model import (
    AcceptanceRecord,
    Cell,
    Change,
    Doubt,
    DoubtKind,
    NodeRow,
)
from fabricheck.references.agreement import Criterion, Waiver
from fabricheck.schedulers import table
from fabricheck.site import partitions

#: What stands above all else where the agreement is of a simulated system.
SIMULATED = (
    "This acceptance is of a simulated system: it shows how an acceptance goes, and accepts no "
    "machine."
)

#: What a change of hardware is called.
CHANGED: Mapping[str, str] = {
    "serial": "serial number",
    "vbios": "VBIOS",
    "firmware": "firmware",
    "devices": "PCI addresses",
    "nic": "address of the NIC",
    "nic-firmware": "firmware of the NIC",
}


def _commit(facts: Sequence[str]) -> str:
    if not facts:
        return "the commit of its programs is unknown"
    return f"its programs are of commit {listed(facts)}, not of the agreed one"


def _programs(facts: Sequence[str]) -> str:
    if not facts:
        return "it recorded no digests of its programs"
    return f"its programs are not those that were agreed, or that most nodes have: {listed(facts)}"


def _limits(facts: Sequence[str]) -> str:
    return f"it was judged by other limits than the references have: {listed(facts)}"


def _values(facts: Sequence[str]) -> str:
    return f"its report does not have the values of its documents: {listed(facts)}"


def _twice(facts: Sequence[str]) -> str:
    return f"another node shows the same serials or host name: {listed(facts)}"


def _copied(facts: Sequence[str]) -> str:
    return f"its samples are, to the last digit, those of {listed(facts)}"


#: Why a session does not count, as a clause.
_DOUBTS: Mapping[DoubtKind, Callable[[Sequence[str]], str]] = {
    "simulated": lambda facts: "it was simulated",
    "measured": lambda facts: "it was measured, and the agreement is of a simulated system",
    "faults-injected": lambda facts: f"faults were injected: {listed(facts)}",
    "commit": _commit,
    "checkout": lambda facts: f"its checks and limits are of commit {listed(facts)}",
    "programs": _programs,
    "before": lambda facts: f"it began before the agreement does: {listed(facts)}",
    "future": lambda facts: f"its clock says a time that has not come: {listed(facts)}",
    "hardware": lambda facts: f"the hardware changed since: {listed(facts)}",
    "same-machine": _twice,
    "copied": _copied,
    "limits": _limits,
    "values": _values,
    "provisional": lambda facts: f"its verdict is provisional: {listed(facts)} is not calibrated",
    "no-gpu": lambda facts: "no GPU was measured, and so its PASS accepts no node",
    "no-peak": lambda facts: "the node model states no peak of this transfer",
    "not-calibrated": lambda facts: "the partition has no calibrated limit of this metric",
}


def doubt(reason: Doubt) -> str:
    """Return why a session does not count, as a clause."""
    return _DOUBTS[reason.kind](reason.facts)


def change(changed: Change) -> str:
    """Return what changed of a node's hardware."""
    before, after = changed.before or "none", changed.after or "none"
    return f"{CHANGED[changed.what]} at {changed.where}: {before} -> {after}"


def criterion(agreed: Criterion) -> str:
    """Return what a criterion asks for."""
    if agreed.set is not None:
        return f"the set {agreed.set} passes"
    if agreed.hours is not None:
        return f"{agreed.hours:g} h of load pass"
    metric = agreed.metric
    assert metric is not None
    what = f"{metric.check} {metric.metric}"
    if metric.percent_of_peak is not None:
        return f"{what} reaches {metric.percent_of_peak:g} % of the node's peak"
    if metric.limit is not None:
        return f"{what} keeps the calibrated limit of the partition"
    bounds = []
    if metric.at_least is not None:
        bounds.append(f"at least {metric.at_least:g}")
    if metric.at_most is not None:
        bounds.append(f"at most {metric.at_most:g}")
    return f"{what} is {' and '.join(bounds)} {metric.unit}"


def value(cell: Cell) -> str:
    """Return the value of a cell with its limit; empty where it has none."""
    if cell.value is None:
        return ""
    bounds = []
    if cell.least is not None:
        bounds.append(f"at least {short(cell.least)}")
    if cell.most is not None:
        bounds.append(f"at most {short(cell.most)}")
    return f"{short(cell.value)} {cell.unit}{', ' if bounds else ''}{' and '.join(bounds)}"


def session(cell: Cell) -> str:
    """Return the session that decided a cell, or was the last to answer; empty without one."""
    if cell.session is None:
        return ""
    return f"{cell.place}/{cell.session}" if cell.place else cell.session


def tries(cell: Cell) -> str:
    """Return how many sessions answer a cell, and how many of them did not meet it."""
    if not cell.tried:
        return "no session"
    return f"{count(cell.tried, 'session')}, {cell.missed} not met"


def why(cell: Cell) -> str:
    """Return why a cell is not met: what does not count, reasons of the verdict, the waiver."""
    parts = []
    if cell.doubts:
        parts.append(f"does not count: {'; '.join(map(doubt, cell.doubts))}")
    parts += [f"{reason.rule}: {reason.sentence}" for reason in cell.reasons[:2]]
    if cell.waiver is not None:
        parts.append(waiver(cell.waiver, cell.waiver_ended))
    if not parts and cell.outcome == "open":
        return "not yet measured"
    return ". ".join(part.rstrip(".") for part in parts)


def waiver(granted: Waiver, ended: bool) -> str:
    """Return a waiver as a clause, with its reason."""
    until = f"ended with {granted.until:%Y-%m-%d}" if ended else f"until {granted.until:%Y-%m-%d}"
    return f"waiver by {granted.by}, {until}: {granted.reason}"


def at_first(record: AcceptanceRecord) -> str:
    """Return how many nodes failed at first, and how many may."""
    names = record.failed_at_first
    which = f" ({folded(names)})" if names else ""
    return (
        f"{count(len(names), 'node')} failed at first{which}; "
        f"{record.agreement.may_fail_at_first} may."
    )


def tried(row: NodeRow) -> str:
    """Return how many sessions a node had, and what became of them."""
    text = f"{count(len(row.attempts), 'session')}, {row.failed} did not pass"
    return f"{text}, {row.not_counted} do not count" if row.not_counted else text


def next_command(record: AcceptanceRecord) -> str | None:
    """Return the command that measures what is missing; None where nothing is.

    A partition whose checks run on this machine has a loop over the names of its nodes.
    """
    wanted, system = record.next, record.agreement.system
    if wanted is None:
        return None
    nodes = shlex.quote(folded(wanted.nodes))
    reframe = (
        f"--system={system}" if wanted.set is None else f"--system={system} --mode={wanted.set}"
    )
    backend = str(partitions.known(system).get("scheduler", ""))
    row = table.submitting(backend)
    if backend == "local":
        single = f"reframe {reframe} -r"
        if wanted.hours is not None:
            single = f"fabricheck soak --hours {wanted.hours:g} -- {reframe}"
        return f"for node in $(nodeset -e {nodes}); do FABRICHECK_NODE_NAME=$node {single}; done"
    soak = "" if wanted.hours is None else f"--soak {wanted.hours:g} "
    if row is not None and row.name == "ssh":
        return f"fabricheck every-node --hosts {nodes} -- {reframe}"
    if row is not None and row.name == table.SLURM.name:
        return (
            f"salloc --exclusive --nodelist={nodes} --nodes={len(wanted.nodes)} "
            f"fabricheck every-node {soak}-- {reframe}"
        )
    return f"fabricheck every-node {soak}--nodes {nodes} -- {reframe}"
