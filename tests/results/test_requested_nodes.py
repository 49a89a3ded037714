"""The file that names the nodes of a session."""

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes


def test_what_was_written_is_read(tmp_path):
    requested = RequestedNodes(
        partition="lumi:gpu",
        chosen=("-t", "smoke"),
        started=requested_nodes.now(),
        nodes={"node1": RequestedNode(results="node1"), "node2": RequestedNode(state="DOWN")},
    )
    file = tmp_path / requested_nodes.NAME
    requested_nodes.write(file, requested)
    assert requested_nodes.read(file) == requested.model_copy(update={"path": file})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"form": "fabricheck-no', "it is not valid JSON ("),
        (
            r'{"partition": null, "started": "2026-11-22T07:00:00Z", "nodes": {"n": {}}, "\n": 1}',
            r"'\n': this key is unknown",
        ),
        ('{"form": "another", "partition": null}', "form: input should be 'fabricheck-nodes-1'"),
        ('{"partition": null, "started": "2026-11-22T07:00:00+00:00", "nodes": {}}', "nodes: "),
    ],
)
def test_a_cut_or_other_file_is_a_sentence(tmp_path, text, sentence):
    file = tmp_path / requested_nodes.NAME
    file.write_text(text)
    with pytest.raises(InvalidInputError) as error:
        requested_nodes.read(file)
    assert str(error.value).startswith(f"{file}: {sentence}")


def test_an_older_file_has_another_key_for_how_a_node_ended(tmp_path):
    file = tmp_path / requested_nodes.NAME
    file.write_text(
        '{"partition": null, "started": "2026-11-22T07:00:00+00:00", '
        '"nodes": {"node1": {"said": "node1 was stopped."}}}'
    )
    assert requested_nodes.read(file).nodes["node1"].how_ended == "node1 was stopped."


def test_a_key_that_stands_twice_is_refused(tmp_path):
    """Of two equal keys a parser takes the last: a status would be another node's."""
    file = tmp_path / requested_nodes.NAME
    file.write_text(
        '{"partition": null, "started": "2026-11-22T07:00:00+00:00", '
        '"nodes": {"node1": {"status": 1, "status": 0}}}'
    )
    with pytest.raises(InvalidInputError, match=f"{file}: contains the key 'status' twice"):
        requested_nodes.read(file)


@pytest.mark.parametrize("started", ["20261", "2026", "1767323045.5"])
def test_what_is_left_of_a_date_is_no_number_of_seconds(tmp_path, started):
    file = tmp_path / requested_nodes.NAME
    file.write_text(f'{{"partition": null, "started": "{started}", "nodes": {{"node1": {{}}}}}}')
    with pytest.raises(InvalidInputError, match="started: it is not a date and time"):
        requested_nodes.read(file)


def test_no_file_is_a_sentence(tmp_path):
    with pytest.raises(NotFoundError):
        requested_nodes.read(tmp_path / requested_nodes.NAME)


@pytest.mark.parametrize("place", ["/results", "../16/node1", "node1/../../16"])
def test_the_results_of_a_node_are_beside_its_list(tmp_path, place):
    content = {"form": "fabricheck-nodes-1", "partition": None, "started": "2026-01-01T00:00:00Z"}
    file = factories.write(tmp_path / "nodes.json", content | {"nodes": {"n": {"results": place}}})
    with pytest.raises(InvalidInputError, match="it is no folder beside this file"):
        requested_nodes.read(file)
