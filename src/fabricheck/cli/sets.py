"""`fabricheck site sets`: every check in a line, and the sets with their times."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.core import amounts, show
from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import enumerated, listed
from fabricheck.judge import set_times
from fabricheck.judge.coverage import checks_folders
from fabricheck.judge.set_times import Sets, Took
from fabricheck.references import listing
from fabricheck.references.listing import ListedCheck
from fabricheck.references.published import folder
from fabricheck.references.stated import references_in
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session, read_report
from fabricheck.site import partitions
from fabricheck.site import sets as rules

_CHECK_HEAD = ("Check", "Exp.", "Program", "Sizes", "Set", "Metrics by limit")
_HEAD = ("Set", "Jobs", "Their limits", "May take", "Took", "In session")


def _set_names(incomplete: str) -> list[str]:
    return [name for name in rules.known() if name.startswith(incomplete)]


@commands.command("site sets")
def sets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SET|RESULTS",
            help="Sets, such as smoke; default: all. Results folders or run reports; default: the "
            "results folder.",
            autocompletion=_set_names,
        ),
    ] = None,
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="System or partition, such as lumi:gpu; default: this machine's.",
            autocompletion=partition_names,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the checks of sets with what they measure and what limits them, and the sets' times.

    The checks come from a dry run on this machine, each a job of its own or a step in an
    allocation. Measured times are those of sessions that ran the whole set on one node
    (docs/reference/sets.md).
    """
    names, results = _asked(words or [])
    took = [time for session in _sessions(results) for time in set_times.took(session)]
    asked = listing.ask(system, checks_folders())
    named = {
        where: partitions.known(where).get("extras", {}).get("references")
        for where in {metrics.partition for metrics in asked}
    }
    checks = listing.checks(asked, references_in(folder()), named, [*rules.known()])
    system_sets = Sets(
        tuple(check for check in checks if not names or names & {*check.sets}),
        tuple(time for time in set_times.times(asked, took) if not names or time.set in names),
    )
    show.result(system_sets, _text(system_sets, names), as_json)


def _asked(words: Sequence[str]) -> tuple[set[str], list[Path]]:
    """Return the names of sets, and the paths of results.

    :raises NotFoundError: when a word is neither, with the sets that are spelt like it.
    """
    names, paths = set(), []
    for word in words:
        if word in rules.known():
            names.add(word)
        elif Path(word).exists() or not word.isalpha():
            paths.append(Path(word))
        else:
            close = difflib.get_close_matches(word, rules.known())
            meant = f"; did you mean {enumerated(close, last='or')}?" if close else "."
            raise NotFoundError(
                f"There is no set and no folder {word}{meant} The sets are {listed(rules.known())}."
            )
    return names, paths


def _sessions(results: Sequence[Path] | None) -> Iterator[Session]:
    if not results:
        try:
            folder = ResultsFolder.default()
        except NotFoundError:
            return  # before the first session the table still lists the checks
        yield from folder.sessions
        return
    for path in results:
        if path.is_dir():
            yield from ResultsFolder(path).sessions
        else:
            yield read_report(path, path.resolve().parent.parent)


def _text(system_sets: Sets, names: Collection[str]) -> Iterator[show.Block]:
    for where, of_partition in groupby(system_sets.sets, key=lambda time: time.partition):
        chosen = list(of_partition)
        about = f"{where}: {_about(where, any(entry.took for entry in chosen))}"
        rows = [
            (entry.set, str(len(entry.checks)), f"{entry.limits_s:g} s",
             "-" if entry.limit_s is None else f"{entry.limit_s:g} s",
             *(_time(entry.took[0]) if entry.took else ("-", "-")))
            for entry in chosen
        ]  # fmt: skip
        yield show.Table(_HEAD, rows, ("Jobs", "Their limits"), above=show.plain(about, "bold"))
        yield ""
        yield _checks([check for check in system_sets.checks if check.partition == where])
        yield ""
    for name in sorted({check.check for check in system_sets.checks} & {*names}):
        yield f"{name} is also a check: fabricheck limits show {name}"
    for name, known in rules.known().items():
        if names and name not in names:
            continue
        yield f"{name} shows {known.shows}; not {known.not_}."
    last = (time.took[0] for time in system_sets.sets if time.took)
    yield from (f"{took.sentence} ({took.session})" for took in last if took.over)


def _about(where: str, measured: bool) -> str:
    known = partitions.known(where)
    simulated = "simulated" in known.get("features", [])
    kind = "simulated" if simulated else "measured" if measured else "not measured"
    return f"{known.get('descr', 'no site of this repository')}; {kind}"


def _time(took: Took) -> tuple[str, str]:
    text = f"{took.seconds:.1f} s"
    if took.simulated_s is not None:
        text += f", {took.simulated_s:.1f} s simulated"
    if took.over:
        text += "; over its limit"
    failed = f", {took.failed} failed" if took.failed else ""
    return text, f"{took.session}, {took.date:%Y-%m-%d}, {took.checks} ran{failed}"


def _checks(checks: Sequence[ListedCheck]) -> show.Table:
    rows = [
        (
            check.check,
            " ".join(check.experiments),
            check.program,
            amounts.sizes(check.sizes),
            check.sets[0] if check.sets else "-",
            listed(f"{number} {kind}" for kind, number in check.limits.items()) or "-",
        )
        for check in checks
    ]
    return show.Table(_CHECK_HEAD, rows, whole=("Check",))
