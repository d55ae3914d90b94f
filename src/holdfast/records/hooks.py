"""Shows the user one line at the start of a session while a data loss is not acknowledged."""

from __future__ import annotations

import asyncio

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind
from holdfast.store.loss_notices import LossNotices
from holdfast.text.quoting import in_quotes

MAX_LINE_CHARS = 300


async def loss_notice(losses: LossNotices, event: HookEvent) -> HookAnswer | None:
    """Return the line for the user, not for the agent: no agent can restore lost data."""
    if event.kind is not HookKind.STARTED:
        return None
    if not losses.exist:  # the usual case, without a change of threads
        return None
    waiting = await asyncio.to_thread(losses.open)
    if not waiting:
        return None
    lost = [line for notice in waiting for line in notice.lost]
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    text = (
        f"Holdfast lost data ({waiting[0].at}): {in_quotes(lost[0], MAX_LINE_CHARS)}{more}."
        " `holdfast status` shows all of it, `holdfast acknowledge-loss` ends this notice."
    )
    return HookAnswer(notice=text)
