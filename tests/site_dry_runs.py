"""A dry run of all checks of a site, made once in a run of the tests and read by many of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.references.listing import CheckMetrics
from reframe_suite import Outcome, Suite

#: What a user of a machine with Slurm states; no metric depends on it.
ASKED = {
    "FABRICHECK_ACCOUNT": "project_1",
    "FABRICHECK_RESERVATION": "acceptance",
    "FABRICHECK_QOS": "debug",
    "SLURM_JOB_ID": "",
}

#: The programs and tools of an H200, which a dry run does not start.
H200_TOOLS = {
    "FABRICHECK_CUDA_PROGRAMS": "/programs",
    "FABRICHECK_CUDA_OSU": "/osu",
    "FABRICHECK_NCCL_TESTS": "/nccl",
}


@dataclass(frozen=True)
class DryRun:
    """How a dry run ended, what its checks told of themselves, and the folder of its results."""

    outcome: Outcome
    told: list[CheckMetrics]
    results: Path

    def of(self, partition: str) -> list[CheckMetrics]:
        """Return what the checks of a partition told."""
        return [one for one in self.told if one.partition == partition]

    def stage(self, partition: str, check: str) -> Path:
        """Return the folder of a check, with its job script."""
        system, name = partition.split(":")
        (folder,) = self.results.glob(f"stage/*/{system}/{name}/*/{check}")
        return folder


class DryRuns:
    """Dry runs by system, or partition, and the variables that change its site."""

    def __init__(self, made_once: Callable[[str, Callable[[Path], object]], Path]) -> None:
        self._made_once = made_once
        self._read: dict[str, DryRun] = {}

    def __call__(self, system: str, *options: str, **variables: str) -> DryRun:
        """Return a dry run, which passed.

        :param options: of ReFrame, besides; without one it is of all checks.
        """
        # Variables have paths of the checkout, which are longer than a name of a file may be.
        asked = json.dumps([options, variables], sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()[:12]
        name = f"{system.replace(':', '.')}-{digest}"
        if name not in self._read:
            folder = self._made_once(
                f"dry-run-{name}", lambda folder: _make(folder, system, options, ASKED | variables)
            )
            lines = (folder / "told").read_text().splitlines()
            outcome = Outcome(0, (folder / "said").read_text())
            told = [CheckMetrics(**json.loads(line)) for line in lines]
            self._read[name] = DryRun(outcome, told, folder / "results")
        return self._read[name]


def _make(folder: Path, system: str, options: tuple[str, ...], variables: dict[str, str]) -> None:
    suite = Suite(folder)
    suite.topics = ()
    suite.variables = variables | {ENV_METRICS: str(folder / "told")}
    outcome = suite(f"--system={system}", "--dry-run", *options)
    assert outcome.status == 0 and "(0 failure(s)" in outcome, outcome
    (folder / "said").write_text(outcome.text)
