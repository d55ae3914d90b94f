"""What the daemon is at: its background loops, its queue, its chats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from holdfast.bridge.chat import ChatError
from holdfast.bridge.chat.telegram import API, Telegram
from holdfast.bridge.model import MAX_PENDING
from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.surroundings import Surroundings

TELEGRAM_SECONDS = 5.0


def check_background(around: Surroundings) -> Iterator[Finding]:
    """Loops that fail, and what the daemon wants its owner to know."""
    if around.daemon is None:
        return
    loops = around.daemon.get("loops", [])
    failing = [loop for loop in loops if loop.get("last_error")]
    for loop in failing:
        yield note(
            f"{loop['name']} failed {loop['failures']} times, last: {loop['last_error']}",
            "It is tried again by itself; the home's daemon.log says more.",
        )
    for notice in around.daemon.get("notices", ()):
        yield note(str(notice))
    if not failing:
        yield ok(f"{len(loops)} loops, none in trouble")


def check_teams(around: Surroundings) -> Iterator[Finding]:
    """Teams whose agents do not follow what their project brings."""
    if around.daemon is None:
        return
    off = around.ask("teams-settings", {}).get("off", {})
    for name, why in off.items():
        said, _, repair = why.partition(". ")
        yield note(f"{name}: {said}", repair)
    if not off:
        yield ok("no project's settings are off for its managed agent")


def check_queue(around: Surroundings) -> Iterator[Finding]:
    """Messages that nobody did, and targets that take no more."""
    if around.daemon is None:
        return
    targets = around.ask("bridge-queue", {}).get("targets", {})
    waiting = sum(view["pending"] for view in targets.values())
    troubled = False
    for name, view in targets.items():
        if view.get("dead_letters"):
            troubled = True
            yield note(
                f"{name}: {view['dead_letters']} dead letters",
                "GET /api/bridge/messages?status=dead says why; POST …/messages/ID/retry lets one wait again.",
            )
        if view["pending"] >= MAX_PENDING:
            troubled = True
            yield note(f"{name}: full, {view['pending']} messages wait", f"Start its agent; `holdfast queue {name}`.")
    if not troubled:
        yield ok(f"{len(targets)} targets, {waiting} messages wait")


def check_telegram(around: Surroundings) -> Iterator[Finding]:
    """The bot, where one is set up: installed, and let in by Telegram."""
    settings = around.settings
    if settings.telegram_token is None:
        yield ok("not set up")
        return
    telegram = Telegram(settings.telegram_token, api=settings.telegram_api or API, timeout_s=TELEGRAM_SECONDS)
    try:
        name = asyncio.run(_introduced(telegram))
    except ChatError as error:
        yield fault(error.message, error.recovery or "Check the network, or HOLDFAST_TELEGRAM_API; then try again.")
        return
    yield ok(f"the bot @{name} is let in")


def check_chats(around: Surroundings) -> Iterator[Finding]:
    """What the daemon says of its chats; nothing where it has none and none is wanted."""
    chats = (around.daemon or {}).get("chats")
    if chats is None:
        return
    if around.settings.telegram_token is not None and "telegram" not in chats.get("transports", ()):
        yield fault(
            "the running daemon was started without HOLDFAST_TELEGRAM_TOKEN.",
            "`holdfast stop`, then `holdfast serve` where it is set.",
        )
    for trouble in chats.get("troubles", ()):
        yield note(
            f"{trouble['transport']}, {trouble['target']}: {trouble['failure']}", "Check its chat in teams.json."
        )
    if chats.get("receiving"):
        yield note(f"updates do not arrive: {chats['receiving']}", "Only one program may use a token.")
    if chats.get("refused"):
        yield note(f"{chats['refused']} updates came from people who are no owners, and were left aside")


async def _introduced(telegram: Telegram) -> str | None:
    try:
        await telegram.introduce()
        return telegram.username
    finally:
        await telegram.close()
