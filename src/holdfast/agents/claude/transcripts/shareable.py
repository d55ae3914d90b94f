"""Lines of a transcript on their way to other machines: without secrets. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_AS_WRITTEN = frozenset(
    {
        "type",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "sessionId",
        "id",
        "tool_use_id",
        "requestId",
        "signature",
        "data",
    }
)
"""Members that are ids, signatures or bytes; a conversation with others cannot be resumed."""


def shareable(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mask secrets. Lines without an id are identified only by their text: with a secret they are not shared."""
    found = ((entry, _masked(dict(entry))) for entry in entries)
    return [shared for entry, shared in found if shared == entry or isinstance(entry.get("uuid"), str)]


def _masked(value: Any, name: str = "") -> Any:
    from holdfast.redaction import MASK, masked  # its patterns take 50 ms to compile

    if isinstance(value, str):
        return value if name in _AS_WRITTEN else masked(value)
    if isinstance(value, list):
        return [_masked(one) for one in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _masked(one, key) for key, one in value.items()}
    if value.get("type") == "thinking" and changed != value:
        return {"type": "text", "text": MASK}  # its signature covers only the whole
    return changed
