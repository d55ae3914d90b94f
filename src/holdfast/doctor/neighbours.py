"""Checks what else speaks to an agent at the start of a session, and what it costs. Files are read, nothing is run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.agents.registry import AGENTS
from holdfast.agents.settings import NeighbourKind
from holdfast.briefing.model import tokens
from holdfast.doctor.findings import Finding, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.files import read_bounded
from holdfast.setup.json_file import SettingsUnusable

MAX_FILE_BYTES = 1024 * 1024
MAX_NAMED = 5
OFFER = (
    "If both tell the agent the same, let Holdfast only offer (at most 400 tokens): HOLDFAST_BRIEFING=offer where"
    ' the agent runs, or mode = "offer" in .holdfast/briefing.toml of a project.'
)


def check_neighbours(around: Surroundings) -> Iterator[Finding]:
    """Name them for every agent whose settings reveal them."""
    for agent in AGENTS.values():
        if agent.settings is None:
            continue
        try:
            found = agent.settings().neighbours(around.env, around.project)
        except SettingsUnusable:  # told with the hooks
            found = None
        if found is None:
            continue
        for one in found:
            if one.kind is NeighbourKind.MEMORY:
                yield ok(f"{one.name}: about {_cost(one.files):,} tokens at every start ({_named(one.files)})")
        others = [one for one in found if one.kind is not NeighbourKind.MEMORY]
        for one in others[:MAX_NAMED]:
            yield note(f"{one.where}: {one.name} may add to every start; how many tokens is unknown", OFFER)
        if len(others) > MAX_NAMED:
            yield note(f"{len(others) - MAX_NAMED} more hooks, plugins or servers of that kind")
        if not found:
            yield ok(f"nothing else speaks to {agent.title} at the start of a session")


def _cost(files: Sequence[Path]) -> int:
    cost = 0
    for path in files:
        with contextlib.suppress(OSError, ValueError):  # unreadable for us, and so for the agent, or far too long
            cost += tokens(read_bounded(path, MAX_FILE_BYTES).decode("utf-8", "replace"))
    return cost


def _named(files: Sequence[Path]) -> str:
    more = f" and {len(files) - 2} more" if len(files) > 2 else ""
    return ", ".join(map(str, files[:2])) + more
