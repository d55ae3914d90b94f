"""The intake: what comes from a chat is stored before it is confirmed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.bridge.chat import queries as chat_queries
from holdfast.bridge.chat.arrivals import Arrival, arrival, may_order, number_of, target_of
from holdfast.bridge.chat.commands import Command, Order, Said, command, obey, pressed, put, refused, urgency
from holdfast.bridge.chat.permissions import PermissionDesk
from holdfast.bridge.model import Message, Priority, Refusal, Status, UpdateKind
from holdfast.bridge.queries import queue, updates
from holdfast.bridge.service import Targets
from holdfast.identity.senders import Kind, Sender
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx
from holdfast.text import one_line

Served = Callable[[str], bool]
"""Returns whether a message for a target will be taken soon."""
Refresh = Callable[[], Awaitable[None]]
"""Picks up changes of the targets."""

REFUSAL_S = 3600.0
REMEMBERED = 1_000
"""Strangers whose last refusal is remembered."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    transport: str
    number: str
    name: Callable[[], str | None]
    """The name by which commands address it; None while unknown."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Replies that are not stored. Losing one does no harm: the chat shows the outcome."""

    press: Callable[[str, str], Awaitable[None]]
    """Answer a button press, by its id."""
    refuse: Callable[[Arrival, str], Awaitable[None]]
    """Tell somebody that they are not on the list."""


