"""One Claude Code process at work on one conversation, turn by turn."""

from __future__ import annotations

import asyncio
import contextlib
import re
import warnings
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

from claude_agent_sdk import (
    AssistantMessage,
    CanUseToolShadowedWarning,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLINotFoundError,
    Message,
    MirrorErrorMessage,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolPermissionContext,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk.types import SessionStore

from holdfast.agents import AgentEvent, Compaction, OnEvent, Permission, Turn
from holdfast.agents.claude.transcripts.transcript_copy import TranscriptCopy, copy_failed
from holdfast.agents.errors import (
    AgentBusy,
    AgentDied,
    AgentError,
    AgentNotReady,
    AgentUnavailable,
    CompactionFailed,
    SessionChanged,
    SessionInUse,
    SessionMissing,
)
from holdfast.files.in_time import ProjectTooSlow
from holdfast.process.guard import END_SECONDS, GuardedProcess

OLDEST = (2, 1, 248)
"""The first Claude Code that can be told to take a message as it is written."""
TIDY_SECONDS = 0.02
NOT_READY = "Control request timeout"
"""How the SDK's error begins when Claude Code runs and says nothing for a minute."""

# Tools that the team's settings allow are meant not to be asked about.
warnings.filterwarnings("ignore", category=CanUseToolShadowedWarning)


class ClaudeSession:
    """A connected Claude Code process."""

    def __init__(
        self, client: ClaudeSDKClient, guarded: GuardedProcess, copy: TranscriptCopy, session_id: str, spent: float
    ) -> None:
        self._client = client
        self._guarded = guarded
        self._copy = copy
        self._session_id = session_id
        self._spent = spent
        self._turn: _RunningTurn | None = None
        self._closing: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        options: ClaudeAgentOptions,
        session_id: str,
        copy: TranscriptCopy,
        permission: Permission | None,
        spent: float,
    ) -> ClaudeSession:
        """Start the process and wait until it is ready. `spent` is what the conversation had cost before."""
        guarded = GuardedProcess()
        options = replace(
            options,
            session_store=cast(SessionStore, copy),
            stderr=guarded.read,
            can_use_tool=_asking(permission) if permission else None,
        )
        client = ClaudeSDKClient(options)
        try:
            await client.connect()
            await guarded.reported()
        except CLINotFoundError as error:
            raise AgentUnavailable(f"Claude Code did not start: {error}") from error
        except Exception as error:  # the SDK raises bare ones as well; all of them mean that there is no agent
            await client.disconnect()
            if str(error).startswith(NOT_READY):
                raise AgentUnavailable(
                    f"Claude Code started and did not get ready. {guarded.last_words}".rstrip(),
                    recovery="Start `claude` in the project to see why, then ask again.",
                ) from error
            raise _refusal(session_id, guarded.last_words or str(error)) from error
        except BaseException:
            await client.disconnect()
            raise
        session = cls(client, guarded, copy, session_id, spent)
        version = str((await client.get_server_info() or {}).get("claude_code_version", ""))
        if not _new_enough(version):
            await session.close()
            raise AgentUnavailable(
                f"Claude Code {version or 'of an unknown version'} cannot be told to take a message as text.",
                recovery=f"Update it to {'.'.join(map(str, OLDEST))} or newer (`claude update`).",
            )
        return session

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def pid(self) -> int | None:
        return None if self._reading.done() else self._guarded.agent_pid

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._reading.done()

    async def is_overtaken(self) -> bool:
        """Return whether somebody else has written to the conversation, or has it open."""
        return await self._copy.is_overtaken(self.pid)

    async def send(self, text: str, on_event: OnEvent, *, stores: bool = True) -> Turn:
        """Run one turn; the text reaches the model as it is written."""
        # A message marked so is neither searched for commands nor for files to include. It also lacks the reminders
        # that usually come with a turn, so only texts that could be more than text are marked.
        marked = text.lstrip().startswith("/") or "@" in text
        self._copy.holds = not stores
        try:
            turn = self._checked(await self._run(text, marked, on_event))
        finally:
            self._copy.holds = False
        self._tidying = asyncio.create_task(self._tidy_up())
        return replace(turn, unstored=self._copy.take())

    async def _tidy_up(self) -> None:
        await asyncio.sleep(TIDY_SECONDS)  # the caller is answered first
        with contextlib.suppress(OSError, ProjectTooSlow):  # the check before the next turn reports it
            await self._copy.read_own()

    async def compact(self) -> Compaction:
        """Run Claude Code's own compaction."""
        ended = await self._run("/compact", False, lambda event: None)
        turn = self._checked(ended)
        if ended.compaction is None or turn.is_error:
            raise CompactionFailed(turn.text or "Claude Code found nothing to compact.")
        return ended.compaction

    async def interrupt(self) -> None:
        """End the turn that is running, if one is."""
        if self._turn is not None and self.alive:
            try:
                await self._client.interrupt()
            except Exception as error:
                if self.alive:  # otherwise the turn has already ended, with AgentDied
                    raise AgentError(f"Claude Code did not take the interrupt: {error}") from error

    async def close(self) -> None:
        """End Claude Code and everything it started."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        await self._guarded.end(self._reading)
        await self._client.disconnect()

    async def _run(self, text: str, marked: bool, on_event: OnEvent) -> _RunningTurn:
        if self._turn is not None:
            raise AgentBusy(f"Session {self._session_id} is in the middle of a turn.", recovery="Wait for its end.")
        if not self.alive:
            raise AgentDied(f"Claude Code has ended. {self._guarded.last_words}".strip())
        running = self._turn = _RunningTurn(on_event, self._copy.appended, self._spent)
        try:
            await self._client.query(_one_message(text, marked))
        except ClaudeSDKError as error:
            # As a rule the process has ended; then the reader learns why, and fails the turn with it.
            await asyncio.wait([self._reading], timeout=END_SECONDS)
            if not running.ended.done():
                self._turn = None
                raise AgentDied(f"Claude Code no longer accepts messages: {error}") from error
        # If the caller is cancelled the turn continues, and the next send is refused until it has ended.
        return await asyncio.shield(running.ended)

    async def _read(self) -> None:
        """Hand what the agent says to the turn that is running, until the agent ends."""
        reason = "it ended"
        try:
            async for message in self._client.receive_messages():
                if self._turn is not None and self._turn.take(message):
                    self._spent = self._turn.total_cost
                    running, self._turn = self._turn, None
                    running.finish()
        except ClaudeSDKError as error:
            reason = str(error).splitlines()[0]
        finally:
            running_now, self._turn = self._turn, None
            if running_now is not None:
                last_words = self._guarded.last_words
                running_now.fail(AgentDied(f"Claude Code ended in mid-turn: {reason}. {last_words}".rstrip()))

    def _checked(self, running: _RunningTurn) -> Turn:
        """Return the turn, unless it happened elsewhere or was not copied to the store."""
        turn = running.turn()
        if turn.session_id != self._session_id:
            raise SessionChanged(f"Claude Code answered from session {turn.session_id}, not {self._session_id}.")
        problem = running.copy_error
        if problem is None and self._copy.appended == running.copied_before:
            problem = "nothing of the turn arrived there"
        if problem is not None:
            raise copy_failed(self._session_id, problem)
        return turn


class _RunningTurn:
    """What is gathered from the agent's messages until the turn ends."""

    def __init__(self, on_event: OnEvent, copied_before: int, cost_before: float) -> None:
        self.ended: asyncio.Future[_RunningTurn] = asyncio.get_running_loop().create_future()
        self.total_cost = cost_before
        self.compaction: Compaction | None = None
        self._on_event = on_event
        self.copied_before = copied_before
        self._cost_before = cost_before
        self.copy_error: str | None = None
        self._context_tokens: int | None = None
        self._result: ResultMessage | None = None

    def take(self, message: Message) -> bool:
        """Take in a message; True when it ends the turn."""
        match message:
            case ResultMessage():
                # A background task that ends starts a turn that nobody asked for.
                if message.origin is not None and message.origin.get("kind") == "task-notification":
                    return False
                self._result = message
                self.total_cost = max(self._cost_before, message.total_cost_usd or 0.0)
                return True
            case MirrorErrorMessage():
                self.copy_error = message.error
            case SystemMessage(subtype="compact_boundary"):
                metadata = message.data.get("compact_metadata") or message.data.get("compactMetadata") or {}
                self.compaction = Compaction(
                    metadata.get("pre_tokens", metadata.get("preTokens")),
                    metadata.get("post_tokens", metadata.get("postTokens")),
                )
            case AssistantMessage(parent_tool_use_id=None, usage=dict(usage)):
                self._context_tokens = _all_input(usage) + usage.get("output_tokens", 0)
        for event in _events(message):
            self._on_event(event)
        return False

    def finish(self) -> None:
        """Wake the waiting caller."""
        self.ended.set_result(self)

    def fail(self, error: Exception) -> None:
        """Wake the waiting caller with the reason why the turn did not end."""
        self.ended.set_exception(error)
        self.ended.exception()  # a caller that was cancelled does not come for it

    def turn(self) -> Turn:
        """Return the turn that a result message describes."""
        result = self._result
        if result is None:
            raise AgentDied("The turn has no result.")
        usage = result.usage or {}
        windows = [model.get("contextWindow") for model in (result.model_usage or {}).values()]
        return Turn(
            text=result.result or "; ".join(result.errors or ()),
            session_id=result.session_id,
            is_error=result.is_error,
            interrupted=(result.terminal_reason or "").startswith("aborted"),
            subtype=result.subtype,
            duration_ms=result.duration_ms,
            num_turns=result.num_turns,
            cost_usd=None if result.total_cost_usd is None else self.total_cost - self._cost_before,
            input_tokens=_all_input(usage),
            output_tokens=usage.get("output_tokens", 0),
            context_tokens=self._context_tokens,
            context_window=max((window for window in windows if window), default=None),
        )


