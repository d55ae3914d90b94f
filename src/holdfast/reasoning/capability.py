"""What reasoning offers: thought sessions as tools, resources, a prompt and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.capability import Capability, Command, Life, Loop
from holdfast.reasoning.briefing_source import thoughts
from holdfast.reasoning.service import Reasoning

if TYPE_CHECKING:
    from holdfast.wire.mcp.tools import Offer

INDEX_SECONDS = 10.0


def capability(reasoning: Reasoning) -> Capability:
    def prepare() -> None:
        import holdfast.reasoning.analysis
        import holdfast.redaction.detector
        import holdfast.redaction.names  # noqa: F401 - what is told of thoughts is masked

    def offers() -> list[Offer]:
        from holdfast.reasoning.tools import offer

        return [offer(reasoning)]

    def commands() -> list[Command]:
        from holdfast.reasoning.commands import commands

        return commands(reasoning)

    return Capability(
        name="reasoning",
        service=reasoning,
        offers=offers,
        commands=commands,
        loops=lambda: [Loop("index", reasoning.browser.index, INDEX_SECONDS, first=INDEX_SECONDS)],
        briefing_source=thoughts(reasoning),
        life=Life(prepare=prepare, sweep=reasoning.sweep),
    )
