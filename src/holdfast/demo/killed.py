"""The demo `killed`: an agent and the daemon are killed, and the next agent is told everything."""

from __future__ import annotations

from typing import Any

from holdfast.demo.screen import INDENT, Screen
from holdfast.demo.stage import Stage
from holdfast.demo.tree import drawn
from holdfast.doctor.mcp_client import StdioClient
from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass

TITLE = "Orders are charged twice"


@dataclass(frozen=True, slots=True)
class Step:
    """A thought that the first agent records."""

    thought: str
    branch: str | None = None
    origin: int | None = None
    revises: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the tool `thought`."""
        arguments = {
            "branchId": self.branch,
            "branchFromThought": self.origin,
            "revisesThought": self.revises,
            "isRevision": True if self.revises else None,
        }
        present = {name: value for name, value in arguments.items() if value is not None}
        return {"thought": self.thought, "nextThoughtNeeded": True, **present}


STEPS = (
    Step("Some orders are charged twice; all of them were slow."),
    Step("charge() retries a timeout that the bank had booked."),
    Step("A longer timeout only hides it: ruled out."),
    Step("Send a key, so the bank drops the second try.", branch="key", origin=2),
    Step("The key is the order's id; random is new each try.", branch="key"),
    Step("Not 'some': exactly those with two attempts.", revises=1),
)
NEXT = Step("Next: pass order.id in charge(); test a slow bank.", branch="key")
"""What the second agent continues with."""


def play(stage: Stage, screen: Screen) -> None:
    """Run the whole demo on real processes; raises HoldfastError if anything does not come back."""
    screen.title("1. An agent works in a project")
    first, session = stage.agent()
    stage.session_start(session)
    daemon = stage.daemon()
    screen.line(f"agent: process {first.process.pid}; its first call started a daemon: process {daemon}")
    first.call("init", operation="start_new", title=TITLE)
    for step in STEPS:
        _think(first, step, screen)

    screen.title("2. Everything is killed")
    screen.line(f"kill -9 {first.process.pid}   (the agent, in the middle of its work)")
    first.kill()
    screen.pause(1.0)
    screen.line(f"kill -9 {daemon}   (the daemon)")
    stage.kill_daemon()
    screen.pause(1.0)

    screen.title("3. A new agent starts in the same project. It knows nothing, and calls nothing")
    second, session = stage.agent()
    screen.line(f"agent: process {second.process.pid}; daemon: process {stage.daemon()}")
    _brief(stage, second, session, screen)

    screen.title("4. It continues where the other one was killed")
    _think(second, NEXT, screen)
    _show(second.call("init", operation="load_context"), screen)


def _think(agent: StdioClient, step: Step, screen: Screen) -> None:
    number = agent.call("thought", **step.arguments())["thoughtNumber"]
    about = f" (branch {step.branch})" if step.branch else f" (revises {step.revises})" if step.revises else ""
    screen.line(f"thought {number}{about}: {step.thought}")
    screen.pause(0.9)


def _brief(stage: Stage, agent: StdioClient, session: str, screen: Screen) -> None:
    """Show the briefing of the session-start hook, or of the tool if the owner switched the hook's off."""
    text = stage.session_start(session)
    if text:
        screen.line("Its session-start hook tells it:")
    else:
        screen.line('It asks once, with the tool "resume":')
        text = str(agent.call("resume")["briefing"])
    screen.pause(1.0)
    screen.quote(text)


def _show(session: dict[str, Any], screen: Screen) -> None:
    count, wanted = session["session"]["thoughtCount"], len(STEPS) + 1
    if count != wanted:
        raise HoldfastError(f"{count} thoughts came back instead of {wanted}.", recovery="Report this as a bug.")
    screen.pause(1.0)
    screen.say("")
    for line in drawn(session, screen.width - len(INDENT), screen.tree_lines):
        screen.say(INDENT + line)
        screen.pause(0.2)
    screen.say("")
    screen.line(f"{len(STEPS)} thoughts before the kills, {len(STEPS)} after them; thought {wanted} joined them.")
