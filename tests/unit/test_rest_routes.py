"""The mechanism behind every REST route: what is checked, what is told, and what is never told."""

from __future__ import annotations

from typing import Annotated, Any

import httpx2
import pytest
from pydantic import Field
from tests.rest_in_process import client_of

from holdfast.connections.keys import Scope as KeyScope
from holdfast.errors import BadInput, Busy, Conflict, NotFound, StoreError
from holdfast.wire.http.fields import Limit, RowCursor, SessionId, Time
from holdfast.wire.http.openapi import document
from holdfast.wire.http.rest import MAX_BODY, Answer, Reply, RequestModel, ResponseModel, RestRequest, RestRoute

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


class Which(RequestModel):
    session_id: SessionId


class Page(RequestModel):
    limit: Limit = 50
    cursor: RowCursor = None
    since: Time | None = None


class Note(RequestModel):
    text: Annotated[str, Field(min_length=1, max_length=5)]


class Seen(ResponseModel):
    said: str
    never: str | None = None


FAILURES: dict[str, Exception] = {
    "missing": NotFound("Session not found"),
    "bad": BadInput("limit", "must be small"),
    "conflict": Conflict("Cannot generate token for inactive session"),
    "busy": Busy("The queue is full."),
    "store": StoreError("disk /secret/path is on fire"),
}


async def _say(asked: RestRequest) -> Reply:
    return Reply(Seen(said=f"{asked.query} {asked.path} {asked.body}"))


async def _fail(asked: RestRequest) -> Reply:
    raise FAILURES[asked.path.session_id]


ANSWERS = {200: Answer("It is said.", Seen)}
ROUTES = [
    RestRoute("GET", "/things", "things", "Things", _say, ANSWERS, query=Page),
    RestRoute("GET", "/things/{session_id}", "thing", "A thing", _say, ANSWERS, path_params=Which),
    RestRoute("DELETE", "/things/{session_id}", "drop", "No thing", _say, ANSWERS, KeyScope.ADMIN, path_params=Which),
    RestRoute("GET", "/things/fixed", "fixed", "The fixed one", _say, ANSWERS),
    RestRoute("GET", "/secret", "secret", "A secret", _say, ANSWERS, KeyScope.ADMIN),
    RestRoute("POST", "/notes", "note", "A note", _say, ANSWERS, KeyScope.ADMIN, body=Note),
    RestRoute("GET", "/fail/{session_id}", "fail", "A failure", _fail, ANSWERS, path_params=Which),
]


def _client(scope: KeyScope | None = KeyScope.ADMIN) -> httpx2.AsyncClient:
    return client_of(ROUTES, scope)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/things?limit=0", "limit: must be greater than or equal to 1."),
        ("/things?limit=201", "limit: must be less than or equal to 200."),
        ("/things?limit=ten", "limit: must be a whole number."),
        ("/things?limit=1.0", "limit: must be a whole number."),
        ("/things?limit=%201", "limit: must be a whole number."),
        ("/things?limit=", "limit: must be a whole number."),
        ("/things?limit=1&limit=2", "limit: must be given once."),
        ("/things?cursor=0", "cursor: must be the next_cursor of the page before, unchanged."),
        ("/things?cursor=1%0A", "cursor: must be the next_cursor of the page before, unchanged."),
        ("/things?since=yesterday", "since: must be a time such as 2026-01-31T12:00:00Z."),
        ("/things?since=1700000000", "since: must be a time such as 2026-01-31T12:00:00Z."),
        ("/things?since=2026-02-30T00:00:00Z", "since: must be a time that exists, such as 2026-01-31T12:00:00Z."),
        ("/things?color=red", "color: is not known; this takes limit, cursor, since."),
        ("/things?%00=1", "'\\x00': is not known; this takes limit, cursor, since."),
        ("/things/fixed?limit=1", "limit: is not known; this takes nothing."),
        ("/things/a_b", "session_id: must be a session id: 1 to 64 of A-Z a-z 0-9 -."),
        ("/things/" + "a" * 65, "session_id: must be a session id: 1 to 64 of A-Z a-z 0-9 -."),
        ("/things?" + "&".join(f"a{n}=1" for n in range(30)), "query: must have at most 20 parameters."),
    ],
)
async def test_a_bad_parameter_is_refused_with_its_name_and_what_it_takes(path: str, detail: str) -> None:
    async with _client() as client:
        response = await client.get(path)
    assert (response.status_code, response.json()) == (422, {"detail": detail})


