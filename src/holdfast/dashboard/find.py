"""One search over everything: thoughts, conversations, messages and runs, each hit with the line that it is in."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import islice

from markupsafe import Markup, escape

from holdfast.bridge.queries.owner import ListedMessage
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.urls import ProjectLink, conversation_url, project_link, run_url, session_url
from holdfast.history.model import Conversation
from holdfast.identity.project import canonical_uri
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.runs import Run
from holdfast.reasoning.fulltext import Term, fold, folded_with_places, terms_of
from holdfast.reasoning.results import FoundLately
from holdfast.teams.model import AskState
from holdfast.text import clipped
from holdfast.text.masking import without_secrets
from holdfast.text.terminal import visible

MOST = 8
"""Hits of each kind."""
LONGEST = 200
BEFORE, LINE = 60, 220
"""Characters before the first hit of a line, and of the line."""
LOOKED_AT = 40
"""Hits in a text among which the best line is chosen."""
WIDE = 4_000
"""Characters on both sides of a hit that are searched for secrets: as long as the longest key."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found."""

    key: str
    url: str | None
    title: str
    """Outside text."""
    line: Markup | None
    """None if the hit is in a secret, which a reader who may not see it must not find either."""
    project: ProjectLink | None
    at: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of one kind."""

    name: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in all."""

    groups: tuple[Group, ...] = ()
    all_searched: bool = True
    """Whether all thoughts were searched."""

    @property
    def count(self) -> int:
        return sum(len(group.hits) for group in self.groups)


@dataclass(frozen=True, slots=True)
class _Looking:
    """What is looked for, and whether secrets are shown."""

    pattern: re.Pattern[str]
    roughly: re.Pattern[str]
    words: tuple[str, ...]
    sees_secrets: bool

    def line(self, *texts: str | None) -> Markup | None:
        """Return the line of the first of these texts that has a hit, with every hit marked."""
        given = [text for text in texts if text]
        chosen = next((text for text in given if self.roughly.search(text)), given[0] if given else "")
        line = highlighted(chosen, self.pattern, self.roughly, None if self.sees_secrets else self._masked)
        return line if "<mark>" in line or self.sees_secrets else None

    def _masked(self, text: str) -> str:
        masked = without_secrets(text)
        # If masked text counted as a hit, a reader could find out a secret letter by letter.
        folded = " ".join(fold(masked).split())
        return masked if all(word in folded for word in self.words) else ""


async def find(rooms: Rooms, query: str, *, sees_secrets: bool) -> Found:
    """Return what was found, by kind, the newest first; nothing for a query without a word."""
    words = query.replace('"', " ").split()
    if not any(fold(word).strip() for word in words):
        return Found()
    thoughts, past, asks, messages, runs = await asyncio.gather(
        rooms.reasoning.browser.search_lately(query, MOST),
        rooms.history.find(query, None, MOST, lambda part, what: None, newest=True),
        rooms.teams.search(words, MOST),
        rooms.queue.search(words, MOST),
        rooms.protocols.search(words, MOST),
    )
    looking = looking_for(words, terms_of(query), sees_secrets=sees_secrets)
    places = {name: canonical_uri(str(team.project)) for name, team in rooms.teams.targets().items()}
    groups = (
        Group("Thoughts", (*_sessions(thoughts, looking), *_thoughts(thoughts, looking))),
        Group(
            "Conversations",
            (
                *(_ask(one, looking, places.get(one.ask.to_team)) for one in asks),
                *(_past(one, looking) for one in past.conversations),
            ),
        ),
        Group("Messages", tuple(_message(one, looking, places.get(one.target)) for one in messages)),
        Group("Protocol runs", tuple(_run(one, looking) for one in runs)),
    )
    seen = (Group(group.name, tuple(hit for hit in group.hits if hit.line is not None)) for group in groups)
    return Found(tuple(group for group in seen if group.hits), thoughts.all_searched)


def looking_for(words: Sequence[str], terms: Sequence[Term], *, sees_secrets: bool) -> _Looking:
    """Return what marks these words in texts."""
    folded = tuple(joined for word in words if (joined := " ".join(fold(word).split())))
    pattern = "|".join([*(term.pattern for term in terms), *map(re.escape, folded)])
    roughly = "|".join(re.escape(word) for word in words)
    return _Looking(re.compile(pattern), re.compile(roughly, re.IGNORECASE), folded, sees_secrets)


