"""What a node is: its GPUs with their addresses and ids, and the software that drives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fabricheck.core.nodelists import titled
from fabricheck.core.show import listed
from fabricheck.judge.verdict.model import Device, NodeVerdict, Versions
from fabricheck.node import NodeModel
from fabricheck.report.environment import Fact

#: How the architectures of GPUs begin, by the runtime whose version is known with them.
_RUNTIMES = {"gfx": "HIP", "sm_": "CUDA"}


def identity(verdict: NodeVerdict, model: NodeModel | None) -> list[Fact]:
    """Return what a node is, the node first; what is unknown is left out.

    :param model: the node model: a simulation of several nodes has the devices of all.
    """
    gpus = [device for device in verdict.devices if _runtime(device)]
    if verdict.simulated is not None and model is not None:
        gpus = [device for device in gpus if device.index < len(model.devices)]
    names = Counter(f"{device.name} ({device.arch.split(':')[0]})" for device in gpus)
    facts = [Fact("node", titled(verdict.node))]
    facts.append(Fact("GPUs", listed(f"{number} {name}" for name, number in names.items())))
    if verdict.simulated is None:
        facts += _software(verdict.versions, {_runtime(device) for device in gpus})
    facts += [Fact(f"device {device.index}", _address(device)) for device in gpus]
    return [fact for fact in facts if fact.value]


def _runtime(device: Device) -> str:
    """Return the runtime of a GPU; empty for the memory of a host."""
    for start, runtime in _RUNTIMES.items():
        if device.arch.startswith(start):
            return runtime
    return ""


def _software(versions: Versions, runtimes: set[str]) -> Iterator[Fact]:
    if runtimes:
        yield Fact("driver", listed(versions.driver))
        yield Fact("VBIOS", listed(versions.vbios))
        yield Fact(listed(sorted(runtimes)), listed(versions.runtime))
    yield Fact("ROCm", listed(versions.rocm))
    yield Fact("kernel", listed(versions.kernel))


def _address(device: Device) -> str:
    """Return where a device is, and its own id; empty where nothing tells it."""
    address = f"PCI {device.pci_address}" if device.pci_address else ""
    return listed(filter(None, (address, device.unique_id)))
