"""Earlier sessions as lines of a briefing: how each ended, where it worked, what is open; stored text is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.agents.registry import resume_command_of
from holdfast.briefing.ledger.wording import items as ledger_items
from holdfast.briefing.ledger.wording import relative
from holdfast.briefing.model import MAX_PATH_CHARS, Occasion
from holdfast.briefing.predecessors import OFFERED_MS, Past, Predecessor
from holdfast.briefing.session_directory import Relation, SessionDirectory
from holdfast.briefing.unfinished import own_files
from holdfast.capability.briefing import Item, Rank
from holdfast.text import counted
from holdfast.text.quoting import named, quoted
from holdfast.times import iso

REQUEST = 110
TODO = 60
LISTED = 3
SECOND = 1_000
"""Milliseconds; git's times are not more exact."""
SHORT_ID = 8
"""Characters by which a session is named to be dismissed."""
OPEN_KINDS = frozenset({"unfinished", "unread", "todos"})
"""What a ledger tells of open work."""
_DAYS = OFFERED_MS // (24 * 3_600_000)


def past_items(past: Past, project: Path | None, detail: Occasion) -> list[Item]:
    """Return the session whose work matters most in full, then other unfinished ones and the newest by a line each."""
    main = past.main
    if main is None:
        return _older(past)
    items = ledger_items(main.ledger, project, detail)
    return [
        _way_back(main, is_newest=past.newest is None or main is past.newest),
        *_where(main),
        *(item for item in items if main.open or item.kind not in OPEN_KINDS),
        *_uncommitted(main, project),
        *also_unfinished(past.unfinished[1:], past.more),
        *([_newest(past.newest)] if past.newest is not None and past.newest is not main else []),
    ]


def also_unfinished(sessions: Sequence[Predecessor], more: int) -> list[Item]:
    """Return sessions with open work, a line each."""
    lines = [
        Item("unfinished session", Rank.WAY_BACK + 2 + number, f"Also unfinished: {_unfinished(one)}")
        for number, one in enumerate(sessions)
    ]
    if more:
        text = f"Also unfinished: {counted(more, 'older session')}."
        lines.append(Item("unfinished session", Rank.OTHERS, text))
    return lines


def left_open(one: Predecessor) -> str:
    """Return what a session left open, in a few words."""
    work = one.open
    parts = ["cut off in the middle of a turn" if one.cut_off else "a turn without an end"] if work.turn else []
    if work.todos:
        parts.append(f"{len(work.todos)} of {counted(len(one.ledger.todos), 'step')} open")
    if work.files:
        parts.append(f"{counted(len(work.files), 'file')} not committed")
    return ", ".join(parts)


def _way_back(one: Predecessor, *, is_newest: bool) -> Item:
    """Say how a session ended, and how it is continued."""
    who = "The last session" if is_newest else "An earlier session"
    text = f"{who}, {named(one.session_id)}{_branch(one)}, {_ending(one)}. {_resume(one)}"
    if one.open:
        text += f' When its work is done or not wanted: resume {{dismiss: "{_short(one)}"}}.'
    # Without this before them, the other lines would seem to be about the newest session, or about this directory.
    first = not is_newest or one.where.relation is not Relation.HERE
    return Item("way back", Rank.TASK - 2 if first else Rank.WAY_BACK, text)


def _resume(one: Predecessor) -> str:
    if not one.resumable:
        return "Its transcript is not on this machine."
    is_reachable = one.where.relation in (Relation.SAME_CHECKOUT, Relation.WORKTREE, Relation.CLONE)
    there = f" in {_directory(one.where)}" if is_reachable and one.where.directory else ""
    return f"`{resume_command_of()(named(one.session_id))}`{there} continues it whole."


def _ending(one: Predecessor) -> str:
    seen = one.seen
    if seen is not None and seen.ended_at is not None:
        return f"ended {iso(seen.ended_at)} ({_word(seen.end_reason)})" + (" with work left open" if one.open else "")
    if one.cut_off and one.open:
        return f"was cut off; its last entry is from {iso(one.ledger.last_at)}"
    if one.cut_off:
        since = f", and its work was {one.settled.value} since" if one.settled is not None else ""
        return f"was cut off {iso(one.ledger.last_at)}{since}"
    return f"was last active {iso(one.ledger.last_at)}"


