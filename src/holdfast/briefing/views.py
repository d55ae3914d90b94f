"""Briefings as JSON, for routes and commands."""

from __future__ import annotations

from typing import Any

from holdfast.briefing.model import tokens
from holdfast.briefing.service import Briefing


def briefing_view(briefing: Briefing) -> dict[str, Any]:
    """Return a briefing's text and parts, without members that are empty."""
    items = ({"kind": item.kind, "text": item.text, "more": item.more} for item in briefing.items)
    return {
        "project": briefing.project,
        "occasion": briefing.occasion.value,
        **({"recovered": briefing.recovered} if briefing.recovered else {}),
        "tokens": tokens(briefing.text),
        "items": [{name: value for name, value in item.items() if value is not None} for item in items],
        "text": briefing.text,
    }
