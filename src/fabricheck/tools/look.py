"""A passive look at this node: what drivers and kernel tell now, beside the look before it.

Nothing opens a device and nothing is measured, so a job that uses the devices is not disturbed. Of
the look before, one small file has the states and the counters, and the time of the last line of
the kernel's log. It lies where a restart of the node removes it, as that sets the counters back.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from fabricheck.core.errors import NotFoundError
from fabricheck.core.text import printable_json
from fabricheck.core.whole_files import write_whole
from fabricheck.node import NodeModel
from fabricheck.node.fabric import Fabric
from fabricheck.results import log_lines
from fabricheck.results.model import NodeNic, ResultDocument, State
from fabricheck.tools import nic_comparison, nics
from fabricheck.tools.look_begun import FORM, Begun
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.host import scheduler_node


@dataclass(frozen=True)
class Look:
    """What a node shows.

    description: by `inventory`. nics: those of the node; None where its model has none.
    comparison: of these NICs with the model. before: the content of the file of the look before;
    None for the first one since the node was started.
    """

    description: Mapping[str, Any]
    nics: Sequence[NodeNic] | None
    comparison: nic_comparison.Comparison | None
    before: Mapping[str, Any] | None

    @property
    def simulated(self) -> bool:
        """Whether the node is a simulated one, which has neither states nor logs."""
        return self.description["node"] is not None

    @property
    def document(self) -> ResultDocument:
        """The members of a result document that the questions about states read.

        The look before is the state before the run, this look the one after it.
        """
        description = self.description
        document: dict[str, Any] = {
            "program": description["program"],
            "clock": "measured",
            "host": inventory.host_of(description),
            "devices": inventory.devices_of(description),
            "versions": {},
            "settings": [],
            "environment": {},
            "started": description["at"],
            "finished": description["at"],
            "duration_s": self._seconds_since(),
            "series": [],
        }
        now: State | None = description.get("state")
        if now is not None:
            document["state"] = {**now, **self._moments(now)}
        if description.get("kernel_log") is not None:
            document["aftermath"] = {
                "kernel_log": self._lines_on_hardware(),
                "runtime_log": None,
                "pci_functions": None,
            }
        return cast(ResultDocument, document)

    @property
    def unclear_lines(self) -> list[str]:
        """The lines of the kernel's log on devices that are no evidence by themselves."""
        lines = log_lines.weighed(self.description.get("kernel_log") or ())
        return [line["text"] for line in lines if line["kind"] != "hardware"]

    def _lines_on_hardware(self) -> list[Any]:
        lines = log_lines.weighed(self.description["kernel_log"])
        return [line for line in lines if line["kind"] == "hardware"]

    def _seconds_since(self) -> float:
        """The seconds since the look before; 0 for the first."""
        if self.before is None:
            return 0.0
        then, now = (datetime.fromisoformat(each["at"]) for each in (self.before, self.description))
        return max(0.0, (now - then).total_seconds())

    def _moments(self, now: State) -> dict[str, Any]:
        """Return both states; devices of the look before have the indices of this one."""
        snapshot = now["before"]
        if self.before is None:
            return {"before": snapshot, "after": None}
        indices = {device["pci_address"]: device["index"] for device in self.description["devices"]}
        devices = [
            {**state, "index": indices[address]}
            for address, state in self.before["devices"].items()
            if address in indices
        ]
        former = {**snapshot, "at": self.before["at"], "host": self.before["host"]}
        return {"before": {**former, "devices": devices}, "after": snapshot}


def look(
    begun: Begun,
    model: NodeModel | None,
    fabric: Fabric | None,
    root: Path = Path("/"),
) -> Look:
    """Look at this node: wait for its drivers' answer, and read its NICs.

    :param begun: what was started.
    :param model: what the node should have; None where that is unknown.
    :param fabric: the network that joins the nodes; None for none.
    :param root: the folder with ``sys``, ``proc`` and ``dev`` of the node.
    :raises NotFoundError: when nothing says that there are GPUs.
    :raises FabricheckError: as `inventory.ask`.
    """
    description = inventory.described(begun.answer(), needs_device=False)
    before = begun.before
    if before is not None and before["boot_id"] != description.get("boot_id"):
        # A folder that outlives a restart: everything that the log has is of this start.
        description = inventory.described(begun.again(), needs_device=False)
        before = None
    had_some = before is not None and before["devices"]
    if not description["devices"] and model is None and not had_some:
        raise NotFoundError(
            "No driver lists a GPU of this node: name a node model that states some."
        )
    if model is None or not model.nics or description["node"] is not None:
        return Look(description, None, None, before)
    node = scheduler_node() or platform.node()
    present = nics.read_nics(node, fabric, root)
    for nic in present:
        was = {} if before is None else before["nics"].get(nic["name"], {})
        counted = nics.counters(nic, root)
        nic["errors"] = {name: [was[name], counted[name]] for name in was if name in counted}
    return Look(
        description, present, nic_comparison.compare(node, model, present, fabric, root), before
    )


def write(this: Look, file: Path, root: Path = Path("/"), *, settled: bool = True) -> None:
    """Write a look, so that the next one sees what came since.

    :param settled: whether what the log has until now is no finding.
    :raises NotFoundError: when it cannot be written.
    """
    state = this.description.get("state")
    if state is None:
        return
    snapshot = state["before"]
    addresses = {device["index"]: device["pci_address"] for device in this.description["devices"]}
    until = this.description["kernel_log_until_us"]
    content = {
        "form": FORM,
        "at": snapshot["at"],
        "boot_id": this.description["boot_id"],
        "kernel_log_until_us": until if settled and until is not None else -1,
        "host": snapshot["host"],
        "devices": {addresses[device["index"]]: device for device in snapshot["devices"]},
        "nics": {nic["name"]: nics.counters(nic, root) for nic in this.nics or ()},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise NotFoundError(f"{file.parent} cannot be created ({error.strerror}).") from None
    write_whole(file, printable_json(content) + "\n")
