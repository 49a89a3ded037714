"""What a session keeps of a program that a runtime aborted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricheck.judge.verdict import judging
from fabricheck.results import reading, state
from fabricheck.results.document import load

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "host" / "bin"

#: A program that ends as ROCr ends it at an uncorrectable error.
ABORTED = f"""#!/bin/sh
echo "HW Exception by GPU node-1 (Agent handle: 0x55d8) reason :ECC" >&2
exec "{BUILT}/stream" --devices 0 --sizes 64KiB --kernels copy --batch-time 0.0001 --warm-up 0 \\
  --series-time 0 --noise-limit 10 --inject-fault abort --output result.json
"""


@pytest.fixture
def aborted(suite):
    """Run a session of one check, whose program aborts, with an `aftermath` of the test."""

    def aborted(aftermath: str | None):
        (suite.programs / "stream").write_text(ABORTED)
        if aftermath is not None:
            (suite.programs / "aftermath").write_text(f"#!/bin/sh\n{aftermath}\n")
            (suite.programs / "aftermath").chmod(0o755)
        outcome = suite("-r", "-n", "stream_local")
        assert outcome.status == 1
        assert "stream was ended by signal 6 (exit code 134)" in outcome
        (partial,) = suite.results.glob("stage/*/local/host/host/*/result.json.partial")
        (found,) = judging.judge(reading.read([str(suite.results)]))
        assert "ended" in {reason.rule for reason in found.reasons}
        return outcome, load(partial)

    return aborted


def test_the_partial_document_of_an_aborted_program_has_an_aftermath(aborted):
    outcome, document = aborted(f'exec "{BUILT}/aftermath" "$@"')
    assert document["outcome"]["status"] == "running"
    assert document["aftermath"]["exit_code"] == 134
    assert [logged.kind for logged in state.logged(document)] == ["hardware"]
    assert document["state"]["after"] is not None
    assert "there is no program" not in outcome


@pytest.mark.parametrize("aftermath", ["exit 7", "kill -9 $$", None])
def test_nothing_is_lost_where_the_aftermath_fails(aborted, suite, aftermath):
    outcome, document = aborted(aftermath)
    assert "aftermath" not in document and document["outcome"]["status"] == "running"
    missing = f"there is no program {suite.programs}/aftermath"
    assert (missing in outcome) == (aftermath is None)


def test_an_aftermath_that_fails_costs_no_good_run(suite):
    (suite.programs / "aftermath").write_text("#!/bin/sh\nexit 7\n")
    (suite.programs / "aftermath").chmod(0o755)
    assert suite("-r", "-n", "stream_local").status == 0
