"""Other devices than a partition states: what explains them, from a document alone.

A mode divides devices, a variable or a control group hides them, or the machine has devices of
another kind: none of these is a fault. A device that PCI shows and its driver lacks is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fabricheck.core.amounts import about
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import OF_DEVICES, UNKNOWN
from fabricheck.node import NodeModel, products
from fabricheck.results import settings, state
from fabricheck.results.model import Device, PciFunction, ResultDocument, node_name
from fabricheck.site import this_machine

#: Modes of a device that is whole (AMD, NVIDIA), or of which nothing is known.
_WHOLE = frozenset({"", "SPX", "none", "UNKNOWN", "Not supported"})

#: AMD's modes by the number of devices that each makes of one.
_MODE_OF_PARTS = {2: "DPX", 4: "QPX", 8: "CPX"}

#: The drivers of devices that a runtime uses; others, such as vfio-pci, keep a device from it.
_DRIVERS = frozenset({"amdgpu", "nvidia"})

#: Variables that choose among devices.
_VISIBLE = (
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
)  # fmt: skip

#: Variables by which a scheduler or a container grants devices: their numbers, or how many.
GRANTING = (
    "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
    "NVIDIA_VISIBLE_DEVICES", *_VISIBLE,
)  # fmt: skip

#: Two sizes of memory that differ by more are of different devices: drivers keep some of it.
_MEMORY_DIFFERS = 0.1

#: A product in a driver's name of a device: MI250X, H100, A100, GH200; not HBM3 or 80GB.
_PRODUCT = re.compile(r"[A-Z]{1,3}\d{2,4}[A-Z]?")


@dataclass(frozen=True)
class OtherDevices:
    """Why a node shows other devices than its partition states.

    kind: `setting` (a mode, a variable, a control group, or another machine than stated), `refused`
    (the runtime lists no device at all), `lost` (gone from the driver, or from PCI too), or
    `unexplained`.
    """

    kind: Literal["setting", "refused", "lost", "unexplained"]
    sentence: str


def explained(
    document: ResultDocument, stated: int | None, node: NodeModel | None
) -> OtherDevices | None:
    """Return why the devices of a document are not those that are stated; None if they are.

    :param stated: the number of devices; None where a document need not have all of them.
    :param node: the node model of the partition; None if it has none.
    """
    shown = len(document["devices"])
    on_gpu = document["program"]["runtime"] in OF_DEVICES
    modes = (
        [device_state["compute_partition"] for device_state in state.device_states(document)]
        if on_gpu
        else []
    )
    mode = next(filter(divides, modes), None)
    if mode is not None and (mode == "MIG" or node is not None or stated not in (None, shown)):
        return OtherDevices("setting", divided_sentence(node_name(document["host"]), mode, shown))
    other = _of_another_kind(document, node) if on_gpu and node is not None else None
    # A simulated node without devices is a file that could not be read.
    counts = stated not in (None, shown) and (shown or document["clock"] != "simulated")
    if other is not None or stated is None or not counts:
        return other
    short = f"Node {node_name(document['host'])} shows {count(shown, 'device')}"
    short = f"{short}; the partition states {stated}"
    if shown > stated:
        mode = mode_of_parts(shown, stated) if node is not None and node.vendor == "amd" else None
        if mode is not None:
            sentence = divided_sentence(node_name(document["host"]), mode, shown)
            return OtherDevices("setting", sentence)
        return OtherDevices("setting", f"{short}: choose the partition of these devices.")
    setting = _hiding(document, shown, stated)
    if setting is not None:
        return OtherDevices("setting", f"{short}{setting}")
    return _fewer(document, short, stated, node)


def divided_sentence(node: str, mode: str, shown: int) -> str:
    """Say that a mode divides the devices of a node, and how to leave it."""
    leave = (
        "turn MIG off (nvidia-smi -mig 0)"
        if mode == "MIG"
        else "set SPX (amd-smi set --gpu all --compute-partition SPX)"
    )
    return f"Node {node} has its GPUs in mode {mode}, as {count(shown, 'device')}: {leave}."


def divides(mode: str | None) -> bool:
    """Whether a mode of the driver divides a device into several."""
    return mode is not None and mode not in _WHOLE


def mode_of_parts(shown: int, stated: int) -> str | None:
    """Return the mode of AMD's driver that makes so many devices of those stated; None for none."""
    parts, rest = divmod(shown, stated)
    return None if rest else _MODE_OF_PARTS.get(parts)


def _hiding(document: ResultDocument, shown: int, stated: int) -> str | None:
    """Return what hides devices from the program, as the end of a sentence; None for nothing."""
    hidden = settings.hiding_devices(document)
    if hidden is not None:
        return f". {hidden}"
    environment = document["environment"]
    for name in _VISIBLE:
        chosen = {item for item in environment.get(name, "").split(",") if item.strip()}
        shows_all = chosen == set(map(str, range(stated)))
        # Where more devices are shown than a list names, the runtime does not obey it.
        if chosen and not shows_all and shown <= len(chosen) <= stated:
            value = environment[name]
            return f". {name} is {value}: unset it so that every process sees all devices."
    granted = granting(environment, shown)
    return f", but {granted} is {environment[granted]}: request all devices." if granted else None


