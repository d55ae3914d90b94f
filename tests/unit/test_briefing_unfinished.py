"""What of a session's work is open: the rule, as a table."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.briefing.ledger.model import Ledger, Todo, Touched
from holdfast.briefing.unfinished import GitNow, LaterSession, OpenWork, open_work

CORE, HELP = "/p/core.py", "/p/help.py"
LAST = 1_000_000


def ledger(name: str = "old", *, turn: bool = False, last_at: int = LAST, **parts: Any) -> Ledger:
    made = Ledger(name, first_request="Mend it.", unfinished=turn, started_at=1, last_at=last_at)
    made.modified = [Touched(path) for path in parts.get("files", ())]
    made.todos = [Todo(text, status) for text, status in parts.get("todos", {}).items()]
    made.read = [Touched(path) for path in parts.get("read", ())]
    return made


def later(*told_of: str, **parts: Any) -> LaterSession:
    after = ledger("new", last_at=LAST + 60_000, **parts)
    after.first_request, after.started_at = "Another thing.", 2
    return LaterSession(after, frozenset(told_of))


DIRTY = GitNow(frozenset({CORE}), {})
CLEAN = GitNow(frozenset(), {})
COMMITTED_BEFORE = GitNow(frozenset(), {CORE: LAST - 5_000})
COMMITTED_LATER = GitNow(frozenset(), {CORE: LAST + 5_000})
TODOS = {"north": "completed", "south": "in_progress", "west": "pending"}
CUT_OFF = ledger(turn=True, files=[CORE], todos=TODOS)
COPY = LaterSession(ledger("copy", last_at=LAST + 1), frozenset())

CASES: dict[str, tuple[Ledger, str | None, GitNow | None, list[LaterSession], OpenWork]] = {
    "nothing was left": (ledger(), "other", None, [], OpenWork()),
    "a turn without an end": (ledger(turn=True), None, None, [], OpenWork(turn=True)),
    "a turn without an end, in a session that ended in order": (
        ledger(turn=True),
        "prompt_input_exit",
        None,
        [],
        OpenWork(turn=True),
    ),
    "todos that are not done": (ledger(todos=TODOS), "other", None, [], OpenWork(("south", "west"))),
    "todos that are all done": (ledger(todos={"north": "completed"}), "other", None, [], OpenWork()),
    "files of its own that are not committed": (
        ledger(files=[CORE, HELP]),
        "other",
        DIRTY,
        [],
        OpenWork(files=(CORE,)),
    ),
    "uncommitted files of somebody else": (ledger(files=[HELP]), "other", DIRTY, [], OpenWork()),
    "files where there is no repository": (ledger(files=[CORE]), "other", None, [], OpenWork()),
    "all at once": (CUT_OFF, None, DIRTY, [], OpenWork(("south", "west"), True, (CORE,))),
    "cut off, and its files committed later": (CUT_OFF, None, COMMITTED_LATER, [], OpenWork()),
    "cut off after it committed": (CUT_OFF, None, COMMITTED_BEFORE, [], OpenWork(("south", "west"), True)),
    "cut off, and its edits taken back": (CUT_OFF, None, CLEAN, [], OpenWork(("south", "west"), True)),
    "cut off, and one file committed while another is not": (
        ledger(turn=True, files=[CORE, HELP]),
        None,
        GitNow(frozenset({HELP}), {CORE: LAST + 5_000}),
        [],
        OpenWork(turn=True, files=(HELP,)),
    ),
    "put away with /clear": (CUT_OFF, "clear", DIRTY, [], OpenWork(files=(CORE,))),
    "a trivial session came after": (CUT_OFF, None, DIRTY, [later("old")], OpenWork(("south", "west"), True, (CORE,))),
    "one that knew worked on its file": (CUT_OFF, None, DIRTY, [later("old", files=[CORE])], OpenWork()),
    "one that knew took over a todo": (CUT_OFF, None, DIRTY, [later("old", todos={"west": "pending"})], OpenWork()),
    "one that knew did something else": (
        CUT_OFF,
        None,
        DIRTY,
        [later("old", files=[HELP], read=[CORE])],
        OpenWork(("south", "west"), True, (CORE,)),
    ),
    "one that did not know worked on its file": (
        CUT_OFF,
        None,
        DIRTY,
        [later(files=[CORE])],
        OpenWork(("south", "west"), True, (CORE,)),
    ),
    "only a request is left, and one that knew only talked": (
        ledger(turn=True),
        None,
        None,
        [later("old")],
        OpenWork(turn=True),
    ),
    "only a request is left, and one that knew worked": (
        ledger(turn=True),
        None,
        None,
        [later("old", read=[HELP])],
        OpenWork(),
    ),
    "resumed under another id": (CUT_OFF, None, DIRTY, [COPY], OpenWork()),
    "an earlier session is no later one": (
        CUT_OFF,
        None,
        DIRTY,
        [LaterSession(ledger("older", last_at=1, files=[CORE]), frozenset({"old"}))],
        OpenWork(("south", "west"), True, (CORE,)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_open_is_what_was_left_and_neither_taken_up_nor_finished(case: str) -> None:
    work, end_reason, git, after, expected = CASES[case]
    assert open_work(work, end_reason, git, after) == expected
