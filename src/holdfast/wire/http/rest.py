"""REST routes: each is described once, and served, validated and documented from that description."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import groupby
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from holdfast.connections.keys import Key
from holdfast.connections.keys import Scope as KeyScope
from holdfast.errors import BadInput, Busy, Conflict, HoldfastError, NotFound, OutcomeUnknown, StoreUnreachable
from holdfast.identity.caller import Transport
from holdfast.identity.senders import OWNERS_KEY, NotYours, Sender, identify_sender
from holdfast.lazy_dataclass import dataclass
from holdfast.text import bounded_json
from holdfast.text.masking import mask_for_async

MAX_BODY = 2 * 1024 * 1024
"""Bytes: enough for the longest message, however it is escaped."""
LONGEST_CLIENT = 200
MAX_PARAMETERS = 20
STATUS_OF: Mapping[type[HoldfastError], int] = {
    NotFound: 404,
    BadInput: 422,
    NotYours: 403,
    Conflict: 400,
    Busy: 503,
}
BUSY_SECONDS = 1

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)


class RequestModel(BaseModel):
    """What a client sends, in path, query or body: unknown names and null are refused by name."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, dict) else ():
            if value is None:
                raise ValueError(f"{name} is null; leave it out instead")
        return values


class ResponseModel(BaseModel):
    """What a client receives. Fields that do not apply are left out, never null."""

    model_config = ConfigDict(frozen=True)


class Nothing(RequestModel):
    """No parameters."""


class Problem(ResponseModel):
    """Why a request was refused."""

    detail: str


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request whose key, path, query and body are valid."""

    key: Key | None
    address: str
    client: str | None
    path: Any
    query: Any
    body: Any

    @property
    def sender(self) -> Sender:
        """Return who makes the request, and for which teams."""
        if self.key is None:
            return identify_sender(Transport.HTTP)
        return identify_sender(Transport.HTTP, key=self.key.name, key_teams=self.key.teams)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; without a body only the status and the headers are sent."""

    body: object | None
    """A model, a dataclass or JSON as it is."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the answers that a route may give, for its documentation."""

    description: str
    body: type[Any] | None = None
    """A model or a dataclass."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Its headers, each with a description."""


@dataclass(frozen=True, slots=True)
class RestRoute:
    """One operation: its path, scope, parameters and answers."""

    method: str
    path: str
    name: str
    """The operation's name in the documentation and in `holdfast.client`."""
    summary: str
    handler: Callable[[RestRequest], Awaitable[Reply]]
    answers: Mapping[int, Answer]
    scope: KeyScope | None = KeyScope.READ
    """The minimum scope of the key; None for a route that needs no key."""
    path_params: type[RequestModel] = Nothing
    query: type[RequestModel] = Nothing
    body: type[RequestModel] | None = None
    tag: str = "daemon"
    hands_out_token: bool = False
    """Whether the answer contains a token that the client asked for."""
    for_teams: bool = False
    """Whether it respects the teams of a limited key; other routes refuse such keys."""


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Build an error response: {"detail": …}."""
    return JSONResponse({"detail": detail}, status_code=status, headers=dict(headers or {}))


def starlette_routes(routes: Sequence[RestRoute]) -> list[Route]:
    """Build Starlette's routes: one per path, so that a wrong method is answered with all the right ones."""
    # Fixed paths come first: /sessions/active is not a session id.
    ordered = sorted(routes, key=lambda route: ("{" in route.path, route.path))
    by_path = groupby(ordered, key=lambda route: route.path)
    return [Route(path, _Operations(list(same_path))) for path, same_path in by_path]


