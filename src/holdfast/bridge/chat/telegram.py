"""Telegram: a bot that shows a target's updates and brings what its owner writes.

Needs the extra `telegram`. Of python-telegram-bot only the bot itself is used: its polling confirms
updates before they are stored.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.bridge.chat import Address, Button, ChatError, Limit, Outgoing, RetryLater, Undeliverable
from holdfast.bridge.chat.arrivals import GENERAL_TOPIC, KINDS, Arrival
from holdfast.bridge.chat.formatting import formatted
from holdfast.bridge.chat.urls import guarded
from holdfast.bridge.model import Status
from holdfast.errors import BadInput

if TYPE_CHECKING:
    from telegram import InlineKeyboardMarkup, MessageEntity
    from telegram.ext import ExtBot

WEBHOOK = "/telegram/webhook"
"""The path to which Telegram posts updates; the secret is in the header below."""
SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - its name, not the secret
API = "https://api.telegram.org/bot"
LONGEST = 4096
POLL_S = 25
"""How long one long poll lasts."""
BATCH = 100
TIMEOUT_S = 20.0
ALL_CHATS = Limit("all", 30, 1.0)
PER_CHAT = (1, 1.0)
PER_GROUP = (20, 60.0)
MOST_PRESS_ANSWER = 200
REACTIONS = {
    Status.PENDING: "👌",
    Status.LEASED: "👀",
    Status.DONE: "👍",
    Status.FAILED: "👎",
    Status.DEAD: "👎",
    Status.EXPIRED: "👎",
    Status.CANCELLED: None,
}
"""The bot's reaction for each status of a message. Each is one that Telegram offers."""
SPOKEN = (Status.PENDING, Status.LEASED)
"""Statuses that are put in words if a group allows no reactions; the others get a text anyway."""

T = TypeVar("T")

logger = logging.getLogger(__name__)

_TOKEN = re.compile(r"(?P<bot>[0-9]{1,20}):[A-Za-z0-9_-]{20,100}")
# Errors of the chat and not of the text: once they are fixed, the text can be delivered.
_PLACE = re.compile(r"chat not found|rights|kicked|blocked|thread not found|topic|deactivated|upgraded", re.IGNORECASE)
_UNREADABLE = re.compile(r"can't parse|can't find end|entit", re.IGNORECASE)


class PollConflict(ChatError):
    """Another program polls for this bot's updates, or they go to a webhook."""

    code = "E_CHAT_CONFLICT"

    def __init__(self, webhook: bool) -> None:
        why = "a webhook is set for it" if webhook else "another program polls for its updates"
        super().__init__(f"Telegram does not deliver this bot's updates: {why}.", recovery="Only one may use a token.")
        self.webhook = webhook