def _all_input(usage: dict[str, Any]) -> int:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(name) or 0 for name in names)


def _events(message: Message) -> list[AgentEvent]:
    """Return the turn's events in a message; any message is a sign of life."""
    match message:
        case AssistantMessage(content=blocks):
            texts = [AgentEvent("text", block.text) for block in blocks if isinstance(block, TextBlock)]
            used = [AgentEvent("tool", block.name) for block in blocks if isinstance(block, ToolUseBlock)]
            return texts + used or [AgentEvent("status", "assistant")]
        case UserMessage():
            return [AgentEvent("tool_result")]
        case SystemMessage(subtype="api_retry", data=data):
            return [AgentEvent("retry", _refused(data))]
        case SystemMessage(subtype=subtype):
            return [AgentEvent("status", subtype)]
    return [AgentEvent("status", type(message).__name__)]


def _refused(data: dict[str, Any]) -> str:
    """Describe what the model did before Claude Code retries it."""
    status, attempt, attempts = (data.get(name) for name in ("error_status", "attempt", "max_retries"))
    how = f"answered {status}" if isinstance(status, int) else "did not answer"
    return f"{how} (retry {attempt} of {attempts})" if isinstance(attempt, int) and isinstance(attempts, int) else how


async def _one_message(text: str, marked: bool) -> AsyncIterator[dict[str, Any]]:
    message: dict[str, Any] = {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
    }
    yield {**message, "client_composed": True} if marked else message


def _asking(permission: Permission) -> Any:
    """Return the SDK's question about a tool, put to `permission`."""

    async def ask(
        tool: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        decision = await permission(tool, arguments)
        if decision is True:
            return PermissionResultAllow()
        why = decision or ("This was denied." if decision is False else "Nobody allowed this.")
        return PermissionResultDeny(message=f"{why} Go on without it, or say what you need it for.")

    return ask


def _new_enough(version: str) -> bool:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return match is not None and tuple(int(part) for part in match.groups()) >= OLDEST


def _refusal(session_id: str, words: str) -> Exception:
    """Return the error for a Claude Code that would not start, based on its output."""
    if "already in use" in words or "another process has this session" in words:
        return SessionInUse(f"Session {session_id} is in use: {words}")
    if "No conversation found" in words:
        return SessionMissing(f"Claude Code does not know session {session_id}: {words}")
    return AgentNotReady(f"Claude Code did not start: {words}")
