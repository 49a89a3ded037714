"""What a comparison shows, as lines and tables; worse values come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from fabricheck.cli.results import titled
from fabricheck.core import amounts
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.core.show import Block, Table, cut, listed
from fabricheck.judge.comparison.compare import Compared, Comparison, Side, Unmatched
from fabricheck.judge.comparison.judging import Row
from fabricheck.results.rows import Metric

Item = TypeVar("Item", bound=Compared | Unmatched)

#: Up to this number of nodes, all are shown, whatever the result.
MOST_NODES = 4

#: The most rows of one table without --all; the most differing values, and their most characters.
MOST_ROWS = 15
MOST_VALUES = 3
LONGEST = 39

#: Characters shown of a failed check's reason without --all.
LONGEST_REASON = 163

#: What is counted of every comparison, beside worse and better values.
_OTHER_COUNTS = ("unchanged", "undetermined", "missing in B", "missing in A", "not comparable")

#: The heading of a comparison whose two sides have different clocks.
INFORMS = "measured against simulated: informs only, judges nothing"


def blocks(a: Side, b: Side, comparisons: Sequence[Comparison], show_all: bool) -> Iterator[Block]:
    """Yield the totals, then lines and tables; an empty line is before each table of its own.

    With many nodes those without anything worse, better or missing are named only.
    """
    yield f"{_counts(comparisons)}."
    for letter, side in (("A", a), ("B", b)):
        yield f"{letter}: {side.name}, {titled(side.results)}"
        if a.says != b.says:
            yield from (f"   {sentence}" for sentence in side.says)
    whole = show_all or len(comparisons) <= MOST_NODES
    for comparison in comparisons:
        if whole or comparison.changed:
            yield from ("", _partitions(comparison))
            yield from _of_a_node(comparison, show_all, several=len(comparisons) > 1)
    unchanged = [comparison for comparison in comparisons if not (whole or comparison.changed)]
    if unchanged:
        nodes = folded(
            dict.fromkeys(comparison.a.node or comparison.a.where for comparison in unchanged)
        )
        yield from ("", f"Unchanged, shown with --all: {nodes}.")
    if not show_all:
        yield "The first value of each group is shown; --all shows every one."


def _of_a_node(comparison: Comparison, show_all: bool, several: bool) -> Iterator[Block]:
    """Yield what differs, worse values first, and, if there are several nodes, its totals."""
    differs = [
        (item.what, _values(item.a, show_all), _values(item.b, show_all))
        for item in comparison.differs
    ]
    yield Table(("Differs", "A", "B"), differs, most=None if show_all else MOST_ROWS, rest="--all")
    for letter, causes in (("A", comparison.causes_in_a), ("B", comparison.causes_in_b)):
        yield from (f"In {letter}: {cause}" for cause in causes)
    results = [
        (item.check, item.before, item.after, item.judgement,
         item.reason if show_all else cut(item.reason, LONGEST_REASON))
        for item in sorted(comparison.outcomes, key=lambda item: not item.worse)
    ]  # fmt: skip
    yield Table(("Result", "A", "B", "", "Reason"), results, above="")
    worse, better = _words(comparison)
    yield _judged(comparison, comparison.worse, f"{worse.capitalize()} in B", show_all)
    yield _judged(comparison, comparison.better, f"{better.capitalize()} in B", show_all)
    for side, values, checks in (
        ("B", comparison.missing_in_b, comparison.checks_missing_in_b),
        ("A", comparison.missing_in_a, comparison.checks_missing_in_a),
    ):
        if checks:
            yield from ("", f"Checks missing in {side}: {listed(checks)}")
        lacking = [value for value in values if value.columns["check"] not in checks]
        yield _groups(f"Missing in {side}", lacking, comparison.compared, {}, show_all)
    why = {"A and B": lambda alike: alike[0].why}
    yield _groups("Not comparable", comparison.not_comparable, comparison.compared, why, show_all)
    yield _judged(comparison, comparison.undetermined, "Undetermined", show_all)
    if several:
        yield from ("", f"{_counts([comparison])}.")
    if comparison.by_chance_at_most:
        yield (
            f"If nothing had changed, at most {comparison.by_chance_at_most:.2g} of these series "
            "would differ by chance."
        )


def _values(values: Sequence[str], show_all: bool) -> str:
    if show_all:
        return listed(values) or "none"
    return listed([cut(value, LONGEST) for value in values], MOST_VALUES) or "none"


def _groups(
    title: str,
    items: Sequence[Item],
    others: Iterable[Compared],
    cells: Mapping[str, Callable[[Sequence[Item]], str]],
    show_all: bool,
) -> Table:
    """Return a table of values: of a check and a description together, or each by itself.

    :param others: the values of which these are some, or beside which they stand.
    :param cells: the further columns, and what each says of the values of a row.
    """
    totals = Counter(map(_group, {item.row for item in others} | {item.row for item in items}))
    groups = grouped(
        (number if show_all else _group(item.row), item) for number, item in enumerate(items)
    )
    rows: list[list[str]] = []
    for alike in groups.values():
        row = alike[0].row
        check, description, unit = _group(row)
        share = "1" if show_all else f"{len(alike)}/{totals[check, description, unit]}"
        rows.append(
            [
                check,
                f"{description}, {unit}",
                share,
                _place(row),
                *(cell(alike) for cell in cells.values()),
            ]
        )
    columns = ("Check", title, "n", "First of them", *cells)
    most = None if show_all else MOST_ROWS
    return Table(columns, rows, ("n", "A", "B"), most=most, rest="--all", above="")


def _group(row: Row) -> tuple[str, str, str]:
    return row.check_row.check or "", row.description, row.unit


def _judged(
    comparison: Comparison, values: Sequence[Compared], title: str, show_all: bool
) -> Table:
    cells: dict[str, Callable[[Sequence[Compared]], str]] = {
        "A": lambda alike: amounts.number(alike[0].a.median),
        "B": lambda alike: amounts.number(alike[0].b.median),
    }
    if values is comparison.undetermined:
        cells["Why"] = lambda alike: alike[0].decision.why + _noisy(alike)
    else:
        cells["B/A, at least 95 %"] = lambda alike: (
            _ratio(alike[0]) + _noisy(alike) + _rerouted(alike)
        )
    return _groups(title, values, comparison.compared, cells, show_all)


def _noisy(items: Sequence[Compared]) -> str:
    count = sum(item.a.noisy or item.b.noisy for item in items)
    if not count:
        return ""
    return ", noisy" if len(items) == 1 else f", {count} noisy"


def _rerouted(items: Sequence[Compared]) -> str:
    count = sum(item.rerouted for item in items)
    if not count:
        return ""
    return ", another route" if len(items) == 1 else f", {count} over another route"


def _ratio(compared: Compared) -> str:
    """Return B over A with its interval, or both counts."""
    decision = compared.decision
    if decision.ratio is None:
        return f"{compared.a.median:g} to {compared.b.median:g}"
    interval = ""
    if decision.low is not None and decision.high is not None:
        exact = decision.low == decision.high
        interval = " (exact)" if exact else f" ({decision.low:.3f}-{decision.high:.3f})"
    # Of a simulated value a change counts that three digits do not show.
    unseen = decision.judgement in ("better", "worse") and f"{decision.ratio:.3f}" == "1.000"
    ratio = f"{decision.ratio:.7f}" if unseen else f"{decision.ratio:.3f}"
    return f"{ratio}{interval}"


def _place(row: Row) -> str:
    """Return the place of one value, and of a series its size, and its block and variants."""
    if isinstance(row, Metric):
        return row.place
    block = [f"block {row.block_size}"] if row.block_size else []
    typed = [row.datatype] if row.datatype and row.experiment == "E12" else []
    words = [*block, row.variant, *typed, "in place" if row.in_place else ""]
    return listed(filter(None, (row.place, *words, amounts.size(row.bytes))))


def _words(comparison: Comparison) -> tuple[str, str]:
    """Return the words for worse and better; neutral ones where nothing is judged."""
    return ("slower", "faster") if comparison.informs_only else ("worse", "better")


def _counts(comparisons: Sequence[Comparison]) -> str:
    """Return the number of values of each kind, of all nodes and partitions together."""
    numbers = Counter[str]()
    in_floor = rerouted = 0
    for comparison in comparisons:
        worse, better = _words(comparison)
        numbers += Counter(
            {
                worse: len(comparison.worse),
                better: len(comparison.better),
                "unchanged": len(comparison.unchanged),
                "undetermined": len(comparison.undetermined),
                "missing in B": len(comparison.missing_in_b),
                "missing in A": len(comparison.missing_in_a),
                "not comparable": len(comparison.not_comparable),
            }
        )
        words = {"worse": worse, "better": better, "undetermined": "undetermined"}
        for outcome in comparison.outcomes:
            numbers[words[outcome.judgement]] += 1
        in_floor += sum(compared.decision.in_floor for compared in comparison.unchanged)
        rerouted += sum(compared.rerouted for compared in comparison.better)
    counted = [
        *dict.fromkeys(word for comparison in comparisons for word in _words(comparison)),
        *_OTHER_COUNTS,
    ]
    each = [f"{numbers[word]} {word}" for word in counted]
    if rerouted:
        better = _words(comparisons[0])[1]
        each[counted.index(better)] += f" ({rerouted} of them over another route)"
    if in_floor:
        each[counted.index("unchanged")] += f" ({in_floor} differ by less than their floor)"
    return listed(each)


def _partitions(comparison: Comparison) -> str:
    """Return which partitions are compared, and by which clock."""
    a, b = (f"{part.name or 'documents'}, {part.clock}" for part in (comparison.a, comparison.b))
    text = f"{a}, against {b}" if a != b else a
    return f"{text} ({INFORMS})" if comparison.informs_only else text