class Telegram:
    name = "telegram"
    longest = LONGEST

    def __init__(
        self,
        token: str,
        *,
        api: str = API,
        per_chat: tuple[int, float] = PER_CHAT,
        per_group: tuple[int, float] = PER_GROUP,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise BadInput("HOLDFAST_TELEGRAM_TOKEN", "must be a token from @BotFather, such as 123456:AB…")
        self.account = match["bot"]
        self.username: str | None = None
        self._token = token
        self._api = guarded("HOLDFAST_TELEGRAM_API", api)
        self._per_chat = per_chat
        self._per_group = per_group
        self._timeout = timeout_s
        self._bot: ExtBot[None] | None = None

    def reaches(self, address: Address) -> bool:
        return address.chat is not None

    def place(self, address: Address) -> str:
        """Return the chat; its topics share its limits."""
        return address.chat.id if address.chat is not None else ""

    def limits(self, address: Address) -> Sequence[Limit]:
        """Telegram's limits: one text a second per chat, twenty a minute per group."""
        if address.chat is None:
            return ()
        chat = address.chat.id
        limits = [ALL_CHATS, Limit(f"chat {chat}", *self._per_chat)]
        if chat.startswith(("-", "@")):
            limits.append(Limit(f"group {chat}", *self._per_group))
        return limits

    async def send(self, address: Address, text: Outgoing) -> str:
        """Send one text to the target's chat and topic; returns the message's id there."""
        if address.chat is None:
            raise Undeliverable(f"{address.target} has no chat.", recovery="Give it one in teams.json.")
        chat = address.chat
        topic = None if chat.topic == GENERAL_TOPIC else chat.topic
        answered = self._own_message(chat.id, text.reply_to)
        bot = await self._opened()
        if text.status is not None:
            reacted = answered is not None and await self._react(bot, chat.id, answered, text.status)
            if reacted or text.status not in SPOKEN:
                return ""

        async def post(body: str, entities: Sequence[MessageEntity]) -> str:
            sent = await self._call(
                bot.send_message(
                    chat.id,
                    body,
                    entities=entities,
                    message_thread_id=topic,
                    disable_notification=not text.urgent,
                    reply_markup=_keyboard(text.buttons),
                    reply_to_message_id=answered,
                    allow_sending_without_reply=None if answered is None else True,
                )
            )
            return str(sent.message_id)

        try:
            return await post(*_marked(text.text))
        except Undeliverable as error:
            if not _UNREADABLE.search(error.message):
                raise
            return await post(text.text, ())

    async def _react(self, bot: ExtBot[None], chat: str, message: int, status: Status) -> bool:
        """React to a message in place of the reaction before; False if the chat does not allow it."""
        from telegram import error as errors

        async def attempt() -> bool:
            try:
                return await bot.set_message_reaction(chat, message, REACTIONS[status])
            except (errors.BadRequest, errors.Forbidden, errors.InvalidToken):
                return False  # a fault of the chat or the bot will show with the next text

        return await self._call(attempt())

    async def answer_press(self, press: str, text: str) -> None:
        """Answer a button press; a late answer does no harm, because the chat shows the outcome as well."""
        try:
            bot = await self._opened()
            await self._call(bot.answer_callback_query(press, text=text[:MOST_PRESS_ANSWER] or None))
        except ChatError as error:
            logger.info("a button press was not answered: %s", error)

    async def refuse(self, stranger: Arrival, text: str) -> None:
        """Tell somebody that they are not on the list; it is not sent again if it fails."""
        try:
            bot = await self._opened()
            if stranger.press is not None:
                await self._call(bot.answer_callback_query(stranger.press, text=text[:MOST_PRESS_ANSWER]))
            else:
                await self._call(bot.send_message(stranger.chat, text, message_thread_id=stranger.topic))
        except ChatError as error:
            logger.info("a refusal was not delivered: %s", error)

    async def fetch(self, offset: int | None, wait_s: int = POLL_S) -> list[Any]:
        """Fetch the unconfirmed updates unparsed; an offset confirms all before it."""
        bot = await self._opened()
        asked: dict[str, Any] = {"timeout": wait_s, "limit": BATCH, "allowed_updates": list(KINDS)}
        if offset is not None:
            asked["offset"] = offset
        # The library's own method would parse the whole batch, and one update it cannot read would hold up all others
        # forever. Telegram accepts method names in any case; the library leaves unknown names alone.
        found = await self._call(
            bot.do_api_request("getupdates", api_kwargs=asked, read_timeout=wait_s + self._timeout)
        )
        return list(found) if isinstance(found, list) else []

    async def introduce(self) -> None:
        """Learn the bot's name, by which commands in groups address it."""
        bot = await self._opened()
        self.username = (await self._call(bot.get_me())).username

    async def use_webhook(self, url: str, secret: str) -> None:
        """Let Telegram post updates to a URL; those already waiting are posted too."""
        bot = await self._opened()
        await self._call(
            bot.set_webhook(
                guarded("HOLDFAST_TELEGRAM_WEBHOOK", url),
                secret_token=secret,
                allowed_updates=list(KINDS),
                drop_pending_updates=False,
            )
        )

    async def use_polling(self) -> None:
        bot = await self._opened()
        await self._call(bot.delete_webhook(drop_pending_updates=False))

    async def close(self) -> None:
        bot, self._bot = self._bot, None
        if bot is not None:
            # The bot itself closes only what its own initialize() opened, and that needs the network.
            await bot.request.shutdown()

    async def _opened(self) -> ExtBot[None]:
        if self._bot is None:
            made = await asyncio.to_thread(self._make)
            if self._bot is None:
                self._bot = made
        return self._bot

    def _make(self) -> ExtBot[None]:
        """Import the library (half a second, so in a thread and only with a token) and create the bot."""
        try:
            from telegram.ext import ExtBot
            from telegram.request import HTTPXRequest
        except ImportError as error:
            from holdfast.setup.extras import install_line

            recovery = f"Run `{install_line('telegram')}`, then start again."
            raise ChatError("Telegram is not installed.", recovery=recovery) from error
        # They log addresses and texts, and the token is part of every address.
        for chatty in ("httpx", "httpcore", "telegram"):
            logging.getLogger(chatty).setLevel(logging.CRITICAL)
        request = HTTPXRequest(
            connection_pool_size=32,
            connect_timeout=self._timeout,
            read_timeout=self._timeout,
            write_timeout=self._timeout,
            pool_timeout=self._timeout,
        )
        return ExtBot(self._token, base_url=self._api, request=request, get_updates_request=request)

    async def _call(self, call: Awaitable[T]) -> T:
        """Translate Telegram's errors to the transport's own, without the token."""
        from telegram import error as errors

        try:
            return await call
        except errors.RetryAfter as error:
            pause = error.retry_after
            raise RetryLater(pause.total_seconds() if isinstance(pause, timedelta) else pause) from None
        except errors.Conflict as error:
            raise PollConflict("webhook" in error.message.lower()) from None
        except errors.ChatMigrated as error:
            raise ChatError(
                f"The group's id is now {error.new_chat_id}.", recovery="Write that as chat.id in teams.json."
            ) from None
        except (errors.InvalidToken, errors.EndPointNotFound):
            raise ChatError(
                "Telegram does not know the bot.", recovery="Check HOLDFAST_TELEGRAM_TOKEN and start again."
            ) from None
        except errors.Forbidden as error:
            raise ChatError(self._said(error), recovery="Add the bot to the chat again.") from None
        except errors.BadRequest as error:
            if _PLACE.search(error.message):
                raise ChatError(self._said(error), recovery="Check the target's chat in teams.json.") from None
            raise Undeliverable(self._said(error)) from None
        except errors.TelegramError as error:
            # After a time-out, a broken connection or an error of the server it may have arrived.
            raise ChatError(self._said(error), uncertain=not _never_left(error)) from None

    def _said(self, error: Exception) -> str:
        text = str(error).replace(self._token, "…").strip() or type(error).__name__
        return f"Telegram: {text[:300]}"

    def _own_message(self, chat: str, message_id: str | None) -> int | None:
        """Return the message in this chat that a queued message came from."""
        parts = (message_id or "").split(".")
        same = len(parts) >= 4 and parts[:3] == ["tg", self.account, chat]
        return int(parts[3]) if same and parts[3].isascii() and parts[3].isdigit() else None


def _keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup

    row = [InlineKeyboardButton(button.label, callback_data=button.action) for button in buttons]
    return InlineKeyboardMarkup([row]) if row else None


def _marked(text: str) -> tuple[str, list[MessageEntity]]:
    """Convert a text to plain text and Telegram's entities."""
    from telegram import MessageEntity

    plain, spans = formatted(text)
    if not plain.strip():
        return text, []
    entities = [
        MessageEntity(
            span.kind,
            span.offset,
            span.length,
            url=span.detail if span.kind == "text_link" else None,
            language=span.detail if span.kind == "pre" else None,
        )
        for span in spans
    ]
    return plain, entities


def _never_left(error: Exception) -> bool:
    """Whether no connection was made, so that nothing can have arrived."""
    import httpx

    return isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
