"""Commands over the daemon's socket: found by name and run; progress and result are written line by line."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.capability import Command, Progress
from holdfast.daemon.readiness import Readiness
from holdfast.daemon.socket import peer_pid, say
from holdfast.daemon.status import daemon_status, health
from holdfast.errors import HoldfastError
from holdfast.files.errors import explain
from holdfast.identity.managed import runs_under_agent
from holdfast.process.alive import ancestors, name_of
from holdfast.text.quoting import in_quotes

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.daemon.daemon import Daemon
    from holdfast.daemon.relays import Relays

logger = logging.getLogger(__name__)


STOP_CALLED = "`holdfast stop` was called"
NOTE_SECONDS = 2.0
"""How long a daemon that was told to stop takes to write that down."""
MAX_NAMES = 8


def own_commands(
    daemon: Daemon, app: App, relays: Relays, readiness: Readiness, caller: int | None
) -> dict[str, Command]:
    """Return the commands about the daemon itself, for the process that gives one."""

    async def stop(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        why = str(args.get("why") or "it was asked to")
        if why == STOP_CALLED:
            try:
                await asyncio.wait_for(app.on_stop(who(caller)), NOTE_SECONDS)
            except (HoldfastError, OSError, TimeoutError) as error:  # stopping must not depend on the store
                logger.warning("who stopped the daemon could not be stored: %s", error)
        asyncio.get_running_loop().call_soon(daemon.stop, why)  # after it was answered
        return {"pid": os.getpid()}

    async def status(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await asyncio.shield(daemon.commands)
        return {**daemon_status(daemon, app, relays.notices()), **await health(app, readiness)}

    own = (Command("stop", stop), Command("status", status, for_agents=True))
    return {one.name: one for one in own}


def who(caller: int | None) -> str:
    """Return who a process is: its name, and those of the processes that started it."""
    names = [name_of(pid) for pid in islice(ancestors(caller), MAX_NAMES)] if caller is not None else []
    under = ", ".join(in_quotes(name, 40) for name in names[1:] if name)
    known = f"process {caller}" if caller is not None else "an unknown process"
    return f"{known}, started under {under}" if under else known


async def serve_command(
    first: dict[str, Any],
    writer: asyncio.StreamWriter,
    home: Path,
    own: Mapping[str, Command],
    others: asyncio.Future[dict[str, Command]],
) -> None:
    """Run the command that a client names: the daemon's `own` at once, `others` once they are there."""
    name, args = str(first.get("name")), first.get("args") or {}
    caller = peer_pid(writer.get_extra_info("socket"))

    @cache
    def is_from_agent() -> bool:
        return caller is not None and runs_under_agent(caller, home)

    if not others.done():
        is_from_agent()  # looked up before any wait: the ancestors of a process that ended cannot be found
    command = own.get(name) or (await asyncio.shield(others)).get(name)
    if (command is None or not command.for_agents) and is_from_agent():
        text = f"The command {name!r} is not for managed agents. Its owner gives it in a terminal."
        return await say(writer, {"ok": False, "code": "E_NOT_YOURS", "message": text})
    if command is None:
        return await say(writer, {"ok": False, "code": "E_NOT_FOUND", "message": f"There is no command {name!r}."})
    return await say(writer, await _answer(command, args, writer))


async def _answer(command: Command, args: dict[str, Any], writer: asyncio.StreamWriter) -> dict[str, Any]:
    loop = asyncio.get_running_loop()

    def progress(share: float, message: str) -> None:
        line = json.dumps({"progress": share, "message": message}).encode() + b"\n"
        loop.call_soon_threadsafe(writer.write, line)

    try:
        return {"ok": True, "result": await command.run(args, progress)}
    except HoldfastError as error:
        return {"ok": False, "code": error.code, "message": str(error)}
    except OSError as error:
        trouble = explain(error)
        return {"ok": False, "code": trouble.code, "message": str(trouble)}
    except Exception as error:
        # Otherwise the connection would close without an answer, which means that the daemon ended.
        logger.exception("the command %r failed", command.name)
        text = f"The command failed unexpectedly ({type(error).__name__}); the daemon's log says more."
        return {"ok": False, "code": "E_INTERNAL", "message": text}
