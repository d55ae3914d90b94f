"""A ledger tells what an agent really did: no more than the transcript says, and nothing that matters less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transcripts import BEGAN, Transcript, folded

from holdfast.agents.claude.transcripts.neutral import entry_of
from holdfast.briefing.ledger.folding import fold
from holdfast.briefing.ledger.model import MAX_FILES, MAX_LEDGER_BYTES, MAX_REQUEST, Ledger

TRACE = """Exit code 1
Traceback (most recent call last):
  File "app.py", line 3, in <module>
    raise KeyError("heron")
KeyError: 'heron'"""


def ledger_of(transcript: Transcript) -> Ledger:
    return folded(Ledger(transcript.session_id), transcript.entries)


def paths(touched: list[Any]) -> list[str]:
    return [file.path for file in touched]


def test_the_first_and_the_latest_request_are_kept_word_for_word() -> None:
    transcript = Transcript()
    for words in ("Mend the fence,\n  please.", "Now the gate.", "And the lock."):
        transcript.ask(words)
        transcript.say("Done.")
    ledger = ledger_of(transcript)
    assert ledger.first_request == "Mend the fence,\n  please."
    assert ledger.requests == ["Now the gate.", "And the lock."]
    assert ledger.latest_request == "And the lock."
    assert (ledger.turns, ledger.cwd, ledger.branch) == (3, "/home/me/project", "main")
    assert (ledger.started_at, ledger.last_at) == (BEGAN, BEGAN + 5_000)


@pytest.mark.parametrize(
    ("words", "members"),
    [
        ("hidden", {"isMeta": True}),
        ("This session is being continued from a previous conversation that ran out", {"isCompactSummary": True}),
        ("<local-command-stdout>Compacted</local-command-stdout>", {}),
        ("<command-name>/compact</command-name>\n<command-args></command-args>", {}),
        ("<bash-input>ls</bash-input>", {}),
        ("<task-notification>done</task-notification>", {}),
        ("<system-reminder>Holdfast briefing</system-reminder>", {}),
        ("[Request interrupted by user]", {}),
        ("do it", {"isSidechain": True}),
        ("done", {"origin": {"kind": "task-notification"}}),
    ],
)
def test_what_only_stands_in_the_users_place_is_no_request(words: str, members: dict[str, Any]) -> None:
    transcript = Transcript()
    transcript.ask(words, **members)
    assert ledger_of(transcript).first_request is None


def test_a_briefing_given_earlier_is_no_request() -> None:
    transcript = Transcript()
    transcript.ask("Mend the fence.")
    told = {"type": "hook_additional_context", "content": ["The user asked last: “Sink the ship.”"]}
    transcript.add("attachment", attachment=told)
    assert ledger_of(transcript).requests == []


def test_a_command_of_ones_own_and_what_was_asked_during_a_turn_are_requests() -> None:
    transcript = Transcript()
    transcript.ask("<command-message>review</command-message>\n<command-name>/review</command-name>"
                   "\n<command-args>the gate</command-args>")  # fmt: skip
    transcript.add(
        "attachment", attachment={"type": "queued_command", "prompt": "Mind the dog.", "commandMode": "prompt"}
    )
    ledger = ledger_of(transcript)
    assert (ledger.first_request, ledger.latest_request) == ("/review the gate", "Mind the dog.")


def test_files_are_kept_by_last_use_and_only_when_the_tool_succeeded() -> None:
    transcript = Transcript()
    for name in ("a.py", "b.py", "a.py"):
        transcript.read(f"/home/me/project/{name}")
    transcript.run("Read", {"file_path": "/gone.py"}, "File does not exist.", error=True)
    transcript.edit("/home/me/project/b.py")
    transcript.run("Write", {"file_path": "/home/me/project/c.py", "content": "x"})
    transcript.run("Edit", {"file_path": "/home/me/project/d.py"}, "String to replace not found", error=True)
    ledger = ledger_of(transcript)
    assert paths(ledger.read) == ["/home/me/project/b.py", "/home/me/project/a.py"]
    assert ledger.read[-1].times == 2
    assert paths(ledger.modified) == ["/home/me/project/b.py", "/home/me/project/c.py"]


def test_what_a_subagent_did_counts_and_what_it_was_asked_and_said_does_not() -> None:
    transcript = Transcript()
    transcript.ask("Mend the fence.")
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    transcript.ask("Cut the wire.", **side)
    call = transcript.call("Edit", {"file_path": "/wire.py"}, **side)
    transcript.answer(call, "ok", **side)
    transcript.say("It is cut.", **side)
    ledger = ledger_of(transcript)
    assert (ledger.first_request, ledger.requests, ledger.last_words) == ("Mend the fence.", [], None)
    assert paths(ledger.modified) == ["/wire.py"]
    assert ledger.unfinished


def test_a_failed_command_is_kept_with_its_error_until_it_succeeds() -> None:
    transcript = Transcript()
    transcript.fail("python app.py", TRACE)
    transcript.fail("make", "Exit code 2\nmake: *** No rule to make target 'x'.  Stop.")
    ledger = ledger_of(transcript)
    assert [(one.command, one.error, one.line) for one in ledger.failed] == [
        ("python app.py", "KeyError", "KeyError: 'heron'"),
        ("make", "exit code 2", "make: *** No rule to make target 'x'. Stop."),
    ]
    transcript.run("Bash", {"command": "python app.py"}, "fine")
    assert [one.mended for one in ledger_of(transcript).failed] == [True, False]
    assert [(one.name, one.sources) for one in ledger.errors] == [("KeyError", ["python app.py"])]
    assert ledger_of(transcript).errors == []


def test_an_error_that_only_stands_in_a_file_is_not_told_as_one_that_was_met() -> None:
    transcript = Transcript()
    transcript.read("/a.py", "class HeronError(Exception): ...")
    assert ledger_of(transcript).errors == []


def test_todos_and_the_plan_are_as_they_were_left() -> None:
    transcript = Transcript()
    todos = [{"content": "Dig", "status": "completed"}, {"content": "Fill", "status": "in_progress"}]
    transcript.run("TodoWrite", {"todos": todos})
    transcript.run("ExitPlanMode", {"plan": "1. Dig\n2. Fill"}, "User has approved your plan.")
    ledger = ledger_of(transcript)
    assert [(todo.text, todo.status) for todo in ledger.todos] == [("Dig", "completed"), ("Fill", "in_progress")]
    assert ledger.plan == "1. Dig\n2. Fill"


def test_numbered_tasks_are_followed() -> None:
    transcript = Transcript()
    for number, subject in enumerate(("Dig", "Fill", "Rake"), 1):
        transcript.run("TaskCreate", {"subject": subject}, f"Task #{number} created successfully: {subject}")
    transcript.run("TaskUpdate", {"taskId": "2", "status": "in_progress"})
    transcript.run("TaskUpdate", {"taskId": "3", "status": "deleted"})
    assert [(todo.text, todo.status) for todo in ledger_of(transcript).todos] == [
        ("Dig", "pending"),
        ("Fill", "in_progress"),
    ]


def test_the_users_answers_and_refusals_are_kept() -> None:
    transcript = Transcript()
    transcript.run(
        "AskUserQuestion", {"questions": []}, "answered", toolUseResult={"answers": {"Wood or wire?": "Wood"}}
    )
    refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nNever."
    transcript.run("Bash", {"command": "rm -rf x"}, refused, error=True)
    denied = {"permissionDecision": {"decision": "reject", "source": "hook"}}
    transcript.run("Bash", {"command": "git commit"}, "the gate is closed", error=True, **denied)
    ledger = ledger_of(transcript)
    assert [(one.question, one.answer) for one in ledger.decisions] == [("Wood or wire?", "Wood")]
    assert ledger.ruled_out == [
        "the user refused Bash rm -rf x, saying: Never.",
        "Bash git commit was denied: the gate is closed",
    ]
    assert ledger.failed == []


def test_what_was_taken_back_is_ruled_out() -> None:
    transcript = Transcript()
    transcript.edit("/a.py", "wood", "wire")
    transcript.edit("/a.py", "wire", "wood")
    transcript.run("Bash", {"command": "git checkout -- src/b.py"})
    assert ledger_of(transcript).ruled_out == [
        "an edit of /a.py was taken back",
        "taken back with: git checkout -- src/b.py",
    ]


def test_commits_are_read_off_what_git_said() -> None:
    transcript = Transcript()
    transcript.run(
        "Bash", {"command": "git commit -m x"}, "[main (root-commit) 3f78685] Mend the fence\n 1 file changed"
    )
    assert [(one.hash, one.subject) for one in ledger_of(transcript).commits] == [("3f78685", "Mend the fence")]


def test_a_turn_without_an_end_is_unfinished() -> None:
    transcript = Transcript()
    assert not ledger_of(transcript).unfinished
    transcript.ask("Mend the fence.")
    assert ledger_of(transcript).unfinished
    call = transcript.call("Bash", {"command": "make"})
    ledger = ledger_of(transcript)
    assert ledger.unfinished
    assert [(one.tool, one.about) for one in ledger.calls] == [("Bash", "make")]
    transcript.answer(call, "done")
    transcript.say("First I look.", stop_reason="tool_use")
    assert ledger_of(transcript).unfinished
    transcript.say("It is mended.")
    ended = ledger_of(transcript)
    assert (ended.unfinished, ended.calls, ended.last_words) == (False, [], "It is mended.")


def test_a_turn_that_the_user_ended_is_not_unfinished_and_one_that_an_api_error_ended_is() -> None:
    transcript = Transcript()
    transcript.ask("Mend the fence.")
    transcript.ask("[Request interrupted by user]")
    assert not ledger_of(transcript).unfinished
    transcript.ask("Again.")
    transcript.say("API Error: 529", isApiErrorMessage=True)
    ledger = ledger_of(transcript)
    assert (ledger.unfinished, ledger.last_words) == (True, None)


def test_what_was_typed_and_never_reached_the_agent_is_kept() -> None:
    transcript = Transcript()
    for operation, words in (
        ("enqueue", "Mend the fence."),
        ("dequeue", ""),
        ("enqueue", "<task-notification>done</task-notification>"),
        ("enqueue", "Mind the dog."),
        ("enqueue", "And the cat."),
        ("dequeue", ""),
        ("remove", "Mind the dog."),
    ):
        transcript.add("queue-operation", operation=operation, content=words)
    assert ledger_of(transcript).waiting == ["And the cat."]
    transcript.add("queue-operation", operation="popAll")
    assert ledger_of(transcript).waiting == []


def test_compactions_are_counted_and_leave_no_request() -> None:
    transcript = Transcript()
    transcript.ask("Mend the fence.")
    transcript.say("Done.")
    transcript.compact()
    transcript.compact()
    ledger = ledger_of(transcript)
    assert (ledger.compactions, ledger.turns, ledger.unfinished) == (2, 1, False)


def test_no_secret_is_kept() -> None:
    secret = "hunter2" * 2
    transcript = Transcript()
    transcript.ask(f"Use password={secret} for it.")
    transcript.fail(f"curl -u me:{secret} https://x", f"Exit code 7\nFooError: password: {secret}")
    transcript.run("Read", {"file_path": f"/x?token={secret}"})
    transcript.run("TodoWrite", {"todos": [{"content": f"--password {secret}", "status": "pending"}]})
    transcript.run("ExitPlanMode", {"plan": f"PASSWORD={secret}"})
    answers = {"Which user?": f"me, password: {secret}"}
    transcript.run("AskUserQuestion", {}, "answered", toolUseResult={"answers": answers})
    transcript.say(f"API_TOKEN={secret}")
    written = ledger_of(transcript).to_json()
    assert secret not in written
    assert written.count("[redacted]") >= 7


def test_a_secret_that_would_be_cut_in_two_is_not_kept_by_half() -> None:
    key = "sk-" + "ant-" + "a1" * 40
    transcript = Transcript()
    transcript.ask("x" * (MAX_REQUEST - 20) + " " + key)
    assert "a1a1" not in ledger_of(transcript).to_json()


def test_a_ledger_comes_back_as_it_was_written() -> None:
    transcript = Transcript()
    transcript.ask("Mend “the” fence \ud83d\0 日本.")
    transcript.edit("/a.py")
    transcript.fail("python app.py", TRACE)
    transcript.call("Bash", {"command": "sleep 9"})
    ledger = ledger_of(transcript)
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert "\\u0000" not in ledger.to_json()


def test_a_ledger_of_another_version_is_read_as_far_as_it_is_understood() -> None:
    later = '{"session_id": "s", "mood": "good", "read": [{"path": "/a.py", "times": 2, "lines": 9}]}'
    ledger = Ledger.from_json(later)
    assert (ledger.session_id, paths(ledger.read), ledger.requests) == ("s", ["/a.py"], [])


@pytest.mark.parametrize(
    "entries", [pytest.param(250, id="small"), pytest.param(1_000, id="whole", marks=pytest.mark.long)]
)
def test_a_ledger_stays_small_whatever_a_transcript_holds(entries: int) -> None:
    transcript = Transcript()
    for number in range(entries):
        transcript.ask(f"{number} " + "日" * 5_000)
        transcript.read(f"/home/me/{'日' * 300}/{number}.py")
        transcript.edit(f"/home/me/{'é' * 300}/{number}.py")
        transcript.fail(f"{number} " + "x" * 5_000, f"Exit code 1\n{'é' * 5_000}Heron{number}Error")
    ledger = ledger_of(transcript)
    assert len(ledger.read) <= MAX_FILES and len(ledger.modified) <= MAX_FILES, "also before it is stored"
    assert len(ledger.to_json().encode()) <= MAX_LEDGER_BYTES
    assert ledger.latest_request is not None and ledger.latest_request.startswith(f"{entries - 1} ")
    assert ledger.first_request is not None and ledger.first_request.startswith("0 ")
    assert ledger.modified[-1].path.endswith(f"/{entries - 1}.py")


MEMBERS = [
    "type",
    "message",
    "content",
    "text",
    "id",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "timestamp",
    "isSidechain",
    "attachment",
    "prompt",
    "subtype",
    "toolUseResult",
    "answers",
    "todos",
    "permissionDecision",
    "decision",
    "stop_reason",
    "cwd",
    "origin",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(MEMBERS) | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
KINDS = st.sampled_from(["user", "assistant", "system", "attachment", "summary"])
TOOLS = st.sampled_from(
    ["Bash", "Edit", "Read", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "ExitPlanMode"]
)


ENTRIES = st.tuples(KINDS, st.dictionaries(st.text(max_size=6), JSON, max_size=4), JSON, JSON, TOOLS)


@pytest.mark.parametrize("examples", [30, pytest.param(100, marks=pytest.mark.long)])
def test_no_entry_whatever_it_holds_breaks_a_ledger(examples: int) -> None:
    settings(max_examples=examples)(given(st.lists(ENTRIES, max_size=6))(_breaks_no_ledger))()


def _breaks_no_ledger(made: list[tuple[str, dict[str, Any], Any, Any, str]]) -> None:
    ledger = Ledger("s")
    for kind, members, content, more, tool in made:
        fold(ledger, entry_of({**members, "type": kind, "message": more, "attachment": content}))
        fold(
            ledger,
            entry_of({"type": kind, "message": {"content": content, "stop_reason": more}, "toolUseResult": more}),
        )
        use = {"type": "tool_use", "id": "1", "name": tool, "input": content}
        fold(ledger, entry_of({"type": "assistant", "message": {"content": [use]}}))
        result = {"type": "tool_result", "tool_use_id": "1", "content": more, "is_error": content}
        fold(ledger, entry_of({"type": "user", "message": {"content": [result]}, "toolUseResult": content}))
    written = ledger.to_json()
    assert Ledger.from_json(written) == ledger
    assert len(written.encode()) <= MAX_LEDGER_BYTES
