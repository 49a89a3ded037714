"""What `results show` and `results validate` say of a comparison with a node model."""

import pytest

import factories

GONE = "Pair 0-6: 2 links in mi250x, no direct link on node1."


@pytest.mark.parametrize(
    ("differences", "shown", "verdict"),
    [
        ([], "differences from the node model: none", "no differences from the node model"),
        ([GONE], GONE, "1 difference from the node model"),
        ([GONE, "Another."], "differences from the node model: 2", "2 differences from the node"),
    ],
)
def test_a_comparison_is_shown(command, tmp_path, differences, shown, verdict):
    content = factories.simulated_document(series=[], differences=differences)
    path = str(factories.write(tmp_path / "result.json", content))
    for line, said in (("show", shown), ("validate", verdict)):
        result = command("results", line, path)
        assert said in " ".join(result.stdout.split())
