"""Chats: where people see what a target's agent does. The seam that every transport fills.

A transport sends one text to one place and says what became of it: the id it got there, `RetryLater`, `Undeliverable`
or another `ChatError`. It keeps no queue, retries nothing and knows nothing of the store: order, repetition and pace
are the sender's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from holdfast.bridge.model import Status
from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.team import Chat


@dataclass(frozen=True, slots=True)
class Address:
    """Where a text goes: a target, and its chat if it has one."""

    target: str
    chat: Chat | None = None


@dataclass(frozen=True, slots=True)
class Button:
    label: str
    action: str
    """What pressing it sends back; at most 64 bytes."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One text on its way to a chat."""

    text: str
    key: str
    """The same for every attempt at the same text."""
    buttons: Sequence[Button] = ()
    reply_to: str | None = None
    urgent: bool = False
    status: Status | None = None
    """The status of the message that it replies to, if it says nothing else: a chat may show it in another way."""


@dataclass(frozen=True, slots=True)
class Limit:
    """No more than `count` texts within `seconds` to whatever `key` stands for."""

    key: str
    count: int
    seconds: float


class ChatError(HoldfastError):
    """A text could not be sent; it may work later."""

    code: ClassVar[str] = "E_CHAT"

    def __init__(self, message: str, *, recovery: str | None = None, uncertain: bool = False) -> None:
        super().__init__(message, recovery=recovery)
        self.uncertain = uncertain
        """Whether it may have arrived anyway; if so, a repeated text is marked."""


class RetryLater(ChatError):
    """The chat asked for a pause; the text did not arrive."""

    code = "E_CHAT_LATER"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The chat asked for a pause of {seconds:g} s.")
        self.seconds = seconds


class Undeliverable(ChatError):
    """The chat will never accept this text, however often it is sent."""

    code = "E_CHAT_UNDELIVERABLE"


class Transport(Protocol):
    """One way to reach people."""

    name: str
    """The name under which its progress is stored."""
    account: str
    """Identifies the sender: two daemons with the same account must not send at the same time."""
    longest: int
    """UTF-16 units of one text; longer ones are split before they come here."""

    def reaches(self, address: Address) -> bool:
        """Whether anything can be sent there at all."""
        ...

    def place(self, address: Address) -> str:
        """Identify the chat, which targets may share: a pause requested there applies to all of them."""
        ...

    def limits(self, address: Address) -> Sequence[Limit]:
        """How fast texts may follow each other there."""
        ...

    async def send(self, address: Address, text: Outgoing) -> str:
        """Send one text and return the id it got there."""
        ...

    async def close(self) -> None: ...
