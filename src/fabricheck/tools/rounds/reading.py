"""Values of the cases in what a launch left: a result document of ours, or a tool's output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricheck.core.errors import InvalidDocument, OtherRunError
from fabricheck.core.text import read_text
from fabricheck.results import document
from fabricheck.results.model import ResultDocument, Series
from fabricheck.tools.outputs import babelstream, nvbandwidth, p2p_test
from fabricheck.tools.rounds.cases import (
    ARRAY_BYTES,
    BABELSTREAM_BYTES,
    CASES,
    CHASE_BYTES,
    TESTCASES,
    Case,
    Cell,
    Ours,
    Tool,
)
from fabricheck.tools.rounds.launches import BABELSTREAM_RUNS
from fabricheck.tools.rounds.manifest import Device

#: What a document's unit is times in a case's.
_FACTORS = {("GB/s", "GB/s"): 1.0, ("us", "us"): 1.0, ("us", "ns"): 1000.0}


class OurOutput:
    """A result document of a launch of ours, good and complete."""

    def __init__(self, path: Path, launch: str) -> None:
        """Read it.

        :param launch: its name.
        :raises NotFoundError: when there is none.
        :raises InvalidDocument: when it is invalid, or of a run that did not end well.
        """
        self.path, self.launch = path, launch
        self.document: ResultDocument = document.load(path)
        outcome = self.document["outcome"]
        if not self.document["complete"] or outcome["status"] != "good":
            said = outcome["message"] or f"the run ended as {outcome['status']}"
            raise InvalidDocument(path, said.rstrip("."))

    def check(self, devices: Sequence[Device]) -> None:
        """Look whether it has what the cases need, and is of these devices.

        :raises InvalidDocument: when it has not, or is of others.
        """
        if devices_of(self.document) != tuple(devices):
            raise InvalidDocument(self.path, "is of other devices than its manifest")
        for case in CASES:
            if case.ours.launch == self.launch:
                self.value(case)

    def value(self, case: Case) -> tuple[float, float]:
        """Return the median in the case's unit, bytes once, and its relative half width.

        :raises InvalidDocument: when not exactly one series is the one, or it is of other sizes.
        """
        ours = case.ours
        found = [series for series in self.document["series"] if _is(ours, series)]
        # A set of several pairs has shares beside the sum, one of one pair is a single.
        if len(found) != 1:
            reason = f"has {len(found)} series of {ours.operation} ({case.name}), not one"
            raise InvalidDocument(self.path, reason)
        (series,) = found
        factor = _FACTORS.get((series["unit"], case.unit))
        if factor is None:
            reason = f"{ours.operation} is in {series['unit']}, and {case.name} in {case.unit}"
            raise InvalidDocument(self.path, reason)
        wanted = {"GB/s": ARRAY_BYTES, "us": series["bytes"], "ns": CHASE_BYTES}[case.unit]
        if series["bytes"] != wanted:
            reason = f"{ours.operation} is of {series['bytes']} B, and {case.name} of {wanted} B"
            raise InvalidDocument(self.path, reason)
        if series["bytes_counted"] == "read+write":
            factor /= 2
        return factor * series["median"], series["relative_half_width"] or 0.0


def devices_of(document: ResultDocument) -> tuple[Device, ...]:
    """Return the devices of a document as a manifest names them."""
    return tuple(
        Device(
            index=one["index"],
            name=one["name"],
            pci_address=one["pci_address"],
            unique_id=one["unique_id"],
        )
        for one in document["devices"]
    )


def _is(ours: Ours, series: Series) -> bool:
    return (
        series["operation"] == ours.operation
        and series["role"] in ours.roles
        and ours.direction in (None, series["direction"])
        and ours.to_host in (None, series["destination"]["memory"] != "device")
    )


class ToolOutput:
    """What another tool printed."""

    def __init__(self, path: Path, tool: Tool, launch: str) -> None:
        """Read it.

        :param launch: the name of the launch.
        :raises FabricheckError: when it is cut or damaged, as the parsers of `outputs` say.
        """
        self.tool = tool
        text = read_text(path)
        origin = str(path)
        self.version: str | None = None
        self.devices = 0
        self._nvbandwidth: nvbandwidth.NvBandwidthResult | None = None
        self._babelstream: dict[str, babelstream.BabelStreamRow] = {}
        self._p2p_test: p2p_test.P2pTestResult | None = None
        if tool == "nvbandwidth":
            self._nvbandwidth = nvbandwidth.parse(text, origin, TESTCASES)
            self.version, self.devices = self._nvbandwidth.version, len(self._nvbandwidth.devices)
        elif tool == "babelstream":
            array = BABELSTREAM_BYTES[launch.removeprefix(f"{tool}-")]
            self._babelstream = babelstream.parse(text, origin, BABELSTREAM_RUNS, array)
        else:
            self._p2p_test = p2p_test.parse(text, origin, reads=True)
            self.devices = len(self._p2p_test.devices)

    def check(self, path: Path, devices: int) -> None:
        """Look whether it saw as many devices as our programs.

        :raises OtherRunError: when not.
        """
        if self.devices not in (0, devices):
            reason = f"it is of {self.devices} devices, and our programs see {devices}"
            raise OtherRunError(str(path), None, reason)

    def value(self, cell: Cell) -> float | None:
        """Return a value in the case's unit; None where this machine has none."""
        value: float | None = None
        if self._nvbandwidth is not None:
            value = self._nvbandwidth.cell(cell.test, cell.row, cell.column)
        elif self._p2p_test is not None:
            value = self._p2p_test.cell(cell.test, cell.head, cell.row, cell.column)
        elif self._babelstream:
            value = self._babelstream[cell.test].best
        return None if value is None else cell.factor * value
