"""What a check asks another tool for: the launches of one node, as a file beside the result.

The launcher is part of each command line, so the file says all that ran, and can be run by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fabricheck.core.errors import UsageError
from fabricheck.core.text import read_text
from fabricheck.core.vocabulary import NCCL_COLLECTIVES, OSU_COLLECTIVES, OSU_PAIRS, DeviceRuntime
from fabricheck.tools.outputs import nccl_rows, osu

Count = Annotated[int, Field(gt=0)]
Index = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
Command = Annotated[str, Field(min_length=1)]

#: The file in the folder of the launches that tells what the node is: a document of a program.
FACTS = "facts.json"

#: Of OSU's programs the operation of their series; those of two ranks are of E9, others of E10.
OSU_OPERATIONS = {program: name for name, program in (*OSU_PAIRS.items(), *OSU_COLLECTIVES.items())}
PAIRS = tuple(OSU_PAIRS.values())

#: The same of the programs of nccl-tests and rccl-tests (E11), without ``_perf``.
NCCL_OPERATIONS = {
    program.removesuffix("_perf"): name for name, program in NCCL_COLLECTIVES.items()
}
assert OSU_OPERATIONS.keys() <= osu.PROGRAMS.keys()
assert NCCL_OPERATIONS.keys() == nccl_rows.COLLECTIVES.keys()


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Launch(_Part):
    """One start of a program of the tool.

    name: of its output files, ``NAME.out`` and ``NAME.err``.
    command: the line for a shell, launcher and environment included.
    devices: those of the ranks, in the order of ranks; empty where buffers are of no device.
    sizes: of messages, in bytes and in order.
    batch: operations that the tool takes the mean of.
    verifies: whether it only compares data (OSU's -c, which changes the times).
    limit_s: its time limit in s.
    """

    name: Name
    program: Name
    command: Command
    ranks: Count
    devices: list[Index]
    sizes: Annotated[list[Count], Field(min_length=1)]
    batch: Count
    verifies: bool = False
    limit_s: Annotated[float, Field(gt=0)] = 60.0

    @property
    def what(self) -> str:
        """Name it in a sentence, with the devices or the number of ranks."""
        if not self.devices:
            return f"{self.program} of {self.ranks} ranks"
        *others, last = map(str, self.devices)
        named = f"devices {', '.join(others)} and {last}" if others else f"device {last}"
        return f"{self.program} on {named}"

    @property
    def origin(self) -> str:
        """Name the file of its output in a sentence."""
        return f"{self.name}.out ({self.what})"

    @property
    def measured(self) -> tuple[object, ...]:
        """What it measures, or compares."""
        return (self.program, self.ranks, *self.devices, "sizes", *self.sizes)


class Plan(_Part):
    """All launches of one result document.

    buffers: where the messages lie.
    accelerator: what OSU's banner must name; ``None`` where the buffers are not OSU's to choose: in
        host memory, and on a simulated node, where the host of a rank says whose memory it is.
    facts: the command that writes :data:`FACTS`: a program of ours, on the node that is measured.
    mpi_program: a program that is linked with the MPI whose version is told.
    library: the version that NCCL or RCCL must tell, or its beginning; ``None`` takes any.
    network: what it must say that it uses between nodes.
    """

    tool: Literal["osu", "rccl-tests", "nccl-tests"]
    buffers: Literal["device", "host"]
    accelerator: DeviceRuntime | None = None
    facts: Command
    mpi_program: str | None = None
    library: str | None = None
    network: str | None = None
    launches: Annotated[list[Launch], Field(min_length=1)]

    @model_validator(mode="after")
    def _holds_together(self) -> Plan:
        known = OSU_OPERATIONS if self.tool == "osu" else NCCL_OPERATIONS
        verified = {one.measured for one in self.launches if one.verifies}
        if len({one.name for one in self.launches}) != len(self.launches):
            raise ValueError("two launches have the same name")
        for one in self.launches:
            if one.program not in known:
                raise ValueError(f"{one.program} is no program of {self.tool} that is read here")
            if one.devices and (self.buffers == "host" or len(one.devices) != one.ranks):
                raise ValueError(f"the devices of {one.name} are not those of its ranks")
            if not one.devices and self.buffers == "device":
                raise ValueError(f"{one.name} names no devices")
            if one.program in PAIRS and one.ranks != 2:
                raise ValueError(f"{one.name} has {one.ranks} ranks, and {one.program} is of two")
            if self.tool == "osu" and not one.verifies and one.measured not in verified:
                raise ValueError(f"no launch verifies what {one.name} measures")
        return self


def read(path: Path) -> Plan:
    """Read the file of a plan.

    :raises NotFoundError: when there is no such file.
    :raises UsageError: when it is no plan, with the place of the first fault.
    """
    text = read_text(path)
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}: {place or 'the plan'}: {reason}.") from None
