"""The rows of nccl-tests and rccl-tests: parsed from the right, and checked for consistency."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabricheck.core.lines import Line, Printed, agree, printed

_GROUP = ("time", "algbw", "busbw", "#wrong")
_NOT_VERIFIED = "N/A"
_LEFT = ("size", "count", "type", "redop", "root")
_WHOLE = re.compile(r"\d+")
_ROOT = re.compile(r"-1|\d+")
_REDOPS = ("none", "sum", "prod", "max", "min", "avg", "mulsum")

#: Bytes of an element, by the names of both tools and of their older versions.
ELEMENT_BYTES = {
    **dict.fromkeys(("int8", "uint8", "char"), 1),
    **dict.fromkeys(("f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "int", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


@dataclass(frozen=True)
class Collective:
    """How a collective counts bus bandwidth and sizes.

    steps, per_rank: busbw is algbw * steps * (n - 1) / n where ``per_rank``, else algbw, for n
    ranks: see PERFORMANCE.md of nccl-tests. divided: whether the elements are divided among the
    ranks; ``count`` is then one rank's. rooted: whether one rank sends to, or receives from, all
    others. in_place: whether the tool verifies the data of one buffer for both.
    """

    steps: int
    per_rank: bool
    divided: bool
    rooted: bool = False
    in_place: bool = True

    def factor(self, ranks: int) -> float:
        """Return busbw divided by algbw for a number of ranks."""
        return self.steps * (ranks - 1) / ranks if self.per_rank else 1.0


#: The supported collectives; ``<name>_perf`` is the program.
COLLECTIVES = {
    "all_reduce": Collective(2, True, False),
    "all_gather": Collective(1, True, True),
    "reduce_scatter": Collective(1, True, True),
    "broadcast": Collective(1, False, False, rooted=True),
    "reduce": Collective(1, False, False, rooted=True),
    # Not a collective: each rank sends to the next one.
    "sendrecv": Collective(1, False, False, in_place=False),
}


@dataclass(frozen=True)
class Timing:
    """One placement of one size: time in us, bus bandwidth in GB/s."""

    time_us: float
    busbw: float


@dataclass(frozen=True)
class NcclRow:
    """One size, with data found right.

    size: in bytes, as the tool counts it: of all ranks together where they share it. out_of_place,
    in_place: ``None`` where that placement did not run, or the tool does not verify it.
    """

    size: int
    datatype: str
    out_of_place: Timing | None
    in_place: Timing | None


def columns_of(line: Line) -> tuple[str, ...]:
    """Return the columns after size, count, type, redop and root: four for each placement.

    :raises GarbledOutput: for any other columns.
    """
    words = tuple(line.text.lstrip("#").split())
    groups = words[len(_LEFT) :]
    if words[: len(_LEFT)] != _LEFT or groups not in (_GROUP, 2 * _GROUP):
        raise line.garbled(
            f"the columns must be {' '.join(_LEFT)} and once or twice {' '.join(_GROUP)} (those "
            "of -C, -I, of time stamps and of versions before #wrong are not supported)"
        )
    return groups


def row_of(
    line: Line, collective: str, ranks: int, columns: tuple[str, ...], requested: int
) -> tuple[NcclRow, tuple[str, ...]]:
    """Parse one row, from the right: redop and root may be empty.

    :returns: the row, and what all rows of a scan share: data type, reduction and root.

    :param columns: as :func:`columns_of` returned them.
    :param requested: the size that was requested, in bytes.
    :raises GarbledOutput: when it is damaged, contradicts itself, or has another size.
    :raises OtherRunError: when its data type is unknown, or its data were not verified.
    :raises WrongDataError: when values were wrong.
    """
    words = line.words
    left, right = words[: -len(columns)], words[-len(columns) :]
    if not 3 <= len(left) <= len(_LEFT) or not all(_WHOLE.fullmatch(word) for word in left[:2]):
        raise line.garbled(f"'{line.text.strip()}' is not a row of the table")
    size, count, datatype = int(left[0]), int(left[1]), left[2]
    _redop_and_root(left[3:], collective, ranks, line)
    _right_size(size, count, datatype, collective, ranks, requested, line)
    apart, together = right[: -len(_GROUP)], right[-len(_GROUP) :]
    out_of_place = _timing(apart, size, collective, ranks, line) if apart else None
    in_place = None
    if not apart or COLLECTIVES[collective].in_place or together[-1] != _NOT_VERIFIED:
        in_place = _timing(together, size, collective, ranks, line)
    return NcclRow(size, datatype, out_of_place, in_place), tuple(left[2:])


def _redop_and_root(words: list[str], collective: str, ranks: int, line: Line) -> None:
    """Refuse an invalid reduction or root for this collective; each may be left out."""
    rest = list(words)
    root = int(rest.pop()) if rest and _ROOT.fullmatch(rest[-1]) else None
    if rest and rest[-1] in _REDOPS:
        rest.pop()
    rooted = COLLECTIVES[collective].rooted
    if rest or (root not in range(ranks) if rooted else root not in (None, -1)):
        raise line.garbled(
            f"'{' '.join(words)}' is not a reduction and root of {collective} on {ranks} ranks"
        )


def _right_size(
    size: int, count: int, datatype: str, collective: str, ranks: int, requested: int, line: Line
) -> None:
    """Check size and count against each other and against the requested size."""
    if datatype not in ELEMENT_BYTES:
        raise line.other_run(f"'{datatype}' is not a known data type")
    element = ELEMENT_BYTES[datatype]
    divided = COLLECTIVES[collective].divided
    if count * element * (ranks if divided else 1) != size:
        raise line.garbled(f"{count} elements of {datatype} for {ranks} ranks are not {size} B")
    # Where ranks share a size, it is rounded down to align each rank's part: to 16 bytes in new
    # versions, to 4 elements in old ones.
    rounding = ranks * max(16, 4 * element) if divided else element
    if not requested - rounding < size <= requested:
        raise line.garbled(f"the row of {size} B is in the place of {requested} B")


def _timing(words: list[str], size: int, collective: str, ranks: int, line: Line) -> Timing:
    time, algbw, busbw = (
        _number(word, name, line) for word, name in zip(words[:3], _GROUP[:3], strict=True)
    )
    if words[3] == _NOT_VERIFIED:
        reason = f"#wrong of {size} B is N/A, so the data were not verified (-c 1)"
        raise line.other_run(reason)
    if words[3] != "0":
        if _number(words[3], "#wrong", line).value > 0:
            raise line.wrong_data(f"{words[3]} values of {collective} with {size} B are wrong")
        raise line.garbled(f"'{words[3]}' (#wrong) is not a count")
    if time.value <= 0:
        raise line.garbled(f"'{words[0]}' (time) is not positive")
    # Bytes per us are 1e-3 GB/s.
    by_time = size / time.high * 1e-3, size / max(time.low, time.value / 2) * 1e-3
    if not agree((algbw.low, algbw.high), by_time):
        raise line.garbled(f"algbw is {words[1]} GB/s, which contradicts {size} B in {words[0]} us")
    factor = COLLECTIVES[collective].factor(ranks)
    if not agree((busbw.low, busbw.high), (algbw.low * factor, algbw.high * factor)):
        raise line.garbled(
            f"busbw is {words[2]} GB/s, but {words[1]} GB/s of {collective} on {ranks} ranks "
            f"give {algbw.value * factor:.2f}"
        )
    return Timing(time.value, busbw.value)


def _number(text: str, column: str, line: Line) -> Printed:
    number = printed(text)
    if number is None:
        raise line.garbled(f"'{text}' ({column}) is not a number")
    return number
