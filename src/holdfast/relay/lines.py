"""Lines of JSON-RPC: splits a byte stream into lines, and answers those that no server could.

The MCP SDK does not answer a line it cannot parse, and the agent that wrote it waits forever. So each such
line is answered here, with the id it carries, before it can reach the SDK.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from typing import Any

MAX_LINE = 8 * 1024 * 1024
MAX_DEPTH = 100
MAX_BATCH_ERRORS = 1000
HEAD = 64 * 1024
TAIL = 4 * 1024

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


class Overlong:
    """A line over the limit: only its two ends were kept."""

    __slots__ = ("head", "size", "tail")

    def __init__(self, head: bytes, tail: bytes, size: int) -> None:
        self.head = head
        self.tail = tail
        self.size = size


class LineSplitter:
    """Splits a stream into lines and never buffers more than the limit of one line."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held = bytearray()
        self._overlong: Overlong | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Return the lines that `data` completes, without their newline."""
        lines: list[bytes | Overlong] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            lines.append(self._complete())
            start = end + 1
        self._hold(data[start:])
        return lines

    def finish(self) -> list[bytes | Overlong]:
        """Return the last line if the stream ended without a newline."""
        return [self._complete()] if self._held or self._overlong else []

    def _hold(self, piece: bytes) -> None:
        if self._overlong is not None:
            self._overlong.size += len(piece)
            self._overlong.tail = (self._overlong.tail + piece[-TAIL:])[-TAIL:]
            return
        self._held += piece
        if len(self._held) > self._limit:
            held = bytes(self._held)
            self._overlong = Overlong(held[:HEAD], held[-TAIL:], len(held))
            self._held.clear()

    def _complete(self) -> bytes | Overlong:
        if self._overlong is not None:
            line, self._overlong = self._overlong, None
            return line
        whole = bytes(self._held)
        self._held.clear()
        return whole


class Message:
    """One valid JSON-RPC message and the line it came in."""

    __slots__ = ("body", "line")

    def __init__(self, line: bytes, body: dict[str, Any]) -> None:
        self.line = line
        self.body = body

    @property
    def id(self) -> Any:
        """The message's id, or None for a notification."""
        return self.body.get("id")

    @property
    def method(self) -> str | None:
        """The method of a request or notification, or None for a response."""
        method = self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def is_request(self) -> bool:
        """Whether the sender expects an answer."""
        return "method" in self.body and "id" in self.body

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; empty if there are none."""
        params = self.body.get("params")
        return params if isinstance(params, dict) else {}


class Unreadable:
    """A line that no server can handle, and the replies to its sender: none if it was itself a response."""

    __slots__ = ("replies",)

    def __init__(self, replies: list[bytes]) -> None:
        self.replies = replies


def read_line(line: bytes | Overlong) -> Message | Unreadable | None:
    """Parse `line` into a message, or into the replies to an invalid one; None for a blank line."""
    if isinstance(line, Overlong):
        return _unparsable(line.head, line.tail, INVALID_REQUEST, too_long(line.size))
    if not line.strip():
        return None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return _broken(line, f"invalid UTF-8 at byte {error.start}")
    try:
        body = _decode(text)
    except RecursionError:
        return _broken(line, f"nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        return _broken(line, str(error))
    if isinstance(body, list):
        return _batch(body)
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and deeper_than(MAX_DEPTH, body):
        return _rejected(body, PARSE_ERROR, f"The line is nested deeper than {MAX_DEPTH} levels. Flatten it.")
    if _has_lone_surrogate(line, body):
        return _rejected(body, PARSE_ERROR, "The line has a lone surrogate escape. Send whole characters.")
    problem = _problem(body)
    if problem is not None:
        return _rejected(body, INVALID_REQUEST, problem)
    return Message(line.strip(), body)


def is_id(value: object) -> bool:
    """Return whether `value` may be the id of an MCP request: a string or an integer, not a boolean or a float."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def encode(body: dict[str, Any]) -> bytes:
    """Encode `body` as one line without its newline."""
    return _encode(body).encode("utf-8")


def error_reply(id: object, code: int, message: str) -> bytes:
    """Return the JSON-RPC error that answers request `id`."""
    return encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def too_long(size: int) -> str:
    """Return the error message for an overlong line."""
    return f"The line has {size} bytes; the limit is {MAX_LINE}. Send less in one message, or split it."


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} does not fit a double")
    return number


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


# json.loads and json.dumps would make one of these for each line.
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _broken(line: bytes, why: str) -> Unreadable:
    message = f"The line is not valid JSON: {why}. Send one JSON-RPC 2.0 message per line, in UTF-8."
    return _unparsable(line, b"", PARSE_ERROR, message)


def _unparsable(head: bytes, tail: bytes, code: int, message: str) -> Unreadable:
    members = end_members(head, tail)
    is_answer = "method" not in members and ("result" in members or "error" in members)
    return Unreadable([] if is_answer else [error_reply(members.get("id"), code, message)])


def _rejected(body: object, code: int, message: str) -> Unreadable:
    if not isinstance(body, dict):
        return Unreadable([error_reply(None, code, message)])
    if "method" not in body and ("result" in body or "error" in body):
        return Unreadable([])
    return Unreadable([error_reply(_echo(body.get("id")), code, message)])


def _echo(id: object) -> object:
    """Return the id if a reply may carry it, or None."""
    if isinstance(id, str):
        return id if _encodable(id) else None
    return id if isinstance(id, int | float) and not isinstance(id, bool) else None


def _batch(body: list[Any]) -> Unreadable:
    message = "Batches are not part of MCP. Send each message on a line of its own."
    waiting = [part for part in body if isinstance(part, dict) and "method" in part and "id" in part]
    ids = [_echo(part["id"]) for part in waiting[:MAX_BATCH_ERRORS]] or [None]
    return Unreadable([error_reply(id, INVALID_REQUEST, message) for id in ids])


def _problem(body: object) -> str | None:
    """Return why a server would not answer `body`, or None if it would."""
    if not isinstance(body, dict):
        return "The line is not a JSON object. Send one JSON-RPC 2.0 message per line."
    if body.get("jsonrpc") != "2.0":
        return 'jsonrpc: must be "2.0".'
    if "id" in body and not is_id(body["id"]):
        return "id: must be a string or an integer."
    if "method" in body:
        if not isinstance(body["method"], str):
            return "method: must be a string."
        if not isinstance(body.get("params"), dict | None):
            return "params: must be an object. Leave it out when there is nothing to say."
        return None
    if "id" in body and (isinstance(body.get("result"), dict) or isinstance(body.get("error"), dict)):
        return None
    return "method: missing. A request has jsonrpc, id and method; a response has result or error instead."


def deeper_than(limit: int, body: object) -> bool:
    """Return whether objects and lists are nested deeper than `limit`."""
    level = [body]
    for _ in range(limit):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return False
        level = inner
    return any(isinstance(value, dict | list) for value in level)


def _has_lone_surrogate(line: bytes, body: object) -> bool:
    if b"\\ud" not in line and b"\\uD" not in line:
        return False
    return not _encodable(json.dumps(body, ensure_ascii=False))


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def end_members(head: bytes, tail: bytes) -> dict[str, Any]:
    """Return the id, method, result and error found at the two ends of a line."""
    # Imported late: most relays never see such a line, and compiling the patterns slows the start.
    from holdfast.relay.ends import members

    return members(head, tail)
