"""What waits for a person, as cards: who, in its own words, since when, and the one thing to do about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import field

from holdfast.bridge.model import Status
from holdfast.briefing.ledger.model import is_session_id
from holdfast.briefing.recent_sessions import Recently
from holdfast.dashboard.activity import LATELY_MS
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.urls import conversation_url, run_url, survival_url
from holdfast.dashboard.way_back import way_back
from holdfast.identity.project import path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import events
from holdfast.teams.permissions import shown_input
from holdfast.text.paths import typed

FAILED_MS = 24 * 3_600_000
"""How long an ask that failed waits for somebody."""
CUT_OFF = "cut off in the middle of its work"
MOST = 50
"""Cards of one kind."""
COUNT_SECONDS = 5.0
"""How long a count is used again while nothing is committed: requests and questions also end by themselves."""
UNCOUNTED = ("reasoning.",)
"""Kinds of events that change nothing of what waits: agents think all the time."""


@dataclass(frozen=True, slots=True)
class Button:
    """An action of a card: the form that does it."""

    path: str
    label: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Card:
    """One thing that waits for a person."""

    key: str
    kind: str
    """In a word or two, such as "permission"."""
    who: str
    """A team, a target or a project."""
    says: str
    """What it is about, in the agent's own words where there are some: outside text."""
    at: int
    whole: str | None = None
    """The rest of it, to be unfolded; of a permission all that would run."""
    primary: Button | None = None
    others: tuple[Button, ...] = ()
    command: str | None = None
    """What to type where the browser cannot do it."""
    link: tuple[str, str] | None = None
    """What has more of it: its name and its page."""


class Waiting:
    """Everything that waits for a person, from every room."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._counted: tuple[int, float, int] = (-1, 0.0, 0)

    async def cards(self, recently: Recently | None = None) -> list[Card]:
        """Return a card for each, the oldest first, after those that are about to expire.

        `recently` are the latest sessions, if they are known already."""
        seen = await self._rooms.store.read(events.head)
        groups = await asyncio.gather(
            self._permissions(),
            self._questions(),
            self._dead_letters(),
            self._failed_asks(),
            self._blocked(),
            self._cut_off(recently),
        )
        permissions, *others = groups
        rest = sorted((card for group in others for card in group), key=lambda card: card.at)
        cards = [*permissions, *rest]
        self._counted = seen, time.monotonic() + COUNT_SECONDS, len(cards)
        return cards

    async def count(self, changed: int) -> int:
        """Return how many there are; `changed` is the number of the newest event that is not one of `UNCOUNTED`."""
        known, until, number = self._counted
        if known < changed or time.monotonic() > until:
            number = len(await self.cards())
        return number

    async def _permissions(self) -> list[Card]:
        return [
            Card(
                f"permission-{one.id}",
                "permission",
                one.team,
                f"wants to use {one.tool}",
                one.created_at,
                shown_input(one.input),
                Button(f"/approvals/{one.id}", "Allow", {"decision": "allow", "digest": one.digest}),
                (Button(f"/approvals/{one.id}", "Deny", {"decision": "deny"}),),
            )
            for one in (await self._rooms.teams.permissions.open())[:MOST]
        ]

    async def _questions(self) -> list[Card]:
        restarts, idle = await self._rooms.bridge.questions()
        now = await self._rooms.store.read(lambda tx: tx.now())
        return [
            *(
                Card(
                    f"restart-{one.target}",
                    "restarted in the middle of a task",
                    one.target,
                    one.task.current_task,
                    one.at,
                    one.task.last_completed_step and f"Last completed step: {one.task.last_completed_step}",
                    Button(f"/questions/{one.target}", "Resume", {"decision": "resume", "session": one.session_id}),
                    (
                        Button(
                            f"/questions/{one.target}", "Start fresh", {"decision": "fresh", "session": one.session_id}
                        ),
                    ),
                )
                for one in restarts
            ),
            *(
                Card(
                    f"idle-{one.target}",
                    "idle at its terminal",
                    one.target,
                    f"{one.waiting} waiting. Should a fork of its session answer?",
                    now,
                    None,
                    Button(f"/questions/{one.target}", "Answer in a fork", {"decision": "fork"}),
                    (Button(f"/questions/{one.target}", "Wait for the terminal", {"decision": "wait"}),),
                )
                for one in idle
            ),
        ]

    async def _dead_letters(self) -> list[Card]:
        return [
            Card(
                f"dead-{one.target}-{one.row_id}",
                "dead letter",
                one.target,
                one.text,
                one.finished_at or one.created_at,
                None,
                Button("/messages/retry", "Retry", {"target": one.target, "id": one.id}),
            )
            for one in await self._rooms.queue.listed(None, Status.DEAD, MOST)
        ]

    async def _failed_asks(self) -> list[Card]:
        return [
            Card(
                f"ask-{state.ask.id}",
                "ask failed",
                state.ask.to_team,
                state.ask.text,
                state.ask.finished_at or state.ask.created_at,
                state.ask.error or state.ask.error_code,
                Button(f"/asks/{state.ask.id}/again", "Ask again"),
                link=("The conversation", conversation_url(state.ask.conversation_id)),
            )
            for state in await self._rooms.teams.failed_lately(FAILED_MS)
        ]

    async def _cut_off(self, recently: Recently | None) -> list[Card]:
        asked_about = {task.session_id for task in await self._rooms.bridge.target_tasks()}
        cards = []
        for one in (recently or await self._rooms.briefings.recently(LATELY_MS)).sessions:
            if not one.cut_off or one.session_id in asked_about or not is_session_id(one.session_id):
                continue  # whether a task is to be resumed is a question of its own, or was one
            path = path_of(one.root)
            if path is None:
                continue
            cards.append(
                Card(
                    f"cut-{one.session_id}",
                    CUT_OFF,
                    path.name,
                    one.said or one.asked or "",
                    one.last_at,
                    one.asked if one.said else None,
                    others=(Button("/work/dismiss", "Dismiss", {"root": one.root, "session": one.session_id}),),
                    command=way_back(one.directory, one.root, one.session_id),
                    link=("What it knew", survival_url(one.project_key or one.root, one.session_id)),
                )
            )
        return cards

    async def _blocked(self) -> list[Card]:
        cards = []
        for record in await self._rooms.protocols.held():
            run, result = record.run, record.result(record.run.held_by)
            path = path_of(run.root)
            cards.append(
                Card(
                    f"gate-{run.row_id}",
                    f"blocked at {run.held_by}",
                    path.name if path is not None else run.root,
                    result.evidence if result is not None else run.objective,
                    run.touched_at,
                    None,
                    command=None if path is None else f"holdfast protocol validate {typed(str(path))}",
                    link=("The run", run_url(run.project, run.row_id)),
                )
            )
        return cards
