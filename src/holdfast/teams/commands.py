"""Commands of `holdfast teams`, `holdfast approve` and `holdfast deny`: the owner's, over the daemon's socket."""

from __future__ import annotations

from typing import Any

from holdfast.capability import Command, Progress
from holdfast.errors import Conflict, NotFound
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.senders import OWNER, OWNERS_KEY
from holdfast.store.calls import CallKey
from holdfast.teams import views
from holdfast.teams.service import Teams
from holdfast.text.quoting import quoted

MIN_ID = 4
"""Characters of an id that can be enough to identify an ask."""
MAX_LISTED = 1000
COMMAND_LINE = Caller(Transport.HTTP, Era.MODERN, None, principal=OWNERS_KEY)
"""Who asks on the command line: the owner."""


def commands(teams: Teams) -> list[Command]:
    """What the command line asks for."""

    async def figures(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.figures_view(await teams.figures())

    async def status(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.status_view(await teams.status(args.get("team")))

    async def asks(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.asks_view(await teams.open_asks())

    async def ask(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        key = CallKey.of("command line", args["key"], "teams-ask", args)
        ask_id = await teams.ask(
            COMMAND_LINE,
            args["team"],
            args["question"],
            from_team=args.get("from"),
            thread=args.get("thread"),
            temporary=bool(args.get("temporary")),
            key=key,
        )
        return {"askId": ask_id}

    async def wait(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        async def tell(seconds: float, text: str) -> None:
            progress(0.0, text)

        return views.ask_view(await teams.wait(await whole_id(args["id"]), int(args["timeout"]), tell))

    async def cancel(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.ask_view(await teams.cancel(await whole_id(args["id"])))

    async def whole_id(given: str) -> str:
        """Return the full id of an ask, given its beginning; an ask that is not done takes precedence."""
        if len(given) >= MIN_ID and (alike := await teams.beginning_with(given)):
            if len(alike) > 1:
                raise Conflict(f"More than one ask begins with {quoted(given, 64)}.", recovery="Give more of its id.")
            return alike[0]
        try:
            return (await teams.find(given)).id
        except NotFound as error:
            raise NotFound(error.message, recovery="`holdfast teams status` lists those that are not done.") from error

    async def conversations(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.conversations_view(await teams.conversations(args.get("team"), MAX_LISTED))

    async def history(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.history_view(await named(teams.history, args, int(args["limit"])), most=None)

    async def reset(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return views.conversation_view(await named(teams.reset, args))

    async def named(act: Any, args: dict[str, Any], *more: Any) -> Any:
        """Act on the conversation that the call names; without a sender it is the owner's."""
        await teams.refresh()
        try:
            return await act(teams.asker(OWNER, args.get("from")), args["team"], args.get("thread"), *more)
        except NotFound as error:
            raise NotFound(error.message, recovery="`holdfast teams history` lists them.") from error

    async def found(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        return views.found_view(await teams.found())

    async def adopt(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await teams.refresh()
        made = await teams.adopt(args["team"], args["session"], args.get("from"), args.get("thread"))
        return views.conversation_view(made)

    async def permissions(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"requests": [views.permission_view(one) for one in await teams.permissions.open()]}

    async def permit(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        decided = await teams.permissions.decide(args["id"], bool(args["allowed"]), args.get("digest"))
        return {"id": decided.id, "team": decided.team, "tool": decided.tool}

    return [
        Command("teams-stats", figures, for_agents=True),
        Command("teams-status", status, for_agents=True),
        Command("teams-asks", asks),
        Command("teams-ask", ask),
        Command("teams-wait", wait),
        Command("teams-cancel", cancel),
        Command("teams-conversations", conversations),
        Command("teams-history", history),
        Command("teams-reset", reset),
        Command("teams-found", found),
        Command("teams-adopt", adopt),
        Command("permissions", permissions),
        Command("permit", permit),
    ]
