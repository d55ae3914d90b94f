"""The scripted model keeps its own promises, so that a failing test points at Holdfast."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agents.claude_code import run_claude
from tests.agents.scripted_model import (
    Script,
    ScriptedModel,
    api_error,
    dropped,
    later,
    reply,
    say,
    steps,
    text,
    tool_use,
    use,
)

TOOL = {"name": "Bash", "description": "", "input_schema": {"type": "object"}}


def ask(model: ScriptedModel, path: str = "/v1/messages", **body: Any) -> tuple[int, str]:
    """POST a minimal request of the main loop and return the status and the whole answer."""
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "tools": [TOOL], **body}
    connection = http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", path, json.dumps(request))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def stream_of(answer: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in answer.splitlines() if line.startswith("data: ")]


def test_a_context_that_went_on_is_seen_in_the_default_reply(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        first = run_claude(model, tmp_path / "project", "Remember the heron.", home=tmp_path / "home")
        second = run_claude(model, tmp_path / "project", "And now?", home=tmp_path / "home", resume=first.session_id)
    assert first.result == "I have seen 1 user turns; last: Remember the heron."
    assert second.result == "I have seen 2 user turns; last: And now?"
    assert second.session_id == first.session_id


def test_a_scripted_tool_runs_and_its_result_comes_back(tmp_path: Path) -> None:
    script = steps(tool_use("Bash", {"command": "echo heron-$((40 + 2))", "description": "Say it"}), text("Done."))
    with ScriptedModel(script) as model:
        run = run_claude(model, tmp_path / "project", "Go.", home=tmp_path / "home", allowed_tools=["Bash"])
    assert not run.is_error
    assert run.result == "Done."
    assert [result.text for result in model.requests[1].tool_results] == ["heron-42"]


def test_an_error_of_the_api_reaches_the_run_as_an_error(tmp_path: Path) -> None:
    with ScriptedModel(lambda request: api_error(400, "no such thing")) as model:
        run = run_claude(model, tmp_path / "project", "Go.", home=tmp_path / "home")
    assert run.is_error
    assert "no such thing" in run.result


def test_a_request_for_a_title_does_not_use_up_a_step() -> None:
    with ScriptedModel(steps(text("The only step."))) as model:
        _, title = ask(model, tools=[], output_config={"format": {"type": "json_schema"}})
        _, turn = ask(model)
    assert json.loads(json.loads(title)["content"][0]["text"]) == {"title": "A scripted session"}
    assert json.loads(turn)["content"][0]["text"] == "The only step."
    assert (len(model.requests), len(model.side_requests)) == (1, 1)


def test_a_stream_carries_every_block_and_why_it_stopped() -> None:
    with ScriptedModel(steps(reply(say("Look:"), use("Bash", {"command": "ls"})))) as model:
        status, answer = ask(model, stream=True)
    events = stream_of(answer)
    assert status == 200
    assert [event["type"] for event in events] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "Look:"}
    assert json.loads(events[5]["delta"]["partial_json"]) == {"command": "ls"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
def test_an_api_error_has_the_status_and_the_type_of_the_real_one(status: int, kind: str) -> None:
    with ScriptedModel(steps(api_error(status))) as model:
        answered, body = ask(model)
    assert (answered, json.loads(body)["error"]["type"]) == (status, kind)


def test_a_dropped_connection_ends_before_the_first_byte_or_in_the_middle() -> None:
    with ScriptedModel(steps(dropped(), dropped(say("Half a")))) as model:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(model, stream=True)
        _, answer = ask(model, stream=True)
    assert [event["type"] for event in stream_of(answer)][-1] == "content_block_stop"


def test_a_late_reply_takes_its_time() -> None:
    with ScriptedModel(steps(later(0.3, text("At last.")))) as model:
        asked = time.monotonic()
        _, answer = ask(model)
    assert time.monotonic() - asked >= 0.3
    assert json.loads(answer)["content"][0]["text"] == "At last."


def test_tokens_are_counted_without_a_turn() -> None:
    with ScriptedModel() as model:
        status, answer = ask(model, "/v1/messages/count_tokens")
    assert (status, json.loads(answer)["input_tokens"] > 0, model.requests) == (200, True, [])


def test_a_script_that_fails_fails_the_test() -> None:
    def run(script: Script) -> None:
        with ScriptedModel(script) as model:
            assert ask(model)[0] == 400

    with pytest.raises(AssertionError, match="0 steps"):
        run(steps())
