"""What is to be forgotten: one session, or a project under every root and name that it is known by here."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput
from holdfast.project import Root, RootSource, canonical_uri, path_of
from holdfast.store import Tx

ROOTS = (
    ("projects", "root_uri"),
    ("sessions", "root_uri"),
    ("connections", "root_uri"),
    ("connections", "bound_root"),
    ("agent_sessions", "root"),
    ("ledgers", "root"),
    ("recoveries", "root"),
    ("project_tasks", "root"),
    ("protocol_runs", "root"),
    ("protocol_trust", "root"),
    ("protocol_mirror", "root"),
)
"""Every column that holds the URI of a project's root; imported history has paths in its place."""
KEYS = (
    ("projects", "root_uri", "project_key"),
    ("sessions", "root_uri", "project_key"),
    ("agent_sessions", "root", "project_key"),
    ("ledgers", "root", "project_key"),
    ("project_tasks", "root", "project_key"),
    ("protocol_runs", "root", "project"),
)
"""Where a root stands beside the key that all roots of its project share."""
MOST_NAMED = 5
MOST_SESSIONS = 10_000
ALIKE = 0.7


@dataclass(frozen=True, slots=True)
class Scope:
    """What is forgotten; written down before the first row goes, because it cannot be found out afterwards."""

    what: str
    session: str | None = None
    roots: tuple[Root, ...] = ()
    teams: tuple[str, ...] = ()

    @property
    def uris(self) -> frozenset[str]:
        """The URIs of the roots."""
        return frozenset(root.uri for root in self.roots)

    @property
    def paths(self) -> frozenset[str]:
        """The directories of the roots."""
        return frozenset(str(path) for root in self.roots if (path := path_of(root.uri)) is not None)

    def names(self) -> re.Pattern[str] | None:
        """Finds a root by its path or URI in a text; not one whose name only begins alike."""
        spelled = sorted(self.uris | self.paths)
        return re.compile(f"(?:{'|'.join(map(re.escape, spelled))})(?![\\w-]|\\.\\w)") if spelled else None

    def written(self) -> str:
        """The scope as a text."""
        roots = [[root.uri, root.key] for root in self.roots]
        return json.dumps({"what": self.what, "session": self.session, "roots": roots, "teams": list(self.teams)})

    @staticmethod
    def read(text: str) -> Scope:
        """The scope that was written."""
        found: dict[str, Any] = json.loads(text)
        roots = tuple(Root(uri, key, RootSource.ARGUMENT) for uri, key in found["roots"])
        return Scope(found["what"], found["session"], roots, tuple(found["teams"]))


def project_scope(tx: Tx, what: str, root: Root, teams: Mapping[str, Path]) -> Scope | None:
    """A project under every root that shares its key; None where nothing is known of it.

    A directory that is gone has no key any more: then those count that were stored with it.
    """
    keys = {root.key} - {None}
    path = path_of(root.uri)
    if not keys and path is not None and not path.exists():
        for table, column, key in KEYS:
            rows = tx.all(f"SELECT DISTINCT {key} AS key FROM {table} WHERE {column} = :root", root=root.uri)
            keys |= {row["key"] for row in rows} - {None, root.uri}
    roots = {root.uri: root}
    for name in sorted(filter(None, keys)):
        roots[root.uri] = Root(root.uri, name, root.source)
        for table, column, key in KEYS:
            rows = tx.all(f"SELECT DISTINCT {column} AS root FROM {table} WHERE {key} = :key", key=name)
            roots |= {row["root"]: Root(row["root"], name, root.source) for row in rows if row["root"]}
    members = tuple(name for name, project in teams.items() if _uri(project) in roots)
    if not members and not (set(roots) & known_roots(tx)):
        return None
    return Scope(what, None, tuple(roots.values()), members)


def known_roots(tx: Tx) -> set[str]:
    """The URI of every root that anything is known of."""
    found = {
        str(row["root"])
        for table, column in ROOTS
        for row in tx.all(f"SELECT DISTINCT {column} AS root FROM {table} WHERE {column} IS NOT NULL")
    }
    for row in tx.all("SELECT DISTINCT root FROM history_files"):
        if uri := _uri(Path(row["root"])):
            found.add(uri)
    return found


def near(tx: Tx, what: str, teams: Mapping[str, Path]) -> list[str]:
    """What may have been meant by a name that is not known: projects and sessions, the likeliest first."""
    uris = known_roots(tx) | {uri for project in teams.values() if (uri := _uri(project))}
    shown = {str(path_of(uri) or uri) for uri in uris}
    likeness = {name: _likeness(what, name) for name in shown}
    rows = tx.all("SELECT id, title FROM sessions ORDER BY updated_at DESC LIMIT :limit", limit=MOST_SESSIONS)
    if "/" not in what:
        for row in rows:
            alike = max(_ratio(what, row["id"]), _ratio(what, row["title"]))
            likeness[f"{row['id']} ({row['title'][:60]})"] = 1.0 if row["id"].startswith(what) else alike
    likely = [name for name, alike in likeness.items() if alike >= ALIKE]
    return sorted(likely, key=lambda name: (-likeness[name], name))[:MOST_NAMED]


def _likeness(what: str, known: str) -> float:
    """How likely somebody who wrote `what` meant the project at `known`: one around or inside it, or spelled alike."""
    wanted, place = Path(what), Path(known)
    if wanted in place.parents or place in wanted.parents:
        return 0.9 if place != place.parent and wanted != wanted.parent else 0.0
    return max(_ratio(what, known), _ratio(wanted.name, place.name) if wanted.name else 0.0)


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one.lower(), other.lower())
    return matcher.ratio() if matcher.quick_ratio() >= ALIKE else 0.0


def _uri(path: Path) -> str | None:
    try:
        return canonical_uri(str(path))
    except BadInput:
        return None


def quoted(names: Iterable[str]) -> tuple[str, ...]:
    """Names as they stand in stored JSON."""
    return tuple(json.dumps(name, ensure_ascii=False) for name in names)
