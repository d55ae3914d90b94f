"""Deletes the rows of a project in every table, except reasoning sessions, which are deleted one by one.

Each step can be repeated: an interrupted removal starts again at the first one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.bridge.queries import retention as bridge_upkeep
from holdfast.bridge.queries import tasks as task_queries
from holdfast.briefing.queries import agent_sessions as briefing_queries
from holdfast.forgetting import queries
from holdfast.forgetting.model import Scope
from holdfast.forgetting.scope import quoted
from holdfast.history import queries as history_queries
from holdfast.protocol import queries as protocol_queries
from holdfast.store import Store
from holdfast.store.copying import Progress
from holdfast.teams.queries import conversations as team_queries


async def remove(store: Store, scope: Scope, progress: Progress) -> Counter[str]:
    """Delete a project's rows outside reasoning; returns the counts by their names in the report."""
    # Calls first: the project's callers are found through rows that are deleted later.
    await _remove_calls(store, scope, lambda share: progress(0.4 * share, "answers of calls"))
    removed: Counter[str] = Counter()
    for root in scope.roots:
        removed["runs"] += await store.write(partial(protocol_queries.forget, root=root.uri, project=root.key))
        await store.write(partial(task_queries.forget_project, root=root))
        removed["agent_sessions"] += await store.write(partial(briefing_queries.forget, root=root))
    for team in scope.teams:
        removed["messages"] += await store.write(partial(bridge_upkeep.forget, target=team))
        removed["asks"] += await store.write(partial(team_queries.forget, team=team))
    for path in sorted(scope.paths):
        removed["history_files"] += await store.write(partial(history_queries.forget_project, root=path))
        await store.write(partial(queries.remove_orphaned_lines, folder=transcripts_of().folder_name(Path(path))))
    for uri in sorted(scope.uris):
        await store.write(partial(queries.clear_connection_roots, uri=uri))
    await _empty_events(store, scope, lambda share: progress(0.4 + 0.6 * share, "events"))
    return removed


# -- rows that no column assigns to a project --------------------------------------------------------------------------


async def _remove_calls(store: Store, scope: Scope, progress: Callable[[float], None]) -> None:
    """Delete stored results of the project's callers, and those that name the project, its sessions or its runs."""
    callers, runs = await store.read(lambda tx: (queries.callers(tx, scope), queries.runs(tx, scope)))
    mentions = _mentions(scope, runs)
    total = max(1, await store.read(queries.count_calls))
    last, seen = queries.StoredCall(), 0
    while calls := await store.read(partial(queries.calls_after, last=last)):
        gone = [call for call in calls if call.caller in callers or mentions.search(call.result)]
        await store.write(partial(queries.drop_calls, calls=gone))
        last = calls[-1]
        seen += len(calls)
        progress(min(1.0, seen / total))


def _mentions(scope: Scope, runs: set[str]) -> re.Pattern[str]:
    """Return a pattern for what ties a result to the project: its path or URI, its team as target, its runs."""
    names = scope.names()
    parts = [names.pattern] if names is not None else []
    if scope.teams:
        teams = "|".join(map(re.escape, quoted(scope.teams)))
        parts.append(f'"(?:target|team|to|from|to_team|from_team)": ?(?:{teams})')
    if runs:
        parts.append(f'"session_id": ?(?:{"|".join(map(re.escape, quoted(sorted(runs))))})')
    return re.compile("|".join(parts) or "(?!)")


async def _empty_events(store: Store, scope: Scope, progress: Callable[[float], None]) -> None:
    """Empty every event that names a root or the project's team; its number stays."""
    newest = max(1, await store.read(queries.newest_event))
    last = 0
    while events := await store.read(partial(queries.events_after, seq=last)):
        gone = [event.seq for event in events if _mentions_scope(event, scope)]
        await store.write(partial(queries.empty_events, numbers=gone))
        last = events[-1].seq
        progress(min(1.0, last / newest))


def _mentions_scope(event: queries.StoredEvent, scope: Scope) -> bool:
    if event.subject in scope.uris or any(uri in event.data for uri in quoted(scope.uris)):
        return True
    named = event.subject in scope.teams or any(name in event.data for name in quoted(scope.teams))
    return named and event.kind.startswith(("bridge.", "teams."))
