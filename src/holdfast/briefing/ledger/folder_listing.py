"""A folder of transcripts that can be listed repeatedly at little cost.

Every agent that starts waits for it. So a folder with a thousand files is not looked at file by file each time: its
names are read when it changed, and only new files, the newest, and in turn some of the others are looked at, because an
old conversation may have been continued.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from threading import Lock

from holdfast.agents import TranscriptsPart

IN_TURN = 20
"""Files besides the newest that are checked each time."""
SETTLED_NS = 2_000_000_000
"""A folder that changed more recently may change again without a newer time."""

FileState = tuple[int, int]
"""When a file was changed, in nanoseconds, and its size."""


class FolderListing:
    """The transcripts in one folder, as they were last seen."""

    def __init__(self, transcripts: TranscriptsPart, folder: Path) -> None:
        self._transcripts = transcripts
        self._folder = folder
        self._lock = Lock()
        self._states: dict[str, FileState] = {}
        """By session; those checked longest ago come first."""
        self._newest: list[str] = []
        """The sessions, the last changed first."""
        self._listed: int | None = None
        """The folder's mtime when it was listed; None if that proves nothing."""

    def newest(self, most: int, but: Collection[str] = (), *, thorough: bool = False) -> list[tuple[str, FileState]]:
        """Return the sessions that changed last, except some; a thorough look also finds old ones that continued."""
        with self._lock:
            self._look(most, thorough=thorough)
            wanted = islice((name for name in self._newest if name not in but), most)
            return [(name, self._states[name]) for name in wanted]

    def _look(self, most: int, *, thorough: bool) -> None:
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:  # a project in which no agent has worked has no folder
            self._states, self._newest, self._listed = {}, [], None
            return
        chosen: set[str] = set()
        is_sorted = True
        if thorough or changed != self._listed:
            names = set(self._transcripts.sessions_in(self._folder))
            chosen = names if thorough else names - self._states.keys()
            if not self._states.keys() <= names:
                self._states = {name: state for name, state in self._states.items() if name in names}
                is_sorted = False
            self._listed = changed if time.time_ns() - changed > SETTLED_NS else None
        chosen.update(self._newest[:most], islice(self._states, IN_TURN))
        for name, state in self._looked_at(chosen):
            is_sorted = self._states.pop(name, None) == state and is_sorted
            self._states[name] = state
        if not is_sorted:
            self._newest = sorted(self._states, key=self._states.__getitem__, reverse=True)

    def _looked_at(self, names: Iterable[str]) -> Iterable[tuple[str, FileState]]:
        for name in names:
            try:
                about = self._transcripts.file_of(self._folder, name).stat()
            except OSError:
                continue  # deleted meanwhile
            if stat.S_ISREG(about.st_mode):
                yield name, (about.st_mtime_ns, about.st_size)
