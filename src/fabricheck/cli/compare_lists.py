"""A comparison as JSON, with every value, and as a short summary in Markdown."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from fabricheck.core import amounts
from fabricheck.core.nodelists import folded
from fabricheck.judge.comparison.compare import Compared, Comparison
from fabricheck.judge.comparison.keys import Key
from fabricheck.judge.comparison.pairing import Named
from fabricheck.results.table import Series

Item = TypeVar("Item")

#: Up to this number of nodes, all are shown, whatever the result.
MOST_NODES = 4

#: The most groups of values per judgement in Markdown.
MOST_LINES = 10

#: The most differing settings, and characters of each value, in Markdown.
MOST_DIFFERENCES = 15
LONGEST = 60

#: Characters shown of a failed check's reason.
LONGEST_REASON = 160

#: The heading of a comparison whose two sides have different clocks.
INFORMS = "measured against simulated: informs only, judges nothing"


def as_json(a: Named, b: Named, found: Sequence[Comparison], code: int) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {
        "a": {"name": a.name, "title": a.title, "software": list(a.says)},
        "b": {"name": b.name, "title": b.title, "software": list(b.says)},
        "exit_code": code,
        "partitions": [_comparison(one) for one in found],
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "a": {"partition": one.a.where, "node": one.a.node, "clock": one.a.clock},
        "b": {"partition": one.b.where, "node": one.b.node, "clock": one.b.clock},
        "informs_only": one.informs,
        "differs": [asdict(difference) for difference in one.differs],
        "causes_in_a": list(one.causes_in_a),
        "causes_in_b": list(one.causes_in_b),
        "outcomes": [asdict(outcome) for outcome in one.outcomes],
        **{
            judgement: [_value(value) for value in one.judged(judgement)]
            for judgement in ("worse", "better", "undetermined", "unchanged")
        },
        "by_chance_at_most": one.by_chance,
        "missing_in_b": [key.columns for key in one.in_a],
        "missing_in_a": [key.columns for key in one.in_b],
        "checks_missing_in_b": list(one.checks_in_a),
        "checks_missing_in_a": list(one.checks_in_b),
        "not_comparable": [item.key.columns | {"why": item.why} for item in one.not_comparable],
        "unread": list(one.unread),
    }


def _value(one: Compared) -> dict[str, Any]:
    sides = {
        name: {
            "median": value.median,
            "interval": value.interval,
            "samples": value.count,
            "clock": value.clock,
            "noisy": value.noisy,
        }
        for name, value in (("a", one.a), ("b", one.b))
    }
    decision = one.decision
    return one.key.columns | sides | {
        "ratio": decision.ratio,
        "ratio_interval": None if decision.low is None else [decision.low, decision.high],
        "floor": None if math.isinf(decision.floor) else decision.floor,
        "why": decision.why,
    }  # fmt: skip


@dataclass(frozen=True)
class Alike(Generic[Item]):
    """Values of one check, kind and unit, represented by the first one; ``of`` is their total
    number.

    key: the key of the first one.
    """

    key: Key
    items: tuple[Item, ...]
    of: int


def alike(
    items: Sequence[Item],
    key: Callable[[Item], Key],
    everything: Iterable[Key],
    apart: bool = False,
) -> list[Alike[Item]]:
    """Group items, in the order of their first ones.

    :param key: returns the key of an item.
    :param everything: the set that the groups are part of.
    :param apart: whether each item is a group of its own.
    """
    totals = Counter(map(_group, everything))
    found: dict[tuple[object, ...], list[Item]] = {}
    for number, item in enumerate(items):
        found.setdefault((_group(key(item)), number if apart else None), []).append(item)
    return [
        Alike(first, tuple(some), totals[_group(first)])
        for some in found.values()
        for first in [key(some[0])]
    ]


def _group(key: Key) -> tuple[str, str, str]:
    return key.check, key.kind, key.unit


def groups_of(found: Comparison, judgement: str, apart: bool = False) -> list[Alike[Compared]]:
    """Return the values with a judgement in groups, the worst or the best first."""
    everything = [one.key for one in found.compared]
    return alike(found.judged(judgement), lambda one: one.key, everything, apart)


def missing_in(found: Comparison, side: str, apart: bool = False) -> list[Alike[Key]]:
    """Return the values missing in A or B, except those of checks that are missing completely."""
    some, checks = (
        (found.in_a, found.checks_in_a) if side == "B" else (found.in_b, found.checks_in_b)
    )
    everything = [*(one.key for one in found.compared), *some]
    lacking = [key for key in some if key.check not in checks]
    return alike(lacking, lambda key: key, everything, apart)


def ratio(one: Compared) -> str:
    """Return B over A with its interval, or both counts."""
    decision = one.decision
    if decision.ratio is None:
        return f"{one.a.median:g} to {one.b.median:g}"
    if decision.low is None or decision.high is None:
        return f"{decision.ratio:.3f}"
    if decision.low == decision.high:
        return f"{decision.ratio:.3f} (exact)"
    return f"{decision.ratio:.3f} ({decision.low:.3f}-{decision.high:.3f})"


def where(key: Key) -> str:
    """Return the place and size of one value."""
    row = key.row
    return f"{key.place}, {amounts.size(row.bytes)}" if isinstance(row, Series) else key.place


def words(found: Comparison) -> tuple[str, str]:
    """Return the words for worse and better; neutral ones where nothing is judged."""
    return ("slower", "faster") if found.informs else ("worse", "better")


def cut(reason: str) -> str:
    """Return the beginning of a failed check's reason."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."


