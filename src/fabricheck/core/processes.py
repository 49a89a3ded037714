"""Work shared among processes, one for each core."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

Share = TypeVar("Share")
Told = TypeVar("Told")
Joined = TypeVar("Joined")
Made = TypeVar("Made")

#: The work on one share: it yields its findings, is sent the joined findings, and returns a result.
Work = Callable[[Share], Generator[Told, Joined, Made]]


def share_out(
    shares: Sequence[Share],
    work: Work[Share, Told, Joined, Made],
    join: Callable[[list[Told]], Joined],
) -> tuple[Joined, list[Made]]:
    """Work on each share in its own process; a single share is worked on in this process.

    Yielded and returned values are pickled. The shares are not, because processes are forked. If a
    process is killed, this one does its work.

    :param join: combines the values that all shares yielded into the value that each one is sent.
    :returns: the joined value, and the value that each share returned.
    """
    if len(shares) == 1:
        own = work(shares[0])
        joined = join([next(own)])
        return joined, [_made(own, joined)]
    each = [_Process(work, share) for share in shares]
    joined = join([one.told() for one in each])
    for one in each:
        one.send(joined)
    return joined, [one.made(joined) for one in each]


def _made(work: Generator[Told, Joined, Made], joined: Joined) -> Made:
    try:
        work.send(joined)
    except StopIteration as end:
        made: Made = end.value
        return made
    raise AssertionError("the work yielded twice")


class _Process(Generic[Share, Told, Joined, Made]):
    """The work on one share in another process, or in this one if that is killed."""

    def __init__(self, work: Work[Share, Told, Joined, Made], share: Share) -> None:
        self.work, self.share = work, share
        self.here: Generator[Told, Joined, Made] | None = None
        forked = multiprocessing.get_context("fork")
        self.pipe, end = forked.Pipe()
        forked.Process(target=_talk, args=(work, share, end), daemon=True).start()
        end.close()

    def told(self) -> Told:
        try:
            told: Told = self.pipe.recv()
            return told
        except EOFError:
            return self._begin_here()

    def send(self, joined: Joined) -> None:
        if self.here is None:
            with suppress(BrokenPipeError):  # seen when nothing is made
                self.pipe.send(joined)

    def made(self, joined: Joined) -> Made:
        if self.here is None:
            try:
                made: Made = self.pipe.recv()
                return made
            except EOFError:
                self._begin_here()
        assert self.here is not None
        return _made(self.here, joined)

    def _begin_here(self) -> Told:
        self.here = self.work(self.share)
        return next(self.here)


def _talk(work: Work[Share, Told, Joined, Made], share: Share, pipe: Connection) -> None:
    # Whatever ended the other process, this one does its work and reports any error.
    with suppress(BaseException):
        own = work(share)
        pipe.send(next(own))
        pipe.send(_made(own, pipe.recv()))
