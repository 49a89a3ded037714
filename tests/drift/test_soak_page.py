"""docs/evidence/soak.md has the limited counters and the table of rules."""

from pathlib import Path

from fabricheck.judge.drift.counters import ERROR_LIMITS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "soak.md"


def test_the_page_has_each_limited_counter_and_the_rules_of_a_soak():
    text = PAGE.read_text()
    assert "<!-- rules of a soak -->" in text
    for counter in ERROR_LIMITS:
        assert counter in text
