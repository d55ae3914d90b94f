"""Imported history: agents' transcripts indexed on request, searched, and what Holdfast has given back."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from errno import EFBIG
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput
from holdfast.history import files, queries
from holdfast.history.files import Batch, TranscriptFile
from holdfast.history.finding import Hit, grouped
from holdfast.project import path_of
from holdfast.reasoning.search import words_of
from holdfast.store import Row, Store, Tx
from holdfast.teams.agents.project_key import project_key
from holdfast.times import iso

MOST_RESULTS = 100
HITS_PER_RESULT = 20
"""How many lines are looked at for each conversation that is shown."""
WEEK_MS = 7 * 24 * 3_600_000

Progress = Callable[[float, str], None]
Command = Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]


@dataclass(slots=True)
class Tally:
    """What an import did."""

    files: int = 0
    passages: int = 0
    unreadable: int = 0


class History:
    """What was said before, on one store."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store = store
        self._machine = machine

    def commands(self) -> dict[str, Command]:
        """What the command line asks for."""
        return {
            "history-import": self.import_claude,
            "history-remove": self.remove,
            "history-find": self.find,
            "saved": self.saved,
        }

    async def import_claude(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Index transcripts under `config`, of one `project` or of all; repeated, it reads only what is new."""
        config, project = Path(_text(args, "config")), _project(args)
        folder = project_key(project) if project else None
        found = await asyncio.to_thread(files.found, config, folder)
        known = {} if project else await self._known_folders()
        if project:
            known[project_key(project)] = str(project)
        total, read, tally = sum(file.size for file in found), 0, Tally()
        for file in found:
            progress(read / total if total else 1.0, file.path.name)
            try:
                if file.size > files.LARGEST:
                    raise OSError(EFBIG, "more than a transcript can have")
                await self._import_file(file, known, tally)
            except OSError:  # it went away, or belongs to somebody else: the others are still worth reading
                tally.unreadable += 1
            read += file.size
        await self._index(progress)
        progress(1.0, "done")
        return {
            "found": len(found),
            "files": tally.files,
            "passages": tally.passages,
            "unreadable": tally.unreadable,
            "bytes": total,
        }

    async def _import_file(self, file: TranscriptFile, known: dict[str, str], tally: Tally) -> None:
        path = str(file.path)
        row = await self._store.read(lambda tx: queries.known_file(tx, self._machine, path))
        if row is not None and not await asyncio.to_thread(files.is_same, file.path, row["mark"], row["read_to"]):
            await self._store.write(lambda tx: queries.forget_file(tx, self._machine, path))
            row = None
        read_to = row["read_to"] if row else 0
        if file.size == read_to:
            return
        root = await asyncio.to_thread(files.directory_of, files.main_file(file), known)
        parts = files.batches(file.path, read_to)
        tally.files += 1
        while (batch := await asyncio.to_thread(_next, parts)) is not None:
            if not await self._store.write(_keeping(self._machine, file, root, read_to, batch)):
                return  # another import is at it
            tally.passages += len(batch.passages)
            read_to = batch.end

    async def _known_folders(self) -> dict[str, str]:
        roots = await self._store.read(queries.known_roots)
        paths = [path for root in roots if (path := path_of(root)) is not None]
        return await asyncio.to_thread(lambda: {project_key(path): str(path) for path in paths})

    async def _index(self, progress: Progress) -> None:
        while await self._store.write(queries.index_some):
            progress(1.0, "indexing")

    async def remove(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Drop what was imported on this machine, of one `project` or of all."""
        project = _project(args)
        root = str(project) if project else None
        return {"files": await self._store.write(lambda tx: queries.forget(tx, self._machine, root))}

    async def find(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """The conversations in which all words of `query` were said, best first."""
        words, project, config = words_of(_text(args, "query")), _project(args), Path(_text(args, "config"))
        limit, root = _limit(args), str(project) if project else None
        await self._index(progress)

        def read(tx: Tx) -> tuple[list[Row], Row]:
            return queries.hits(tx, words, root, limit * HITS_PER_RESULT), queries.imported(tx)

        rows, imported = await self._store.read(read)
        hits = [self._hit(row) for row in rows]
        return {
            "results": grouped(hits, words, limit, config),
            "files": imported["files"],
            "imported_at": iso(imported["at"]) if imported["files"] else None,
        }

    def _hit(self, row: Row) -> Hit:
        elsewhere = row["machine"] != self._machine
        return Hit(row["session_id"], row["root"], row["role"], row["content"], row["at"], row["path"], elsewhere)

    async def saved(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """What sessions got back, by project: in the last week, or ever with `all`."""

        def read(tx: Tx) -> list[Row]:
            return queries.recoveries(tx, 0 if args.get("all") else tx.now() - WEEK_MS)

        return {"projects": _by_project(await self._store.read(read))}


def _by_project(rows: list[Row]) -> list[dict[str, Any]]:
    projects: dict[str, list[Row]] = {}
    for row in rows:
        projects.setdefault(row["root"], []).append(row)
    counted = [
        {
            "project": str(path_of(root) or root),
            "times": len(found),
            "after": dict(Counter(row["occasion"] for row in found).most_common()),
            "what": dict(Counter(kind for row in found for kind in json.loads(row["what"])).most_common()),
            "last": iso(max(row["at"] for row in found)),
        }
        for root, found in projects.items()
    ]
    return sorted(counted, key=lambda one: (-one["times"], one["project"]))


def _keeping(machine: str, file: TranscriptFile, root: str, expected: int, batch: Batch) -> Callable[[Tx], bool]:
    def write(tx: Tx) -> bool:
        return queries.keep(
            tx, machine, file, root, expected, passages=batch.passages, read_to=batch.end, mark=batch.mark
        )

    return write


def _next(parts: Iterator[Batch]) -> Batch | None:
    return next(parts, None)


def _text(args: dict[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(name, "must be a text")
    return value


def _project(args: dict[str, Any]) -> Path | None:
    value = args.get("project")
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadInput("project", "must be an absolute path")
    return Path(value)


def _limit(args: dict[str, Any]) -> int:
    value = args.get("limit", 10)
    if not isinstance(value, int) or not 1 <= value <= MOST_RESULTS:
        raise BadInput("limit", f"must be 1 to {MOST_RESULTS}")
    return value
