"""A node of each of AMD's models, drafted from its driver, is judged as any node is."""

from __future__ import annotations

import pytest

from proof.any_node import nodes
from proof.any_node.__main__ import BLOCK, PAGE, rows


@pytest.mark.full
@pytest.mark.parametrize(("name", "fault"), nodes.CASES)
def test_a_healthy_node_passes_and_a_fault_is_named(tmp_path, name, fault):
    said = nodes.session(name, fault, tmp_path)
    assert nodes.is_named(name, fault, said), (said.status, said.sentences, said.diagnosed)


def test_the_page_has_every_model_and_names_all_faults():
    block = PAGE.read_text().split(f"<!-- {BLOCK} -->")[1].split(f"<!-- end of {BLOCK} -->")[0]
    assert [line.split(" | ")[0].strip("| ") for line in rows(block)] == [*nodes.MODELS]
    assert "**not named**" not in block
