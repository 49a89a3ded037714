"""`every-node --within COMMAND`: what starts each session in a container."""

from __future__ import annotations

import pytest

from fabricheck.cli import every_node
from fabricheck.core.errors import UsageError


def test_the_command_is_split_as_a_shell_does():
    assert every_node.words_of("env BOX='a b' true") == ["env", "BOX=a b", "true"]


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ("no-such-command run IMAGE", "names no command that is here"),
        ("", "names no command that is here"),
        ("env 'BOX", "is no command .No closing quotation."),
    ],
)
def test_what_is_no_command_is_a_sentence(within, said):
    with pytest.raises(UsageError, match=said):
        every_node.words_of(within)


def test_a_session_is_the_containers_own_reframe():
    command = ("/here/bin/reframe", "--nocolor", "-r", "-t", "smoke")
    started = every_node.in_container("env BOX=1", command, None)
    assert started == ("env", "BOX=1", "reframe", *command[1:])


def test_what_says_otherwise_how_sessions_run_is_refused():
    with pytest.raises(UsageError, match="it goes with none of --stage, --network, "):
        every_node.in_container("env", ("reframe",), True)


def test_hosts_that_ssh_reaches_are_measured_without_a_container(command):
    ended = command("every-node", "--hosts", "gpu1", "--within", "env", code=2)
    assert "--hosts goes with no other option" in ended.words
