"""The OpenAPI document of the REST routes, built from the same descriptions that serve them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from holdfast.connections.keys import Scope
from holdfast.version import __version__
from holdfast.wire.http.rest import Answer, Problem, Reply, ResponseModel, RestRequest, RestRoute

PATH = "/api/openapi.json"
DESCRIPTION = (
    'Connections of agents, who took them up again, and how tools are used. Errors are always {"detail": text}.'
    " Fields that do not apply are left out; times are ISO 8601 in UTC."
)


class Document(ResponseModel):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow")

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


_Schemas = dict[type[Any], dict[str, Any]]


def with_document(routes: Sequence[RestRoute]) -> list[RestRoute]:
    """Return these routes, plus one that serves their document."""
    served: dict[str, Any] = {}

    async def serve(request: RestRequest) -> Reply:
        return Reply(served)

    itself = RestRoute("GET", PATH, "openapi", "This document", serve, {200: Answer("The document.", Document)})
    complete = [*routes, itself]
    served.update(document(complete))
    return complete


def document(routes: Sequence[RestRoute]) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document."""
    schemas, definitions = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "`holdfast key` prints it"}},
        },
        "security": [{"key": []}],
    }


class _WithoutNulls(GenerateJsonSchema):
    """JSON schema generator without nulls: fields that do not apply are left out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if described.get("default", ...) is None:
            del described["default"]
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schemas(routes: Sequence[RestRoute]) -> tuple[_Schemas, dict[str, Any]]:
    """Return a schema (or a reference to one) for every model, and the definitions referred to."""
    requests = {model for route in routes for model in (route.path_params, route.query, route.body) if model}
    responses = {answer.body for route in routes for answer in route.answers.values() if answer.body} | {Problem}
    wanted: list[tuple[type[Any], JsonSchemaMode]] = [
        *((model, "validation") for model in sorted(requests, key=lambda model: model.__name__)),
        *((model, "serialization") for model in sorted(responses, key=lambda model: model.__name__)),
    ]
    found, whole = TypeAdapter.json_schemas(
        [(model.__name__, mode, TypeAdapter(model)) for model, mode in wanted],
        ref_template="#/components/schemas/{model}",
        schema_generator=_WithoutNulls,
    )
    definitions = whole["$defs"]
    parameters = {model.__name__ for route in routes for model in (route.path_params, route.query)}
    shown = {name: schema for name, schema in definitions.items() if name not in parameters}
    by_model: _Schemas = {
        model: definitions[model.__name__] if model.__name__ in parameters else found[model.__name__, mode]
        for model, mode in wanted
    }
    return by_model, shown


def _operation(route: RestRoute, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [
            *_parameters("path", schemas[route.path_params]),
            *_parameters("query", schemas[route.query]),
        ],
        "responses": {str(status): _response(answer, schemas) for status, answer in _answers(route)},
    }
    if route.scope is None:
        operation["security"] = []
    else:
        operation["description"] = f"Needs a key with scope {route.scope.value}" + (
            " or admin." if route.scope is Scope.READ else "."
        )
    if route.body is not None:
        content = {"application/json": {"schema": schemas[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(place: str, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", [])
    for name, described in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": place,
            "required": name in required,
            "description": described.get("description", name),
            "schema": {key: value for key, value in described.items() if key != "description"},
        }


def _answers(route: RestRoute) -> list[tuple[int, Answer]]:
    """Return the route's own answers, and those that every route can give."""
    common = {
        403: Answer("The origin is foreign, or the key's scope does not suffice.", Problem),
        421: Answer("The host name is not served here.", Problem),
        422: Answer("A parameter is unknown, missing or not what it must be.", Problem),
        500: Answer("Something unexpected happened; the daemon's log says what.", Problem),
        503: Answer("Too much at once; repeat later.", Problem, {"Retry-After": "seconds to wait"}),
    }
    if route.scope is not None:
        common[401] = Answer("The key is missing or not in force.", Problem, {"WWW-Authenticate": "Bearer"})
    if route.body is not None:
        common[400] = Answer("The body is not JSON.", Problem)
        common[413] = Answer("The body is too long.", Problem)
        common[415] = Answer("The body is not declared as JSON.", Problem)
    return sorted({**common, **route.answers}.items(), key=lambda each: each[0])


def _response(answer: Answer, schemas: _Schemas) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.description}
    if answer.body is not None:
        response["content"] = {"application/json": {"schema": schemas[answer.body]}}
    if answer.headers:
        response["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
        }
    return response
