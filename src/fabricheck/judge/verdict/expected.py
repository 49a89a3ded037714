"""What chose the checks of sessions taken together, and which of the site's checks that means."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricheck.core.errors import FabricheckError
from fabricheck.site import partitions
from fabricheck.site.sets import Choice


def choice_of(choices: Iterable[Choice]) -> Choice:
    """Return what chose the checks of all sessions: the set that all of them are the whole of.

    A job of a pipeline runs one check by its name: of several of these no set is the whole.
    """
    each = dict.fromkeys(choices)
    if len(each) == 1:
        return next(iter(each))
    return Choice(tuple(dict.fromkeys(word for one in each for word in one.words)), None)


def checks(where: str, name: str | None) -> tuple[str, ...]:
    """Return the checks that the site expects in a partition, by class, of those of a set.

    None of a partition of no site of this repository, and none where no set is to be whole.

    :param where: ``system:partition``. name: the set.
    """
    listed: Mapping[str, Sequence[str]] = partitions.extras(where).get("expected_checks", {})
    return tuple(check for check, tags in listed.items() if name in tags)


def unknown(wheres: Iterable[str], name: str | None) -> Iterator[str]:
    """Yield a sentence for each partition of which nothing says which checks it expects.

    :param wheres: ``system:partition`` each. name: the set; of none nothing is expected.
    """
    if name is None:
        return
    for where in wheres:
        if not partitions.known(where):
            why = _why_no_site() or "No site file has it."
            yield f"Nothing says which checks and devices {where} should have. {why}"
        elif "expected_checks" not in partitions.extras(where):
            yield (
                f"Nothing lists the checks that {where} should have: write the list beside its "
                "site file, with 'fabricheck sets --write'."
            )


@functools.cache
def _why_no_site() -> str | None:
    """Return why no site is known; None where they are."""
    if partitions.known_sites() is not None:
        return None
    try:
        partitions.require_sites()
    except FabricheckError as error:
        # It may need its machine: a variable that is set there alone, for one.
        return str(error)
    return None