@pytest.mark.parametrize(
    ("since", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01.5z", 1500),
        ("1970-01-01T01:00:00%2B01:00", 0),
        ("1970-01-01T01:00:00+01:00", None),
        ("1972-06-30T23:59:60Z", 78_796_799_000),
        ("9999-12-31T23:59:59-23:00", 253_402_383_599_000),
        ("0001-01-01T00:00:00%2B23:00", -62_135_679_600_000),
    ],
)
async def test_a_time_is_taken_in_every_way_that_iso_writes_it(since: str, ms: int | None) -> None:
    async with _client() as client:
        response = await client.get(f"/things?since={since}")
    # An unescaped plus is a space to a query, so that the time has no zone.
    assert response.status_code == (422 if ms is None else 200)
    assert ms is None or f"since={ms} " in response.json()["said"]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"", 400, "The body is not JSON."),
        (b"{", 400, "The body is not JSON."),
        (b"\xff", 400, "The body is not JSON."),
        (b'{"text": NaN}', 400, "The body is not JSON."),
        (b"[" * 60_000, 400, "The body is not JSON."),
        (b"[]", 422, "body: must be an object."),
        (b"null", 422, "body: must be an object."),
        (b"{}", 422, "text: is required."),
        (b'{"text": 1}', 422, "text: must be a valid string."),
        (b'{"text": ""}', 422, "text: must have at least 1 character."),
        (b'{"text": "123456"}', 422, "text: must have at most 5 characters."),
        (b'{"text": "x", "more": 1}', 422, "more: is not known; this takes text."),
        (b" " * (MAX_BODY + 1), 413, f"The body must have at most {MAX_BODY} bytes."),
    ],
)
async def test_a_bad_body_is_refused_with_what_is_wrong_with_it(body: bytes, status: int, detail: str) -> None:
    async with _client() as client:
        response = await client.post("/notes", content=body, headers=JSON)
    assert (response.status_code, response.json()) == (status, {"detail": detail})


async def test_a_body_must_be_declared_as_json() -> None:
    async with _client() as client:
        assert (await client.post("/notes", content=b'{"text": "x"}')).status_code == 415
        charset = {"Content-Type": "application/json; charset=utf-8"}
        assert (await client.post("/notes", content=b'{"text": "x"}', headers=charset)).status_code == 200


async def test_what_does_not_apply_is_left_out_and_not_null() -> None:
    async with _client() as client:
        assert list((await client.get("/things")).json()) == ["said"]


async def test_a_fixed_path_comes_before_one_with_a_parameter() -> None:
    async with _client() as client:
        assert "session_id" not in (await client.get("/things/fixed")).text


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [
        ("/things/x", "PATCH", "DELETE, GET, HEAD, OPTIONS"),
        ("/things", "POST", "GET, HEAD, OPTIONS"),
        ("/notes", "GET", "OPTIONS, POST"),
        ("/secret", "HEAD", "GET, OPTIONS"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(path: str, method: str, allow: str) -> None:
    async with _client() as client:
        refused, asked = await client.request(method, path), await client.options(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allow)
    assert (asked.status_code, asked.headers["allow"]) == (204, allow)


async def test_a_key_that_may_only_read_changes_nothing() -> None:
    async with _client(KeyScope.READ) as client:
        assert (await client.get("/things")).status_code == 200
        for method, path in (("DELETE", "/things/x"), ("POST", "/notes"), ("GET", "/secret")):
            response = await client.request(method, path, json={"text": "x"})
            assert response.status_code == 403
            assert "tester" in response.json()["detail"] and "admin" in response.json()["detail"]


async def test_a_route_without_its_key_is_shut_even_behind_an_open_gate() -> None:
    async with _client(None) as client:
        response = await client.get("/things")
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(
    ("which", "status", "detail"),
    [
        ("missing", 404, "Session not found"),
        ("bad", 422, "limit: must be small."),
        ("conflict", 400, "Cannot generate token for inactive session"),
        ("busy", 503, "The queue is full."),
        ("store", 500, "Internal error"),
    ],
)
async def test_each_kind_of_error_has_its_status(which: str, status: int, detail: str) -> None:
    async with _client() as client:
        response = await client.get(f"/fail/{which}")
    assert (response.status_code, response.json()) == (status, {"detail": detail})
    assert ("retry-after" in response.headers) == (status == 503)


def test_the_document_says_what_is_checked() -> None:
    told: dict[str, Any] = document(ROUTES)
    parameters = told["paths"]["/things"]["get"]["parameters"]
    assert [(each["name"], each["in"], each["required"]) for each in parameters] == [
        ("limit", "query", False),
        ("cursor", "query", False),
        ("since", "query", False),
    ]
    assert parameters[0]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
    assert parameters[2]["schema"] == {"type": "string", "format": "date-time"}
    assert set(told["paths"]["/notes"]["post"]["responses"]) == {
        *("200", "400", "401", "403", "413", "415", "421", "422", "500", "503")
    }
    assert told["components"]["schemas"]["Note"]["additionalProperties"] is False
    assert told["components"]["schemas"]["Seen"]["properties"]["never"] == {"type": "string"}
    assert "null" not in str(told)
