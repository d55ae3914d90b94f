"""Protocols as JSON and back: a run keeps the protocol it began with."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import Check, CheckKind, ChecklistItem, Gate, Level, Part, Protocol, Transition
from holdfast.protocol.project.settings import Enforcement
from holdfast.text import bounded_json


def dumps(protocol: Protocol, begun: BegunWith | None = None) -> str:
    """Serialize a protocol, and what a run begins with, as JSON; equal ones give equal texts."""
    whole = asdict(protocol) | ({} if begun is None else {"begun_with": asdict(begun)})
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class BegunWith:
    """What held when a run began, and does not follow later edits; an older run has none of it."""

    enforcement: Enforcement | None = None
    configured: bool = False
    """Whether the project had a protocol.toml."""
    worktree: str = ""
    """Digest of the worktree."""


@lru_cache(maxsize=64)
def begun_with(text: str) -> BegunWith:
    """Return what held when a run began. The text may come from another machine."""
    found = bounded_json.loads(text).get("begun_with")
    known = found if isinstance(found, dict) else {}
    enforcement, worktree = known.get("enforcement"), known.get("worktree")
    return BegunWith(
        Enforcement(enforcement) if enforcement in tuple(Enforcement) else None,
        known.get("configured") is True,
        worktree if isinstance(worktree, str) else "",
    )


@lru_cache(maxsize=64)
def loads(text: str) -> Protocol:
    """Parse what `dumps` wrote."""
    data = bounded_json.loads(text)
    return Protocol(
        data["name"],
        tuple(Transition(step["source"], step["target"], _gate(step["gate"])) for step in data["transitions"]),
        tuple(
            ChecklistItem(Part(item["part"]), Level(item["level"]), item["step"], item["gate"])
            for item in data["checklist"]
        ),
    )


def _gate(data: dict[str, Any]) -> Gate:
    checks = tuple(
        Check(
            CheckKind(one["kind"]),
            tuple(one["paths"]),
            tuple(one["names"]),
            tuple(one["argv"]),
            one["timeout_s"],
            one.get("optional", False),
        )
        for one in data["checks"]
    )
    level = Level(data["level"])
    return Gate(data["name"], level, data["blocking"], checks, tuple(data["recovery"]))
