"""What a session refuses or misses by its options and its checks, decided before anything runs.

test_silent_passes.py has a session for each way in which it ends by that.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reframe.core import runtime
from reframe.core.exceptions import ReframeError

from fabricheck.core.errors import InvalidInputError
from fabricheck.results.session_checks import write_checks
from fabricheck.rfm import deviations, guard, host, reframe_internals, started_session
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.started_session import Ended, StartedSession

#: The checks of the partition, each with its tags.
CHECKS = {
    "stream_local": "smoke full E1",
    "stream_concurrent": "smoke full E5",
    "stream_scan": "full E1",
    "memcpy_near": "smoke full E2",
}
FEATURES = ["devices", "several_devices"]


def check(name: str, tags: str = "full", plain: bool = False, **changes: Any) -> Any:
    """Return a check that is no more than what the guard asks of one."""
    own = type(name, (), {"__module__": "tests" if plain else MeasuringCheck.__module__})()
    members = {
        "tags": set(tags.split()),
        "display_name": name,
        "valid_systems": ["+devices"],
        "valid_prog_environs": ["+stream"],
        "strict_check": True,
        "perfvalues": {},
        "perf_variables": {},
        "is_fixture": lambda: False,
    }
    vars(own).update(members | changes)
    return own


class System:
    """A system of one partition, local:host, with what is generated for a session of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, results: Any) -> None:
        self._patch = monkeypatch
        self._results = results
        self.sessions = 0
        environ = SimpleNamespace(name="host", features=["stream", "memcpy"], extras={})
        self.partition = SimpleNamespace(
            name="host", fullname="local:host", features=FEATURES, environs=[environ], extras={}
        )
        monkeypatch.setattr(deviations, "when_started", lambda partition, checks: [])

    def case(self, of: Any) -> Any:
        return SimpleNamespace(
            check=of, partition=self.partition, environ=self.partition.environs[0]
        )

    def session(self, *checks: Any, unfit: tuple[Any, ...] = (), **options: Any) -> Any:
        """Start a session of some checks.

        :param unfit: checks of its files that fit no partition.
        """
        self.sessions += 1
        outputs = self._results / "output" / f"20260102T03040{self.sessions}-{self.sessions}"
        known = {
            "general/0/check_search_path": ["reframe_checks"],
            "systems/0/partitions": [{"name": "host", "environs": ["host"]}],
        }
        at = SimpleNamespace(
            system=SimpleNamespace(name="local", partitions=[self.partition]),
            output_prefix=str(outputs),
            get_option=known.__getitem__,
        )
        names = (*started_session.SELECTING, "skip_sanity_check", "skip_performance_check")
        given = dict.fromkeys(names) | {"vars": []} | options
        self._patch.setattr(runtime, "runtime", lambda: at)
        for name, value in {
            "options": SimpleNamespace(**given),
            "testcases": [self.case(each) for each in checks],
            "checks": [*checks, *unfit],
        }.items():
            self._patch.setattr(reframe_internals.session, name, value)
        return StartedSession()

    def ran(self, session: Any, *ended: Any, skipped: tuple[Any, ...] = ()) -> Any:
        """Record a session that ended, and return its checks with their outcomes."""
        cases = [self.case(each) for each in ended]
        outcome = Ended(cases, cases, [self.case(each) for each in skipped])
        found = session.with_outcomes(session.checks(), outcome)
        write_checks(Path(runtime.runtime().output_prefix), found)
        return found


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> System:
    return System(monkeypatch, tmp_path)


def all_checks() -> list[Any]:
    return [check(name, tags) for name, tags in CHECKS.items()]


