"""Transcripts on this machine's disk, by project, in the folders where the agent keeps them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum, auto
from heapq import nlargest
from itertools import islice
from pathlib import Path

from holdfast.agents import TranscriptsPart
from holdfast.briefing.ledger import queries
from holdfast.briefing.ledger.folder_listing import FolderListing
from holdfast.briefing.ledger.model import is_session_id
from holdfast.briefing.ledger.queries import KnownTranscript
from holdfast.identity import forgotten_queries
from holdfast.identity.project import Root, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

NEWEST, NEWEST_THOROUGHLY = 30, 200
"""Files of a folder that are considered, when an agent starts and when somebody asks."""
MAX_MANAGED = 10_000
MAX_CONFIGS = 4
MAX_FOLDERS = 64
"""Folders whose files are remembered."""
MAX_PROJECT_FOLDERS = 2_000
"""Folders that are listed for all projects."""

ENDING_MS = 60_000
UNKNOWN = KnownTranscript("", None, None, None, None, None, is_managed=False)


@dataclass(frozen=True, slots=True)
class FoundTranscript:
    """A transcript in a folder."""

    session_id: str
    path: Path
    changed_ns: int
    size: int
    root: Root | None
    """The project whose folder it is in; another project can have the same one."""

    @property
    def changed_ms(self) -> int:
        """When it was last written to, in milliseconds."""
        return self.changed_ns // 1_000_000


class Standing(Enum):
    """What to do with a transcript in a project's folder."""

    PASSED_OVER = auto()
    """It is not a person's, is from a forgotten time or another project, or its hooks reported all of it."""
    SEEN_UNREAD = auto()
    """A hook reported its session, and it has grown since it was read."""
    READ = auto()
    """No hook reported its session, and all of it was read."""
    UNREAD = auto()
    """No hook reported its session, and it was not read to its end."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The newest transcripts in some projects' folders, and what is known about them."""

    found: Sequence[FoundTranscript]
    looked_at: frozenset[str]
    """The folders."""
    known: Mapping[str, KnownTranscript] = field(default_factory=dict)
    forgotten: Mapping[str, int] = field(default_factory=dict)
    """Until when each project was forgotten."""

    def about(self, one: FoundTranscript) -> KnownTranscript:
        """Return what is known of one."""
        return self.known.get(one.session_id, UNKNOWN)


def with_known(tx: Tx, roots: Sequence[Root], folders: Folders) -> Folders:
    """Return the transcripts in these projects' folders, with what is known about them."""
    known = queries.known_transcripts(tx, [one.session_id for one in folders.found])
    forgotten = {root.uri: forgotten_queries.until(tx, root) for root in roots}
    return replace(folders, known={one.session_id: one for one in known}, forgotten=forgotten)


def standing_of(one: FoundTranscript, known: KnownTranscript, machine: str, forgotten: int) -> Standing:
    """Decide what to do with a transcript on this machine, in a project that was forgotten until a time."""
    is_read = known.read_to == one.size
    if one.root is None or known.is_managed or one.changed_ms <= forgotten:
        return Standing.PASSED_OVER
    if known.seen_in is not None:
        # What is written within a moment of an orderly end says nothing of the work.
        goes_on = known.ended_at is None or known.read_to is None or one.changed_ms > known.ended_at + ENDING_MS
        return Standing.SEEN_UNREAD if known.machine == machine and goes_on and not is_read else Standing.PASSED_OVER
    if known.ledger_root not in (None, one.root.uri):
        return Standing.PASSED_OVER
    return Standing.READ if is_read else Standing.UNREAD


