"""One line to the user at the start of a session, while a loss is not acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from holdfast.hook_answers import Answer
from holdfast.quoting import in_quotes
from holdfast.store.loss_notices import LossNotices

LONGEST_LINE = 300


class LossHooks:
    """Tells the user, not the agent: no agent can bring back what is lost."""

    def __init__(self, home: Path) -> None:
        self._losses = LossNotices(home)

    async def handle(self, event: str, payload: dict[str, Any]) -> Answer | None:
        """The line, where there is a loss to tell of."""
        if event != "SessionStart":
            return None
        waiting = await asyncio.to_thread(self._losses.open)
        if not waiting:
            return None
        lost = [line for notice in waiting for line in notice.lost]
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        text = (
            f"Holdfast lost data ({waiting[0].at}): {in_quotes(lost[0], LONGEST_LINE)}{more}."
            " `holdfast status` shows all of it, `holdfast acknowledge-loss` ends this notice."
        )
        return {"systemMessage": text}
