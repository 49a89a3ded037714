"""The verdict on a node by a passive look: today's rules on what drivers and kernel tell."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Literal, cast

from fabricheck.core.models import StrictModel
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import Clock
from fabricheck.judge.verdict import counters, evidence, model, provenance
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.rules import Finding, finding, in_order, worst
from fabricheck.node import NodeModel
from fabricheck.results import state
from fabricheck.results.causes import When, sentence_of
from fabricheck.results.model import Difference, ResultDocument, node_name
from fabricheck.results.other_devices import divides
from fabricheck.schedulers import table
from fabricheck.tools import nic_comparison
from fabricheck.tools.look import Look
from fabricheck.tools.topology import comparison, inventory
from fabricheck.tools.topology.host import driver_version, scheduler_node
from fabricheck.tools.topology.reported import Mismatch

#: What a verdict by a look calls its set.
SET = "health"


class Health(StrictModel):
    """The health of a node at a look."""

    form: Literal["fabricheck-node-health-1"] = "fabricheck-node-health-1"
    exit_code: int
    """0: nothing is wrong; 12: a fault of hardware; 13: a setting, or something is unknown."""
    verdict: model.NodeVerdict
    counts_on: bool
    """Whether errors that came since the look before are a finding: the next look counts from there
    as well, so that a fault is not settled by being seen once."""
    since: datetime | None
    """The look before, from which on errors and lines of logs count; null without one: then only
    lines of logs since the node was started do."""
    seconds: float
    compared: list[str]
    """What was compared with the node model, or looked at."""
    notes: list[str]
    """What is no finding: throttling now, corrected errors, what was not compared."""
    counters: dict[str, dict[str, int]]
    """By the PCI address of a device what it counts since its driver was loaded."""


def judge(look: Look, node_model: NodeModel | None, seconds: float) -> Health:
    """Judge a node by a look.

    :param node_model: what it should have; None where that is unknown.
    :param seconds: how long the look took.
    """
    document = look.document
    compared, notes, of_model = _compared(look, node_model)
    since_before = [*_of_counters(document), *_of_links(document), *_of_nic_counters(look)]
    now = [*_of_functions(look), *of_model, *_of_modes(look, node_model), *_of_nics(look)]
    verdict = _verdict(look, node_model, in_order([*since_before, *now]))
    total = evidence.session_verdict(verdict.node, [verdict])
    return Health(
        exit_code=total.exit_code,
        verdict=verdict,
        counts_on=bool(since_before),
        since=None if look.before is None else datetime.fromisoformat(look.before["at"]),
        seconds=seconds,
        compared=compared,
        notes=[*notes, *_notes(look, document)],
        counters=_counted(look),
    )


def unanswered(sentence: str, seconds: float) -> Health:
    """Return the health of this node, whose drivers do not answer."""
    node = scheduler_node() or platform.node()
    verdict = _node_verdict(node, None, None, [finding("time-limit", sentence)])
    return Health(
        exit_code=evidence.session_verdict(node, [verdict]).exit_code,
        verdict=verdict,
        counts_on=False,
        since=None,
        seconds=seconds,
        compared=[],
        notes=[],
        counters={},
    )


def _verdict(
    look: Look, node_model: NodeModel | None, findings: list[Finding]
) -> model.NodeVerdict:
    simulated = None
    if look.simulated:
        overlay = look.description["node"]["overlay"]
        simulated = model.SimulatedNode(
            partition="inventory",
            node_model=look.description["node"]["name"],
            overlay=overlay["name"] if overlay else None,
        )
    node = node_name(inventory.host_of(look.description))
    verdict = _node_verdict(node, "measured", simulated, findings)
    document = look.document
    versions = provenance.versions([document], [])
    driver = driver_version()
    return verdict.model_copy(
        update={
            "start": datetime.fromisoformat(look.description["at"]),
            "devices": provenance.devices([document]),
            "versions": versions.model_copy(update={"driver": [driver]}),
        }
    )


def _node_verdict(
    node: str,
    clock: Clock | None,
    simulated: model.SimulatedNode | None,
    findings: list[Finding],
) -> model.NodeVerdict:
    """Return a verdict with its evidence, and the drain that follows from it."""
    reasons = [
        model.Reason(
            status=each.status,
            rule=each.rule.name,
            sentence=each.sentence,
            check=None,
            metric=None,
            component=each.component,
            next_step=NEXT_STEPS[each.rule.name],
        )
        for each in findings
    ]
    around = table.around(os.environ)
    verdict = model.NodeVerdict(
        node=node,
        scheduled=scheduler_node() is not None,
        reached_by=table.SLURM.name if around is None else around.name,
        clock="simulated" if simulated is not None else clock,
        simulated=simulated,
        faults_injected=[],
        status=worst(reason.status for reason in reasons),
        gpus="none" if simulated is not None else "not-measured",
        set=SET,
        duration_s=None,
        reasons=reasons,
        caveats=[],
        checks=model.Checks(passed=0, failed=0, skipped=[], missing=[]),
        partitions=[],
        start=None,
        devices=[],
        versions=provenance.versions([], []),
        sessions=[],
    )
    (decided,) = evidence.decided([evidence.Judged(verdict, [])], {})
    return decided


def _compared(
    look: Look, node_model: NodeModel | None
) -> tuple[list[str], list[str], list[Finding]]:
    """Return what was compared with the node model, the notes on it, and what differs."""
    described = look.description
    number = count(len(described["devices"]), "device")
    if node_model is None:
        if not described["devices"]:
            return [], [], [finding("devices", "No driver lists a device any more.")]
        mismatches = comparison.unlike_each_other(inventory.reported(described))
        return [number], [], [_of_mismatch(each) for each in mismatches]
    if not described["devices"]:
        sentence = f"No driver lists a device; {node_model.name} has {len(node_model.devices)}."
        return [], [], [finding("devices", sentence)]
    outcome = comparison.compare(node_model, inventory.reported(described))
    compared = [number, *(each for each in outcome.compared if each != "devices")]
    return compared, [*outcome.notes], [_of_mismatch(each) for each in outcome.differences]


def _of_mismatch(mismatch: Mismatch, rule: str = "topology") -> Finding:
    return counters.differs(
        "lost" if mismatch.lost else rule, cast(Difference, asdict(mismatch)), None
    )


def _of_counters(document: ResultDocument) -> Iterator[Finding]:
    """Yield what is counted and logged; a link of few lanes at rest may save power."""
    busy = state.busy_devices(document)
    loaded = {n.key for n in state.narrow_pcie(document) if n.device.index in busy}
    for each in counters.findings(document, None):
        if each.rule.name != "pcie-lanes" or each.causes <= loaded:
            yield each


def _of_functions(look: Look) -> Iterator[Finding]:
    """Yield the devices that PCI shows and the drivers lack, or may not show."""
    for address in inventory.lost_functions(look.description):
        sentence = f"The device at {address} is on the bus, and its driver has lost it."
        yield replace(finding("lost", sentence), component=f"device at {address}")
    hidden = inventory.hidden_functions(look.description)
    if hidden:
        yield finding("setting", f"The devices at {listed(hidden)} are hidden from this process.")


def _of_links(document: ResultDocument) -> Iterator[Finding]:
    """Yield the links between devices that went down since the look before."""
    for down in state.links_down(document):
        yield replace(finding("lost", sentence_of(down)), component=down.device.text())


def _of_modes(look: Look, node_model: NodeModel | None) -> Iterator[Finding]:
    """Yield the modes in which devices are unlike each other, or that divide whole ones."""
    snapshot = look.description.get("state")
    devices: list[Any] = [] if snapshot is None else snapshot["before"]["devices"]
    for item, what in _MODES.items():
        values = {str(device[item]) for device in devices if device[item] is not None}
        if len(values) > 1:
            yield finding(
                "setting", f"The devices differ in their {what}: {listed(sorted(values))}."
            )
    modes = {device["compute_partition"] for device in devices}
    divided = sorted(mode for mode in modes if divides(mode))
    if divided and node_model is not None and len(devices) != len(node_model.devices):
        yield finding("setting", f"The mode {listed(divided)} divides the devices.")


#: The members of a device's state that are alike on all devices of a node, in words.
_MODES = {
    "compute_partition": "mode",
    "memory_partition": "memory partition",
    "ecc": "error correction",
    "power_cap_w": "power cap",
}


def _of_nic_counters(look: Look) -> Iterator[Finding]:
    failures, _ = nic_comparison.new_errors(look.nics or ())
    for sentence in failures:
        yield finding("nics", sentence)


def _of_nics(look: Look) -> Iterator[Finding]:
    if look.comparison is None:
        return
    for mismatch in look.comparison.differences:
        yield _of_mismatch(mismatch, "nics")
    for sentence in look.comparison.settings:
        yield finding("setting", sentence)
    for sentence in look.comparison.unread:
        yield finding("tool", sentence)


def _notes(look: Look, document: ResultDocument) -> Iterator[str]:
    """Yield what is seen and is no finding."""
    for throttled in state.throttled(document):
        if throttled.when != When.BEFORE or look.before is None:
            yield sentence_of(replace(throttled, when=When.MEANWHILE))
    for narrow in state.narrow_pcie(document):
        yield sentence_of(narrow)
    for errors in state.new_errors(document):
        if errors.weighs != "uncorrected":
            yield sentence_of(errors)
    for back in state.counters_back(document):
        yield sentence_of(back)
    for line in look.unclear_lines:
        yield f"The kernel's log has a line that is no evidence by itself: {line}"
    closed = inventory.closed_functions(look.description)
    if closed:
        number = count(len(closed), "device")
        yield f"This process, or its container, may not open {number}: {listed(closed)}."
    if not look.simulated and look.description.get("kernel_log") is None:
        yield "The kernel's log cannot be read by this user."
    if look.nics is not None:
        yield from nic_comparison.new_errors(look.nics)[1]


def _counted(look: Look) -> dict[str, dict[str, int]]:
    snapshot = look.description.get("state")
    if snapshot is None:
        return {}
    addresses = {device["index"]: device["pci_address"] for device in look.description["devices"]}
    return {
        addresses[device["index"]]: state.counted(device)
        for device in snapshot["before"]["devices"]
    }
