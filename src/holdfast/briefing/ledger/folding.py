"""One entry after the other becomes part of a ledger. No I/O, no model, and no error whatever the entry holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from holdfast.agents.transcript_entries import (
    Answered,
    Asked,
    Called,
    Compacted,
    Ended,
    Entry,
    Part,
    QueueChange,
    Queued,
    Refused,
    Said,
    TodoChanged,
    TodoItem,
    TodosWritten,
)
from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger.error_forms import SCANNED
from holdfast.briefing.ledger.failures import note_result
from holdfast.briefing.ledger.keeping import bound, kept, kept_line
from holdfast.briefing.ledger.model import (
    MAX_CALLS,
    MAX_COMMAND,
    MAX_COMMITS,
    MAX_DECISIONS,
    MAX_EARLIER,
    MAX_FILES,
    MAX_LINE,
    MAX_MENTIONED,
    MAX_PATH,
    MAX_PLAN,
    MAX_REQUEST,
    MAX_REQUESTS,
    MAX_RULED_OUT,
    MAX_TODOS,
    MAX_WAITING,
    MAX_WORDS,
    Call,
    Commit,
    Decision,
    Ledger,
    Todo,
    Touched,
)
from holdfast.briefing.ledger.runs import run_of
from holdfast.briefing.ledger.shell_files import files_in

_COMMITTED = re.compile(r"^\[(?:[^\]\n]{1,200}? )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_TAKES_BACK = re.compile(
    r"\bgit\s+(?:checkout\s+(?:\S+\s+)?--\s|restore\s|reset\s+--hard|revert\s|stash(?:\s+push)?\s*$)"
)
_TASK_NUMBER = re.compile(r"#(\d{1,6})")


def fold(ledger: Ledger, entry: Entry) -> None:
    """Add what one entry tells."""
    if entry.at is not None:
        ledger.started_at = ledger.started_at or entry.at
        ledger.last_at = max(ledger.last_at, entry.at)
    if not entry.is_side:
        _place(ledger, entry)
    for part in entry.parts:
        _add(ledger, entry, part)


def _add(ledger: Ledger, entry: Entry, part: Part) -> None:
    match part:
        case Asked(text):
            _ask(ledger, text)
        case Said(text, ends_turn):
            ledger.last_words = kept(text, MAX_WORDS) if text else ledger.last_words
            if ends_turn:
                _end_turn(ledger)
        case Called():
            _called(ledger, entry, part)
        case Answered():
            _answered(ledger, part)
        case TodosWritten(todos):
            _write_todos(ledger, todos)
        case TodoChanged():
            _update_todo(ledger, part)
        case Queued(change, text):
            _queue(ledger, change, kept(text, MAX_EARLIER))
        case Compacted():
            ledger.compactions += 1
        case Ended():
            _end_turn(ledger)


def _place(ledger: Ledger, entry: Entry) -> None:
    if ledger.cwd is None and entry.cwd:
        ledger.cwd = kept(entry.cwd, MAX_PATH)
    if entry.branch not in ("", "HEAD", ledger.branch):  # HEAD it says where there is no repository, too
        ledger.branch = kept_line(entry.branch)


def _ask(ledger: Ledger, request: str) -> None:
    ledger.turns += 1
    ledger.unfinished = True
    if ledger.first_request is None:
        ledger.first_request = kept(request, MAX_REQUEST)
        return
    if ledger.requests:
        ledger.requests[-1] = kept(ledger.requests[-1], MAX_EARLIER)
    ledger.requests.append(kept(request, MAX_REQUEST))
    bound(ledger.requests, MAX_REQUESTS)


def _queue(ledger: Ledger, change: QueueChange, written: str) -> None:
    """What the user types stands in a queue until the agent gets it."""
    if change is QueueChange.ADDED:
        ledger.waiting.append(written)
        bound(ledger.waiting, MAX_WAITING)
    elif change is QueueChange.REMOVED and written in ledger.waiting:
        ledger.waiting.remove(written)
    elif change is QueueChange.EMPTIED:
        ledger.waiting.clear()
    else:
        del ledger.waiting[:1]


def _end_turn(ledger: Ledger) -> None:
    ledger.unfinished = False
    ledger.calls = [call for call in ledger.calls if call.side]


def _called(ledger: Ledger, entry: Entry, part: Called) -> None:
    call = Call(kept(part.call_id, MAX_LINE), kept_line(part.tool), part.kind, side=entry.is_side)
    if part.kind is CallKind.RUN:
        _read_command(call, part.command, entry.cwd)
    elif part.kind is CallKind.PLAN:
        call.text = kept(part.text, MAX_PLAN)
    elif part.kind is CallKind.TODO:
        call.text = kept_line(part.text)
    else:
        call.about = kept_line(part.path, MAX_PATH)
        call.swap = " ".join(map(_hash, part.replaced)) if part.replaced else ""
    ledger.calls.append(call)
    bound(ledger.calls, MAX_CALLS)
    if not entry.is_side:
        ledger.unfinished = True


def _read_command(call: Call, command: str, cwd: str) -> None:
    call.about = kept_line(command)
    named = files_in(command, cwd)
    call.shown, call.written, call.removed = (
        [kept_line(path, MAX_PATH) for path in paths] for paths in (named.shown, named.written, named.removed)
    )
    # A word alone does not show that it is a secret, as the word after -u: these are read off what is masked.
    cleaned = kept(command, MAX_COMMAND)
    run = run_of(cleaned)
    call.keys = run.keys
    call.mentioned = [path for path in files_in(cleaned, cwd).mentioned if len(path) <= MAX_PATH]
    call.shows, call.hides_exit, call.checks, call.finds = run.shows, run.hides_exit, run.checks, run.finds


def _answered(ledger: Ledger, part: Answered) -> None:
    call = next((one for one in ledger.calls if one.id == part.call_id), None)
    if call is not None:
        ledger.calls.remove(call)
    call = call or Call(part.call_id, "")
    if part.refused is not None:
        _rule_out(ledger, _refusal(call, part.refused))
        return
    if not part.not_run:
        note_result(ledger, call, part.text, failed=part.failed)
    _mention(ledger, call.mentioned)
    if part.failed:
        return
    finish = _FINISHED.get(call.kind)
    if finish is not None:
        finish(ledger, call, part)
    elif call.about and call.kind == CallKind.READ:
        _touch(ledger.read, call.about, ledger.last_at)
    elif call.about and call.kind == CallKind.CHANGE:
        _modified(ledger, call, created=part.created)


def _modified(ledger: Ledger, call: Call, *, created: bool) -> None:
    _touch(ledger.modified, call.about, ledger.last_at, created=created)
    if not call.swap:
        return
    before, after = call.swap.split(" ")
    if f"{after} {before} {call.about}" in ledger.edits:
        _rule_out(ledger, f"an edit of {call.about} was taken back")
        if ledger.modified[-1].times == 2:  # the edit, and the one that took it back
            ledger.modified.pop()
    ledger.edits.append(f"{call.swap} {call.about}")
    bound(ledger.edits, MAX_RULED_OUT)


def _ran(ledger: Ledger, call: Call, part: Answered) -> None:
    for path in call.shown:
        _touch(ledger.read, path, ledger.last_at)
    for path in call.removed:
        _remove(ledger, path)
    for path in call.written:
        _touch(ledger.modified, path, ledger.last_at)
    if "commit" in call.about:
        for found in _COMMITTED.finditer(part.text[:SCANNED]):
            ledger.commits.append(Commit(found[1], kept_line(found[2])))
        bound(ledger.commits, MAX_COMMITS)
    if _TAKES_BACK.search(call.about):
        _rule_out(ledger, f"taken back with: {call.about}")


def _planned(ledger: Ledger, call: Call, part: Answered) -> None:
    plan = call.text or kept(part.plan, MAX_PLAN)
    if plan:
        ledger.plan = plan


def _was_told(ledger: Ledger, call: Call, part: Answered) -> None:
    for question, said in part.answers[:MAX_DECISIONS] or (("", part.text),):
        ledger.decisions.append(Decision(kept_line(question), kept_line(said)))
    bound(ledger.decisions, MAX_DECISIONS)


def _made_task(ledger: Ledger, call: Call, part: Answered) -> None:
    named = _TASK_NUMBER.search(part.text)
    if call.text:
        ledger.todos.append(Todo(call.text, "pending", kept_line(part.todo_key or (named[1] if named else ""), 20)))
        bound(ledger.todos, MAX_TODOS)


_FINISHED: dict[str, Callable[[Ledger, Call, Answered], None]] = {
    CallKind.RUN: _ran,
    CallKind.PLAN: _planned,
    CallKind.QUESTION: _was_told,
    CallKind.TODO: _made_task,
}


def _write_todos(ledger: Ledger, todos: Iterable[TodoItem]) -> None:
    written = [Todo(kept_line(one.text), kept_line(one.status, 20)) for one in todos]
    ledger.todos = [todo for todo in written if todo.text][:MAX_TODOS]


def _update_todo(ledger: Ledger, part: TodoChanged) -> None:
    status = kept_line(part.status, 20)
    for todo in [one for one in ledger.todos if part.key and one.key == part.key]:
        changed = replace(todo, status=status or todo.status, text=kept_line(part.text) or todo.text)
        place = ledger.todos.index(todo)
        ledger.todos[place : place + 1] = [] if status == "deleted" else [changed]


def _refusal(call: Call, refused: Refused) -> str:
    """What was refused, by whom, and the user's own words where there are some."""
    what = f"{call.tool or 'a tool'} {call.about}".strip()
    if refused.said:
        return f"the user refused {what}, saying: {refused.said}"
    if refused.by_user:
        return f"the user refused {what}" + (f": {refused.reason}" if refused.reason else "")
    return f"{what} was denied: {refused.reason}"


