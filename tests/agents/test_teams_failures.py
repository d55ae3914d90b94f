"""Sessions that cannot be begun, resumed, held or mirrored: each failure provoked with the real Claude Code."""

from __future__ import annotations

import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import claude_agent_sdk
import pytest
from tests.agents.scripted_model import ScriptedModel, later, seen_so_far, text
from tests.agents.teams_world import World, ask, turns
from tests.installation import PATIENCE, kill_all, wait_until
from tests.process.agent import Agent

from holdfast.agents.claude.transcripts.folder_name import project_key

BUNDLED = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
LOST = "could not be found"


class OwnClaude:
    """The user's own `claude`: the real one, in whose way something comes at as many starts as a test says.

    Holdfast looks at files and store before it starts an agent, so what makes Claude Code itself refuse has to happen
    between that look and the start.
    """

    def __init__(self, world: World, mishap: str) -> None:
        folder = world.bin
        folder.mkdir()
        self._left, self._starts = folder / "left", folder / "starts"
        self.happens(0)
        transcripts = world.config / "projects" / project_key(world.project(world.backend))
        program = folder / "claude"
        program.write_text(
            f"""#!/bin/sh
for argument; do
  case "$argument" in --session-id=*|--resume=*) start="$argument" ;; esac
done
echo "$start" >> {shlex.quote(str(self._starts))}
transcript={shlex.quote(str(transcripts))}/"${{start#*=}}".jsonl
left=$(cat {shlex.quote(str(self._left))})
if [ "$left" -gt 0 ]; then
  echo $((left - 1)) > {shlex.quote(str(self._left))}
  {mishap}
fi
exec {shlex.quote(str(BUNDLED))} "$@"
"""
        )
        program.chmod(0o755)

    def happens(self, times: int) -> None:
        """Let it happen at the next starts."""
        self._left.write_text(str(times))

    def starts(self) -> list[str]:
        """The option and session id of every start."""
        return self._starts.read_text().split()


ID_TAKEN = 'mkdir -p "${transcript%/*}"; : > "$transcript"'
TRANSCRIPT_DELETED = 'rm "$transcript"'
OUT_OF_MEMORY = 'echo "cannot allocate memory" >&2; exit 1'


def _failure(caller: Agent, team: str, question: str, **more: Any) -> dict[str, Any]:
    reply = caller.call("teams_ask", team=team, question=question, timeout=60_000, **more)
    assert reply["status"] == "failed" and "response" not in reply, reply
    return reply


def _was_asked(model: ScriptedModel, times: int) -> bool:
    return len(model.requests) >= times


def _in_store(world: World, statement: str) -> list[Any]:
    """Run SQL on the store beside the daemon; it may touch this test's own sessions alone."""
    connection = apsw.Connection(str(world.holdfast.home / "holdfast.db"))
    connection.set_busy_timeout(int(PATIENCE * 1000))
    try:
        return list(connection.execute(statement))
    finally:
        connection.close()


@pytest.mark.parametrize("mishap", [ID_TAKEN, OUT_OF_MEMORY], ids=["id taken", "no memory"])
def test_a_session_that_cannot_be_begun_is_begun_with_another_id(world: World, mishap: str) -> None:
    claude = OwnClaude(world, mishap)
    claude.happens(1)
    with world.caller() as caller:
        first = ask(caller, world.backend, "one", fromTeam=world.frontend)
        refused, used = claude.starts()
        assert refused != used and used == f"--session-id={first['conversation']['sessionId']}"
        second = ask(caller, world.backend, "two", fromTeam=world.frontend)
        assert (turns(second), second["conversation"]["sessionId"]) == (2, first["conversation"]["sessionId"])


@pytest.mark.parametrize(
    ("mishap", "words"),
    [(ID_TAKEN, "already in use"), (OUT_OF_MEMORY, "cannot allocate memory")],
    ids=["id taken", "no memory"],
)
def test_a_session_that_cannot_be_begun_at_all_is_a_typed_failure_until_the_cause_is_gone(
    world: World, mishap: str, words: str
) -> None:
    claude = OwnClaude(world, mishap)
    claude.happens(2)
    with world.caller() as caller:
        failed = _failure(caller, world.backend, "one", fromTeam=world.frontend)
        assert failed["error"] == "E_SESSION_CREATION"
        assert words in failed["message"] and "temporary true" in failed["message"]
        assert len(set(claude.starts())) == 2
        assert turns(ask(caller, world.backend, "aside", fromTeam=world.frontend, temporary=True)) == 1
        assert turns(ask(caller, world.backend, "again", fromTeam=world.frontend)) == 1
        assert turns(ask(caller, world.backend, "and on", fromTeam=world.frontend)) == 2


