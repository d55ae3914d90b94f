"""Schemas are slim, and a wrong parameter is named."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from holdfast.errors import BadInput
from holdfast.wire.mcp.schema import input_schema, parse
from holdfast.wire.mcp.tools import Params


class Example(Params):
    """Never shown."""

    text: str
    operation: Literal["one", "two"]
    number: int | None = None
    tags: list[str] | None = None


def test_a_schema_has_no_titles_no_nulls_and_no_defaults() -> None:
    schema = input_schema(Example)
    text = json.dumps(schema)
    assert not any(word in text for word in ("title", "null", "default", "anyOf", "$ref", "Never shown"))
    assert schema["required"] == ["text", "operation"]
    assert schema["properties"]["number"] == {"type": "integer"}
    assert schema["properties"]["operation"]["enum"] == ["one", "two"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operation": "one"}, "text: is required"),
        ({"text": 5, "operation": "one"}, "text: input should be a valid string"),
        ({"text": "", "operation": "three"}, "operation: input should be 'one' or 'two'"),
        ({"text": "", "operation": "one", "number": "5"}, "number: input should be a valid integer"),
        ({"text": "", "operation": "one", "number": True}, "number: input should be a valid integer"),
        ({"text": "", "operation": "one", "tags": [1]}, "tags.0: input should be a valid string"),
        ({"text": "", "operation": "one", "colour": "red"}, "colour: is not a parameter of this tool; it takes text"),
    ],
)
def test_a_wrong_parameter_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(Example, arguments)
    assert str(caught.value).startswith(message)
