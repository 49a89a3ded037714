"""The NICs of a simulated node: those of its node model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabricheck.node import load
from fabricheck.node.fabric import Place, slingshot_address
from fabricheck.tools.nics.reading import SeenNic
from fabricheck.tools.topology.simulated import ask_simulated

#: What a simulated NIC does not have.
_NOT_SIMULATED = ("mtu", "firmware", "driver", "pci_address", "pcie_gt_per_s", "pcie_width")


def simulated_nics(path: Path) -> tuple[tuple[SeenNic, ...], dict[str, Any]]:
    """Return the NICs of a simulated node, and the fields of a document that it fills.

    :param path: a platform, as ``fabricheck topology export`` writes it.
    :raises NotFoundError: when there is no such file, or no such node model.
    :raises InvalidInputError: when it is not a platform, or not that of the model it names.
    """
    _, fields = ask_simulated(path)
    model = load(str(fields["node"]["name"]))
    seen = tuple(
        SeenNic(
            name=nic.name,
            kind="cxi",
            # Each NIC of the one node is at a switch of its own, as on LUMI.
            address=slingshot_address(Place("0", str(nic.index), "0")),
            numa_domain=nic.domain,
            state="up",
            gbit_per_s=8 * nic.peak_gbs,
            absent=dict.fromkeys(_NOT_SIMULATED, "it is not simulated"),
        )
        for nic in model.nics
    )
    return seen, fields
