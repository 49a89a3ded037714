"""Sessions of the real checks with a fault in them, and what was said of it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reframe
import yaml

from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.results import reading

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = "local:sim-mi250x"
HOST = "local:host"
#: What of the environment would change a session.
_VARIABLES = (
    "RFM_", "FABRICHECK_", "HSA_", "HIP_", "ROCR_", "ROC_", "GPU_", "SLURM", "MPICH_", "UCX_",
)  # fmt: skip


@dataclass(frozen=True)
class Said:
    """What the suite made of a fault.

    status: the verdict's, or that of what looks at several nodes.
    sentences: with the status that each alone would make of the node.
    failed: the checks of the sentences. passed: those that passed. diagnosis: the sentence of the
    diagnosis. diagnosed: of each component of it the names of those that explain as much; none
    where it is unsure. drained: the nodes with a live line for the scheduler.
    """

    status: str
    sentences: Sequence[tuple[str, str]]
    failed: Sequence[str] = ()
    passed: Sequence[str] = ()
    diagnosis: str = ""
    diagnosed: Sequence[Sequence[str]] = ()
    drained: Sequence[str] = ()


@dataclass(frozen=True)
class Site:
    """Where simulated sessions run: the partition as it is, or with the references of a site."""

    references: str | None = None

    def settings(self, folder: Path) -> tuple[Path, str]:
        """Return the folder of the configuration and the name of the partition."""
        if self.references is None:
            return ROOT / "config", SIMULATED
        config = folder / "config"
        shutil.copytree(ROOT / "config", config, ignore=shutil.ignore_patterns("__pycache__"))
        # What the files state under a partition's own name goes before the set that it names.
        named = f"sim-{self.references}"
        for file, old, new in (
            ("local.py", '"name": "sim-mi250x"', f'"name": "{named}"'),
            (
                "local.py",
                '"node": "mi250x",',
                f'"node": "mi250x", "references": "{self.references}",',
            ),
        ):
            path = config / "sites" / file
            text = path.read_text()
            assert text.count(old) == 1, old
            path.write_text(text.replace(old, new))
        return config, f"local:sim-{self.references}"


OWN = Site()


@dataclass(frozen=True)
class Session:
    """A session of the checks that concern a fault, and of some that do not.

    checks: those that concern it; none for those of the set `mode`. others: those that must pass
        all the same.
    overlay: what changes the simulated node, as in a file of `config/nodes/overlays`.
    during: the checks during which it does; all by default.
    wrapped: the text of a shell script in the place of a program or a launcher, where $real is it
        and $tests the folder of the tests.
    variables: of the environment of the session.
    """

    checks: Sequence[str] = ()
    others: Sequence[str] = ()
    overlay: Mapping[str, Any] = field(default_factory=dict)
    wrapped: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    system: str = SIMULATED
    during: Sequence[str] = ()
    mode: str = "node"

    def __str__(self) -> str:
        """Say how the fault is made."""
        parts = [f"overlay `{flow(self.overlay)}`"] if self.overlay else []
        parts += [f"during {', '.join(self.during)}"] if self.during else []
        parts += [f"`{name}` is `{text.strip()}`" for name, text in self.wrapped.items()]
        parts += [f"`{name}={value}`" for name, value in self.variables.items()]
        return "; ".join(parts)

    def __call__(self, folder: Path, site: Site = OWN) -> Said:
        """Run it in a folder and judge the node."""
        self.run(folder, site)
        return judged(folder / "results")

    def run(self, folder: Path, site: Site = OWN) -> str:
        """Run it in a folder; return what ReFrame printed."""
        done = subprocess.run(
            **self.command(folder, site),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        (folder / "printed").write_text(done.stdout)
        return done.stdout

    def command(self, folder: Path, site: Site = OWN) -> dict[str, Any]:
        """Return what starts it: command line, environment, folder."""
        config, system = site.settings(folder)
        chosen = [part for check in (*self.checks, *self.others) for part in ("-n", f"^{check}$")]
        changed = []
        if self.overlay:
            overlay = folder / "overlay.yaml"
            about = {"name": "a fault", "description": "A fault of the catalogue."}
            overlay.write_text(yaml.safe_dump(about | dict(self.overlay)))
            variables = [f"{check}.overlay" for check in self.during] or ["overlay"]
            changed = [part for name in variables for part in ("-S", f"{name}={overlay}")]
        path, programs = self._programs(folder)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
        return {
            "args": [
                str(Path(sys.executable).with_name("reframe")),
                *("--nocolor", "-c", str(ROOT / "reframe_checks")),
                *(f"--system={system if self.system == SIMULATED else self.system}", "-r"),
                *(chosen or [f"--mode={self.mode}"]),
                *changed,
            ],
            "env": {
                **inherited,
                "PATH": f"{path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "RFM_CONFIG_FILES": str(config / "settings.py"),
                "RFM_INSTALL_PREFIX": reframe.INSTALL_PREFIX,
                "RFM_REFERENCE_PREFIX": str(ROOT / "reference_values"),
                "FABRICHECK_RESULTS": str(folder / "results"),
                "FABRICHECK_HOST_PROGRAMS": str(programs),
                "FABRICHECK_HOST_DEVICES": "2",  # each is measured
                "FABRICHECK_SIM_PROGRAMS": str(programs),
                **self.variables,
            },
            "cwd": folder,
        }

    def _programs(self, folder: Path) -> tuple[Path, Path]:
        """Return a folder for the PATH, and that of the programs, with what is wrapped in both."""
        kind = "host" if self.system == HOST else "sim"
        built = ROOT / "build" / kind / "bin"
        assert built.is_dir(), f"{built} is not there: make build"
        programs, path = folder / "programs", folder / "path"
        programs.mkdir(parents=True)
        path.mkdir()
        for program in built.iterdir():
            (programs / program.name).symlink_to(program)
        for name, text in self.wrapped.items():
            own = (built / name).exists()
            real = built / name if own else shutil.which(name)
            script = (programs if own else path) / name
            script.unlink(missing_ok=True)
            script.write_text(f"#!/bin/sh\nreal='{real}' tests='{ROOT}/tests'\n{text}\n")
            script.chmod(0o755)
        return path, programs


def flow(content: Any) -> str:
    """Return YAML in one line, as in an overlay."""
    text = yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=10**6)
    return text.strip().removeprefix("{").removesuffix("}")


def judged(results: Path) -> Said:
    """Return what the verdict says of the one node of a results folder."""
    (found,) = judging.judge(reading.read([str(results)]))
    return said(found, results)


def said(found: NodeVerdict, results: Path) -> Said:
    """Return what a verdict says."""
    node, told = platform.node(), found.diagnosis
    reasons = [one for one in found.reasons if one.rule != "diagnosis"]
    return Said(
        found.status,
        [(one.status, one.sentence.replace(node, "this machine")) for one in reasons],
        sorted({one.check for one in found.reasons if one.check}),
        sorted(_passed(results)),
        told.sentence if told is not None else "",
        [[each.label for each in (one.component, *one.equals)] for one in told.degraded]
        if told is not None and not told.unsure
        else [],
        [found.node] if found.drain is not None and found.drain.live else [],
    )


def _passed(results: Path) -> set[str]:
    cases = [
        case
        for report in results.glob("reports/run-*.json")
        for run in json.loads(report.read_text())["runs"]
        for case in run["testcases"]
    ]
    return {case["name"] for case in cases if case["result"] == "pass"}