def _rule_out(ledger: Ledger, what: str) -> None:
    line = kept_line(what)
    if line in ledger.ruled_out:
        ledger.ruled_out.remove(line)
    ledger.ruled_out.append(line)
    bound(ledger.ruled_out, MAX_RULED_OUT)


def _touch(files: list[Touched], path: str, at: int, *, created: bool = False) -> None:
    """Move a file to the end of its list, counted once more."""
    before = _taken(files, path)
    if before is None:
        files.append(Touched(path, 1, at, created))
    else:
        files.append(Touched(path, before.times + 1, at, before.created and not before.removed))
    bound(files, MAX_FILES)


def _remove(ledger: Ledger, path: str) -> None:
    """A file, or a folder with all that is in it, is gone: what was made only to be removed is told no more."""
    inside = [file.path for file in ledger.modified if file.path == path or file.path.startswith(f"{path}/")]
    ours = [found for one in inside if (found := _taken(ledger.modified, one)) is not None]
    if not ours or any(not file.created for file in ours):
        ledger.modified.append(Touched(path, 1, ledger.last_at, removed=True))
        bound(ledger.modified, MAX_FILES)
    ledger.read = [file for file in ledger.read if file.path != path and not file.path.startswith(f"{path}/")]


def _taken(files: list[Touched], path: str) -> Touched | None:
    """A file, taken out of its list."""
    place = next((place for place in range(len(files) - 1, -1, -1) if files[place].path == path), None)
    return None if place is None else files.pop(place)


def _mention(ledger: Ledger, paths: list[str]) -> None:
    ledger.mentioned = [one for one in ledger.mentioned if one not in paths] + list(dict.fromkeys(paths))
    bound(ledger.mentioned, MAX_MENTIONED)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
