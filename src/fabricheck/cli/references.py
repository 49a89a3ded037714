"""`fabricheck limits show` and `check`: references, and their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.completion import partition_names
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NO_REFERENCE, RUNTIME_LABELS
from fabricheck.judge.coverage import checks_folders
from fabricheck.references import dry_run, listing
from fabricheck.references.entries import required, said
from fabricheck.references.listing import (
    ELSEWHERE,
    MISSING,
    RULE,
    SIMULATED,
    Row,
    Source,
    rows,
)
from fabricheck.references.origin import REPORT_ONLY
from fabricheck.references.published import folder
from fabricheck.references.stated import REDUCED, references_in
from fabricheck.site import partitions


@commands.command("limits show")
def references(
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="System or partition, such as lumi or lumi:gpu.",
            autocompletion=partition_names,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show the reference of each metric, and its source (docs/limits.md).

    The metrics come from a dry run of all checks that the system's environments can run, so they
    are those that ReFrame will use. Exit status 9 if a metric has no reference.
    """
    chosen = partitions.choose(system)
    found = references_in(folder())
    told = dry_run.ask(system, checks_folders())
    sets = {one.name: one.partition["extras"].get("references") for one in chosen}
    versions = _at_hand(chosen)
    differ = [
        says for one in chosen for each in one.environments if (says := listing.disagreement(each))
    ]
    shown = list(rows(told, found, sets, versions))
    silent = [f"{one.check} on {one.partition}" for one in told if not one.metrics]
    if as_json:
        show.write_json(
            {
                "system": system,
                "references": shown,
                "told_nothing": silent,
                "at_hand": versions,
                "disagreements": differ,
            }
        )
    else:
        _print(shown, silent, versions)
        for one in differ:
            show.line(one)
    if silent or any(row.kind == MISSING for row in shown):
        raise typer.Exit(EXIT_NO_REFERENCE)


@commands.command("limits check")
def check() -> None:
    """Check the reference files: each limit has value, bounds and unit, and a source that gives it.

    Needs no ReFrame and no system. Exit status 4 if a limit is wrong, with a sentence for each.
    """
    found = references_in(folder())
    faults = list(found.faults())
    for one in faults:
        typer.echo(one)
    limits = sum(required(entry) for *_, entry in found.all_entries())
    outcome = count(len(faults), "fault") if faults else "each has a source that gives it"
    typer.echo(f"{found.folder}: {count(limits, 'limit')}; {outcome}.")
    if faults:
        raise typer.Exit(InvalidInputError.exit_code)


def _at_hand(chosen: Sequence[partitions.Target]) -> dict[str, dict[str, str]]:
    """Return by partition the versions of ROCm or CUDA of its environments, if known."""
    found: dict[str, dict[str, str]] = {}
    for one in chosen:
        for environment in one.environments:
            version = listing.version_at_hand(environment)
            if version:
                found.setdefault(one.name, {})[environment["extras"]["runtime"]] = version
    return found


def _print(shown: Sequence[Row], silent: Sequence[str], versions: Mapping[str, Any]) -> None:
    documents = dict.fromkeys(_document(one) for row in shown for one in row.sources)
    numbers = {one: number for number, one in enumerate(documents, 1)}
    for (partition, check), own in _by_check(shown).items():
        show.line(f"{check} on {partition}", "bold")
        table: list[tuple[str, ...]] = []
        in_a_line: dict[str, list[str]] = {}
        for name, row in _together(own):
            if row.kind in (REPORT_ONLY, RULE):
                in_a_line.setdefault(_ground(row), []).append(name)
                continue
            cited = dict.fromkeys(numbers[_document(one)] for one in row.sources)
            rests = " ".join([row.how, *(f"[{number}]" for number in cited)]).strip()
            words = dict.fromkeys(one.word for one in row.marks)
            entry = "-" if row.entry is None else said(row.entry)
            marked = "; ".join(filter(None, [rests, ", ".join(words)]))
            table.append((f"  {name}", entry, row.kind, marked))
        if table:
            show.table(("  Metric", "Reference", "Kind", "Source"), table)
        for ground, names in in_a_line.items():
            show.line(f"  {ground}: {', '.join(names)}")
    show.line("* means worst and median, or the best and the worst block.")
    _print_sources(numbers, shown)
    for name in dict.fromkeys(row.partition for row in shown):
        _print_versions(name, versions.get(name))
        _print_marks([row for row in shown if row.partition == name])
    _print_end(shown, silent)


