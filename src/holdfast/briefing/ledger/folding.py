"""One entry after the other becomes part of a ledger. No I/O, no model, and no error whatever the entry holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from holdfast.briefing.ledger import entries
from holdfast.briefing.ledger.entries import Entry, text_member
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

READS = frozenset({"Read", "NotebookRead"})
MODIFIES = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_SERVER_READS = re.compile(r"mcp__.*__read_(?:text_|media_)?file")
_MODIFYING = re.compile(r"(?:write|edit|create|create_text)_file|replace_\w+|insert_(?:before|after)_\w+")
"""How a tool of a server is called that changes a file."""
_PATHS = ("file_path", "notebook_path", "path", "relative_path")

_COMMITTED = re.compile(r"^\[(?:[^\]\n]{1,200}? )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_TAKES_BACK = re.compile(
    r"\bgit\s+(?:checkout\s+(?:\S+\s+)?--\s|restore\s|reset\s+--hard|revert\s|stash(?:\s+push)?\s*$)"
)
_USER_SAID = re.compile(r"the user said:\s*([\s\S]+)")
_REFUSED = ("The user doesn't want to", "Permission to use ", "Permission for this ")
_TASK_NUMBER = re.compile(r"#(\d{1,6})")

ENDS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
"""Why a message ended with which a turn ends too."""


def fold(ledger: Ledger, entry: Entry) -> None:
    """Add what one entry tells."""
    at = entries.timestamp(entry)
    if at is not None:
        ledger.started_at = ledger.started_at or at
        ledger.last_at = max(ledger.last_at, at)
    kind, side = entry.get("type"), entries.is_side(entry)
    if kind == "user":
        _place(ledger, entry, side=side)
        _from_user(ledger, entry, side=side)
    elif kind == "assistant":
        _place(ledger, entry, side=side)
        _from_agent(ledger, entry, side=side)
    elif kind == "attachment":
        request = entries.queued_request(entry)
        if request is not None:
            _ask(ledger, request)
    elif kind == "queue-operation":
        _queue(ledger, text_member(entry, "operation"), text_member(entry, "content"))
    elif kind == "system" and not side:
        if entry.get("subtype") == "compact_boundary":
            ledger.compactions += 1
        elif entry.get("subtype") in ("turn_duration", "stop_hook_summary"):
            _end_turn(ledger)


def _place(ledger: Ledger, entry: Entry, *, side: bool) -> None:
    if side:
        return
    if ledger.cwd is None and (cwd := text_member(entry, "cwd")):
        ledger.cwd = kept(cwd, MAX_PATH)
    branch = text_member(entry, "gitBranch")
    if branch not in ("", "HEAD", ledger.branch):  # HEAD it says where there is no repository, too
        ledger.branch = kept_line(branch)


def _from_user(ledger: Ledger, entry: Entry, *, side: bool) -> None:
    request = entries.request_in(entry)
    if request is not None:
        _ask(ledger, request)
        return
    if not side and entries.is_interruption(entry):
        _end_turn(ledger)
    for block in entries.blocks(entry):
        if block.get("type") == "tool_result":
            _answered(ledger, entry, block)


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


def _queue(ledger: Ledger, operation: str, words: str) -> None:
    """What the user types stands in a queue until the agent gets it."""
    written = "" if entries.HARNESS.match(words) else kept(words, MAX_EARLIER)
    if operation == "enqueue":
        ledger.waiting.append(written)
        bound(ledger.waiting, MAX_WAITING)
    elif operation == "remove" and written in ledger.waiting:
        ledger.waiting.remove(written)
    elif operation == "popAll":
        ledger.waiting.clear()
    else:
        del ledger.waiting[:1]


def _end_turn(ledger: Ledger) -> None:
    ledger.unfinished = False
    ledger.calls = [call for call in ledger.calls if call.side]


def _from_agent(ledger: Ledger, entry: Entry, *, side: bool) -> None:
    failed = entry.get("isApiErrorMessage") is True
    message = entry.get("message")
    reason = text_member(message, "stop_reason") or None
    for block in entries.blocks(entry):
        if block.get("type") == "tool_use":
            _called(ledger, entry, block, side=side)
            if not side:
                ledger.unfinished = True
        elif block.get("type") == "text" and not side and not failed:
            words = text_member(block, "text").strip()
            if words:
                ledger.last_words = kept(words, MAX_WORDS)
            # Some versions do not say why; then the last word is taken for the end until a tool is called.
            if reason is None or reason in ENDS:
                _end_turn(ledger)


def _called(ledger: Ledger, entry: Entry, block: Entry, *, side: bool) -> None:
    tool, arguments = text_member(block, "name"), block.get("input")
    if not isinstance(arguments, dict):
        return
    call = Call(kept(text_member(block, "id"), MAX_LINE), kept_line(tool), side=side)
    if tool == "Bash":
        _read_command(call, text_member(arguments, "command"), text_member(entry, "cwd"))
    elif tool == "TodoWrite":
        _write_todos(ledger, arguments.get("todos"))
    elif tool == "ExitPlanMode":
        call.text = kept(text_member(arguments, "plan"), MAX_PLAN)
    elif tool == "TaskCreate":
        call.text = kept_line(text_member(arguments, "subject"))
    elif tool == "TaskUpdate":
        _update_todo(ledger, arguments)
    else:
        call.about = kept_line(_path_in(arguments), MAX_PATH)
        if tool == "Edit":
            call.swap = f"{_hash(arguments.get('old_string'))} {_hash(arguments.get('new_string'))}"
    ledger.calls.append(call)
    bound(ledger.calls, MAX_CALLS)


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


def _answered(ledger: Ledger, entry: Entry, block: Entry) -> None:
    name = text_member(block, "tool_use_id")
    call = next((one for one in ledger.calls if one.id == name), None)
    if call is not None:
        ledger.calls.remove(call)
    call = call or Call(name, "")
    text, failed = entries.text_of(block), block.get("is_error") is True
    if failed and _is_refused(entry, text):
        _rule_out(ledger, _refusal(entry, call, text))
        return
    note_result(ledger, call, text, failed=failed)
    _mention(ledger, call.mentioned)
    if failed:
        return
    finish = _FINISHED.get(call.tool)
    if finish is not None:
        finish(ledger, call, entry, text)
    elif call.about and (call.tool in READS or _SERVER_READS.fullmatch(call.tool)):
        _touch(ledger.read, call.about, ledger.last_at)
    elif call.about and (call.tool in MODIFIES or _is_modifying(call.tool)):
        _modified(ledger, call, created=text_member(entry.get("toolUseResult"), "type") == "create")


def _is_modifying(tool: str) -> bool:
    server, _, name = tool.rpartition("__")
    return server.startswith("mcp__") and _MODIFYING.fullmatch(name) is not None


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


def _ran(ledger: Ledger, call: Call, entry: Entry, text: str) -> None:
    for path in call.shown:
        _touch(ledger.read, path, ledger.last_at)
    for path in call.removed:
        _remove(ledger, path)
    for path in call.written:
        _touch(ledger.modified, path, ledger.last_at)
    if "commit" in call.about:
        for found in _COMMITTED.finditer(text[:SCANNED]):
            ledger.commits.append(Commit(found[1], kept_line(found[2])))
        bound(ledger.commits, MAX_COMMITS)
    if _TAKES_BACK.search(call.about):
        _rule_out(ledger, f"taken back with: {call.about}")


def _planned(ledger: Ledger, call: Call, entry: Entry, text: str) -> None:
    answer = entry.get("toolUseResult")
    plan = call.text or kept(text_member(answer, "plan"), MAX_PLAN)
    if plan:
        ledger.plan = plan


def _was_told(ledger: Ledger, call: Call, entry: Entry, text: str) -> None:
    answer = entry.get("toolUseResult")
    given = answer.get("answers") if isinstance(answer, dict) else None
    if isinstance(given, dict) and given:
        for question, said in list(given.items())[:MAX_DECISIONS]:
            ledger.decisions.append(Decision(kept_line(str(question)), kept_line(str(said))))
    else:
        ledger.decisions.append(Decision("", kept_line(text)))
    bound(ledger.decisions, MAX_DECISIONS)


def _made_task(ledger: Ledger, call: Call, entry: Entry, text: str) -> None:
    answer = entry.get("toolUseResult")
    number = text_member(answer.get("task") if isinstance(answer, dict) else None, "id")
    named = _TASK_NUMBER.search(text)
    if call.text:
        ledger.todos.append(Todo(call.text, "pending", kept_line(number or (named[1] if named else ""), 20)))
        bound(ledger.todos, MAX_TODOS)


_FINISHED: dict[str, Callable[[Ledger, Call, Entry, str], None]] = {
    "Bash": _ran,
    "ExitPlanMode": _planned,
    "AskUserQuestion": _was_told,
    "TaskCreate": _made_task,
}


def _write_todos(ledger: Ledger, todos: Any) -> None:
    if not isinstance(todos, list):
        return
    written = [Todo(kept_line(text_member(one, "content")), kept_line(text_member(one, "status"), 20)) for one in todos]
    ledger.todos = [todo for todo in written if todo.text][:MAX_TODOS]


def _update_todo(ledger: Ledger, arguments: Entry) -> None:
    key, status = text_member(arguments, "taskId"), kept_line(text_member(arguments, "status"), 20)
    for todo in [one for one in ledger.todos if key and one.key == key]:
        changed = replace(
            todo, status=status or todo.status, text=kept_line(text_member(arguments, "subject")) or todo.text
        )
        place = ledger.todos.index(todo)
        ledger.todos[place : place + 1] = [] if status == "deleted" else [changed]


def _is_refused(entry: Entry, text: str) -> bool:
    return text_member(entry.get("permissionDecision"), "decision") == "reject" or text.startswith(_REFUSED)


def _refusal(entry: Entry, call: Call, text: str) -> str:
    """What was refused, by whom, and the user's own words where there are some."""
    source = text_member(entry.get("permissionDecision"), "source")
    what = f"{call.tool or 'a tool'} {call.about}".strip()
    said = _USER_SAID.search(text)
    if said:
        return f"the user refused {what}, saying: {said[1]}"
    if text.startswith(_REFUSED[0]) or source.startswith("user"):
        reason = "" if text.startswith(_REFUSED) else f": {text}"
        return f"the user refused {what}{reason}"
    return f"{what} was denied: {text}"


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


def _path_in(arguments: Entry) -> str:
    return next((found for name in _PATHS if (found := text_member(arguments, name))), "")


def _hash(text: Any) -> str:
    return hashlib.sha256(str(text).encode("utf-8", "replace")).hexdigest()[:12]


def folded(ledger: Ledger, found: Iterable[Entry]) -> Ledger:
    """A ledger with all of these entries."""
    for entry in found:
        fold(ledger, entry)
    return ledger
