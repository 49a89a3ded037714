"""The table of rules that rounds of load lead to a status by, shown in docs/evidence/soak.md.

They stand beside the rules of a verdict, which judges single sessions: none of these is evidence
that drains a node.
"""

from __future__ import annotations

from fabricheck.judge.verdict.rules import Rule

SOAK_RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "drift",
            "PERF-FAIL",
            "A rate, a clock or a quiet metric lost more over the rounds than the floor of its "
            "noise, and the 95 % interval of its slope (Theil-Sen) is below zero.",
        ),
        Rule(
            "step",
            "PERF-FAIL",
            "All rounds before are above all rounds after by more than the floor, at least three "
            "on either side, and two levels are nearer to them than a line.",
        ),
        Rule(
            "straggler",
            "PERF-FAIL",
            "A device or pair is behind the median of its peers by more than the floor, and by "
            "more than twice what these differ.",
        ),
        Rule(
            "comes-and-goes",
            "UNSTABLE",
            "In at least two rounds, and at most half of them, the slowest tenth of the passes "
            "lost more than the floor, and than three times what is usual.",
        ),
        Rule(
            "counters",
            "UNSTABLE",
            "A counter of errors grew faster than its source allows; without a source its growth "
            "is only reported.",
        ),
        Rule(
            "throttled",
            "UNSTABLE",
            "Heat or a limit of the board throttled a device for more than 1 % of the load; of "
            "the power cap it is only reported.",
        ),
    )
}
