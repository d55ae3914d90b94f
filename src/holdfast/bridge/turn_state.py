"""Whether a turn is under way, as an agent's transcript shows it: no hook tells that a user interrupted one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_position import Position
from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.agents.transcript_entries import Entry


class TurnState(StrEnum):
    OVER = "over"
    INTERRUPTED = "interrupted"
    """Its user ended it."""
    MODEL = "model"
    """The model is to speak next."""
    TOOL = "tool"
    """A tool is at work."""


@dataclass(slots=True)
class _Followed:
    position: Position
    state: TurnState | None = None


class TurnStates:
    """Follows the transcripts of sessions; what was read before is not read again."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}

    def read(self, transcript: str) -> TurnState | None:
        """Return what a transcript shows now; None if it cannot be read or shows no turn."""
        followed = self._followed.setdefault(transcript, _Followed(Position()))

        def restart() -> None:
            followed.state = None

        def fold(entry: Entry) -> None:
            followed.state = after(followed.state, entry)

        read = transcripts_of().follow(Path(transcript), followed.position, fold, restart=restart)
        if read is None:
            del self._followed[transcript]
            return None
        followed.position = read.position
        return followed.state

    def forget(self, but: set[str]) -> None:
        """Keep these transcripts alone."""
        self._followed = {path: one for path, one in self._followed.items() if path in but}


def after(state: TurnState | None, entry: Entry) -> TurnState | None:
    """Return the state after an entry; a subagent's entries say nothing of its agent's turn."""
    from holdfast.agents.transcript_entries import Answered, Asked, Called, Ended, Said

    for part in () if entry.is_side else entry.parts:
        match part:
            case Asked() | Answered():
                state = TurnState.MODEL
            case Called():
                state = TurnState.TOOL
            case Said(ends_turn=ends):
                state = TurnState.OVER if ends else TurnState.MODEL
            case Ended(by_user=by_user):
                # How long the turn took may be noted after the interruption.
                state = TurnState.INTERRUPTED if by_user or state is TurnState.INTERRUPTED else TurnState.OVER
    return state