def _sessions(found: FoundLately, looking: _Looking) -> list[Hit]:
    return [
        Hit(
            f"s-{one.id}",
            session_url(one.id),
            "Session",
            looking.line(one.title),
            project_link(one.root_uri, one.project_key),
            one.updated_at,
            "archived" if one.status.value == "archived" else "",
        )
        for one in found.sessions
    ]


def _thoughts(found: FoundLately, looking: _Looking) -> list[Hit]:
    return [
        Hit(
            f"t-{session.id}-{thought.number}",
            session_url(session.id, thought.number),
            session.title,
            looking.line(thought.content),
            project_link(session.root_uri, session.project_key),
            thought.created_at,
            f"thought {thought.number:,}",
        )
        for session, thought in found.thoughts
    ]


def _ask(found: AskState, looking: _Looking, root: str | None) -> Hit:
    ask, conversation = found.ask, found.conversation
    asker = (conversation.from_team if conversation is not None else "") or "you"
    return Hit(
        f"a-{ask.id}",
        conversation_url(ask.conversation_id),
        f"{asker} asked {ask.to_team}",
        looking.line(ask.text, ask.answer),
        project_link(root, None),
        ask.finished_at or ask.created_at,
        ask.status,
    )


def _past(found: Conversation, looking: _Looking) -> Hit:
    best = found.best
    project = project_link(f"file://{best.directory}" if best.directory.startswith("/") else None, None)
    return Hit(
        f"h-{best.session_id}",
        None if project is None else f"{project.url}#sessions",
        {"user": "A request", "assistant": "An answer", "tool": "A call", "result": "A result"}.get(
            best.role, "An error"
        ),
        looking.line(best.content),
        project,
        best.at or None,
        "imported" + (f", {found.more} more in it" if found.more else ""),
    )


def _message(found: ListedMessage, looking: _Looking, root: str | None) -> Hit:
    project = project_link(root, None)
    return Hit(
        f"m-{found.row_id}",
        None if project is None else f"{project.url}#queues",
        f"To {found.target}",
        looking.line(found.text, found.reply),
        project,
        found.created_at,
        found.outcome or found.status,
    )


def _run(found: Run, looking: _Looking) -> Hit:
    project = project_link(found.root, found.project)
    return Hit(
        f"r-{found.row_id}",
        run_url(found.project or found.root, found.row_id),
        found.id,
        looking.line(found.objective, found.summary, found.decisions, found.notes),
        project,
        found.ended_at or found.touched_at,
        found.status,
    )


def _best(text: str, roughly: re.Pattern[str]) -> int:
    """Return the first hit in the line with the most words, among the first lines that have any."""

    def words(hit: re.Match[str]) -> int:
        line = text[hit.start() : hit.start() + LINE].partition("\n")[0]
        return len({found.casefold() for found in roughly.findall(line)})

    return max(islice(roughly.finditer(text), LOOKED_AT), key=words).start() if roughly.search(text) else 0


def highlighted(
    text: str, pattern: re.Pattern[str], roughly: re.Pattern[str], mask: Callable[[str], str] | None
) -> Markup:
    """Return the line with most hits, all of them marked; `pattern` is of folded text."""
    at = _best(text, roughly)
    if mask is not None:
        text = mask(text[max(0, at - WIDE) : at + WIDE])
        at = _best(text, roughly)
    begins = text.rfind("\n", max(0, at - LINE), at) + 1 or max(0, at - LINE)
    ends = text.find("\n", at, at + LINE)
    start = max(begins, at - BEFORE)
    part = text[start : ends if ends >= 0 else at + LINE]
    line = clipped(unicodedata.normalize("NFC", " ".join(part.split())), LINE)
    folded, places = folded_with_places(line)
    shown, done = ["…"] if start > begins else [], 0
    for found in pattern.finditer(folded):
        if found.end() == found.start():
            continue
        first, last = places[found.start()], places[found.end() - 1] + 1
        shown.append(f"{escape(visible(line[done:first]))}<mark>{escape(visible(line[first:last]))}</mark>")
        done = last
    # Not `Markup.format`, which takes longer than all the rest.
    whole = "".join((*shown, escape(visible(line[done:]))))
    return Markup(f'<bdi class="outside">{whole}</bdi>')  # noqa: S704 - escaped
