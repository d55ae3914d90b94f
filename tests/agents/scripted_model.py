"""A model that says what a test tells it to: the Anthropic Messages API on loopback, played from a script.

A script is a function of the request. Whatever Claude Code asks besides its main loop (a title, a quota probe) is
answered apart from it and kept in `side_requests`, so a script sees only the turns of the conversation:

    def script(request: Request) -> Reply:
        if request.tool_results:
            return text(f"The tool said {request.tool_results[-1].text}")
        return tool_use("mcp__holdfast__thought", {"thought": "hold fast", "nextThoughtNeeded": False})

    with ScriptedModel(script) as model:
        run = run_claude(model, project, "Think.", home=home)
    assert "mcp__holdfast__thought" in model.requests[0].tools

Most scripts are a list: `steps(tool_use(…), text("Done."))` plays one reply per request, and a step may itself be a
function of the request. A reply may hold several blocks (`reply(say("…"), use("Bash", {…}))`), come late
(`later(2.0, text("…"))`), be an error of the API (`api_error(529)`) or break off (`dropped()`). Without a script the
model answers "I have seen N user turns; last: …", which proves that a context went on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, Self

from tests.agents.messages_api import Block, MessagesApi, Reply, Request

__all__ = [
    "Block",
    "Reply",
    "Request",
    "Script",
    "ScriptedModel",
    "api_error",
    "dropped",
    "later",
    "reply",
    "say",
    "seen_so_far",
    "steps",
    "text",
    "tool_use",
    "use",
]

SIDE_ANSWER = '{"title": "A scripted session"}'
"""Fits the schema that a request for a title asks for; probes look at the status only."""

SHUTDOWN_POLL = 0.01
"""Seconds until the API notices that it is closed: every test waits for that, and the default is half a second."""

_serial = count(1)


def say(words: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": words}


def use(name: str, arguments: dict[str, Any]) -> Block:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": f"toolu_scripted_{next(_serial):06}", "name": name, "input": arguments}


def reply(*blocks: Block) -> Reply:
    """Several blocks in one message."""
    return Reply(blocks)


def text(words: str) -> Reply:
    """A message of text, which ends the turn."""
    return Reply((say(words),))


def tool_use(name: str, arguments: dict[str, Any]) -> Reply:
    """A message that calls one tool."""
    return Reply((use(name, arguments),))


def later(seconds: float, then: Reply) -> Reply:
    """The same reply after a pause; the pause ends early when the model is closed."""
    return replace(then, delay=seconds)


def api_error(status: int, message: str = "scripted error") -> Reply:
    """An error of the API: 429, 500, 529 …"""
    return Reply(status=status, message=message)


def dropped(*blocks: Block) -> Reply:
    """A connection that breaks: before the first byte, or after these blocks."""
    return Reply(blocks, breaks_off=True)


Script = Callable[[Request], Reply]


def seen_so_far(request: Request) -> Reply:
    """The reply of a model without a script: how many turns its context holds, and the last of them."""
    turns = request.user_turns
    return text(f"I have seen {len(turns)} user turns; last: {turns[-1] if turns else ''}")


def steps(*replies: Reply | Script) -> Script:
    """A script that plays one reply per request, in order; a request too many is an error of the test."""
    remaining: Iterator[Reply | Script] = iter(replies)

    def play(request: Request) -> Reply:
        step = next(remaining, None)
        if step is None:
            raise AssertionError(f"the script has {len(replies)} steps, and the model was asked once more")
        return step(request) if callable(step) else step

    return play


class ScriptedModel:
    """The Messages API on a loopback port, for as long as the `with` block lasts.

    A script that fails answers 400, so that the agent gives up at once, and its error is raised where the block ends.
    """

    def __init__(self, script: Script = seen_so_far) -> None:
        self.script = script
        self.requests: list[Request] = []
        """The main loop's requests, in order of arrival."""
        self.side_requests: list[Request] = []
        self._turn = threading.Lock()
        self._api = MessagesApi(self._answer)
        self._thread = threading.Thread(
            target=self._api.serve_forever, args=(SHUTDOWN_POLL,), name="scripted-model", daemon=True
        )

    @property
    def url(self) -> str:
        return self._api.url

    def discard(self) -> None:
        """Give back the port of a model that was never started."""
        self._api.server_close()

    def _answer(self, request: Request) -> Reply:
        """The script's reply; one request at a time, so that a script may keep state."""
        with self._turn:
            if request.is_side_request:
                self.side_requests.append(request)
                return text(SIDE_ANSWER)
            self.requests.append(request)
            try:
                return self.script(request)
            except Exception as error:  # noqa: BLE001 - raised again where the test ends
                self._api.failures.append(error)
                return api_error(400, f"the script failed: {error}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._api.closing.set()
        self._api.shutdown()
        self._api.server_close()
        self._thread.join()
        if self._api.failures and error is None:
            raise self._api.failures[0]
