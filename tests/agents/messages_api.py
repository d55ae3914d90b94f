"""The Anthropic Messages API as Claude Code speaks it: requests read, replies written, whole or as a stream."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, takewhile
from typing import Any

Block = dict[str, Any]

HARNESS_TAGS = ("<system-reminder>", "<command-", "<local-command-")
"""How a user message begins that Claude Code wrote itself."""

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}

_serial = count(1)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model does with one request."""

    blocks: tuple[Block, ...] = ()
    status: int = 200
    message: str = ""
    """The text of an error, where `status` is one."""
    delay: float = 0.0
    """Seconds until the first byte."""
    breaks_off: bool = False
    """The connection is closed after the blocks, before the message is complete."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back from a tool, as the model is given it."""

    tool_use_id: str
    text: str
    is_error: bool

    def json(self) -> Any:
        """The text read as JSON: structured content arrives so."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Request:
    """One request for a message, as it arrived."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that are loaded with their schemas, by name."""
        return {tool["name"]: tool for tool in self.body.get("tools") or []}

    @cached_property
    def system(self) -> str:
        """The system prompt as one text."""
        return _text_of(self.body.get("system", ""))

    @cached_property
    def text(self) -> str:
        """All text the model was given: the system prompt and every message."""
        return "\n".join([self.system, *(_text_of(message["content"]) for message in self.messages)])

    @cached_property
    def user_turns(self) -> list[str]:
        """What the user said, turn by turn, without tool results and without what the harness added."""
        said = [
            block for message in self.messages if message["role"] == "user" for block in _blocks(message["content"])
        ]
        words = [block["text"].strip() for block in said if block.get("type") == "text"]
        return [word for word in words if not word.startswith(HARNESS_TAGS)]

    @cached_property
    def tool_results(self) -> list[ToolResult]:
        """The results of the tools that the model called last; empty at the start of a turn."""
        since_then = takewhile(lambda message: message["role"] != "assistant", reversed(self.messages))
        return [
            ToolResult(block["tool_use_id"], _text_of(block.get("content", "")), bool(block.get("is_error")))
            for message in reversed(list(since_then))
            for block in _blocks(message["content"])
            if block.get("type") == "tool_result"
        ]

    @property
    def is_side_request(self) -> bool:
        """True for what is no turn of a conversation: a title or a probe has no tools and manages no context."""
        return not self.tools and "context_management" not in self.body


class MessagesApi(ThreadingHTTPServer):
    """The API on a free loopback port; `answer` is called once per request for a message."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.closing = threading.Event()
        self.failures: list[BaseException] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong here; a client that was killed in mid-answer is part of many tests and no failure."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MessagesApi

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the requests are kept."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        tokens = max(1, len(json.dumps(body)) // 4)
        if path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": tokens})
        elif path == "/v1/messages":
            request = Request(body, {name.lower(): value for name, value in self.headers.items()})
            self._play(request, self.server.answer(request), tokens)
        else:
            self._send_json(404, _error(404, f"no such path: {path}"))

    def _play(self, request: Request, played: Reply, tokens: int) -> None:
        self.server.closing.wait(played.delay)
        streams = bool(request.body.get("stream"))
        if played.status != 200:
            self._send_json(played.status, _error(played.status, played.message))
        elif played.breaks_off and not (played.blocks and streams):
            self.close_connection = True
        elif streams:
            self._stream(_events(_message(request, played, tokens), whole=not played.breaks_off))
        else:
            self._send_json(200, _message(request, played, tokens))

    def _stream(self, events: Iterable[dict[str, Any]]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def _send_json(self, status: int, content: dict[str, Any]) -> None:
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _error(status: int, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": ERROR_TYPES.get(status, "api_error"), "message": message}}


def _message(request: Request, played: Reply, tokens: int) -> dict[str, Any]:
    calls_a_tool = any(block["type"] == "tool_use" for block in played.blocks)
    return {
        "id": f"msg_scripted_{next(_serial):06}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "scripted"),
        "content": list(played.blocks),
        "stop_reason": "tool_use" if calls_a_tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": max(1, len(json.dumps(played.blocks)) // 4)},
    }


def _events(message: dict[str, Any], *, whole: bool) -> Iterator[dict[str, Any]]:
    """The message as a stream of events; one that is not whole has no end."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if whole:
        ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
        yield {"type": "message_stop"}


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text_of(content: str | list[Block]) -> str:
    return "\n".join(block["text"] for block in _blocks(content) if block.get("type") == "text")
