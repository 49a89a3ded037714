"""docs/evidence/soak.md has the rules and the limits as they are in the code."""

from pathlib import Path

from fabricheck.judge.drift.counters import ERROR_LIMITS
from fabricheck.judge.drift.rules import SOAK_RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "soak.md"


def test_the_page_has_each_rule_and_each_limited_counter():
    text = PAGE.read_text()
    for rule in SOAK_RULES.values():
        assert f"| `{rule.name}` | {rule.status} | {rule.when} |" in text
    for counter in ERROR_LIMITS:
        assert counter in text
