"""The command line of a run of a plan, of one process or of ranks on the simulated node."""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.judge.fidelity.planfile import ProgramRun
from fabricheck.node import NodeModel

#: The platform of simulated ranks, in the folder of the programs.
PLATFORM = "libfabricheck_node.so"


def command(run: ProgramRun, node: NodeModel, folder: Path, temporary: Path) -> list[str]:
    """Return the command of a run, without its output; ranks' hosts are written to a file.

    Every rank is put on the host of its device. With a placement it is bound to a core, whose NUMA
    domain has its memory.

    :param folder: of the programs, built for the sim runtime.
    :param temporary: a folder for the file of hosts.
    :raises InvalidInputError: for a placement that the node has not.
    """
    program = [str(folder / run.program), *run.arguments.split()]
    if run.placement is not None:
        placement = node.placements().get(run.placement)
        if placement is None:
            raise InvalidInputError(f"{node.name} has no placement '{run.placement}'.")
        devices = placement.devices
        program += ["--placement", placement.name]
        program += ["--map", ",".join(map(str, devices)), "--bind", placement.map_cpu]
    elif run.ranks is not None:
        devices = tuple(range(run.ranks))
    else:
        return program
    hosts = temporary / "hosts"
    hosts.write_text("".join(f"device{device}\n" for device in devices), encoding="utf-8")
    launcher = ["smpirun", "-np", str(len(devices)), "-platform", str(folder / PLATFORM)]
    return [*launcher, "-hostfile", str(hosts), "--log=root.thresh:error", *program]
