"""Imported history: indexes agents' transcripts on request, searches them, and counts what was recovered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from errno import EFBIG
from functools import partial
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_entries import TranscriptFile
from holdfast.history import queries
from holdfast.history.model import Found, Imported, Recovery
from holdfast.history.passages import batches
from holdfast.history.search import by_conversation
from holdfast.identity.project import path_of
from holdfast.reasoning.fulltext import terms_of
from holdfast.reasoning.search import SHORT, whole_words
from holdfast.store import Store, Tx

HITS_PER_RESULT = 20
"""How many lines are looked at for each conversation that is shown."""
WEEK_MS = 7 * 24 * 3_600_000

Progress = Callable[[float, str], None]
MAX_TRANSCRIPT_BYTES = 1024 * 1024 * 1024
"""Bytes of a transcript; a longer one is not read, because a file full of holes can have any size."""


class History:
    """The imported history of one store."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store = store
        self._machine = machine

    async def import_transcripts(self, config: Path, project: Path | None, progress: Progress) -> Imported:
        """Index transcripts under `config`, of one project or of all; a repeated import reads only what is new."""
        folder = transcripts_of().folder_name(project) if project else None
        files = await asyncio.to_thread(transcripts_of().found, config, folder)
        directories = {} if project else await self._known_folders()
        if project:
            directories[transcripts_of().folder_name(project)] = str(project)
        total, read = sum(file.size for file in files), 0
        tally: Counter[str] = Counter()
        for file in files:
            progress(read / total if total else 1.0, file.path.name)
            try:
                if file.size > MAX_TRANSCRIPT_BYTES:
                    raise OSError(EFBIG, "more than a transcript can have")
                await self._import_file(file, directories, tally)
            except OSError:  # removed, or another user's: the others are still worth reading
                tally["unreadable"] += 1
            read += file.size
        await self._index(progress)
        progress(1.0, "done")
        return Imported(len(files), tally["files"], tally["passages"], tally["unreadable"], total)

    async def _import_file(self, file: TranscriptFile, directories: dict[str, str], tally: Counter[str]) -> None:
        path = str(file.path)
        known = await self._store.read(lambda tx: queries.known_file(tx, self._machine, path))
        if known is not None and not await asyncio.to_thread(
            transcripts_of().is_same, file.path, known.mark, known.read_to
        ):
            await self._store.write(lambda tx: queries.forget_file(tx, self._machine, path))
            known = None
        read_to = known.read_to if known else 0
        if file.size == read_to:
            return
        root = await asyncio.to_thread(transcripts_of().directory_of, file, directories)
        parts = batches(transcripts_of(), file.path, read_to)
        tally["files"] += 1
        while (batch := await asyncio.to_thread(next, parts, None)) is not None:
            if not await self._store.write(
                partial(queries.keep, machine=self._machine, file=file, root=root, expected=read_to, batch=batch)
            ):
                return  # another import is at it
            tally["passages"] += len(batch.passages)
            read_to = batch.end

    async def _known_folders(self) -> dict[str, str]:
        roots = await self._store.read(queries.known_roots)
        paths = [path for root in roots if (path := path_of(root)) is not None]
        return await asyncio.to_thread(lambda: {transcripts_of().folder_name(path): str(path) for path in paths})

    async def _index(self, progress: Progress) -> None:
        while not await self._store.read(queries.is_indexed):
            progress(1.0, "indexing")
            await self._store.write(queries.index_some)

    async def remove(self, project: Path | None) -> int:
        """Delete what was imported on this machine, of one project or of all; return the number of files."""
        root = str(project) if project else None
        return await self._store.write(lambda tx: queries.forget(tx, self._machine, root))

    async def find(
        self, query: str, project: Path | None, limit: int, progress: Progress, *, newest: bool = False
    ) -> Found:
        """Return the conversations that contain all words of the query, the best or the newest first."""
        terms = terms_of(query)
        if newest and len(terms[-1].text) < SHORT:
            terms = terms_of(whole_words(query))
        root = str(project) if project else None
        await self._index(progress)

        def read(tx: Tx) -> Found:
            hits = queries.hits(tx, self._machine, terms, root, limit * HITS_PER_RESULT, newest=newest)
            return Found(by_conversation(hits, terms, limit), *queries.imported(tx))

        return await self._store.read(read)

    async def imported(self) -> int:
        """Return how many files were imported."""
        return (await self._store.read(queries.imported))[0]

    async def saved(self, *, ever: bool) -> list[Recovery]:
        """Return what was recovered in the last week, or ever."""
        return await self._store.read(lambda tx: queries.recoveries(tx, 0 if ever else tx.now() - WEEK_MS))
