"""The table of `fabricheck limits show`: the references of each check, and their documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabricheck.core import show
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import RUNTIME_LABELS
from fabricheck.references.entries import REPORT_ONLY, formatted
from fabricheck.references.listing import (
    ELSEWHERE,
    MISSING,
    RULE,
    SIMULATED,
    Listing,
    Row,
    Source,
)
from fabricheck.references.stated import REDUCED

#: How the kinds of limits are counted.
_KINDS = {
    "published": "published",
    ELSEWHERE: ELSEWHERE,
    "derived": "derived",
    "calibration": "calibrated",
    RULE: "by a rule",
    SIMULATED: "simulated",
    "site": "stated by the site",
}


def blocks(listing: Listing) -> Iterator[show.Block]:
    """Yield the lines and tables of a listing."""
    shown, versions = listing.references, listing.at_hand
    # A document stands once, with all places in it.
    sources = grouped(
        (replace(source, where=""), source.where) for row in shown for source in row.sources
    )
    numbers = {document: number for number, document in enumerate(sources, 1)}
    of_checks = grouped(((row.partition, row.check), row) for row in shown)
    for (partition, check), rows_of_check in of_checks.items():
        yield show.plain(f"{check} on {partition}", "bold")
        named = list(_together(rows_of_check))
        table = []
        for name, row in named:
            if row.kind not in (REPORT_ONLY, RULE):
                cited = dict.fromkeys(
                    f"[{numbers[replace(source, where='')]}]" for source in row.sources
                )
                words = listed(dict.fromkeys(mark.word for mark in row.marks))
                entry = "-" if row.entry is None else formatted(row.entry)
                rests = " ".join(filter(None, [row.how, *cited]))
                table.append(
                    (
                        f"  {name}",
                        entry,
                        row.kind,
                        listed(filter(None, [rests, words]), separator="; "),
                    )
                )
        yield show.Table(("  Metric", "Reference", "Kind", "Source"), table)
        in_a_line = grouped(
            (_ground(row), name) for name, row in named if row.kind in (REPORT_ONLY, RULE)
        )
        yield from (f"  {ground}: {listed(names)}" for ground, names in in_a_line.items())
    yield "* means worst and median, or the best and the worst block."
    for document, places in sources.items():
        where = listed(dict.fromkeys(places), separator="; ")
        yield f"[{numbers[document]}] {_source(document)}: {where}"
    for name in dict.fromkeys(row.partition for row in shown):
        if name not in versions:
            yield f"{name}: the version of ROCm or CUDA is unknown here."
        for runtime, version in versions.get(name, {}).items():
            yield f"{name}: {RUNTIME_LABELS[runtime]} {version} by its Spack environment."
        of_partition = [row for row in shown if row.partition == name]
        marks = Counter(mark for row in of_partition for mark in row.marks)
        for mark, number in sorted(marks.items()):
            yield f"{mark.word}, {count(number, 'limit')}: {mark.why}."
    yield from _totals(shown)
    yield from (
        f"{check} reported nothing: a dry run shows why (reframe --dry-run)."
        for check in listing.silent_checks
    )
    yield from (*listing.unused, *listing.disagreements)


def _ground(row: Row) -> str:
    """Return the common part of a check's metrics: the reason, or the rule and its limit."""
    if row.kind == RULE and row.entry is not None:
        return f"By rule {formatted(row.entry)} ({row.how})"
    return f"Report only ({row.how})" if row.how else "Report only"


def _together(rows_of_check: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a check by name; worst and median become one where they are equal."""
    equal = grouped(
        ((REDUCED.sub("", row.metric), row.entry, row.kind, row.how, row.sources), row)
        for row in rows_of_check
    )
    for (stem, *_), (first, *others) in equal.items():
        yield f"{stem}_*" if others else first.metric, first


def _source(source: Source) -> str:
    """Return the document of a source, with the system and the versions that it measured."""
    if not source.system:
        return source.title
    versions = listed(f"{RUNTIME_LABELS[name]} {version}" for name, version in source.versions)
    known = f", measured with {versions}" if versions else ", versions not stated"
    inferred = " (inferred)" if source.inferred else ""
    whose = "acceptance limit of" if source.limit else "of"
    return f"{source.title} ({whose} {source.system}{inferred}{known})"


def _totals(shown: Sequence[Row]) -> Iterator[str]:
    kinds = Counter(row.kind for row in shown)
    gating = sum(number for kind, number in kinds.items() if kind not in (REPORT_ONLY, MISSING))
    # Only a rehearsal and a site with its own limits have these: docs/limits.md.
    rare = {kind for kind in (SIMULATED, "site") if not kinds[kind]}
    each = listed(f"{kinds[kind]} {word}" for kind, word in _KINDS.items() if kind not in rare)
    bare = sum(row.kind == REPORT_ONLY and not row.how for row in shown)
    yield (
        f"{count(len(shown), 'metric')}: {gating} with a limit ({each}), {kinds[REPORT_ONLY]} "
        f"report only ({bare} without a reason), {kinds[MISSING]} without a reference."
    )
    missing = (row for row in shown if row.kind == MISSING)
    yield from (f"{row.check} {row.metric} on {row.partition} has no reference." for row in missing)
