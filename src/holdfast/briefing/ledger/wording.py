"""A ledger as lines of a briefing: what was asked, then what was done; stored text is quoted as data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Call, Failure, Ledger, Todo, Touched
from holdfast.briefing.model import BYTES_PER_TOKEN, TOKENS, Occasion, size
from holdfast.capability.briefing import Item, Rank
from holdfast.text.quoting import named, quoted

LAST_REQUEST = 700
FIRST_REQUEST = 350
EARLIER_REQUEST = 75
EARLIER_SPACE = 1_000
"""Bytes for all requests between the first and the last."""
SHORT_REQUEST = 200
FILES_SPACE = 1_600
"""Bytes for one list of files; what does not fit is named by folder, and the rest is counted."""
FOLDERS_SPACE = 350
FOLDER_SPACE = 120
SHORT_FILES_SPACE = 350
ERRORS_SPACE = 420
FAILURES = 4
COMMAND = 90
TOOL = 60
SAID = 110
PLAN = 350
WORDS = 260
LISTED = 4
ERRORS = "Errors met: "
REMOVED = "\0"
"""Marks the path of a file that is gone, until it is written out: no path contains it."""
FRAME = 260
"""Bytes reserved for the text around the items."""
WORDY = ("words", "failed", "plan", "ruled out", "decided", "commits", "first", "request", "todos", "requests", "read")
"""Kinds in the order in which they are shortened."""
OFFERED = frozenset({"request", "first", "unfinished", "unread", "todos", "modified", "meanwhile", "commits"})
"""What a briefing after a normal end contains, besides the outcome of the last request."""
OUTCOME = frozenset({"words", "failed"})
"""The outcome of the last request."""
_FILES = re.compile(r"\bFiles (?:modified|read(?: besides)?) \(\d{1,6}\): ")


def items(ledger: Ledger, project: Path | None, occasion: Occasion) -> list[Item]:
    """Return a ledger's items for an occasion, the most important first; a resumed session needs none."""
    if ledger.is_empty or occasion is Occasion.RESUME:
        return []
    if occasion is Occasion.CLEAR:
        return [Item("request", Rank.TASK, f"Asked last before: {quoted(ledger.latest_request or '', 120)}")]
    entries = [
        *_requests(ledger),
        *_ending(ledger, project, occasion),
        *_next(ledger),
        *_work(ledger, project),
        *_choices(ledger),
    ]
    if occasion is Occasion.STARTUP:
        entries = [item for item in entries if item.kind in OFFERED or item.kind in OUTCOME]
    return _within_budget(entries, occasion)


def _within_budget(entries: list[Item], occasion: Occasion) -> list[Item]:
    """Shorten items until all of them fit, beginning with those that say the least in the most words."""
    space = TOKENS[occasion] * BYTES_PER_TOKEN - FRAME
    for kind in WORDY:
        if sum(size(item.line) + 1 for item in entries) <= space:
            break
        entries = [
            Item(item.kind, item.rank, item.shorter, item.more) if item.kind == kind and item.shorter else item
            for item in entries
        ]
    return entries


def _item(kind: str, rank: int, what: str, text: str, shorter: str) -> Item:
    return Item(kind, rank, f"{what}: {text}", shorter=f"{what}: {shorter}")


def _list_item(kind: str, rank: int, what: str, texts: Sequence[str]) -> Item:
    """Return an item that lists the first texts and counts the others."""
    return _item(kind, rank, what, _counted(texts[:LISTED], len(texts), "; "), _counted(texts[:1], len(texts), "; "))


def _quoting_item(kind: str, rank: int, what: str, text: str, limit: int, short: int) -> Item:
    return _item(kind, rank, what, quoted(text, limit), quoted(text, short))


