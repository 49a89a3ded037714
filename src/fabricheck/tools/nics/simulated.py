"""The NICs of a simulated node: those of its platform, or of its node model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fabricheck.core import strict_json
from fabricheck.core.text import read_text
from fabricheck.core.yaml_files import validated
from fabricheck.node import load
from fabricheck.tools.nics.reading import SeenNic
from fabricheck.tools.topology.simulated import ask_simulated

#: What a simulated NIC does not have.
_NOT_SIMULATED = ("mtu", "firmware", "driver", "pci_address", "pcie_gt_per_s", "pcie_width")


class _Listed(BaseModel):
    """A NIC in a platform."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    address: str | None = None
    gbit_per_s: Annotated[float, Field(gt=0)]
    state: Literal["up", "down"] = "up"


def simulated_nics(path: Path) -> tuple[tuple[SeenNic, ...], dict[str, Any]]:
    """Return the NICs of a simulated node, and the fields of a document that it fills.

    :param path: a platform, as ``fabricheck topology export`` writes it.
    :raises NotFoundError: when there is no such file, or no such node model.
    :raises InvalidInputError: when it is not a platform, or not that of the model it names.
    """
    _, fields = ask_simulated(path)
    content = strict_json.parse(read_text(path), path)
    model = load(str(fields["node"]["name"]))
    domains = {nic.name: nic.domain for nic in model.nics}
    listed = content.get("nics")
    if listed is None:
        # Each NIC of the one node is at a switch of its own, as on LUMI.
        listed = [
            {
                "name": nic.name,
                "address": f"02:00:00:00:{nic.index << 6 >> 8:02x}:{nic.index << 6 & 255:02x}",
                "gbit_per_s": 8 * nic.peak_gbs,
            }
            for nic in model.nics
        ]
    nics = validated(list[_Listed], listed, path)
    seen = tuple(
        SeenNic(
            name=nic.name,
            kind="cxi",
            address=nic.address,
            numa_domain=domains.get(nic.name),
            state=nic.state,
            gbit_per_s=nic.gbit_per_s,
            absent=dict.fromkeys(_NOT_SIMULATED, "it is not simulated"),
        )
        for nic in nics
    )
    return seen, fields
