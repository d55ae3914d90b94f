"""What `holdfast import`, `find` and `saved` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.errors import BadInput
from holdfast.history.service import History
from holdfast.history.views import found_view, imported_view, saved_view

MAX_RESULTS = 100


def commands(history: History) -> list[Command]:
    async def import_transcripts(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        config = Path(_text(args, "config"))
        return imported_view(await history.import_transcripts(config, _project(args), progress))

    async def remove(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"files": await history.remove(_project(args))}

    async def find(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        query, config = _text(args, "query"), Path(_text(args, "config"))
        return found_view(await history.find(query, _project(args), _limit(args), progress), config)

    async def imported(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"files": await history.imported()}

    async def saved(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return saved_view(await history.saved(ever=bool(args.get("all"))))

    return [
        Command("history-import", import_transcripts),
        Command("history-remove", remove),
        Command("history-find", find, for_agents=True),
        Command("history-imported", imported),
        Command("saved", saved, for_agents=True),
    ]


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
    if not isinstance(value, int) or not 1 <= value <= MAX_RESULTS:
        raise BadInput("limit", f"must be 1 to {MAX_RESULTS}")
    return value
