"""The base of the check that builds the programs: it passes only with their measurements.

``spack-env/install`` builds Spack's environments from the committed lock, with our package from the
checkout. ReFrame's own Spack build system is not used, because it would concretize again and ignore
the lock. Without Spack the build uses CMake, in the stage folder.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import BuildError, PipelineError

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import enumerated, first_of
from fabricheck.core.vocabulary import EXIT_CODE, OF_DEVICES
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.rfm import acceptance, launchers
from fabricheck.rfm.findings import misplaced
from fabricheck.rfm.on_partition import OnPartition, failed
from fabricheck.site import clusters, software
from fabricheck.site.clusters import PROGRAMS, RANK_PROGRAMS

#: Settings that hide all devices, so that build hosts with and without devices behave alike.
NO_DEVICES = {"HIP_VISIBLE_DEVICES": "-1", "CUDA_VISIBLE_DEVICES": ""}

#: Parallel jobs of a compilation, because a build host is shared.
JOBS = 8

#: A small copy, whose data must be right; its speed is not judged.
STREAM = ("--devices", "all", "--kernels", "copy", "--sizes", "1MiB", "--noise-limit", "10")

#: Exit code of a program from which a variable hides every device.
NO_DEVICE = EXIT_CODE["setting"]

_ERROR = re.compile(r"\berror\b|command not found|No such file", re.IGNORECASE)


#: The prefix of ReFrame's own script lines, which repeat the command.
_FROM_REFRAME = "-reframe:"


class BuildCheck(OnPartition, rfm.RegressionTest, special=True):  # type: ignore[misc, call-arg]
    """Builds the programs of an environment and runs a short measurement with each.

    The documents are named by program and do not count as results, because they are no
    measurements.

    without_devices: ``-S build.without_devices=yes`` for a host without devices. The programs must
    then exit with code 8 and its message, and no job is needed.
    """

    without_devices = variable(bool, value=False)

    only_if_requested = True
    build_system: Any = "CustomBuild"
    build_time_limit = "4h"
    time_limit = "5m"
    sourcesdir = None
    valid_systems = ["+devices"]
    valid_prog_environs = ["+stream"]
    exclusive_access = True

    @property
    def by_spack(self) -> bool:
        """Whether Spack builds the programs; otherwise CMake does."""
        return "spack" in self.current_environ.features

    @property
    def programs_folder(self) -> Path:
        """The folder of the programs after the build."""
        if self.by_spack:
            return super().programs_folder
        return Path(self.stagedir) / "build" / "bin"

    @property
    def ranks(self) -> int:
        """The number of ranks of ``affinity``; 0 without it."""
        has = "affinity" in self.current_environ.features
        if self.without_devices or not has or "ranks" not in self.current_partition.features:
            return 0
        return self.device_count

    @run_after("init")  # type: ignore[untyped-decorator]
    def _stay_here_without_devices(self) -> None:
        self.local = self.without_devices

    @run_before("compile")  # type: ignore[untyped-decorator]
    def _set_build(self) -> None:
        commands = self._spack() if self.by_spack else self._cmake()
        self.build_system.commands = [shlex.join(command) for command in commands]

    def _spack(self) -> list[list[str]]:
        name = self.current_environ.extras.get("spack_environment")
        if not name:
            raise PipelineError(
                f"Environment {self.current_environ.name} has the feature spack, but no "
                "spack_environment in its extras."
            )
        if not software.is_inside(self.programs_folder, software.home(name)):
            raise PipelineError(
                f"The programs of environment {self.current_environ.name} are those of "
                f"{self.programs_folder}, which Spack environment {name} does not build."
            )
        # The modules of the jobs, which ReFrame has loaded, would disturb the installer.
        unload = [["module", "--force", "purge"]] if self.current_environ.modules else []
        return [*unload, [str(checkout.ORIGIN / "spack-env" / "install"), name]]

    def _cmake(self) -> list[list[str]]:
        ranks = not set(RANK_PROGRAMS).isdisjoint(self.current_environ.features)
        options = [
            f"-DFABRICHECK_RUNTIME={self.runtime}",
            f"-DFABRICHECK_MPI={'ON' if ranks else 'OFF'}",
        ]
        if self.runtime in OF_DEVICES:
            architectures = {device.arch for device in self.current_partition.devices}
            options.append(clusters.architectures_option(self.runtime, architectures))
        return [
            ["cmake", "-S", str(checkout.ORIGIN), "-B", "build", *options],
            ["cmake", "--build", "build", "--parallel", str(JOBS)],
        ]

    def compile_wait(self) -> None:
        """Wait for the build, and report the first error if it failed.

        :raises BuildError: with that error.
        """
        try:
            super().compile_wait()
        except BuildError:
            raise BuildError(self._why_not_built()) from None

    def _why_not_built(self) -> str:
        job = self.build_job
        texts = [
            (Path(self.stagedir) / name).read_text(errors="replace")
            for name in (job.stderr, job.stdout)
        ]
        printed = [line for text in texts for line in text.splitlines()]
        lines = [
            line.strip() for line in printed if line.strip() and not line.startswith(_FROM_REFRAME)
        ]
        errors = [number for number, line in enumerate(lines) if _ERROR.search(line)]
        reason = "it printed nothing"
        if lines:
            number = errors[0] if errors else -1
            # CMake reports the file in one line and the error in the next.
            more = lines[number + 1 : number + 2] if lines[number].endswith(":") and errors else []
            reason = " ".join([lines[number], *more])
        return (
            f"The build of the runtime {self.runtime} by {'Spack' if self.by_spack else 'CMake'} "
            f"ended with exit code {job.exitcode}: {reason.rstrip('.')}. The whole output is in "
            f"{self.stagedir}, {job.stderr} and {job.stdout}."
        )

    @run_before("run")  # type: ignore[untyped-decorator]
    def _set_run(self) -> None:
        if self.without_devices and self.runtime not in OF_DEVICES:
            raise PipelineError(
                f"The runtime {self.runtime} has devices on every machine: without_devices "
                f"applies to {enumerated(OF_DEVICES)}."
            )
        self._require_programs()
        if self.simulated:
            self._write_platform()
        self._keep_lock()
        self.submit_once()
        launch = launchers.line(self.job, self.job.launcher, 1)
        several = self.rank_launcher(range(self.ranks))
        self.num_tasks = self.num_tasks_per_node = max(self.ranks, 1)
        self.job.num_tasks = self.num_tasks
        self.job.launcher = getlauncher("local")()
        documents = [f"{program}.json" for program, _ in self._started()]
        self.keep_files = [*documents, *([software.FOLDER] if self.by_spack else [])]
        if self.without_devices:
            self.env_vars.update(NO_DEVICES)
            self.executable = self._command("", *self._started()[0])
            # A program that finds a device exits with 0, and its document names the device.
            self.executable_opts = ["||", "test", "$?", "-eq", str(NO_DEVICE)]
            return
        first, *others = self._started()
        self.executable = self._command(launch, *first)
        self.postrun_cmds = [
            self._command(launchers.line(self.job, several, self.ranks), program, arguments)
            for program, arguments in others
        ]

    def _started(self) -> list[tuple[str, Sequence[str]]]:
        """Return the programs to start, with their arguments."""
        started: list[tuple[str, Sequence[str]]] = [("stream", STREAM)]
        if self.ranks:
            started.append(("affinity", ()))
        return [
            (name, (*arguments, "--time-limit", "60", "--output", f"{name}.json"))
            for name, arguments in started
        ]

    def _command(self, launch: str, program: str, arguments: Sequence[str]) -> str:
        command = shlex.join([str(self.programs_folder / program), *arguments])
        return f"{launch} {command}".strip()

    def _require_programs(self) -> None:
        if self.is_dry_run():
            return
        wanted = [name for name in PROGRAMS if name in self.current_environ.features]
        lacks = [
            name for name in wanted if not os.access(self.programs_folder / name, os.F_OK | os.X_OK)
        ]
        if lacks:
            raise PipelineError(
                f"The build of the runtime {self.runtime} succeeded, but there is no "
                f"{' and no '.join(lacks)} in {self.programs_folder}, although environment "
                f"{self.current_environ.name} has it as a feature."
            )

    def _keep_lock(self) -> None:
        if not self.by_spack or self.is_dry_run():
            return
        # The session's own record was made before the build.
        system = self.current_system.name
        used = software.Used(system, self.current_environ.name, self.current_environ.extras)
        try:
            sentences = software.write(Path(self.stagedir), [used])
        except FabricheckError as error:
            raise PipelineError(str(error)) from None
        for sentence in sentences:
            self.logger.info(f"{self.name}: {sentence}")

    def last_to_end(self) -> tuple[str, ResultDocument | None]:
        """Return the first program that failed, which ends the script."""
        program = ""
        for program, _ in self._started():
            document = self.result_of(f"{program}.json")
            if document is None or document["outcome"]["exit_code"] != 0:
                return program, document
        return program, None

    @sanity_function  # type: ignore[untyped-decorator]
    def _judge(self) -> bool:
        faults: list[str] = []
        for program, arguments in self._started():
            try:
                document = load(Path(self.stagedir) / f"{program}.json")
            except FabricheckError as error:
                faults.append(f"{program} left no usable result: {error}")
                continue
            faults += self._faults(document, program, arguments)
        if faults:
            raise failed(None, "\n".join(first_of(faults)))
        return True

    def _faults(
        self, document: ResultDocument, program: str, arguments: Sequence[str]
    ) -> Iterator[str]:
        recorded = document["program"]
        node = document["host"]["hostname"]
        if recorded["version"] != fabricheck.__version__:
            yield (
                f"{program} on node {node} has version {recorded['version']}, but was built from "
                f"version {fabricheck.__version__}."
            )
        if not checkout.has_sources_of(recorded["commit"]):
            yield (
                f"{program} on node {node} was built from commit {recorded['commit']}, but the "
                f"checkout is at {checkout.commit()}, so their sources may differ. Touch "
                "CMakeLists.txt and build again."
            )
        if self.without_devices:
            yield from _device_faults(document, program, self.runtime)
            return
        yield from acceptance.faults(document, self.request_of(program, arguments))
        if program == "affinity":
            yield from misplaced(document, self.ranks)


def _device_faults(document: ResultDocument, program: str, runtime: str) -> Iterator[str]:
    """Yield a sentence unless the program found no device and has the right runtime."""
    recorded = document["program"]
    node = document["host"]["hostname"]
    if recorded["name"] != program or recorded["runtime"] != runtime:
        yield (
            f"The result on node {node} is from {recorded['name']} with runtime "
            f"{recorded['runtime']}, but the check started {program} of runtime {runtime}."
        )
    outcome = document["outcome"]
    if outcome["exit_code"] != NO_DEVICE or not outcome["message"]:
        yield (
            f"{program} on node {node} ended with {outcome['exit_code']} ({outcome['status']}); "
            f"without devices it must end with {NO_DEVICE} and state why."
        )
