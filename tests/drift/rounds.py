"""Rounds of a soak as their sessions would have left them, and a loop of stand-ins."""

from datetime import UTC, datetime
from types import SimpleNamespace

from fabricheck.results import soaks
from fabricheck.results.soaks import Plan, Round, Soak
from fabricheck.run import soak as running

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
PLAN = Plan(hours=2, round_minutes=30, quiet_every=0, quiet_set=None)


def round_of(number, hours=0.5, plan=PLAN, **fields):
    return Round(
        soak="soak",
        plan=plan,
        phase="load",
        session=f"soak-{number:04}",
        node="node1",
        began=BEGAN,
        began_h=(number - 1) * hours,
        took_s=3600 * hours,
        load_s=3600 * hours,
        clock="measured",
        **fields,
    )


def soak_of(rounds, **fields):
    return Soak("soak", PLAN, tuple(rounds), **fields)


def leave(results, rounds):
    """Write the records of rounds where their sessions would have left them."""
    for each in rounds:
        outputs = results / "output" / each.session
        outputs.mkdir(parents=True)
        soaks.write(outputs, each)


def soak_there(results):
    (soak,) = soaks.read(results)
    return soak


def loop_of(results, monkeypatch, sessions, **options):
    """Return a loop whose sessions are made by a function of their names."""
    loop = running.Loop(
        soak_of([]), results, "reframe", options.pop("judge", lambda results: []), print,
        goes_on=options.pop("goes_on", False), **options,
    )  # fmt: skip
    monkeypatch.setattr(loop, "_session", lambda name, kind: sessions(name))
    return loop


def load_rounds(monkeypatch, results_folder):
    """Have each session read as a load of half an hour that can be judged."""

    def of_session(results, soak, kind, session):
        return round_of(len(soak.rounds) + 1)

    def results_of(name):
        outputs = (results_folder / "output" / name,)
        session = SimpleNamespace(outputs=outputs)
        return SimpleNamespace(checks=[object()], sources=[SimpleNamespace(session=session)])

    monkeypatch.setattr(soaks, "measured", of_session)
    monkeypatch.setattr(running, "_results_of", results_of)
    monkeypatch.setattr(running.Loop, "_measured_before", lambda self, name: None)