def test_an_agent_killed_at_both_attempts_is_a_typed_failure_and_its_conversation_goes_on(world: World) -> None:
    model = world.model
    model.script = lambda request: later(PATIENCE, text("never"))
    with world.caller() as caller:
        sent = caller.call("teams_send_message", toTeam=world.backend, message="go", waitForResponse=False)
        for attempt in (1, 2):
            wait_until(partial(_was_asked, model, attempt), f"attempt {attempt} is under way")
            kill_all(world.agents("claude"))
        failed = caller.call("teams_session", operation="wait", askId=sent["askId"], timeout=60_000)
        assert (failed["status"], failed["error"]) == ("failed", "E_AGENT_DIED")
        assert "asked twice" in failed["message"] and "response" not in failed
        model.script = seen_so_far
        assert ask(caller, world.backend, "still there?")["conversation"]["id"] == failed["conversation"]["id"]


def test_a_conversation_lost_on_disk_and_in_the_store_begins_afresh_and_both_sides_are_told(world: World) -> None:
    with world.caller() as caller:
        before = ask(caller, world.backend, "one", fromTeam=world.frontend)
        world.lose_agents(caller)
        shutil.rmtree(world.config / "projects")
        session = before["conversation"]["sessionId"]
        _in_store(world, f"DELETE FROM transcript_lines WHERE session_id = '{session}'")
        reply = ask(caller, world.backend, "two", fromTeam=world.frontend)
        assert turns(reply) == 1
        assert reply["conversation"]["id"] == before["conversation"]["id"]
        assert reply["conversation"]["sessionId"] != before["conversation"]["sessionId"]
        assert LOST in reply["note"]
        following = ask(caller, world.backend, "three", fromTeam=world.frontend)
        assert turns(following) == 2 and "note" not in following
        first_turn, second_turn = world.model.requests[-1].user_turns
        assert LOST in first_turn, "the agent was not told that it had been asked before"
        assert LOST not in second_turn


def test_an_answer_and_what_its_agent_wrote_are_stored_in_one_transaction(world: World) -> None:
    with world.caller() as caller:
        for question in ("one", "two"):  # of a new process, and of a warm one
            session = ask(caller, world.backend, question, fromTeam=world.frontend)["conversation"]["sessionId"]
            of_it = f"FROM asks a JOIN conversations c ON c.id = a.conversation_id WHERE c.session_id = '{session}'"
            (finished,) = _in_store(world, f"SELECT max(a.finished_at) {of_it}")
            (written,) = _in_store(world, f"SELECT max(at) FROM transcript_lines WHERE session_id = '{session}'")
            assert written == finished  # a transaction has one time


def test_an_ask_whose_transcript_does_not_reach_the_store_fails_and_its_turn_is_kept(world: World) -> None:
    model = world.model
    with world.caller() as caller:
        session = ask(caller, world.backend, "one", fromTeam=world.frontend)["conversation"]["sessionId"]
        _in_store(
            world,
            f"CREATE TRIGGER no_room BEFORE INSERT ON transcript_lines WHEN NEW.session_id = '{session}'"
            r" AND NEW.entry LIKE '%]\n\n> two%' BEGIN SELECT RAISE(ABORT, 'no room'); END",
        )
        try:
            failed = _failure(caller, world.backend, "two", fromTeam=world.frontend)
            assert failed["error"] == "E_AGENT_MIRROR"
            assert "did not reach the store" in failed["message"]
            asked = len(model.requests)
            assert _failure(caller, world.backend, "and now?", fromTeam=world.frontend)["error"] == "E_STORE"
            assert len(model.requests) == asked, "no turn is run before the last one is kept"
        finally:
            _in_store(world, "DROP TRIGGER no_room")
        reply = ask(caller, world.backend, "three", fromTeam=world.frontend)
        assert turns(reply) == 3, "the turn that failed is part of the conversation"
        assert reply["conversation"]["sessionId"] == session
    rows = _in_store(world, f"SELECT entry FROM transcript_lines WHERE session_id = '{session}' ORDER BY row_id")
    kept = "\n".join(entry for (entry,) in rows)
    places = [kept.find(f"\\n\\n> {word}") for word in ("one", "two", "three")]
    assert -1 not in places and places == sorted(places), places


def test_a_transcript_that_vanishes_while_it_is_resumed_is_restored_once_more(world: World) -> None:
    claude = OwnClaude(world, TRANSCRIPT_DELETED)
    with world.caller() as caller:
        before = ask(caller, world.backend, "one", fromTeam=world.frontend)
        world.lose_agents(caller)
        claude.happens(1)
        reply = ask(caller, world.backend, "two", fromTeam=world.frontend)
        assert turns(reply) == 2 and "note" not in reply
        assert claude.starts()[1:] == [f"--resume={before['conversation']['sessionId']}"] * 2


def test_a_resume_that_fails_for_another_reason_gives_no_conversation_up(world: World) -> None:
    claude = OwnClaude(world, OUT_OF_MEMORY)
    with world.caller() as caller:
        ask(caller, world.backend, "one", fromTeam=world.frontend)
        world.lose_agents(caller)
        claude.happens(1)
        failed = _failure(caller, world.backend, "two", fromTeam=world.frontend)
        assert failed["error"] == "E_AGENT_UNAVAILABLE" and "cannot allocate memory" in failed["message"]
        assert turns(ask(caller, world.backend, "three", fromTeam=world.frontend)) == 2
