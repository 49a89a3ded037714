"""Child pipelines of GitLab: additions to the jobs that ``reframe --ci-generate`` writes.

ReFrame makes a job of each check, with absolute paths of the generating machine, without JUnit
among its artifacts and without the requested system. Here each job gets its own results folder and
keeps it whatever its result, and a last job joins all folders (``ci/gitlab/verdict.sh``).
docs/reference/gitlab.md describes the pipeline.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from reframe.core import runtime
from reframe.core.exceptions import ReframeError

from fabricheck.core.checkout import ROOT
from fabricheck.core.show import listed
from fabricheck.rfm import reframe_internals

#: Where a pipeline's jobs write, in the checkout.
FOLDER = Path("pipeline")

#: The stages of a child pipeline.
MEASURE, VERDICT = "measure", "verdict"

#: Time limits of a job on its own node, and of one that waits in a scheduler's queue; a runner or a
#: project may allow less.
TIMEOUT_HERE, TIMEOUT_QUEUED = "1 hour", "12 hours"

#: How long GitLab keeps the artifacts of jobs.
KEPT = "4 weeks"

#: The settings of every job; a check's own ``ci_extras`` take precedence.
DEFAULT = {
    "tags": ["$FABRICHECK_RUNNER_TAG", "$FABRICHECK_RUNNER_KIND"],
    # A Jacamar runner learns by it whose job it is.
    "id_tokens": {"SITE_ID_TOKEN": {"aud": "$CI_SERVER_URL"}},
    # A failed check is not repeated.
    "retry": {"max": 1, "when": ["runner_system_failure", "scheduler_failure"]},
    # A measurement that is cut off is useless, and the next one would find its node busy.
    "interruptible": False,
}

#: Variables that a child pipeline has with their values at its generation, because those of
#: ``.gitlab-ci.yml`` do not reach it. Project settings, and variables set when a pipeline is
#: started, take precedence.
VARIABLES = (
    "FABRICHECK_ACCOUNT",
    "FABRICHECK_KEPT",
    "FABRICHECK_QOS",
    "FABRICHECK_QUEUE",
    "FABRICHECK_RESERVATION",
    "FABRICHECK_RUNNER_KIND",
    "FABRICHECK_RUNNER_TAG",
    "FABRICHECK_SET",
    "FABRICHECK_SETUP_FILE",
    "FABRICHECK_SITES",
    "CUSTOM_CI_BUILDS_DIR",
    "GIT_CLEAN_FLAGS",
    "SCHEDULER_PARAMETERS",
)

#: Options of ReFrame's command that are valid on one machine only, or for one results folder.
_REPLACED = ("--prefix", "--report-file", "--report-junit")


def emit(
    original: Callable[..., object],
    file: Any,
    cases: Sequence[Any],
    *rest: Any,
    **more: Any,
) -> None:
    """Write the pipeline of a session's test cases.

    :raises ReframeError: for options that the jobs could not follow.
    """
    for name in ("distribute", "repeat"):
        if reframe_internals.option(name):
            raise ReframeError(
                f"--{name} cannot be used with --ci-generate: a job finds its check by its hash, "
                "and the clones that the option makes exist in this session only."
            )
    written = io.StringIO()
    original(written, cases, *rest, **more)
    # Options that decide how a check runs; the job names the check by its hash.
    repeated = {"-S": "vars", "-J": "job_options", "-p": "prgenv"}
    options = []
    for letter, name in repeated.items():
        for value in reframe_internals.option(name) or ():
            if (letter, value) != ("-p", ".*"):
                options.append(f"{letter}{value}")
    system = runtime.runtime().system
    partitions = [partition.fullname for partition in system.partitions]
    chosen = partitions[0] if len(partitions) == 1 else system.name
    pipeline = child_pipeline(yaml.safe_load(written.getvalue()), cases, chosen, options)
    yaml.safe_dump(pipeline, file, sort_keys=False, width=sys.maxsize)


def child_pipeline(
    document: Mapping[str, Any], cases: Sequence[Any], system: str, options: Sequence[str]
) -> dict[str, Any]:
    """Return the pipeline of some test cases, made from ReFrame's.

    :param document: ReFrame's pipeline: by check a job, beside ``stages``, ``cache`` and ``image``.
    :param system: ``system`` or ``system:partition``, as ``--system`` takes it.
    :param options: further options that every job needs.
    :raises ReframeError: when a check needs another one, or a path is outside of this repository.
    """
    dependent = sorted({case.check.unique_name for case in cases if case.deps})
    if dependent:
        raise ReframeError(
            f"A child pipeline runs each check by itself, but {listed(dependent)} depends on "
            "another one."
        )
    local = {
        case.check.unique_name
        for case in cases
        if case.partition.scheduler.registered_name == "local"
    }
    names = list(dict.fromkeys(case.check.unique_name for case in cases))
    # A job that measures again what a session measured first has to measure that as well.
    first = {
        case.check.unique_name: [f"-n^{case.check.repeats}$"]
        for case in cases
        if getattr(case.check, "repeats", "")
    }
    return {
        # Whatever started the parent: a child of a merge request has no job without this rule.
        "workflow": {"rules": [{"when": "always"}]},
        "variables": dict(_variables(os.environ)),
        "stages": [MEASURE, VERDICT],
        "default": DEFAULT,
        **{key: document[key] for key in ("image",) if key in document},
        **{
            f"{name} {system}": _job(
                document[name], name, system, [*options, *first.get(name, ())], name in local
            )
            for name in names
        },
        f"verdict {system}": _verdict(names, system),
    }


def results(system: str, check: str) -> Path:
    """Return the results folder of a check's job, in the checkout."""
    return FOLDER / "results" / system.replace(":", "-") / check


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # The child has its own number; the job that joins all children uses the parent's.
    yield "FABRICHECK_PIPELINE", environment.get("CI_PIPELINE_ID", "")
    for name in VARIABLES:
        if environment.get(name):
            yield name, environment[name]


