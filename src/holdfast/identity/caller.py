"""Who is asking: one pure ladder from what a call brings to an identity, and from there to a root.

A key, a root and a client's name never select an identity: two HTTP clients may share all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from holdfast.errors import BadInput
from holdfast.identity.managed import Managed
from holdfast.identity.project import Root, RootSource, locate
from holdfast.lazy_dataclass import dataclass


class Transport(StrEnum):
    RELAY = "relay"
    HTTP = "http"


class Era(StrEnum):
    """The generation of MCP that the caller speaks: with a handshake, or one envelope per request."""

    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Hello:
    """What a relay tells of itself when it connects."""

    relay: str
    version: str
    pid: int
    ppid: int
    cwd: str
    toolsets: str = "auto"
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def of(line: Mapping[str, Any]) -> Hello:
        """Parse a hello line; a field of the wrong type is an error that names it."""

        def text(name: str, limit: int = 4096) -> str:
            value = line.get(name)
            if not isinstance(value, str) or not 0 < len(value) <= limit:
                raise BadInput(f"hello.{name}", f"must be a text of at most {limit} characters")
            return value

        def number(name: str) -> int:
            value = line.get(name)
            if not isinstance(value, int):
                raise BadInput(f"hello.{name}", "must be a number")
            return value

        env = line.get("env", {})
        if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
            raise BadInput("hello.env", "must map names to texts")
        return Hello(
            relay=text("relay", 64),
            version=text("version", 64),
            pid=number("pid"),
            ppid=number("ppid"),
            cwd=text("cwd") if line.get("cwd") else "",
            toolsets=text("toolsets", 1000) if "toolsets" in line else "auto",
            env=MappingProxyType(dict(env)),
        )


@dataclass(frozen=True, slots=True)
class Signals:
    """Everything in a call that may identify the caller."""

    transport: Transport
    era: Era
    handle: str | None = None
    """A connection id whose token was verified."""
    agent_session: str | None = None
    """The agent's own session id, from a relay's hello or rebound by a hook."""
    relay: str | None = None
    mcp_session: str | None = None
    """The Mcp-Session-Id of a legacy HTTP session."""


def identify(signals: Signals) -> str | None:
    """Return the caller's identity, or None if it cannot be recognised."""
    if signals.handle:
        return f"connection:{signals.handle}"
    if signals.transport is Transport.RELAY:
        if signals.agent_session:
            return f"agent:{signals.agent_session}"
        if signals.relay:
            return f"relay:{signals.relay}"
    elif signals.era is Era.LEGACY and signals.mcp_session:
        return f"http:{signals.mcp_session}"
    return None


def choose_root(
    *,
    argument: str | None = None,
    bound: str | None = None,
    client: Sequence[str] = (),
    environment: str | None = None,
    directory: str | None = None,
) -> Root | None:
    """Choose the caller's strongest root; a malformed argument is an error, a malformed hint is skipped."""
    if argument is not None:
        return locate(argument, RootSource.ARGUMENT)
    hints = [
        (bound, RootSource.BOUND),
        *((uri, RootSource.CLIENT) for uri in client[:1]),
        (environment, RootSource.ENVIRONMENT),
        (directory, RootSource.DIRECTORY),
    ]
    for text, source in hints:
        if text:
            try:
                return locate(text, source)
            except BadInput:
                continue
    return None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, as services see it."""

    transport: Transport
    era: Era
    identity: str | None
    """Stable across reconnects; None for an unrecognised caller."""
    live: bool = False
    """Whether its transport is open now, so that its sessions are not given to others."""
    pid: int | None = None
    """The relay's process, on the daemon's machine."""
    agent_session: str | None = None
    client_name: str | None = None
    client_version: str | None = None
    principal: str | None = None
    """The name of the key it came with, over HTTP."""
    key_teams: frozenset[str] | None = None
    """The teams that this key is limited to, if any."""
    managed: Managed | None = None
    """Its conversation, if Holdfast runs this agent."""
    directories: tuple[str, ...] = ()
    """Directories of its process, strongest first; no call can change them."""
    root: Root | None = None
    client_roots: tuple[str, ...] = ()
