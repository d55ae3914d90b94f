"""The hash chain: each thought's hash covers everything stored of it and the hash of its predecessor."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields

from holdfast.reasoning.model import Thought

_FIELDS = tuple(sorted(field.name for field in fields(Thought)))
_sorted_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def genesis(session_id: str) -> str:
    """Return the hash that a session's first thought follows; it differs per session, so no chain fits another."""
    return hashlib.sha256(session_id.encode()).hexdigest()


def seal(prev_hash: str, thought: Thought) -> str:
    """Return the hash of a thought that follows the one with `prev_hash`."""
    text = _sorted_json({name: getattr(thought, name) for name in _FIELDS})
    return hashlib.sha256(f"{prev_hash}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
