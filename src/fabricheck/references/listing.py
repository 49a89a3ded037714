"""The table of `fabricheck limits show`: the reference of every metric, and its source.

The metrics come from a dry run of ReFrame (`ask`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core import show
from fabricheck.core.checkout import ORIGIN, ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.models import read_model
from fabricheck.core.vocabulary import ENV_METRICS, ENV_RESULTS, EXPERIMENTS, RUNTIME_LABELS
from fabricheck.references import calibrated
from fabricheck.references.entries import (
    REPORT_ONLY,
    Origin,
    peak_fact,
    peak_gbs,
    plain,
    record_names,
    required,
    requires,
)
from fabricheck.references.published import ACCEPTANCE, LIMITS, MACHINES, THRESHOLD, Record
from fabricheck.references.stated import REDUCED, References
from fabricheck.site import software, this_machine
from fabricheck.site.partitions import Target
from fabricheck.site.sites import PREFIX_VARIABLE
from fabricheck.site.software import Lock

SETTINGS = ROOT / "config" / "settings.py"

#: A dry run takes seconds; the limit is for a busy machine.
LIMIT_S = 300

#: The lines in which ReFrame states why a session stopped or a check failed; colours are removed.
_REASON = re.compile(r"^\W*(?:ERROR: |(?=\S*: error: |Reason: ))(.+)$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[\d*m")


@dataclass(frozen=True)
class CheckMetrics:
    """What a check reported about itself; for each metric its ``unit``, ``entry`` (None without
    one), ``rule`` and ``independent``, whether it means the same on any number of devices. metrics:
    empty if the check failed before it listed any.

    description: what it measures, in words. sizes: of arrays or messages, in the form of its
    program's option; empty without any. limit_s: the time limit of its program, in s.
    """

    check: str
    partition: str
    environment: str
    metrics: dict[str, dict[str, Any]]
    tags: Sequence[str] = ()
    limit_s: float = 0
    description: str = ""
    program: str = ""
    sizes: str = ""


def ask(
    system: str,
    checks: Sequence[Path],
    references: Path | None = None,
    names: Collection[str] = (),
) -> list[CheckMetrics]:
    """Return what the checks report, in ReFrame's order.

    :param system: as ReFrame's option: a system, or ``system:partition``; empty for this machine's.
    :param checks: the folders of checks.
    :param references: the folder of reference files; by default the session's.
    :param names: of the checks that are asked; by default all.
    :raises NotFoundError: when there are no checks.
    :raises InvalidInputError: when no check reported anything, with ReFrame's reason.
    """
    named = system or "this machine"
    if not checks:
        raise NotFoundError("The checks were not found: change to the root of the repository.")
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        file = Path(folder) / "metrics"
        environment = {
            "RFM_CONFIG_FILES": str(SETTINGS),
            **os.environ,
            ENV_RESULTS: folder,
            ENV_METRICS: str(file),
        }
        if references is not None:
            environment[PREFIX_VARIABLE] = str(references)
        if system == this_machine.NAME:
            # A draft is in the results folder, and that of the dry run is an empty one.
            environment[this_machine.NODE] = str(this_machine.node(required=True))
        command = [
            str(Path(sys.executable).with_name("reframe")),
            *([f"--system={system}"] if system else []),
            *("--dry-run", *(word for check in checks for word in ("-c", str(check)))),
            *([f"--name=^({'|'.join(map(re.escape, names))})( |$)"] if names else []),
        ]
        try:
            with show.working(f"asking ReFrame for the metrics of {named}"):
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=LIMIT_S
                )
        except subprocess.TimeoutExpired:
            raise InvalidInputError(
                f"ReFrame's dry run on {named} took more than {LIMIT_S} s."
            ) from None
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    asked = [CheckMetrics(**json.loads(line)) for line in lines]
    if not any(metrics.metrics for metrics in asked):
        ended = f" and ended with exit code {done.returncode}" if done.returncode else ""
        reported = reason(f"{done.stdout}\n{done.stderr}")
        raise InvalidInputError(
            f"ReFrame's dry run on {named} reached no check{ended}; ReFrame reported: {reported}"
        )
    return asked


def reason(output: str) -> str:
    """Return the first reason in ReFrame's output, else its last line."""
    plain = _COLOUR.sub("", output).strip()
    match = _REASON.search(plain)
    return match[1].strip() if match else (plain.splitlines() or ["nothing"])[-1]


RULE = "rule"
SIMULATED = "simulated"
MISSING = "none"

#: Why a value is a weak ground for a limit.
ANOTHER_VERSION = "another version"
MAXIMUM = "maximum"
ONE_SESSION = "one session"
DEMANDED = "demanded"

#: Published, and measured on another machine than the partition's.
ELSEWHERE = "published elsewhere"

