"""A Bot API on a loopback socket that speaks the real protocol, keeps its rules, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs

TOKEN = "4711:AAH-a_token_that_must_never_be_seen_anywhere"  # noqa: S105
BOT = {"id": 4711, "is_bot": True, "first_name": "Holdfast", "username": "holdfast_bot"}
OWNER = 7
LONGEST = 4096
ALLOWED_REACTIONS = frozenset("👍👎🔥👏🤔🎉🙏👌💯⚡🏆💔👀🤝🆒")
"""Some of those that every chat allows a bot."""


class Kind(StrEnum):
    """A way to misbehave."""

    FLOOD = "flood"
    """429, with retry_after."""
    ERROR = "error"
    """502, nothing done."""
    DONE_ERROR = "done error"
    """502, but it was done."""
    LOST = "lost"
    """The connection ends before anything was done."""
    CUT = "cut"
    """It is done, and the connection ends in the middle of the answer."""
    SLOW = "slow"
    """The answer takes its time."""
    REPEAT = "repeat"
    """getUpdates gives what was confirmed as well."""
    SHUFFLE = "shuffle"
    """getUpdates gives its batch out of order."""
    BAD_ENTITIES = "bad entities"
    """400: can't parse entities."""
    REFUSED = "refused"
    """400 for the text."""


@dataclass(frozen=True)
class Fault:
    """One misbehaviour, at the next call that fits."""

    method: str
    kind: Kind
    chat: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Sent:
    """A message that reached a chat."""

    chat: str
    text: str
    topic: int | None
    entities: list[dict[str, Any]]
    buttons: list[tuple[str, str]]
    reply_to: int | None
    silent: bool


@dataclass
class Pause:
    """Until when a chat takes nothing, and whether the bot was told."""

    until: float
    told: bool = False


