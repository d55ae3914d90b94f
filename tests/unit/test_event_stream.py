"""What the newest events are asked for besides streams."""

from __future__ import annotations

from typing import cast

from holdfast.store import Store
from holdfast.store.events import Event
from holdfast.wire.http.event_stream import EventStreams


def _streams(*kinds: str, first: int = 11) -> EventStreams:
    streams = EventStreams(cast(Store, None))
    streams.on_events([Event(seq, 0, kind, "", {}) for seq, kind in enumerate(kinds, first)])
    return streams


def test_events_of_some_kinds_are_passed_over() -> None:
    streams = _streams("bridge.queued", "reasoning.thought_added", "reasoning.thought_added")
    assert streams.last_other(13, ("reasoning.",)) == 11
    assert streams.last_other(13, ("teams.",)) == 13
    assert streams.last_other(12, ("teams.",)) == 12


def test_an_event_that_is_not_known_counts_as_one_of_another_kind() -> None:
    assert _streams("reasoning.thought_added").last_other(11, ("reasoning.",)) == 10
    assert _streams().last_other(7, ("reasoning.",)) == 7
