"""What `holdfast import`, `find` and `saved` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.errors import BadInput
from holdfast.history.service import History
from holdfast.history.views import found_view, imported_view, saved_view

MOST_RESULTS = 100


class HistoryCommands:
    """The commands of imported history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def commands(self) -> list[Command]:
        """What the command line asks for."""
        return [
            Command("history-import", self.import_transcripts),
            Command("history-remove", self.remove),
            Command("history-find", self.find, for_agents=True),
            Command("saved", self.saved, for_agents=True),
        ]

    async def import_transcripts(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Index the transcripts under `config`, of one `project` or of all."""
        return imported_view(
            await self._history.import_transcripts(Path(_text(args, "config")), _project(args), progress)
        )

    async def remove(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Drop what was imported on this machine, of one `project` or of all."""
        return {"files": await self._history.remove(_project(args))}

    async def find(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Find the conversations in which all words of `query` were said."""
        query, config = _text(args, "query"), Path(_text(args, "config"))
        return found_view(await self._history.find(query, _project(args), _limit(args), progress), config)

    async def saved(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Count what sessions got back in the last week, or ever with `all`."""
        return saved_view(await self._history.saved(ever=bool(args.get("all"))))


def _text(args: dict[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(name, "must be a text")
    return value


def _project(args: dict[str, Any]) -> Path | None:
    value = args.get("project")
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadInput("project", "must be an absolute path")
    return Path(value)


def _limit(args: dict[str, Any]) -> int:
    value = args.get("limit", 10)
    if not isinstance(value, int) or not 1 <= value <= MOST_RESULTS:
        raise BadInput("limit", f"must be 1 to {MOST_RESULTS}")
    return value
