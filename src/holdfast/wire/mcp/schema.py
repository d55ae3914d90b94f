"""Slim JSON schemas: agents pay for them in tokens, so titles, nulls and defaults are left out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from holdfast.errors import BadInput
from holdfast.text.quoting import named

DROPPED = ("title", "default", "$defs", "additionalProperties")
"""Keywords that no agent needs: unknown parameters are refused by name, whatever the schema says."""


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a tool's parameters."""
    schema = model.model_json_schema()
    definitions: dict[str, Any] = schema.get("$defs", {})
    slim: dict[str, Any] = _slim(schema, definitions)
    slim.pop("description", None)
    slim.setdefault("properties", {})
    return slim


def _slim(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_slim(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _slim(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option.get("type") != "null"]
        if len(options) == 1:
            rest = {key: value for key, value in node.items() if key != "anyOf"}
            return _slim({**options[0], **rest}, definitions)
    return {
        key: {name: _slim(value, definitions) for name, value in item.items()}
        if key == "properties"
        else _slim(item, definitions)
        for key, item in node.items()
        if key not in DROPPED
    }


def parse(model: type[BaseModel], arguments: dict[str, Any]) -> Any:
    """Parse the parameters; raises an error that names the field and what it takes."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = named(".".join(str(part) for part in first["loc"]) or "arguments")
        raise BadInput(field, _problem(model, first["type"], first["msg"])) from None


def _problem(model: type[BaseModel], kind: str, message: str) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        names = (field.alias or name for name, field in model.model_fields.items())
        return f"is not a parameter of this tool; it takes {', '.join(names)}"
    return message[0].lower() + message[1:]