@dataclass
class BotApi:
    """What Telegram keeps for one bot, and how it answers."""

    faults: list[Fault] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    answered: list[tuple[str, str]] = field(default_factory=list)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    """The reactions that the bot gave, each with its message; empty where it took them back."""
    no_reactions: bool = False
    """Whether the groups allow none."""
    calls: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """What no client may ever do."""
    chats: set[str] | None = None
    """The chats that exist; None is any."""
    webhook: dict[str, str] | None = None
    port: int = 0
    open: int = 0
    """Connections at present."""
    _pending: list[dict[str, Any]] = field(default_factory=list)
    _confirmed: list[dict[str, Any]] = field(default_factory=list)
    _next_update: int = 1000
    _next_message: int = 1
    floods: dict[str, Pause] = field(default_factory=dict)
    """The chats that must not be written to."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _poll: asyncio.Event | None = None
    _shuffler: random.Random = field(default_factory=lambda: random.Random(4))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/bot"

    @property
    def unconfirmed(self) -> int:
        return len(self._pending)

    # -- what people do -----------------------------------------------------------------------------------------------

    def write(self, text: str, *, chat: int = -100, user: int = OWNER, topic: int | None = None, **more: Any) -> int:
        """Somebody writes into a chat; the id of the message."""
        message = self._message(chat, topic, {"id": user, "first_name": "Ann", "is_bot": False})
        self._add({"message": {**message, "text": text, **more}})
        return int(message["message_id"])

    def edit(self, message: int, text: str, *, chat: int = -100, user: int = OWNER) -> None:
        """Somebody edits what they wrote."""
        made = self._message(chat, None, {"id": user, "first_name": "Ann", "is_bot": False})
        self._add({"edited_message": {**made, "message_id": message, "edit_date": 1_700_000_500, "text": text}})

    def press(self, action: str, *, chat: int = -100, user: int = OWNER, topic: int | None = None) -> str:
        """Somebody presses a button; the id of the press."""
        press = f"press-{self._next_update}"
        message = self._message(chat, topic, BOT)
        sender = {"id": user, "first_name": "Ann", "is_bot": False}
        self._add({"callback_query": {"id": press, "from": sender, "data": action, "message": message}})
        return press

    def take_pending(self) -> list[dict[str, Any]]:
        """The updates that wait, as a webhook would bring them."""
        taken, self._pending = self._pending, []
        return taken

    def texts(self, chat: str, topic: int | None = None) -> list[str]:
        """What a chat shows."""
        return [one.text for one in self.sent if one.chat == chat and one.topic == topic]

    def _message(self, chat: int, topic: int | None, sender: dict[str, Any]) -> dict[str, Any]:
        self._next_message += 1
        message: dict[str, Any] = {
            "message_id": self._next_message,
            "date": 1_700_000_000,
            "chat": {"id": chat, "type": "supergroup" if chat < 0 else "private"},
            "from": sender,
        }
        if topic is not None:
            message |= {"message_thread_id": topic, "is_topic_message": True}
        return message

    def _add(self, content: dict[str, Any]) -> None:
        self._next_update += 1
        self._pending.append({"update_id": self._next_update, **content})
        self._news.set()

    # -- what the bot asks --------------------------------------------------------------------------------------------

    async def answer(self, token: str, method: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body for a call."""
        if token != TOKEN:
            return _refusal(401, "Unauthorized")
        name = method.lower()
        if str(given.get("drop_pending_updates", "false")).lower() == "true":
            self.violations.append(f"{method} dropped pending updates")
        if name == "getme":
            return _result(BOT)
        if name == "getupdates":
            return await self._get_updates(given)
        if name == "sendmessage":
            return self._send(given)
        if name == "setmessagereaction":
            return self._react(given)
        if name == "answercallbackquery":
            self.answered.append((str(given.get("callback_query_id")), str(given.get("text", ""))))
            return _result(True)
        if name == "setwebhook":
            self.webhook = {"url": str(given.get("url")), "secret": str(given.get("secret_token"))}
            return _result(True)
        if name == "deletewebhook":
            self.webhook = None
            return _result(True)
        return _refusal(404, "Not Found")

    async def _get_updates(self, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.webhook is not None:
            return _refusal(409, "Conflict: can't use getUpdates method while webhook is active")
        if self._poll is not None:
            self._poll.set()
        mine = self._poll = asyncio.Event()
        offset = int(given.get("offset", 0))
        if offset < 0:
            self.violations.append("a negative offset forgets updates")
        self._confirmed += [one for one in self._pending if one["update_id"] < offset]
        self._pending = [one for one in self._pending if one["update_id"] >= offset]
        deadline = time.monotonic() + float(given.get("timeout", 0))
        while not self._pending and not mine.is_set() and time.monotonic() < deadline:
            self._news.clear()
            waits = [asyncio.ensure_future(self._news.wait()), asyncio.ensure_future(mine.wait())]
            await asyncio.wait(waits, timeout=deadline - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if mine.is_set():
            return _refusal(409, "Conflict: terminated by other getUpdates request")
        self._poll = None
        batch = self._pending[: int(given.get("limit", 100))]
        if self._fault("getUpdates", None, (Kind.REPEAT,)):
            batch = [*self._confirmed, *batch]
        if self._fault("getUpdates", None, (Kind.SHUFFLE,)):
            batch = self._shuffler.sample(batch, len(batch))
        return _result(batch)

    def _send(self, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        chat, text = str(given.get("chat_id")), str(given.get("text", ""))
        if fault := self._fault("sendMessage", chat, (Kind.FLOOD,)):
            self.floods[chat] = Pause(time.monotonic() + fault.seconds)
        if (pause := self._pause(chat)) is not None:
            more = {"parameters": {"retry_after": math.ceil(pause.until - time.monotonic())}}
            return 429, {"ok": False, "error_code": 429, "description": "Too Many Requests", **more}
        if self._fault("sendMessage", chat, (Kind.REFUSED,)):
            return _refusal(400, "Bad Request: message is odd")
        if self.chats is not None and chat not in self.chats:
            return _refusal(400, "Bad Request: chat not found")
        length = len(text.encode("utf-16-le")) // 2
        if not text.strip() or length > LONGEST:
            return _refusal(400, "Bad Request: message text is empty or too long")
        entities = _json(given.get("entities"), [])
        if entities and self._fault("sendMessage", chat, (Kind.BAD_ENTITIES,)):
            return _refusal(400, "Bad Request: can't parse entities: odd offset")
        if any(not 0 <= one["offset"] < one["offset"] + one["length"] <= length for one in entities):
            return _refusal(400, "Bad Request: can't parse entities: out of range")
        keyboard = _json(given.get("reply_markup"), {}).get("inline_keyboard", [])
        buttons = [(one["text"], one["callback_data"]) for row in keyboard for one in row]
        if any(len(action.encode()) > 64 for _, action in buttons):
            return _refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        reply = _json(given.get("reply_parameters"), {}).get("message_id")
        topic = given.get("message_thread_id")
        silent = str(given.get("disable_notification", "false")).lower() == "true"
        number = None if topic is None else int(topic)
        self.sent.append(Sent(chat, text, number, entities, buttons, reply, silent))
        kind = "supergroup" if chat.startswith("-") else "private"
        self._next_message += 1
        made = {"message_id": self._next_message, "date": 1_700_000_000, "chat": {"id": int(chat), "type": kind}}
        return _result({**made, "text": text})

    def _react(self, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if (pause := self._pause(str(given.get("chat_id")))) is not None:
            more = {"parameters": {"retry_after": math.ceil(pause.until - time.monotonic())}}
            return 429, {"ok": False, "error_code": 429, "description": "Too Many Requests", **more}
        reactions = [one["emoji"] for one in _json(given.get("reaction"), [])]
        if self.no_reactions or len(reactions) > 1 or any(one not in ALLOWED_REACTIONS for one in reactions):
            return _refusal(400, "Bad Request: REACTION_INVALID")
        message = int(given["message_id"])
        if not 1 < message <= self._next_message:
            return _refusal(400, "Bad Request: message to react not found")
        self.reactions += [(message, one) for one in reactions or [""]]
        return _result(True)

    def reacted(self, message: int) -> list[str]:
        """The reactions to a message, in order; the last is what it shows."""
        return [emoji for number, emoji in self.reactions if number == message]

    def _pause(self, chat: str | None) -> Pause | None:
        """The pause in which a chat is."""
        pause = self.floods.get(chat or "")
        return pause if pause is not None and pause.until > time.monotonic() else None

    def _fault(self, method: str, chat: str | None, kinds: tuple[Kind, ...]) -> Fault | None:
        """The next fault that fits, used up."""
        for fault in self.faults:
            fits = fault.method.lower() == method.lower() and fault.chat in (None, chat)
            if fits and fault.kind in kinds:
                self.faults.remove(fault)
                return fault
        return None

    def end(self) -> None:
        """Nobody waits for updates any more."""
        if self._poll is not None:
            self._poll.set()

    # -- the socket ---------------------------------------------------------------------------------------------------

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive until it ends or is ended."""
        self.open += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = [line for line in head.split("\r\n") if line.lower().startswith("content-length:")]
        body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
        _, path, _ = head.split(" ", 2)
        token, _, method = path.removeprefix("/bot").partition("/")
        given = {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
        self.calls.append(method)
        chat = str(given.get("chat_id")) if "chat_id" in given else None
        if (pause := self._pause(chat)) is not None and pause.told:
            self.violations.append(f"{chat} was written to during its pause")
        if slow := self._fault(method, chat, (Kind.SLOW,)):
            await asyncio.sleep(slow.seconds)
        if self._fault(method, chat, (Kind.LOST,)):
            return False
        if self._fault(method, chat, (Kind.ERROR,)):
            status, answer = _refusal(502, "Bad Gateway")
        else:
            status, answer = await self.answer(token, method, given)
            if self._fault(method, chat, (Kind.DONE_ERROR,)):
                status, answer = _refusal(502, "Bad Gateway")
        content = json.dumps(answer).encode()
        reply = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        if self._fault(method, chat, (Kind.CUT,)):
            writer.write(reply.encode() + content[: len(content) // 2])
            await writer.drain()
            return False
        writer.write(reply.encode() + content)
        if status == 429 and (pause := self._pause(chat)) is not None:
            pause.told = True
        await writer.drain()
        return True


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    """A Bot API for as long as the block lasts."""
    api = BotApi()
    connections: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here = asyncio.current_task()
        connections[here] = writer
        try:
            await api.serve(reader, writer)
        finally:
            del connections[here]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
        api.end()
        ending = [task for task in connections if task is not None]
        for writer in connections.values():
            writer.close()
        await asyncio.gather(*ending, return_exceptions=True)
        await server.wait_closed()


def _result(result: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"ok": True, "result": result}


def _refusal(status: int, why: str) -> tuple[int, dict[str, Any]]:
    return status, {"ok": False, "error_code": status, "description": why}


def _json(text: Any, default: Any) -> Any:
    return json.loads(text) if text else default
