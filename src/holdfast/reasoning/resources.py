"""Sessions and thoughts as resources, and the prompt that puts a project's context in front of an agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from holdfast.errors import NotFound
from holdfast.identity.caller import Caller
from holdfast.reasoning.export import FOR_AGENTS, Format, export_size, markdown_thought, render
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.session_browser import cursor_after
from holdfast.reasoning.views import context_view
from holdfast.store.events import Event
from holdfast.text import counted, one_line
from holdfast.text.masking import ANYBODY, Words
from holdfast.text.quoting import in_quotes, marked, quoted
from holdfast.times import iso
from holdfast.wire.mcp.tools import Page, Prompt, Resource

SESSIONS = "holdfast://sessions"
LISTED = 50
COMPLETED = 100
READ_CHARACTERS = 240 * 1024
"""Characters of a session read as a resource; a resource enters a model's context only on request."""

_NUMBER = re.compile(r"[1-9][0-9]{0,9}")


def session_resource(reasoning: Reasoning) -> Resource:
    async def read(caller: Caller, values: dict[str, str]) -> str:
        measure = export_size(Format.MARKDOWN, FOR_AGENTS)
        page = await reasoning.browser.export(caller, values["id"], measure=measure, room=READ_CHARACTERS)
        text = render(Format.MARKDOWN, page, FOR_AGENTS)
        if page.next_cursor is not None:
            text += f'\nIt goes on: session {{operation: "export", cursor: "{page.next_cursor}"}}.\n'
        return Words(text, ANYBODY)

    async def listing(caller: Caller, cursor: str | None) -> Page:
        page = await reasoning.browser.list(caller.root, limit=LISTED, cursor=cursor)
        items = [
            (
                f"{SESSIONS}/{session.id}",
                one_line(session.title, 100),
                f"{counted(session.thought_count, 'thought')}, last updated {iso(session.updated_at)}",
            )
            for session in page.sessions
        ]
        return Page(items, cursor_after(page.sessions[-1]) if page.more else None)

    async def complete(caller: Caller, name: str, typed: str, arguments: dict[str, str]) -> Sequence[str]:
        return await _session_ids(reasoning, caller, typed)

    return Resource(
        template=f"{SESSIONS}/{{id}}",
        name="session",
        description="A thought session with its branches and revisions",
        read=read,
        list=listing,
        complete=complete,
        changed=changed_sessions,
    )


def thought_resource(reasoning: Reasoning) -> Resource:
    async def read(caller: Caller, values: dict[str, str]) -> str:
        if not _NUMBER.fullmatch(values["n"]):
            raise NotFound(
                f"Thought {in_quotes(values['n'], 40)} not found", recovery="(Thoughts are numbered from 1.)"
            )
        thought = await reasoning.browser.thought(caller, values["id"], int(values["n"]))
        return Words(markdown_thought(thought, FOR_AGENTS) + "\n", ANYBODY)

    async def complete(caller: Caller, name: str, typed: str, arguments: dict[str, str]) -> Sequence[str]:
        if name == "id":
            return await _session_ids(reasoning, caller, typed)
        if name != "n" or "id" not in arguments or (typed and not _NUMBER.fullmatch(typed)):
            return []
        session = await reasoning.browser.session(arguments["id"])
        return completed_numbers(typed, session.thought_count)

    return Resource(
        template=f"{SESSIONS}/{{id}}/thoughts/{{n}}",
        name="thought",
        description="One whole thought of a session",
        read=read,
        complete=complete,
        changed=changed_thoughts,
    )


def changed_sessions(event: Event) -> Sequence[str]:
    if not event.kind.startswith(("reasoning.session_", "reasoning.thought_")):
        return ()
    return (f"{SESSIONS}/{event.subject}",)


def changed_thoughts(event: Event) -> Sequence[str]:
    if event.kind != "reasoning.thought_added":
        return ()
    return (f"{SESSIONS}/{event.subject}/thoughts/{event.data['number']}",)


def completed_numbers(typed: str, count: int) -> list[str]:
    """Return the thought numbers that begin with what was typed, the newest first."""
    if not typed:
        return [str(number) for number in range(count, max(0, count - COMPLETED), -1)]
    numbers: list[str] = []
    first = int(typed)
    width = 1
    while first * width <= count and len(numbers) < COMPLETED * 10:
        last = min(count, first * width + width - 1)
        numbers += [str(number) for number in range(last, max(first * width - 1, last - COMPLETED), -1)]
        width *= 10
    return sorted(numbers, key=int, reverse=True)[:COMPLETED]


def continue_prompt(reasoning: Reasoning) -> Prompt:
    async def render(caller: Caller) -> str:
        return quoted_context(context_view(await reasoning.load_context(caller)))

    return Prompt(
        name="continue",
        title="Continue this project",
        description="The last thought session of the current project",
        render=render,
    )


def quoted_context(reply: dict[str, Any]) -> str:
    """Render a recovered session as text, with what was thought quoted as data."""
    lines = [reply["message"]]
    if not reply["success"]:
        return "\n".join(lines)
    session = reply["session"]
    lines += [f"Title: {quoted(session['title'], 200)}", f"Next thought number: {reply['nextThoughtNumber']}"]
    lines += [
        f"Branch {quoted(branch['branchId'], 40)} leaves from thought {branch['fromThought']}"
        f" ({counted(branch['thoughtCount'], 'thought')})"
        for branch in reply["branches"]
    ]
    lines.append("The last thoughts, quoted from the record of earlier work:")
    for entry in reply["thoughts"]:
        branch = f", branch {quoted(entry['branchId'], 40)}" if "branchId" in entry else ""
        cut = ", beginning only" if "truncated" in entry else ""
        lines += ["", f"Thought {entry['thoughtNumber']}{branch}{cut}:"]
        lines.append(marked(entry["thought"]))
    return "\n".join(lines)


async def _session_ids(reasoning: Reasoning, caller: Caller, typed: str) -> list[str]:
    page = await reasoning.browser.list(caller.root, limit=COMPLETED)
    return [session.id for session in page.sessions if session.id.startswith(typed)]
