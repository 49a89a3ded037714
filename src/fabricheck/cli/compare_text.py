"""The tables of a comparison as text; worse values come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from fabricheck.cli import output
from fabricheck.cli.compare_lists import (
    Alike,
    alike,
    causes_of,
    counts,
    cut,
    groups_of,
    missing_in,
    partitions,
    ratio,
    split,
    where,
    words,
)
from fabricheck.core import amounts
from fabricheck.core.text import first_names
from fabricheck.judge.comparison.compare import Compared, Comparison
from fabricheck.judge.comparison.pairing import Named

Item = TypeVar("Item")

#: The most rows of one list without --all.
MOST_ROWS = 15

#: The most differing values, and their most characters, without --all.
MOST_VALUES = 3
LONGEST = 36


def show(a: Named, b: Named, found: Sequence[Comparison], show_all: bool) -> None:
    """Write the comparison to standard output."""
    console = output.console()
    for letter, side in (("A", a), ("B", b)):
        console.print(f"{letter}: {side.title}")
        if a.says != b.says:
            for sentence in side.says:
                console.print(f"   {sentence}")
    shown, unchanged = split(found, show_all)
    for one in shown:
        console.print()
        console.print(partitions(one))
        _differs(console, one, show_all)
        for letter, said in causes_of(one):
            console.print(output.plain(f"In {letter}: {said}"))
        _outcomes(console, one, show_all)
        for judgement, word in zip(("worse", "better"), words(one), strict=True):
            _judged(console, one, judgement, f"{word.capitalize()} in B", show_all)
        _checks(console, "Checks missing in B", one.checks_in_a)
        _missing(console, "B", one, show_all)
        _checks(console, "Checks missing in A", one.checks_in_b)
        _missing(console, "A", one, show_all)
        _not_comparable(console, one, show_all)
        _judged(console, one, "undetermined", "Undetermined", show_all)
        console.print()
        console.print(f"{counts(one)}.")
        _by_chance(console, one)
    if unchanged:
        console.print()
        console.print(output.plain(f"Unchanged, shown with --all: {unchanged}."))
    if not show_all:
        console.print("The first value of each group is shown; --all shows every one.")


def _by_chance(console: Console, one: Comparison) -> None:
    if one.by_chance:
        console.print(
            f"If nothing had changed, at most {one.by_chance:.2g} of these series would differ "
            "by chance."
        )


def _differs(console: Console, one: Comparison, show_all: bool) -> None:
    if not one.differs:
        return
    rows = one.differs if show_all else one.differs[:MOST_ROWS]
    cells = [(item.what, _values(item.a, show_all), _values(item.b, show_all)) for item in rows]
    output.print_table(("Differs", "A", "B"), cells)
    _left(console, len(one.differs) - len(rows))


def _values(values: Sequence[str], show_all: bool) -> str:
    if show_all or not values:
        return ", ".join(values) or "none"
    some = [one if len(one) <= LONGEST else f"{one[:LONGEST]}..." for one in values]
    return first_names(some, MOST_VALUES)


def _left(console: Console, count: int) -> None:
    if count > 0:
        console.print(f"and {count} more: --all")


def _outcomes(console: Console, one: Comparison, show_all: bool) -> None:
    if not one.outcomes:
        return
    rows = [
        (
            item.check,
            item.before,
            item.after,
            item.judgement,
            item.reason if show_all else cut(item.reason),
        )
        for item in sorted(one.outcomes, key=lambda item: not item.worse)
    ]
    console.print()
    output.print_table(("Result", "A", "B", "", "Reason"), rows)


def _judged(
    console: Console, found: Comparison, judgement: str, title: str, show_all: bool
) -> None:
    groups = groups_of(found, judgement, show_all)
    if not groups:
        return
    right = ("n", "A", "B")
    last = "Why" if judgement == "undetermined" else "B/A, at least 95 %"
    table = output.table("Check", title, "n", "First of them", "A", "B", "Unit", last, right=right)
    for one in _rows(groups, show_all):
        first = one.items[0]
        medians = (amounts.number(first.a.median), amounts.number(first.b.median))
        why = first.decision.why if judgement == "undetermined" else ratio(first)
        count = "1" if show_all else f"{len(one.items)}/{one.of}"
        noisy = _noisy(one.items)
        key = one.key
        cells = (key.check, key.kind, count, where(key), *medians, key.unit, why + noisy)
        table.add_row(*map(output.plain, cells))
    _listed(console, table, len(groups), show_all)


def _noisy(items: Sequence[Compared]) -> str:
    count = sum(one.a.noisy or one.b.noisy for one in items)
    if not count:
        return ""
    return ", noisy" if len(items) == 1 else f", {count} noisy"


def _checks(console: Console, title: str, names: Sequence[str]) -> None:
    if names:
        console.print()
        console.print(output.plain(f"{title}: {', '.join(names)}"))


def _missing(console: Console, side: str, found: Comparison, show_all: bool) -> None:
    groups = missing_in(found, side, show_all)
    table = output.table("Check", f"Missing in {side}", "n", "First of them")
    for one in _rows(groups, show_all):
        table.add_row(*map(output.plain, _cells(one, show_all)))
    _listed(console, table, len(groups), show_all)


def _not_comparable(console: Console, found: Comparison, show_all: bool) -> None:
    everything = [
        *(one.key for one in found.compared),
        *(one.key for one in found.not_comparable),
    ]
    groups = alike(found.not_comparable, lambda one: one.key, everything, show_all)
    table = output.table("Check", "Not comparable", "n", "First of them", "A and B")
    for one in _rows(groups, show_all):
        table.add_row(*map(output.plain, (*_cells(one, show_all), one.items[0].why)))
    _listed(console, table, len(groups), show_all)


def _rows(groups: Sequence[Item], show_all: bool) -> Sequence[Item]:
    return groups if show_all else groups[:MOST_ROWS]


def _cells(one: Alike[Any], show_all: bool) -> tuple[str, ...]:
    count = "1" if show_all else f"{len(one.items)}/{one.of}"
    key = one.key
    return (key.check, f"{key.kind}, {key.unit}", count, where(key))


def _listed(console: Console, table: Table, count: int, show_all: bool) -> None:
    if count:
        console.print()
        console.print(table)
        _left(console, 0 if show_all else count - MOST_ROWS)
