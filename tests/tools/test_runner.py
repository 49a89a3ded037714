"""The runner of third-party programs: what is kept of one, and how its end is said."""

from __future__ import annotations

import time

import pytest

from fabricheck.tools.runner import ProgramFailed, TimeLimit, last_words, run, worst
from processes import is_left


def shell(text, limit_s=20.0):
    return run(["/bin/sh", "-c", text], limit_s)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("echo one; echo two. >&2; exit 3", ProgramFailed, "it ended with exit code 3: two."),
        ("echo one; kill -9 $$", ProgramFailed, "it was ended by signal 9: one."),
        ("echo one; exit 255", ProgramFailed, "it ended with exit code 255: one."),
        ("exit 1", ProgramFailed, "it ended with exit code 1: it printed nothing."),
        ("echo one; exec sleep 60", TimeLimit, "it did not end within 0.3 s."),
    ],
)
def test_how_a_program_ended(text, error, said):
    ended = shell(text, 0.3 if error is TimeLimit else 20)
    with pytest.raises(error) as caught:
        ended.require_good("it", 0.3, ended.err, ended.out)
    assert str(caught.value) == said
    assert caught.value.exit_code == (6 if error is TimeLimit else 4)


def test_all_that_a_killed_program_wrote_is_kept():
    ended = shell("seq 1 20000; echo warned >&2; sleep 60", 1)
    assert (ended.code, ended.err) == (None, "warned\n")
    assert ended.out.splitlines() == [str(number) for number in range(1, 20001)]


def test_a_program_that_is_late_may_end_in_order():
    ended = shell("trap 'echo ended in order; exit' TERM; sleep 60 & wait", 1)
    assert (ended.code, ended.out) == (None, "ended in order\n")


def test_nothing_that_a_program_started_is_left():
    began = time.monotonic()
    ended = shell("sleep 60 & echo $!")
    assert ended.code == 0 and time.monotonic() - began < 30
    assert not is_left(int(ended.out))


def test_last_words():
    framed = "it starts\n-----\nrank 1\nexited.\n-----\n"
    assert last_words("", " \n", framed) == "rank 1 exited"
    assert last_words("\x1b[31mred\x1b[0m\n") == "\\x1b[31mred\\x1b[0m"
    assert last_words("x" * 500) == "x" * 200
    closing = "srun: error: node1: task 0: Exited with exit code 1\nsrun: Terminating StepId=7.0\n"
    assert last_words(f"MPI_Init failed\n{closing}", "out") == "MPI_Init failed"
    assert last_words(closing, "out") == "out"
    assert last_words(closing) == "srun: Terminating StepId=7.0"


FRAME = "-" * 74


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("OFI fi_getinfo failed", "srun: error: node1: tasks 0-1: Exited with exit code 255\n"
         "srun: Force Terminated StepId=1.0"),
        ("srun: error: node1: task 1: Segmentation fault",
         "srun: error: node1: task 0: Terminated\nsrun: Force Terminated StepId=1.0"),
        ("slurmstepd: error: *** STEP 1.0 ON node1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME "
         "LIMIT ***", "srun: error: node1: tasks 0-1: Terminated"),
        ("Memory access fault by GPU node-4", "srun: error: node1: task 0: Aborted (core dumped)"),
        ("out of memory", f"{FRAME}\nprterun detected that one or more processes exited with\n"
         f"another status:\n\n  Exit code:    1\n{FRAME}"),
        ("no kernel image", f"{FRAME}\nMPI_ABORT was invoked on rank 1\nerrorcode 1.\n{FRAME}"),
        ("node1: Test NCCL failure", " .. node1 pid 77: Test failure in all_reduce_perf.cu at 100"),
    ],
)  # fmt: skip
def test_what_follows_a_failure_hides_it_in_no_stream(said, after):
    assert last_words(f"{said}\n{after}\n") == said
    assert last_words(after, said) == said


def test_the_worst_of_several_exit_codes():
    assert worst([]) == 0
    assert worst([4, 7, 8, 6]) == 6
    assert worst([4, 5, 6]) == 5
