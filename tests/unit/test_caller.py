"""The ladder from what a call brings to who is asking, as one table of cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadInput
from holdfast.identity.caller import Era, Hello, Signals, Transport, choose_root, identify
from holdfast.identity.project import RootSource

RELAY, HTTP = Transport.RELAY, Transport.HTTP
LEGACY, MODERN = Era.LEGACY, Era.MODERN


@pytest.mark.parametrize(
    ("signals", "identity"),
    [
        # transport × era × what came along → who it is
        (Signals(RELAY, LEGACY, relay="r1"), "relay:r1"),
        (Signals(RELAY, MODERN, relay="r1"), "relay:r1"),
        (Signals(RELAY, LEGACY, relay="r1", agent_session="a1"), "agent:a1"),
        (Signals(RELAY, MODERN, relay="r1", agent_session="a1"), "agent:a1"),
        (Signals(RELAY, LEGACY, relay="r1", agent_session="a1", handle="c1"), "connection:c1"),
        (Signals(HTTP, LEGACY, mcp_session="m1"), "http:m1"),
        (Signals(HTTP, LEGACY, mcp_session="m1", handle="c1"), "connection:c1"),
        (Signals(HTTP, LEGACY), None),
        (Signals(HTTP, MODERN), None),
        (Signals(HTTP, MODERN, mcp_session="m1"), None),
        (Signals(HTTP, MODERN, handle="c1"), "connection:c1"),
        (Signals(HTTP, LEGACY, agent_session="a1", mcp_session="m1"), "http:m1"),
    ],
)
def test_who_is_asking(signals: Signals, identity: str | None) -> None:
    assert identify(signals) == identity


@pytest.mark.parametrize(
    ("hints", "uri", "source"),
    [
        ({}, None, None),
        ({"directory": "/d"}, "file:///d", RootSource.DIRECTORY),
        ({"directory": "/d", "environment": "/e"}, "file:///e", RootSource.ENVIRONMENT),
        ({"directory": "/d", "environment": "/e", "client": ["file:///c"]}, "file:///c", RootSource.CLIENT),
        ({"client": ["file:///c", "file:///c2"]}, "file:///c", RootSource.CLIENT),
        ({"client": ["file:///c"], "bound": "/b"}, "file:///b", RootSource.BOUND),
        ({"bound": "/b", "argument": "/a"}, "file:///a", RootSource.ARGUMENT),
        ({"client": ["not a root"], "directory": "/d"}, "file:///d", RootSource.DIRECTORY),
    ],
)
def test_which_root_counts(hints: dict[str, Any], uri: str | None, source: RootSource | None) -> None:
    root = choose_root(**hints)
    assert (root.uri if root else None, root.source if root else None) == (uri, source)


def test_a_malformed_argument_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        choose_root(argument="not a root", directory=str(tmp_path))


GOOD = {"relay": "r", "version": "1", "pid": 1, "ppid": 2, "cwd": "/x"}


def test_a_hello_is_read() -> None:
    hello = Hello.of({**GOOD, "env": {"CLAUDE_PROJECT_DIR": "/p"}, "toolsets": "all"})
    assert (hello.relay, hello.ppid, hello.env["CLAUDE_PROJECT_DIR"], hello.toolsets) == ("r", 2, "/p", "all")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"relay": 5}, "hello.relay"),
        ({"relay": "x" * 65}, "hello.relay"),
        ({"pid": "1"}, "hello.pid"),
        ({"cwd": 5}, "hello.cwd"),
        ({"env": {"A": 1}}, "hello.env"),
        ({"env": []}, "hello.env"),
        ({"version": None}, "hello.version"),
    ],
)
def test_a_strange_hello_is_refused_by_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(BadInput, match=field):
        Hello.of({**GOOD, **change})