class TranscriptsOnDisk:
    """The folders of an agent's transcripts. Its methods read the disk: call them in a thread."""

    def __init__(self, transcripts: TranscriptsPart, env: Mapping[str, str]) -> None:
        self._transcripts = transcripts
        self._configs: dict[Path, None] = {transcripts.config_directory(env): None}
        """Where the agent keeps them: by this process's environment, and as sessions showed, the latest last."""
        self._folders: dict[Path, FolderListing] = {}
        self._managed: frozenset[str] = frozenset()
        """Sessions that are known to be teams' conversations: they do not hide those of people."""

    def learn(self, transcript: Path) -> None:
        """Remember the configuration directory of a session's transcript."""
        config = self._transcripts.config_of(transcript)
        if config is not None:
            self.learn_config(config)

    def learn_config(self, config: Path) -> None:
        """Remember a configuration directory; only the latest are searched, and always this process's own."""
        if config not in self._configs:
            others = list(self._configs)
            self._configs = dict.fromkeys([others[0], *others[1:][2 - MAX_CONFIGS :], config])

    def learn_managed(self, session_ids: Iterable[str]) -> None:
        """Remember sessions that are teams' conversations."""
        new = self._managed.union(session_ids)
        if len(new) <= MAX_MANAGED:
            self._managed = new

    @property
    def configs(self) -> tuple[Path, ...]:
        """The configuration directories."""
        return tuple(self._configs)

    def folders_of(self, root: Root, known: Path | None = None) -> list[Path]:
        """Return the folders for a project's transcripts, `known` first; they need not exist."""
        project = path_of(root.uri)
        folders = [] if known is None else [known]
        if project is not None:
            name = self._transcripts.folder_name(project)
            folders += [self._transcripts.folder(config) / name for config in self._configs]
        return list(dict.fromkeys(folders))

    def newest(self, roots: Sequence[Root], known: Path | None) -> Folders:
        """Return the newest transcripts of some projects, the newest first; `known` is a folder of the first one."""
        return self._of(roots, known, thorough=False)

    def newest_thoroughly(self, roots: Sequence[Root], known: Path | None) -> Folders:
        """Do the same by looking at every file, so that no old conversation is missed that was continued."""
        return self._of(roots, known, thorough=True)

    def _of(self, roots: Sequence[Root], known: Path | None, *, thorough: bool) -> Folders:
        most = NEWEST_THOROUGHLY if thorough else NEWEST
        found: list[FoundTranscript] = []
        folders = [
            (root, folder)
            for number, root in enumerate(roots)
            for folder in self.folders_of(root, known if number == 0 else None)
        ]
        for root, folder in folders:
            found += self._newest(folder, root, most, thorough=thorough)
        newest = _once(sorted(found, key=lambda one: one.changed_ns, reverse=True))
        return Folders(newest, frozenset(str(folder) for _, folder in folders))

    def file_of(self, folder: Path, session_id: str) -> Path:
        """Return the transcript of a session in a folder."""
        return self._transcripts.file_of(folder, session_id)

    def running(self, transcripts: Iterable[str]) -> frozenset[str]:
        """Return the sessions that a process has open, as the agent lists them where these transcripts are."""
        configs = {self._transcripts.config_of(Path(one)) for one in transcripts}
        return frozenset().union(*(self._transcripts.running(one) for one in configs if one is not None))

    def of_all_projects(self, most: int, since_ms: int) -> list[FoundTranscript]:
        """Return the newest transcripts of all projects that were written to since a time, the newest first."""
        found: list[FoundTranscript] = []
        for folder in self._project_folders():
            found += (one for one in self._newest(folder, None, most, thorough=True) if one.changed_ms >= since_ms)
        return _once(nlargest(most, found, key=lambda one: one.changed_ns))

    def _project_folders(self) -> Iterator[Path]:
        for config in self.configs:
            try:
                with os.scandir(self._transcripts.folder(config)) as listed:
                    yield from (Path(one.path) for one in islice(listed, MAX_PROJECT_FOLDERS) if one.is_dir())
            except OSError:
                continue  # the agent never worked with this configuration

    def _newest(self, folder: Path, root: Root | None, most: int, *, thorough: bool) -> Iterator[FoundTranscript]:
        listing = self._folders.pop(folder, None) or FolderListing(self._transcripts, folder)
        while len(self._folders) >= MAX_FOLDERS:
            self._folders.pop(next(iter(self._folders), folder), None)
        self._folders[folder] = listing
        for name, (changed, size) in listing.newest(most, self._managed, thorough=thorough):
            if is_session_id(name):
                yield FoundTranscript(name, self._transcripts.file_of(folder, name), changed, size, root)


def _once(found: Iterable[FoundTranscript]) -> list[FoundTranscript]:
    """Keep one transcript per session: a directory can have two names, and a moved project two directories."""
    return list({one.session_id: one for one in reversed(list(found))}.values())[::-1]