class _Operations:
    """Answers every request to one path."""

    def __init__(self, routes: Sequence[RestRoute]) -> None:
        self._routes = {route.method: route for route in routes}
        get = self._routes.get("GET")
        if get is not None and get.scope is not KeyScope.ADMIN:
            # A GET for administrators may have effects, which a HEAD must not have.
            self._routes["HEAD"] = get
        self._allow = ", ".join(sorted({*self._routes, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allow})
        route = self._routes.get(request.method)
        if route is None:
            return refusal(405, f"This path takes {self._allow}.", {"Allow": self._allow})
        try:
            reply = await route.handler(await _rest_request(route, request))
        except HTTPException as error:
            return refusal(error.status_code, error.detail, error.headers)
        except HoldfastError as error:
            return _refused(error)
        if reply.body is None:
            return Response(status_code=reply.status, headers=dict(reply.headers))
        body = reply.body if isinstance(reply.body, dict) else _json(reply.body)
        key: Key | None = request.scope.get("holdfast.key")
        if not route.hands_out_token and (key is None or key.name != OWNERS_KEY):
            body = await mask_for_async(body, None)
        return JSONResponse(body, status_code=reply.status, headers=dict(reply.headers))


def _json(body: object) -> Any:
    shape: Any = type(body)
    return _adapter(shape).dump_python(body, mode="json", exclude_none=True)


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def away() -> Response:
    """Answer while the database does not answer; its address and error are not for clients."""
    return refusal(503, "The database does not answer; `holdfast status` says why.", {"Retry-After": str(BUSY_SECONDS)})


def _refused(error: HoldfastError) -> Response:
    if isinstance(error, StoreUnreachable):
        return away()
    if isinstance(error, OutcomeUnknown):
        return refusal(500, "It is not known whether the change took effect. Look before you repeat it.")
    status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), None)
    if status is None:
        logger.error("a REST request failed", exc_info=error)
        return refusal(500, "Internal error")
    return refusal(status, str(error), {"Retry-After": str(BUSY_SECONDS)} if status == 503 else None)


# -- reading a request ------------------------------------------------------------------------------------------------


async def _rest_request(route: RestRoute, request: Request) -> RestRequest:
    key: Key | None = request.scope.get("holdfast.key")
    _check_scope(route, key)
    return RestRequest(
        key=key,
        address=request.client.host if request.client else "unknown",
        client=client_name(request),
        path=_checked(route.path_params, dict(request.path_params)),
        query=_checked(route.query, _query(request)),
        body=await _body(route.body, request),
    )


def _check_scope(route: RestRoute, key: Key | None) -> None:
    if route.scope is None:
        return
    if key is None:
        raise HTTPException(401, "A key is needed.", {"WWW-Authenticate": "Bearer"})
    if route.scope is KeyScope.ADMIN and key.scope is not KeyScope.ADMIN:
        raise HTTPException(403, f"The key {key.name} may only read; this needs a key with scope admin.")
    if key.teams is not None and not route.for_teams:
        raise HTTPException(403, f"The key {key.name} is limited to teams; this needs one that is not.")


def client_name(request: Request) -> str | None:
    """Return what a client calls itself."""
    agent = request.headers.get("user-agent", "")
    return "".join(char for char in agent if char.isprintable())[:LONGEST_CLIENT] or None


def _query(request: Request) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            request.url.query, keep_blank_values=True, errors="replace", max_num_fields=MAX_PARAMETERS, separator="&"
        )
    except ValueError:
        raise BadInput("query", f"must have at most {MAX_PARAMETERS} parameters") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if name in query:
            raise BadInput(_short(name), "must be given once")
        query[name] = value
    return query


async def _body(model: type[RequestModel] | None, request: Request) -> RequestModel | None:
    if model is None:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "The body must be JSON: send the header 'Content-Type: application/json'.")
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise HTTPException(413, f"The body must have at most {MAX_BODY} bytes.")
    try:
        content = bounded_json.loads(data, parse_constant=_no_number)
    except ValueError:
        raise HTTPException(400, "The body is not JSON.") from None
    if not isinstance(content, dict):
        raise BadInput("body", "must be an object")
    return _checked(model, content)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _checked(model: type[M], values: dict[str, Any]) -> M:
    """Return the parameters, or an error that names the field and what it takes."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(_short(name) or "body", _problem(model, name, first["type"], first["msg"])) from None


def _problem(model: type[BaseModel], name: str, kind: str, message: str) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return f"is not known; this takes {', '.join(model.model_fields) or 'nothing'}"
    if kind == "string_pattern_mismatch" and name in model.model_fields:
        # The description of a field with a pattern says what the pattern means.
        return f"must be {model.model_fields[name].description}"
    return re.sub(r"^(Value error, |(Input|String) should )", "must ", message)


def _short(name: str) -> str:
    return name if len(name) <= 64 and name.isprintable() else ascii(name[:64])
