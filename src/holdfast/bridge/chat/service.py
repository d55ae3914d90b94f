"""The chats of a daemon: background loops, and the webhook that Telegram posts to."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.bridge.chat import Transport, queries
from holdfast.bridge.chat.intake import Account, Answers, Intake, Refresh, Served
from holdfast.bridge.chat.lease import Lease
from holdfast.bridge.chat.permissions import PermissionDesk
from holdfast.bridge.chat.polling import Poller
from holdfast.bridge.chat.sender import Sender
from holdfast.bridge.chat.telegram import Telegram
from holdfast.bridge.chat.webhook_out import SignedWebhook
from holdfast.bridge.service import Targets
from holdfast.config import Settings
from holdfast.errors import BadInput
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store
from holdfast.teams.permissions import Permissions
from holdfast.text import bounded_json

MOST_BODY = 1024 * 1024

_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")

Loop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ChatStatus:
    transports: tuple[str, ...]
    undelivered: list[queries.Undelivered]
    receiving: str | None
    """Why updates cannot be received; None if they can."""
    refused: int
    """Messages of people who are not on the list."""


class Chats:
    """Runs the chats of a daemon; the entry point for other packages."""

    def __init__(
        self,
        store: Store,
        targets: Targets,
        requests: Permissions,
        holder: str,
        settings: Settings,
        *,
        served: Served,
        refresh: Refresh,
    ) -> None:
        self._store = store
        self._settings = settings
        self._desk = PermissionDesk(store, requests, targets)
        self._telegram = _telegram(settings)
        self._intake: Intake | None = None
        self._poller: Poller | None = None
        transports: list[Transport] = []
        if self._telegram is not None:
            telegram = self._telegram
            transports.append(telegram)
            account = Account(telegram.name, telegram.account, lambda: telegram.username)
            answers = Answers(telegram.answer_press, telegram.refuse)
            self._intake = Intake(store, account, targets, self._desk, answers, served, refresh)
            if settings.telegram_webhook is None:
                self._poller = Poller(telegram, self._intake, Lease(store, "telegram:poll", telegram.account, holder))
        if settings.webhook_url is not None:
            transports.append(SignedWebhook(settings.webhook_url, settings.webhook_secret or ""))
        self._transports = transports
        self._senders = [Sender(store, transport, targets, holder) for transport in transports]

    def loops(self) -> dict[str, Loop]:
        """Background loops by name; none if no chat is set up."""
        loops: dict[str, Loop] = {
            f"chat: {transport.name}": sender.run
            for transport, sender in zip(self._transports, self._senders, strict=True)
        }
        if self._transports:
            loops["chat: permissions"] = self._desk.run
        if self._poller is not None:
            loops["chat: telegram updates"] = self._poller.run
        elif self._telegram is not None:
            loops["chat: telegram webhook"] = self._register
        return loops

    async def webhook(self, body: bytes, secret: str) -> int:
        """Store an update that Telegram posts; returns the HTTP status, 200 once it is stored."""
        expected = self._settings.telegram_webhook_secret
        if self._intake is None or self._settings.telegram_webhook is None or expected is None:
            return 404
        if not hmac.compare_digest(expected.encode(), secret.encode("utf-8", "surrogateescape")):
            return 401
        if len(body) > MOST_BODY:
            return 413
        try:
            update: Any = bounded_json.loads(body)
        except ValueError:
            return 400
        await self._intake.take([update])
        return 200

    async def status(self) -> ChatStatus:
        return ChatStatus(
            transports=tuple(transport.name for transport in self._transports),
            undelivered=await self._store.read(queries.undelivered),
            receiving=self._poller.trouble if self._poller is not None else None,
            refused=self._intake.refused if self._intake is not None else 0,
        )

    async def sweep(self) -> None:
        await self._store.write(queries.forget_received)

    async def close(self) -> None:
        await asyncio.gather(*(transport.close() for transport in self._transports))

    async def _register(self) -> None:
        """Tell Telegram where to post updates."""
        telegram, url = self._telegram, self._settings.telegram_webhook
        if telegram is not None and url is not None:
            await telegram.introduce()
            await telegram.use_webhook(url, self._settings.telegram_webhook_secret or "")


def _telegram(settings: Settings) -> Telegram | None:
    if settings.telegram_token is None:
        return None
    if settings.telegram_webhook is not None and not _SECRET.fullmatch(settings.telegram_webhook_secret or ""):
        raise BadInput("HOLDFAST_TELEGRAM_WEBHOOK_SECRET", "must be 16 to 256 of the characters A-Z a-z 0-9 _ -")
    if settings.telegram_api is None:
        return Telegram(settings.telegram_token)
    return Telegram(settings.telegram_token, api=settings.telegram_api)