#: Options of a session, and what is said of what they choose.
CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "a name of no check": (
        {"names": ["stream_lokal"]},
        "-n stream_lokal names no check of system local: there are memcpy_near, "
        "stream_concurrent, stream_local, stream_scan.",
    ),
    "a name of no check beside one of a check": (
        {"names": ["stream_local", "stream_skan"]},
        "-n stream_skan names no check of system local: there are",
    ),
    "a name whose check fits no partition": (
        {"names": ["p2p"]},
        "-n p2p names no check of system local: p2p needs a partition with +peers and an "
        "environment with +stream.",
    ),
    "a name of a plain test, which runs on no simulated node": (
        {"names": ["plain"]},
        "plain needs a partition with * and an environment with * that is not simulated.",
    ),
    "an environment that no partition has": (
        {"prgenv": ["nosuch"]},
        "-p nosuch names no environment of system local: there are host.",
    ),
    "an environment that no partition has, of a check that would fit": (
        {"prgenv": ["nosuch"], "names": ["stream_local"]},
        "-p nosuch names no environment of system local: there are host.",
    ),
    "a tag that chooses nothing": (
        {"tags": ["smok_"]},
        "Nothing to run: no test case was selected; system local has 4; the selection was "
        "tags=['smok_'].",
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_of_what_is_not_there_says_what_there_is(system, name):
    options, sentence = CHOICES[name]
    unfit = (
        check("p2p", valid_systems=["+peers"]),
        check("plain", plain=True, valid_systems=["*"], valid_prog_environs=["*"]),
    )
    session = system.session(*all_checks(), unfit=unfit, **options)
    selected = [] if options.get("tags") else [system.case(all_checks()[0])]
    with pytest.raises(ReframeError) as refused:
        session.require_choice(selected)
    assert sentence in str(refused.value)


def test_a_name_where_there_are_no_checks_says_where_none_are(system):
    with pytest.raises(ReframeError, match="of system local: there are none in reframe_checks"):
        system.session(names=["stream_local"]).require_choice([])


@pytest.mark.parametrize(
    "options", [{}, {"names": ["stream"]}, {"prgenv": ["host"]}, {"tags": ["smoke"]}]
)
def test_a_choice_of_what_is_there_is_none_to_refuse(system, options):
    session = system.session(*all_checks(), **options)
    session.require_choice([system.case(all_checks()[0])])


def test_plain_tests_alone_are_chosen_by_name_only(system):
    plain = check("plain", plain=True)
    for options in ({}, {"tags": ["full"]}):
        with pytest.raises(ReframeError, match="has no check of this suite: name reframe_checks"):
            system.session(plain, **options).require_choice([system.case(plain)])
    system.session(plain, names=["plain"]).require_choice([system.case(plain)])


@pytest.mark.parametrize("option", ["skip_sanity_check", "skip_performance_check"])
def test_a_session_that_judges_nothing_is_refused(system, option):
    system.session(*all_checks(), **{option: True})
    with pytest.raises(ReframeError, match=f"--{option.replace('_', '-')} cannot be used"):
        guard._require_judgement([])


def lost(session: Any) -> dict[str, str]:
    """Return what a session lost, and that it ends by it."""
    checks = session.checks()
    found = checks.partitions["local:host"].lost
    if found:
        with pytest.raises(ReframeError, match="local:host lost"):
            session.require_all(checks)
    else:
        session.require_all(checks)
    return dict(found)


@pytest.mark.parametrize(
    "options",
    [{"tags": ["full"]}, {"tags": ["smoke"]}, {"exclude_names": ["local"]}, {"filter_expr": "E1"}],
    ids=str,
)
def test_an_experiment_that_the_features_imply_is_missed_whatever_is_chosen(system, options):
    checks = [each for each in all_checks() if "E5" not in each.tags]
    assert lost(system.session(*checks, **options)) == {"E5": "which its features imply"}
    assert lost(system.session(*checks, names=["stream_local"])) == {}


def test_a_check_that_an_earlier_session_had_is_missed(system):
    every = all_checks()
    system.ran(system.session(*every, names=["stream_local"]), every[0])
    fewer = [each for each in every if type(each).__name__ != "stream_scan"]
    # Of a session of names nothing is missed, though it had all checks of its files, too.
    assert lost(system.session(*fewer, names=["stream_local"])) == {}
    ((name, why),) = lost(system.session(*fewer, tags=["smoke"])).items()
    assert name == "stream_scan" and why.startswith("which its session of ")


def test_a_plain_test_is_not_missed_and_its_session_hides_no_lost_check(system):
    every = all_checks()
    plain = check("plain", plain=True)
    system.ran(system.session(*every, plain), *every, plain)
    assert lost(system.session(*every)) == {}
    # Of other files, which have none of the checks.
    system.ran(system.session(plain, names=["plain"]), plain)
    assert lost(system.session(*every[1:])).keys() == {"stream_local"}


def test_a_check_that_skips_itself_is_missed_only_where_it_ran_before(system):
    every = all_checks()
    *others, _, scan = [each for each in every if type(each).__name__ != "memcpy_near"]

    def skipped(session: Any) -> dict[str, str]:
        found = system.ran(session, *others, skipped=(scan,))
        return dict(found.partitions["local:host"].lost)

    assert skipped(system.session(*every, tags=["full"])) == {}
    system.ran(system.session(*every, tags=["full"]), *every)
    # A session that does not choose it forgets nothing.
    system.ran(system.session(*every, tags=["smoke"]), *others)
    why = "skipped now, run in an earlier session"
    assert skipped(system.session(*every, tags=["full"])) == {"stream_scan": why}


#: The checks that were selected, that ended, and that skipped themselves; what is said.
LEFT: dict[str, tuple[str, str, str, str | None]] = {
    "all ended": ("ab", "ab", "", None),
    "one skipped itself": ("ab", "a", "b", None),
    "all skipped themselves": ("ab", "", "ab", "all test cases were skipped or stopped"),
    "one was stopped": ("abc", "a", "c", "local:host: the session ended before b."),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_session_ends_well_only_if_each_check_ended(system, name):
    selected, ended, skipped, sentence = LEFT[name]
    session = system.session(*all_checks())
    chosen, ran, out = (
        [system.case(check(each)) for each in names] for names in (selected, ended, skipped)
    )
    if sentence is None:
        session.require_left(chosen, Ended(ran, ran, out))
        return
    with pytest.raises(ReframeError) as refused:
        session.require_left(chosen, Ended(ran, ran, out))
    assert sentence in str(refused.value)


#: Of a check that passed: its values, its references, and what lacks a value.
VALUES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "a value": ({"rate": 1}, {"rate": (5, -0.1, None, "GB/s")}, []),
    "no value": ({}, {"rate": (5, -0.1, None, "GB/s")}, ["rate"]),
    "a reference in another unit": (
        {"rate": 1},
        {"rate": (5, -0.1, None, "MB/s")},
        ["rate in MB/s, the unit of its reference"],
    ),
    "a reference without a unit": ({"rate": 1}, {"rate": (5, -0.1, None, None)}, []),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_check_that_passed_without_a_value_ends_the_session(system, name):
    values, references, lacking = VALUES[name]
    passed = check(
        "plain",
        plain=True,
        perf_variables={"rate": SimpleNamespace(unit="GB/s")},
        perfvalues={f"local:host:{each}": value for each, value in values.items()},
        reference={f"local:host:{each}": entry for each, entry in references.items()},
    )
    session = system.session(*all_checks(), passed)
    checks = system.ran(session, passed)
    expected = {"plain": lacking} if lacking else {}
    assert checks.partitions["local:host"].without_value == expected
    if lacking:
        with pytest.raises(ReframeError, match=f"passed without a value of {lacking[0]}"):
            session.require_all(checks)


@pytest.mark.parametrize("text", ["two", "1", "0", "-2", "2.0"])
def test_a_number_in_a_variable_that_is_none_is_named(monkeypatch, text):
    monkeypatch.setenv("FABRICHECK_HOST_DEVICES", text)
    with pytest.raises(InvalidInputError, match=f"_DEVICES={text} is not a whole number of at"):
        host.whole_number("FABRICHECK_HOST_DEVICES", 2, 2)


@pytest.mark.parametrize(("text", "number"), [("", 2), (" ", 2), ("4", 4), (" 2 ", 2)])
def test_a_number_in_a_variable_is_read(monkeypatch, text, number):
    monkeypatch.setenv("FABRICHECK_HOST_DEVICES", text)
    assert host.whole_number("FABRICHECK_HOST_DEVICES", 2, 2) == number
