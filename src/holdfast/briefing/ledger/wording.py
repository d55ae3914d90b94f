"""A ledger as the lines of a briefing: what was asked first, then what was done; stored text is quoted as data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Call, Failure, Ledger, Todo, Touched
from holdfast.briefing.model import BYTES_PER_TOKEN, TOKENS, Occasion
from holdfast.capability.briefing import Item, Rank
from holdfast.text.quoting import named, quoted

LAST_REQUEST = 700
FIRST_REQUEST = 350
EARLIER_REQUEST = 75
EARLIER_SPACE = 1_000
"""Bytes for all the requests between the first and the last."""
SHORT_REQUEST = 200
FILES_SPACE = 1_600
"""Bytes for one list of files; what does not fit is named by folder, and what is left then is counted."""
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
REMOVED = "\0"
"""Follows the path of a file that is gone, until it is told: no path has one."""
FRAME = 260
"""Bytes that are left to what stands around the items."""
WORDY = ("words", "failed", "plan", "ruled out", "decided", "commits", "first", "request", "todos", "requests", "read")
"""Kinds in the order in which they are shortened."""
OFFERED = frozenset({"request", "first", "unfinished", "unread", "todos", "modified", "meanwhile", "commits"})
"""What an offer at a plain start tells; the rest is there for whoever takes it up."""

OUTCOME = frozenset({"words", "failed"})
"""What came of the last request; told with an offer, too."""


def items(ledger: Ledger, project: Path | None, occasion: Occasion) -> list[Item]:
    """What a ledger has to tell on an occasion, the most needed first. A resumed conversation knows it all itself."""
    if ledger.is_empty or occasion is Occasion.RESUME:
        return []
    if occasion is Occasion.CLEAR:
        return [Item("request", Rank.TASK, f"Asked last before: {quoted(ledger.latest_request or '', 120)}")]
    told = [
        *_requests(ledger),
        *_ending(ledger, project, occasion),
        *_next(ledger),
        *_work(ledger, project),
        *_choices(ledger),
    ]
    if occasion is Occasion.STARTUP:
        told = [item for item in told if item.kind in OFFERED or item.kind in OUTCOME]
    return _within_budget(told, occasion)


def _within_budget(told: list[Item], occasion: Occasion) -> list[Item]:
    """Where all of it would be too much, what says the least in the most words is shortened first."""
    space = TOKENS[occasion] * BYTES_PER_TOKEN - FRAME
    for kind in WORDY:
        if sum(_size(item.line) + 1 for item in told) <= space:
            break
        told = [_brief(item) if item.kind == kind else item for item in told]
    return told


def _name(text: str, limit: int) -> str:
    """A name or a path: as it is where it is one plain word, else quoted."""
    told = quoted(text, limit)[1:-1]
    return named(told, limit) if told else told


def _brief(item: Item) -> Item:
    return item if item.shorter is None else Item(item.kind, item.rank, item.shorter, item.more)


def _requests(ledger: Ledger) -> list[Item]:
    found: list[Item] = []
    last, first = ledger.latest_request, ledger.first_request
    if last is not None:
        found.append(
            Item(
                "request",
                Rank.TASK,
                f"The user asked last: {quoted(last, LAST_REQUEST)}",
                shorter=f"The user asked last: {quoted(last, SHORT_REQUEST)}",
            )
        )
    if first is not None and ledger.requests:
        found.append(
            Item(
                "first",
                Rank.TASK + 1,
                f"The user asked first: {quoted(first, FIRST_REQUEST)}",
                shorter=f"The user asked first: {quoted(first, SHORT_REQUEST // 2)}",
            )
        )
    between = [quoted(text, EARLIER_REQUEST) for text in reversed(ledger.requests[:-1])]
    if between:
        # The latest are chosen first, and told in the order in which they were asked.
        whole, few = (list(reversed(_within(between, space))) for space in (EARLIER_SPACE, EARLIER_SPACE // 3))
        found.append(
            Item(
                "requests",
                Rank.TASK + 2,
                f"Between them: {_counted(whole, len(between), '; ')}",
                shorter=f"Between them: {_counted(few, len(between), '; ')}",
            )
        )
    return found


def _ending(ledger: Ledger, project: Path | None, occasion: Occasion) -> list[Item]:
    """What the session was in when its transcript ended; a compaction ends nothing."""
    if occasion is Occasion.COMPACT:
        return []
    found: list[Item] = []
    if ledger.unfinished:
        running = [call for call in ledger.calls if not call.side][-2:]
        doing = ", ".join(_call(call, project, ledger.cwd) for call in running)
        text = "That turn has no end" + (f"; it was in: {doing}" if doing else "")
        found.append(Item("unfinished", Rank.TASK + 3, text))
    unread = [quoted(text, EARLIER_REQUEST) for text in ledger.waiting if text]
    if unread:
        found.append(Item("unread", Rank.TASK + 4, f"Typed after that, and not read by the agent: {'; '.join(unread)}"))
    return found


def _next(ledger: Ledger) -> list[Item]:
    found: list[Item] = []
    open_ones = sorted((todo for todo in ledger.todos if todo.status != "completed"), key=_not_begun)
    if open_ones:
        done = len(ledger.todos) - len(open_ones)
        state = f"Todos: {done} of {len(ledger.todos)} done"
        listed = [_todo(todo) for todo in open_ones]
        found.append(
            Item(
                "todos",
                Rank.NEXT,
                f"{state}; open: {_counted(listed[: 2 * LISTED], len(listed), ', ')}",
                shorter=f"{state}; open: {_counted(listed[:2], len(listed), ', ')}",
            )
        )
    if ledger.plan:
        found.append(
            Item(
                "plan", Rank.NEXT + 1, f"Plan: {quoted(ledger.plan, PLAN)}", shorter=f"Plan: {quoted(ledger.plan, 120)}"
            )
        )
    return found


def _work(ledger: Ledger, project: Path | None) -> list[Item]:
    found: list[Item] = []
    places = _prefixes(project, ledger.cwd)
    own, others = changed_files(ledger)
    modified, meanwhile = ([_file(file, places) for file in reversed(files)] for files in (own, others))
    if modified:
        found.append(_files("modified", Rank.MODIFIED, "Files modified", modified))
    if meanwhile:
        found.append(_files("meanwhile", Rank.MODIFIED + 1, "Changed meanwhile, by others or by hand", meanwhile))
    met = [error.name for error in reversed(ledger.errors) if error.sources]
    if met:
        listed = _within(met, ERRORS_SPACE)
        found.append(Item("errors", Rank.FAILED, f"Errors met: {_counted(listed, len(met), ', ')}"))
    failures = [failure for failure in reversed(ledger.failed) if not failure.mended]
    if failures:
        found.append(
            Item(
                "failed",
                Rank.FAILED + 1,
                f"Failed, and not repeated with success: {_failures(failures[:FAILURES], len(failures))}",
                shorter=f"Failed, and not repeated with success: {_failures(failures[:1], len(failures))}",
            )
        )
    changed = {file.path for file in own}
    read = [_relative(file.path, places) for file in reversed(ledger.read) if file.path not in changed]
    if read:
        found.append(_files("read", Rank.READ, "Files read" + (" besides" if modified else ""), read))
    return found


def _choices(ledger: Ledger) -> list[Item]:
    found: list[Item] = []
    if ledger.decisions:
        given = [
            f"{quoted(one.question, SAID)} {quoted(one.answer, SAID)}" if one.question else quoted(one.answer, SAID)
            for one in reversed(ledger.decisions)
        ]
        found.append(_list_item("decided", Rank.DECIDED, "The user answered", given))
    if ledger.ruled_out:
        refused = [quoted(one, SAID) for one in reversed(ledger.ruled_out)]
        found.append(_list_item("ruled out", Rank.DECIDED + 1, "Ruled out", refused))
    if ledger.commits:
        made = [f"{commit.hash} {quoted(commit.subject, 70)}" for commit in reversed(ledger.commits)]
        found.append(_list_item("commits", Rank.DECIDED + 2, "Commits", made))
    if ledger.last_words:
        found.append(
            Item(
                "words",
                Rank.DECIDED + 3,
                f"The agent said last: {quoted(ledger.last_words, WORDS)}",
                shorter=f"The agent said last: {quoted(ledger.last_words, WORDS // 3)}",
            )
        )
    return found


def _list_item(kind: str, rank: int, what: str, texts: Sequence[str]) -> Item:
    return Item(
        kind,
        rank,
        f"{what}: {_counted(texts[:LISTED], len(texts), '; ')}",
        shorter=f"{what}: {_counted(texts[:1], len(texts), '; ')}",
    )


def _files(kind: str, rank: int, what: str, paths: Sequence[str]) -> Item:
    """One line of files: the latest in full, older ones by folder, the rest as a number."""
    whole = _within(map(_path, paths), FILES_SPACE)
    text = f"{what} ({len(paths)}): {', '.join(whole)}"
    space, untold = FOLDERS_SPACE, 0
    for folder, names in _by_folder(paths[len(whole) :]).items():
        if space >= 0:
            told = f"; in {_path(folder)}/: {_counted(_within(map(_path, names), FOLDER_SPACE), len(names), ', ')}"
            space -= _size(told)
        if space >= 0:
            text += told
        else:
            untold += len(names)
    text += f"; and {untold} more" if untold else ""
    few = _within(map(_path, paths), SHORT_FILES_SPACE)
    return Item(kind, rank, text, shorter=f"{what} ({len(paths)}): {_counted(few, len(paths), ', ')}")


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(folder if slash else ".", []).append(name)
    return folders


def _path(path: str) -> str:
    """A path, or a part of one, in a list: on one line, without markup and without what separates paths."""
    return _name(path.removesuffix(REMOVED), 300).replace(", ", ",") + (" (removed)" if path.endswith(REMOVED) else "")


def _file(file: Touched, places: Iterable[str]) -> str:
    return _relative(file.path, places) + (REMOVED if file.removed else "")


def _prefixes(project: Path | None, cwd: str | None) -> list[str]:
    """What need not be said of a path."""
    return [str(base).rstrip(os.sep) + os.sep for base in (project, cwd) if base]


def _relative(path: str, prefixes: Iterable[str]) -> str:
    """A path as short as it is still found."""
    for prefix in prefixes:
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return path


def _failures(failures: Sequence[Failure], total: int) -> str:
    told = []
    for one in failures:
        said = f" {quoted(one.line, SAID)}" if one.line else ""
        told.append(f"{quoted(one.command, COMMAND)} ({one.error}){said}")
    return _counted(told, total, "; ")


def _call(call: Call, project: Path | None, cwd: str | None) -> str:
    tool = _name(call.tool, TOOL)
    if not call.about:
        return tool
    if call.kind == CallKind.RUN:
        return f"{tool} {quoted(call.about, COMMAND)}"
    path = _relative(call.about, _prefixes(project, cwd))
    # What a file is called says more than where it begins.
    return f"{tool} {quoted(path if len(path) <= COMMAND else f'…{path[1 - COMMAND :]}', COMMAND)}"


def _todo(todo: Todo) -> str:
    return quoted(todo.text, SAID) + (" (in progress)" if todo.status == "in_progress" else "")


def _not_begun(todo: Todo) -> bool:
    return todo.status != "in_progress"


def _within(texts: Iterable[str], space: int, separator: str = ", ") -> list[str]:
    """As many of the first texts as fit a space in bytes."""
    chosen: list[str] = []
    for text in texts:
        space -= _size(text + separator)
        if space < 0:
            break
        chosen.append(text)
    return chosen


def _counted(listed: Sequence[str], total: int, separator: str) -> str:
    """The texts, and how many more there are."""
    more = total - len(listed)
    return separator.join([*listed, *([f"and {more} more"] if more else [])])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
