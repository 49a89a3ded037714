"""The page of what limits the metrics of the set node on each node model (docs/evidence)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fabricheck.core.checkout import ROOT
from fabricheck.core.grouping import grouped
from fabricheck.core.show import markdown
from fabricheck.node import load
from fabricheck.references.entries import requires
from fabricheck.references.listing import RULE, Row
from fabricheck.references.stated import REDUCED

PAGE = ROOT / "docs" / "evidence" / "limits-of-models.md"

#: The site of `site_files.OF_MODELS`.
SITE = "models"

#: What limits a metric, in the order of the columns.
VALUE, PEAK, ITSELF, COUNT = "a value", "a peak", "the node itself", "a count"

#: What stands in for the limit of a metric without one.
WORST, PEERS, BOTH_WAYS, NOTHING = "its worst member", "its peers", "each way alone", "nothing"

_ABOUT = """# Limits of each node model

What limits the metrics of the set `node` on a partition of your own that names the node model
and no set of references ([your site](../site.md)), before it is calibrated. `fabricheck limits
show --system north:gpu` prints the same for your partition, metric by metric. Written by `make
snapshots` from a dry run. **Nothing here ran on an AMD GPU.**

- **a value**: published of this or another such machine, or derived from that.
- **a peak**: a floor, or the time of a collective, from a peak of the node model that is
  published, measured or derived.
- **the node itself**: devices, pairs and ranks are compared with each other, both ways with each
  alone, the end of the session with its begin. It does not show a node that is slow as a whole.
- **a count**: of faults, which must be 0.

A metric without a limit is recorded. Of most of them a companion is limited: the worst member
instead of the median, or the comparison with its peers or with each way alone. Of those in the
last column nothing is required at all.

Where something was measured, a limit can be above what a public health check accepts, and such a
node fails here: copies to an MI300X or MI325X below 48.7 GB/s, of which Azure accepts 48 in a
virtual machine; and copies by an engine between H100 or H200 below 357 GB/s, of which Azure accepts
335 (`tests/references/test_demands.py`).

"""


def page(rows: Sequence[Row]) -> str:
    """Return the page.

    :param rows: of the metrics of the set, on the partitions of the site.
    """
    by_model = grouped((row.partition.removeprefix(f"{SITE}:"), row) for row in rows)
    head = ("node model", "metrics", VALUE, PEAK, ITSELF, COUNT, "without a limit", NOTHING)
    lines = [_ABOUT.rstrip("\n"), "", *markdown(head, [_counts(m, by_model[m]) for m in by_model])]
    for model, of_model in by_model.items():
        lines += ["", f"## {model}", "", f"{load(model).title}.", ""]
        columns = ("check", "metrics without a limit", "because", "limited instead")
        lines += markdown(columns, _without(of_model))
    return "\n".join(lines) + "\n"


def _counts(model: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the row of a model: how many of its metrics are limited by what."""
    grounds = Counter(_ground(row) for row in rows if _is_limited(row))
    without = [row for row in rows if not _is_limited(row)]
    limited = _limited(rows)
    bare = sum(_instead(row, limited) == NOTHING for row in without)
    numbers = (*(grounds[ground] for ground in (VALUE, PEAK, ITSELF, COUNT)), len(without), bare)
    return (f"[`{model}`](#{model})", str(len(rows)), *map(str, numbers))


def _without(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the metrics without a limit, those of a check with one reason together."""
    limited = _limited(rows)
    alike = grouped(
        ((row.check, row.how, _instead(row, limited)), row.metric)
        for row in rows
        if not _is_limited(row)
    )
    for (check, how, instead), metrics in alike.items():
        names = ", ".join(f"`{name}`" for name in _shortened(metrics))
        yield f"`{check}`", names, how.replace("|", "\\|"), instead


def _shortened(metrics: Sequence[str]) -> Iterator[str]:
    for stem, of_stem in grouped((REDUCED.sub("", metric), metric) for metric in metrics).items():
        yield f"{stem}_*" if len(of_stem) > 1 else of_stem[0]


def _limited(rows: Sequence[Row]) -> set[tuple[str, str]]:
    return {(row.check, row.metric) for row in rows if _is_limited(row)}


def _is_limited(row: Row) -> bool:
    return requires(row.entry)


def _ground(row: Row) -> str:
    """Return what a limit rests on."""
    if row.unit == "count":
        return COUNT
    if row.unit == "%":
        return ITSELF
    return PEAK if row.kind == RULE else VALUE


def _instead(row: Row, limited: set[tuple[str, str]]) -> str:
    """Return what limits the same transfers where nothing limits the metric."""
    stem = REDUCED.sub("", row.metric)
    for companion, name in (("worst", WORST), ("alike", PEERS), ("of_single", BOTH_WAYS)):
        if (row.check, f"{stem}_{companion}") in limited:
            return name
    return NOTHING
