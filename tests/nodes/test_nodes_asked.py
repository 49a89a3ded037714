"""The file that names the nodes of a session."""

import pytest

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.results import nodes_asked
from fabricheck.results.nodes_asked import AskedNode, AskedNodes


def test_what_was_written_is_read(tmp_path):
    asked = AskedNodes(
        partition="lumi:gpu",
        chosen=("-t", "smoke"),
        started=nodes_asked.now(),
        nodes={"node1": AskedNode(results="node1"), "node2": AskedNode(state="DOWN")},
    )
    file = tmp_path / nodes_asked.NAME
    nodes_asked.write(file, asked)
    assert nodes_asked.read(file) == asked.model_copy(update={"path": file})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"form": "fabricheck-no', "it is no valid JSON ("),
        ('{"form": "another", "partition": null}', "form: input should be 'fabricheck-nodes-1'"),
        ('{"partition": null, "started": "2026-11-22T07:00:00+00:00", "nodes": {}}', "nodes: "),
    ],
)
def test_a_cut_or_other_file_is_a_sentence(tmp_path, text, sentence):
    file = tmp_path / nodes_asked.NAME
    file.write_text(text)
    with pytest.raises(InvalidInputError) as error:
        nodes_asked.read(file)
    assert str(error.value).startswith(f"{file}: {sentence}")


def test_no_file_is_a_sentence(tmp_path):
    with pytest.raises(NotFoundError):
        nodes_asked.read(tmp_path / nodes_asked.NAME)