def counts(found: Comparison) -> str:
    """Return the number of values of each kind."""
    unchanged = found.judged("unchanged")
    below = sum(one.decision.in_floor for one in unchanged)
    floor = f" ({below} differ by less than their floor)" if below else ""
    results = Counter(one.judgement for one in found.outcomes)
    worse, better = words(found)
    return (
        f"{len(found.judged('worse')) + results['worse']} {worse}, "
        f"{len(found.judged('better')) + results['better']} {better}, "
        f"{len(unchanged)} unchanged{floor}, "
        f"{len(found.judged('undetermined')) + results['undetermined']} undetermined, "
        f"{len(found.in_a)} missing in B, {len(found.in_b)} missing in A, "
        f"{len(found.not_comparable)} not comparable"
    )


def partitions(found: Comparison) -> str:
    """Return which partitions are compared, and by which clock."""
    a, b = (f"{part.name or 'documents'}, {part.clock}" for part in (found.a, found.b))
    text = f"{a}, against {b}" if a != b else a
    return f"{text} ({INFORMS})" if found.informs else text


def split(found: Sequence[Comparison], show_all: bool = False) -> tuple[list[Comparison], str]:
    """Split comparisons into those to show one by one, and the nodes of the others.

    With many nodes those without anything worse, better or missing are left out.
    """
    if show_all or len(found) <= MOST_NODES:
        return list(found), ""
    shown = [one for one in found if one.changed]
    quiet = [one for one in found if not one.changed]
    return shown, folded(dict.fromkeys(one.a.node or one.a.where for one in quiet))


def as_markdown(a: Named, b: Named, found: Sequence[Comparison]) -> str:
    """Return the text for a comment on a merge request."""
    lines = [f"A: {_plain(a.title)}  ", f"B: {_plain(b.title)}", ""]
    shown, unchanged = split(found)
    if unchanged:
        lines += [f"Unchanged: {_plain(unchanged)}.", ""]
    for one in shown:
        lines += [f"**{_plain(partitions(one))}**: {counts(one)}.", ""]
        lines += _differs(one)
        causes = [f"- {letter}: {_plain(said)}" for letter, said in causes_of(one)]
        lines += [*causes, ""] if causes else []
        judgements = ("worse", "better", "undetermined")
        rows = [*_outcomes(one), *(row for some in judgements for row in _rows(one, some))]
        if rows:
            lines += ["| | Check | What | Where | A | B | B/A |", "|---|---|---|---|---|---|---|"]
            lines += [*rows, ""]
        missing = missing_in(one, "B")
        lines += [
            f"- missing in B: {_plain(some.key.check)}, {_plain(some.key.kind)}: "
            f"{len(some.items)} of {some.of}"
            for some in missing[:MOST_LINES]
        ]
        left = len(missing) - MOST_LINES
        lines += [f"- and {left} more groups missing in B"] if left > 0 else []
        lines += [f"- missing in B: check {_plain(name)}" for name in one.checks_in_a[:MOST_LINES]]
        lines += [f"- not read: {_plain(sentence)}" for sentence in one.unread]
    return "\n".join(lines).rstrip()


def causes_of(one: Comparison) -> list[tuple[str, str]]:
    """Return the letter of the side and the sentence of each cause in a state."""
    sides = (("A", one.causes_in_a), ("B", one.causes_in_b))
    return [(letter, said) for letter, causes in sides for said in causes]


def _differs(one: Comparison) -> list[str]:
    if not one.differs:
        return []
    said = [
        f"{_plain(item.what)} {_short(item.a)} -> {_short(item.b)}"
        for item in one.differs[:MOST_DIFFERENCES]
    ]
    left = len(one.differs) - MOST_DIFFERENCES
    return ["Differs: " + "; ".join(said) + (f"; and {left} more." if left > 0 else "."), ""]


def _short(values: Sequence[str]) -> str:
    text = ", ".join(values) or "none"
    return _plain(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _outcomes(one: Comparison) -> Iterator[str]:
    for item in one.outcomes:
        reason = _plain(cut(item.reason))
        states = f"{item.before} | {item.after}"
        yield f"| {item.judgement} | {_plain(item.check)} | result | {reason} | {states} | |"


def _rows(found: Comparison, judgement: str) -> Iterator[str]:
    # Undetermined values that changed beyond noise are listed; for the others their number is
    # enough.
    some = [one for one in groups_of(found, judgement) if _changed(one.items[0])]
    word = dict(zip(("worse", "better"), words(found), strict=True)).get(judgement, judgement)
    for one in some[:MOST_LINES]:
        first = one.items[0]
        count = f"{len(one.items)} of {one.of}"
        yield (
            f"| {word} | {_plain(one.key.check)} | {_plain(one.key.kind)}, {count} | "
            f"{_plain(where(one.key))} | {amounts.number(first.a.median)} | "
            f"{amounts.number(first.b.median)} {one.key.unit} | {ratio(first)} |"
        )
    if len(some) > MOST_LINES:
        yield f"| {word} | and {len(some) - MOST_LINES} more groups | | | | | |"


def _changed(one: Compared) -> bool:
    return one.decision.judgement != "undetermined" or one.decision.low is not None


def _plain(text: str) -> str:
    """Return a document's text as one line of literal Markdown."""
    for sign in "\\`*_|[]#":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(html.escape(text, quote=False).split())
