"""Checks of the daemon's work: its background loops, queues and chats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from holdfast.bridge.chat import ChatError
from holdfast.bridge.chat.telegram import API, Telegram
from holdfast.bridge.model import MAX_PENDING
from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.hooks import unhooked_lines
from holdfast.doctor.surroundings import Surroundings
from holdfast.git.gate import owner as gate_owner
from holdfast.git.gate import why_off
from holdfast.protocol.project.settings import Enforcement, configured_project
from holdfast.teams.views import by_reason

TELEGRAM_SECONDS = 5.0


def check_background(around: Surroundings) -> Iterator[Finding]:
    """Check for failing loops and for notices of the daemon."""
    if around.daemon is None:
        return
    loops = around.daemon.get("loops", [])
    failing = [loop for loop in loops if loop.get("last_error")]
    for loop in failing:
        yield note(
            f"{loop['name']} failed {loop['failures']} times, last: {loop['last_error']}",
            "It is retried automatically; see daemon.log in the data directory.",
        )
    notices = [str(notice) for notice in around.daemon.get("notices", ())]
    elsewhere = unhooked_lines(around) if notices else []
    for notice in notices:
        if notice not in elsewhere:
            yield note(notice)
    if not failing:
        yield ok(f"{len(loops)} loops, none failing")


def check_teams(around: Surroundings) -> Iterator[Finding]:
    """Check for teams whose agents cannot be run, or do not use their project's settings."""
    if around.daemon is None:
        return
    teams = around.ask("teams-status", {}).get("teams", [])
    faults, off = by_reason(teams, "fault"), by_reason(teams, "settings")
    for finding, reasons in ((fault, faults), (note, off)):
        for why, names in reasons.items():
            said, _, repair = why.partition(". ")
            yield finding(f"{', '.join(names)}: {said}", repair)
    if not faults and not off:
        yield ok("every managed agent can be run and uses its project's settings")


def check_commit_gate(around: Surroundings) -> Iterator[Finding]:
    """Check that git refuses early commits, if a project or a session under way asks for it."""
    project = configured_project(around.project)
    off = dict((around.daemon or {}).get("gates_off", {}))
    if project is not None and project.enforcement is Enforcement.ENFORCE:
        why = why_off(around.project)
        if why is None:
            yield ok("git refuses commits here while a session is not ready for them")
        else:
            off[str(around.project)] = why
    for worktree, why in off.items():
        said, _, repair = why.partition(". ")
        yield note(f"the gate is off in {worktree}: {said}", repair or None)
    owner = gate_owner(around.project)
    if owner is not None and owner != str(around.home):
        yield note(f"commits here wait for a session of {owner}", "Remove its hook: `holdfast protocol init --remove`.")


def check_queue(around: Surroundings) -> Iterator[Finding]:
    """Check for dead letters and full queues."""
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
                "GET /api/bridge/messages?status=dead says why; POST …/messages/ID/retry queues one again.",
            )
        if view["pending"] >= MAX_PENDING:
            troubled = True
            yield note(
                f"{name}: full, {view['pending']} messages waiting", f"Start its agent; `holdfast queue {name}`."
            )
    if not troubled:
        yield ok(f"{len(targets)} targets, {waiting} messages waiting")


def check_telegram(around: Surroundings) -> Iterator[Finding]:
    """Check the bot, if one is set up: installed, and accepted by Telegram."""
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
    yield ok(f"the bot @{name} is accepted by Telegram")


def check_chats(around: Surroundings) -> Iterator[Finding]:
    """Check the daemon's chats; no finding if there are none and none are set up."""
    chats = (around.daemon or {}).get("chats")
    if chats is None:
        return
    if around.settings.telegram_token is not None and "telegram" not in chats.get("transports", ()):
        yield fault(
            "the running daemon was started without HOLDFAST_TELEGRAM_TOKEN.",
            "Set it, then run `holdfast stop` and `holdfast serve`.",
        )
    for trouble in chats.get("troubles", ()):
        yield note(
            f"{trouble['transport']}, {trouble['target']}: {trouble['failure']}", "Check its chat in teams.json."
        )
    if chats.get("receiving"):
        yield note(f"updates do not arrive: {chats['receiving']}", "Only one program may use a token.")
    if chats.get("refused"):
        yield note(f"{chats['refused']} updates came from people who are not owners, and were ignored")


async def _introduced(telegram: Telegram) -> str | None:
    try:
        await telegram.introduce()
        return telegram.username
    finally:
        await telegram.close()
