"""The documents of a verdict: their schema, how they are written, and how read."""

import json

from fabricheck.verdict import documents


def test_the_schema_in_the_package_is_that_of_the_types():
    from importlib import resources

    text = resources.files("fabricheck").joinpath("schema/verdict-1.schema.json").read_text()
    assert json.loads(text) == documents.schema()