#: The Spack environments, and their working copies.
SPACK_FOLDERS = tuple(ORIGIN / name for name in ("build/spack", "spack-env"))

#: The package whose version is that of ROCm or CUDA.
PACKAGES = {"rocm": "hip", "cuda": "cuda"}


@dataclass(frozen=True, order=True)
class Mark:
    """A reason, as one word and in full."""

    word: str
    why: str


@dataclass(frozen=True)
class Source:
    """The source of values: a document, a node model, or a calibration record.

    versions: of ROCm or CUDA, as far as known. system: the machine of the values; inferred: the
    document does not name it. limit: the values are that site's acceptance limits, not
    measurements.
    """

    title: str
    where: str
    system: str | None = None
    versions: tuple[tuple[str, str], ...] = ()
    inferred: bool = False
    limit: bool = False


@dataclass(frozen=True)
class Row:
    """One metric of a check: its reference, the kind, and the sources.

    kind: published, published elsewhere, derived, calibration, simulated (a calibration from
    simulated sessions), rule, report only, or none. marks: why the value is a weak ground for the
    limit.
    """

    check: str
    partition: str
    metric: str
    unit: str
    entry: tuple[Any, ...] | None
    kind: str
    how: str = ""
    sources: tuple[Source, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class ListedCheck:
    """One check of a partition: what it measures, in which sets, and what its limits rest on.

    program: the measuring program. sizes: as its option has them. limits: by kind (see `Row`) the
    number of metrics.
    """

    check: str
    partition: str
    environment: str
    description: str
    experiments: tuple[str, ...]
    program: str
    sizes: str
    sets: tuple[str, ...]
    metrics: tuple[str, ...]
    limits: Mapping[str, int]


@dataclass(frozen=True)
class Listing:
    """The references of a system.

    silent_checks: the checks that reported nothing. at_hand: by partition the versions of ROCm or
    CUDA of its environments, where known. disagreements: sentences about locks that name other
    software than their ``spack.yaml``. unused: sentences about limits of metrics that no check has.
    """

    system: str
    references: tuple[Row, ...]
    silent_checks: tuple[str, ...]
    at_hand: Mapping[str, Mapping[str, str]]
    disagreements: tuple[str, ...]
    unused: tuple[str, ...]


def of_system(
    system: str, targets: Sequence[Target], asked: Sequence[CheckMetrics], references: References
) -> Listing:
    """Return the references of the partitions of a system, as its checks report their metrics.

    :raises InvalidInputError: as `rows`, and when a file of Spack is damaged.
    """
    sets = {target.name: target.partition["extras"].get("references") for target in targets}
    environments = [
        (target.name, environment) for target in targets for environment in target.environments
    ]
    known = grouped(
        (name, (environment["extras"]["runtime"], version))
        for name, environment in environments
        if (version := version_at_hand(environment))
    )
    at_hand = {name: dict(versions) for name, versions in known.items()}
    differ = (disagreement(environment) for _, environment in environments)
    return Listing(
        system,
        tuple(rows(asked, references, sets, at_hand)),
        tuple(
            f"{metrics.check} on {metrics.partition}" for metrics in asked if not metrics.metrics
        ),
        at_hand,
        tuple(filter(None, differ)),
        tuple(unused(asked, references, sets)),
    )


def rows(
    asked: Sequence[CheckMetrics],
    references: References,
    sets: Mapping[str, str | None],
    at_hand: Mapping[str, Mapping[str, str]],
) -> Iterator[Row]:
    """Yield a row for each metric that the checks reported.

    :param sets: by partition the set of references that it names.
    :param at_hand: by partition the versions of ROCm or CUDA that it has, where known.
    :raises InvalidInputError: when ReFrame uses another reference than the file's, or an origin is
        incomplete.
    """
    for metrics in asked:
        named = sets.get(metrics.partition)
        entries = references.entries(metrics.check, metrics.partition, named)
        for metric, about in metrics.metrics.items():
            entry, unit = about["entry"], about["unit"]
            place = (metrics.check, metrics.partition, metric, unit)
            if entry is None:
                yield Row(*place, None, MISSING)
                continue
            if about.get("rule"):
                kind = RULE if requires(entry) else REPORT_ONLY
                yield Row(*place, tuple(entry), kind, about["rule"])
                continue
            # A metric that no file has is report only on a machine that no file knows.
            of_a_file = metric in entries or requires(entry)
            if of_a_file and plain(entries.get(metric)) != plain(entry):
                raise InvalidInputError(
                    f"{metrics.check} {metric} on {metrics.partition}: ReFrame uses {entry}, but "
                    f"{references.folder} has {entries.get(metric)}."
                )
            origin = references.origin(metrics.check, metrics.partition, metric, named)
            kind, how, sources = _of(references, origin, metrics, metric, entry)
            machine = MACHINES.get(metrics.partition)
            if kind == "published" and any(source.system != machine for source in sources):
                kind = ELSEWHERE
            if kind == REPORT_ONLY:
                how = how or _compared(metric, metrics.metrics, of_a_file)
            records = (
                [references.data.record(name) for name in record_names(origin)] if origin else []
            )
            versions = [version for source in sources for version in source.versions]
            marked = marks_of(records, versions, at_hand.get(metrics.partition, {}))
            marks = tuple(marked) if requires(entry) else ()
            yield Row(*place, tuple(entry), kind, how, tuple(sources), marks)


def checks(
    asked: Sequence[CheckMetrics],
    references: References,
    named: Mapping[str, str | None],
    known_sets: Sequence[str],
) -> Iterator[ListedCheck]:
    """Yield a line for each check, in the order of the experiments.

    :param named: by partition the set of references that it names.
    :param known_sets: the names of sets, the smallest first.
    :raises InvalidInputError: as `rows`.
    """
    order = [*EXPERIMENTS]

    def first(metrics: CheckMetrics) -> int:
        numbers = [order.index(tag) for tag in metrics.tags if tag in EXPERIMENTS]
        return min(numbers, default=len(order))

    for metrics in sorted(asked, key=first):
        kinds = Counter(row.kind for row in rows([metrics], references, named, {}))
        yield ListedCheck(
            check=metrics.check,
            partition=metrics.partition,
            environment=metrics.environment,
            description=metrics.description,
            experiments=tuple(tag for tag in EXPERIMENTS if tag in metrics.tags),
            program=metrics.program,
            sizes=metrics.sizes,
            sets=tuple(name for name in known_sets if name in metrics.tags),
            metrics=tuple(metrics.metrics),
            limits=dict(kinds.most_common()),
        )


def unused(
    asked: Sequence[CheckMetrics], references: References, sets: Mapping[str, str | None]
) -> list[str]:
    """Return a sentence for each limit of a metric that the check does not have (any more).

    Metrics between nodes depend on the nodes; a set of any machine has the links of several.
    """
    known = {
        (metrics.check, metrics.partition, metric)
        for metrics in asked
        for metric in metrics.metrics
    }
    measured = dict.fromkeys(
        (metrics.check, metrics.partition)
        for metrics in asked
        if metrics.metrics and "E17" not in metrics.tags and metrics.partition != this_machine.NAME
    )
    sentences = []
    for check, where in measured:
        for metric, entry in references.entries(check, where, sets.get(where)).items():
            if (check, where, metric) not in known and required(entry):
                sentences.append(
                    f"{references.file_of[check]}: {check} has no metric {metric} on {where}, and "
                    "a limit for it."
                )
    return sentences


def marks_of(
    records: Collection[Record],
    versions: Iterable[tuple[str, str]],
    at_hand: Mapping[str, str],
) -> Iterator[Mark]:
    """Yield the marks of a limit.

    :param records: the published records of its value; none for a calibration.
    :param versions: the runtimes, rocm or cuda, and the versions that measured it.
    :param at_hand: by runtime the version that the partition has, where known.
    """
    for runtime, version in dict.fromkeys(versions):
        here = at_hand.get(runtime)
        if here is not None and here.split(".")[0] != version.split(".")[0]:
            word = RUNTIME_LABELS[runtime]
            yield Mark(ANOTHER_VERSION, f"measured with {word} {version}, not {here}")
    if any(record.is_maximum for record in records):
        yield Mark(MAXIMUM, "the highest over sizes or repeats, compared with what each reaches")
    if any(record.role == THRESHOLD for record in records):
        yield Mark(DEMANDED, "what a vendor or a site demands at least; nobody measured it")
    # A site that accepts nodes by a value has measured many; no other document reports two
    # sessions.
    measured = [
        record for record in records if record.kind == "measured" and record.role != ACCEPTANCE
    ]
    titles = dict.fromkeys(record.title for record in measured)
    if len(titles) == 1 and len(measured) == len(records):
        yield Mark(ONE_SESSION, "its document reports one session")


def _compared(metric: str, metrics: Collection[str], of_a_file: bool) -> str:
    """Return the comparison that limits a metric without a known value."""
    stem = REDUCED.sub("", metric)
    for ending, reason in (
        ("alike", "its members are compared with each other"),
        ("of_single", "it is compared with its own solo value"),
    ):
        if f"{stem}_{ending}" in metrics:
            return f"no value is at hand; {reason} (_{ending})"
    return "" if of_a_file else "no record of a healthy node shows what limits it"


def _of(
    references: References,
    origin: Origin | None,
    asked: CheckMetrics,
    metric: str,
    entry: Sequence[Any],
) -> tuple[str, str, list[Source]]:
    if origin is not None and origin.kind == "calibration":
        return _of_a_calibration(references, origin, asked, metric, entry)
    if not requires(entry):
        return REPORT_ONLY, (origin.why if origin and origin.kind == REPORT_ONLY else "") or "", []
    if origin is None:
        raise InvalidInputError(
            f"{references.folder / references.file_of[asked.check]}: {metric} of {asked.check} on "
            f"{asked.partition} has no origin of its value."
        )
    if origin.by_definition or origin.kind == "site":
        return origin.kind, origin.why or origin.definition or "", []
    how: list[str] = []
    sources: list[Source] = []
    names = record_names(origin)
    if names:
        first = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
        reduced = "" if len(names) == 1 else f", {origin.statistic} of {len(names)}"
        how.append(f"{first}{reduced}")
        sources += dict.fromkeys(_document(references, name) for name in names)
    if origin.peak is not None:
        peak = peak_gbs(origin, references.data)
        part = "" if origin.efficiency is None else f" x {origin.efficiency:g}"
        how.append(f"peak {peak:g} GB/s{part}")
        key, fact = peak_fact(origin)
        sources.append(Source(f"node model {origin.map}", f"{key}, {fact.kind}"))
    if origin.factor is not None:
        how.append(f"x {origin.factor:g}")
    if origin.why:
        how.append(f"({origin.why})")
    return origin.kind, " ".join(how), sources


def _document(references: References, name: str) -> Source:
    record = references.data.record(name)
    return Source(
        record.title,
        record.where,
        record.system,
        tuple(references.data.versions(name).items()),
        record.inferred,
        record.role in LIMITS,
    )


def _of_a_calibration(
    references: References,
    origin: Origin,
    asked: CheckMetrics,
    metric: str,
    entry: Sequence[Any],
) -> tuple[str, str, list[Source]]:
    assert origin.record is not None
    on = origin.measured_on or asked.partition
    record = references.record(on) or calibrated.read(references.folder / origin.record)
    calibration = record.checks.get(asked.check, {}).get(metric)
    # Either may state it: simulated values are never taken for measured ones.
    simulated = SIMULATED in (record.clock, origin.clock)
    kind = (SIMULATED if simulated else "calibration") if requires(entry) else REPORT_ONLY
    if calibration is None:
        return kind, f"not measured on {record.partition}", []
    dates = sorted(session.date[:10] for session in record.sessions)
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    if requires(entry):
        how = (
            f"median of {calibration.n} simulated sessions"
            if simulated
            else f"median of {calibration.n} sessions"
        )
    else:
        how = calibration.why
    runtimes = sorted({each["runtime"] for each in record.versions} - {"none"})
    word = "cuda" if any(each["runtime"] == "cuda" for each in record.programs) else "rocm"
    versions = tuple((word, version) for version in runtimes)
    place = f"{len(record.sessions)} sessions, {span}"
    return kind, how, [Source(origin.record, place, record.partition, versions)]


def version_at_hand(
    environment: Mapping[str, Any], folders: tuple[Path, ...] = SPACK_FOLDERS
) -> str | None:
    """Return the version of ROCm or CUDA that an environment's Spack environment names.

    That is the external of ``spack.yaml``; where it has none or several, the lock's. Neither tells
    what the machine has.

    :param environment: a ReFrame environment of a site file.
    :returns: ``None`` without a lock, or where the environment is not one of Spack's.
    :raises InvalidInputError: when a file is damaged or of an unknown format.
    """
    package = PACKAGES.get(environment.get("extras", {}).get("runtime", ""))
    folder, lock = _located(environment, folders) or (None, None)
    if lock is None or package is None:
        return None
    described = software.versions(folder).get(package, {}) if folder else {}
    if len(described) == 1:
        return next(iter(described))
    return next(
        (spec.version for spec in lock.concrete_specs.values() if spec.name == package), None
    )


def disagreement(
    environment: Mapping[str, Any], folders: tuple[Path, ...] = SPACK_FOLDERS
) -> str | None:
    """Return a sentence where lock and ``spack.yaml`` of an environment name other software.

    :raises InvalidInputError: as `version_at_hand`.
    """
    folder, lock = _located(environment, folders) or (None, None)
    return software.disagreement(folder, lock) if folder and lock else None


def _located(
    environment: Mapping[str, Any], folders: Sequence[Path]
) -> tuple[Path | None, Lock] | None:
    """Return the last folder with an environment's ``spack.yaml``, and its first lock.

    The lock of the installed software comes first, then the committed one.
    """
    name = str(environment.get("extras", {}).get("spack_environment") or "")
    places = [folder / name for folder in folders if name]
    described = [path for path in places if (path / "spack.yaml").is_file()]
    for place in places:
        with contextlib.suppress(NotFoundError):
            return (described[-1] if described else None), read_model(place / "spack.lock", Lock)
    return None
