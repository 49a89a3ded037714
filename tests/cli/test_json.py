"""The JSON of each command that shows something: it has what the text has, the same each time."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

from fabricheck.cli import COMMANDS, _built

sys.path.append(str(Path(__file__).resolve().parents[1] / "snapshots"))
import snapshot_sessions as made

#: What each is asked, of which results. The dry runs and the simulated programs of `limits show`,
#: `site sets` and `papers fidelity` take long: their own tests read their JSON.
ASKED = {
    "verdict": (made.failures, "verdict 0 --output verdict"),
    "diagnose": (made.h200, "diagnose latest"),
    "summary": (made.h200, "summary latest"),
    "compare": (made.pairs, "compare before after --all"),
    "fleet": (made.job, "fleet 17"),
    "results list": (made.killed, "results list"),
    "results show": (made.failures, "results show 0 --all"),
    "results coverage": (made.simulated, "results coverage run-0"),
    "results validate": (made.failures, "results validate results"),
    "results osu": (made.h200, "results osu latest"),
    "node show": (made.outputs, "node show mi250x"),
    "node compare": (
        made.outputs,
        "node compare mi250x --from rocm-smi/published-hugging-face-shownodesbw.txt",
    ),
    "limits check": (made.nothing, "limits check"),
    "limits calibrate": (
        made.repeated,
        "limits calibrate steady/session-0 --system local:host --output references --report-only",
    ),
    "limits noise": (
        made.repeated,
        "limits noise steady/session-0 --system local:host --output references",
    ),
    "site check": (made.site, "site check local:host --login"),
    "papers claims": (made.h200, "papers claims latest --all"),
}

#: Other uses of such commands.
USED = {
    "node show --from": (
        made.outputs,
        "node show --from rocm-smi/published-hugging-face-shownodesbw.txt",
    )
}

#: Commands with JSON that others test, and those that write a file, or run what writes one.
ELSEWHERE = {
    "limits show": "references/test_references_command.py",
    "limits transfer": "calibration/test_command.py",
    "site sets": "sets/test_sets_command.py",
    "acceptance status": "acceptance/test_acceptance_status.py",
    "acceptance verify": "acceptance/test_acceptance_record.py",
    "drift": "drift/test_soak_command.py",
    "network nics": "nics/test_nics_recorded.py",
    "node health": "nics/test_health.py",
    "network fabric": "fabric/test_fabric_command.py",
    "papers fidelity": "papers/test_mi250x.py",
}
WRITING = {
    "acceptance close", "acceptance repeat", "beside rounds", "beside table", "every-node",
    "network record", "node best-gpus", "node draft", "node platform", "node record", "report",
    "results export", "results join", "results pack", "results record", "site first-hour", "soak",
}  # fmt: skip

#: Names in a text: of checks and metrics, experiments, partitions, statuses.
NAMES = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b|\bE\d\d?\b|\b\w+:[a-z]\w+\b|\b[A-Z]+-FAIL\b")
DECIMALS = re.compile(r"(?<![\w.:/-])\d+\.(\d+)(?![\w.:])")

#: The moment of a judgement differs from one call to the next.
MOMENT = re.compile(r"T\d\d:\d\d:\d\d\.\d+Z")

#: The factor of a median absolute deviation, which the text explains.
EXPLAINED = {"1.4826"}


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def values(found: Any) -> Iterator[Any]:
    """Yield the texts and numbers of a JSON value, and the keys of its objects."""
    if isinstance(found, dict):
        for name, one in found.items():
            yield name
            yield from values(one)
    elif isinstance(found, list):
        for one in found:
            yield from values(one)
    else:
        yield found


def test_each_command_that_shows_something_has_json():
    has = {
        name
        for name in COMMANDS
        if any("--json" in one.opts for one in _built(name).get_params(typer.Context(_built(name))))
    }
    assert has == ASKED.keys() | ELSEWHERE.keys()
    assert COMMANDS.keys() - has == WRITING
    tests = Path(__file__).resolve().parents[1]
    texts = [(tests / file).read_text() for file in ELSEWHERE.values()]
    assert all("--json" in text or "json=True" in text for text in texts)


@pytest.mark.slow
@mock.patch.dict(os.environ)  # the sessions of snapshots set variables of their own
@pytest.mark.parametrize("call", ASKED | USED)
def test_json_has_the_names_and_the_numbers_of_the_text(command, call, tmp_path, monkeypatch):
    make, line = (ASKED | USED)[call]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FABRICHECK_RESULTS", "results")
    make()
    text = command(*line.split(), code=None)
    first = command(*line.split(), json=True, code=None)
    again = command(*line.split(), json=True, code=None)
    assert MOMENT.sub("", first.stdout) == MOMENT.sub("", again.stdout)
    assert first.exit_code == text.exit_code
    found = list(values(first.json))
    every = "\n".join(one for one in found if isinstance(one, str))
    shown = " ".join(text.stdout.split())
    assert len(shown) > 20
    assert [name for name in NAMES.findall(shown) if name not in every] == []
    numbers = [one for one in found if isinstance(one, float | int)]
    numbers += [float(one[0]) for one in re.finditer(r"\d+\.\d+", every)]
    lost = []
    for number in DECIMALS.finditer(shown):
        half = 0.501 * 10.0 ** -len(number[1])
        ways = (near for one in numbers for near in (one, 100 * one, 100 * (1 - one), one / 2**30))
        if not any(abs(abs(way) - float(number[0])) <= half for way in ways):
            lost.append(number[0])
    assert set(lost) <= EXPLAINED
