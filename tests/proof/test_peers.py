"""docs/evidence/peers.md, and what the rule for peers says of it."""

from __future__ import annotations

import re

from fabricheck.core import peers as rule
from proof import peers


def test_the_page_has_the_parameters_of_each_place():
    assert peers.PAGE.read_text(encoding="utf-8").startswith(peers.head())


def test_the_numbers_of_the_rule_are_those_of_the_page():
    stated = re.findall(r"\b[\d,]*\d{3}\b", (rule.__doc__ or "").replace("1993", ""))
    measured = set(re.findall(r"\b[\d,]*\d{3}\b", peers.PAGE.read_text(encoding="utf-8")))
    assert len(stated) > 10 and set(stated) <= measured
