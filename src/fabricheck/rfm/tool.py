"""The base of checks that run another tool: several launches, and one result document of them.

The launches are a plan (`fabricheck.tools.plan`) in the stage folder. ``fabricheck tools run``
starts them through the launcher of the partition, reads what they print and writes the document, so
that all that holds for this suite's own programs holds for the tools as well.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe.core.backends import getlauncher
from reframe.core.exceptions import PipelineError

from fabricheck.node import NodeModel
from fabricheck.rfm import launchers, predictions
from fabricheck.rfm.base import RESULT, MeasuringCheck
from fabricheck.tools.plan import FACTS, Launch, Plan

#: The plan in the stage folder.
PLAN = "plan.json"

#: What tells the node: a launch that takes no time of the program that every environment has.
FACTS_PROGRAM = "stream"
FACTS_ARGUMENTS = ("--devices", "0", "--kernels", "copy", "--sizes", "64KiB", "--time-limit", "50")

#: The variable that shows a process some devices only, and so numbers them by the order of ranks.
VISIBLE = {"rocm": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}


class ToolCheck(MeasuringCheck, special=True):  # type: ignore[call-arg]
    """Runs another tool; `program` is its name in the document.

    launch_seconds: the time limit of one launch in s.
    """

    launch_seconds = 120
    seconds = 1800
    keep_files = [RESULT, PLAN, FACTS, "*.out"]

    def launches(self) -> Sequence[Launch]:
        """Return what is to be started; each check has its own."""
        raise NotImplementedError

    def plan(self) -> Plan:
        """Return the launches, and what must hold of all of them; each tool has its own."""
        raise NotImplementedError

    def tool_path(self, program: str) -> Path:
        """Return the file of one of the tool's programs."""
        raise NotImplementedError

    def program_path(self) -> Path:
        """Return ``fabricheck`` itself, beside the Python that runs ReFrame."""
        return Path(sys.executable).with_name("fabricheck")

    def program_arguments(self) -> Sequence[str]:
        """Return the arguments of ``fabricheck``."""
        return ("tools", "run", PLAN)

    def predicted_s(self) -> float:
        """Return how many seconds all launches will take.

        :raises Unpredicted: as the base does.
        """
        return predictions.of_launches(self.launches(), self._timed_node())

    @property
    def runtime(self) -> str:
        """The runtime of the environment."""
        return str(self.current_environ.extras["runtime"])

    def stated(self, tool: str) -> Mapping[str, Any]:
        """Return what the partition states of a tool in its extras; nothing is needed."""
        return dict(self.current_partition.extras.get(tool, {}))

    def folder(self, extra: str, what: str) -> Path:
        """Return the folder of a tool's programs.

        :raises PipelineError: when the environment does not state it.
        """
        try:
            return Path(self.current_environ.extras[extra])
        except KeyError:
            raise PipelineError(
                f"Environment {self.current_environ.name} states no {extra} in its extras: {what}."
            ) from None

    def processes(self, plan: Plan) -> int:
        """Return how many processes the largest launch has."""
        return max(launch.ranks for launch in plan.launches)

    def _keep_to_one_node(self) -> None:
        # Launchers are part of the plan; what ReFrame starts is the one process that follows it.
        plan = self.plan()
        self.num_tasks = self.processes(plan)
        self.num_tasks_per_node = self.num_tasks
        (Path(self.stagedir) / PLAN).write_text(plan.model_dump_json(indent=1) + "\n")
        self._require_programs(plan)
        self.job.launcher = getlauncher("local")()

    def _require_programs(self, plan: Plan) -> None:
        if self.is_dry_run():
            return
        for name in dict.fromkeys(launch.program for launch in plan.launches):
            path = self.tool_path(name)
            if not path.is_file():
                raise PipelineError(
                    f"There is no program {path} for the environment {self.current_environ.name}, "
                    f"which has the feature of {self.program}."
                )

    def facts_command(self) -> str:
        """Return the command that lets a program of this suite tell what the node is."""
        program = Path(self.current_environ.extras["programs"]) / FACTS_PROGRAM
        command = shlex.join([str(program), *FACTS_ARGUMENTS, "--output", FACTS])
        return " ".join(filter(None, [launchers.line(self.job, self.job.launcher, 1), command]))

    def environment(self, devices: Sequence[int], *settings: str) -> str:
        """Return what precedes a program so that it sees some devices only, in this order.

        :param settings: what ``env`` is to do beside it.
        """
        variable = VISIBLE.get(self.runtime)
        if variable is None or not devices:
            return ""
        # By PCI address, as the node model and the other programs number them.
        order = ["CUDA_DEVICE_ORDER=PCI_BUS_ID"] if self.runtime == "cuda" else []
        return " ".join(["env", *settings, f"{variable}={','.join(map(str, devices))}", *order])


def sets_of(node: NodeModel | None, devices: int) -> Sequence[tuple[int, ...]]:
    """Return sets of 2, 3 ... devices: the best of a node, else the first ones."""
    if node is not None:
        return node.growing_subsets
    return [tuple(range(count)) for count in range(2, devices + 1)]


def short(size: int) -> str:
    """Return a size for the name of a metric: 16MiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"
