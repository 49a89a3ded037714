"""The ten commands of the first hour; docs/any-node.md describes good and bad results."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import UsageError
from fabricheck.site.partitions import Target, choose

#: The runtime of a partition without its own GPUs.
NO_DEVICES = ("host", "sim")


@dataclass(frozen=True)
class Step:
    """One of the ten steps.

    name: of its folder in the archive. asks: the question that it answers. lines: its commands, one
    or two that differ in a variable; `Place.fill` fills in ``{...}``. limit_s: for each line, in s.
    needs: the required program; ``model`` requires a node model and devices.
    """

    name: str
    asks: str
    lines: tuple[str, ...]
    limit_s: float
    needs: str | None = None


_SMALL = "{programs}/p2p --pairs 0-1 --operations engine,latency --sizes 256KiB:4MiB --output {out}"
_LARGE = "{programs}/p2p --pairs 0-1 --operations engine --sizes 1GiB --output {out}"
_MEMCPY = "{programs}/memcpy --memory pinned --operations h2d"

STEPS: Sequence[Step] = (
    Step("site-check", "Is everything there?", ("fabricheck site check {system}",), 120),
    Step(
        "topology",
        "Are the links and NUMA domains those of the node model?",
        ("fabricheck node compare {model} --devices {devices} --programs {programs}",),
        120,
        "model",
    ),
    Step(
        "host-memory",
        "Does the runtime put pinned memory where it is asked to?",
        (f"env AMD_LOG_LEVEL=3 {_MEMCPY} --devices {{far}} --sizes 1MiB --output {{out}}",),
        120,
        "memcpy",
    ),
    Step(
        "ranks",
        "Are ranks where they should be, and do MPI and RCCL take buffers of devices?",
        ("reframe --system={system} -r -n '^(affinity|mpi_pairs|rccl_collectives)$'",),
        600,
        "affinity",
    ),
    Step(
        "smoke",
        "Is the node healthy?",
        ("reframe --system={system} --mode=smoke -r",),
        600,
    ),
    Step(
        "gang",
        "How many engines does a copy between two devices use?",
        (f"env -u HSA_ENABLE_SDMA_GANG {_LARGE}", f"env HSA_ENABLE_SDMA_GANG=0 {_LARGE}"),
        120,
        "p2p",
    ),
    Step(
        "small-copies",
        "Do kernels make small copies between two devices?",
        (f"env -u ROC_P2P_SDMA_SIZE {_SMALL}", f"env ROC_P2P_SDMA_SIZE=0 {_SMALL}"),
        120,
        "p2p",
    ),
    Step(
        "managed",
        "Do pages move when the host or a device touches them, and how fast?",
        ("env HSA_XNACK=1 {programs}/managed --devices 0 --sizes {array} --output {out}",),
        300,
        "managed",
    ),
    Step(
        "large-copy",
        "How long does the largest copy take, with all that is around it?",
        (f"{_MEMCPY} --devices 0 --sizes {{largest}} --output {{out}}",),
        300,
        "memcpy",
    ),
    Step("verdict", "What does fabricheck say of the node?", ("fabricheck verdict",), 120),
)


@dataclass(frozen=True)
class Place:
    """The partition of the node, and the folder of its programs."""

    target: Target
    runtime: str
    programs: Path
    features: frozenset[str]

    @property
    def has_devices(self) -> bool:
        """Whether the devices are real."""
        return self.runtime not in NO_DEVICES

    @property
    def model(self) -> str | None:
        """The name of the node model."""
        found: str | None = self.target.partition["extras"].get("node")
        return found

    def lacks(self, step: Step) -> str | None:
        """Return why a step is not possible here, None if it is."""
        if step.needs == "model":
            if not self.has_devices or self.model is None:
                return f"{self.target.name} has no devices of its own, or no node model"
        elif step.needs is not None and step.needs not in self.features:
            return f"{self.target.name} has no program {step.needs}"
        return None

    def words(self) -> Mapping[str, str]:
        """Return the value of each ``{...}`` of a line, except ``{out}``."""
        extras = self.target.partition["extras"]
        return {
            "system": self.target.name,
            "programs": shlex.quote(str(self.programs)),
            "model": str(self.model),
            "devices": str(self.target.devices),
            # Its NUMA domain differs from that of the device that is current at first.
            "far": str(min(2, self.target.devices - 1)),
            # A site states both, unless it has none of the checks that use them.
            "array": str(extras.get("array_bytes", "1GiB")),
            "largest": str(extras.get("copy_sizes", "8GiB")).split(":")[-1],
        }

    def fill(self, line: str, out: str) -> str:
        """Return a line of a step with its placeholders filled in.

        :param out: the file of its result document.
        """
        return line.format(out=shlex.quote(out), **self.words())


def place(name: str) -> Place:
    """Return a partition of the site files, with its only environment.

    :param name: ``system:partition``, or a system with one partition.
    :raises FabricheckError: as `fabricheck.site.partitions.choose`, and where several are named.
    """
    found = choose(name)
    if len(found) != 1 or len(found[0].environments) != 1:
        several = ", ".join(one.name for one in found)
        raise UsageError(f"{name} is several partitions or environments: name one of {several}.")
    target = found[0]
    (environment,) = target.environments
    extras = environment["extras"]
    return Place(
        target,
        extras["runtime"],
        Path(extras["programs"]),
        frozenset(environment.get("features", [])),
    )