def _ground(row: Row) -> str:
    """Return the common part of a check's metrics: the reason, or the rule and its limit."""
    if row.kind == RULE and row.entry is not None:
        return f"By rule {said(row.entry)} ({row.how})"
    return f"Report only ({row.how})" if row.how else "Report only"


def _by_check(shown: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in shown:
        found.setdefault((row.partition, row.check), []).append(row)
    return found


def _together(own: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return the rows of a check by name; worst and median become one where they are equal."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in own:
        stem = REDUCED.sub("", row.metric)
        groups.setdefault((stem, row.entry, row.kind, row.how, row.sources), []).append(row)
    return [
        (own[0].metric if len(own) == 1 else f"{key[0]}_*", own[0]) for key, own in groups.items()
    ]


def _print_sources(numbers: Mapping[Any, int], shown: Sequence[Row]) -> None:
    for key, number in numbers.items():
        here = [one for row in shown for one in row.sources if _document(one) == key]
        first = here[0]
        versions = ", ".join(f"{RUNTIME_LABELS[name]} {one}" for name, one in first.versions)
        known = f", measured with {versions}" if versions else ", versions not stated"
        inferred = " (inferred)" if first.inferred else ""
        whose = "acceptance limit of" if first.limit else "of"
        of = f" ({whose} {first.system}{inferred}{known})" if first.system else ""
        places = "; ".join(dict.fromkeys(one.where for one in here))
        show.line(f"[{number}] {first.title}{of}: {places}")


def _document(source: Source) -> tuple[Any, ...]:
    """Return the key of a source line: all places in a document with equal versions."""
    return (source.title, source.system, source.versions, source.inferred, source.limit)


def _print_versions(name: str, known: Mapping[str, str] | None) -> None:
    if not known:
        show.line(f"{name}: the version of ROCm or CUDA is unknown here.")
    for runtime, version in (known or {}).items():
        show.line(f"{name}: {RUNTIME_LABELS[runtime]} {version} by its Spack environment.")


def _print_marks(own: Sequence[Row]) -> None:
    """Explain the words beside limits, with the number of limits of each."""
    for mark, number in sorted(Counter(one for row in own for one in row.marks).items()):
        show.line(f"{mark.word}, {count(number, 'limit')}: {mark.why}.")


def _print_end(shown: Sequence[Row], silent: Sequence[str]) -> None:
    kinds = Counter(row.kind for row in shown)
    gating = sum(number for kind, number in kinds.items() if kind not in (REPORT_ONLY, MISSING))
    each = ", ".join(f"{kinds[kind]} {word}" for kind, word in (
        ("published", "published"), (ELSEWHERE, ELSEWHERE), ("derived", "derived"),
        ("calibration", "calibrated"), (RULE, "by a rule"),
    ))  # fmt: skip
    # Of a rehearsal, and of a site with limits of its own only: docs/limits.md.
    each += f", {kinds[SIMULATED]} simulated" if kinds[SIMULATED] else ""
    each += f", {kinds['site']} stated by the site" if kinds["site"] else ""
    bare = sum(row.kind == REPORT_ONLY and not row.how for row in shown)
    show.line(
        f"{len(shown)} metrics: {gating} have a limit ({each}), {kinds[REPORT_ONLY]} are report "
        f"only ({bare} of them without a reason), {kinds[MISSING]} have no reference."
    )
    for row in shown:
        if row.kind == MISSING:
            show.line(f"{row.check} {row.metric} on {row.partition} has no reference.")
    for one in silent:
        show.line(f"{one} reported nothing: a dry run shows why (reframe --dry-run).")
