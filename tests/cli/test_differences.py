"""What `results show` and `results validate` say of a comparison with a node model."""

import pytest
from typer.testing import CliRunner

import factories
from fabricheck.cli import app

GONE = "Pair 0-6: 2 links in mi250x, no direct link on node1."


@pytest.mark.parametrize(
    ("differences", "shown", "verdict"),
    [
        ([], "differences from the node model: none", "no differences from the node model"),
        ([GONE], GONE, "1 difference from the node model"),
        ([GONE, "Another."], "differences from the node model: 2", "2 differences from the node"),
    ],
)
def test_a_comparison_is_shown(tmp_path, differences, shown, verdict):
    content = factories.simulated_document(series=[], differences=differences)
    path = str(factories.write(tmp_path / "result.json", content))
    for command, said in (("show", shown), ("validate", verdict)):
        result = CliRunner().invoke(app, ["results", command, path])
        assert result.exit_code == 0
        assert said in " ".join(result.stdout.split())
