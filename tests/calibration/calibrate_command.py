"""The commands `fabricheck limits calibrate`, `transfer` and `noise`, called by tests."""

from fabricheck.references.stated import References
from session_builder import HOST


def run(command, folder, sessions, *options, code=0, system=HOST, name="calibrate"):
    named = ["--system", system] if system else []
    arguments = ["limits", name, *sessions, *named, "--output", folder, *options]
    return command(*arguments, code=code)


def words(text):
    return " ".join(text.split())


def entries(folder, check="stream_local", partition=HOST, named=None):
    """Return what ReFrame will require of a check in a partition."""
    return References(folder).entries(check, partition, named)
