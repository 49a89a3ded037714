"""Marks: reasons why a value is a weak ground for a limit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core.vocabulary import RUNTIME_LABELS
from fabricheck.references.published import ACCEPTANCE, Record

ANOTHER_VERSION = "another version"
MAXIMUM = "maximum"
ONE_SESSION = "one session"


@dataclass(frozen=True, order=True)
class Mark:
    """A reason, as one word and in full."""

    word: str
    why: str


def of(
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
    if any(one.is_maximum for one in records):
        yield Mark(MAXIMUM, "the highest over sizes or repeats, compared with what each reaches")
    # A site that accepts nodes by a value has measured many; no other document reports two
    # sessions.
    measured = [one for one in records if one.kind == "measured" and one.role != ACCEPTANCE]
    titles = dict.fromkeys(one.title for one in measured)
    if len(titles) == 1 and len(measured) == len(records):
        yield Mark(ONE_SESSION, "its document reports one session")