def _job(
    written: Mapping[str, Any], name: str, system: str, options: Sequence[str], local: bool
) -> dict[str, Any]:
    folder = results(system, name)
    (line,) = written["script"]
    command = [*_portable(shlex.split(line)), f"--system={system}", *options]
    junit = str(folder / "junit.xml")
    command.append(f"--report-junit={junit}")
    members = {
        key: value for key, value in written.items() if key not in ("script", "needs", "artifacts")
    }
    stated = written["artifacts"]
    report = f"{name}-report.json"
    return {
        # No other job measures the runner's node at the same time, in any pipeline.
        **({"resource_group": "fabricheck-node-$FABRICHECK_RUNNER_TAG"} if local else {}),
        "timeout": TIMEOUT_HERE if local else TIMEOUT_QUEUED,
        **members,
        "stage": MEASURE,
        "script": [" ".join(["ci/gitlab/run.sh", str(folder), *map(_quoted, command)])],
        "artifacts": {
            "expire_in": KEPT,
            **stated,
            "when": "always",
            "paths": [str(folder), *(path for path in stated["paths"] if path != report)],
            "reports": {**stated.get("reports", {}), "junit": junit},
        },
    }


def _verdict(names: Iterable[str], system: str) -> dict[str, Any]:
    folder = FOLDER / "verdict" / system.replace(":", "-")
    folders = [results(system, name) for name in names]
    return {
        "stage": VERDICT,
        # Also after a failure, and for jobs that never started: the result is then incomplete.
        "when": "always",
        "script": [" ".join(["ci/gitlab/verdict.sh", system, *map(str, folders)])],
        "artifacts": {
            "when": "always",
            "expire_in": KEPT,
            "paths": [str(folder)],
            "reports": {"metrics": str(folder / "metrics.txt")},
        },
    }


def _portable(words: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of ReFrame's command that are valid on any machine."""
    rest = iter(words)
    for word in rest:
        if word == "-C":
            next(rest)  # env.sh contains the settings
        elif word.split("=")[0] not in _REPLACED:
            yield word


def _quoted(word: str) -> str:
    """Quote an argument for the shell, with paths of this checkout as paths of the job's.

    :raises ReframeError: for a path outside the checkout, which a job does not have.
    """
    path = word.rpartition("=")[2]
    # A check's hash begins with a slash too, but is not a path.
    if path.startswith("/") and Path(path).exists() and not Path(path).is_relative_to(ROOT):
        raise ReframeError(
            f"The path {path} is outside {ROOT}, but the jobs of a pipeline have this repository "
            "only: name one inside."
        )
    parts = word.split(str(ROOT))
    return '"$CI_PROJECT_DIR"'.join(shlex.quote(part) if part else "" for part in parts)
