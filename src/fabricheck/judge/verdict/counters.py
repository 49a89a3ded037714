"""What the driver and the kernel say of hardware, whatever a program measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.results import state
from fabricheck.results.causes import Errors, Logged, NamedDevice, NarrowPcie, sentence_of
from fabricheck.results.model import Difference, ResultDocument, node_name
from fabricheck.results.series import place_of


def findings(document: ResultDocument, check: str | None) -> Iterator[Finding]:
    """Yield the findings of a document's states, of its log lines, and what is gone.

    :param check: the check that they are of; None of the node as a whole.
    """
    for errors in state.errors(document, "uncorrected memory error"):
        yield of_errors(errors, check)
    for errors in state.link_errors(document):
        if errors.weighs == "uncorrected":
            yield replace(of_errors(errors, check), causes=frozenset([errors.key]))
    for narrow in state.narrow_pcie(document):
        if narrow.both_ends:
            growth = finding("pcie-lanes", sentence_of(narrow), check)
            yield replace(growth, causes=frozenset([narrow.key]), component=_component(narrow))
    for logged in state.logged(document):
        yield of_logged(logged, check)
    node = node_name(document["host"])
    for function in state.lost_functions(document):
        address = function["address"]
        sentence = f"The device at {address} of node {node} left the bus meanwhile."
        yield replace(finding("lost", sentence, check), component=f"device at {address}")
    for difference in document.get("differences") or ():
        if difference["lost"]:
            yield differs("lost", difference, check)


def of_errors(errors: Errors, check: str | None = None) -> Finding:
    """Return the finding on new uncorrected errors."""
    rule = "link-errors" if errors.of_links else "memory-errors"
    return replace(finding(rule, sentence_of(errors), check), component=_component(errors))


def of_logged(logged: Logged, check: str | None = None) -> Finding:
    """Return the finding on lines of a log."""
    rule = "device-error" if logged.kind == "hardware" else "log-line"
    return replace(finding(rule, sentence_of(logged), check), component=_component(logged))


def differs(
    rule: str, difference: Difference, check: str | None, metric: str | None = None
) -> Finding:
    """Return the finding on a difference from the node model."""
    devices = difference["devices"]
    component = None
    if len(devices) == 1:
        component = f"device {devices[0]}"
    elif len(devices) == 2:
        component = f"pair {devices[0]}-{devices[1]}"
    differing = finding(rule, difference["sentence"], check, metric)
    return replace(differing, place=place_of(difference), component=component)


def _component(cause: Errors | NarrowPcie | Logged) -> str | None:
    """Return the device that a cause names, with its address."""
    device = cause.device
    return device.text() if isinstance(device, NamedDevice) else device
