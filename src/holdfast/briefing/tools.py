"""The briefing for agents: the tool `resume`, the resource `holdfast://briefing`, the prompt `briefing`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from holdfast.briefing.model import MAX_BRIEFING_CHARS
from holdfast.briefing.service import Briefings
from holdfast.capability.briefing import Audience
from holdfast.identity.caller import Caller
from holdfast.wire.mcp.tools import Call, Offer, Page, Params, Prompt, Repetition, Resource, Tool

URI = "holdfast://briefing"
NOTHING = "Nothing is known of earlier work in this project."
NO_ROOT = 'Which project this is, is unknown: set it with init {operation: "bind_root", mcpRootUri: …}.'


class ResumeParams(Params):
    """Parameters of `resume`."""

    budget: int | None = Field(None, ge=50, le=2_500, description="Tokens; default 1,200")
    dismiss: str | None = Field(None, description="Session whose work is done or unwanted")


def offer(briefings: Briefings) -> Offer:
    """Return the tool, the resource and the prompt."""

    async def briefing_text(caller: Caller, budget: int | None = None) -> str:
        if caller.root is None:
            return NO_ROOT
        briefing = await briefings.on_request(Audience(caller.root, caller.agent_session, caller.identity), budget)
        return briefing.text[:MAX_BRIEFING_CHARS] or NOTHING

    async def resume(call: Call, params: ResumeParams) -> dict[str, Any]:
        root = call.caller.root
        if params.dismiss is None or root is None:
            return {"briefing": await briefing_text(call.caller, params.budget)}
        dismissed = await briefings.dismiss(root, params.dismiss)
        return {"dismissed": dismissed, "briefing": await briefing_text(call.caller, params.budget)}

    async def read(caller: Caller, values: dict[str, str]) -> str:
        return await briefing_text(caller) + "\n"

    async def listed(caller: Caller, cursor: str | None) -> Page:
        return Page([(URI, "briefing", "Where this project's work stands")])

    return Offer(
        order=10,
        tools=[
            Tool(
                name="resume",
                title="[Briefing] Where the work stands",
                description=(
                    "Continue where the last session left off: what was asked, thought and done before in this project,"
                    " open tasks, files, errors, messages. For when you are asked to continue, or context was lost."
                ),
                params=ResumeParams,
                handler=resume,
                repetition=Repetition.IDEMPOTENT,
                idempotent=True,
                always_load=True,
            )
        ],
        resources=[
            Resource(
                template=URI,
                name="briefing",
                description="Where this project's work stands: what was done, what is next, what waits",
                read=read,
                list=listed,
            )
        ],
        prompts=[
            Prompt(
                name="briefing",
                title="Where this project's work stands",
                description="Puts what was done before, what is next and what waits in front of the agent",
                render=briefing_text,
            )
        ],
    )
