"""The commands `fabricheck limits calibrate`, `transfer` and `noise`, called by tests."""

from typer.testing import CliRunner

from fabricheck.cli import app
from fabricheck.references.stated import References
from repeated_sessions import PARTITION


def run(folder, sessions, *options, code=0, system=PARTITION, command="calibrate"):
    """Call the command; every error and remark is one sentence."""
    named = ["--system", system] if system else []
    arguments = ["limits", command, *sessions, *named, "--output", folder, *options]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    assert all(line.startswith(("fabricheck: ", "wrote ")) for line in result.stderr.splitlines())
    return result


def words(text):
    return " ".join(text.split())


def entries(folder, check="stream_local", partition=PARTITION, named=None):
    """Return what ReFrame will require of a check in a partition."""
    return References(folder).entries(check, partition, named)
