"""Protocols as JSON and back: a run keeps the protocol it began with."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from holdfast.protocol.model import Check, CheckKind, ChecklistItem, Gate, Level, Part, Protocol, Transition
from holdfast.text import bounded_json


def dumps(protocol: Protocol) -> str:
    """Serialize a protocol as JSON; equal protocols give equal texts."""
    return json.dumps(asdict(protocol), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=64)
def loads(text: str) -> Protocol:
    """Parse what `dumps` wrote."""
    data = bounded_json.loads(text)
    return Protocol(
        data["name"],
        tuple(Transition(step["source"], step["target"], _gate(step["gate"])) for step in data["transitions"]),
        tuple(
            ChecklistItem(Part(item["part"]), Level(item["level"]), item["step"], item["gate"], item["evidence"])
            for item in data["checklist"]
        ),
    )


def _gate(data: dict[str, Any]) -> Gate:
    checks = tuple(
        Check(CheckKind(one["kind"]), tuple(one["paths"]), tuple(one["names"]), tuple(one["argv"]), one["timeout_s"])
        for one in data["checks"]
    )
    level = Level(data["level"])
    return Gate(data["name"], level, data["blocking"], checks, tuple(data["recovery"]), data["title"])
