"""Other devices than a partition states: what explains them, from a document alone.

A mode divides devices, a variable or a control group hides them, or the machine has devices of
another kind: none of these is a fault. A device that PCI shows and the driver lacks is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fabricheck.core.amounts import about
from fabricheck.core.text import count, first_names
from fabricheck.core.vocabulary import OF_DEVICES, UNKNOWN
from fabricheck.node import NodeModel
from fabricheck.results import settings, state
from fabricheck.results.model import ResultDocument

#: The modes of a device that is whole (AMD, NVIDIA).
_WHOLE = frozenset({"SPX", "none", "UNKNOWN", "Not supported"})

#: Two sizes of memory that differ by more are of different devices: drivers keep some of it.
_MEMORY_DIFFERS = 0.1

#: A product in a driver's name of a device: MI250X, H100, A100, GH200; not HBM3 or 80GB.
_PRODUCT = re.compile(r"[A-Z]{1,3}\d{2,4}[A-Z]?")


@dataclass(frozen=True)
class OtherDevices:
    """Why a node shows other devices than its partition states.

    kind: `setting` (a mode, a variable, a control group, or another machine than stated), `lost`
    (gone though PCI shows it, or gone from PCI too), or `unexplained`.
    """

    kind: Literal["setting", "lost", "unexplained"]
    sentence: str


def explained(
    document: ResultDocument, stated: int | None, node: NodeModel | None
) -> OtherDevices | None:
    """Return why the devices of a document are not those that are stated; None if they are.

    :param stated: the number of devices; None where a document need not have all of them.
    :param node: the node model of the partition; None if it has none.
    """
    on_gpu = document["program"]["runtime"] in OF_DEVICES
    return (
        (_divided(document, stated) if on_gpu else None)
        or (None if stated is None else _fewer(document, stated, node))
        or (_of_another_kind(document, node) if on_gpu and node is not None else None)
    )


def divides(mode: str | None) -> bool:
    """Whether a mode of the driver divides a device into several."""
    return bool(mode) and mode not in _WHOLE


def divided_sentence(node: str, mode: str, shown: int) -> str:
    """Say that a mode divides the devices of a node, and how to leave it."""
    leave = (
        "turn MIG off (nvidia-smi -mig 0)"
        if mode == "MIG"
        else "set SPX (amd-smi set --gpu all --compute-partition SPX)"
    )
    return f"Node {node} has its GPUs in mode {mode}, as {count(shown, 'device')}: {leave}."


def _divided(document: ResultDocument, stated: int | None) -> OtherDevices | None:
    """Explain the devices by a mode that divides them; MIG also where their number is right."""
    shown = len(document["devices"])
    modes = (one["compute_partition"] for one in state.device_states(document))
    mode = next(filter(divides, modes), None)
    if mode is None or (stated in (None, shown) and mode != "MIG"):
        return None
    return OtherDevices("setting", divided_sentence(_node(document), mode, shown))


def _fewer(document: ResultDocument, stated: int, node: NodeModel | None) -> OtherDevices | None:
    """Explain fewer devices than stated."""
    shown = len(document["devices"])
    # A simulated node without devices is a file that could not be read.
    if shown >= stated or (document["clock"] == "simulated" and not shown):
        return None
    short = f"Node {_node(document)} shows {count(shown, 'device')}; the partition states {stated}"
    hidden = settings.hiding_devices(document)
    if hidden is not None:
        return OtherDevices("setting", f"{short}. {hidden}")
    granted = document["environment"].get("SLURM_GPUS_ON_NODE", "")
    if granted == str(shown):
        return OtherDevices(
            "setting", f"{short}, but the job was granted {granted} (SLURM_GPUS_ON_NODE)."
        )
    missing = [*state.undriven_functions(document), *state.lost_functions(document)]
    closed = [one["address"] for one in missing if one["accessible"] is False]
    if closed:
        return OtherDevices(
            "setting",
            f"{short}: the files of {first_names(closed, 4)} are closed to the program, as by a "
            "control group or a container. Request all devices.",
        )
    if missing:
        gone = first_names([one["address"] for one in missing], 4)
        return OtherDevices("lost", f"{short}. The driver lacks {gone}, which PCI shows or showed.")
    on_bus = state.accelerators(document)
    if node is not None and on_bus is not None and on_bus < stated:
        return OtherDevices(
            "lost",
            f"{short}, as {node.name} has. PCI shows {count(on_bus, 'accelerator')} as well.",
        )
    return OtherDevices("unexplained", f"{short}.")


def _of_another_kind(document: ResultDocument, node: NodeModel) -> OtherDevices | None:
    """Compare devices with the node model's; H100 and H200 differ in name and memory alone."""
    assumed = node.facts["devices.memory_bytes"].kind == "assumed"
    wanted = node.devices[0].memory_bytes
    for device in document["devices"]:
        has = device["memory_bytes"]
        another = (
            not _same_product(node.device_model, device["name"])
            or device["arch"].split(":")[0] not in (node.architecture, UNKNOWN)
            or not (assumed or has is None or abs(has - wanted) <= _MEMORY_DIFFERS * wanted)
        )
        if another:
            memory = "" if has is None else f" with {about(has)}"
            return OtherDevices(
                "setting",
                f"Device {device['index']} of node {_node(document)} is {device['name']}{memory} "
                f"({device['arch']}); the partition's node model {node.name} states "
                f"{node.device_model} with {about(wanted)} ({node.architecture}): choose the "
                "partition or the node model of these devices.",
            )
    return None


def _same_product(model: str, name: str) -> bool:
    """Whether a driver's name is of a model's product; a name without a product is unknown."""
    products = set(_PRODUCT.findall(model)[:1])
    named = {word for word in re.split(r"[^A-Za-z0-9]+", name) if _PRODUCT.fullmatch(word)}
    return not named or not products or not products.isdisjoint(named)


def _node(document: ResultDocument) -> str:
    return document["host"].get("scheduler_node") or document["host"]["hostname"]
