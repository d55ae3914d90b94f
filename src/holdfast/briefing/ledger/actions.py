"""What an agent did, action by action and a line each, as a person follows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.agents import transcript_entries as entries
from holdfast.agents.transcript_entries import Called, Entry
from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger.keeping import kept_line
from holdfast.briefing.ledger.model import Action

MAX_LINE = 200
VERBS = {
    CallKind.READ.value: "read",
    CallKind.CHANGE.value: "changed",
    CallKind.RUN.value: "ran",
    CallKind.PLAN.value: "planned",
    CallKind.TODO.value: "planned",
}


def of_call(kind: str, about: str, at: int) -> Action:
    """Return a call as an action; `about` is its file, its command or its tool."""
    return Action(VERBS.get(kind, "used"), about, at)


def actions_in(parts: Iterable[Entry]) -> Iterator[Action]:
    """Yield what was asked, said and done in these entries, in order; not what subagents did, nor the same twice."""
    at, last = 0, None
    for entry in parts:
        at = entry.at or at
        for action in _actions(entry, at) if not entry.is_side else ():
            if last is None or (last.kind, last.text) != (action.kind, action.text):
                yield action
            last = action


def _actions(entry: Entry, at: int) -> Iterator[Action]:
    listed = False
    for part in entry.parts:
        match part:
            case entries.Asked(text):
                yield Action("asked", kept_line(text, MAX_LINE), at)
            case entries.Said(text) if text:
                yield Action("said", kept_line(text, MAX_LINE), at)
            case entries.TodosWritten(todos):
                now = next((one.text for one in todos if one.status == "in_progress"), "")
                yield Action("planned", kept_line(now, MAX_LINE) or "its list", at)
                listed = True
            case entries.TodoChanged(text=text):
                yield Action("planned", kept_line(text, MAX_LINE) or "its list", at)
                listed = True
            case Called() if listed:
                listed = False  # the call by which the list was written
            case Called(tool=tool, kind=kind, command=command, path=path, text=text):
                yield of_call(kind, kept_line(command or path or text or tool, MAX_LINE), at)
            case _:
                pass
