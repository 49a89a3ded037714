"""A node never looks better for another failure, in whatever order its attempts are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.outcomes import joint_outcome
from fabricheck.judge.verdict.rules import RULES, STATUSES, worst
from fabricheck.results.entry import Entry
from fabricheck.results.run_report import MetricResult
from fabricheck.results.session import Case

SLOW = {"m": MetricResult(None, 10.0, -0.1, None, "", "fail")}


def case(result="pass", phase=None, failure=None, code=0, judged=(), reason="why"):
    return Case("check", "a", "b", "c", result, reason, frozenset({"E1"}), (), (), phase,
                dict(judged), None, code, failure)  # fmt: skip


def document(status="good"):
    return factories.document(outcome={"exit_code": 0, "status": status, "message": None})


#: What an attempt may be: a case and the status of its document.
KINDS = {
    "pass": (case(), "good"),
    "skip": (case("skip"), None),
    "wrong-data": (case("fail", "sanity", code=5), "wrong-data"),
    "device-error": (case("fail", "sanity", code=9), "device-error"),
    "devices": (case("fail", "sanity", "other-devices"), "good"),
    "reference": (case("fail", "performance", judged=SLOW), "good"),
    "too-noisy": (case("fail", "sanity", code=7), "too-noisy"),
    "setting": (case("fail", "sanity", code=8), "setting"),
    "time-limit": (case("fail", "sanity", code=6), "time-limit"),
    "not-believed": (case("fail", "sanity"), "good"),
    "cancelled": (case("abort"), "running"),
    "not-started": (case("fail", "setup", code=None), None),
}
FAILING = sorted(KINDS.keys() - {"pass", "skip"})


def attempts(kinds):
    made = []
    for kind in kinds:
        one, status = KINDS[kind]
        entry = Entry(one, None, document(status), None) if status else None
        made.append(Attempt("check", one, entry, 0.0))
    return made


def status(checks):
    """Return the status of a node with some checks, each a list of kinds of attempts."""
    return worst(
        found.status for one in checks if one for found in joint_outcome(attempts(one), {}).reasons
    )


@pytest.mark.parametrize("kind", FAILING)
def test_each_kind_is_what_it_says(kind):
    ((found, _),) = [(one.rule.name, one) for one in attempts([kind])[0].findings]
    assert found == kind and status([[kind]]) == RULES[kind].status


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        (["device-error", "wrong-data"], "DATA-FAIL"),
        (["reference", "device-error"], "HW-FAIL"),
        (["too-noisy", "reference"], "PERF-FAIL"),
        (["time-limit", "too-noisy"], "UNSTABLE"),
        (["pass", "time-limit"], "INCOMPLETE"),
    ],
)
def test_of_two_checks_the_worse_one_is_the_word(kinds, word):
    assert status([[one] for one in kinds]) == status([[one] for one in reversed(kinds)]) == word


@given(
    st.lists(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), max_size=3),
    st.sampled_from(FAILING),
    st.data(),
)
def test_a_failure_more_never_makes_a_word_better(checks, failing, data):
    before = status(checks)
    changed = [*checks, []]
    chosen = data.draw(st.integers(0, len(checks)))
    at = data.draw(st.integers(0, len(changed[chosen])))
    changed[chosen] = [*changed[chosen][:at], failing, *changed[chosen][at:]]
    assert STATUSES.index(status(changed)) <= STATUSES.index(before)


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
def test_wrong_data_is_never_excused_and_a_pass_is_one(kinds):
    found = status([kinds])
    assert (found == "DATA-FAIL") == ("wrong-data" in kinds)
    if "pass" in kinds:
        assert found not in ("HW-FAIL", "PERF-FAIL")
    if found == "PASS":
        assert set(kinds) <= {"pass", "skip", "cancelled", "not-started", "setting"}


def test_many_findings_of_one_attempt_keep_the_worst():
    wrong = [factories.series(verification=factories.mismatched(), device=n) for n in range(40)]
    one, _ = KINDS["wrong-data"]
    found = Attempt("check", one, Entry(one, None, document() | {"series": wrong}, None), 0.0)
    told = joint_outcome([found], {}).reasons
    assert len(told) == 9 and len(found.findings) == 40
    assert (told[-1].sentence, told[-1].stands_for) == ("And 32 more.", 32)
