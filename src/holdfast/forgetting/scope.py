"""Determines what to forget: one session, or a project under all of its known roots."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path

from holdfast.errors import BadInput
from holdfast.forgetting import queries
from holdfast.forgetting.model import Scope
from holdfast.identity.project import Root, canonical_uri, path_of
from holdfast.store import Tx

MAX_SUGGESTIONS = 5
MAX_SESSIONS = 10_000
MIN_SIMILARITY = 0.7


def project_scope(tx: Tx, what: str, root: Root, teams: Iterable[tuple[str, Path]]) -> Scope | None:
    """Return the scope of a project with every root that shares its key; None if it is unknown.

    A deleted directory has no key any more: then the keys stored with it are used.
    """
    keys = {root.key} - {None}
    path = path_of(root.uri)
    if not keys and path is not None and not path.exists():
        keys |= queries.keys_of(tx, root.uri) - {root.uri}
    roots = {root.uri: root}
    for name in sorted(filter(None, keys)):
        roots[root.uri] = Root(root.uri, name, root.source)
        roots |= {one: Root(one, name, root.source) for one in queries.roots_of(tx, name)}
    members = tuple(name for name, project in teams if _uri(project) in roots)
    if not members and not (set(roots) & known_roots(tx)):
        return None
    return Scope(what, None, tuple(roots.values()), members)


def known_roots(tx: Tx) -> set[str]:
    """Return the URI of every known root."""
    imported = {uri for path in queries.imported_directories(tx) if (uri := _uri(Path(path)))}
    return queries.known(tx) | imported


def suggestions(tx: Tx, what: str, teams: Iterable[tuple[str, Path]]) -> list[str]:
    """Return projects and sessions that an unknown name may have meant, the most similar first."""
    uris = known_roots(tx) | {uri for _, project in teams if (uri := _uri(project))}
    shown = {str(path_of(uri) or uri) for uri in uris}
    similarity = {name: _similarity(what, name) for name in shown}
    if "/" not in what:
        for session_id, title in queries.latest_sessions(tx, MAX_SESSIONS):
            alike = max(_ratio(what, session_id), _ratio(what, title))
            similarity[f"{session_id} ({title[:60]})"] = 1.0 if session_id.startswith(what) else alike
    likely = [name for name, alike in similarity.items() if alike >= MIN_SIMILARITY]
    return sorted(likely, key=lambda name: (-similarity[name], name))[:MAX_SUGGESTIONS]


def _similarity(what: str, known: str) -> float:
    """Return how similar `what` is to the project at `known`: above or inside it, or spelled similarly."""
    wanted, place = Path(what), Path(known)
    if wanted in place.parents or place in wanted.parents:
        return 0.9 if place != place.parent and wanted != wanted.parent else 0.0
    return max(_ratio(what, known), _ratio(wanted.name, place.name) if wanted.name else 0.0)


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one.lower(), other.lower())
    return matcher.ratio() if matcher.quick_ratio() >= MIN_SIMILARITY else 0.0


def _uri(path: Path) -> str | None:
    try:
        return canonical_uri(str(path))
    except BadInput:
        return None


def quoted(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as they appear in stored JSON."""
    return tuple(json.dumps(name, ensure_ascii=False) for name in names)