def granting(environment: Mapping[str, str], shown: int) -> str | None:
    """Return the variable that grants as many devices as a node shows; None for none."""
    for name in GRANTING:
        value = environment.get(name, "")
        counted = name.startswith("SLURM_GPUS_")
        # A count may follow a type: gpu:h200:4.
        chosen = value.rpartition(":")[2] if counted else str(len({*value.split(",")} - {""}))
        if value and chosen == str(shown):
            return name
    return None


def _fewer(
    document: ResultDocument, short: str, stated: int, node: NodeModel | None
) -> OtherDevices:
    """Explain fewer devices than stated, by what PCI shows."""
    missing = [*state.undriven_functions(document), *state.lost_functions(document)]
    by_setting = _kept_from_the_runtime(missing)
    if by_setting is not None:
        return OtherDevices("setting", f"{short}: {by_setting}")
    if not document["devices"]:
        # A runtime that lists nothing is refused by its driver as a rule, on every node.
        return OtherDevices("refused", f"{short}: {document['outcome']['message'] or 'no reason'}")
    gone = [
        typed_dict["address"]
        for typed_dict in missing
        if typed_dict["accessible"] or typed_dict["driver"] is None
    ]
    gone += [function["address"] for function in state.lost_functions(document)]
    if gone:
        named = listed([*dict.fromkeys(gone)], 4)
        return OtherDevices(
            "lost", f"{short}. The driver lacks {named}, which PCI shows or showed."
        )
    on_bus = state.accelerators(document)
    if node is not None and document["environment"].get(this_machine.NODE) == node.name:
        # The model of another machine was chosen, as far as anything here tells.
        return OtherDevices(
            "setting",
            f"{short}, as {this_machine.NODE}={node.name} has: name a node model with "
            f"{count(len(document['devices']), 'device')}, or find out where the others are.",
        )
    if node is not None and not missing and on_bus is not None and on_bus < stated:
        seen = f"PCI shows {count(on_bus, 'accelerator')} as well"
        return OtherDevices("lost", f"{short}, as {node.name} has. {seen}.")
    return OtherDevices("unexplained", f"{short}.")


def _kept_from_the_runtime(missing: Iterable[PciFunction]) -> str | None:
    """Return what keeps devices that PCI shows from the runtime; None for nothing known."""
    for function in missing:
        address = function["address"]
        if divides(function["mode"]):
            return f"{address} is in mode {function['mode']}, and has no device for the program."
        if function["driver"] is not None and function["driver"] not in _DRIVERS:
            return f"{address} is bound to the driver {function['driver']}."
        if function["accessible"] is False:
            return (
                f"the file of {address} is closed to the program, as by a control group or a "
                "container. Request all devices."
            )
    return None


def _of_another_kind(document: ResultDocument, node: NodeModel) -> OtherDevices | None:
    """Compare devices with the node model's; H100 and H200 differ in name and memory alone.

    One device among others that is unlike the model is no other kind of machine.
    """
    assumed = node.facts["devices.memory_bytes"].kind == "assumed"
    wanted = node.devices[0].memory_bytes

    def another(device: Device) -> bool:
        memory_bytes = device["memory_bytes"]
        if not same_product(node.device_model, products.label(device)):
            return True
        if device["arch"].split(":")[0] not in (node.architecture, UNKNOWN):
            return True
        if assumed or memory_bytes is None:
            return False
        return not abs(memory_bytes - wanted) <= _MEMORY_DIFFERS * wanted

    if not document["devices"] or not all(map(another, document["devices"])):
        return None
    device = document["devices"][0]
    memory_bytes = device["memory_bytes"]
    memory = "" if memory_bytes is None else f" with {about(memory_bytes)}"
    return OtherDevices(
        "setting",
        f"Device {device['index']} of node {node_name(document['host'])} is "
        f"{products.label(device)}"
        f"{memory} ({device['arch']}); the partition's node model {node.name} states "
        f"{node.device_model} with {about(wanted)} ({node.architecture}): choose the "
        "partition or the node model of these devices.",
    )


def same_product(model: str, name: str) -> bool:
    """Whether a device's name is of a model's product; a name without a product can be of any."""
    stated, product = products.by_name(model), products.by_name(name)
    if (
        stated is not None
        and product is not None
        and stated.memory_peak_gbs != product.memory_peak_gbs
    ):
        return False
    words = set(_PRODUCT.findall(model)[:1])
    named = {word for word in re.split(r"[^A-Za-z0-9]+", name) if _PRODUCT.fullmatch(word)}
    return not named or not words or not words.isdisjoint(named)