def _requests(ledger: Ledger) -> list[Item]:
    items: list[Item] = []
    last, first = ledger.latest_request, ledger.first_request
    if last is not None:
        items.append(_quoting_item("request", Rank.TASK, "The user asked last", last, LAST_REQUEST, SHORT_REQUEST))
    if first is not None and ledger.requests:
        what, short = "The user asked first", SHORT_REQUEST // 2
        items.append(_quoting_item("first", Rank.TASK + 1, what, first, FIRST_REQUEST, short))
    between = [quoted(text, EARLIER_REQUEST) for text in reversed(ledger.requests[:-1])]
    if between:
        # The latest are chosen first, and told in the order in which they were asked.
        whole, few = (
            _counted(list(reversed(_within(between, space))), len(between), "; ")
            for space in (EARLIER_SPACE, EARLIER_SPACE // 3)
        )
        items.append(_item("requests", Rank.TASK + 2, "Between them", whole, few))
    return items


def _ending(ledger: Ledger, project: Path | None, occasion: Occasion) -> list[Item]:
    """Return what was going on when the transcript ended; a compaction ends nothing."""
    if occasion is Occasion.COMPACT:
        return []
    items: list[Item] = []
    if ledger.unfinished:
        running = [call for call in ledger.calls if not call.side][-2:]
        doing = ", ".join(_call(call, project, ledger.cwd) for call in running)
        text = f"That turn has no end; it was in: {doing}" if doing else "That turn has no end"
        items.append(Item("unfinished", Rank.TASK + 3, text))
    unread = [quoted(text, EARLIER_REQUEST) for text in ledger.waiting if text]
    if unread:
        items.append(Item("unread", Rank.TASK + 4, f"Typed after that, and not read by the agent: {'; '.join(unread)}"))
    return items


def _next(ledger: Ledger) -> list[Item]:
    items: list[Item] = []
    open_ones = sorted((todo for todo in ledger.todos if todo.status != "completed"), key=_not_begun)
    if open_ones:
        state = f"Todos: {len(ledger.todos) - len(open_ones)} of {len(ledger.todos)} done; open"
        listed = [_todo(todo) for todo in open_ones]
        whole, few = (_counted(listed[:most], len(listed), ", ") for most in (2 * LISTED, 2))
        items.append(_item("todos", Rank.NEXT, state, whole, few))
    if ledger.plan:
        items.append(_quoting_item("plan", Rank.NEXT + 1, "Plan", ledger.plan, PLAN, 120))
    return items


def _work(ledger: Ledger, project: Path | None) -> list[Item]:
    items: list[Item] = []
    own, others = changed_files(ledger)
    near = _directories(project, ledger.cwd)
    modified, meanwhile = ([_file(file, near) for file in reversed(files)] for files in (own, others))
    if modified:
        items.append(_files("modified", Rank.MODIFIED, "Files modified", modified))
    if meanwhile:
        items.append(_files("meanwhile", Rank.MODIFIED + 1, "Changed meanwhile, by others or by hand", meanwhile))
    names = [error.name for error in reversed(ledger.errors) if error.sources]
    if names:
        listed = _within(names, ERRORS_SPACE)
        items.append(Item("errors", Rank.FAILED, f"{ERRORS}{_counted(listed, len(names), ', ')}"))
    failures = [failure for failure in reversed(ledger.failed) if not failure.mended]
    if failures:
        whole, few = (
            _counted([_failure(one) for one in failures[:most]], len(failures), "; ") for most in (FAILURES, 1)
        )
        items.append(_item("failed", Rank.FAILED + 1, "Failed, and not repeated with success", whole, few))
    changed = {file.path for file in own}
    read = [_inside(file.path, near) for file in reversed(ledger.read) if file.path not in changed]
    if read:
        items.append(_files("read", Rank.READ, "Files read" + (" besides" if modified else ""), read))
    return items


def _choices(ledger: Ledger) -> list[Item]:
    items: list[Item] = []
    if ledger.decisions:
        answers = [
            f"{quoted(one.question, SAID)} {quoted(one.answer, SAID)}" if one.question else quoted(one.answer, SAID)
            for one in reversed(ledger.decisions)
        ]
        items.append(_list_item("decided", Rank.DECIDED, "The user answered", answers))
    if ledger.ruled_out:
        refused = [quoted(one, SAID) for one in reversed(ledger.ruled_out)]
        items.append(_list_item("ruled out", Rank.DECIDED + 1, "Ruled out", refused))
    if ledger.commits:
        commits = [f"{commit.hash} {quoted(commit.subject, 70)}" for commit in reversed(ledger.commits)]
        items.append(_list_item("commits", Rank.DECIDED + 2, "Commits", commits))
    if ledger.last_words:
        what, words = "The agent said last", ledger.last_words
        items.append(_quoting_item("words", Rank.DECIDED + 3, what, words, WORDS, WORDS // 3))
    return items


def _files(kind: str, rank: int, what: str, paths: Sequence[str]) -> Item:
    """Return a line of files: the latest in full, older ones by folder, the rest as a number."""
    whole = _within(map(_path, paths), FILES_SPACE)
    text = ", ".join(whole)
    space, untold = FOLDERS_SPACE, 0
    for folder, names in _by_folder(paths[len(whole) :]).items():
        if space >= 0:
            told = f"; in {_path(folder)}/: {_counted(_within(map(_path, names), FOLDER_SPACE), len(names), ', ')}"
            space -= size(told)
        if space >= 0:
            text += told
        else:
            untold += len(names)
    text += f"; and {untold} more" if untold else ""
    few = _within(whole, SHORT_FILES_SPACE)
    return _item(kind, rank, f"{what} ({len(paths)})", text, _counted(few, len(paths), ", "))


def paths_in(told: str) -> Iterator[str]:
    """Yield the paths that the lists of files in a briefing name, as `told_paths` writes them."""
    for line in told.splitlines():
        found = _FILES.search(line)
        if found is None:
            continue
        for number, part in enumerate(line[found.end() :].split("; ")):
            folder = ""
            if number and part.startswith("in "):
                folder, _, part = part.removeprefix("in ").partition("/: ")
            prefix = f"{folder}/" if folder not in ("", ".") else ""
            yield from (prefix + name.removesuffix(" (removed)") for name in part.split(", "))


def told_paths(paths: Iterable[str], *bases: Path | str | None) -> list[str]:
    """Return paths as the lists of files in a briefing name them: relative to the first base that contains them."""
    near = _directories(*bases)
    return [_path(_inside(path, near)) for path in paths]


def _name(text: str, limit: int) -> str:
    """Return a name or a path as it is if it is one plain word, otherwise quoted."""
    inner = quoted(text, limit)[1:-1]
    return named(inner, limit) if inner else inner


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(folder if slash else ".", []).append(name)
    return folders


@lru_cache(1_000)
def _path(path: str) -> str:
    """Return a path, or a part of one, for a list: on one line, without markup and what separates paths."""
    return _name(path.removesuffix(REMOVED), 300).replace(", ", ",") + (" (removed)" if path.endswith(REMOVED) else "")


def _file(file: Touched, near: Sequence[str]) -> str:
    return _inside(file.path, near) + (REMOVED if file.removed else "")


def relative(path: str, *bases: Path | str | None) -> str:
    """Return a path without the first of these directories that it is in."""
    return _inside(path, _directories(*bases))


def _directories(*bases: Path | str | None) -> list[str]:
    return [str(base).rstrip(os.sep) + os.sep for base in bases if base]


def _inside(path: str, directories: Sequence[str]) -> str:
    for one in directories:
        if path.startswith(one):
            return path[len(one) :]
    return path


def _failure(one: Failure) -> str:
    said = f" {quoted(one.line, SAID)}" if one.line else ""
    return f"{quoted(one.command, COMMAND)} ({one.error}){said}"


def _call(call: Call, project: Path | None, cwd: str | None) -> str:
    tool = _name(call.tool, TOOL)
    if not call.about:
        return tool
    if call.kind == CallKind.RUN:
        return f"{tool} {quoted(call.about, COMMAND)}"
    path = relative(call.about, project, cwd)
    # A file's name says more than the beginning of its path.
    return f"{tool} {quoted(path if len(path) <= COMMAND else f'…{path[1 - COMMAND :]}', COMMAND)}"


def _todo(todo: Todo) -> str:
    return quoted(todo.text, SAID) + (" (in progress)" if todo.status == "in_progress" else "")


def _not_begun(todo: Todo) -> bool:
    return todo.status != "in_progress"


def _within(texts: Iterable[str], space: int, separator: str = ", ") -> list[str]:
    """Return as many of the first texts as fit a space in bytes."""
    chosen: list[str] = []
    for text in texts:
        space -= size(text) + len(separator)
        if space < 0:
            break
        chosen.append(text)
    return chosen


def _counted(listed: Sequence[str], total: int, separator: str) -> str:
    """Join the texts, and say how many more there are."""
    more = total - len(listed)
    return separator.join([*listed, *([f"and {more} more"] if more else [])])
