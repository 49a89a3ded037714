"""Nodes of eight healthy devices with the deviations of pageable copies that were recorded.

The sessions are of two and of four H200 of virtual machines whose host others use: the noisiest on
record. No session tells which device was behind in which direction, so both ends are drawn: all
ways of a device deviate in the same sense, or each for itself.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabricheck.references import rules
from limits.drawn_sessions import OUTPUTS

#: The ways of a copy, and the checks that measure them of each device.
WAYS = ("h2d", "d2h", "both")
CHECKS = ("memcpy_near_pageable", "memcpy_near", "pingpong_right")

#: The devices of a node, those of them with a loss, and the loss in percent.
DEVICES, FAULTY, LOSS = 8, 2, 20

#: The nodes that are drawn.
NODES = 20_000


def recorded() -> Iterator[tuple[int, list[float]]]:
    """Yield of each recorded session the devices, and by way how far the slowest one is behind.

    In logarithms: of two devices behind the other one, of four behind their median.
    """
    reports = OUTPUTS / "h200"
    for one in json.loads((reports / "node-sessions-x2.json").read_text()):
        for check in CHECKS:
            yield from _behind(2, one["values"].get(check, {}))
    for path in sorted(reports.glob("reports*/x[24]-*.json")) + sorted(
        reports.glob("reports-x[24]/*.json")
    ):
        for run in json.loads(path.read_text())["runs"]:
            for case in run["testcases"]:
                if case["name"].split()[0] in CHECKS:
                    values = {
                        key.rpartition(":")[2]: one[0]
                        for key, one in (case.get("perfvalues") or {}).items()
                    }
                    yield from _behind(4 if "x4" in str(path) else 2, values)


def _behind(devices: int, values: Mapping[str, float]) -> Iterator[tuple[int, list[float]]]:
    found = []
    for way in WAYS:
        for name in (f"{way}_pageable_near", f"{way}_pageable"):
            worst, middle = values.get(f"{name}_worst"), values.get(f"{name}_median")
            if worst and middle:
                # The median of two is their mean.
                found.append(math.log(worst / (middle if devices > 2 else 2 * middle - worst)))
                break
    if len(found) == len(WAYS):
        yield devices, found


@dataclass
class Seen:
    """Of drawn nodes those with a device beyond a limit.

    one_way, all_ways: of healthy ones. faulty: of those with a loss in two devices.
    """

    one_way: int = 0
    all_ways: int = 0
    faulty: int = 0


def see(rng: random.Random, same_sense: bool) -> Seen:
    """Draw nodes, healthy and then with a loss in two devices, and count those that miss a limit.

    :param same_sense: whether all ways of a device deviate in the same sense.
    """
    every, seen = list(recorded()), Seen()
    one_way, all_ways = (
        math.log1p(-rules.allowed_percent(kind) / 100)
        for kind in ("pageable", rules.ALL_WAYS["pageable"])
    )
    for _ in range(NODES):
        rates = _node(rng, every, same_sense)
        behind = _behind_the_others(rates)
        seen.one_way += min(min(ways) for ways in behind) < one_way
        seen.all_ways += min(max(ways) for ways in behind) < all_ways
        for device in range(FAULTY):
            rates[device] = [one + math.log1p(-LOSS / 100) for one in rates[device]]
        seen.faulty += min(max(ways) for ways in _behind_the_others(rates)) < all_ways
    return seen


def _node(
    rng: random.Random, every: list[tuple[int, list[float]]], same_sense: bool
) -> list[list[float]]:
    """Draw a node; return by device and way how far it is from what it should be."""
    rates = []
    for _ in range(DEVICES):
        devices, ways = rng.choice(every)
        # Two devices differ by the root of two more than each deviates.
        scale = rng.choice((-1, 1)) / (math.sqrt(2) if devices == 2 else 1)
        rates.append([scale * one * (1 if same_sense else rng.choice((-1, 1))) for one in ways])
    return rates


def _behind_the_others(rates: list[list[float]]) -> list[list[float]]:
    """Return by device and way how far it is behind the median of the others."""
    ways = list(zip(*rates, strict=True))
    middles = [
        [statistics.median(one[:number] + one[number + 1 :]) for one in ways]
        for number in range(len(rates))
    ]
    return [[own - about for own, about in zip(*both, strict=True)]
            for both in zip(rates, middles, strict=True)]  # fmt: skip


def lines(seed: int) -> Iterator[str]:
    """Yield what is written of healthy nodes with the noise that was recorded."""
    rng, every = random.Random(seed), list(recorded())
    least = min(max(ways) for _, ways in every)
    yield (
        f"Pageable copies of {len(every)} recorded checks, on two or four H200 of virtual machines "
        f"(measured): a device is at most {100 * (1 - math.exp(least)):.1f} % behind by the way in "
        f"which it is least behind. Of {NODES:,} nodes of {DEVICES} healthy devices drawn with "
        "their deviations (derived):"
    )
    yield ""
    for same_sense, how in ((True, "in the same sense"), (False, "each for itself")):
        seen = see(rng, same_sense)
        yield (
            f"- where all ways of a device deviate {how}: {seen.all_ways} miss the limit of all "
            f"ways (`pageable_alike`), {seen.one_way} that of one way; with {LOSS} % lost in "
            f"{FAULTY} devices {100 * seen.faulty / NODES:.1f} % miss that of all ways."
        )
