"""Where everything is wired together: services on one store, and what they offer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.config import Settings
from holdfast.connections.service import Connections
from holdfast.errors import BadInput
from holdfast.project import Root, RootSource, locate
from holdfast.reasoning.checks import chain_check
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store
from holdfast.store.backup import backup
from holdfast.store.verify import verify

if TYPE_CHECKING:
    from holdfast.wire.links import Links
    from holdfast.wire.server import Wire

Progress = Callable[[float, str], None]
Command = Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class App:
    """The services of one open store."""

    store: Store
    settings: Settings
    connections: Connections
    reasoning: Reasoning

    def commands(self) -> dict[str, Command]:
        """What the command line asks of an open store, whether a daemon has it open or the command itself."""
        return {
            "backup": self._backup,
            "verify": self._verify,
            "forget": self._forget,
            "pause": self._pause,
            "unpause": self._unpause,
        }

    async def index(self) -> None:
        """Make what was recorded lately findable."""
        await self.reasoning.library.index()

    async def sweep(self) -> None:
        """The regular clean-up: archive what is old, drop what is past keeping."""
        await self.reasoning.sweep()

    async def _backup(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        report = await backup(self.store, Path(args["file"]), progress, replace=bool(args.get("replace")))
        return {"file": str(report.path), "bytes": report.size, "rows": sum(report.rows.values())}

    async def _verify(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        report = await verify(self.store, {"thoughts": chain_check}, progress)
        return {
            "ok": report.ok,
            "checked": report.checked,
            "complete": report.complete,
            "problems": [asdict(problem) for problem in report.problems],
        }

    async def _forget(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        what = args.get("what")
        if not isinstance(what, str) or not what:
            raise BadInput("what", "must be a session id or a project's path or URI")
        if "/" in what:
            return await self.reasoning.forget_project(_project(what))
        return await self.reasoning.forget_session(what)

    async def _pause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("project"))
        await self.reasoning.pause(root)
        return {"project": root.uri, "paused": True}

    async def _unpause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("project"))
        await self.reasoning.unpause(root)
        return {"project": root.uri, "paused": False}


def _project(text: Any) -> Root:
    if not isinstance(text, str):
        raise BadInput("project", "must be a path or a URI")
    return locate(text, RootSource.ARGUMENT)


def build(store: Store, settings: Settings, daemon: str) -> App:
    """The services on an open store."""
    connections = Connections(store, daemon)
    reasoning = Reasoning(
        store,
        connections,
        auto_resume_ms=settings.auto_resume_ms,
        archive_after_ms=settings.archive_after_ms,
    )
    return App(store, settings, connections, reasoning)


def build_wire(app: App, links: Links) -> Wire:
    """The MCP side. Imports the SDK, which takes a second: hooks are served before this."""
    from holdfast.reasoning import tools as reasoning_tools
    from holdfast.wire.catalog import Catalog
    from holdfast.wire.server import Wire

    return Wire(Catalog([reasoning_tools.offer(app.reasoning)]), app.connections, links)
