"""No script ends a program that still prints: under pipefail its pipe would count as failed.

`grep -q` and `head` stop reading early; `grep ... > /dev/null` and `sed -n 1p` read to the end.
"""

import re

from fabricheck.core.checkout import ROOT

EARLY = re.compile(r"\|\s*(head\b|grep -\w*q|sed -n \d+q|awk [^|]*\bexit\b)")


def test_each_pipe_is_read_to_its_end():
    scripts = [
        *ROOT.glob("ci/**/*.sh"),
        ROOT / ".ci/run",
        ROOT / "Makefile",
        ROOT / "spack-env/install",
    ]
    texts = {script: script.read_text().replace("\\\n", " ") for script in scripts}
    failing = {script for script, text in texts.items() if "pipefail" in text}
    assert len(failing) > 15
    # Sourced by one that has pipefail.
    failing.add(ROOT / "ci/bundle/steps.sh")
    assert [
        f"{one.name}: {found[0]}" for one in failing for found in EARLY.finditer(texts[one])
    ] == []
