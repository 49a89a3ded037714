"""A member of a soak over its rounds: its trend, a step in it, and what comes and goes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricheck.core.statistics import Slope, median, slope
from fabricheck.judge.comparison.judging import FLOORS
from fabricheck.judge.drift.model import Finding, Trend
from fabricheck.judge.verdict.rules import RULES
from fabricheck.results.soaks import Member, Round, Value

#: Rounds before and after a step, at least.
STEP_ROUNDS = 3

#: Rounds in which a value comes and goes, at least.
AT_TIMES_ROUNDS = 2

#: How many times farther from the middle than usual a decile is that comes and goes.
AT_TIMES = 3.0


@dataclass(frozen=True)
class Line:
    """A member over the rounds; values are positive, and signs such that less is worse."""

    name: str
    member: Member
    at_h: tuple[float, ...]
    values: tuple[Value, ...]
    floor: float

    @classmethod
    def of_member(cls, name: str, member: Member, rounds: Sequence[Round]) -> Line | None:
        """Return the line of a member; None where no round has a positive value of it."""
        seen = [(each.middle_h, each.values[name]) for each in rounds if name in each.values]
        if not seen or min(value.middle for _, value in seen) <= 0:
            return None
        times, values = zip(*seen, strict=True)
        return cls(name, member, times, values, FLOORS[member.noise])

    @property
    def rates(self) -> list[float]:
        """The middles, of times their inverse: more is better."""
        return [self._rate(value.middle) for value in self.values]

    def _rate(self, value: float) -> float:
        return value if self.member.better == "higher" else 1 / value

    def _slope(self) -> tuple[Slope, float] | None:
        """Return the slope of the rates, and the time of all rounds."""
        line = slope(self.at_h, self.rates)
        span = self.at_h[-1] - self.at_h[0]
        return None if line is None or span <= 0 else (line, span)

    def trend(self) -> Iterator[Trend]:
        """Yield the trend, where there are enough rounds."""
        known = self._slope()
        if known is None:
            return
        line, span = known
        start = line.start + line.value * self.at_h[0]
        if start <= 0:
            return
        away = [
            abs(rate - line.start - line.value * at)
            for at, rate in zip(self.at_h, self.rates, strict=True)
        ]
        yield Trend(
            member=self.name,
            rounds=len(self.values),
            start=self._rate(start),
            unit=self.member.unit,
            change=line.value * span / start,
            low=line.low * span / start,
            high=line.high * span / start,
            spread=median(away) / start,
            floor=self.floor,
        )

    def findings(self) -> Iterator[Finding]:
        """Yield a step, else a drift, and what comes and goes, where they are beyond the floor."""
        if math.isinf(self.floor):
            return
        step = self._step()
        drift = self._drift()
        if step is not None and (drift is None or self._is_sharper(step)):
            yield step
        elif drift is not None:
            yield drift
        else:
            yield from self._at_times()

    def _drift(self) -> Finding | None:
        for trend in self.trend():
            if trend.change < -self.floor and trend.high < 0:
                return Finding(
                    rule="drift",
                    status=RULES["drift"].status,
                    member=self.name,
                    devices=self.member.devices,
                    from_h=self.at_h[0],
                    to_h=self.at_h[-1],
                    change=trend.change,
                    low=trend.low,
                    high=trend.high,
                    floor=self.floor,
                    value=self.values[-1].middle,
                    unit=self.member.unit,
                )
        return None

    def _step(self) -> Finding | None:
        """Return the largest loss between two rounds of which all before are above all after."""
        rates = self.rates
        best: tuple[float, int] | None = None
        for at in range(STEP_ROUNDS, len(rates) - STEP_ROUNDS + 1):
            before, after = rates[:at], rates[at:]
            change = median(after) / median(before) - 1
            if max(after) < min(before) and (best is None or change < best[0]):
                best = (change, at)
        if best is None or best[0] >= -self.floor:
            return None
        change, at = best
        low = min(rates[at:]) / max(rates[:at]) - 1
        high = max(rates[at:]) / min(rates[:at]) - 1
        return Finding(
            rule="step",
            status=RULES["step"].status,
            member=self.name,
            devices=self.member.devices,
            from_h=self.at_h[at - 1],
            to_h=self.at_h[at],
            change=change,
            low=low,
            high=high,
            floor=self.floor,
            value=self.values[-1].middle,
            unit=self.member.unit,
        )

    def _is_sharper(self, step: Finding) -> bool:
        """Whether rounds are nearer to two levels than to a line."""
        rates = self.rates
        at = next(i for i, time in enumerate(self.at_h) if time >= step.to_h)
        before, after = rates[:at], rates[at:]
        first, second = median(before), median(after)
        by_step = sum(abs(rate - first) for rate in before)
        by_step += sum(abs(rate - second) for rate in after)
        known = self._slope()
        if known is None:
            return True
        line, _ = known
        by_line = sum(
            abs(rate - line.start - line.value * time)
            for time, rate in zip(self.at_h, rates, strict=True)
        )
        return by_step < by_line

    def _at_times(self) -> Iterator[Finding]:
        """Yield that some passes are slow in some rounds, and others of the same rounds are not."""
        higher = self.member.better == "higher"
        parts = [
            self._rate(value.low if higher else value.high) / self._rate(value.middle) - 1
            for value in self.values
        ]
        usual = abs(median(parts))
        least = max(self.floor, AT_TIMES * usual)
        bad = [number for number, part in enumerate(parts) if part < -least]
        if not AT_TIMES_ROUNDS <= len(bad) <= len(parts) / 2:
            return
        lowest = min(bad, key=lambda number: parts[number])
        yield Finding(
            rule="comes-and-goes",
            status=RULES["comes-and-goes"].status,
            member=self.name,
            devices=self.member.devices,
            from_h=self.at_h[bad[0]],
            to_h=self.at_h[bad[-1]],
            change=parts[lowest],
            floor=least,
            value=float(len(bad)),
            unit="rounds",
        )