class Intake:
    """Stores what an account receives: once each, and only from people on the list."""

    def __init__(
        self,
        store: Store,
        account: Account,
        targets: Targets,
        desk: PermissionDesk,
        answers: Answers,
        served: Served,
        refresh: Refresh,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._account = account
        self._targets = targets
        self._desk = desk
        self._answers = answers
        self._served = served
        self._refresh = refresh
        self._strangers = Strangers(clock)

    @property
    def refused(self) -> int:
        return self._strangers.count

    async def take(self, raw: Sequence[Any]) -> int | None:
        """Store a batch in one transaction and return its highest number. Repetitions change nothing."""
        numbers = sorted(number for one in raw if (number := number_of(one)) is not None)
        # By number: a batch may come out of order, a conversation must not.
        found = sorted(filter(None, map(arrival, raw)), key=lambda one: one.number)
        found = [one for one in found if not self._is_for_another(one)]
        if found:
            # A chat that was linked a moment ago is served, and somebody who was taken off the list is not.
            await self._refresh()
        welcome = [(one, target) for one in found if (target := self._target(one)) is not None]
        words = {one.number: await self._permission(one, target) for one, target in welcome}

        def write(tx: Tx) -> list[tuple[str, str]]:
            answers = [self._store_one(tx, one, target, words[one.number]) for one, target in welcome]
            return [answer for answer in answers if answer is not None]

        presses = await self._store.write(write) if welcome else []
        known = {one.number for one, _ in welcome}
        await asyncio.gather(
            *(self._answers.press(press, text) for press, text in presses),
            *(self._turn_away(one) for one in found if one.number not in known),
        )
        return numbers[-1] if numbers else None

    def _target(self, one: Arrival) -> str | None:
        targets = self._targets()
        name = target_of(one, targets)
        return name if name is not None and may_order(one, targets[name].chat) else None

    async def _permission(self, one: Arrival, target: str) -> str | None:
        found = self._command(one)
        if found is None or found.name not in ("approve", "deny"):
            return None
        number = one.number
        account = self._account
        if await self._store.read(lambda tx: chat_queries.was_received(tx, account.transport, account.number, number)):
            return None
        return await self._desk.decide(target, found)

    def _store_one(self, tx: Tx, one: Arrival, target: str, permission: str | None) -> tuple[str, str] | None:
        account = self._account
        if not chat_queries.receive(tx, account.transport, account.number, one.number):
            return None
        order = Order(
            target=target,
            command=self._command(one) or Command(""),
            message_id=self._message_id(one),
            sender=Sender(Kind.OWNER, f"{one_line(one.user_name, 60)} in the chat", None),
            source=account.transport,
            quoted=None if one.quoted_message is None else self._id(one.chat, one.quoted_message),
        )
        if order.command.name:
            said = obey(tx, order, permission)
        elif one.press is not None:
            said = Said("That button is no longer valid.")
        else:
            said = self._queue(tx, order, one)
        if said is not None:
            message = order.message_id
            updates.add(tx, target, UpdateKind.MESSAGE, said.text, message, buttons=said.buttons, chat_only=True)
        return (one.press, said.text if said else "") if one.press is not None else None

    def _queue(self, tx: Tx, order: Order, one: Arrival) -> Said | None:
        """Queue a text for the agent; returns a reply where one is needed."""
        heading = [f'[In reply to: "{one.quoted}"]'] if one.quoted else []
        text, priority = "\n".join([*heading, one.text]), urgency(one.text)
        if one.edited_at is not None:
            tx.lock(f"bridge:{order.target}")
            waiting = queue.waiting_from_chat(tx, order.target, self._id(one.chat, one.message))
            if waiting is not None:
                return _edit(tx, waiting, text, priority)
            heading.append("[Edited: this replaces what was written before.]")
            text = "\n".join([*heading, one.text])
        link = order.quoted if order.quoted and queue.is_known(tx, order.quoted, order.target) else None
        made = put(tx, order, text, priority, link)
        if isinstance(made, Refusal):
            return None if made is Refusal.DUPLICATE else Said(refused(made))
        others = queue.count(tx, order.target, Status.PENDING) - 1
        told = [f"{others} more {'is' if others == 1 else 'are'} waiting."] if others > 0 else []
        if not self._served(order.target):
            told.append("No agent is at work there now; it is delivered when one is.")
        return Said(" ".join(["Queued.", *told])) if told else None

    def _command(self, one: Arrival) -> Command | None:
        if one.press is not None:
            return pressed(one.action or "")
        return command(one.text)

    def _is_for_another(self, one: Arrival) -> bool:
        """Whether it is a command to another bot of the same group."""
        found, own = self._command(one), self._account.name()
        return found is not None and found.bot is not None and own is not None and found.bot.lower() != own.lower()

    def _message_id(self, one: Arrival) -> str:
        if one.press is not None:
            return f"{self._id(one.chat, one.message)}.press{one.number}"
        # By its own number, because two edits may be made in one second.
        edit = f"{queue.EDITED}{one.number}" if one.edited_at is not None else ""
        return f"{self._id(one.chat, one.message)}{edit}"

    def _id(self, chat: str, message: int) -> str:
        # With the account, because another bot numbers the messages of the same private chat from the start.
        return f"tg.{self._account.number}.{chat}.{message}"

    async def _turn_away(self, one: Arrival) -> None:
        if not self._strangers.met(one):
            return
        logger.warning("a chat message of user %s in chat %s was refused", one.user, one.chat)
        if target_of(one, self._targets()) is None:
            place = f"chat {one.chat}" + (f", topic {one.topic}" if one.topic is not None else "")
            topic = f" --topic {one.topic}" if one.topic is not None else ""
            link = f"holdfast bridge chat TEAM {one.chat}{topic} --user {one.user}"
            why = f"This chat ({place}) is not linked to a team. To link it, its owner runs: {link}"
        else:
            unlisted = f"You (user {one.user}) are not on the list of those who may write to this agent."
            why = f"{unlisted} Its owner can change that in teams.json, under chat."
        await self._answers.refuse(one, f"Sorry. {why}")


def _edit(tx: Tx, waiting: Message, text: str, priority: Priority) -> Said | None:
    """Replace the text of a message that is still waiting; an edit that changes no words gets no reply."""
    if waiting.text == text:
        return None
    queue.rewrite(tx, waiting, text, priority)
    return Said("Edited: the agent gets the new text.")


class Strangers:
    """Remembers who was refused and when they were last told, but not what they wrote."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: OrderedDict[tuple[str, int | None], float] = OrderedDict()
        self.count = 0

    def met(self, one: Arrival) -> bool:
        """Count a refusal; return whether to tell them, once an hour at most."""
        self.count += 1
        who, now = (one.chat, one.user), self._clock()
        if who in self._told and now - self._told[who] < REFUSAL_S:
            return False
        self._told[who] = now
        self._told.move_to_end(who)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return True
