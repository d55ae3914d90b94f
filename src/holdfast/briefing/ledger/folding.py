"""Folds a transcript's entries into a ledger, one by one. No I/O, and no error whatever an entry contains."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from holdfast.agents import transcript_entries as entries
from holdfast.agents.transcript_entries import Answered, Called, Entry, QueueChange, Refused, TodoChanged, TodoItem
from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger import model
from holdfast.briefing.ledger.actions import of_call
from holdfast.briefing.ledger.error_forms import SCANNED
from holdfast.briefing.ledger.failures import note_result
from holdfast.briefing.ledger.keeping import keep, kept, kept_line
from holdfast.briefing.ledger.model import Call, Commit, Decision, Ledger, Todo, Touched
from holdfast.briefing.ledger.runs import run_of
from holdfast.briefing.ledger.shell_files import files_in

_COMMITTED = re.compile(r"^\[(?:[^\]\n]{1,200}? )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_TAKES_BACK = re.compile(
    r"\bgit\s+(?:checkout\s+(?:\S+\s+)?--\s|restore\s|reset\s+--hard|revert\s|stash(?:\s+push)?\s*$)"
)
_TASK_NUMBER = re.compile(r"#(\d{1,6})")


def fold(ledger: Ledger, entry: Entry) -> None:
    """Add one entry's information to a ledger."""
    if entry.at is not None:
        ledger.started_at = ledger.started_at or entry.at
        ledger.last_at = max(ledger.last_at, entry.at)
        step = entry.at // model.ACTIVE_MS
        if step not in ledger.active[-2:]:
            keep(ledger.active, step, model.MAX_ACTIVE)
    if not entry.is_side:
        _place(ledger, entry)
        ledger.context = entry.context or ledger.context
    for part in entry.parts:
        _add(ledger, entry, part)


def _add(ledger: Ledger, entry: Entry, part: entries.Part) -> None:
    match part:
        case entries.Asked(text):
            _ask(ledger, text)
        case entries.Said(text, ends_turn):
            ledger.last_words = kept(text, model.MAX_WORDS) if text else ledger.last_words
            ledger.spoke = ledger.spoke or bool(text)
            if ends_turn:
                _end_turn(ledger)
        case Called():
            _called(ledger, entry, part)
        case Answered():
            _answered(ledger, part)
        case entries.TodosWritten(todos):
            _write_todos(ledger, todos)
        case TodoChanged():
            _update_todo(ledger, part)
        case entries.Queued(change, text):
            _queue(ledger, change, kept(text, model.MAX_EARLIER))
        case entries.Compacted(tokens):
            ledger.compactions += 1
            ledger.context = tokens or ledger.context
        case entries.Ended():
            _end_turn(ledger)


def _place(ledger: Ledger, entry: Entry) -> None:
    if ledger.cwd is None and entry.cwd:
        ledger.cwd = kept(entry.cwd, model.MAX_PATH)
    if entry.branch not in ("", "HEAD", ledger.branch):  # it also says HEAD if there is no repository
        ledger.branch = kept_line(entry.branch)


def _ask(ledger: Ledger, request: str) -> None:
    ledger.turns += 1
    ledger.unfinished = True
    ledger.spoke, ledger.latest = False, None
    if ledger.first_request is None:
        ledger.first_request = kept(request, model.MAX_REQUEST)
        return
    if ledger.requests:
        ledger.requests[-1] = kept(ledger.requests[-1], model.MAX_EARLIER)
    keep(ledger.requests, kept(request, model.MAX_REQUEST), model.MAX_REQUESTS)


def _queue(ledger: Ledger, change: QueueChange, written: str) -> None:
    """Follow the queue in which the user's input waits until the agent gets it."""
    if change is QueueChange.ADDED:
        keep(ledger.waiting, written, model.MAX_WAITING)
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
    call = Call(kept(part.call_id, model.MAX_LINE), kept_line(part.tool), part.kind, side=entry.is_side)
    if part.kind is CallKind.RUN:
        _read_command(call, part.command, entry.cwd)
    elif part.kind is CallKind.PLAN:
        call.text = kept(part.text, model.MAX_PLAN)
    elif part.kind is CallKind.TODO:
        call.text = kept_line(part.text)
    else:
        call.about = kept_line(part.path, model.MAX_PATH)
        call.swap = " ".join(map(_hash, part.replaced)) if part.replaced else ""
    keep(ledger.calls, call, model.MAX_CALLS)
    if not entry.is_side:
        ledger.unfinished = True
        ledger.latest = of_call(call.kind, call.about or call.text or call.tool, ledger.last_at)


