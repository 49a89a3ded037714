"""The claims of a partition for the page: told apart by what their outcome is worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fabricheck.judge.claims import CLAIMS, Verdict, evaluate
from fabricheck.judge.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED
from fabricheck.results.observed import Observed


@dataclass(frozen=True)
class Claims:
    """What a partition's results say of every claim.

    defects: a sentence for each claim whose rule a defect of the suite ended.
    """

    verdicts: tuple[Verdict, ...]
    defects: tuple[str, ...] = ()

    @cached_property
    def reproduced(self) -> tuple[Verdict, ...]:
        """Those that hold, and are evidence."""
        return tuple(one for one in self.verdicts if one.outcome == REPRODUCED and one.independent)

    @cached_property
    def by_construction(self) -> tuple[Verdict, ...]:
        """Those that hold on a simulated node since it was made so: no evidence."""
        return tuple(
            one for one in self.verdicts if one.outcome == REPRODUCED and not one.independent
        )

    @cached_property
    def refuted(self) -> tuple[Verdict, ...]:
        """Those that do not hold."""
        return tuple(one for one in self.verdicts if one.outcome == REFUTED)

    @cached_property
    def not_testable(self) -> dict[str, list[Verdict]]:
        """Those that this partition cannot tell, by the reason."""
        found: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            if one.outcome == NOT_TESTABLE:
                found.setdefault(one.finding.because, []).append(one)
        return found

    @property
    def says(self) -> str:
        """The counts in words."""
        untested = sum(map(len, self.not_testable.values()))
        made = len(self.by_construction)
        by_construction = f", {made} agree by construction" if made else ""
        return (
            f"{len(self.reproduced)} reproduced{by_construction}, {len(self.refuted)} not "
            f"reproduced, {untested} not testable here, of {len(self.verdicts)} claims"
        )


def of(observed: Observed) -> Claims:
    """Judge every claim by a partition's results; a rule with a defect costs its own claim."""
    verdicts: list[Verdict] = []
    defects = []
    for claim in CLAIMS:
        try:
            verdicts += evaluate([claim], observed)
        # Whatever it is: results that nobody thought of must not hide all others.
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            where = f" of {observed.where}" if observed.where else ""
            defects.append(
                f"Claim {claim.id}{where} could not be judged, a defect of fabricheck ({told})."
            )
    return Claims(tuple(verdicts), tuple(defects))
