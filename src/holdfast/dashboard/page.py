"""What a page is: a path, a function that asks services, and a template that shows what they returned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from holdfast.connections.browser_sessions import SignedIn
from holdfast.connections.keys import Scope
from holdfast.connections.model import Attempt
from holdfast.errors import BadInput
from holdfast.identity.caller import Transport
from holdfast.identity.senders import OWNERS_KEY, Sender, identify_sender
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request of a browser that is signed in."""

    who: SignedIn
    url: str
    """The path and query of the page, to come back to."""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    parts: frozenset[str] | None = None
    """The live regions that are wanted; None is the whole page."""
    attempt: Attempt = field(default_factory=lambda: Attempt("unknown"))

    @property
    def may_change(self) -> bool:
        """Whether actions are shown, and allowed."""
        return self.who.key.scope is Scope.ADMIN

    @property
    def sees_secrets(self) -> bool:
        """Whether texts are shown as they are stored."""
        return self.who.key.name == OWNERS_KEY and self.may_change

    @property
    def sender(self) -> Sender:
        """Who acts, for services that want to know."""
        return identify_sender(Transport.HTTP, key=self.who.key.name)

    def wants(self, *parts: str) -> bool:
        """Return whether one of these regions will be shown; data for the others need not be queried."""
        return self.parts is None or not self.parts.isdisjoint(parts)

    def field(self, name: str, most: int = 1_000) -> str:
        """Return a field of the form."""
        given = self.form.get(name)
        if given is None:
            raise BadInput(name, "is required")
        if len(given) > most:
            raise BadInput(name, f"must be at most {most} characters")
        return given


@dataclass(frozen=True, slots=True)
class Shown:
    """A template with its values."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Done:
    """An action that took effect, in a sentence; `to` is the page to go to, by default the one it came from."""

    said: str
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the browser to keep."""

    name: str
    content: bytes
    kind: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page."""

    path: str
    show: Callable[[PageRequest], Awaitable[Shown | Download]]


@dataclass(frozen=True, slots=True)
class Action:
    """One change, made by a form that is sent to its path. It needs a session with scope admin."""

    path: str
    act: Callable[[PageRequest], Awaitable[Done]]


Part = Page | Action


def shown(template: str, /, **values: Any) -> Shown:
    """Return a template with these values."""
    return Shown(template, values)


def in_order(parts: Sequence[Part]) -> list[Part]:
    """Sort so that fixed paths are tried before those with a name to fill in."""
    return sorted(parts, key=lambda part: ("{" in part.path, part.path))