def _where(one: Predecessor) -> list[Item]:
    where = one.where
    branch = one.ledger.branch
    if where.relation is Relation.HERE:
        if where.here is None or branch is None or where.here == branch:
            return []
        text = f"It was on branch {named(branch)}; this checkout is on {named(where.here)} now."
        return [Item("where", Rank.WAY_BACK + 1, text)]
    if where.relation is Relation.ANOTHER_MACHINE:
        return [Item("where", Rank.TASK - 1, f"It worked on another machine, in {_directory(where)}.")]
    text = f"It worked in {_directory(where)}, {where.relation.value}; paths are relative to it."
    if where.is_elsewhere and where.here is not None:
        text += f" This checkout is on branch {named(where.here)}."
    if where.differing:
        text += f" Different or missing here: {_names(where.differing)}."
    elif where.compared:
        text += " The files that it modified are the same here."
    return [Item("where", Rank.TASK - 1, text)]


def _uncommitted(one: Predecessor, project: Path | None) -> list[Item]:
    """Say which of its files are committed by now, if git knows."""
    files = own_files(one.ledger)
    if one.git is None or not files:
        return []
    open_ones = [path for path in reversed(files) if path in one.git.uncommitted]
    committed = one.git.committed or {}
    if len(open_ones) == len(files):
        text = "Not committed yet: all of them"
    elif open_ones:
        listed = _names([relative(path, project, one.ledger.cwd) for path in open_ones])
        text = f"Not committed yet ({len(open_ones)} of {len(files)}): {listed}"
    elif all(committed.get(path, 0) + SECOND > one.ledger.started_at for path in files):
        text = "All files modified are committed"
    else:
        return []  # some were ignored, put aside or taken back: git does not say
    return [Item("committed", Rank.MODIFIED + 2, text)]


def _unfinished(one: Predecessor) -> str:
    """Return a session and its open work, on one line."""
    work = one.open
    parts = [f"session {named(one.session_id)}{_branch(one)}"]
    if one.where.relation is not Relation.HERE:
        parts.append(f"in {_directory(one.where)}")
    parts.append(_ending(one).replace("; its last entry is from", ""))
    request = one.ledger.latest_request
    if request:
        parts.append(f"asked last {quoted(request, REQUEST)}")
    if work.todos:
        todos = "; ".join(quoted(text, TODO) for text in work.todos[:2])
        parts.append(f"{len(work.todos)} open todos: {todos}" if len(work.todos) > 1 else f"an open todo: {todos}")
    if work.turn and not one.cut_off:
        parts.append("a turn without an end")
    if work.files:
        listed = _names([relative(path, one.ledger.cwd) for path in reversed(work.files)])
        parts.append(f"not committed: {listed}")
    return ", ".join(parts) + f'. (dismiss: "{_short(one)}")'


def _newest(one: Predecessor) -> Item:
    request = one.ledger.latest_request
    said = f"; asked last: {quoted(request, REQUEST)}" if request else ""
    place = "" if one.where.relation is Relation.HERE else f", in {_directory(one.where)}"
    text = f"The newest session, {named(one.session_id)}{_branch(one)}{place}, {_ending(one)}{said}."
    return Item("newest", Rank.WAY_BACK + 4, text)


def _older(past: Past) -> list[Item]:
    if past.older is None:
        return []
    text = f"Earlier work: the last session was active {iso(past.older)}, over {_DAYS} days ago."
    return [Item("older", Rank.OTHERS, text, "resume")]


def _branch(one: Predecessor) -> str:
    return f" (branch {named(one.ledger.branch)})" if one.ledger.branch else ""


def _short(one: Predecessor) -> str:
    return one.session_id[:SHORT_ID]


def _directory(where: SessionDirectory) -> str:
    return named(where.directory or "", MAX_PATH_CHARS)


def _names(paths: Sequence[str]) -> str:
    named_paths = ", ".join(named(path, MAX_PATH_CHARS) for path in paths[:LISTED])
    return named_paths + (f" and {len(paths) - LISTED} more" if len(paths) > LISTED else "")


def _word(text: str | None) -> str:
    return "".join(char if char.isalnum() or char in "_-" else "?" for char in (text or "unknown")[:40])
