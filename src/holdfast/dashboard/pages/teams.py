"""Teams: who asks whom, what runs, what waits, and all their conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from holdfast.dashboard.amounts import money, tokens
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.urls import conversation_url
from holdfast.errors import BadInput
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.model import EXTERNAL, MAX_TEXT, AskStatus
from holdfast.teams.permissions import shown_input
from holdfast.teams.results import PairActivity, TeamsStatus
from holdfast.text import counted

DAYS = 30
DAY_MS = 24 * 3_600_000
LISTED = 20
"""Conversations on a page."""
MOST_OPEN = 20
"""Asks under way that are listed."""
MOST_ACROSS, MOST_DOWN = 16, 30
"""Teams in the matrix: those that were asked, and those that asked."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Who asks whom."""

    across: tuple[str, ...]
    down: tuple[str, ...]
    cells: Mapping[tuple[str, str], PairActivity]
    left_out: int
    """Pairs that are not in it."""


def parts(rooms: Rooms) -> list[Part]:
    """Return the page, and what can be done on it."""

    async def show(request: PageRequest) -> Shown:
        now = await rooms.store.read(lambda tx: tx.now())
        pair, place = _pair(request.query), _place(request.query.get("before"))
        overview = rooms.teams.overview
        status, found, processes, requests, asks, listed = await asyncio.gather(
            rooms.teams.status(None),
            overview.pairs(now - DAYS * DAY_MS),
            overview.processes(),
            rooms.teams.permissions.open(),
            rooms.teams.open_asks(),
            overview.conversations(pair, place, LISTED + 1),
        )
        more = listed[LISTED - 1] if len(listed) > LISTED else None
        return shown(
            "teams.html",
            sentence=sentence(status, len(requests)),
            status=status,
            requests=[(one, shown_input(one.input)) for one in requests],
            asks=asks[:MOST_OPEN],
            more_asks=max(0, len(asks) - MOST_OPEN),
            matrix=matrix([one.team.name for one in status.teams], found),
            days=DAYS,
            processes=processes,
            conversations=listed[:LISTED],
            pair=pair,
            older=None if more is None else f"{more.last_used_at}-{more.id}",
            asked=request.query.get("team", ""),
            money=money,
            tokens=tokens,
            conversation_url=conversation_url,
        )

    async def ask(request: PageRequest) -> Done:
        team = request.field("team")
        ask_id = await rooms.teams.ask(caller_of(request), team, request.field("question", MAX_TEXT))
        found = await rooms.teams.find(ask_id)
        return Done(f"{team} was asked.", conversation_url(found.conversation_id))

    async def cancel(request: PageRequest) -> Done:
        state = await rooms.teams.cancel(request.path["id"])
        if state.ask.status != AskStatus.CANCELLED.value:
            return Done("It had already ended.")
        return Done(f"The ask to {state.ask.to_team} is cancelled.")

    return [Page("/teams", show), Action("/teams/ask", ask), Action("/teams/asks/{id}/cancel", cancel)]


def caller_of(request: PageRequest) -> Caller:
    """Return who asks a team."""
    return Caller(Transport.HTTP, Era.MODERN, None, principal=request.who.key.name)


def sentence(status: TeamsStatus, waiting: int) -> str:
    """Return the state of all teams in one sentence."""
    if not status.teams:
        return "No teams yet"
    running = sum(one.running > len(one.approvals) for one in status.teams)
    queued = sum(one.waiting for one in status.teams)
    broken = sum(one.fault is not None for one in status.teams)
    return ", ".join(
        [
            counted(len(status.teams), "team"),
            f"{running} at work" if running else "none at work",
            *([f"{counted(queued, 'ask')} queued"] if queued else []),
            *([f"{waiting} {'waits' if waiting == 1 else 'wait'} for you"] if waiting else []),
            *([f"{broken} cannot run"] if broken else []),
        ]
    )


def matrix(configured: Sequence[str], found: Sequence[PairActivity]) -> Matrix:
    """Put pairs into rows and columns; with many teams only those that were asked, the most active first."""
    asked = _unique(one.to_team for one in found)
    across = _unique([*asked, *configured])[:MOST_ACROSS]
    if len(configured) <= MOST_ACROSS:
        across = [
            *(name for name in configured if name in across),
            *(name for name in across if name not in configured),
        ]
    askers = _unique(one.from_team for one in found)
    down = [EXTERNAL, *(name for name in askers if name != EXTERNAL)][:MOST_DOWN]
    cells = {(one.from_team, one.to_team): one for one in found if one.from_team in down and one.to_team in across}
    return Matrix(tuple(across), tuple(down), cells, len(found) - len(cells))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _pair(query: Mapping[str, str]) -> tuple[str, str] | None:
    return (query.get("from", EXTERNAL), query["to"]) if "to" in query else None


def _place(text: str | None) -> tuple[int, int] | None:
    """Return the position in the list of conversations after which a page begins."""
    if text is None:
        return None
    used, _, number = text.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (used, number)):
        raise BadInput("before", "is not a position in the list", recovery="Open Teams again.")
    return int(used), int(number)