def _read_command(call: Call, command: str, cwd: str) -> None:
    call.about = kept_line(command)
    named = files_in(command, cwd)
    call.shown, call.written, call.removed = (
        [kept_line(path, model.MAX_PATH) for path in paths] for paths in (named.shown, named.written, named.removed)
    )
    # A single word, such as the one after -u, does not show that it is a secret: these come from masked text.
    cleaned = kept(command, model.MAX_COMMAND)
    run = run_of(cleaned)
    call.keys = run.keys
    call.mentioned = [path for path in files_in(cleaned, cwd).mentioned if len(path) <= model.MAX_PATH]
    call.shows, call.hides_exit, call.checks, call.finds = run.shows, run.hides_exit, run.checks, run.finds


def _answered(ledger: Ledger, part: Answered) -> None:
    call = next((one for one in ledger.calls if one.id == part.call_id), None)
    if call is None:
        call = Call(part.call_id, "")
    else:
        ledger.calls.remove(call)
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
    keep(ledger.edits, f"{call.swap} {call.about}", model.MAX_RULED_OUT)


def _ran(ledger: Ledger, call: Call, part: Answered) -> None:
    for path in call.shown:
        _touch(ledger.read, path, ledger.last_at)
    for path in call.removed:
        _remove(ledger, path)
    for path in call.written:
        _touch(ledger.modified, path, ledger.last_at)
    if "commit" in call.about:
        for found in _COMMITTED.finditer(part.text[:SCANNED]):
            keep(ledger.commits, Commit(found[1], kept_line(found[2]), ledger.last_at), model.MAX_COMMITS)
    if _TAKES_BACK.search(call.about):
        _rule_out(ledger, f"taken back with: {call.about}")


def _planned(ledger: Ledger, call: Call, part: Answered) -> None:
    plan = call.text or kept(part.plan, model.MAX_PLAN)
    if plan:
        ledger.plan = plan


def _question_answered(ledger: Ledger, call: Call, part: Answered) -> None:
    for question, said in part.answers[: model.MAX_DECISIONS] or (("", part.text),):
        keep(ledger.decisions, Decision(kept_line(question), kept_line(said)), model.MAX_DECISIONS)


def _made_task(ledger: Ledger, call: Call, part: Answered) -> None:
    named = _TASK_NUMBER.search(part.text)
    if call.text:
        key = kept_line(part.todo_key or (named[1] if named else ""), 20)
        keep(ledger.todos, Todo(call.text, "pending", key), model.MAX_TODOS)


_FINISHED: dict[str, Callable[[Ledger, Call, Answered], None]] = {
    CallKind.RUN: _ran,
    CallKind.PLAN: _planned,
    CallKind.QUESTION: _question_answered,
    CallKind.TODO: _made_task,
}


def _write_todos(ledger: Ledger, todos: Iterable[TodoItem]) -> None:
    written = [Todo(kept_line(one.text), kept_line(one.status, 20)) for one in todos]
    ledger.todos = [todo for todo in written if todo.text][: model.MAX_TODOS]


def _update_todo(ledger: Ledger, part: TodoChanged) -> None:
    status = kept_line(part.status, 20)
    for todo in [one for one in ledger.todos if part.key and one.key == part.key]:
        changed = replace(todo, status=status or todo.status, text=kept_line(part.text) or todo.text)
        place = ledger.todos.index(todo)
        ledger.todos[place : place + 1] = [] if status == "deleted" else [changed]


def _refusal(call: Call, refused: Refused) -> str:
    """Say what was refused, by whom, and why."""
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
    keep(ledger.ruled_out, line, model.MAX_RULED_OUT)


def _touch(files: list[Touched], path: str, at: int, *, created: bool = False) -> None:
    """Move a file to the end of its list and count it."""
    before = _taken(files, path)
    if before is not None:
        created = before.created and not before.removed
    keep(files, Touched(path, before.times + 1 if before else 1, at, created), model.MAX_FILES)


def _remove(ledger: Ledger, path: str) -> None:
    """Note that a file or folder is gone; what was created only to be removed is forgotten."""
    inside = [file.path for file in ledger.modified if file.path == path or file.path.startswith(f"{path}/")]
    ours = [found for one in inside if (found := _taken(ledger.modified, one)) is not None]
    if not ours or any(not file.created for file in ours):
        keep(ledger.modified, Touched(path, 1, ledger.last_at, removed=True), model.MAX_FILES)
    ledger.read = [file for file in ledger.read if file.path != path and not file.path.startswith(f"{path}/")]


def _taken(files: list[Touched], path: str) -> Touched | None:
    """Take a file out of its list."""
    place = next((place for place in range(len(files) - 1, -1, -1) if files[place].path == path), None)
    return None if place is None else files.pop(place)


def _mention(ledger: Ledger, paths: list[str]) -> None:
    known = [one for one in ledger.mentioned if one not in paths] + list(dict.fromkeys(paths))
    ledger.mentioned = known[-model.MAX_MENTIONED :]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
